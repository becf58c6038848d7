"""Functions and modules stay small enough to read in one sitting. There are no exceptions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from locations import SOURCES

LINES_PER_FUNCTION = 80
PARAMETERS_PER_FUNCTION = 8
LINES_PER_MODULE = 450

Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def count_parameters(function: Function) -> int:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return sum(name.arg not in ("self", "cls") for name in named)


def count_lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def find_excesses() -> Iterator[tuple[str, str]]:
    """Yield each place that exceeds a limit, with what it has."""
    for file in sorted(SOURCES.rglob("*.py")):
        name = file.relative_to(SOURCES).as_posix()
        text = file.read_text(encoding="utf-8")
        kernels: list[Function] = []
        functions: list[Function] = []
        for function in find_functions(ast.parse(text)):
            # Kernels are long loops on purpose: a call between kernels costs time.
            is_kernel = any(ast.unparse(mark).endswith("kernel") for mark in function.decorator_list)
            (kernels if is_kernel else functions).append(function)
        lines = text.count("\n") - sum(map(count_lines, kernels))
        if lines > LINES_PER_MODULE:
            yield name, f"{lines} lines outside kernels"
        for function in functions:
            if count_lines(function) > LINES_PER_FUNCTION:
                yield f"{name}:{function.name}", f"{count_lines(function)} lines"
            if count_parameters(function) > PARAMETERS_PER_FUNCTION:
                yield f"{name}:{function.name}", f"{count_parameters(function)} parameters"


def test_functions_and_modules_stay_small() -> None:
    found = [f"{place}: {what}" for place, what in find_excesses()]
    assert not found, "\n".join(found)
