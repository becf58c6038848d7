"""`import tidelog` is light: heavy libraries are loaded where they are used."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from locations import ROOT

#: Small commands, each with the libraries and the packages of tidelog that it may load. A library or a package that is
#: added here costs every user time with every call: numba 0.2 s, Spark a second.
_RULES = "examples/turbines/overheated.dmtl"
_DATA = f"{_RULES} examples/turbines/Reading.csv"
_FACT = "Overheated(t1)@2026-01-31T10:00:50Z"
_LANGUAGE = {"analysis", "cli", "compiler", "diagnostics", "language", "timeline"}
_BATCH = _LANGUAGE | {"data", "engine", "goals", "jit", "numeric"}
SMALL_COMMANDS = {
    f"check {_RULES}": ({"click"}, _LANGUAGE | {"windows"}),
    f"materialise {_DATA} --query Overheated": ({"click", "numpy", "pyarrow"}, _BATCH),
    f"entails {_DATA} {_FACT}": ({"click", "numpy", "pyarrow"}, _BATCH),
    f"explain {_DATA} {_FACT}": ({"click", "numpy", "pyarrow"}, _BATCH | {"proofs", "streaming"}),
    f"stream {_RULES} --query Overheated --input examples/turbines/Reading.csv": (
        {"click", "numpy", "pyarrow"},
        _BATCH - {"goals"} | {"streaming", "windows"},
    ),
    "test examples/devices/devices.test": (
        {"click", "numpy"},
        _BATCH | {"proofs", "rule_tests", "streaming", "windows"},
    ),
}
#: Parts of the standard library that take long to load, and that small commands do not need.
SLOW_PARTS = {"asyncio", "email", "http", "multiprocessing", "sqlite3", "ssl", "unittest", "xml"}
HEAVY = ("numba", "llvmlite", "numpy", "pyarrow", "pandas", "pyspark", "clingo", "lark", "rich", "click")


def modules_loaded_by(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint('', *sys.modules)"
    chosen = {"TIDELOG_BACKGROUND": "off", "TIDELOG_KERNELS": "auto"}
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **chosen}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def loaded_by(statement: str) -> set[str]:
    return {name.partition(".")[0] for name in modules_loaded_by(statement)}


@pytest.mark.parametrize("library", HEAVY)
def test_import_does_not_load(library: str, loaded: set[str]) -> None:
    assert library not in loaded


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return loaded_by("import tidelog")


def test_the_command_line_loads_no_engine() -> None:
    assert not loaded_by("import tidelog.cli.main") & {"numba", "numpy", "pyarrow", "lark", "rich"}


@pytest.mark.parametrize("command", SMALL_COMMANDS, ids=lambda command: command.partition(" ")[0])
def test_a_small_command_loads_what_it_needs(command: str) -> None:
    loaded = modules_loaded_by(f"from tidelog.cli.main import run\nassert run({command.split()!r}) == 0")
    libraries, packages = SMALL_COMMANDS[command]
    assert find_libraries(loaded) == libraries
    assert {name.split(".")[1] for name in loaded if name.startswith("tidelog.") and is_package(name)} == packages
    assert not {name.partition(".")[0] for name in loaded} & SLOW_PARTS


def find_libraries(modules: set[str]) -> set[str]:
    """Return the installed packages among loaded modules, without helpers of the installation and of compilers."""
    top = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - {"tidelog", "cython_runtime"}
    return {name for name in top if not name.startswith("_") and name != "sitecustomize"}


def is_package(name: str) -> bool:
    return (ROOT / "src" / "tidelog" / name.split(".")[1]).is_dir()


def test_public_names_are_there() -> None:
    import tidelog as tl

    for name in tl.__all__:
        assert getattr(tl, name) is not None
    assert set(tl.__all__) <= set(dir(tl))


def test_an_unknown_name_is_an_attribute_error() -> None:
    import tidelog as tl

    name = "no_such_name"
    with pytest.raises(AttributeError, match=name):
        getattr(tl, name)


@pytest.mark.parametrize("space", ["analysis", "hypothetical", "proofs", "stable", "streaming", "types", "windows"])
def test_namespaces_have_the_names_of_their_stubs(space: str) -> None:
    import tidelog as tl

    package = getattr(tl, space)
    assert package.__all__
    assert all(getattr(package, name) is not None for name in package.__all__)
