"""Convert times and durations from every type that the Python API takes to exact rationals.

A time is a number, text (`"3/2"`, `"10min"`, `"2026-01-31T10:00:00Z"`), a `datetime` or `date`, a pandas `Timestamp` or
a numpy `datetime64`. Dates count seconds since 1970-01-01 UTC, and a date-time without a time zone is in UTC. Nothing
is rounded: nanoseconds stay nanoseconds. This module imports neither pandas nor numpy.
"""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.time_text import parse_time, read_infinity, read_number
from tidelog.timeline.interval import INF, Time

if TYPE_CHECKING:
    import numpy as np

    #: A point in time; floats are for the infinities.
    TimeLike = Fraction | int | float | Decimal | str | date | np.datetime64
    #: A length of time that is not negative.
    DurationLike = Fraction | int | float | Decimal | str | timedelta | np.timedelta64
else:
    TimeLike = Fraction | int | float | Decimal | str | date
    DurationLike = Fraction | int | float | Decimal | str | timedelta

_TYPES = "int, Fraction, str, datetime, pandas.Timestamp or numpy.datetime64"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

#: Seconds per unit of a numpy datetime64 or timedelta64. Years and months have no fixed length.
_NUMPY_UNITS = {
    "W": Fraction(604800),
    "D": Fraction(86400),
    "h": Fraction(3600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
    "ps": Fraction(1, 10**12),
    "fs": Fraction(1, 10**15),
    "as": Fraction(1, 10**18),
}


def to_time(value: TimeLike) -> Time:
    """Convert a time of any accepted type to an exact rational, or to an infinity.

    >>> to_time("1970-01-02"), to_time(datetime(1970, 1, 1, 0, 0, 1, 500000)), to_time(3)
    (Fraction(86400, 1), Fraction(3, 2), Fraction(3, 1))
    """
    return to_dated_time(value)[0]


def to_dated_time(value: TimeLike) -> tuple[Time, bool]:
    """Convert a time as `to_time` does, and tell whether it was a date, so that answers can be printed as dates.

    >>> to_dated_time(date(1970, 1, 2))
    (Fraction(86400, 1), True)
    """
    if type(value) is int:  # the quick way for the clocks of streams
        return Fraction(value), False
    if isinstance(value, str):
        return parse_time(value)
    seconds = _seconds_since_epoch(value)
    if seconds is not None:
        return seconds, True
    if isinstance(value, float) and value in (INF, -INF):
        return value, False
    number = _number(value)
    if number is None:
        raise TidelogError(Diagnostic("TL202", f"{value!r} is not a time", help=f"pass {_TYPES}"))
    return number, False


def to_finite_time(value: TimeLike) -> Fraction:
    """Convert a time as `to_time` does; raise if it is infinite."""
    time = to_time(value)
    if isinstance(time, float):
        raise TidelogError(Diagnostic("TL202", f"a finite time is needed here, not {time}"))
    return time


def to_integer_time(value: TimeLike) -> int:
    """Convert a time to an integer; raise if it lies between two integers or is infinite.

    >>> to_integer_time(datetime(1970, 1, 1, 0, 1))
    60
    """
    if type(value) is int:
        return value
    time = to_time(value)
    if isinstance(time, float) or time.denominator != 1:
        raise TidelogError(
            Diagnostic("TL325", f"the clock must be an integer, not {time}", help="round it to a whole number")
        )
    return int(time)


def to_duration(value: DurationLike) -> Fraction:
    """Convert a length of time to exact seconds.

    >>> to_duration("10min"), to_duration(timedelta(milliseconds=500)), to_duration(5)
    (Fraction(600, 1), Fraction(1, 2), Fraction(5, 1))
    """
    number = read_number(value, units=True) if isinstance(value, str) else _length_in_seconds(value)
    if number is None or number < 0:
        raise TidelogError(Diagnostic("TL307", f"`{value}` is not a length of time"))
    return number


def to_retention(value: DurationLike) -> Time:
    """Convert a length of time, which may also be infinite: `"inf"` keeps everything.

    >>> to_retention("inf"), to_retention("1h")
    (inf, Fraction(3600, 1))
    """
    infinite = value == INF or (isinstance(value, str) and read_infinity(value) == INF)
    return INF if infinite else to_duration(value)


def _number(value: object) -> Fraction | None:
    """Return the value of a finite number of any type; None for anything else."""
    if isinstance(value, Integral) and not _is_numpy(value, "timedelta64"):
        return Fraction(int(value))  # numpy's integers too: they must not end up inside fractions
    if isinstance(value, Fraction | float | Decimal):
        try:
            return Fraction(value)
        except (ValueError, OverflowError):
            return None
    return None


def _seconds_since_epoch(value: object) -> Fraction | None:
    if isinstance(value, datetime):
        if value != value:  # pandas' NaT is a datetime
            return None
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        plain = datetime(*moment.timetuple()[:6], moment.microsecond, tzinfo=UTC) - (moment.utcoffset() or timedelta())
        return Fraction((plain - _EPOCH) // _MICROSECOND, 10**6) + _nanoseconds(value)
    if isinstance(value, date):
        return Fraction((value - _EPOCH.date()).days * 86400)
    return _numpy_seconds(value) if _is_numpy(value, "datetime64") else None


def _length_in_seconds(value: object) -> Fraction | None:
    if isinstance(value, timedelta):
        return None if value != value else Fraction(value // _MICROSECOND, 10**6) + _nanoseconds(value)
    return _numpy_seconds(value) if _is_numpy(value, "timedelta64") else _number(value)


def _is_numpy(value: object, kind: Literal["datetime64", "timedelta64"]) -> bool:
    """Return whether a value is of a numpy type, which it can only be where numpy has been imported."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, getattr(numpy, kind))


def _numpy_seconds(value: Any) -> Fraction | None:
    import numpy

    if value.dtype.kind == "M" and numpy.datetime_data(value.dtype)[0] in ("Y", "M"):
        value = value.astype("datetime64[D]")
    unit, count = numpy.datetime_data(value.dtype)
    if numpy.isnat(value) or unit not in _NUMPY_UNITS:
        return None
    return int(value.astype("int64")) * count * _NUMPY_UNITS[unit]


def _nanoseconds(value: object) -> Fraction:
    """Return the part of a pandas Timestamp or Timedelta that microseconds do not show."""
    return Fraction(int(getattr(value, "nanosecond", None) or getattr(value, "nanoseconds", None) or 0), 10**9)
