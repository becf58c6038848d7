"""Intervals as users write them: exact rational ends, each open or closed, or infinite.

The engine works on integer grids instead (`timeline.grid`); this type is the edge of the system.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

#: A time is a rational number; the only floats are the two infinities.
Time = Fraction | float

INF = float("inf")


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
        return Interval(t, t)

    @staticmethod
    def always() -> Interval:
        return Interval(-INF, INF, False, False)

    def is_empty(self) -> bool:
        return self.lo > self.hi or (self.lo == self.hi and not (self.lo_closed and self.hi_closed))

    def is_point(self) -> bool:
        return self.lo == self.hi

    def __str__(self) -> str:
        if self.is_point():
            return format_time(self.lo)
        return self.bracketed()

    def bracketed(self) -> str:
        """With brackets even for a single point, as operators are written."""
        left, right = "[" if self.lo_closed else "(", "]" if self.hi_closed else ")"
        return f"{left}{format_time(self.lo)},{format_time(self.hi)}{right}"


def format_time(t: Time) -> str:
    """Integers and reduced fractions; `inf` and `-inf`."""
    return str(t)


def read_time(text: str) -> Time:
    """A time as `format_time` writes it."""
    return {"inf": INF, "-inf": -INF}.get(text) or Fraction(text)
