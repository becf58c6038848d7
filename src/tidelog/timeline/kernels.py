"""How functions become compiled kernels: cached on disk, and announced when they are compiled for the first time.

Numba keeps the machine code beside the module, or in the user's cache directory where that cannot be written (or where
`NUMBA_CACHE_DIR` says). Only a real compilation, never a load from that cache, is announced.

Numba itself looks only at the file that a function is in. A kernel is made of functions and constants of other files,
too, and one that was compiled before they changed must not be loaded: the cache key here covers all of them.
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

#: What kernels work on.
Array = NDArray[Any]
#: A number of compiled code, where mypy cannot tell numpy's integers from Python's.
Number = Any

#: numpy's conversions as kernels use them, typed as what they give to the rest of the code.
int64: Callable[[Any], int] = cast("Callable[[Any], int]", np.int64)
uint64: Callable[[Any], int] = cast("Callable[[Any], int]", np.uint64)


def kernel(function: F) -> F:
    """Compile on first use, keep the result across runs; runs without the interpreter's lock.

    A kernel works on arrays that it is given and makes none of its own. So nobody has to count references to them: that
    counting, atomic and in every inner loop, made the byte scanner four times as slow.
    """
    return _compiled(function, nogil=True, _nrt=False)


def allocating_kernel(function: F) -> F:
    """A kernel that makes arrays."""
    return _compiled(function, nogil=True)


def inlined(function: F) -> F:
    """A small part of a kernel: always inlined into what calls it."""
    return _compiled(function, nogil=True, forceinline=True, _nrt=False)


def _compiled(function: F, **options: bool) -> F:
    announce_first_compilation()
    njit: Any = numba.njit
    cache: Any = _Cache
    dispatcher = njit(**options)(function)
    # Where no directory can be written: compile anew in every run rather than not at all.
    with suppress(RuntimeError):
        dispatcher._cache = cache(function)
    return cast(F, dispatcher)


class _Cache(FunctionCache):
    """Numba's cache with a key that changes with everything that a function is compiled from."""

    def _index_key(self, sig: object, codegen: object) -> tuple[object, ...]:
        key: Any = super()
        return (*key._index_key(sig, codegen), _digest(self._py_func))


@functools.cache
def _digest(function: Any) -> str:
    """A hash of a function, of the constants that it names, and of the kernels that it calls."""
    code = function.__code__
    digest = hashlib.sha256(code.co_code)
    digest.update(repr([value for value in code.co_consts if not isinstance(value, CodeType)]).encode())
    for name in code.co_names:
        value = function.__globals__.get(name)
        called = getattr(value, "py_func", None)
        if called is not None:
            digest.update(_digest(called).encode() if called is not function else b"itself")
        elif isinstance(value, np.ndarray):
            digest.update(value.tobytes())
        elif isinstance(value, int | float | str | bytes | tuple):
            digest.update(repr((name, value)).encode())
    return digest.hexdigest()


class _Announcement(event.Listener):
    """Says once, on standard error, that tidelog's own kernels are being compiled."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: event.Event) -> None:
        if not self.said and event.data["dispatcher"].py_func.__module__.startswith("tidelog."):
            self.said = True
            print("tidelog: compiling the engine for this machine, once (up to a minute) ...", file=sys.stderr)

    def on_end(self, event: event.Event) -> None:
        pass


_announcement: list[_Announcement] = []


def announce_first_compilation() -> None:
    """From here on, the first compilation in this process tells the user why it takes a while."""
    if not _announcement:
        _announcement.append(_Announcement())
        register: Any = event.register
        register("numba:compile", _announcement[0])
