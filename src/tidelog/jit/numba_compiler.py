"""Compile kernels with numba, cache them on disk, and announce the first compilation.

Numba stores the machine code beside the module, in the user's cache directory if that is not writable, or in
`NUMBA_CACHE_DIR`. Only a real compilation is announced, never a load from the cache.

Numba's own cache key covers only the file of a function. A kernel also consists of functions and constants of other
files, and must not be loaded if they have changed since: the cache key here covers all of them. Of several processes
that need a kernel, one compiles it, and the others wait and load it.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

from tidelog.jit import compiled_cache


def make_dispatcher(function: FunctionType, options: dict[str, bool]) -> Any:
    """Return numba's dispatcher for a function, with a cache on disk."""
    announce_first_compilation()
    njit: Any = numba.njit
    cache: Any = _Cache
    dispatcher = njit(**options)(function)
    # If no directory is writable, compile again in every run.
    with suppress(RuntimeError):
        dispatcher._cache = cache(function)
    return dispatcher


class _Cache(FunctionCache):
    """Numba's cache, with a key that covers everything that a function is compiled from."""

    def _index_key(self, sig: object, codegen: object) -> tuple[object, ...]:
        key: Any = super()
        return (*key._index_key(sig, codegen), _digest(self._py_func))

    def load_overload(self, sig: object, target_context: object) -> object:
        found = self._load_code(sig, target_context)
        # What follows a miss is the compilation, and then `save_overload`.
        if found is None and compiled_cache.lock_kernel(self._place()):
            found = self._load_code(sig, target_context)
            if found is not None:
                compiled_cache.unlock_kernel(self._place())
        return found

    def _load_code(self, sig: object, target_context: object) -> object:
        """Load machine code, without everything that numba needs to compile more.

        Numba's own method also imports and registers its implementations of Python and numpy. That takes most of the
        time of loading, and the compiler does it again if it has to compile.
        """
        cache: Any = super()
        rtsys.initialize(target_context)
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(sig, target_context)

    def save_overload(self, sig: object, data: object) -> None:
        cache: Any = super()
        cache.save_overload(sig, data)
        compiled_cache.unlock_kernel(self._place())

    def _place(self) -> str:
        code = self._py_func.__code__
        return f"{code.co_filename}:{code.co_firstlineno}"


@functools.cache
def _digest(function: Any) -> str:
    """Hash a function, the constants that it names, and the kernels that it calls."""
    code = function.__code__
    digest = hashlib.sha256(code.co_code)
    digest.update(repr([value for value in code.co_consts if not isinstance(value, CodeType)]).encode())
    for name in code.co_names:
        value = function.__globals__.get(name)
        kernel_function = getattr(value, "py_func", None)
        if kernel_function is not None:
            digest.update(_digest(kernel_function).encode() if kernel_function is not function else b"itself")
        elif isinstance(value, np.ndarray):
            digest.update(value.tobytes())
        elif isinstance(value, int | float | str | bytes | tuple):
            digest.update(repr((name, value)).encode())
    return digest.hexdigest()


class _Announcement(event.Listener):
    """Report on standard error that a part of the engine is being compiled: once per process."""

    def __init__(self) -> None:
        self.announced = False

    def on_start(self, event: event.Event) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if not self.announced and module.startswith("tidelog."):
            self.announced = True
            part = module.rpartition(".")[2].replace("_", " ")
            print(
                f"tidelog: compiling the engine for this machine, beginning with its {part}; parts that were never "
                "used before are compiled on first use, up to a minute each (`tidelog warm` compiles all) ...",
                file=sys.stderr,
            )

    def on_end(self, event: event.Event) -> None:
        pass


_announcement: list[_Announcement] = []


def announce_first_compilation() -> None:
    """Announce the first compilation in this process, so that the user knows why it takes a while."""
    if not _announcement:
        _announcement.append(_Announcement())
        register: Any = event.register
        register("numba:compile", _announcement[0])
