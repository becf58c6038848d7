"""Values of an aggregate over the rows of one group, as functions of time, by the definitions.

The engine computes aggregates for all groups at once; a proof looks at one group, around the times of one fact.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from tidelog.language.comparisons import compare, constant_order
from tidelog.language.syntax import Aggregate, AggregateFunction, Value
from tidelog.proofs.encoded_rules import EncodedAggregate, shift_range
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, Grid, negate
from tidelog.timeline.time_sets import Pair, Times, coalesce, dilate, intersect

#: A part of time, and the aggregate's value in it; None where it has none.
Piece = tuple[Pair, Value | None]
_Key = tuple[bool, Fraction | int, str]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of an aggregate and an interval in which it holds, the times at which it counts, and its values.

    There are no values where an operation in them is undefined.
    """

    binding: dict[str, int]
    pair: Pair
    counts: Pair
    values: tuple[Value, ...] | None


# Windows


def find_row_window(aggregate: EncodedAggregate, window: Pair, dense: bool) -> Pair:
    """Return the times at which rows matter for the values in a window; starts lie strictly inside of it."""
    if aggregate.source.function is AggregateFunction.START:
        return NEG_INF, window[1]
    if aggregate.range is None:
        return window
    lo, hi = shift_range(window, negate(aggregate.range), dense)
    return (lo if lo == NEG_INF else lo - 3), (hi if hi == POS_INF else hi + 3)


def find_counted(aggregate: EncodedAggregate, pair: Pair, search: Pair, dense: bool) -> Pair | None:
    """Return when a row that holds in a pair counts; None if it never does, or has no start.

    `search` is where rows were looked for: what begins at its left end began earlier.
    """
    range_ = aggregate.range
    if range_ is None or aggregate.source.function is AggregateFunction.DURATION:
        return pair
    start, (least, most) = pair[0], range_
    if start <= search[0] or least > most:
        return None
    if not dense or not start & 1:
        return start + least, min(start + most, POS_INF)
    # An open start counts as the moment right after it, whatever the brackets of the range.
    lo, hi = start + least - (least & 1), (start - 1 + most + (most & 1) if most < LIMIT else POS_INF)
    return (lo, hi) if lo <= hi else None


# Values that change in steps


@dataclass
class Tally:
    """What counts at one time. Rows are added and removed one by one."""

    aggregate: Aggregate
    needs_row: bool
    rows: int = 0
    counted: Counter[tuple[Value, ...] | None] = field(default_factory=Counter)
    total: Fraction = Fraction(0)
    numbers: int = 0
    #: For `min` and `max` the values, for `last` and `first` with the starts before them, in order.
    ordered: list[tuple[int, _Key]] = field(default_factory=list)

    def change(self, row: Row, by: int) -> None:
        """Add a row (1) or remove it (-1)."""
        self.rows += by
        values = row.values
        before = self.counted[values]
        self.counted[values] = before + by
        if values is None or (self.aggregate.distinct and min(before, before + by) > 0):
            return
        function = self.aggregate.function
        if function in (AggregateFunction.SUM, AggregateFunction.AVG):
            if not isinstance(values[0], str):
                self.total += by * values[0]
                self.numbers += by
        elif function is not AggregateFunction.COUNT:
            timed = function in (AggregateFunction.LAST, AggregateFunction.FIRST)
            entry = (row.pair[0] if timed else 0), constant_order(values[0])
            if by > 0:
                insort(self.ordered, entry)
            else:
                del self.ordered[bisect_left(self.ordered, entry)]

    def value(self) -> Value | None:
        """Return the value of the aggregate; None if it has none."""
        if self.needs_row and not self.rows:
            return None
        match self.aggregate.function:
            case AggregateFunction.COUNT if self.aggregate.distinct:
                return Fraction(sum(1 for values, times in self.counted.items() if times and values is not None))
            case AggregateFunction.COUNT:
                return Fraction(self.rows)
            case AggregateFunction.SUM:
                return self.total
            case AggregateFunction.AVG:
                return self.total / self.numbers if self.numbers else None
        if not self.ordered:
            return None
        match self.aggregate.function:
            case AggregateFunction.MIN:
                return _value_of(self.ordered[0][1])
            case AggregateFunction.FIRST:
                earliest = self.ordered[0][0]
                return _value_of(self.ordered[bisect_right(self.ordered, earliest, key=lambda e: e[0]) - 1][1])
        return _value_of(self.ordered[-1][1])


def _value_of(key: _Key) -> Value:
    return key[2] if key[0] else Fraction(key[1])


def find_pieces(aggregate: EncodedAggregate, rows: Sequence[Row], window: Pair, grid: Grid) -> list[Piece]:
    """Return the values of an aggregate in all parts of a window."""
    if aggregate.source.function is AggregateFunction.START:
        return _merge(_find_starts(rows, window, grid))
    changes: list[tuple[int, int, Row]] = []
    for row in rows:
        for lo, hi in intersect([row.counts], [window]):
            changes += [(lo, 1, row), (hi + 1, -1, row)]
    changes.sort(key=lambda change: change[0])
    tally = Tally(aggregate.source, aggregate.needs_row)
    pieces: list[Piece] = []
    at = window[0]
    for position, by, row in changes:
        if position > at:
            pieces.append(((at, min(position - 1, window[1])), tally.value()))
            at = position
        tally.change(row, by)
    if at <= window[1]:
        pieces.append(((at, window[1]), tally.value()))
    return _merge(pieces)


