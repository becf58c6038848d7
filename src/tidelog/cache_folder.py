"""The folder for what is computed once per machine: the compiled kernels."""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from pathlib import Path


@functools.cache
def find_cache_folder() -> Path | None:
    """Return the folder, or None if none is writable.

    It is NUMBA_CACHE_DIR if that is set. Otherwise it is beside the sources, as the cache of Python itself, or below
    the cache directory of the user.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "tidelog"
    for folder in [Path(chosen)] if chosen else [Path(__file__).parent / "__pycache__", user]:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return None
