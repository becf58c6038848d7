"""When one atom holds, for all time: intervals on a stretch, and what repeats before and after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import lcm

from tidelog.stable.problem import Pair, coalesced
from tidelog.stable.walk import Trace
from tidelog.timeline.grid import NEG_INF, POS_INF


@dataclass(frozen=True, slots=True)
class Tail:
    """What repeats: at time t as `bits[(t - anchor) % every]` says, for all t from `at` on (or all t before `at`)."""

    at: int
    anchor: int
    bits: tuple[int, ...]

    @property
    def every(self) -> int:
        return len(self.bits)

    @property
    def ever(self) -> bool:
        """Whether the atom holds at some time of the tail."""
        return any(self.bits)

    def holds(self, time: int) -> int:
        return self.bits[(time - self.anchor) % len(self.bits)]

    def within(self, lo: int, hi: int) -> list[Pair]:
        """The intervals of the pattern in lo..hi."""
        if len(self.bits) == 1:
            return [(lo, hi)] if self.bits[0] else []
        return intervals(lo, (self.holds(time) for time in range(lo, hi + 1)))


@dataclass(frozen=True, slots=True)
class Course:
    """Maximal intervals on a stretch of time that is long enough, and the tails."""

    pairs: tuple[Pair, ...]
    before: Tail
    after: Tail

    def within(self, lo: int, hi: int) -> tuple[Pair, ...]:
        """The maximal intervals in lo..hi, however far away that is."""
        found: list[Pair] = []
        if lo < self.before.at:
            found += self.before.within(lo, min(hi, self.before.at - 1))
            lo = self.before.at
        if lo < self.after.at:
            last = min(hi, self.after.at - 1)
            found += [(max(a, lo), min(b, last)) for a, b in self.pairs if a <= last and b >= lo]
            lo = self.after.at
        if lo <= hi:
            found += self.after.within(lo, hi)
        return coalesced(found)


def of_data(pairs: tuple[Pair, ...]) -> Course:
    """The course of an atom that holds in these intervals and at no other time."""
    first, last = pairs[0], pairs[-1]
    if last[1] == POS_INF:
        after = Tail(last[0], 0, (1,))
    else:
        after = Tail(last[1] + 1, 0, (0,))
    if first[0] == NEG_INF:
        before = Tail(POS_INF if first[1] == POS_INF else first[1] + 1, 0, (1,))
    else:
        before = Tail(first[0], 0, (0,))
    return Course(pairs, before, after)


def of_trace(trace: Trace, atom: int, offset: int, mirrored: bool) -> Course:
    """The course of one atom of a walk, at the user's times."""
    bits = [slice >> atom & 1 for slice in trace.slices]
    start, left, right = trace.start - offset, trace.left, trace.right
    if mirrored:
        bits.reverse()
        start, left, right = -(start + len(bits) - 1), right, left
    at, anchor, pattern = _tail(bits, left, right)
    after = Tail(NEG_INF if at is None else start + at, start + anchor, pattern)
    last = start + len(bits) - 1
    at, anchor, pattern = _tail(bits[::-1], right, left)
    # Reversed, the tail counts from its last point down.
    before = Tail(POS_INF if at is None else last - at + 1, last - anchor - len(pattern) + 1, pattern[::-1])
    return Course(tuple(intervals(start, bits)), before, after)


def _tail(bits: list[int], left: int, right: int) -> tuple[int | None, int, tuple[int, ...]]:
    """The least period of the right end, and the place from which on it is so; None where it always was."""
    size = len(bits)
    anchor = size - right
    loop = bits[anchor:]
    every = next(p for p in range(1, right + 1) if right % p == 0 and loop == loop[:p] * (right // p))
    place = anchor - 1
    while place >= 0 and bits[place] == bits[place + every]:
        place -= 1
    if place >= 0:
        return place + 1, anchor, tuple(loop[:every])
    # Beyond the beginning the first `left` bits repeat.
    for place in range(-1, -lcm(left, every) - 1, -1):
        beyond = place + every
        if bits[place % left] != (bits[beyond] if beyond >= 0 else bits[beyond % left]):
            return place + 1, anchor, tuple(loop[:every])
    return None, anchor, tuple(loop[:every])


def intervals(start: int, bits: Iterable[int]) -> list[Pair]:
    """The maximal runs of set bits, the first of which is at `start`."""
    found: list[Pair] = []
    begin: int | None = None
    time = start
    for bit in bits:
        if bit:
            if begin is None:
                begin = time
        elif begin is not None:
            found.append((begin, time - 1))
            begin = None
        time += 1
    if begin is not None:
        found.append((begin, time - 1))
    return found


@dataclass(frozen=True, slots=True)
class Repetition:
    """What all of some atoms do: from `at` on (or before it), every `every`; `parts` are the intervals of each in one
    period that begins (or ends) there."""

    at: int
    every: int
    parts: tuple[tuple[Pair, ...], ...]


def after(tails: Sequence[Tail], lo: int) -> Repetition | None:
    """What repeats from a time on, at which something holds; the earliest such time, `lo` where it was always so."""
    if not any(tail.ever for tail in tails):
        return None
    at = max(tail.at for tail in tails)
    at = lo if at == NEG_INF else at
    at += min(_first(tail, at) for tail in tails if tail.ever)
    every = lcm(*(tail.every for tail in tails))
    return Repetition(at, every, tuple(tuple(tail.within(at, at + every - 1)) for tail in tails))


def before(tails: Sequence[Tail], lo: int) -> Repetition | None:
    """What repeats before a time, up to which something holds; the latest such time, `lo` where it is always so."""
    if not any(tail.ever for tail in tails):
        return None
    at = min(tail.at for tail in tails)
    at = lo if at == POS_INF else at
    at -= min(_last(tail, at) for tail in tails if tail.ever)
    every = lcm(*(tail.every for tail in tails))
    return Repetition(at, every, tuple(tuple(tail.within(at - every, at - 1)) for tail in tails))


def _first(tail: Tail, at: int) -> int:
    """How long after `at` the atom holds."""
    return next(k for k in range(tail.every) if tail.holds(at + k))


def _last(tail: Tail, at: int) -> int:
    """How long before `at` the atom ends, with nothing between."""
    return next(k for k in range(tail.every) if tail.holds(at - 1 - k))
