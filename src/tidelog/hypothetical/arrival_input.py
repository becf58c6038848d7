"""Read arrivals: facts as text or as facts of the language, and lines of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.hypothetical.ground_facts import GroundFact, Scalar, to_scalar
from tidelog.language.fact_text import parse_fact
from tidelog.language.syntax import Fact
from tidelog.language.value_like import read_fact_object
from tidelog.language.wording import plural
from tidelog.timeline.interval import Interval

_POINT_LAW = "a fact of a stream has a single time, a natural number: Temp(wt2,high,0) or Temp(wt2,high)@0"

_PLAIN = re.compile(r"([A-Za-z_]\w*)\(([^\"()@%#\s]+),([0-9]{1,15})\)", re.ASCII)
_NAME_OR_NUMBER = re.compile(r"[A-Za-z_]\w*|[0-9]{1,15}", re.ASCII)
#: The largest number of argument texts that are cached.
_MAX_CACHED = 100_000


class FactReader:
    """Reads facts of temporal Datalog. Arities do not count the time, which rigid predicates do not have."""

    def __init__(self, temporal: Mapping[str, int], rigid: Mapping[str, int]) -> None:
        self._temporal = temporal
        self._rigid = rigid
        self._signatures = frozenset(temporal.items())
        self._args: dict[str, tuple[Scalar, ...]] = {}

    def read(self, text: str, source: str = "<text>", line: int = 1) -> GroundFact:
        """Parse a fact whose time is its last argument or follows `@`.

        >>> FactReader({"Temp": 2}, {}).read("Temp(wt2,high)@3")
        ('Temp', ('wt2', 'high'), 3)
        """
        plain = _PLAIN.fullmatch(text)
        if plain:
            predicate, written, time = plain.groups()
            args = self._args.get(written) or self._parse_simple_args(written)
            if args is not None and self._temporal.get(predicate) == len(args):
                return predicate, args, int(time)
        fact, _ = parse_fact(text, source, line, self._signatures)
        try:
            return self.from_fact(fact)
        except TidelogError as error:
            diagnostic = error.diagnostics[0]
            place = Place(source, line, 1, len(text), text)
            raise TidelogError(
                Diagnostic(diagnostic.code, diagnostic.message, place, diagnostic.law, diagnostic.help)
            ) from None

    def _parse_simple_args(self, written: str) -> tuple[Scalar, ...] | None:
        """Return arguments that are all plain names and natural numbers, or None."""
        parts = written.split(",")
        if not all(map(_NAME_OR_NUMBER.fullmatch, parts)):
            return None
        if len(self._args) >= _MAX_CACHED:
            self._args.clear()
        args = self._args[written] = tuple(int(part) if part[0] <= "9" else part for part in parts)
        return args

    def from_fact(self, fact: Fact) -> GroundFact:
        """Convert a fact of the language; a fact without a time is rigid."""
        fact, _ = read_fact_object(fact)
        arity = self._temporal.get(fact.predicate)
        known = self._rigid.get(fact.predicate) if arity is None else arity
        args = tuple(map(to_scalar, fact.args))
        if known is not None and len(args) != known:
            raise invalid_fact_error(fact.predicate, known, args, 0)
        if arity is None and fact.interval == Interval.always():
            return fact.predicate, args, 0
        time = fact.interval.lo
        if not fact.interval.is_point() or not isinstance(time, Fraction) or time.denominator != 1 or time < 0:
            raise TidelogError(
                Diagnostic("TL704", f"{fact.predicate} does not hold at a single natural number", law=_POINT_LAW)
            )
        if known is not None and arity is None:
            raise TidelogError(Diagnostic("TL704", f"{fact.predicate} is rigid and takes no time", law=_POINT_LAW))
        return fact.predicate, args, int(time)


def invalid_fact_error(predicate: str, arity: int, args: Sequence[Scalar], time: int) -> TidelogError:
    """Return the error for a fact with a wrong number of arguments, or before time 0."""
    if len(args) == arity:
        message = f"{predicate} is at {time}, before time 0"
    else:
        message = f"{predicate} has {plural(arity, 'argument')} besides its time, not {len(args)}"
    return TidelogError(Diagnostic("TL704", message, law=_POINT_LAW))


def parse_arrival(text: str, reader: FactReader, source: str, line: int) -> tuple[int, GroundFact]:
    """Parse a line of JSON; return the arrival time and the fact."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"this is not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise _arrival_error(message, source, line, error.colno, text) from None
    except RecursionError:
        raise _arrival_error("too many brackets", source, line, 1, text) from None
    if not isinstance(record, dict):
        raise _arrival_error("this is not an object", source, line, 1, text)
    arrival, fact = record.get("arrival"), record.get("fact")
    if not isinstance(arrival, int) or isinstance(arrival, bool) or arrival < 0:
        message = "`arrival` is not a natural number" if "arrival" in record else "`arrival` is missing"
        raise _arrival_error(message, source, line, 1, text)
    if not isinstance(fact, str):
        message = "`fact` is not a string" if "fact" in record else "`fact` is missing"
        raise _arrival_error(message, source, line, 1, text)
    return arrival, reader.read(fact, source, line)


def _arrival_error(message: str, source: str, line: int, column: int, text: str) -> TidelogError:
    return TidelogError(Diagnostic("TL704", message, Place(source, line, column, 1, text)))
