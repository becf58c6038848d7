"""Compile all kernels in a process of its own, while this one answers with interpreted kernels.

The process runs `tidelog.warm` with low priority, once per machine, and goes on when its parent has ended.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from contextlib import suppress
from typing import IO

from tidelog.cache_folder import find_cache_folder
from tidelog.jit import compiled_cache

#: Seconds before the compilation is tried again where the last attempt has not completed.
_RETRY = 600
#: Seconds in which a process that was started takes the lock.
_STARTING = 10
_ANNOUNCEMENT = (
    "tidelog: compiling the engine for this machine in the background, once, for a minute or two; small tasks need not "
    "wait (`tidelog warm` compiles in the foreground)"
)


def start() -> None:
    """Start the compiling process, unless it is needless, running, forbidden, or has failed a moment ago."""
    if compiled_cache.is_complete() or not is_allowed():
        return
    lock = _take_lock()
    if lock is None:
        return
    with lock:
        if _seconds_since_start(lock) < _RETRY:
            return
        lock.write(b"started\n")
    print(_ANNOUNCEMENT, file=sys.stderr)
    spawn()


def spawn(*files: str) -> None:
    """Start a process that compiles all kernels, or only those whose generated sources are in files."""
    import subprocess

    with suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-P", "-m", "tidelog.warm", *files],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TIDELOG_KERNELS": "compiled"},
        )


def _seconds_since_start(lock: IO[bytes]) -> float:
    """Return how long ago a process was started; infinity if none ever was."""
    return time.time() - os.fstat(lock.fileno()).st_mtime if lock.tell() else float("inf")


def is_allowed() -> bool:
    """Return whether a process may be started: not in continuous integration, nor by a worker of Spark."""
    wanted = os.environ.get("TIDELOG_BACKGROUND", "on") != "off"
    in_worker = any(name.startswith("PYTHON_WORKER_FACTORY") for name in os.environ)
    return wanted and not os.environ.get("CI") and not in_worker and bool(sys.executable)


def is_running() -> bool:
    """Return whether a process compiles all kernels now."""
    lock = _take_lock()
    if lock is None:
        return find_cache_folder() is not None
    with lock:
        # A process that has just been started does not hold the lock yet.
        return _seconds_since_start(lock) < _STARTING


def take_over() -> IO[bytes] | None:
    """Become the compiling process, with low priority, until the returned file is closed; None if there is no need."""
    lock = _take_lock()
    if lock is None or compiled_cache.is_complete():
        return None
    os.nice(10)
    lock.write(f"{os.getpid()}\n".encode())
    lock.flush()
    return lock


def _take_lock() -> IO[bytes] | None:
    """Open the file that the compiling process holds locked; return None if it is locked or cannot be opened."""
    folder = find_cache_folder()
    if folder is None:
        return None
    with suppress(OSError):
        file = open(folder / "tidelog-compiling.lock", "ab")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return None
        return file
    return None
