"""Kernels use only what interpreted and compiled code both have: see "Writing a kernel" in CONTRIBUTING.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from locations import SOURCES

DECORATORS = {"kernel", "allocating_kernel", "inlined_kernel"}
#: What kernels may use of numpy: `interpreter` has a stand-in for each.
OF_NUMPY = {"int64", "uint64", "zeros", "empty"}


def find_kernels(text: str) -> Iterator[ast.FunctionDef]:
    """Find the kernels of a module that run interpreted as they are written."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            names = {decorator.id for decorator in node.decorator_list if isinstance(decorator, ast.Name)}
            replaced = any("interpret_as" in ast.unparse(decorator) for decorator in node.decorator_list)
            if names & DECORATORS and not replaced:
                yield node


def find_complaints(kernel: ast.FunctionDef) -> Iterator[str]:
    """Find expressions that memoryviews or the stand-in for numpy do not support."""
    for statement in kernel.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Slice):
                yield f"{kernel.name}:{kernel.lineno}: a slice"
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np":
                if node.attr not in OF_NUMPY:
                    yield f"{kernel.name}:{kernel.lineno}: np.{node.attr}"
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "np." not in ast.unparse(node):
                yield f"{kernel.name}:{kernel.lineno}: a method, {ast.unparse(node.func)}"


def test_kernels_use_what_both_ways_have() -> None:
    kernels = [
        (file, kernel) for file in sorted(SOURCES.rglob("*.py")) for kernel in find_kernels(file.read_text("utf-8"))
    ]
    assert len(kernels) > 100
    assert not [f"{file.name}: {found}" for file, kernel in kernels for found in find_complaints(kernel)]


@pytest.mark.parametrize("line", ["a[1:] = b", "x = np.sort(a)", "return a.max()", "a[:, 1].sum()"])
def test_what_only_compiled_code_has_is_found(line: str) -> None:
    (kernel,) = find_kernels(f"@kernel\ndef f(a, b):\n    {line}\n")
    assert list(find_complaints(kernel))
