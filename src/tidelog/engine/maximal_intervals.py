"""Maximal intervals of rows: sorted by arguments and time, those of an atom that overlap or touch joined."""

from __future__ import annotations

import numpy as np

from tidelog.data.packed_rows import Columns, sort_columns
from tidelog.jit import Array, Number, kernel, tick
from tidelog.numeric.rows import Rows


def coalesce(rows: Rows) -> Rows:
    """Return the same rows as maximal intervals, sorted by arguments and time."""
    args, lo, hi = sort_columns(Columns(rows.args, rows.lo, rows.hi))
    count = int(_join_intervals(args, lo, hi))
    if count == len(lo):
        return Rows(args, lo, hi)
    return Rows(np.ascontiguousarray(args[:, :count]), lo[:count].copy(), hi[:count].copy())


@kernel
def _join_intervals(args: Array, lo: Array, hi: Array) -> Number:
    """Join the intervals of rows that are sorted by arguments and time; return how many are left, at the front."""
    last = -1
    for row in range(lo.shape[0]):
        tick()
        same = last >= 0 and lo[row] <= hi[last] + 1
        for k in range(args.shape[0]):
            same = same and args[k, row] == args[k, last]
        if same:
            hi[last] = max(hi[last], hi[row])
            continue
        last += 1
        for k in range(args.shape[0]):
            args[k, last] = args[k, row]
        lo[last], hi[last] = lo[row], hi[row]
    return last + 1
