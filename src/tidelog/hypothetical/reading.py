"""Arrivals as they come: facts as text or as tuples, and lines of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.hypothetical.compiled import GroundFact, Inside, inside
from tidelog.language.facts import parse_fact
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import Interval

LAW = 'an arrival is {"arrival": 0, "fact": "Temp(wt2,high,0)"}, with the natural number at which it came'
_POINT_LAW = "a fact of a stream is at one time, a natural number: Temp(wt2,high,0) or Temp(wt2,high)@0"

_PLAIN = re.compile(r"([A-Za-z_]\w*)\(([^\"()@%#\s]+),([0-9]{1,15})\)", re.ASCII)
_NAME_OR_NUMBER = re.compile(r"[A-Za-z_]\w*|[0-9]{1,15}", re.ASCII)
#: Constants that are remembered as they were written.
_MOST_NAMES = 100_000


class FactReader:
    """Reads facts of temporal Datalog. Arities do not count the time; a predicate without time is rigid."""

    def __init__(self, temporal: Mapping[str, int], rigid: Mapping[str, int]) -> None:
        self._temporal = temporal
        self._rigid = rigid
        self._signatures = frozenset(temporal.items())
        self._args: dict[str, tuple[Inside, ...]] = {}

    def read(self, text: str, source: str = "<text>", line: int = 1) -> GroundFact:
        """A fact as text, with the time as its last argument or behind `@`.

        >>> FactReader({"Temp": 2}, {}).read("Temp(wt2,high)@3")
        ('Temp', ('wt2', 'high'), 3)
        """
        plain = _PLAIN.fullmatch(text)
        if plain:
            predicate, written, time = plain.groups()
            args = self._args.get(written) or self._simple(written)
            if args is not None and self._temporal.get(predicate) == len(args):
                return predicate, args, int(time)
        fact, _ = parse_fact(text, source, line, self._signatures)
        try:
            return self.of(fact)
        except TidelogError as error:
            found = error.diagnostics[0]
            place = Place(source, line, 1, len(text), text)
            raise TidelogError(Diagnostic(found.code, found.message, place, found.law, found.help)) from None

    def _simple(self, written: str) -> tuple[Inside, ...] | None:
        """Arguments that are all plain names and natural numbers."""
        parts = written.split(",")
        if not all(map(_NAME_OR_NUMBER.fullmatch, parts)):
            return None
        if len(self._args) >= _MOST_NAMES:
            self._args.clear()
        args = self._args[written] = tuple(int(part) if part[0] <= "9" else part for part in parts)
        return args

    def of(self, fact: Fact) -> GroundFact:
        """A fact of the language; one without a time is rigid."""
        arity = self._temporal.get(fact.predicate)
        known = self._rigid.get(fact.predicate) if arity is None else arity
        args = tuple(map(inside, fact.args))
        if known is not None and len(args) != known:
            raise not_a_fact(fact.predicate, known, args, 0)
        if arity is None and fact.interval == Interval.always():
            return fact.predicate, args, 0
        time = fact.interval.lo
        if not fact.interval.is_point() or not isinstance(time, Fraction) or time.denominator != 1 or time < 0:
            raise TidelogError(Diagnostic("TL704", f"{fact.predicate} is not at a single time", law=_POINT_LAW))
        if known is not None and arity is None:
            raise TidelogError(Diagnostic("TL704", f"{fact.predicate} is rigid, and takes no time", law=_POINT_LAW))
        return fact.predicate, args, int(time)


def not_a_fact(predicate: str, arity: int, args: Sequence[Inside], time: int) -> TidelogError:
    """What is wrong with a fact that has not as many arguments as its predicate, or is before time 0."""
    if len(args) == arity:
        message = f"{predicate} is at {time}, before time 0"
    else:
        message = f"{predicate} has {arity} argument{'' if arity == 1 else 's'} beside its time, not {len(args)}"
    return TidelogError(Diagnostic("TL704", message, law=_POINT_LAW))


def read_arrival(text: str, reader: FactReader, source: str, line: int) -> tuple[int, GroundFact]:
    """A line of JSON: when the fact came, and the fact."""
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        column = error.colno if isinstance(error, json.JSONDecodeError) else 1
        message = error.msg if isinstance(error, json.JSONDecodeError) else "too many brackets"
        raise _unreadable(message, source, line, column, text) from None
    if not isinstance(found, dict):
        raise _unreadable("this is not an object", source, line, 1, text)
    arrival, fact = found.get("arrival"), found.get("fact")
    if not isinstance(arrival, int) or isinstance(arrival, bool) or arrival < 0:
        message = "`arrival` is not a natural number" if "arrival" in found else "there is no `arrival`"
        raise _unreadable(message, source, line, 1, text)
    if not isinstance(fact, str):
        message = "`fact` is not a text" if "fact" in found else "there is no `fact`"
        raise _unreadable(message, source, line, 1, text)
    return arrival, reader.read(fact, source, line)


def _unreadable(message: str, source: str, line: int, column: int, text: str) -> TidelogError:
    return TidelogError(Diagnostic("TL704", message, Place(source, line, column, 1, text), LAW))
