"""Compute how far a program looks back (retention) and ahead (look-ahead).

An atom under operators is read at a set of distances from the time of the rule body: `Diamondminus[1,3]
Diamondplus[0,1] P` reads P from 3 before to 0 after, since its distances are the sum of -[1,3] and [0,1]. The left
operand of `A Since[a,b] B` is read strictly between, from b before up to the present.

- **Retention** of a predicate: the greatest distance back at which the body of some rule reads it. Older facts are
  never read again.
- **Look-ahead** of a predicate: how much later than t a fact may hold that still affects the predicate at t. A rule
  whose head is written d after its body (d < 0 under Boxminus), and that reads Q up to r after its body, needs Q up to
  r - d later than the head; Q has its own look-ahead. So the look-ahead is the heaviest path through the predicate
  graph, at least 0, and infinite if a cycle gains weight.

Open and closed ends are not distinguished: a distance is a supremum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from tidelog.analysis.fragments import range_on_timeline
from tidelog.language.aggregate_checks import body_aggregates
from tidelog.language.program import Program
from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
    BodyLiteral,
    Bottom,
    Formula,
    Literal,
    Rule,
    Top,
    Unary,
    UnaryOp,
)
from tidelog.timeline.interval import INF, Time, TimelineName

#: The node of the predicate graph that stands for all constraints.
CONSTRAINT = "Bottom"


@dataclass(frozen=True, slots=True)
class LookAhead:
    """A look-ahead; infinite if a rule, or a cycle of rules, looks ahead without bound, and `rule` is that rule."""

    distance: Time
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class _Edge:
    """To decide `head` at t, `body` must be known up to t + weight."""

    head: str
    body: str
    weight: Time
    rule: Rule


def compute_retention(program: Program, timeline: TimelineName) -> dict[str, Time]:
    """Return, for each predicate that some body reads, how far back it is read at most."""
    back: dict[str, Time] = {}
    for rule in program.rules:
        for read in find_reads(rule, timeline):
            back[read.predicate] = max(back.get(read.predicate, Fraction(0)), -read.lo)
    return back


def compute_look_ahead(program: Program, timeline: TimelineName) -> dict[str, LookAhead]:
    """Return, for each predicate and `CONSTRAINT`, how far ahead of t its truth at t can depend on data."""
    edges = list(_edges(program, timeline))
    nodes = sorted({edge.head for edge in edges} | {edge.body for edge in edges})
    ahead: dict[str, Time] = dict.fromkeys(nodes, Fraction(0))
    cause: dict[str, _Edge] = {}
    for _ in nodes:
        changed = False
        for edge in edges:
            if ahead[edge.body] + edge.weight > ahead[edge.head]:
                ahead[edge.head] = ahead[edge.body] + edge.weight
                cause[edge.head] = edge
                changed = True
        if not changed:
            break
    # Heaviest paths without a cycle have fewer edges than there are nodes: a path that still grows does so forever.
    growing = [edge for edge in edges if ahead[edge.body] + edge.weight > ahead[edge.head]]
    blame: dict[str, Rule] = {edge.body: _heaviest_on_cycle(edge.body, cause) for edge in growing}
    blame |= {edge.head: edge.rule for edge in edges if edge.weight == INF}
    pending = list(blame)
    while pending:
        node = pending.pop()
        for edge in edges:
            if edge.body == node and edge.head not in blame:
                blame[edge.head] = blame[node]
                pending.append(edge.head)
    return {node: LookAhead(INF, blame[node]) if node in blame else LookAhead(ahead[node]) for node in nodes}


def _heaviest_on_cycle(start: str, cause: dict[str, _Edge]) -> Rule:
    """Return the rule that looks farthest ahead on the cycle that leads to `start`."""
    node = start
    for _ in cause:
        node = cause[node].body
    cycle, first = [cause[node]], node
    while (node := cause[node].body) != first:
        cycle.append(cause[node])
    return max(cycle, key=lambda edge: edge.weight).rule


def _edges(program: Program, timeline: TimelineName) -> Iterator[_Edge]:
    for rule in program.rules:
        for head, written, _ in _distances(rule.head, timeline, Fraction(0), Fraction(0)):
            for read in find_reads(rule, timeline):
                yield _Edge(head, read.predicate, read.hi - written, rule)


@dataclass(frozen=True, slots=True)
class Read:
    """A predicate that a body reads, at least `lo` and at most `hi` after its own time; back is negative.

    `denied` says that a negation or an aggregate reads it.
    """

    predicate: str
    lo: Time
    hi: Time
    denied: bool


def find_reads(rule: Rule, timeline: TimelineName) -> Iterator[Read]:
    """Yield the reads of a rule's body."""
    return _body_reads(rule.body, timeline, Fraction(0), Fraction(0), False)


def head_distance(rule: Rule, timeline: TimelineName) -> Time:
    """Return the least distance from the time of a rule's body to that of its head."""
    distances = (lo for _, lo, _ in _distances(rule.head, timeline, Fraction(0), Fraction(0)))
    return min(distances, default=Fraction(0))


def _body_reads(
    body: Iterable[BodyLiteral], timeline: TimelineName, lo: Time, hi: Time, denied: bool
) -> Iterator[Read]:
    for part in body:
        if isinstance(part, Literal):
            for predicate, least, most in _distances(part.formula, timeline, lo, hi):
                if predicate != CONSTRAINT:
                    yield Read(predicate, least, most, denied or part.negated)
    for aggregate in body_aggregates(body):
        window = None if aggregate.range is None else range_on_timeline(aggregate.range, timeline)
        back = (lo, hi) if window is None else (lo - window.hi, hi - window.lo)
        yield from _body_reads(aggregate.body, timeline, *back, True)


def _distances(formula: Formula, timeline: TimelineName, lo: Time, hi: Time) -> Iterator[tuple[str, Time, Time]]:
    """Yield each atom's predicate with the least and greatest distance at which it is read or, in a head, written."""
    match formula:
        case Atom(predicate=predicate):
            yield predicate, lo, hi
        case Bottom():
            yield CONSTRAINT, lo, hi
        case Top():
            return
        case Unary(op=op, range=interval, arg=arg):
            span = range_on_timeline(interval, timeline)
            if span is not None and op in (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS):
                yield from _distances(arg, timeline, lo - span.hi, hi - span.lo)
            elif span is not None:
                yield from _distances(arg, timeline, lo + span.lo, hi + span.hi)
        case Binary(op=op, range=interval, left=left, right=right):
            span = range_on_timeline(interval, timeline)
            if span is None:
                return
            # Strictly between: over the integers one step away from both ends.
            step = 1 if timeline == "integer" else 0
            between = span.hi - step
            if op is BinaryOp.SINCE:
                yield from _distances(right, timeline, lo - span.hi, hi - span.lo)
                if between >= step and span.hi > 0:
                    yield from _distances(left, timeline, lo - between, hi - step)
            else:
                yield from _distances(right, timeline, lo + span.lo, hi + span.hi)
                if between >= step and span.hi > 0:
                    yield from _distances(left, timeline, lo + step, hi + between)
