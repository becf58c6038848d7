"""Calendar predicates: `calendar:day("Europe/Berlin", D)` holds on each day in that time zone, of its date.

tidelog generates their facts. The first argument is a time zone, which rules have to name; the second names the part of
the calendar, and may be a variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import lru_cache

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.syntax import Atom, Constant, Rule, Value
from tidelog.language.validation import formula_atoms, rule_atoms
from tidelog.language.wording import suggest

#: Predicates whose names begin with this are generated.
CALENDAR_PREFIX = "calendar:"
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def is_calendar(predicate: str) -> bool:
    """Return whether tidelog generates the facts of a predicate."""
    return predicate.startswith(CALENDAR_PREFIX)


def names_numbers(predicate: str) -> bool:
    """Return whether a calendar predicate names years or hours, which are numbers; all others name texts."""
    return predicate in (CALENDAR_PREFIX + "year", CALENDAR_PREFIX + "hour")


def find_calendars(rules: Iterable[Rule]) -> dict[str, tuple[str, ...]]:
    """Return the time zones that rules use with each calendar predicate.

    >>> from tidelog.language.program import Program
    >>> find_calendars(Program.parse('Late(X) :- Sent(X), calendar:weekday("Asia/Tokyo", sunday).').rules)
    {'calendar:weekday': ('Asia/Tokyo',)}
    """
    found: dict[str, dict[str, None]] = {}
    for rule in rules:
        for atom in rule_atoms(rule):
            if is_calendar(atom.predicate):
                zone = atom.args[0]
                assert isinstance(zone, Constant), "rules name the zones of calendars"
                found.setdefault(atom.predicate, {})[str(zone.value)] = None
    return {name: tuple(zones) for name, zones in found.items()}


def require_no_calendar(rules: Iterable[Rule], where: str) -> None:
    """Raise TL317 if rules read a calendar predicate; `where` names what does not support them."""
    problems = [
        Diagnostic("TL317", f"{where} cannot read {atom.predicate}", atom.place or rule.place)
        for rule in rules
        for atom in rule_atoms(rule)
        if is_calendar(atom.predicate)
    ]
    if problems:
        raise TidelogError(problems)


def diagnose_calendars(rule: Rule) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each calendar predicate of a rule without a known unit, zone or name."""
    for atom in formula_atoms(rule.head):
        if is_calendar(atom.predicate):
            yield _refuse(f"a rule derives {atom.predicate}", atom.place, "give the head a name without `calendar:`")
            return
    for atom in rule_atoms(rule):
        if is_calendar(atom.predicate):
            yield from _diagnose_atom(atom)


def _diagnose_atom(atom: Atom) -> Iterator[Diagnostic]:
    unit = atom.predicate.removeprefix(CALENDAR_PREFIX)
    if unit not in CALENDAR_UNITS:
        close = suggest(unit, CALENDAR_UNITS, cutoff=0.6)
        help = f"did you mean {CALENDAR_PREFIX}{close}?" if close else None
        yield _refuse(f"there is no predicate {atom.predicate}", atom.place, help)
        return
    example, is_label = CALENDAR_UNITS[unit]
    shape = f'{atom.predicate}("Europe/Berlin", {example}), or with a variable in place of {example}'
    if len(atom.args) != 2:
        yield _refuse(f"{atom.predicate} needs a time zone and what it names", atom.place, f"write {shape}")
        return
    zone, label = atom.args
    if not isinstance(zone, Constant):
        yield _refuse(f"the time zone of {atom.predicate} is a variable", atom.place, f"name the zone: {shape}")
    elif not _is_zone(zone.value):
        yield _refuse(f"there is no time zone {zone.value}", atom.place, _suggest_zone(str(zone.value)))
    if isinstance(label, Constant) and not is_label(label.value):
        yield _refuse(f"{label.value} is never an argument of {atom.predicate}", atom.place, f"write {shape}")


def _refuse(message: str, place: Place | None, help: str | None) -> Diagnostic:
    return Diagnostic("TL124", message, place, help=help)


@lru_cache(maxsize=64)
def _is_zone(value: Value) -> bool:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(str(value))
    except (OSError, ValueError, KeyError):
        return False
    return isinstance(value, str)


def _suggest_zone(name: str) -> str:
    from zoneinfo import available_timezones

    close = suggest(name, available_timezones(), cutoff=0.6)
    return f'did you mean "{close}"?' if close else 'zones have IANA names: "Europe/Berlin", "America/New_York", "UTC"'


def _is_text(pattern: str) -> Callable[[Value], bool]:
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def _is_number(low: int, high: int) -> Callable[[Value], bool]:
    return lambda value: not isinstance(value, str) and value.denominator == 1 and low <= value <= high


def _is_date(value: Value) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


#: What calendar predicates name: an example, and whether a constant can be such a name.
CALENDAR_UNITS: dict[str, tuple[str, Callable[[Value], bool]]] = {
    "year": ("2026", _is_number(1, 9999)),
    "quarter": ('"2026-Q4"', _is_text(r"\d{4}-Q[1-4]")),
    "month": ('"2026-11"', _is_text(r"\d{4}-(0[1-9]|1[0-2])")),
    "month_end": ('"2026-11"', _is_text(r"\d{4}-(0[1-9]|1[0-2])")),
    "week": ('"2026-W47"', _is_text(r"\d{4}-W(0[1-9]|[1-4]\d|5[0-3])")),
    "day": ('"2026-11-18"', _is_date),
    "weekday": ("wednesday", lambda value: value in WEEKDAYS),
    "hour": ("9", _is_number(0, 23)),
}
