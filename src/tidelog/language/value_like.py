"""Convert facts that are made in Python, with arguments and times of every type that the API takes.

Arguments are read as columns of tables are. A float is the shortest decimal that represents it, so 0.1 is one tenth.
True and False are the names `true` and `false`, dates and date-times are names, too, in the form of ISO 8601. This
module imports neither pandas nor numpy.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.syntax import Fact, Value
from tidelog.language.time_like import to_dated_time, to_time
from tidelog.language.time_text import format_iso
from tidelog.timeline.interval import INF

_TYPES = "str, int, float, Decimal, Fraction, bool, date, datetime, or numpy's types for these"

#: The types of constants.
_CONSTANTS = frozenset((str, Fraction))


def read_fact_object(fact: Fact) -> tuple[Fact, bool]:
    """Return a fact with constants as arguments and rational times, and whether a time of it was a date.

    >>> from tidelog.timeline.interval import Interval
    >>> fact, _ = read_fact_object(Fact("P", (1, 0.1, True), Interval.point(0.5)))  # type: ignore[arg-type]
    >>> fact.args, str(fact.interval)
    ((Fraction(1, 1), Fraction(1, 10), 'true'), '1/2')
    """
    dated = False
    if not _CONSTANTS.issuperset(map(type, fact.args)):
        fact = replace(fact, args=tuple(to_value(value, fact.predicate) for value in fact.args))
    ends = fact.interval.lo, fact.interval.hi
    if not all(type(end) is Fraction or end in (INF, -INF) for end in ends):
        (lo, lo_dated), (hi, hi_dated) = map(to_dated_time, ends)
        fact, dated = replace(fact, interval=replace(fact.interval, lo=lo, hi=hi)), lo_dated or hi_dated
    return fact, dated


def to_value(value: object, predicate: str) -> Value:
    """Convert an argument of a predicate to a constant."""
    found: Value | None = _read_number(value)
    if found is None:
        found = _read_name(value)
    if found is None:
        message = f"{value!r} cannot be an argument of {predicate}"
        law = "the arguments of facts are texts and numbers"
        raise TidelogError(Diagnostic("TL201", message, law=law, help=f"pass {_TYPES}"))
    return found


def _read_number(value: object) -> Fraction | None:
    if isinstance(value, bool) or type(value).__name__ == "timedelta64":  # which numpy counts among the integers
        return None
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Rational):
        return Fraction(value)
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() else None
    if isinstance(value, Real):
        number = Decimal(str(value))
        return Fraction(number) if number.is_finite() else None
    return None


def _read_name(value: Any) -> str | None:
    """Read a name from a text, a truth value or a date, of Python or numpy."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return "true" if value else "false"
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, date) or type(value).__name__ == "datetime64":
        text = str(value)
        return None if text == "NaT" else text if len(text) == 10 else format_iso(to_time(value))
    return None
