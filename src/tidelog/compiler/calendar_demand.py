"""Find the ranges of time in which rules read calendar predicates, which hold for ever.

Two fixpoints over rules in normal form. Upwards, `find_extents` bounds when each predicate can hold: data does where it
was given, a calendar always, a rule where all its positive literals do. Downwards, `find_demand` bounds the times that
the questions depend on: a literal is read where its rule can hold and is asked for, plus the range of its operator.
Both only ever become larger than the truth, so the facts of a calendar outside of its demand change no answer. An end
that still moves after some rounds of a recursion is taken for infinite.

Positions are those of the grid. Sums of positions may be one off at open ends, so everything is a tick wider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op, Pair
from tidelog.language.calendar_predicates import is_calendar
from tidelog.language.core_rules import Aggregation
from tidelog.language.hidden_predicates import ALWAYS
from tidelog.language.syntax import AggregateFunction
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid

#: All of time.
EVER: Pair = (NEG_INF, POS_INF)
#: A range, or None where there is no time at all.
Span = Pair | None
#: Rounds of a fixpoint after which an end that still moves is taken for infinite; then it ends within a few more.
_ROUNDS = 32


def find_extents(compiled: CompiledProgram, given: Mapping[str, Pair]) -> dict[str, Span]:
    """Return the times between which each predicate can hold, if facts of `given` predicates hold between theirs."""
    extents: dict[str, Span] = dict.fromkeys(compiled.names)
    extents |= given
    extents |= {name: EVER for name in compiled.names if name == ALWAYS or is_calendar(name)}

    def derive() -> Iterator[tuple[str, Span]]:
        for rule in compiled.rules:
            yield rule.predicate, _shift(_body_extent(rule, extents, compiled.grid), rule.range, compiled.grid)
        for step in compiled.calculations:
            yield step.head.predicate, extents[step.input.predicate]
        for counted in compiled.aggregations:
            span = _shift(extents[counted.input.predicate], _window(counted, compiled.grid), compiled.grid)
            yield counted.head.predicate, span

    _settle(extents, derive)
    return extents


def find_demand(compiled: CompiledProgram, extents: Mapping[str, Span], asked: Mapping[str, Pair]) -> dict[str, Span]:
    """Return the times between which questions about the `asked` predicates, each in a range, read each predicate."""
    grid = compiled.grid
    demand: dict[str, Span] = dict.fromkeys(compiled.names)
    demand |= {name: intersect(extents.get(name), pair) for name, pair in asked.items()}

    def need() -> Iterator[tuple[str, Span]]:
        for rule in compiled.rules:
            times = _shift(demand[rule.predicate], _negate(rule.range), grid)
            times = intersect(times, _body_extent(rule, extents, grid))
            for name, span in _read_by(rule, times, extents, grid):
                yield name, intersect(span, extents[name])
        for step in compiled.calculations:
            yield step.input.predicate, intersect(demand[step.head.predicate], extents[step.input.predicate])
        for counted in compiled.aggregations:
            span = _shift(demand[counted.head.predicate], _negate(_window(counted, grid)), grid)
            if span and counted.function is AggregateFunction.START:
                span = NEG_INF, span[1]
            yield counted.input.predicate, intersect(span, extents[counted.input.predicate])

    _settle(demand, need)
    return demand


def join_spans(spans: Iterable[Span]) -> Span:
    """Return the range from the first to the last time of some ranges."""
    return reduce(_join, spans, None)


def intersect(one: Span, other: Span) -> Span:
    """Return the times that two ranges have in common."""
    if one is None or other is None:
        return None
    lo, hi = max(one[0], other[0]), min(one[1], other[1])
    return (lo, hi) if lo <= hi else None


def _settle(spans: dict[str, Span], derive: Callable[[], Iterator[tuple[str, Span]]]) -> None:
    """Widen ranges by what is derived from them until nothing changes."""
    changed, rounds = True, 0
    while changed:
        changed, rounds = False, rounds + 1
        for name, span in derive():
            old = spans[name]
            new = _join(old, span)
            if new != old and new is not None:
                if rounds > _ROUNDS and old is not None:
                    new = (NEG_INF if new[0] < old[0] else new[0], POS_INF if new[1] > old[1] else new[1])
                spans[name], changed = new, True


def _join(one: Span, other: Span) -> Span:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def _shift(span: Span, by: Pair, grid: Grid) -> Span:
    """Return the sums of the times of a range and the distances of another, a tick wider unless nothing is added."""
    if span is None or by == (0, 0):
        return span
    lo = NEG_INF if NEG_INF in (span[0], by[0]) else span[0] + by[0] - grid.tick
    hi = POS_INF if POS_INF in (span[1], by[1]) else span[1] + by[1] + grid.tick
    return max(lo, NEG_INF), min(hi, POS_INF)


def _negate(by: Pair) -> Pair:
    return -by[1], -by[0]


def _body_extent(rule: FlatRule, extents: Mapping[str, Span], grid: Grid) -> Span:
    """Return the times between which the body of a rule can hold."""
    found: Span = EVER
    since = next((literal for literal in rule.body if literal.op in (Op.SINCE, Op.UNTIL)), None)
    for literal in rule.body:
        if literal.negated or literal is since:
            continue
        span = extents[literal.predicate]
        if since is not None:
            # The right operand; the left one holds from there up to now, unless that is the same time.
            reach = since.range if since.op is Op.SINCE else _negate(since.range)
            left = _shift(extents[since.predicate], (-grid.tick, grid.tick), grid)
            span = _join(span, intersect(_shift(span, reach, grid), left))
        else:
            span = _literal_extent(literal, span, grid)
        found = intersect(found, span)
    return found


def _literal_extent(literal: FlatLiteral, span: Span, grid: Grid) -> Span:
    """Return the times between which a literal can hold, if its atom does between others."""
    if literal.op is not Op.BOX or span is None:
        return _shift(span, literal.range, grid)
    first, last = literal.range
    if (last == POS_INF and span[0] != NEG_INF) or (first == NEG_INF and span[1] != POS_INF):
        return None
    lo = NEG_INF if span[0] == NEG_INF else span[0] + last - grid.tick
    hi = POS_INF if span[1] == POS_INF else span[1] + first + grid.tick
    return (lo, hi) if lo <= hi else None


def _read_by(rule: FlatRule, times: Span, extents: Mapping[str, Span], grid: Grid) -> Iterator[tuple[str, Span]]:
    """Yield the predicates of a body, each with the times at which it is read for the body to be known at some."""
    since = next((literal for literal in rule.body if literal.op in (Op.SINCE, Op.UNTIL)), None)
    if since is None:
        for literal in rule.body:
            yield literal.predicate, _shift(times, _negate(literal.range), grid)
        return
    reach = _negate(since.range) if since.op is Op.SINCE else since.range
    for literal in rule.body:
        if literal is not since:
            span = _shift(times, reach, grid)
            yield literal.predicate, _join(times, span)
            # The left operand is read from a time of the right one up to now.
            start = intersect(span, extents[literal.predicate])
            yield since.predicate, None if start is None else _shift(_join(times, start), (-grid.tick, grid.tick), grid)


def _window(step: Aggregation, grid: Grid) -> Pair:
    """Return the distances into the past at which an aggregation looks."""
    pair = (0, 0) if step.range is None else grid.to_pair(step.range)
    return (0, 0) if pair is None else (min(0, pair[0]), pair[1])
