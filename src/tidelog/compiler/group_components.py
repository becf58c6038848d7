"""Group rules by the strongly connected components of their predicates, in the order of evaluation.

A component in which negation or an aggregate runs through a cycle is a recursion through time (`stratify` has checked
that). It is divided again, by the predicates that its rules read at distance 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tidelog.analysis.predicate_graph import Component, find_components
from tidelog.compiler.bound_memory import least_distance, read_range, window_of
from tidelog.compiler.compiled_program import CompiledProgram, RuleComponent
from tidelog.compiler.flat_rules import FlatRule, Op, Pair
from tidelog.timeline.grid import LIMIT


@dataclass(frozen=True, slots=True)
class _Read:
    """`head` reads `body`, at least `back` before its own time; `denied`: through a negation or an aggregate."""

    head: str
    body: str
    back: int
    denied: bool


def group_components(compiled: CompiledProgram) -> CompiledProgram:
    """Pass: group the rules, each component after those that it reads.

    Stable models are searched for in the ground program, which has components of its own.
    """
    if compiled.target.engine == "stable":
        return compiled
    reads = list(_reads(compiled))
    components = []
    for component in find_components(_graph(reads, compiled)):
        inside = set(component.predicates)
        own = [read for read in reads if read.head in inside and read.body in inside]
        if not any(read.denied for read in own):
            components.append(_component(compiled, component))
            continue
        near = [read for read in own if read.back <= 0]
        graph: dict[str, list[str]] = {name: [] for name in component.predicates}
        for read in near:
            graph[read.head].append(read.body)
        parts = tuple(_component(compiled, part) for part in find_components(graph))
        distance = min(read.back for read in own if read.back > 0)
        components.append(replace(_component(compiled, component), slice=distance, parts=parts))
    return replace(compiled, components=tuple(components))


def _component(compiled: CompiledProgram, component: Component) -> RuleComponent:
    inside, grid = set(component.predicates), compiled.grid
    rules = tuple(rule for rule in compiled.rules if rule.predicate in inside)
    calculations = tuple(step for step in compiled.calculations if step.head.predicate in inside)
    aggregations = tuple(step for step in compiled.aggregations if step.head.predicate in inside)
    below = {literal.predicate for rule in rules for literal in rule.body}
    below |= {source for head, source in compiled.numeric_edges if head in inside}
    reach = max([0, *map(_reach_of, rules), *(_width_of(window_of(step, grid)) for step in aggregations)])
    reach += -reach % grid.tick + grid.tick
    inputs = tuple(sorted(below - inside))
    return RuleComponent(component.predicates, component.recursive, rules, inputs, reach, calculations, aggregations)


def _reads(compiled: CompiledProgram) -> Iterator[_Read]:
    grid = compiled.grid
    for rule in compiled.rules:
        for literal in rule.body:
            back = rule.range[0] + read_range(rule, literal)[0]
            if literal.op is Op.SINCE and not grid.dense:
                # The left operand holds strictly before the present: over the integers, at least one point back.
                back += 1
            # On the rationals an open end comes arbitrarily close to the point next to it.
            yield _Read(rule.predicate, literal.predicate, back - back % grid.tick, literal.negated)
    for calculation in compiled.calculations:
        yield _Read(calculation.head.predicate, calculation.input.predicate, 0, False)
    for step in compiled.aggregations:
        yield _Read(step.head.predicate, step.input.predicate, least_distance(step, grid), True)


def _graph(reads: Iterable[_Read], compiled: CompiledProgram) -> dict[str, list[str]]:
    graph: dict[str, list[str]] = {rule.predicate: [] for rule in compiled.rules}
    for read in reads:
        graph.setdefault(read.head, []).append(read.body)
    return graph


def _reach_of(rule: FlatRule) -> int:
    """Return the largest distance between a rule's body and its head, leaving infinite ranges out."""
    body = max((_width_of(literal.range) for literal in rule.body), default=0)
    return body + _width_of(rule.range)


def _width_of(pair: Pair) -> int:
    return max(abs(end) if abs(end) < LIMIT else abs(other) % LIMIT for end, other in (pair, pair[::-1]))
