"""Kernels are compiled once, say so, and are compiled again when anything that they are made of changes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HELPER = """
from tidelog.jit import inlined_kernel
STEP = 1
@inlined_kernel
def step(x):
    return x + STEP
"""
USER = """
from helper import step
from tidelog.jit import kernel
@kernel
def run(x):
    return step(step(x))
print(run(40), "loaded" if run.dispatcher.stats.cache_hits else "compiled")
"""


def run(code: str, folder: Path) -> tuple[str, str]:
    """What some code prints, on standard output and on standard error, with a cache of its own."""
    path = os.pathsep.join([str(folder), *sys.path])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip(), done.stderr.strip()


@pytest.mark.slow
def test_a_kernel_is_compiled_again_when_a_part_of_it_changes(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "user.py").write_text(USER)
    assert run("import user", tmp_path)[0] == "42 compiled"
    assert run("import user", tmp_path)[0] == "42 loaded"
    (tmp_path / "helper.py").write_text(HELPER.replace("STEP = 1", "STEP = 10"))
    assert run("import user", tmp_path)[0] == "60 compiled"


@pytest.mark.slow
def test_only_a_first_compilation_is_announced(tmp_path: Path) -> None:
    code = "from tidelog.data.symbol_table import Symbols; Symbols().reserve(1000, 0)"
    assert "compiling" in run(code, tmp_path)[1]
    assert run(code, tmp_path)[1] == ""


@pytest.mark.slow
def test_of_several_processes_one_compiles_and_the_others_wait_for_it(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "user.py").write_text(USER)
    with ThreadPoolExecutor(4) as pool:
        printed = sorted(out for out, _ in pool.map(lambda _: run("import user", tmp_path), range(4)))
    assert printed == ["42 compiled", "42 loaded", "42 loaded", "42 loaded"]
