"""Refuse data that mixes units of time: dates next to small numbers, or epoch milliseconds next to dates.

Milliseconds alone are fine, unless the rules have durations: these count seconds. Times of day with and without a time
zone may be mixed, with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tidelog.data.dataset import Dataset
from tidelog.data.relation import Columns, Relation, to_facts
from tidelog.data.symbol_table import Symbols
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import format_fact, format_number
from tidelog.language.syntax import Rule
from tidelog.language.time_like import to_duration
from tidelog.language.time_text import Zone, format_iso
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.interval import Time

#: Numbers that can be seconds since 1970 next to dates: from March 1973 to November 2286. Dates count seconds.
LEAST_SECONDS, MOST_SECONDS = 10**8, 10**10
#: Numbers from here on are milliseconds since 1970 (of the year 1985 and later) rather than seconds.
LEAST_MILLISECONDS = 5 * 10**11
#: Rows that are looked at first.
_BLOCK = 1 << 10
_DURATION = re.compile(r"\b[0-9]+(?:\.[0-9]+)?(?:ms|s|min|h|d|w)\b")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


class TimeUnits:
    """The units of the times seen so far: one date, and one number that cannot be a time in seconds beside it."""

    def __init__(self) -> None:
        self._date: str | None = None
        self._number: str | None = None
        self._asked = False

    def ask(self, shown: str, *times: Time) -> None:
        """Note the times of an option or a question; raise TL209 if none of them can be a time next to dates."""
        finite = [time for time in times if isinstance(time, Fraction)]
        if finite and not any(map(_can_be_seconds, finite)):
            self._number, self._asked = self._number or shown, True
            self._check()

    def add(self, symbols: Symbols, columns: Columns, source: str) -> None:
        """Note the times of some facts; raise TL209 if dates and numbers of another unit occur together."""
        if columns.dates and self._date is None:
            # Dates next to 1970 may be meant where the times that are asked for are near it, too.
            fact = _find_fact(symbols, columns, plausible=True if columns.numbers or self._asked else None)
            self._date = fact and f"{fact} in {source}"
        if columns.numbers and self._number is None:
            fact = _find_fact(symbols, columns, plausible=False)
            self._number = fact and f"{fact} in {source}"
        self._check()

    def _check(self) -> None:
        if self._date and self._number:
            raise TidelogError(
                Diagnostic("TL209", f"some times are dates, like {self._date}, and others numbers, like {self._number}")
            )


def check_asked_times(data: Dataset, shown: str, *times: Time) -> None:
    """Raise TL209 if the facts have dates, and the times of an option or a question another unit."""
    units = TimeUnits()
    units.ask(shown, *times)
    units.add(data.symbols, data.as_columns(), "the data")


def require_same_unit(time: Time, before: Time, *, dates_before: bool) -> None:
    """Raise TL209 if one of two times is a date, and the other a number that can be no time next to dates."""
    date, number = (before, time) if dates_before else (time, before)
    if not isinstance(date, Fraction) or not isinstance(number, Fraction):
        return
    if _can_be_seconds(date) and not _can_be_seconds(number):
        message = f"some times are dates, like {format_iso(date)}, and others numbers, like {format_number(number)}"
        raise TidelogError(Diagnostic("TL209", message))


def _can_be_seconds(time: Fraction) -> bool:
    return LEAST_SECONDS <= abs(time) <= MOST_SECONDS


def find_unit_warnings(rules: Iterable[Rule], data: Dataset) -> Iterator[Diagnostic]:
    """Yield a warning if rules have durations, which count seconds, and times seem to be milliseconds since 1970."""
    duration = None if data.dates else _find_duration(rules)
    fact = _find_milliseconds(data) if duration else None
    if fact and duration:
        length = format_number(to_duration(duration))
        problem = f"times as in {fact} seem to be milliseconds since 1970"
        message = f"{problem}, and `{duration}` in the rules is {length} of them"
        yield Diagnostic("TL211", message, severity="warning")


def find_zone_warnings(zones: Mapping[Zone, str]) -> Iterator[Diagnostic]:
    """Yield a warning if some times of day have an offset from UTC and others none; `zones` names a source of each.

    >>> [found.message for found in find_zone_warnings({"local": "Order.csv", "zoned": "Paid.csv"})]
    ['the times of Order.csv have no time zone, and those of Paid.csv have one']
    """
    local, zoned = zones.get("local"), zones.get("zoned")
    if local is None or zoned is None:
        return
    if local == zoned:
        message = f"some times of {local} have no time zone, and others have one"
    else:
        message = f"the times of {local} have no time zone, and those of {zoned} have one"
    yield Diagnostic("TL213", message, severity="warning")


def _find_milliseconds(data: Dataset) -> str | None:
    """Find a fact that begins at a number that is too great for seconds since 1970."""
    for relation in data.relations.values():
        starts = relation.lo[relation.lo > NEG_INF]
        if len(starts) and int(starts.max()) // 2 >= LEAST_MILLISECONDS * data.denominator:
            row = np.array([np.argmax(relation.lo)])
            return format_fact(next(to_facts(data.symbols, data.denominator, relation.select(row))))
    return None


def _find_duration(rules: Iterable[Rule]) -> str | None:
    """Find a number with a unit of time in the text of rules."""
    found = (_DURATION.search(_TEXT.sub("", rule.text)) for rule in rules)
    return next((duration[0] for duration in found if duration), None)


def _find_fact(symbols: Symbols, columns: Columns, plausible: bool | None) -> str | None:
    """Find a fact with a finite time; `plausible` says whether that time could be one in seconds next to dates."""
    for relation in columns.relations.values():
        row = _find_row(relation, columns.denominator, plausible)
        if row is not None:
            fact = next(to_facts(symbols, columns.denominator, replace(relation.select(np.array([row])))))
            return format_fact(fact, columns.dates and plausible is not False)
    return None


def _find_row(relation: Relation, denominator: int, plausible: bool | None) -> int | None:
    for ends in (relation.lo, relation.hi):
        # Most often the first rows decide.
        first, size = 0, _BLOCK
        while first < len(ends):
            part = ends[first : first + size]
            finite = (part > NEG_INF) & (part < POS_INF)
            if plausible is not None:
                length = np.abs(part) // 2
                fits = (length >= LEAST_SECONDS * denominator) & (length <= MOST_SECONDS * denominator)
                finite &= fits if plausible else ~fits
            if finite.any():
                return first + int(np.argmax(finite))
            first, size = first + size, 8 * size
    return None
