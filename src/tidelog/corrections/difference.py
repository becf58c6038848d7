"""The exact difference of two extents: what one holds and the other does not, for all time.

Extents may repeat for ever, from different times on and with different periods. Both are written out up to a common
time from which on both repeat, and one common period farther; the difference there repeats as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

import numpy as np
from numpy.typing import NDArray

from tidelog.corrections.difference_kernels import coalesce_rows, subtract_rows
from tidelog.data.relation import refine_pairs
from tidelog.engine.extent import Extent, Tail
from tidelog.engine.fact_store import Rows
from tidelog.engine.repetition_search import find_span
from tidelog.timeline.grid import NEG_INF, POS_INF

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]


def compare(old: Extent, new: Extent, columns: Sequence[int]) -> tuple[Extent, Extent]:
    """Return what `new` holds and `old` does not, and the reverse.

    The rows of both must be sorted by `sort_rows` with the same order of columns; so are the results.
    """
    left, right = _find_common_tails((old, new))
    before, after = (_write_out(extent, left, right, columns) for extent in (old, new))
    order = np.array(columns, np.int64)
    return _build(_subtract(after, before, order), left, right), _build(_subtract(before, after, order), left, right)


def merge(extents: Sequence[Extent], columns: Sequence[int]) -> Extent:
    """Return extents without common atoms as one."""
    left, right = _find_common_tails(extents)
    rows = [_write_out(extent, left, right, columns) for extent in extents]
    return _build(sort_rows(Rows.concatenate(rows, len(columns)), columns), left, right)


def estimate_merged_size(extents: Sequence[Extent]) -> int:
    """Estimate how many rows `merge` gives, without making them."""
    left, right = _find_common_tails(extents)
    return sum(extent.size(*_span(left, right)) for extent in extents)


def align(extent: Extent, other: Extent, columns: Sequence[int]) -> Extent:
    """Return an extent with sorted rows and the tails of another one; with its own, if it has not those, or if they
    would need many rows more."""
    left, right = other.left, other.right
    tails = _find_common_tails((extent, Extent(Rows.empty(len(columns)), left, right)))
    if tails != (left, right) or extent.size(*_span(left, right)) > 4 * len(extent.rows) + 4096:
        return Extent(sort_rows(extent.rows, columns), extent.left, extent.right)
    if extent.left in (None, left) and extent.right in (None, right):
        extent = Extent(sort_rows(extent.rows, columns), extent.left, extent.right)
    return Extent(extend_rows(_write_out(extent, left, right, columns), left, right), left, right)


def _write_out(extent: Extent, left: Tail | None, right: Tail | None, columns: Sequence[int]) -> Rows:
    """Return the rows of an extent up to one period into given tails, which it must have, too."""
    lo, hi = _span(left, right)
    if extent.left in (None, left) and extent.right in (None, right):
        return extent.rows.clip(lo, hi)
    return coalesce_sorted(sort_rows(extent.over(lo, hi).clip(lo, hi), columns), columns)


def coalesce_sorted(rows: Rows, columns: Sequence[int]) -> Rows:
    """Return sorted rows as maximal intervals."""
    source = np.empty(len(rows), np.int64)
    new_lo, new_hi = rows.lo.copy(), rows.hi.copy()
    count = int(
        coalesce_rows(np.ascontiguousarray(rows.args, np.int32), new_lo, new_hi, np.array(columns, np.int64), source)
    )
    return Rows(rows.args[:, source[:count]], new_lo[:count], new_hi[:count])


def sort_rows(rows: Rows, columns: Sequence[int]) -> Rows:
    """Sort rows by their arguments, in a given order of columns, and by time."""
    if len(rows) < 2:
        return rows
    keys = [rows.args[column] for column in columns]
    if len(keys) == 2:
        keys = [keys[0].astype(np.int64) << 32 | keys[1]]
    first, last = int(rows.lo.min()), int(rows.lo.max())
    if len(columns) == 1 and last - first < 1 << 31 and rows.args.dtype == np.int32:
        order = np.argsort(keys[0].astype(np.int64) << 31 | (rows.lo - first))
    else:
        order = np.lexsort((rows.lo, *reversed(keys)))
    return Rows(rows.args[:, order], rows.lo[order], rows.hi[order])


def refine_extent(extent: Extent, factor: int) -> Extent:
    """Return an extent on a doubled grid that is `factor` times as fine."""
    if factor == 1:
        return extent
    lo, hi = refine_pairs(extent.rows.lo, extent.rows.hi, factor)
    left, right = extent.left, extent.right
    return Extent(
        Rows(extent.rows.args, lo, hi),
        Tail(-_begin_finer(-left.at, factor), left.every * factor) if left else None,
        Tail(_begin_finer(right.at, factor), right.every * factor) if right else None,
    )


def _begin_finer(at: int, factor: int) -> int:
    """Return a position on a doubled grid that is `factor` times as fine; for a gap, where it begins.

    So rows that reach one period beyond a position do so on the finer grid, too.
    """
    return (at - (at & 1)) * factor + (at & 1)


def _span(left: Tail | None, right: Tail | None) -> tuple[int, int]:
    """Return the part of time up to one period into the tails."""
    return left.at - left.every + 1 if left else NEG_INF, right.at + right.every - 1 if right else POS_INF


def _find_common_tails(extents: Sequence[Extent]) -> tuple[Tail | None, Tail | None]:
    """Return tails that all extents have; an extent without one stays as it is beyond its last finite end."""
    lefts = [extent.left for extent in extents if extent.left]
    rights = [extent.right for extent in extents if extent.right]
    still = [extent.rows for extent in extents if len(extent.rows) and not (extent.left and extent.right)]
    first, last = find_span(still) if (lefts or rights) and still else (POS_INF, NEG_INF)
    left = Tail(min(first - 1, *(t.at for t in lefts)), lcm(*(t.every for t in lefts))) if lefts else None
    right = Tail(max(last + 1, *(t.at for t in rights)), lcm(*(t.every for t in rights))) if rights else None
    return left, right


def _subtract(rows: Rows, others: Rows, columns: Int64s) -> Rows:
    """Return the parts of rows that no other row of the same atom covers."""
    most = len(rows) + len(others)
    source, lo, hi = (np.empty(most, np.int64) for _ in range(3))
    (args, old_lo, old_hi), (other_args, other_lo, other_hi) = map(_make_contiguous, (rows, others))
    count = int(subtract_rows(args, old_lo, old_hi, other_args, other_lo, other_hi, columns, source, lo, hi))
    return Rows(rows.args[:, source[:count]], lo[:count].copy(), hi[:count].copy())


def _make_contiguous(rows: Rows) -> tuple[Int32s, Int64s, Int64s]:
    """Return the columns of rows in the one layout for which kernels are compiled."""
    return np.ascontiguousarray(rows.args, np.int32), np.ascontiguousarray(rows.lo), np.ascontiguousarray(rows.hi)


def extend_rows(rows: Rows, left: Tail | None, right: Tail | None) -> Rows:
    """Return rows that reach one period into the tails; what holds throughout that period holds for ever."""
    lo, hi = rows.lo, rows.hi
    if right is not None:
        hi = np.where((rows.lo <= right.at) & (hi >= right.at + right.every - 1), POS_INF, hi)
    if left is not None:
        lo = np.where((rows.hi >= left.at) & (lo <= left.at - left.every + 1), NEG_INF, lo)
    return Rows(rows.args, lo, hi)


def _build(rows: Rows, left: Tail | None, right: Tail | None) -> Extent:
    """Return the extent of rows that reach one period into the tails, without tails in which nothing changes."""
    rows = extend_rows(rows, left, right)
    if right is not None and not (((rows.hi >= right.at) & (rows.hi != POS_INF)) | (rows.lo > right.at)).any():
        right = None
    if left is not None and not (((rows.lo <= left.at) & (rows.lo != NEG_INF)) | (rows.hi < left.at)).any():
        left = None
    return Extent(rows, left, right)
