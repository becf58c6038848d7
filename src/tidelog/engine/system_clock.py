"""The system's clock, for compiled code."""

from __future__ import annotations

import time
from typing import Any

from tidelog.jit import Array, Number, SystemFunction, inlined_kernel, interpret_as


def _declare_gettime() -> Any:
    from numba import types

    return types.ExternalFunction("clock_gettime", types.int32(types.int32, types.uintp))


_gettime: Any = SystemFunction(_declare_gettime)
_CLOCK = time.CLOCK_MONOTONIC


@interpret_as(lambda pair: time.monotonic_ns())
@inlined_kernel
def read_nanoseconds(pair: Array) -> Number:
    """Return the time of the system's monotonic clock."""
    _gettime(_CLOCK, pair.ctypes.data)
    return pair[0] * 1_000_000_000 + pair[1]
