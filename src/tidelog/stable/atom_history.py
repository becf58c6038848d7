"""When one atom holds, for all time: intervals in a finite range, and what repeats before and after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import lcm

from tidelog.compiler.flat_rules import Pair
from tidelog.stable.search_limits import require_listable
from tidelog.stable.window_paths import Gap, Trace
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.time_sets import coalesce


@dataclass(frozen=True, slots=True)
class PeriodicTail:
    """A pattern that repeats: at time t the atom holds if `bits[(t - anchor) % every]` is set.

    The pattern is in force for all t from `at` on, or, in a tail before the data, for all t before `at`.
    """

    at: int
    anchor: int
    bits: tuple[int, ...]

    @property
    def every(self) -> int:
        """The period."""
        return len(self.bits)

    @property
    def ever_holds(self) -> bool:
        """Whether the atom holds at some time of the tail."""
        return any(self.bits)

    def holds(self, time: int) -> int:
        return self.bits[(time - self.anchor) % len(self.bits)]

    def within(self, lo: int, hi: int) -> list[Pair]:
        """Return the intervals of the pattern in lo..hi."""
        if len(self.bits) == 1:
            return [(lo, hi)] if self.bits[0] else []
        require_listable(lo, hi)
        return find_runs(lo, (self.holds(time) for time in range(lo, hi + 1)))


@dataclass(frozen=True, slots=True)
class RepeatingRange:
    """A pattern that repeats: at time t in lo..hi the atom holds if `bits[(t - lo) % len(bits)]` is set."""

    lo: int
    hi: int
    bits: tuple[int, ...]

    def within(self, lo: int, hi: int) -> list[Pair]:
        """Return the intervals of the pattern in lo..hi."""
        lo, hi = max(lo, self.lo), min(hi, self.hi)
        return PeriodicTail(self.lo, self.lo, self.bits).within(lo, hi) if lo <= hi else []


@dataclass(frozen=True, slots=True)
class AtomHistory:
    """When an atom holds: in intervals and by patterns between two tails, and as the tails say."""

    pairs: tuple[Pair, ...]
    before: PeriodicTail
    after: PeriodicTail
    repeating: tuple[RepeatingRange, ...] = ()

    def within(self, lo: int, hi: int) -> tuple[Pair, ...]:
        """Return the maximal intervals in lo..hi, at any distance from the data."""
        intervals: list[Pair] = []
        if lo < self.before.at:
            intervals += self.before.within(lo, min(hi, self.before.at - 1))
            lo = self.before.at
        if lo < self.after.at:
            last = min(hi, self.after.at - 1)
            middle = [(max(a, lo), min(b, last)) for a, b in self.pairs if a <= last and b >= lo]
            for span in self.repeating:
                middle += span.within(lo, last)
            intervals += sorted(middle)
            lo = self.after.at
        if lo <= hi:
            intervals += self.after.within(lo, hi)
        return tuple(coalesce(intervals))


def build_history_from_data(pairs: tuple[Pair, ...]) -> AtomHistory:
    """Build the history of an atom that holds in these intervals and at no other time."""
    first, last = pairs[0], pairs[-1]
    if last[1] == POS_INF:
        after = PeriodicTail(last[0], 0, (1,))
    else:
        after = PeriodicTail(last[1] + 1, 0, (0,))
    if first[0] == NEG_INF:
        before = PeriodicTail(POS_INF if first[1] == POS_INF else first[1] + 1, 0, (1,))
    else:
        before = PeriodicTail(first[0], 0, (0,))
    return AtomHistory(pairs, before, after)


def build_history_from_trace(trace: Trace, atom: int, offset: int, mirrored: bool) -> AtomHistory:
    """Build the history of one atom of a trace, at the user's times."""
    bits = [slice >> atom & 1 for slice in trace.slices]
    start, left, right, gaps = trace.start - offset, trace.left, trace.right, trace.gaps
    if mirrored:
        bits.reverse()
        length = len(bits) + sum(gap.period * gap.times for gap in gaps)
        start, left, right = -(start + length - 1), right, left
        gaps = tuple(replace(gap, position=len(bits) - gap.position) for gap in reversed(gaps))
    history = _build_history(bits, start, left, right)
    return _insert_gaps(history, bits, start, gaps) if gaps else history


def _build_history(bits: list[int], start: int, left: int, right: int) -> AtomHistory:
    at, anchor, pattern = _find_tail(bits, left, right)
    after = PeriodicTail(NEG_INF if at is None else start + at, start + anchor, pattern)
    last = start + len(bits) - 1
    at, anchor, pattern = _find_tail(bits[::-1], right, left)
    # Reversed, the tail counts down from its last point.
    before = PeriodicTail(POS_INF if at is None else last - at + 1, last - anchor - len(pattern) + 1, pattern[::-1])
    return AtomHistory(tuple(find_runs(start, bits)), before, after)


