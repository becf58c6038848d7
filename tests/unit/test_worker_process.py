"""Calls in a second process: results and errors come back, and what takes too long is stopped."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import Program
from tidelog.worker_process import WorkerProcess


def test_results_errors_and_limits() -> None:
    with WorkerProcess() as worker:
        assert worker.call(30, divmod, 7, 2) == (3, 1)
        first = worker.call(30, os.getpid)
        assert first == worker.call(30, os.getpid) != os.getpid()
        with pytest.raises(TidelogError, match="TL001"):
            worker.call(30, Program.parse, "A(X) :- .")
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            worker.call(30, divmod, 1, 0)
        with pytest.raises(TidelogError, match=r"TL913.*more than 0\.2 s"):
            worker.call(0.2, time.sleep, 60)
        assert worker.call(30, os.getpid) not in (first, os.getpid())
        with pytest.raises(TidelogError, match="the process that ran this ended"):
            worker.call(30, os._exit, 3)
        assert worker.call(30, len, "abc") == 3


def test_a_limit_of_memory_is_an_error(tmp_path: Path) -> None:
    with WorkerProcess(memory=1 << 30) as worker, pytest.raises(TidelogError) as caught:
        worker.call(60, bytearray, 1 << 32)
    assert caught.value.diagnostics == (Diagnostic("TL913", "this needs more memory than is allowed"),)
