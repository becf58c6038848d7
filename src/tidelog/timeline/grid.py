"""The time of the engines: integers on a grid of ticks.

A tick is `1/denominator`. On the rational timeline ends are on the doubled grid: time n (in ticks) is 2n, and the open
gap after it is 2n+1. So every interval is a closed pair of integers: `[0,3)` is (0, 5). On the integer timeline there
are no gaps, and time n is n. Infinite ends are sentinels far outside the range of finite ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.timeline.interval import INF, Interval, Time, TimelineName

POS_INF = 1 << 62
NEG_INF = -POS_INF
#: Finite ends stay below this, so that no sum of an end and a range can overflow or meet a sentinel.
LIMIT = 1 << 61
#: The end of an interval that stands: it holds up to where rules have been evaluated, whatever that is by now.
STANDING_END = LIMIT


@dataclass(frozen=True, slots=True)
class Grid:
    """A timeline (`dense` for the rationals) with ticks of `1/denominator`."""

    dense: bool
    denominator: int = 1

    def __post_init__(self) -> None:
        if self.denominator >= LIMIT // 2:
            raise time_overflow(f"a step of 1/{self.denominator}")

    @property
    def timeline(self) -> TimelineName:
        return "rational" if self.dense else "integer"

    @property
    def tick(self) -> int:
        """The grid distance between two neighbouring time points."""
        return 2 if self.dense else 1

    def to_pair(self, interval: Interval) -> tuple[int, int] | None:
        """Convert an interval to its closed pair, or to None if it has no point of the integer timeline."""
        lo, hi = self._left(interval.lo, interval.lo_closed), self._right(interval.hi, interval.hi_closed)
        return (lo, hi) if lo <= hi else None

    def to_interval(self, lo: int, hi: int) -> Interval:
        """Convert a pair to its interval."""
        if not self.dense:
            return Interval(self._time(lo), self._time(hi), lo != NEG_INF, hi != POS_INF)
        lo_open, hi_open = lo == NEG_INF or bool(lo & 1), hi == POS_INF or bool(hi & 1)
        left = -INF if lo == NEG_INF else Fraction(lo // 2, self.denominator)
        right = INF if hi == POS_INF else Fraction((hi + 1) // 2, self.denominator)
        return Interval(left, right, not lo_open, not hi_open)

    def to_time(self, at: int) -> Fraction:
        """Convert a grid position to its time; a gap becomes the point to its left."""
        ticks = at // self.tick
        # A whole number needs no greatest common divisor.
        return Fraction(ticks) if self.denominator == 1 else Fraction(ticks, self.denominator)

    def _time(self, at: int) -> Time:
        if at in (NEG_INF, POS_INF):
            return INF if at > 0 else -INF
        return Fraction(at)

    def _left(self, end: Time, closed: bool) -> int:
        if isinstance(end, float):
            return NEG_INF
        ticks = end * self.denominator
        if self.dense:
            return _require_in_range(2 * _whole(ticks) + (0 if closed else 1), end)
        return _require_in_range(ceil(ticks) if closed or ticks.denominator > 1 else int(ticks) + 1, end)

    def _right(self, end: Time, closed: bool) -> int:
        if isinstance(end, float):
            return POS_INF
        ticks = end * self.denominator
        if self.dense:
            return _require_in_range(2 * _whole(ticks) - (0 if closed else 1), end)
        return _require_in_range(floor(ticks) if closed or ticks.denominator > 1 else int(ticks) - 1, end)


def _whole(ticks: Fraction) -> int:
    assert ticks.denominator == 1, "the grid is finer than every time on it"
    return ticks.numerator


def _require_in_range(at: int, end: Time) -> int:
    if -LIMIT < at < LIMIT:
        return at
    raise time_overflow(f"the time {end}")


def time_overflow(what: str, place: Place | None = None) -> TidelogError:
    """Build the error for a time, or a time step, that does not fit on the grid."""
    return TidelogError(Diagnostic("TL204", f"{what} does not fit into 63 bits", place))


def negate(pair: tuple[int, int]) -> tuple[int, int]:
    """Mirror a range at 0: looking into the future is looking a negative distance into the past."""
    lo, hi = pair
    return -hi, -lo


def add_pairs(a: tuple[int, int], b: tuple[int, int], dense: bool) -> tuple[int, int]:
    """Return the Minkowski sum of two pairs."""
    lo, hi = add_left(a[0], b[0], dense), add_right(a[1], b[1], dense)
    if (lo != NEG_INF and abs(lo) >= LIMIT) or (hi != POS_INF and abs(hi) >= LIMIT):
        raise time_overflow("the sum of two ranges")
    return lo, hi


def add_left(x: int, r: int, dense: bool) -> int:
    """Add two left ends; the sum is open if one of them is."""
    if x == NEG_INF or r == NEG_INF:
        return NEG_INF
    return x + r - (x & r & 1 if dense else 0)


def add_right(x: int, r: int, dense: bool) -> int:
    """Add two right ends; the sum is open if one of them is."""
    if x == POS_INF or r == POS_INF:
        return POS_INF
    return x + r + (x & r & 1 if dense else 0)


def erode_left(x: int, r: int, dense: bool) -> int:
    """Return the left end of the times t with t - range inside an interval.

    `x` is the left end of the interval, `r` the right end of the range. The result is beyond infinity if there is no
    such time.
    """
    if x == NEG_INF:
        return NEG_INF
    if r == POS_INF:
        return POS_INF + 1
    return x + r + (r & ~x & 1 if dense else 0)


def erode_right(x: int, r: int, dense: bool) -> int:
    """Return the right end of the times t with t - range inside an interval.

    `x` is the right end of the interval, `r` the left end of the range.
    """
    if x == POS_INF:
        return POS_INF
    if r == NEG_INF:
        return NEG_INF - 1
    return x + r - (r & ~x & 1 if dense else 0)


def since(a_lo: int, a_hi: int, b_lo: int, b_hi: int, r_lo: int, r_hi: int, dense: bool) -> tuple[int, int]:
    """Return the times t > t' with t' in b, t - t' in r, and all points strictly between them in a; empty if lo > hi.

    Such t and t' lie in the closure of a (on the integers: a widened by one), and then everything between is in a.
    Where b alone is enough (0 in r; on the integers also 1), a is not needed: `compiler.flatten` adds a rule for that.
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
    # Written out without calls, so that the engine can compile this function as it is.
    lo = from_lo + r_lo - (from_lo & r_lo & 1 if dense else 0) if from_lo != NEG_INF else NEG_INF
    if from_hi == POS_INF or r_hi == POS_INF:
        return max(lo, left), right
    return max(lo, left), min(from_hi + r_hi + (from_hi & r_hi & 1 if dense else 0), right)


def until(a_lo: int, a_hi: int, b_lo: int, b_hi: int, r_lo: int, r_hi: int, dense: bool) -> tuple[int, int]:
    """Return the mirror image of `since`; the range is that of `Until`, not negated."""
    lo, hi = since(-a_hi, -a_lo, -b_hi, -b_lo, r_lo, r_hi, dense)
    return -hi, -lo