def _insert_gaps(history: AtomHistory, bits: list[int], start: int, gaps: tuple[Gap, ...]) -> AtomHistory:
    """Return the history with what was left out in gaps: everything from a gap on is later by its length.

    Around a gap everything repeats, for long enough that the period of a tail that reaches across it divides that of
    the gap."""
    pairs: list[Pair] = []
    repeating: list[RepeatingRange] = []
    rest: Iterable[Pair] = history.pairs
    later: list[tuple[int, int]] = []
    for gap in gaps:
        at = start + gap.position
        moved = sum(length for _, length in later)
        pairs += [(lo + moved, min(hi, at - 1) + moved) for lo, hi in rest if lo < at]
        rest = [(max(lo, at), hi) for lo, hi in rest if hi >= at]
        length = gap.period * gap.times
        pattern = _shorten_pattern(bits[gap.position : gap.position + gap.period])
        repeating.append(RepeatingRange(at + moved, at + moved + length - 1, pattern))
        later.append((at, length))

    def move(time: int) -> int:
        return time if time in (NEG_INF, POS_INF) else time + sum(length for at, length in later if at <= time)

    return AtomHistory(
        (*pairs, *((move(lo), move(hi)) for lo, hi in rest)),
        PeriodicTail(move(history.before.at), history.before.anchor, history.before.bits),
        PeriodicTail(move(history.after.at), move(history.after.anchor), history.after.bits),
        tuple(repeating),
    )


def _shorten_pattern(bits: list[int]) -> tuple[int, ...]:
    """Return the shortest pattern that repeats to these bits."""
    size = len(bits)
    return tuple(next(bits[:p] for p in range(1, size + 1) if size % p == 0 and bits == bits[:p] * (size // p)))


def _find_tail(bits: list[int], left: int, right: int) -> tuple[int | None, int, tuple[int, ...]]:
    """Find the least period of the right end.

    Returns the position from which the pattern is in force (None: everywhere), a position at which a period begins,
    and the pattern.
    """
    anchor = len(bits) - right
    pattern = _shorten_pattern(bits[anchor:])
    every = len(pattern)
    position = anchor - 1
    while position >= 0 and bits[position] == bits[position + every]:
        position -= 1
    if position >= 0:
        return position + 1, anchor, pattern
    # Before the first position, the first `left` bits repeat.
    for position in range(-1, -lcm(left, every) - 1, -1):
        later = position + every
        if bits[position % left] != (bits[later] if later >= 0 else bits[later % left]):
            return position + 1, anchor, pattern
    return None, anchor, pattern


def find_runs(start: int, bits: Iterable[int]) -> list[Pair]:
    """Return the maximal runs of set bits as intervals; the first bit is at time `start`."""
    runs: list[Pair] = []
    begin: int | None = None
    time = start
    for bit in bits:
        if bit:
            if begin is None:
                begin = time
        elif begin is not None:
            runs.append((begin, time - 1))
            begin = None
        time += 1
    if begin is not None:
        runs.append((begin, time - 1))
    return runs


@dataclass(frozen=True, slots=True)
class JointRepetition:
    """What several atoms have in common: from `at` on (or before it), all of them repeat with the period `every`.

    `pairs` are the intervals of each atom in the period that begins (or ends) at `at`.
    """

    at: int
    every: int
    pairs: tuple[tuple[Pair, ...], ...]


def find_repetition_after(tails: Sequence[PeriodicTail], lo: int) -> JointRepetition | None:
    """Return what repeats after the data; None where nothing holds there.

    It starts at the earliest time at which something holds; `lo` stands for the start where all time repeats.
    """
    if not any(tail.ever_holds for tail in tails):
        return None
    at = max(tail.at for tail in tails)
    at = lo if at == NEG_INF else at
    at += min(_delay_until(tail, at) for tail in tails if tail.ever_holds)
    every = lcm(*(tail.every for tail in tails))
    return JointRepetition(at, every, tuple(tuple(tail.within(at, at + every - 1)) for tail in tails))


def find_repetition_before(tails: Sequence[PeriodicTail], lo: int) -> JointRepetition | None:
    """Return what repeats before the data; None where nothing holds there.

    It ends at the latest time up to which something holds; `lo` stands for the end where all time repeats.
    """
    if not any(tail.ever_holds for tail in tails):
        return None
    at = min(tail.at for tail in tails)
    at = lo if at == POS_INF else at
    at -= min(_delay_since(tail, at) for tail in tails if tail.ever_holds)
    every = lcm(*(tail.every for tail in tails))
    return JointRepetition(at, every, tuple(tuple(tail.within(at - every, at - 1)) for tail in tails))


def _delay_until(tail: PeriodicTail, at: int) -> int:
    """Return how long after `at` the atom first holds."""
    return next(k for k in range(tail.every) if tail.holds(at + k))


def _delay_since(tail: PeriodicTail, at: int) -> int:
    """Return for how long before `at` the atom has not held."""
    return next(k for k in range(tail.every) if tail.holds(at - 1 - k))
