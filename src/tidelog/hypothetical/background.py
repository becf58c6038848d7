"""Facts that are there before the stream begins: they join the program, and are never awaited as evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.facts import format_fact
from tidelog.language.syntax import Constant, Fact, TemporalAtom, TemporalProgram, TemporalRule, TimeTerm
from tidelog.timeline.interval import Interval

#: An interval with more points is refused.
MOST_POINTS = 100_000


def with_background(program: TemporalProgram, facts: Iterable[Fact]) -> TemporalProgram:
    """The program with more facts; what holds at all times becomes a rule without a body."""
    temporal = dict(program.temporal)
    clauses = [clause for fact in facts for clause in _clauses(fact, fact.predicate in temporal)]
    always = tuple(clause for clause in clauses if clause.head and clause.head.time and clause.head.time.variable)
    others = tuple(clause for clause in clauses if clause not in set(always))
    return replace(program, rules=program.rules + always, facts=program.facts + others)


def _clauses(fact: Fact, temporal: bool) -> Iterator[TemporalRule]:
    args = tuple(map(Constant, fact.args))
    if not temporal:
        yield TemporalRule(TemporalAtom(fact.predicate, args, None))
    elif fact.interval == Interval.always():
        yield TemporalRule(TemporalAtom(fact.predicate, args, TimeTerm("T", 0)))
    else:
        for time in _points(fact):
            yield TemporalRule(TemporalAtom(fact.predicate, args, TimeTerm(None, time)))


def _points(fact: Fact) -> range:
    lo, hi = fact.interval.lo, fact.interval.hi
    if not isinstance(lo, Fraction) or not isinstance(hi, Fraction) or hi - lo > MOST_POINTS:
        message = f"the background fact {format_fact(fact)} stands in the way"
        law = f"a background fact holds at all times, or at no more than {MOST_POINTS:,} time points"
        raise TidelogError(Diagnostic("TL702", message, law=law))
    first = ceil(lo) if fact.interval.lo_closed else floor(lo) + 1
    last = floor(hi) if fact.interval.hi_closed else ceil(hi) - 1
    return range(first, last + 1)
