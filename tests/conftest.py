"""Fixtures that all tests share. Property tests draw the same examples in every run; `make fuzz` looks for new ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from shell import Shell

settings.register_profile(
    "tidelog", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tidelog")

# Tests, and the processes that they start, run compiled kernels. Some say otherwise, with `kernel_ways`.
os.environ.setdefault("TIDELOG_KERNELS", "compiled")
# No test shall start a process that compiles joins for it, unless it says so.
os.environ.setdefault("TIDELOG_JOINS", "machine")


@pytest.fixture(scope="session")
def kernels() -> None:
    """Compile the kernels into their cache, so that no command under test announces a compilation."""
    import tidelog as tl
    from tidelog.streaming.reasoner import Reasoner

    program = tl.Program.parse("A :- B, not C.")
    tl.materialise(program, tl.Dataset.parse("B@0")).render()
    reasoner = Reasoner(program, "A")
    for step in (*reasoner.feed(tl.Dataset.parse("B@0\nC@1\nB@2", ordered=True)), reasoner.finish_step()):
        step.answers.render()


@pytest.fixture
def sh(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, capsys, monkeypatch)
