"""Find the descendants of a process that a test has started, as Linux lists them, to kill one by its id."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    id: int
    parent: int
    command: str


def find_descendants(root: int) -> list[Process]:
    """Find all processes that a process has started, directly or indirectly."""
    by_parent: dict[int, list[Process]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it may have ended meanwhile
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                by_parent.setdefault(parent, []).append(Process(int(folder.name), parent, command))
    found, frontier = [], [root]
    while frontier:
        children = by_parent.get(frontier.pop(), [])
        found += children
        frontier += [child.id for child in children]
    return found


def find_python_workers(root: int) -> list[Process]:
    """Find Spark's Python workers, which its daemons have forked."""
    running = find_descendants(root)
    names = ("pyspark.daemon", "tidelog.spark.worker.worker_daemon")  # a local Spark has ours
    daemons = {process.id for process in running if any(name in process.command for name in names)}
    return [process for process in running if process.parent in daemons]


def find_executors(root: int) -> list[Process]:
    """Find the executors of a cluster."""
    return [process for process in find_descendants(root) if "CoarseGrainedExecutorBackend" in process.command]


def kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def kill_all(started: subprocess.Popen[bytes]) -> None:
    """Kill a process that a test has started, and all its descendants."""
    family = find_descendants(started.pid)
    kill(started.pid)
    for process in family:
        kill(process.id)
    started.wait()


def wait_for(happens: Callable[[], bool], seconds: float, what: str, running: subprocess.Popen[bytes]) -> None:
    """Wait until something happens; fail if the process ends before, or after some seconds."""
    deadline = time.monotonic() + seconds
    while not happens():
        assert running.poll() is None, f"ended with {running.returncode} before {what}"
        assert time.monotonic() < deadline, f"no {what} in {seconds:.0f} s"
        time.sleep(0.01)
