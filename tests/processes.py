"""The processes below one that a test has started, as Linux lists them, so that one of them can be killed by its id."""

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


def below(root: int) -> list[Process]:
    """All processes that a process has started, directly or not."""
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


def python_workers(root: int) -> list[Process]:
    """Spark's Python workers: what its daemons have forked."""
    running = below(root)
    daemons = {process.id for process in running if "pyspark.daemon" in process.command}
    return [process for process in running if process.parent in daemons]


def executors(root: int) -> list[Process]:
    """The executors of a cluster."""
    return [process for process in below(root) if "CoarseGrainedExecutorBackend" in process.command]


def kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def kill_all(started: subprocess.Popen[bytes]) -> None:
    """Kills a process that a test has started with all that it has started, at once."""
    family = below(started.pid)
    kill(started.pid)
    for process in family:
        kill(process.id)
    started.wait()


def wait_for(happens: Callable[[], bool], seconds: float, what: str, running: subprocess.Popen[bytes]) -> None:
    """Waits until something happens, looking often; fails if the process ends before, or time is up."""
    deadline = time.monotonic() + seconds
    while not happens():
        assert running.poll() is None, f"ended with {running.returncode} before {what}"
        assert time.monotonic() < deadline, f"no {what} in {seconds:.0f} s"
        time.sleep(0.01)
