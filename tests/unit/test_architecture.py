"""Imports between the packages follow the order that `docs/explanation/architecture.md` states."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from locations import ROOT, SOURCES

PAGE = ROOT / "docs" / "explanation" / "architecture.md"


@dataclass(frozen=True)
class Import:
    importer: str
    imported: str
    place: str
    type_only: bool


def read_layers() -> dict[str, int]:
    """Read the number of the row in which the page lists each package or module of `src/tidelog`."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| package or module of"))
    layers: dict[str, int] = {}
    for row, line in enumerate(lines[start + 2 :]):
        if not line.startswith("|"):
            break
        for name in re.findall(r"`([^`]+)`", line.split("|")[1]):
            layers[name] = row
    return layers


def name_package(path: tuple[str, ...]) -> str:
    """Name the package or module at the top of `src/tidelog` that a dotted name is in."""
    if not path or (not (SOURCES / path[0]).is_dir() and not (SOURCES / f"{path[0]}.py").exists()):
        return "__init__.py"
    return f"{path[0]}/" if (SOURCES / path[0]).is_dir() else f"{path[0]}.py"


@functools.cache
def list_imports() -> tuple[Import, ...]:
    return tuple(find_imports())


def find_imports() -> Iterator[Import]:
    """Find all imports of tidelog's own modules, also inside functions."""
    for file in sorted(SOURCES.rglob("*.py")):
        relative = file.relative_to(SOURCES)
        importer = f"{relative.parts[0]}/" if len(relative.parts) > 1 else relative.name
        tree = ast.parse(file.read_text(encoding="utf-8"))
        type_only = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            for statement in node.body
            for inner in ast.walk(statement)
        }
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for path in own_modules(node):
                    yield Import(importer, name_package(path), f"{relative}:{node.lineno}", id(node) in type_only)


def own_modules(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ...]]:
    names = [alias.name for alias in node.names]
    modules = names if isinstance(node, ast.Import) else [node.module or ""]
    for module in modules:
        top, *path = module.split(".")
        if top == "tidelog" and (path or isinstance(node, ast.Import)):
            yield tuple(path)
        elif top == "tidelog":
            yield from ((name,) for name in names)


def test_the_page_lists_every_package_and_module() -> None:
    layers = read_layers()
    existing = {f"{path.name}/" for path in SOURCES.iterdir() if (path / "__init__.py").exists()}
    existing |= {path.name for path in SOURCES.glob("*.py")}
    assert set(layers) == existing


def test_the_map_of_a_package_names_its_modules() -> None:
    """The docstring of a package names every module, in backticks; that of `spark` names its packages."""
    missing = [
        module.relative_to(SOURCES).as_posix()
        for init in sorted(SOURCES.glob("*/**/__init__.py"))
        for module in sorted(init.parent.glob("*.py"))
        if module != init and not re.search(rf"[`./]{module.stem}(\.\w+)?`", init.read_text(encoding="utf-8"))
    ]
    assert not missing


def test_every_module_that_the_page_names_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)`", PAGE.read_text(encoding="utf-8"))
    missing = [name for name in named if not any((root / name).exists() for root in (SOURCES, ROOT, ROOT / "docs"))]
    assert not missing


def test_no_import_goes_up() -> None:
    layers = read_layers()
    upward = [
        f"{found.place}: {found.importer} imports {found.imported}"
        for found in list_imports()
        if not found.type_only and layers[found.imported] > layers[found.importer]
    ]
    assert not upward, "\n".join(upward)


def test_the_packages_of_spark_import_in_the_order_of_their_map() -> None:
    """`spark/__init__.py` lists them; each imports only from itself and from those before it."""
    folder = SOURCES / "spark"
    order = re.findall(r"^    (\w+)/ ", (folder / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(order) == {init.parent.name for init in folder.glob("*/__init__.py")}
    upward = [
        f"{file.relative_to(SOURCES)}:{node.lineno}: {'.'.join(path)}"
        for file in sorted(folder.glob("*/*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for path in own_modules(node)
        if path[:1] == ("spark",) and (len(path) == 1 or order.index(path[1]) > order.index(file.parent.name))
    ]
    assert not upward, "\n".join(upward)


def test_types_from_above_are_those_that_the_page_names() -> None:
    """An import under TYPE_CHECKING may go up where the page says so: `streaming/` for `errors.py`."""
    layers = read_layers()
    allowed = set(re.findall(r"`([^`]+)` names types of `([^`]+)`", PAGE.read_text(encoding="utf-8")))
    upward = {
        (found.importer, found.imported): found.place
        for found in list_imports()
        if found.type_only and layers[found.imported] > layers[found.importer]
    }
    assert set(upward) == allowed, upward
