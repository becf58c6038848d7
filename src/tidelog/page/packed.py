"""Columns of whole numbers as a page takes them: the narrowest type that holds them, in base64."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np
import numpy.typing as npt

_TYPES = (("u1", np.uint8), ("u2", np.uint16), ("u4", np.uint32))
#: Whole numbers that a 64-bit float of a browser holds exactly; larger ones are 64-bit integers there.
_WIDE = ("i8", np.int64)

Packed = dict[str, Any]


def packed(numbers: npt.ArrayLike) -> Packed:
    """A column: `base`, as text since it may be large, is to be added to every number.

    >>> packed([1000, 1001, 1003])
    {'type': 'u1', 'base': '1000', 'data': 'AAED'}
    """
    column = np.asarray(numbers, np.int64)
    base = int(column.min()) if len(column) else 0
    span = int(column.max()) - base if len(column) else 0
    for name, kind in _TYPES:
        if span <= np.iinfo(kind).max:
            return {"type": name, "base": str(base), "data": _text((column - base).astype(kind))}
    return {"type": _WIDE[0], "base": "0", "data": _text(column)}


def unpacked(column: Packed) -> npt.NDArray[np.int64]:
    """The numbers of a column.

    >>> unpacked(packed([3, -(1 << 62)])).tolist()
    [3, -4611686018427387904]
    """
    kind = dict([*_TYPES, _WIDE])[column["type"]]
    narrow = np.frombuffer(b64decode(column["data"]), np.dtype(kind).newbyteorder("<"))
    return narrow.astype(np.int64) + int(column["base"])


def _text(column: npt.NDArray[Any]) -> str:
    return b64encode(column.astype(column.dtype.newbyteorder("<")).tobytes()).decode()
