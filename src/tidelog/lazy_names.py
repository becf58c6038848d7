"""Load the public names of a package when they are first used, so that importing it stays light.

The names are listed once, in the `__init__.pyi` beside the package. Type checkers read that file as it is, and here it
says which module each name is imported from.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def attach_lazy_names(package: str) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package, made from its `__init__.pyi`."""
    homes = _read_homes(package)
    names = sorted(homes)

    def get_name(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = homes[name]
        return import_module(f"{package}.{name}") if module == package else getattr(import_module(module), name)

    return names, get_name, lambda: [*names, *(["__version__"] if package == "tidelog" else [])]


def _read_homes(package: str) -> dict[str, str]:
    """Read which module each public name comes from; a submodule comes from the package itself."""
    spec = sys.modules[package].__spec__
    assert spec is not None
    loader: Any = spec.loader
    assert spec.origin is not None, f"{package} has no list of public names"
    stub = loader.get_data(f"{spec.origin.removesuffix('.py')}.pyi")
    return {
        alias.name: node.module
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "tidelog.version"
        for alias in node.names
    }
