"""Read and print times exactly: numbers, durations and ISO 8601 dates.

A duration is a number of seconds, and a date the number of seconds since 1970-01-01 UTC, so all times are rationals.
"""

from __future__ import annotations

import re
from datetime import date
from fractions import Fraction
from typing import Literal

from tidelog.errors import Diagnostic, TidelogError
from tidelog.timeline.interval import INF, Time

UNITS: dict[str, Fraction] = {
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
    "w": Fraction(604800),
}

#: Whether a time of day comes with its offset from UTC (`10:00Z`) or without one (`10:00`).
Zone = Literal["local", "zoned"]

#: Longer numbers are refused: they cannot fit 63 bits, and reading them takes quadratic time.
MAX_DIGITS = 300

#: Finite times have numerators and denominators below this, so that ticks fit 63 bits with room for sums.
MAX_TICKS = 1 << 60

_NUMBER = re.compile(r"([+-]?)\s*([0-9]+)(?:\.([0-9]+)|\s*/\s*([0-9]+))?(ms|s|min|h|d|w)?")
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,300}))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_EPOCH = date(1970, 1, 1).toordinal()


def fits_63_bits(time: Fraction) -> bool:
    """Return whether a time fits the engine, as far as can be told without the grid of program and data."""
    return abs(time.numerator) < MAX_TICKS and time.denominator < MAX_TICKS


def read_number(text: str, units: bool = False) -> Fraction | None:
    """Read a signed integer, decimal or fraction (or, with `units`, a duration); None if the text is none of them.

    >>> read_number("-1/3"), read_number("10min", units=True), read_number("1e5")
    (Fraction(-1, 3), Fraction(600, 1), None)
    """
    match = _NUMBER.fullmatch(text)
    if not match or len(text) > MAX_DIGITS:
        return None
    sign, whole, decimals, denominator, unit = match.groups()
    if unit and not units:
        return None
    if denominator:
        if not int(denominator):
            return None
        value = Fraction(int(whole), int(denominator))
    elif decimals:
        value = Fraction(int(whole + decimals), 10 ** len(decimals))
    else:
        value = Fraction(int(whole))
    if unit:
        value *= UNITS[unit]
    return -value if sign == "-" else value


def read_infinity(text: str) -> float | None:
    """Read `inf`, `+inf` or `-inf`, in any letter case; None if the text is none of them."""
    return {"inf": INF, "+inf": INF, "-inf": -INF}.get(text.lower())


def parse_time(text: str) -> tuple[Time, bool]:
    """Parse a time, and tell whether it was written as a date.

    >>> parse_time("0.5"), parse_time("1970-01-02"), parse_time("-inf")
    ((Fraction(1, 2), False), (Fraction(86400, 1), True), (-inf, False))
    """
    text = text.strip()
    number = read_number(text, units=True)
    if number is not None:
        return number, False
    infinity = read_infinity(text)
    if infinity is not None:
        return infinity, False
    moment = _read_iso(text)
    if moment is not None:
        return moment, True
    shown = text if len(text) <= 40 else text[:37] + "..."
    raise TidelogError(Diagnostic("TL202", f"`{shown}` is not a time"))


def _read_iso(text: str) -> Fraction | None:
    match = _ISO.fullmatch(text)
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH
    except ValueError:
        return None
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    total = Fraction(days * 86400 + hours * 3600 + minutes * 60 + seconds)
    if fraction:
        total += Fraction(int(fraction), 10 ** len(fraction))
    if zone and zone not in "Zz":
        east = int(zone[1:3]) * 3600 + int(zone[3:].lstrip(":") or 0) * 60
        total -= east if zone[0] == "+" else -east
    return total


def find_zones(text: str) -> set[Zone]:
    """Find out whether the times of day in a text come with an offset from UTC, without one, or both.

    >>> sorted(find_zones("[2026-01-31T10:00:00+0100,2026-01-31 11:00]")), find_zones("2026-01-31")
    (['local', 'zoned'], set())
    """
    return {"zoned" if found[8] else "local" for found in _ISO.finditer(text) if found[4]}


def format_iso(time: Time) -> str:
    """Format a time as a date-time in UTC.

    A time without an exact date (infinity, a third of a second, a year beyond 1 to 9999) stays a number, which reads
    back as the same time.

    >>> format_iso(Fraction(1, 2))
    '1970-01-01T00:00:00.5Z'
    """
    if isinstance(time, float):
        return str(time)
    decimals = _exact_decimals(time.denominator)
    whole = time.numerator // time.denominator
    days, second = divmod(whole, 86400)
    ordinal = days + _EPOCH
    if decimals is None or not 1 <= ordinal <= date.max.toordinal():
        return str(time)
    fraction = ""
    if decimals:
        fraction = f".{(time - whole) * 10**decimals!s:0>{decimals}}"
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"{date.fromordinal(ordinal).isoformat()}T{clock}{fraction}Z"


def _exact_decimals(denominator: int) -> int | None:
    """Return the number of decimals that write a fraction with this denominator exactly, or None if there is none."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else None
