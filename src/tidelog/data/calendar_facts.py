"""The facts of calendar predicates, generated: in which range of time each day, month or hour of a zone lies.

A day holds at exactly the times whose date in the zone it is, and everything else is defined likewise: a day on which
clocks change has 23 or 25 hours, a date that a zone skipped does not hold at all, and one that clocks return to after
midnight holds twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidelog.data.dataset import Dataset
from tidelog.data.relation import Columns, Key, Relation
from tidelog.data.symbol_table import Symbols
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.calendar_predicates import CALENDAR_PREFIX, WEEKDAYS
from tidelog.language.syntax import Value

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_EPOCH = date(1970, 1, 1).toordinal()
_DAY, _HOUR = 86400, 3600
#: The years whose calendars are known.
FIRST_YEAR, LAST_YEAR = 1900, 2199
#: No range of a unit, counted from the first time that is called so, lasts longer than this, in seconds.
_LONGEST = {"year": 370 * _DAY, "quarter": 96 * _DAY, "month": 35 * _DAY, "week": 10 * _DAY}
_LONGEST_DAY = 3 * _DAY


class CalendarRange(NamedTuple):
    """A range of time from `start` up to but not including `end`, in seconds since 1970, and what it is called."""

    name: Value
    start: int
    end: int


def find_ranges(unit: str, zone: str, first: int, last: int) -> list[CalendarRange]:
    """Return the ranges of a unit that contain a time from `first` to `last`, each as a whole, in order of time.

    >>> find_ranges("day", "Europe/Berlin", 1774750000, 1774750000)  # clocks are set forward on this day
    [CalendarRange(name='2026-03-29', start=1774738800, end=1774821600)]
    """
    _require_known(first, last)
    margin = _LONGEST.get(unit, _LONGEST_DAY)
    pieces = _cut(zone, first - margin, last + margin, _HOUR if unit == "hour" else _DAY)
    named = ((_NAMES[unit](number), start, end) for number, start, end in pieces)
    merged = _merge((name, start, end) for name, start, end in named if name is not None)
    return [piece for piece in merged if piece.end > first and piece.start <= last]


def build_calendar(calendars: Mapping[str, Iterable[str]], first: int, last: int, after: int | None = None) -> Dataset:
    """Return the facts of calendar predicates, each in its zones, that hold at a time from `first` to `last`.

    With `after`, only those that begin later than that.
    """
    symbols = Symbols()
    relations: dict[Key, Relation] = {}
    for predicate, zones in calendars.items():
        rows = [
            (symbols.intern(zone), symbols.intern(name), 2 * start, 2 * end - 1)
            for zone in zones
            for name, start, end in find_ranges(predicate.removeprefix(CALENDAR_PREFIX), zone, first, last)
            if after is None or start > after
        ]
        table = np.array(rows, np.int64).reshape(-1, 4)
        args = np.ascontiguousarray(table[:, :2].T.astype(np.int32))
        relations[predicate, 2] = Relation(predicate, 2, args, table[:, 2].copy(), table[:, 3].copy())
    return Dataset(symbols, Columns(1, True, relations))


def _require_known(first: int, last: int) -> None:
    """Raise TL315 where calendars are not known, or nearly so: zones differ by some hours."""
    start, end = ((date(year, 1, 1).toordinal() - _EPOCH) * _DAY for year in (FIRST_YEAR, LAST_YEAR + 1))
    beyond = first if first < start + _DAY else last if last > end - _DAY else None
    if beyond is not None:
        known = 0 < beyond + 62135596800 < 315537897600
        asked = f"the year {datetime.fromtimestamp(beyond, UTC).year}" if known else "a time far from that"
        raise TidelogError(
            Diagnostic(
                "TL315",
                f"calendars are known from {FIRST_YEAR} to {LAST_YEAR}, and rules ask for {asked}",
                help="ask for a range of time with --between LO,HI, or correct the times of the facts",
            )
        )


def _cut(zone: str, first: int, last: int, length: int) -> Iterator[tuple[int, int, int]]:
    """Cut a range of time into the hours or days of a zone: their numbers since 1970 on its clocks, and their ends."""
    start, offset = first, _offset(zone, first)
    for change, following in [*_find_changes(zone, first, last), (last, 0)]:
        while start < change:
            number = (start + offset) // length
            end = min(change, (number + 1) * length - offset)
            yield number, start, end
            start = end
        offset = following


def _merge(pieces: Iterable[tuple[Value, int, int]]) -> list[CalendarRange]:
    """Join pieces with one name that follow each other at once."""
    merged: list[CalendarRange] = []
    for name, start, end in pieces:
        if merged and merged[-1].name == name and merged[-1].end == start:
            merged[-1] = merged[-1]._replace(end=end)
        else:
            merged.append(CalendarRange(name, start, end))
    return merged


def _find_changes(zone: str, first: int, last: int) -> list[tuple[int, int]]:
    """Return when the clocks of a zone change in a range of time, and by how much they are ahead of UTC then."""
    years = range(_year_of(first), _year_of(last) + 1)
    return [(at, offset) for year in years for at, offset in _find_changes_in_year(zone, year) if first < at < last]


def _year_of(time: int) -> int:
    return (datetime(1970, 1, 1) + timedelta(seconds=time)).year


@lru_cache(maxsize=4096)
def _find_changes_in_year(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """Find the changes of one year, in UTC. No zone has changed its clocks twice within two days since 1900."""
    start, end = ((date(number, 1, 1).toordinal() - _EPOCH) * _DAY for number in (year, year + 1))
    changes = []
    for low in range(start, end, _DAY):
        high = low + _DAY
        after = _offset(zone, high)
        if _offset(zone, low) != after:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if _offset(zone, middle) == after else (middle, high)
            changes.append((high, after))
    return tuple(changes)


def _offset(zone: str, time: int) -> int:
    """Return by how many seconds the clocks of a zone are ahead of UTC."""
    ahead = datetime.fromtimestamp(time, _load_zone(zone)).utcoffset()
    assert ahead is not None
    return int(ahead.total_seconds())


@lru_cache(maxsize=64)
def _load_zone(zone: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo

    return ZoneInfo(zone)


def _on_date(name: Callable[[date], Value | None]) -> Callable[[int], Value | None]:
    return lambda number: name(date.fromordinal(number + _EPOCH))


def _name_week(day: date) -> Value:
    year, week, _ = day.isocalendar()
    return f"{year:04}-W{week:02}"


def _name_month_end(day: date) -> Value | None:
    return f"{day:%Y-%m}" if (day + timedelta(days=1)).month != day.month else None


#: What an hour or a day, by its number since 1970, is called.
_NAMES: dict[str, Callable[[int], Value | None]] = {
    "year": _on_date(lambda day: Fraction(day.year)),
    "quarter": _on_date(lambda day: f"{day:%Y}-Q{(day.month + 2) // 3}"),
    "month": _on_date(lambda day: f"{day:%Y-%m}"),
    "month_end": _on_date(_name_month_end),
    "week": _on_date(_name_week),
    "day": _on_date(date.isoformat),
    "weekday": _on_date(lambda day: WEEKDAYS[day.weekday()]),
    "hour": lambda number: Fraction(number % 24),
}
