"""Whether all kernels are compiled for this machine, as a mark beside their cache says, and the locks of compilers."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.util
import os
import sys
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from tidelog.cache_folder import find_cache_folder

_PACKAGE = Path(__file__).parent.parent


@functools.cache
def _find_mark() -> Path | None:
    """Return the path of the mark; its name tells Python, numba and processors apart."""
    folder = find_cache_folder()
    if folder is None:
        return None
    numba = importlib.util.find_spec("numba")
    version = _describe_file(Path(numba.origin).with_name("_version.py")) if numba and numba.origin else ""
    digest = hashlib.sha256(repr([sys.version, os.uname().machine, version]).encode())
    digest.update(_describe_processor())
    return folder / f"tidelog-{digest.hexdigest()[:16]}.compiled"


def _describe_file(path: Path) -> str:
    """Describe a version of a file, as numba does in its cache."""
    try:
        stat = path.stat()
    except OSError:
        return f"{path.name}: missing"
    return f"{path.name}: {stat.st_size} {stat.st_mtime_ns}"


def _describe_processor() -> bytes:
    """Return the lines of `/proc/cpuinfo` that say what a processor can do; nothing where there is no such file."""
    with suppress(OSError), open("/proc/cpuinfo", "rb") as file:
        lines = file.read(1 << 13).partition(b"\n\n")[0].splitlines()
        kinds = (b"model name", b"flags", b"Features", b"CPU part")
        return b"\n".join(line for line in lines if line.startswith(kinds))
    return b""


def is_complete() -> bool:
    """Return whether all kernels are compiled for this machine, from the sources as they are now."""
    mark = _find_mark()
    if mark is None:
        return False
    try:
        lines = mark.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return bool(lines) and all(_describe_source(line.partition("\t")[0]) == line for line in lines)


def describe_version() -> str | None:
    """Describe what kernels are compiled from and for: their sources, Python, numba and the processor.

    Return None if not all kernels are compiled.
    """
    mark = _find_mark()
    if mark is None or not is_complete():
        return None
    with suppress(OSError):
        return f"{mark.name}\n{mark.read_text(encoding='utf-8')}"
    return None


def _describe_source(name: str) -> str:
    return f"{name}\t{_describe_file(_PACKAGE / name)}"


def mark_complete(sources: Iterable[str]) -> None:
    """Note that all kernels are compiled for this machine, from these files of tidelog."""
    mark = _find_mark()
    if mark is not None:
        with suppress(OSError):
            unfinished = mark.with_suffix(f".{os.getpid()}")
            unfinished.write_text("".join(f"{_describe_source(name)}\n" for name in sources), encoding="utf-8")
            unfinished.replace(mark)


@functools.cache
def _open_locks() -> IO[bytes] | None:
    folder = find_cache_folder()
    with suppress(OSError):
        if folder is not None:
            return open(folder / "tidelog-kernels.lock", "ab")
    return None


def lock_kernel(name: str) -> bool:
    """Wait until no other process compiles this kernel, and let none begin; return False where that is impossible."""
    file = _open_locks()
    with suppress(OSError):
        if file is not None:
            fcntl.lockf(file, fcntl.LOCK_EX, 1, zlib.crc32(name.encode()))
            return True
    return False


def unlock_kernel(name: str) -> None:
    """Let other processes compile this kernel, or load it."""
    file = _open_locks()
    with suppress(OSError):
        if file is not None:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, zlib.crc32(name.encode()))
