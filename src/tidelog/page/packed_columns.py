"""Columns of integers as a page reads them: in the narrowest type that holds them, as base64."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np
import numpy.typing as npt

_TYPES = (("u1", np.uint8), ("u2", np.uint16), ("u4", np.uint32))
#: For spans beyond 32 bits; the page reads these as 64-bit integers.
_WIDE = ("i8", np.int64)

Packed = dict[str, Any]


def pack_column(numbers: npt.ArrayLike) -> Packed:
    """Pack a column; `base`, which is text because it may be large, is to be added to every number.

    >>> pack_column([1000, 1001, 1003])
    {'type': 'u1', 'base': '1000', 'data': 'AAED'}
    """
    column = np.asarray(numbers, np.int64)
    base = int(column.min()) if len(column) else 0
    span = int(column.max()) - base if len(column) else 0
    for name, kind in _TYPES:
        if span <= np.iinfo(kind).max:
            return {"type": name, "base": str(base), "data": _encode((column - base).astype(kind))}
    return {"type": _WIDE[0], "base": "0", "data": _encode(column)}


def unpack_column(column: Packed) -> npt.NDArray[np.int64]:
    """Return the numbers of a packed column.

    >>> unpack_column(pack_column([3, -(1 << 62)])).tolist()
    [3, -4611686018427387904]
    """
    kind = dict([*_TYPES, _WIDE])[column["type"]]
    narrow = np.frombuffer(b64decode(column["data"]), np.dtype(kind).newbyteorder("<"))
    return narrow.astype(np.int64) + int(column["base"])


def _encode(column: npt.NDArray[Any]) -> str:
    return b64encode(column.astype(column.dtype.newbyteorder("<")).tobytes()).decode()
