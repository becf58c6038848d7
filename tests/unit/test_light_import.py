"""`import tidelog` is light: heavy libraries are loaded where they are used."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from locations import ROOT

HEAVY = ("numba", "llvmlite", "numpy", "pyarrow", "pandas", "pyspark", "clingo", "lark", "rich", "click")


def loaded_by(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint(*sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("library", HEAVY)
def test_import_does_not_load(library: str, loaded: set[str]) -> None:
    assert library not in loaded


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return loaded_by("import tidelog")


def test_the_command_line_loads_no_engine() -> None:
    assert not loaded_by("import tidelog.cli.main") & {"numba", "numpy", "pyarrow", "lark", "rich"}


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
