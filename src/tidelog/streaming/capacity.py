"""How many facts this reasoner holds at most after a step, for one query over a stream that comes in order.

What is held of an atom are intervals that do not touch. They end at most the predicate's retention before the present,
and begin at most so far after it as rules write ahead; recursive rules write nothing that begins after the present.

- In the generic form intervals begin at multiples of g, the greatest common divisor of all times and ends of ranges.
- In the bounded form nothing is looked back at, and intervals are counted by where they come from: those of a diamond
  over a range of length w are as long as that, those of a box come from facts that are, and a conjunction has no more
  intervals than its literals together.

Facts that come before they begin, or within a delay, are held besides. Where more than `reasoner.SMALL` facts are held,
forgetting may wait until an eighth as many have come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, lcm

from tidelog.analysis.components import strata
from tidelog.analysis.flatten import FlatRule, Op
from tidelog.analysis.memory import Bound, Memory, Stream, common_divisor
from tidelog.errors import TidelogError
from tidelog.language.program import Program
from tidelog.language.syntax import Variable
from tidelog.reasoning import ends_of, timeline_of
from tidelog.streaming.standing import Standing, chosen_memory, standing
from tidelog.timeline.grid import LIMIT, POS_INF, Grid

#: Coefficients of powers of n, the number of objects.
Polynomial = dict[int, Fraction]


def with_capacity(found: Memory, program: Program, query: str, timeline: str | None) -> Memory:
    """The bounds of a query together with those of this reasoner."""
    generic, bounded = (_capacity(program, query, timeline, found.stream, form) for form in (False, True))
    return replace(found, held_generic=generic, held_bounded=bounded)


def _capacity(program: Program, query: str, timeline: str | None, stream: Stream, bounded: bool) -> Bound:
    dense = timeline_of(program, timeline) == "rational"
    ends = [Fraction(end) for end in ends_of(program)]
    every = stream.every and common_divisor([stream.every, *(ends if dense else [Fraction(1)])])
    grid = Grid(dense, lcm(*(end.denominator for end in ends), every.denominator if every else 1) if dense else 1)
    try:
        strata(program.rules)
        if bounded:
            chosen_memory(program, query, grid, "bounded")
        form = standing(program, query, grid, bounded)
    except TidelogError as refusal:
        return Bound(reason=refusal.diagnostics[0].message)
    begins = _begins(form)
    passing = set(form.transient(query))
    kept = [name for name in form.names if name not in passing]
    if bounded:
        counts = _by_origin(form, begins)
        return _bound(_sum(_times(counts[name], form.arities[name]) for name in kept), None, stream)
    scale = grid.tick * grid.denominator
    spans = {name: Fraction(max(form.bounds.retention[name], 0) + begins[name], scale) for name in kept}
    if every is None:
        by_density = _sum({form.arities[name]: spans[name]} for name in kept)
        return _bound(_sum({form.arities[name]: Fraction(2)} for name in kept), by_density, stream)
    # One more lies across the beginning of the span, and one begins right at its end.
    counts = {name: {0: Fraction(floor(spans[name] / every) + 2)} for name in kept}
    return _bound(_sum(_times(counts[name], form.arities[name]) for name in kept), None, stream)


def _begins(form: Standing) -> dict[str, int]:
    """How far after the present intervals of each predicate may begin."""
    found = dict.fromkeys(form.names, 0)
    for _ in form.names:  # rules that are not recursive are at most so deep
        for place, rule in enumerate(form.rules):
            if rule.predicate not in form.recursive:
                body = (
                    0
                    if place in form.bounds.waits
                    else max((_begin(b.op, b.range, found[b.predicate]) for b in rule.body), default=0)
                )
                found[rule.predicate] = max(found[rule.predicate], body + rule.range[0])
    return found


def _begin(op: Op, pair: tuple[int, int], begin: int) -> int:
    least, most = pair
    distance = most if op is Op.BOX else least
    return begin + max(distance, 0) if abs(distance) < LIMIT else begin


def _by_origin(form: Standing, begins: dict[str, int]) -> dict[str, Polynomial]:
    """For the bounded form, how many intervals of an atom end at or after the present, by the rules they come from."""
    found: dict[str, Polynomial] = {}

    def count(name: str) -> Polynomial:
        if name not in found:
            if name in form.recursive:
                found[name] = {0: Fraction(2)}
            else:
                found[name] = _sum([{0: Fraction(1)}, *(of(rule) for rule in form.rules if rule.predicate == name)])
        return found[name]

    def of(rule: FlatRule) -> Polynomial:
        variables = {arg for b in rule.body for arg in b.args if isinstance(arg, Variable)}
        free = len(variables - set(rule.args))
        operators = [b for b in rule.body if b.op in (Op.DIAMOND, Op.BOX)]
        if not operators:
            # The complement of some intervals has one more.
            parts = [_sum([count(b.predicate), {0: Fraction(b.negated)}]) for b in rule.body]
            return _times(_sum(parts), free)
        (literal,) = operators
        least, most = literal.range
        if most == POS_INF:
            return {0: Fraction(1)}
        ahead = _begin(literal.op, literal.range, begins[literal.predicate]) + rule.range[0]
        intervals = {0: Fraction(ahead // (most - least) + 2)}
        return intervals if literal.op is Op.DIAMOND else _times(intervals, free)

    for name in form.names:
        count(name)
    return found


def _sum(parts: Iterable[Polynomial]) -> Polynomial:
    total: Polynomial = {}
    for part in parts:
        for power, factor in part.items():
            total[power] = total.get(power, Fraction(0)) + factor
    return total


def _times(polynomial: Polynomial, power: int) -> Polynomial:
    return {own + power: factor for own, factor in polynomial.items()}


def _bound(known: Polynomial, by_density: Polynomial | None, stream: Stream) -> Bound:
    terms = []
    for power in sorted({*known, *(by_density or {})}, reverse=True):
        factor = str(known.get(power, 0))
        if by_density and by_density.get(power):
            factor = f"({by_density[power]}/g + {factor})"
        if factor != "0":
            terms.append(" * ".join([factor, *([f"n^{power}" if power > 1 else "n"] if power else [])]))
    formula = " + ".join(terms) or "0"
    if stream.objects is None or by_density is not None:
        return Bound(formula)
    facts = ceil(sum(factor * stream.objects**power for power, factor in known.items()))
    return Bound(formula, facts)
