"""Intervals as users write them, with exact rational ends that are open, closed or infinite.

The engines work on integer grids instead (`tidelog.timeline.grid`); intervals are for input and output.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

#: A time is a rational number; the only floats are the two infinities.
Time = Fraction | float

INF = float("inf")

#: The two timelines: time points are all rationals, or the integers.
TimelineName = Literal["rational", "integer"]

#: A time up to which something is known, and whether that time is included.
Bound = tuple[Time, bool]

#: The words of a `closed` column or key, with whether the left and the right end belong to the interval.
CLOSED_ENDS: dict[str, tuple[bool, bool]] = {
    "both": (True, True),
    "left": (True, False),
    "right": (False, True),
    "neither": (False, False),
}
_CLOSED_WORDS = {ends: word for word, ends in CLOSED_ENDS.items()}


@dataclass(frozen=True, slots=True)
class Interval:
    """A non-empty interval of the rational line. Infinite ends are open.

    >>> str(Interval(Fraction(0), Fraction(3), True, False))
    '[0,3)'
    >>> str(Interval.point(Fraction(1, 2)))
    '1/2'
    """

    lo: Time
    hi: Time
    lo_closed: bool = True
    hi_closed: bool = True

    @staticmethod
    def point(t: Fraction) -> Interval:
        """Return the interval of a single time point."""
        return Interval(t, t)

    @staticmethod
    def always() -> Interval:
        """Return the interval of all times."""
        return Interval(-INF, INF, False, False)

    def is_empty(self) -> bool:
        """Return whether no time is inside; only ends that were never checked give such an interval."""
        return self.lo > self.hi or (self.lo == self.hi and not (self.lo_closed and self.hi_closed))

    def is_point(self) -> bool:
        """Return whether the interval is a single time point."""
        return self.lo == self.hi

    @property
    def closed(self) -> str:
        """Which ends belong to the interval: `both`, `left`, `right` or `neither`."""
        return _CLOSED_WORDS[self.lo_closed, self.hi_closed]

    def __str__(self) -> str:
        if self.is_point():
            return format_time(self.lo)
        return self.with_brackets()

    def with_brackets(self) -> str:
        """Format the interval with brackets even if it is a single point, as in the ranges of operators."""
        left, right = "[" if self.lo_closed else "(", "]" if self.hi_closed else ")"
        return f"{left}{format_time(self.lo)},{format_time(self.hi)}{right}"


def format_time(t: Time) -> str:
    """Format a time as an integer, a reduced fraction, `inf` or `-inf`."""
    return str(t)


def read_time(text: str) -> Time:
    """Read a time that `format_time` wrote."""
    return {"inf": INF, "-inf": -INF}.get(text) or Fraction(text)
