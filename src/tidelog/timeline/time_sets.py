"""Sets of times as sorted lists of grid pairs that neither overlap nor touch, and operations on them.

Proofs look at few atoms at a time, so plain Python is fast enough here. The ends of pairs are those of `timeline.grid`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TypeVar

from tidelog.timeline.grid import NEG_INF, POS_INF, add_left, add_right, erode_left, erode_right, negate, since

Pair = tuple[int, int]
Times = list[Pair]
Candidate = TypeVar("Candidate")

ALWAYS: Pair = (NEG_INF, POS_INF)


def coalesce(pairs: Iterable[Pair]) -> Times:
    """Turn pairs in any order into a set of times."""
    result: Times = []
    for lo, hi in sorted(pairs):
        if result and lo <= result[-1][1] + 1:
            if hi > result[-1][1]:
                result[-1] = result[-1][0], hi
        else:
            result.append((lo, hi))
    return result


def find_touching(times: Sequence[Pair], window: Pair) -> Sequence[Pair]:
    """Return the pairs that overlap or touch a window, uncut."""
    lo, hi = window
    first = bisect_left(times, (lo,))
    if first and times[first - 1][1] >= lo - 1:
        first -= 1
    return times[first : bisect_left(times, (hi + 2,))]


def insert(times: Times, pair: Pair) -> None:
    """Add a pair to a set of times, in place."""
    lo, hi = pair
    first = bisect_left(times, (lo,))
    if first and times[first - 1][1] >= lo - 1:
        first -= 1
    last = bisect_left(times, (hi + 2,))
    joined = times[first:last]
    times[first:last] = [(min(lo, joined[0][0]), max(hi, joined[-1][1])) if joined else pair]


def intersect(a: Sequence[Pair], b: Sequence[Pair]) -> Times:
    """Return the times in both sets."""
    result: Times = []
    i = j = 0
    while i < len(a) and j < len(b):
        lo, hi = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if lo <= hi:
            result.append((lo, hi))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return result


def clip(times: Sequence[Pair], window: Pair) -> Times:
    """Return the part of a set inside a window."""
    return intersect(find_touching(times, window), [window])


def complement(times: Sequence[Pair]) -> Times:
    """Return the times outside a set."""
    result: Times = []
    at = NEG_INF
    for lo, hi in times:
        if lo > at:
            result.append((at, lo - 1))
        at = hi + 1
    if at <= POS_INF:
        result.append((at, POS_INF))
    return result


def subtract(a: Sequence[Pair], b: Sequence[Pair]) -> Times:
    """Return the times of `a` that are not in `b`."""
    return intersect(a, complement(b)) if b else list(a)


def dilate(times: Iterable[Pair], by: Pair, dense: bool) -> Times:
    """Return the times t with t - t' in `by` for some t' of the set.

    That is where a diamond over the past holds, or a boxed head.
    """
    return coalesce((add_left(lo, by[0], dense), add_right(hi, by[1], dense)) for lo, hi in times)


def erode(times: Iterable[Pair], by: Pair, dense: bool) -> Times:
    """Return the times t with all of t - `by` in the set: where a box over the past holds."""
    pairs = ((erode_left(lo, by[1], dense), erode_right(hi, by[0], dense)) for lo, hi in times)
    return [(lo, hi) for lo, hi in pairs if lo <= hi]


def mirror(times: Sequence[Pair]) -> Times:
    """Return the set with time reversed."""
    return [negate(pair) for pair in reversed(times)]


def adjacent_distances(by: Pair, dense: bool) -> Pair | None:
    """Return the distances of a Since that leave no time between its ends: 0, and on the integers 1."""
    near = by[0], min(by[1], 0 if dense else 1)
    return near if near[0] <= near[1] else None


def evaluate_since(left: Sequence[Pair], right: Sequence[Pair], by: Pair, dense: bool) -> Times:
    """Return where `left Since[by] right` holds."""
    near = adjacent_distances(by, dense)
    result = list(dilate(right, near, dense)) if near else []
    for a in left:
        # Only pairs that meet the closure of `a` can combine with it.
        for b in find_touching(right, (a[0] - 1, a[1] + 1)):
            lo, hi = since(*a, *b, *by, dense)
            if lo <= hi:
                result.append((lo, hi))
    return coalesce(result)


def choose_least_part(source: Pair, by: Pair, target: Pair, dense: bool) -> Pair:
    """Return a least part u of `source` such that u + `by` contains `target`, given that source + `by` does.

    Where a single moment is enough, it is the one nearest to the target, and a point rather than a gap.
    """
    latest = _latest_start(source, by[0], target[0], dense)
    earliest = -_latest_start(negate(source), -by[1], -target[1], dense)
    if earliest > latest:
        return latest, earliest
    nearest = max(earliest, min(latest, target[0]))
    if nearest in ALWAYS:
        # Infinity is not a moment.
        return source
    if dense and nearest & 1 and nearest != target[0]:
        nearest = nearest + 1 if nearest < latest else nearest - 1 if nearest > earliest else nearest
    return nearest, nearest


def _latest_start(source: Pair, by: int, target: int, dense: bool) -> int:
    """Return the last position c of a source such that c + `by` (as left ends) is at or before the target."""
    if by == NEG_INF:
        return source[1]
    if target == NEG_INF:
        return source[0]
    at = target - by + 1
    while add_left(at, by, dense) > target:
        at -= 1
    return max(source[0], min(source[1], at))


def choose_cover(target: Pair, candidates: Iterable[tuple[Pair, Candidate]]) -> list[tuple[Pair, Candidate]]:
    """Choose the fewest candidates that together cover the target, each with the part that it covers.

    Where they leave a gap, only the part before it is covered. Always taking the candidate that reaches furthest, from
    left to right, gives the fewest.
    """
    waiting = sorted(candidates, key=lambda candidate: candidate[0][0])
    result: list[tuple[Pair, Candidate]] = []
    at, taken = target[0], 0
    best: tuple[Pair, Candidate] | None = None
    while at <= target[1]:
        while taken < len(waiting) and waiting[taken][0][0] <= at:
            if best is None or waiting[taken][0][1] > best[0][1]:
                best = waiting[taken]
            taken += 1
        if best is None or best[0][1] < at:
            return result
        result.append(((at, min(best[0][1], target[1])), best[1]))
        at = best[0][1] + 1
    return result
