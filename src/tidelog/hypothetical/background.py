"""Background facts, which are known before the stream begins: they become part of the program and are no evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Constant, Fact, TemporalAtom, TemporalProgram, TemporalRule, TimeTerm
from tidelog.timeline.interval import Interval

#: A background fact with more time points is refused.
MAX_POINTS = 100_000


def add_background(program: TemporalProgram, facts: Iterable[Fact]) -> TemporalProgram:
    """Return the program with more facts; a temporal fact that always holds becomes a rule without a body."""
    temporal = dict(program.temporal)
    clauses = [clause for fact in facts for clause in _to_clauses(fact, fact.predicate in temporal)]
    always = tuple(clause for clause in clauses if clause.head and clause.head.time and clause.head.time.variable)
    others = tuple(clause for clause in clauses if clause not in set(always))
    return replace(program, rules=program.rules + always, facts=program.facts + others)


def _to_clauses(fact: Fact, temporal: bool) -> Iterator[TemporalRule]:
    args = tuple(map(Constant, fact.args))
    if not temporal:
        yield TemporalRule(TemporalAtom(fact.predicate, args, None))
    elif fact.interval == Interval.always():
        yield TemporalRule(TemporalAtom(fact.predicate, args, TimeTerm("T", 0)))
    else:
        for time in _time_points(fact):
            yield TemporalRule(TemporalAtom(fact.predicate, args, TimeTerm(None, time)))


def _time_points(fact: Fact) -> range:
    lo, hi = fact.interval.lo, fact.interval.hi
    if not isinstance(lo, Fraction) or not isinstance(hi, Fraction) or hi - lo > MAX_POINTS:
        message = f"the background fact {format_fact(fact)} has too many time points"
        law = f"a background fact holds at all times, or at no more than {MAX_POINTS:,} time points"
        raise TidelogError(Diagnostic("TL702", message, law=law))
    return integer_points(fact.interval)


def integer_points(interval: Interval) -> range:
    """Return the integers in a bounded interval."""
    lo, hi = interval.lo, interval.hi
    assert isinstance(lo, Fraction | int)
    assert isinstance(hi, Fraction | int)
    first = ceil(lo) if interval.lo_closed else floor(lo) + 1
    last = floor(hi) if interval.hi_closed else ceil(hi) - 1
    return range(first, last + 1)
