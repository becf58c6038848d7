"""`tidelog warm` compiles everything that later commands use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from locations import ROOT

COMMANDS = (
    ("materialise", "rules.dmtl", "data.facts"),
    ("materialise", "rules.dmtl", "data.facts", "--format", "jsonl", "--timeline", "integer"),
    ("materialise", "rules.dmtl", "Q.csv"),
    ("materialise", "rules.dmtl", "Q.jsonl"),
    ("materialise", "rules.dmtl", "Q.parquet"),
    ("entails", "rules.dmtl", "data.facts", "A(a)@1"),
    ("stream", "rules.dmtl", "--query", "A", "--input", "data.facts", "--state", "a.state"),
    ("stream", "rules.dmtl", "--query", "A", "--input", "more.facts", "--state", "a.state"),
    ("stream", "rules.dmtl", "--query", "A", "--input", "data.facts", "--delay", "3", "--at", "input"),
)


def _run(folder: Path, *args: str) -> str:
    """Run a command with a cache of its own; return what it prints on standard error."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT / "src")}
    script = "from tidelog.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", script, *args], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow
def test_a_warm_engine_compiles_nothing(tmp_path: Path) -> None:
    from pyarrow import Table, parquet

    (tmp_path / "rules.dmtl").write_text("A(X) :- Q(X), not Diamondminus(0,2] Q(X).\n")
    (tmp_path / "data.facts").write_text("Q(a)@1\nQ(b)@[2,3]\nQ(a)@5\n")
    (tmp_path / "more.facts").write_text("Q(a)@9\n")
    (tmp_path / "Q.csv").write_text("x,time\na,1\nb,2\n")
    (tmp_path / "Q.jsonl").write_text('{"x": "a", "time": 1}\n')
    parquet.write_table(Table.from_pydict({"x": ["a", "b"], "time": [1, 2]}), tmp_path / "Q.parquet")
    assert "compiling the engine" in _run(tmp_path, "warm")
    for command in COMMANDS:
        assert "compiling" not in _run(tmp_path, *command), " ".join(command)
