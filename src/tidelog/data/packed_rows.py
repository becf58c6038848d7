"""Sort rows of facts by packing each into one number, since numbers are sorted many times as fast as rows.

The bits of such a number are, from the highest on, the arguments, where the interval begins, and how long it is. Rows
that do not fit into one number are sorted in several turns, by their beginnings first and by the first arguments last.
The numbers of a turn are some arguments, and the place that a row has because of the turns before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidelog.data.constant_order import Longs
from tidelog.timeline.grid import NEG_INF, POS_INF

Ints = npt.NDArray[np.int32]

#: The bits of a packed row: one number with a sign.
_BITS = 63


class Columns(NamedTuple):
    """Rows of one predicate: one row of `args` per argument, and closed pairs `lo`, `hi`."""

    args: Ints
    lo: Longs
    hi: Longs


class _Layout(NamedTuple):
    """How many bits the parts take, and the positions between which all intervals are packed.

    Where a row has no beginning, `first` stands for it, and `last` for an end that never comes.
    """

    args: tuple[int, ...]
    lo: int
    length: int
    first: int
    last: int
    has_no_beginning: bool
    has_no_end: bool


def sort_columns(columns: Columns) -> Columns:
    """Return rows sorted by arguments and beginning, in new arrays.

    >>> sort_columns(Columns(np.array([[7, 5, 7]], np.int32), np.array([3, 0, 1]), np.array([3, POS_INF, 1]))).lo
    array([0, 1, 3])
    """
    args, lo, hi = columns
    layout = _choose_layout(columns) if len(lo) else None
    if layout is None:
        order = _find_order(args, lo)
        return Columns(np.ascontiguousarray(args[:, order], np.int32), lo[order], hi[order])
    packed = _pack(columns, layout)
    packed.sort()
    return _unpack(packed, layout)


def _choose_layout(columns: Columns) -> _Layout | None:
    """Choose a layout, or None where rows do not fit into one number."""
    args, lo, hi = columns
    first, last = int(lo.min()), int(hi.max())
    endless = first == NEG_INF, last == POS_INF
    if any(endless):
        finite = lo[lo > NEG_INF], hi[hi < POS_INF]
        least = min(int(ends.min(initial=POS_INF)) for ends in finite)
        greatest = max(int(ends.max(initial=NEG_INF)) for ends in finite)
        least, greatest = (least, greatest) if least <= greatest else (0, 0)
        first, last = least - 1 if endless[0] else first, greatest + 1 if endless[1] else last
    if last - first >= 1 << _BITS - 1:
        return None
    begins = np.maximum(lo, first)
    longest = int((np.minimum(hi, last) - begins).max())
    bits = tuple(int(column.max()).bit_length() for column in args)
    layout = _Layout(bits, int(begins.max() - first).bit_length(), longest.bit_length(), first, last, *endless)
    return layout if sum(bits) + layout.lo + layout.length <= _BITS else None


def _pack(columns: Columns, layout: _Layout) -> Longs:
    args, lo, hi = columns
    begins = np.maximum(lo, layout.first)
    packed = _pack_arguments(args, layout.args)
    packed <<= layout.lo
    packed |= begins - layout.first
    if layout.length:
        packed <<= layout.length
        packed |= np.minimum(hi, layout.last) - begins
    return packed


def _pack_arguments(args: Ints, bits: Sequence[int]) -> Longs:
    packed = np.zeros(args.shape[1], np.int64)
    for column, width in zip(args, bits, strict=True):
        packed <<= width
        packed |= column
    return packed


def _find_order(args: Ints, lo: Longs) -> Longs:
    """Return the order of rows, found in as few turns as numbers have room for."""
    order, places = np.argsort(lo), len(lo).bit_length()
    bits = [int(column.max(initial=0)).bit_length() for column in args]
    end = len(bits)
    while end:
        begin = end - 1
        while begin and sum(bits[begin - 1 : end]) + places <= _BITS:
            begin -= 1
        packed = _pack_arguments(args[begin:end], bits[begin:end])[order]
        packed <<= places
        packed |= np.arange(len(order))
        packed.sort()
        packed &= (1 << places) - 1
        order, end = order[packed], begin
    return order


def _unpack(packed: Longs, layout: _Layout) -> Columns:
    rows = len(packed)
    hi = packed & (1 << layout.length) - 1
    packed >>= layout.length
    lo = packed & (1 << layout.lo) - 1
    packed >>= layout.lo
    lo += layout.first
    hi += lo
    if layout.has_no_beginning:
        lo[lo == layout.first] = NEG_INF
    if layout.has_no_end:
        hi[hi == layout.last] = POS_INF
    args = np.empty((len(layout.args), rows), np.int32)
    for place in range(len(args) - 1, -1, -1):
        args[place] = packed & (1 << layout.args[place]) - 1
        packed >>= layout.args[place]
    return Columns(args, lo, hi)
