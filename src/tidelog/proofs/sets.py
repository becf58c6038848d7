"""Sets of times as sorted lists of grid pairs that neither overlap nor touch, and the operators on them.

Proofs look at few atoms at a time, so that plain Python is fast enough here; the ends are the grid's (`timeline.grid`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TypeVar

from tidelog.timeline.grid import NEG_INF, POS_INF, add_left, add_right, erode_left, erode_right, negated, since

Pair = tuple[int, int]
Times = list[Pair]
Candidate = TypeVar("Candidate")

ALWAYS: Pair = (NEG_INF, POS_INF)


def coalesced(pairs: Iterable[Pair]) -> Times:
    """Pairs in any order as a set of times."""
    found: Times = []
    for lo, hi in sorted(pairs):
        if found and lo <= found[-1][1] + 1:
            if hi > found[-1][1]:
                found[-1] = found[-1][0], hi
        else:
            found.append((lo, hi))
    return found


def meeting(times: Sequence[Pair], window: Pair) -> Sequence[Pair]:
    """The pairs that meet a window or touch it, uncut."""
    lo, hi = window
    first = bisect_left(times, (lo,))
    if first and times[first - 1][1] >= lo - 1:
        first -= 1
    return times[first : bisect_left(times, (hi + 2,))]


def add(times: Times, pair: Pair) -> None:
    """Join a pair to a set of times, in place."""
    lo, hi = pair
    first = bisect_left(times, (lo,))
    if first and times[first - 1][1] >= lo - 1:
        first -= 1
    last = bisect_left(times, (hi + 2,))
    joined = times[first:last]
    times[first:last] = [(min(lo, joined[0][0]), max(hi, joined[-1][1])) if joined else pair]


def intersection(a: Sequence[Pair], b: Sequence[Pair]) -> Times:
    found: Times = []
    i = j = 0
    while i < len(a) and j < len(b):
        lo, hi = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if lo <= hi:
            found.append((lo, hi))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return found


def within(times: Sequence[Pair], window: Pair) -> Times:
    """The part of a set inside of a window."""
    return intersection(meeting(times, window), [window])


def complement(times: Sequence[Pair]) -> Times:
    found: Times = []
    at = NEG_INF
    for lo, hi in times:
        if lo > at:
            found.append((at, lo - 1))
        at = hi + 1
    if at <= POS_INF:
        found.append((at, POS_INF))
    return found


def difference(a: Sequence[Pair], b: Sequence[Pair]) -> Times:
    return intersection(a, complement(b)) if b else list(a)


def spread(times: Iterable[Pair], by: Pair, dense: bool) -> Times:
    """The times t with t - t' in `by` for some t' of the set: where a diamond over the past holds, or a boxed head."""
    return coalesced((add_left(lo, by[0], dense), add_right(hi, by[1], dense)) for lo, hi in times)


def eroded(times: Iterable[Pair], by: Pair, dense: bool) -> Times:
    """The times t with all of t - `by` in the set: where a box over the past holds."""
    pairs = ((erode_left(lo, by[1], dense), erode_right(hi, by[0], dense)) for lo, hi in times)
    return [(lo, hi) for lo, hi in pairs if lo <= hi]


def mirrored(times: Sequence[Pair]) -> Times:
    return [negated(pair) for pair in reversed(times)]


def nearby(by: Pair, dense: bool) -> Pair | None:
    """The part of a range of Since at which nothing lies between now and then: 0, and on the integers 1."""
    near = by[0], min(by[1], 0 if dense else 1)
    return near if near[0] <= near[1] else None


def since_times(left: Sequence[Pair], right: Sequence[Pair], by: Pair, dense: bool) -> Times:
    """Where `left Since[by] right` holds."""
    near = nearby(by, dense)
    found = list(spread(right, near, dense)) if near else []
    for a in left:
        # Only what the closure of `a` meets can be joined to it.
        for b in meeting(right, (a[0] - 1, a[1] + 1)):
            lo, hi = since(*a, *b, *by, dense)
            if lo <= hi:
                found.append((lo, hi))
    return coalesced(found)


def least_part(source: Pair, by: Pair, target: Pair, dense: bool) -> Pair:
    """A least part u of `source` with `target` inside of u + `by`, given that source + `by` is enough.

    Where one moment serves, it is the one nearest to the target, and a point rather than a gap.
    """
    latest = _latest_start(source, by[0], target[0], dense)
    earliest = -_latest_start(negated(source), -by[1], -target[1], dense)
    if earliest > latest:
        return latest, earliest
    nearest = max(earliest, min(latest, target[0]))
    if nearest in ALWAYS:
        # Infinity is no moment.
        return source
    if dense and nearest & 1 and nearest != target[0]:
        nearest = nearest + 1 if nearest < latest else nearest - 1 if nearest > earliest else nearest
    return nearest, nearest


def _latest_start(source: Pair, by: int, target: int, dense: bool) -> int:
    """The last position c of a source with c + `by` (left ends) at or before the target."""
    if by == NEG_INF:
        return source[1]
    if target == NEG_INF:
        return source[0]
    at = target - by + 1
    while add_left(at, by, dense) > target:
        at -= 1
    return max(source[0], min(source[1], at))


def cover(target: Pair, candidates: Iterable[tuple[Pair, Candidate]]) -> list[tuple[Pair, Candidate]]:
    """Few candidates that together cover the target, each with the part that it stands for; less where they cannot.

    Greedy from the left, always the one that reaches furthest, which gives the fewest.
    """
    waiting = sorted(candidates, key=lambda candidate: candidate[0][0])
    found: list[tuple[Pair, Candidate]] = []
    at, taken = target[0], 0
    best: tuple[Pair, Candidate] | None = None
    while at <= target[1]:
        while taken < len(waiting) and waiting[taken][0][0] <= at:
            if best is None or waiting[taken][0][1] > best[0][1]:
                best = waiting[taken]
            taken += 1
        if best is None or best[0][1] < at:
            return found
        found.append(((at, min(best[0][1], target[1])), best[1]))
        at = best[0][1] + 1
    return found
