"""The ranges of the operators of rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from tidelog.language.aggregate_checks import body_aggregates
from tidelog.language.program import Program
from tidelog.language.syntax import AggregateFunction, Binary, BodyLiteral, Constant, Formula, Literal, Rule, Unary
from tidelog.timeline.interval import Interval


def rule_ranges(rule: Rule) -> Iterator[Interval]:
    """Yield the ranges of all operators of a rule, head first."""
    yield from _formula_ranges(rule.head)
    yield from _body_ranges(rule.body)


def _body_ranges(body: Iterable[BodyLiteral]) -> Iterator[Interval]:
    for literal in body:
        if isinstance(literal, Literal):
            yield from _formula_ranges(literal.formula)
    for aggregate in body_aggregates(body):
        if aggregate.range is not None:
            yield aggregate.range
        yield from _body_ranges(aggregate.body)


def range_ends(program: Program) -> Iterator[Fraction]:
    """Yield the finite ends of all ranges of a program, and the numbers that durations are compared with."""
    for rule in program.rules:
        for interval in rule_ranges(rule):
            for end in (interval.lo, interval.hi):
                if isinstance(end, Fraction):
                    yield end
    for aggregation in program.core.aggregations:
        if aggregation.function is AggregateFunction.DURATION and aggregation.compared is not None:
            term = aggregation.compared[1]
            if isinstance(term, Constant) and isinstance(term.value, Fraction):
                yield term.value


def _formula_ranges(formula: Formula) -> Iterator[Interval]:
    match formula:
        case Unary():
            yield formula.range
            yield from _formula_ranges(formula.arg)
        case Binary():
            yield formula.range
            yield from _formula_ranges(formula.left)
            yield from _formula_ranges(formula.right)
