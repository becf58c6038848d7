"""Kernels that were generated for one program: whether they are in the cache on disk, and the process that puts them
there.

A source is known by its hash. A file with the source asks for it to be compiled; a mark beside it says that it is, by
these versions of tidelog's kernels, of Python, numba and the processor.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from tidelog.cache_folder import find_cache_folder
from tidelog.jit import background_compiler, compiled_cache

#: Seconds before a compilation is tried again that has not completed.
_RETRY = 600


def _find_file(source: str) -> Path | None:
    """Return the file for a source, which names the version of everything that it is compiled with."""
    folder, version = find_cache_folder(), compiled_cache.describe_version()
    if folder is None or version is None:
        return None
    digest = hashlib.sha256(f"{version}\n{source}".encode()).hexdigest()
    return folder / f"tidelog-joins-{digest[:24]}.source"


def is_compiled(source: str) -> bool:
    """Return whether the kernel of a source is in the cache."""
    file = _find_file(source)
    return file is not None and file.with_suffix(".compiled").exists()


def mark_compiled(source: str) -> None:
    """Note that the kernel of a source is in the cache."""
    file = _find_file(source)
    if file is not None:
        with suppress(OSError):
            file.with_suffix(".compiled").touch()


def start_compiling(source: str) -> bool:
    """Start a process that compiles a source, unless one did so a moment ago; return whether to look again later."""
    file = _find_file(source)
    if file is None or not background_compiler.is_allowed():
        return False
    with suppress(OSError):
        if file.exists() and time.time() - file.stat().st_mtime < _RETRY:
            return True
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(source, encoding="utf-8")
        unfinished.replace(file)
        background_compiler.spawn(str(file))
        return True
    return False
