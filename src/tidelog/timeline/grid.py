"""Time inside: integers on a grid of ticks.

A tick is `1/denominator`. On the rational timeline endpoints live on the doubled grid: time n (in ticks) is 2n, the
open gap after it 2n+1, so every interval is a closed pair of integers: `[0,3)` is (0, 5). On the integer timeline
there are no gaps and time n is n. Infinite ends are sentinels far outside of what a finite end may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from tidelog.errors import Diagnostic, TidelogError
from tidelog.timeline.interval import INF, Interval, Time

POS_INF = 1 << 62
NEG_INF = -POS_INF
#: Finite ends stay below this, so that no sum of an end and a range can overflow or meet a sentinel.
LIMIT = 1 << 61


@dataclass(frozen=True, slots=True)
class Grid:
    """A timeline (`dense` for the rationals) with ticks of `1/denominator`."""

    dense: bool
    denominator: int = 1

    def __post_init__(self) -> None:
        if self.denominator >= LIMIT // 2:
            raise leaves_63_bits(f"a step of 1/{self.denominator}")

    @property
    def timeline(self) -> str:
        return "rational" if self.dense else "integer"

    @property
    def tick(self) -> int:
        """The grid distance between two neighbouring time points."""
        return 2 if self.dense else 1

    def pair(self, interval: Interval) -> tuple[int, int] | None:
        """The closed grid pair of an interval, or None where it holds no point of the integer timeline."""
        lo, hi = self._left(interval.lo, interval.lo_closed), self._right(interval.hi, interval.hi_closed)
        return (lo, hi) if lo <= hi else None

    def interval(self, lo: int, hi: int) -> Interval:
        """The interval of a grid pair."""
        if not self.dense:
            return Interval(self._time(lo), self._time(hi), lo != NEG_INF, hi != POS_INF)
        lo_open, hi_open = lo == NEG_INF or bool(lo & 1), hi == POS_INF or bool(hi & 1)
        left = -INF if lo == NEG_INF else Fraction(lo // 2, self.denominator)
        right = INF if hi == POS_INF else Fraction((hi + 1) // 2, self.denominator)
        return Interval(left, right, not lo_open, not hi_open)

    def time(self, at: int) -> Fraction:
        """The time of a grid position; of a gap, the point at its left."""
        return Fraction(at // self.tick, self.denominator)

    def _time(self, at: int) -> Time:
        if at in (NEG_INF, POS_INF):
            return INF if at > 0 else -INF
        return Fraction(at)

    def _left(self, end: Time, closed: bool) -> int:
        if isinstance(end, float):
            return NEG_INF
        ticks = end * self.denominator
        if self.dense:
            return _bounded(2 * _whole(ticks) + (0 if closed else 1), end)
        return _bounded(ceil(ticks) if closed or ticks.denominator > 1 else int(ticks) + 1, end)

    def _right(self, end: Time, closed: bool) -> int:
        if isinstance(end, float):
            return POS_INF
        ticks = end * self.denominator
        if self.dense:
            return _bounded(2 * _whole(ticks) - (0 if closed else 1), end)
        return _bounded(floor(ticks) if closed or ticks.denominator > 1 else int(ticks) - 1, end)


def _whole(ticks: Fraction) -> int:
    assert ticks.denominator == 1, "the grid is finer than every time on it"
    return ticks.numerator


def _bounded(at: int, end: Time) -> int:
    if -LIMIT < at < LIMIT:
        return at
    raise leaves_63_bits(f"the time {end}")


def leaves_63_bits(what: str) -> TidelogError:
    return TidelogError(
        Diagnostic(
            "TL204",
            f"{what} leaves 63 bits",
            law="times are whole numbers of ticks (the common denominator of program and data) below 2^60",
            help="use fewer decimal places, or times closer to 0",
        )
    )


def negated(pair: tuple[int, int]) -> tuple[int, int]:
    """The range mirrored at 0: a look into the future is a look at a negative distance into the past."""
    lo, hi = pair
    return -hi, -lo


def added(a: tuple[int, int], b: tuple[int, int], dense: bool) -> tuple[int, int]:
    """The Minkowski sum of two grid pairs."""
    lo, hi = add_left(a[0], b[0], dense), add_right(a[1], b[1], dense)
    if (lo != NEG_INF and abs(lo) >= LIMIT) or (hi != POS_INF and abs(hi) >= LIMIT):
        raise leaves_63_bits("the sum of two ranges")
    return lo, hi


def add_left(x: int, r: int, dense: bool) -> int:
    """Sum of two left ends: open as soon as one of them is."""
    if x == NEG_INF or r == NEG_INF:
        return NEG_INF
    return x + r - (x & r & 1 if dense else 0)


def add_right(x: int, r: int, dense: bool) -> int:
    """Sum of two right ends: open as soon as one of them is."""
    if x == POS_INF or r == POS_INF:
        return POS_INF
    return x + r + (x & r & 1 if dense else 0)


def erode_left(x: int, r: int, dense: bool) -> int:
    """Left end of the times t with t - range inside an interval: its left end `x`, `r` the range's right end.

    Beyond infinity where there is no such time.
    """
    if x == NEG_INF:
        return NEG_INF
    if r == POS_INF:
        return POS_INF + 1
    return x + r + (r & ~x & 1 if dense else 0)


def erode_right(x: int, r: int, dense: bool) -> int:
    """Right end of the times t with t - range inside an interval: its right end `x`, `r` the range's left end."""
    if x == POS_INF:
        return POS_INF
    if r == NEG_INF:
        return NEG_INF - 1
    return x + r - (r & ~x & 1 if dense else 0)


def since(a_lo: int, a_hi: int, b_lo: int, b_hi: int, r_lo: int, r_hi: int, dense: bool) -> tuple[int, int]:
    """Times t > t' with t' in b, t - t' in r, and all points strictly between inside a; empty if lo > hi.

    Such t and t' lie in the closure of a (on the integers: a widened by one), and then everything between is in a.
    That b alone is enough where 0 is in r is not covered here: it does not need a.
    """
    if dense:
        left = a_lo - (a_lo & 1) if a_lo != NEG_INF else a_lo
        right = a_hi + (a_hi & 1) if a_hi != POS_INF else a_hi
    else:
        left = a_lo - 1 if a_lo != NEG_INF else a_lo
        right = a_hi + 1 if a_hi != POS_INF else a_hi
    from_lo, from_hi = max(left, b_lo), min(right, b_hi)
    r_lo = max(r_lo, 1)
    if from_lo > from_hi or r_lo > r_hi:
        return 0, -1
    # Written out, not by calls, so that the engine can compile this function as it stands.
    lo = from_lo + r_lo - (from_lo & r_lo & 1 if dense else 0) if from_lo != NEG_INF else NEG_INF
    if from_hi == POS_INF or r_hi == POS_INF:
        return max(lo, left), right
    return max(lo, left), min(from_hi + r_hi + (from_hi & r_hi & 1 if dense else 0), right)


def until(a_lo: int, a_hi: int, b_lo: int, b_hi: int, r_lo: int, r_hi: int, dense: bool) -> tuple[int, int]:
    """Mirror image of `since`; the range is given as for `Until`, not negated."""
    lo, hi = since(-a_hi, -a_lo, -b_hi, -b_lo, r_lo, r_hi, dense)
    return -hi, -lo
