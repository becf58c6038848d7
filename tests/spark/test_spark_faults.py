"""Killed at any moment and started again on its checkpoint, a streaming job answers as one unbroken run does.

Spark's own file sink writes the answers, and Spark's own reader, which knows of its `_spark_metadata`, reads them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from processes import Process, find_executors, find_python_workers, kill, kill_all, wait_for
from spark_runs import PATIENCE, Runs

pytestmark = [pytest.mark.faults, pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")]


def test_the_driver_is_killed(tmp_path: Path) -> None:
    """While a batch is at work, after it is written and before Spark notes it, and after that."""
    with Runs(tmp_path, "local[2]") as job:
        for moment in ("checkpoint/Bad/offsets/1", "Bad/_spark_metadata/2", "checkpoint/Down/commits/3"):
            running = job.start()
            job.until(running, moment)
            kill_all(running)
        assert not (tmp_path / "answers.json").exists()
        job.finish(job.start())


def test_the_driver_is_killed_while_answers_are_corrected(tmp_path: Path) -> None:
    """The same moments; every change is in the log once, so that the log folds into the answers that stand."""
    with Runs(tmp_path, "local[2]", corrected=True) as job:
        for moment in ("checkpoint/Bad/offsets/2", "Bad/_spark_metadata/3", "checkpoint/Down/commits/3"):
            running = job.start()
            job.until(running, moment)
            kill_all(running)
        job.finish(job.start())
        signs = json.loads((tmp_path / "changes.json").read_text())
        assert all(["-"] in changes for changes in signs.values()), "something was taken back"


def test_python_workers_are_killed(tmp_path: Path) -> None:
    moments = ["checkpoint/Bad/offsets/1", "checkpoint/Bad/offsets/3", "checkpoint/Down/offsets/2"]
    with Runs(tmp_path, "local[2,8]") as job:
        _kill_some(job, moments, find_python_workers)


def test_an_executor_is_killed(tmp_path: Path) -> None:
    with Runs(tmp_path, "local-cluster[2,1,1024]") as job:
        _kill_some(job, ["checkpoint/Bad/offsets/2"], lambda driver: find_executors(driver)[:1])


def _kill_some(job: Runs, moments: list[str], of: Callable[[int], list[Process]]) -> None:
    """Kills processes of a kind while batches are at work; the job has to go on by itself."""
    running = job.start()
    for moment in moments:
        job.until(running, moment)
        wait_for(lambda: bool(of(running.pid)), PATIENCE, "process to kill", running)
        for process in of(running.pid):
            kill(process.id)
    job.finish(running)
