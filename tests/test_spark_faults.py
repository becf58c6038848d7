"""Killed at any moment and started again on its checkpoint, a streaming job answers as one unbroken run does.

Spark's own file sink writes the answers, and Spark's own reader, which knows of its `_spark_metadata`, reads them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import spark_job
from processes import Process, executors, kill, kill_all, python_workers, wait_for

pytestmark = [pytest.mark.faults, pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")]

#: Seconds until something has to have happened, on a busy machine.
PATIENCE = 400


class Driver:
    """Runs of the job in a folder, one after the other."""

    def __init__(self, folder: Path, master: str) -> None:
        self.folder, self.master = folder, master
        self.started: list[subprocess.Popen[bytes]] = []
        spark_job.write_input(folder)

    def start(self) -> subprocess.Popen[bytes]:
        printed = (self.folder / "printed.txt").open("ab")
        command = [sys.executable, spark_job.__file__, str(self.folder), self.master]
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT)
        self.started.append(running)
        return running

    def until(self, running: subprocess.Popen[bytes], moment: str) -> None:
        wait_for((self.folder / moment).exists, PATIENCE, moment, running)

    def finish(self, running: subprocess.Popen[bytes]) -> None:
        code = running.wait(PATIENCE)
        assert code == 0, (self.folder / "printed.txt").read_text(errors="replace")[-3000:]
        found = spark_job.answers(self.folder)
        for query in spark_job.QUERIES:
            assert found[query] == spark_job.unbroken(query)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Callable[[str], Driver]]:
    made: list[Driver] = []

    def make(master: str) -> Driver:
        made.append(Driver(tmp_path, master))
        return made[-1]

    yield make
    for each in made:
        for running in each.started:
            if running.poll() is None:
                kill_all(running)


def test_the_driver_is_killed(driver: Callable[[str], Driver]) -> None:
    """While a batch is at work, after it is written and before Spark notes it, and after that."""
    job = driver("local[2]")
    for moment in ("checkpoint/Bad/offsets/1", "Bad/_spark_metadata/2", "checkpoint/Down/commits/3"):
        running = job.start()
        job.until(running, moment)
        kill_all(running)
    assert not (job.folder / "answers.json").exists()
    job.finish(job.start())


def _kill_some(job: Driver, moments: list[str], of: Callable[[int], list[Process]]) -> None:
    """Kills all of the processes of a kind while batches are at work, and lets the job go on by itself."""
    running = job.start()
    for moment in moments:
        job.until(running, moment)
        wait_for(lambda: bool(of(running.pid)), PATIENCE, "process to kill", running)
        for process in of(running.pid):
            kill(process.id)
    job.finish(running)


def test_python_workers_are_killed(driver: Callable[[str], Driver]) -> None:
    moments = ["checkpoint/Bad/offsets/1", "checkpoint/Bad/offsets/3", "checkpoint/Down/offsets/2"]
    _kill_some(driver("local[2,8]"), moments, python_workers)


def test_an_executor_is_killed(driver: Callable[[str], Driver]) -> None:
    _kill_some(driver("local-cluster[2,1,1024]"), ["checkpoint/Bad/offsets/2"], lambda driver: executors(driver)[:1])
