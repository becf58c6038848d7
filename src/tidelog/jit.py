"""Compile functions to kernels, cache them on disk, and announce the first compilation.

Numba stores the machine code beside the module, in the user's cache directory if that is not writable, or in
`NUMBA_CACHE_DIR`. Only a real compilation is announced, never a load from the cache.

Numba's own cache key covers only the file of a function. A kernel also consists of functions and constants of other
files, and must not be loaded if they have changed since: the cache key here covers all of them.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable
from contextlib import suppress
from types import CodeType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numba.core.caching import FunctionCache
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., object])

#: The arrays that kernels work on.
Array = NDArray[Any]
#: A number in compiled code, where mypy cannot distinguish numpy's integers from Python's.
Number = Any

#: numpy's conversions, typed as Python integers: that is how the code outside of kernels sees their results.
int64: Callable[[Any], int] = cast("Callable[[Any], int]", np.int64)
uint64: Callable[[Any], int] = cast("Callable[[Any], int]", np.uint64)


def kernel(function: F) -> F:
    """Compile a function on first use and cache the result across runs; it runs without the interpreter's lock.

    A kernel works on the arrays it gets and allocates none. So references need not be counted: counting them, with
    atomic operations in every inner loop, made the byte scanner four times as slow.
    """
    return _compile(function, nogil=True, _nrt=False)


def allocating_kernel(function: F) -> F:
    """Compile a kernel that allocates arrays."""
    return _compile(function, nogil=True)


def inlined_kernel(function: F) -> F:
    """Compile a small part of a kernel, which is always inlined into its callers."""
    return _compile(function, nogil=True, forceinline=True, _nrt=False)


def inlined_allocating_kernel(function: F) -> F:
    """Compile a part of a kernel that allocates arrays or calls one that does, always inlined into its callers.

    A call would copy every array of its arguments and count references to each, about a microsecond for the tables of
    a store.
    """
    return _compile(function, nogil=True, forceinline=True)


def _compile(function: F, **options: bool) -> F:
    announce_first_compilation()
    njit: Any = numba.njit
    cache: Any = _Cache
    dispatcher = njit(**options)(function)
    # If no directory is writable, compile again in every run.
    with suppress(RuntimeError):
        dispatcher._cache = cache(function)
    return cast(F, dispatcher)


class _Cache(FunctionCache):
    """Numba's cache, with a key that covers everything that a function is compiled from."""

    def _index_key(self, sig: object, codegen: object) -> tuple[object, ...]:
        key: Any = super()
        return (*key._index_key(sig, codegen), _digest(self._py_func))


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
