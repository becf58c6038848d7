"""Run kernels as the Python functions that they are, as long as there is little to do.

Arrays come as memoryviews: their elements are Python's integers, which are faster than numpy's and never wrap around
unnoticed. Where compiled code relies on numbers that wrap around, kernels say so with `int64` and `uint64`. A number
that leaves the range of its array is an error here; the call is then repeated in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any

import numpy as np

from tidelog.jit import background_compiler, compiled_cache
from tidelog.jit.kernel_functions import Array, inlined_kernel, interpret_as

#: Seconds of CPU time for interpreting, in one process, after which compiled code takes over if it is in the cache.
BUDGET = 0.15
#: The same for compiled code to take over while another process is still compiling.
PATIENCE = 10.0
#: Calls whose arrays have more bytes than this go to compiled code at once.
LARGEST = 1 << 20
#: The same while another process is still compiling: interpreting 60,000 facts takes less time than the compiler does.
LARGEST_MEANWHILE = 1 << 26
#: Ticks between two looks at the clock.
TICKS = 256


class _Effort:
    """What interpreting has taken in this process so far."""

    spent = 0.0
    began = 0.0
    next_look = 0.0
    ticks = 0
    started = False
    largest = LARGEST
    over = False


class _Abandoned(Exception):
    """A call takes too long for interpreting."""


def _count_tick() -> None:
    _Effort.ticks -= 1
    if _Effort.ticks < 0:
        _Effort.ticks = TICKS
        if not _Effort.over and _is_too_much(_Effort.spent + process_time() - _Effort.began):
            raise _Abandoned


@interpret_as(_count_tick)
@inlined_kernel
def tick() -> None:
    """Mark a turn of a loop that may run long. Compiled code does nothing here; interpreting may end here."""


def _is_too_much(spent: float) -> bool:
    """Return whether compiled code should take over."""
    if spent < max(BUDGET, _Effort.next_look):
        return False
    _Effort.next_look = spent + 0.2
    return compiled_cache.is_complete() or spent > PATIENCE or not background_compiler.is_running()


def run(function: Any, args: tuple[Any, ...]) -> Any:
    """Run an interpreted kernel to its end."""
    _Effort.over = True
    with _restore_after_errors(_collect_arrays(args)):
        return _to_arrays(function(*map(_to_views, args)))


def try_to_run(function: Any, args: tuple[Any, ...]) -> tuple[bool, Any]:
    """Run an interpreted kernel and return True and its result, or False where compiled code has to run it."""
    if _Effort.over:
        return False, None
    arrays = _collect_arrays(args)
    if not _Effort.started:
        _Effort.started = True
        background_compiler.start()
        waits = not compiled_cache.is_complete() and background_compiler.is_running()
        _Effort.largest = LARGEST_MEANWHILE if waits else LARGEST
    if sum(array.nbytes for array in arrays) > _Effort.largest:
        _Effort.over = True
        return False, None
    _Effort.began = process_time()
    try:
        with _restore_after_errors(arrays):
            result = _to_arrays(function(*map(_to_views, args)))
    except (_Abandoned, OverflowError, ValueError, TypeError, NotImplementedError):
        # It takes too long, leaves the range of an array, or needs what a memoryview cannot do.
        _Effort.over = True
        return False, None
    _Effort.spent += process_time() - _Effort.began
    _Effort.over = _is_too_much(_Effort.spent)
    return True, result


@contextmanager
def _restore_after_errors(arrays: list[Array]) -> Iterator[None]:
    """Give arrays their contents back where a call does not come to its end, also because of an interrupt."""
    saved = [(array, array.copy()) for array in arrays if array.flags.writeable]
    try:
        yield
    except BaseException:
        for array, before in saved:
            array[...] = before
        raise


def _collect_arrays(values: tuple[Any, ...]) -> list[Array]:
    found: list[Array] = []
    for value in values:
        if isinstance(value, np.ndarray):
            found.append(value)
        elif isinstance(value, tuple):
            found += _collect_arrays(value)
    return found


#: Views of arrays; numpy's types say that arrays are buffers only from Python 3.12 on.
make_view: Callable[[Any], memoryview] = memoryview


def _to_views(value: Any) -> Any:
    """Convert arrays to memoryviews, also within tuples, and numpy's numbers to Python's.

    A memoryview has no rows: an array that kernels read row by row becomes a tuple of its rows.
    """
    if isinstance(value, np.ndarray):
        return make_view(value)
    if isinstance(value, tuple):
        by_rows = getattr(value, "BY_ROWS", ())
        if not hasattr(value, "_fields"):
            return tuple(map(_to_views, value))
        fields = zip(value._fields, value, strict=True)
        return type(value)(*(tuple(map(make_view, v)) if name in by_rows else _to_views(v) for name, v in fields))
    return value.item() if isinstance(value, np.generic) else value


def _to_arrays(value: Any) -> Any:
    if isinstance(value, memoryview):
        whole = value.obj
        return whole if isinstance(whole, np.ndarray) and whole.nbytes == value.nbytes else np.asarray(value)
    return tuple(map(_to_arrays, value)) if isinstance(value, tuple) else value


def _wrap_signed(value: int) -> int:
    return value if -0x8000000000000000 <= value < 0x8000000000000000 else ((value + (1 << 63)) & _ONES) - (1 << 63)


def _wrap_unsigned(value: int) -> int:
    return value & _ONES


_ONES = (1 << 64) - 1


class _Arrays:
    """Stands for numpy within kernels, which allocate nothing but int64 arrays."""

    int64, uint64 = staticmethod(_wrap_signed), staticmethod(_wrap_unsigned)

    @staticmethod
    def zeros(size: int, kind: object) -> memoryview:
        return make_view(np.zeros(size, np.int64))

    @staticmethod
    def empty(size: int, kind: object) -> memoryview:
        return make_view(np.empty(size, np.int64))


#: What interpreted kernels see in the place of a global value.
STAND_INS: list[tuple[object, object]] = [(np, _Arrays), (np.int64, _wrap_signed), (np.uint64, _wrap_unsigned)]
