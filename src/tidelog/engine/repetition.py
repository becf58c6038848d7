"""What repeats for ever, atom by atom: the least period, and the tightest time from which it repeats.

The tails of an extent serve a whole component. An atom of it may repeat with a shorter period, and from an earlier
time on. `from` is the first time at which the atom holds and from which it repeats; the part that repeats
`before` a time begins where an interval of the atom begins, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tidelog.engine.extent import Extent
from tidelog.engine.fact_store import Rows
from tidelog.engine.maximal_intervals import coalesce
from tidelog.timeline.grid import NEG_INF, POS_INF

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Repetition:
    """`part` of an atom repeats with period `every`: from `at` on, or (`before`) before `at`. Grid positions."""

    args: tuple[int, ...]
    part: Interval
    every: int
    at: int
    before: bool


def split_repetitions(extent: Extent, tick: int) -> tuple[Rows, list[Repetition]]:
    """Split an extent into the intervals that occur once and those that repeat for ever."""
    left, right = extent.left, extent.right
    if left is None and right is None:
        return extent.rows, []
    lo = left.at - 4 * left.every if left else NEG_INF
    hi = right.at + 4 * right.every if right else POS_INF
    rows = coalesce(extent.over(lo, hi))
    once: list[Rows] = []
    repetitions: list[Repetition] = []
    for atom in _group_by_atom(rows):
        args = tuple(int(a) for a in atom.args[:, 0])
        intervals = list(zip(atom.lo.tolist(), atom.hi.tolist(), strict=True))
        start, stop = POS_INF, NEG_INF
        if right is not None:
            every, count = _find_least_period(intervals, right.at + right.every, right.every, tick)
            if every:
                # An atom that repeats at both ends without a break may begin anywhere: best at 0.
                oldest, anchor = (left.at, min(max(0, left.at), right.at)) if left else (NEG_INF, 0)
                known = [part for part in intervals if part[1] < hi - right.every]
                start = _start(known, _find_tightest_start(known, every, count, oldest, anchor), tick)
                shown = _clip_intervals(intervals, start, start + every - 1)
                repetitions += [Repetition(args, part, every, start, False) for part in shown]
        if left is not None:
            every, count = _find_least_period(intervals, left.at - 2 * left.every, left.every, tick)
            if every:
                known = [part for part in intervals if part[0] > lo + left.every]
                reversed_ = [(-b, -a) for a, b in reversed(known)]
                newest = -right.at if right else NEG_INF
                stop = 1 - _find_tightest_start(reversed_, every, count, newest, newest)
                stop = max(a - a % tick + every for a, _ in known if a - a % tick + every <= min(stop, start))
                shown = _clip_intervals(intervals, stop - every, stop - 1)
                repetitions += [Repetition(args, part, every, stop, True) for part in shown]
        once.append(atom.where((atom.hi >= stop) & (atom.lo < start)))
    return Rows.concatenate(once, rows.args.shape[0]), repetitions


def _group_by_atom(rows: Rows) -> Iterator[Rows]:
    """Yield the rows of each atom, sorted by time."""
    order = np.lexsort((rows.lo, *rows.args[::-1]))
    rows = Rows(rows.args[:, order], rows.lo[order], rows.hi[order])
    new = np.append(True, (rows.args[:, 1:] != rows.args[:, :-1]).any(axis=0)) if len(rows) else np.empty(0, bool)
    for first, last in pairwise([*np.flatnonzero(new), len(rows)]):
        yield Rows(rows.args[:, first:last], rows.lo[first:last], rows.hi[first:last])


def _clip_intervals(intervals: list[Interval], lo: int, hi: int) -> list[Interval]:
    return [(max(a, lo), min(b, hi)) for a, b in intervals if a <= hi and b >= lo]


def _find_least_period(intervals: list[Interval], after: int, period: int, tick: int) -> tuple[int, int]:
    """Return the least period inside (after, after + period] and its intervals' number; zeros where nothing changes."""
    starts = {a % period for a, _ in intervals if after < a <= after + period}
    ends = {b % period for _, b in intervals if after < b + 1 <= after + period}
    for parts in range(len(starts), 0, -1):
        every = period // parts
        if period % parts or every % tick or len(starts) % parts:
            continue
        if all((s + every) % period in starts for s in starts) and all((e + every) % period in ends for e in ends):
            return every, len(starts) // parts
    return 0, 0


def _find_tightest_start(intervals: list[Interval], every: int, count: int, oldest: int, anchor: int) -> int:
    """Return the first position from which on the atom at t equals the atom at t + every; `anchor` if from `oldest` on.

    Going back from the last interval, each is compared with the one a period later.
    """
    for i in range(len(intervals) - count - 1, -1, -1):
        (lo, hi), (later_lo, later_hi) = intervals[i], intervals[i + count]
        if NEG_INF < lo < oldest:
            return anchor
        if hi != later_hi - every:
            return max(hi, later_hi - every) + 1
        if lo != later_lo - every:
            return max(lo, later_lo - every)
    return intervals[count - 1][1] - every + 1


def _start(intervals: list[Interval], tightest: int, tick: int) -> int:
    """Return the tightest start, moved on to where the atom holds."""
    if tightest % tick == 0 and any(a <= tightest <= b for a, b in intervals):
        return tightest
    return min(a - a % tick for a, _ in intervals if a > tightest or (a == tightest and a % tick == 0))
