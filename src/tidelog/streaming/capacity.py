"""Bound the number of facts that this reasoner holds after a step, for one query over a stream in order of time.

An atom is held as intervals that do not touch. They end at most the predicate's retention before the present, and begin
no further after it than rules write ahead; recursive rules write nothing that begins after the present.

- In the generic form intervals begin at multiples of g, the greatest common divisor of all times and ends of ranges.
- In the bounded form nothing is looked back at, and intervals are counted by where they come from: those of a diamond
  over a range of length w are as long as that, those of a box come from facts that are, and a conjunction has no more
  intervals than its literals together.

Facts that arrive before they begin, or late but within the delay, are held in addition. If more than
`stream_kernel.SMALL` facts are held, forgetting may wait until an eighth as many have arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from tidelog.analysis.memory_bounds import Bound, MemoryBounds, StreamProfile, greatest_common_divisor
from tidelog.analysis.predicate_graph import find_needed_rules
from tidelog.analysis.rule_ranges import range_ends
from tidelog.compiler.choose_grid import find_grid
from tidelog.compiler.compiled_program import CompiledProgram, Target
from tidelog.compiler.flat_rules import FlatRule, Op
from tidelog.compiler.passes import check_program
from tidelog.compiler.validate import choose_timeline
from tidelog.errors import TidelogError
from tidelog.language.bindings import rule_aggregates
from tidelog.language.program import Program
from tidelog.language.syntax import Condition, Rule, Variable
from tidelog.streaming.compiled_query import choose_memory, compile_query
from tidelog.timeline.grid import LIMIT, POS_INF
from tidelog.timeline.interval import TimelineName

#: Coefficients of powers of n, the number of objects.
Polynomial = dict[int, Fraction]


def add_capacity(found: MemoryBounds, program: Program, query: str, timeline: TimelineName | None) -> MemoryBounds:
    """Return the bounds of a query with those of this reasoner added."""
    generic, bounded = (_compute_capacity(program, query, timeline, found.stream, form) for form in (False, True))
    return replace(found, held_generic=generic, held_bounded=bounded)


def _compute_capacity(
    program: Program, query: str, timeline: TimelineName | None, stream: StreamProfile, bounded: bool
) -> Bound:
    try:
        check_program(program, Target("stream", (query,), timeline))
        every = stream.every and greatest_common_divisor([stream.every, *_find_multiples(program, timeline)])
        grid = find_grid(program, timeline, [every.denominator] if every else [])
        if bounded:
            choose_memory(program, query, grid, "bounded")
        form = compile_query(program, query, grid, bounded)
    except TidelogError as refusal:
        return Bound(reason=refusal.diagnostics[0].message)
    if any(_holds_more(program.rules[place]) for place in find_needed_rules(program.rules, [query])):
        return Bound(reason="rows of aggregates and computed values are held as well, however many there are")
    begins = _find_latest_beginnings(form)
    passing = set(form.transient)
    kept = [name for name in form.names if name not in passing]
    if bounded:
        counts = _count_by_origin(form, begins)
        return _format_bound(_add_up(_times_power(counts[name], form.arities[name]) for name in kept), None, stream)
    scale = grid.tick * grid.denominator
    spans = {name: Fraction(max(form.bounds.retention[name], 0) + begins[name], scale) for name in kept}
    if every is None:
        by_density = _add_up({form.arities[name]: spans[name]} for name in kept)
        return _format_bound(_add_up({form.arities[name]: Fraction(2)} for name in kept), by_density, stream)
    # One more lies across the beginning of the span, and one begins right at its end.
    counts = {name: {0: Fraction(floor(spans[name] / every) + 2)} for name in kept}
    return _format_bound(_add_up(_times_power(counts[name], form.arities[name]) for name in kept), None, stream)


def _holds_more(rule: Rule) -> bool:
    """Return whether a rule has an aggregate, or computes values, which are none of the objects of the facts."""
    return bool(rule_aggregates(rule)) or any(
        isinstance(literal, Condition) and literal.op == "=" for literal in rule.body
    )


def _find_multiples(program: Program, timeline: TimelineName | None) -> Iterator[Fraction]:
    """Yield lengths that the grid has to divide: the ends of ranges or, on the integers, 1."""
    if choose_timeline(program, timeline) == "integer":
        yield Fraction(1)
    else:
        yield from range_ends(program)


def _find_latest_beginnings(form: CompiledProgram) -> dict[str, int]:
    """Find how far after the present intervals of each predicate may begin."""
    found = dict.fromkeys(form.names, 0)
    for _ in form.names:  # no chain of rules without recursion is longer
        for place, rule in enumerate(form.rules):
            if rule.predicate not in form.recursive:
                body = (
                    0
                    if place in form.bounds.waits
                    else max((_shift_beginning(b.op, b.range, found[b.predicate]) for b in rule.body), default=0)
                )
                found[rule.predicate] = max(found[rule.predicate], body + rule.range[0])
    return found


def _shift_beginning(op: Op, pair: tuple[int, int], begin: int) -> int:
    least, most = pair
    distance = most if op is Op.BOX else least
    return begin + max(distance, 0) if abs(distance) < LIMIT else begin


def _count_by_origin(form: CompiledProgram, begins: dict[str, int]) -> dict[str, Polynomial]:
    """Count, for the bounded form, the intervals of an atom that end at or after the present, by their rules."""
    found: dict[str, Polynomial] = {}

    def count(name: str) -> Polynomial:
        if name not in found:
            if name in form.recursive:
                found[name] = {0: Fraction(2)}
            else:
                found[name] = _add_up(
                    [{0: Fraction(1)}, *(count_from(rule) for rule in form.rules if rule.predicate == name)]
                )
        return found[name]

    def count_from(rule: FlatRule) -> Polynomial:
        variables = {arg for b in rule.body for arg in b.args if isinstance(arg, Variable)}
        free = len(variables - set(rule.args))
        operators = [b for b in rule.body if b.op in (Op.DIAMOND, Op.BOX)]
        if not operators:
            # The complement of some intervals has one more.
            parts = [_add_up([count(b.predicate), {0: Fraction(b.negated)}]) for b in rule.body]
            return _times_power(_add_up(parts), free)
        (literal,) = operators
        least, most = literal.range
        if most == POS_INF:
            return {0: Fraction(1)}
        ahead = _shift_beginning(literal.op, literal.range, begins[literal.predicate]) + rule.range[0]
        intervals = {0: Fraction(ahead // max(most - least, 1) + 2)}
        return intervals if literal.op is Op.DIAMOND else _times_power(intervals, free)

    for name in form.names:
        count(name)
    return found


def _add_up(parts: Iterable[Polynomial]) -> Polynomial:
    total: Polynomial = {}
    for part in parts:
        for power, factor in part.items():
            total[power] = total.get(power, Fraction(0)) + factor
    return total


def _times_power(polynomial: Polynomial, power: int) -> Polynomial:
    return {own + power: factor for own, factor in polynomial.items()}


def _format_bound(known: Polynomial, by_density: Polynomial | None, stream: StreamProfile) -> Bound:
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