def _find_starts(rows: Iterable[Row], window: Pair, grid: Grid) -> Iterator[Piece]:
    """Yield the starts of what holds, and None between."""
    at = window[0]
    for lo, hi in intersect(coalesce(row.pair for row in rows), [(NEG_INF, window[1])]):
        if hi < at:
            continue
        if lo > at:
            yield (at, lo - 1), None
        yield (max(lo, at), hi), (None if lo == NEG_INF else grid.to_time(lo))
        at = hi + 1
    if at <= window[1]:
        yield (at, window[1]), None


def _merge(pieces: Iterable[Piece]) -> list[Piece]:
    merged: list[Piece] = []
    for pair, value in pieces:
        if merged and merged[-1][1] == value:
            merged[-1] = (merged[-1][0][0], pair[1]), value
        else:
            merged.append((pair, value))
    return merged


# Durations


@dataclass(frozen=True, slots=True)
class Duration:
    """How long something holds within a window that moves with time, in ticks.

    Between two of its `bends` it runs straight. On the integers it counts points: as long as the units after them.
    """

    #: The spans of time in which it holds, in ticks, and the ends of the range.
    spans: tuple[tuple[int, int], ...]
    near: int
    far: int
    grid: Grid

    @staticmethod
    def of(held: Sequence[Pair], range_: Pair, grid: Grid) -> Duration:
        if grid.dense:
            spans = tuple((lo >> 1, (hi + 1) >> 1) for lo, hi in held)
            return Duration(spans, range_[0] >> 1, (range_[1] + 1) >> 1, grid)
        return Duration(tuple((lo, hi + 1) for lo, hi in held), range_[0] - 1, range_[1], grid)

    def at(self, tick: Fraction) -> Fraction:
        """Return the duration at a time."""
        first, last = tick - self.far, tick - self.near
        found = Fraction(0)
        for lo, hi in self.spans:
            end = last if last < hi else Fraction(hi)
            found += max(Fraction(0), end - max(first, Fraction(lo)))
        return found / self.grid.denominator

    def extremes(self, when: Pair) -> tuple[Fraction, Fraction]:
        """Return the least and the greatest duration in a range of times; at the ends of gaps, what it comes near."""
        tick = self.grid.tick
        lo, hi = max(when[0], -LIMIT // 2) // tick, -(-min(when[1], LIMIT // 2) // tick)
        inside = [t for t in (lo, hi, *self._bends()) if lo <= t <= hi]
        found = [self.at(Fraction(t)) for t in inside]
        return min(found), max(found)

    def _bends(self) -> list[int]:
        bends = {end + back for span in self.spans for end in span for back in (self.near, self.far)}
        return sorted(bend for bend in bends if abs(bend) < LIMIT // 2)

    def times(self, op: str, value: Value) -> Times:
        """Return the times at which a comparison of the duration with a value holds."""
        bends = self._bends() or [0]
        stops = set(map(Fraction, bends))
        if not isinstance(value, str):
            for one, other in pairwise(bends):
                first, last = self.at(Fraction(one)), self.at(Fraction(other))
                if min(first, last) < value < max(first, last):
                    stops.add(one + (value - first) / (last - first) * (other - one))
        found: list[Pair] = []
        ordered = sorted(stops)
        for place, stop in enumerate(ordered):
            following = ordered[place + 1] if place + 1 < len(ordered) else None
            if place == 0 and compare(op, self.at(stop - 1), value):
                found.append((NEG_INF, self._right_end(stop)))
            if compare(op, self.at(stop), value) and stop.denominator == 1:
                found.append((int(stop) * self.grid.tick, int(stop) * self.grid.tick))
            middle = stop + 1 if following is None else (stop + following) / 2
            if compare(op, self.at(middle), value):
                found.append((self._left_end(stop), POS_INF if following is None else self._right_end(following)))
        return coalesce((lo, hi) for lo, hi in found if lo <= hi)

    def _left_end(self, stop: Fraction) -> int:
        """Return the first position right of a time; of a gap that contains the time, no part is taken."""
        whole = stop.numerator // stop.denominator
        if stop.denominator != 1:
            return (whole + 1) * self.grid.tick
        return whole * self.grid.tick + 1

    def _right_end(self, stop: Fraction) -> int:
        whole = stop.numerator // stop.denominator
        return whole * self.grid.tick - (1 if stop.denominator == 1 else 0)


def find_held(rows: Iterable[Row]) -> Times:
    """Return when some row holds."""
    return coalesce(row.pair for row in rows)


def find_duration_times(aggregate: EncodedAggregate, rows: Iterable[Row], op: str, value: Value, grid: Grid) -> Times:
    """Return when a duration compares to a value as an operator says."""
    held = find_held(rows)
    assert aggregate.range is not None
    if aggregate.range[0] > aggregate.range[1]:
        zero = [(NEG_INF, POS_INF)] if compare(op, Fraction(0), value) else []
        return [] if aggregate.needs_row else zero
    times = Duration.of(held, aggregate.range, grid).times(op, value)
    return intersect(times, dilate(held, aggregate.range, grid.dense)) if aggregate.needs_row else times
