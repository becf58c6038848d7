"""Truth over time, cell by cell: a window of cells, and the operators over vectors of truth values.

**Cells.** Over the rationals, let a tick be one over the common denominator of all times in program and data. Time
falls into cells: cell 2n is the point n ticks, cell 2n+1 the open gap between n and n+1 ticks. Over the integers cell
n is the time n. Every formula is true throughout a cell or false throughout it. Data are so by choice of the tick;
for operators it follows by induction. Take `Diamondminus` with a range from a to b ticks at t. If t is the point n,
it looks at the interval from n-b to n-a, whose ends are ticks, so it meets a cell wholly or not at all. If t lies in
the gap after n, its look goes from somewhere inside the gap after n-b to somewhere inside the gap after n-a: which t
it was, and whether the range's brackets are open, makes no difference to the set of cells that are met. So an
operator sees a run of cells, `Scope.seen`, and a diamond is "some cell of the run", a box "every cell of the run".

**Since.** Some t' in the look with B at t', and A at all points strictly between t' and t. Take t' in cell k and t in
cell c. If t' = t nothing lies between, which needs 0 in the range (and k = c). Otherwise t' < t: the points between
meet every cell from k+1 to c-1, and k itself if it is a gap (t' is inside an open set), and likewise c if it is a gap.
They meet no other cell; over the integers k and c are never met. Whether t' can be chosen in cell k is just whether
the look meets k, and the cells that lie between do not depend on which t' in k was chosen.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tidelog.language.syntax import BinaryOp, UnaryOp
from tidelog.timeline.interval import INF, Interval

#: One byte per cell, 0 or 1: first all that lies left of the window, then its cells, then all that lies right of it.
Vector = bytes


def contains(interval: Interval, t: Fraction) -> bool:
    after = interval.lo < t or (interval.lo == t and interval.lo_closed)
    before = t < interval.hi or (t == interval.hi and interval.hi_closed)
    return after and before


@dataclass(frozen=True)
class Scope:
    """A window of cells `first` to `last`; over the rationals both are points."""

    first: int
    last: int
    #: One over the tick.
    denominator: int | Fraction = 1
    integer: bool = False

    @staticmethod
    def between(lo: int, hi: int, denominator: int | Fraction = 1, *, integer: bool = False) -> Scope:
        """The window of all times from lo to hi, both included."""
        if integer:
            return Scope(lo, hi, 1, True)
        return Scope(int(2 * lo * denominator), int(2 * hi * denominator), denominator)

    @property
    def cells(self) -> range:
        return range(self.first, self.last + 1)

    def is_gap(self, cell: int) -> bool:
        return not self.integer and cell % 2 == 1

    def time(self, cell: int) -> Fraction:
        """The point of a cell, or the middle of a gap."""
        return Fraction(cell) if self.integer else Fraction(cell, 2 * self.denominator)

    def index(self, cell: int) -> int:
        """Where a cell stands in a vector."""
        return min(max(cell - self.first + 1, 0), self.last - self.first + 2)

    def constant(self, value: bool) -> Vector:
        return bytes([value]) * (self.last - self.first + 3)

    def of_interval(self, interval: Interval, *, definite: bool) -> Vector:
        """The truth of a fact."""
        inside = bytes(contains(interval, t) for t in cell_times(self))
        lo, hi = self.time(self.first), self.time(self.last)
        if definite:
            left, right = interval.lo == -INF and interval.hi >= lo, interval.hi == INF and interval.lo <= hi
        else:
            left, right = interval.lo < lo, interval.hi > hi
        return bytes([left]) + inside + bytes([right])

    def seen(self, cell: int, range_: Interval, *, past: bool) -> tuple[float, float]:
        """The first and the last cell that an operator with this range looks at from the given cell."""
        if self.integer:
            low = math.ceil(range_.lo) if range_.lo_closed else math.floor(range_.lo) + 1
            high = INF if range_.hi == INF else math.floor(range_.hi) if range_.hi_closed else math.ceil(range_.hi) - 1
            return (cell - high, cell - low) if past else (cell + low, cell + high)
        near = int(2 * range_.lo * self.denominator)
        far = INF if range_.hi == INF else int(2 * range_.hi * self.denominator)
        if not self.is_gap(cell):
            near, far = near + (not range_.lo_closed), far - (not range_.hi_closed)
        return (cell - far, cell - near) if past else (cell + near, cell + far)

    def runs(self, vector: Vector) -> list[tuple[int, int]]:
        """The maximal runs of true cells inside the window, as first and last cell."""
        found = []
        for value, group in itertools.groupby(self.cells, lambda cell: vector[self.index(cell)]):
            if value:
                cells = list(group)
                found.append((cells[0], cells[-1]))
        return found

    def interval(self, first: int, last: int) -> Interval:
        """The interval that a run of cells covers."""
        lo, hi = first - self.is_gap(first), last + self.is_gap(last)
        return Interval(self.time(lo), self.time(hi), lo == first, hi == last)


@functools.lru_cache(maxsize=16)
def cell_times(scope: Scope) -> list[Fraction]:
    """The time of each cell of the window."""
    return [scope.time(cell) for cell in scope.cells]


def conjunction(a: Vector, b: Vector) -> Vector:
    return (int.from_bytes(a, "little") & int.from_bytes(b, "little")).to_bytes(len(a), "little")


def disjunction(a: Vector, b: Vector) -> Vector:
    return (int.from_bytes(a, "little") | int.from_bytes(b, "little")).to_bytes(len(a), "little")


def negation(a: Vector) -> Vector:
    return bytes(1 - value for value in a)


@dataclass(frozen=True)
class Beyond:
    """A vector continued beyond the window's edges with what is known of the outside, addressed by cell.

    `margin` cells on each side are where an operator is evaluated, twice as many are there to be looked at.
    """

    scope: Scope
    margin: int

    @property
    def cells(self) -> range:
        return range(self.scope.first - self.margin, self.scope.last + self.margin + 1)

    def spread(self, vector: Vector) -> bytes:
        pad = 2 * self.margin
        return vector[:1] * pad + vector[1:-1] + vector[-1:] * pad

    def position(self, cell: float) -> int:
        """Where a cell stands in a spread vector; infinities are its ends."""
        last = self.scope.last - self.scope.first + 4 * self.margin
        if abs(cell) == INF:
            return 0 if cell < 0 else last
        position = int(cell) - self.scope.first + 2 * self.margin
        assert 0 <= position <= last
        return position

    def gather(self, values: Sequence[bool], *, definite: bool) -> Vector:
        """Back to a vector over the window, the cells beyond each edge taken together."""
        together = all if definite else any
        left, right = values[: self.margin], values[-self.margin :]
        return bytes([together(left), *values[self.margin : -self.margin], together(right)])


def beyond(scope: Scope, range_: Interval) -> Beyond:
    finite = [t for t in (range_.lo, range_.hi) if t != INF]
    return Beyond(scope, 2 * math.ceil(max(finite) * scope.denominator) + 4)


@functools.lru_cache(maxsize=4096)
def some_or_every(scope: Scope, op: UnaryOp, range_: Interval, vector: Vector, *, definite: bool) -> Vector:
    """A diamond or a box, cell by cell."""
    around = beyond(scope, range_)
    spread = around.spread(vector)
    past = op in (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS)
    diamond = op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS)
    values = []
    for cell in around.cells:
        first, last = scope.seen(cell, range_, past=past)
        look = spread[around.position(first) : around.position(last) + 1] if first <= last else b""
        values.append(1 in look if diamond else 0 not in look)
    return around.gather(values, definite=definite)


@functools.lru_cache(maxsize=4096)
def since_or_until(
    scope: Scope, op: BinaryOp, range_: Interval, left: Vector, right: Vector, *, definite: bool
) -> Vector:
    """Since or Until, cell by cell.

    Of the cells in the look where the right operand holds only the one nearest to t is tried: the points between it
    and t are fewest.
    """
    around = beyond(scope, range_)
    a, b = around.spread(left), around.spread(right)
    past = op is BinaryOp.SINCE
    at_once = contains(range_, Fraction(0))
    values = []
    for cell in around.cells:
        here = around.position(cell)
        first, last = scope.seen(cell, range_, past=past)
        value = bool(at_once and b[here])
        if not value and first <= last:
            start, stop = around.position(first), around.position(last) + 1
            there = b.rfind(1, start, stop) if past else b.find(1, start, stop)
            if there >= 0:
                earlier, later = min(here, there), max(here, there)
                # A spread vector begins at a cell of the parity of `first`, which is even where there are gaps.
                begin = earlier if not scope.integer and earlier % 2 == 1 else earlier + 1
                end = later if not scope.integer and later % 2 == 1 else later - 1
                value = 0 not in a[begin : end + 1]
        values.append(value)
    return around.gather(values, definite=definite)
