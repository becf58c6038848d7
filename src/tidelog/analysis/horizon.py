"""How far a program looks: back (retention) and ahead (look-ahead).

An atom under operators is read at a set of distances from the time of the rule's body: `Diamondminus[1,3]
Diamondplus[0,1] P` reads P from 3 before to 0 after, since its distances are the sum of -[1,3] and [0,1]. The left
operand of `A Since[a,b] B` is read strictly between, from b before up to the present.

- **Retention** of a predicate: the greatest distance back at which the body of some rule reads it. What is older is
  never looked at again.
- **Look-ahead** of a predicate: how much later than t data may arrive that still decides the predicate at t. A rule
  whose head is written d after its body (d < 0 under Boxminus), and that reads Q up to r after its body, needs Q up to
  r - d later than the head; Q has its own look-ahead. So the look-ahead is the heaviest path through the predicate
  graph, at least 0, and infinite if a cycle gains weight.

Open and closed ends are not told apart: a distance is the supremum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tidelog.analysis.fragments import range_on
from tidelog.language.program import Program
from tidelog.language.syntax import Atom, Binary, BinaryOp, Bottom, Formula, Literal, Rule, Top, Unary, UnaryOp
from tidelog.timeline.interval import INF, Time

#: The node of the predicate graph that stands for all constraints.
CONSTRAINT = "Bottom"


@dataclass(frozen=True, slots=True)
class LookAhead:
    """`distance` is infinite where some rule alone, or a cycle of rules, looks ahead for ever; `rule` is that rule."""

    distance: Time
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class _Edge:
    """To know `head` at t, `body` must be known up to t + weight."""

    head: str
    body: str
    weight: Time
    rule: Rule


def retention(program: Program, timeline: str) -> dict[str, Time]:
    """For each predicate that some body reads, how far back it is read at most."""
    back: dict[str, Time] = {}
    for rule in program.rules:
        for predicate, lo, _ in reads(rule, timeline):
            back[predicate] = max(back.get(predicate, Fraction(0)), -lo)
    return back


def look_ahead(program: Program, timeline: str) -> dict[str, LookAhead]:
    """For each predicate (and `CONSTRAINT`), how far ahead of t its truth at t can depend on data."""
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
    # Heaviest paths without a cycle have fewer edges than there are nodes: what still grows grows for ever.
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
    """The rule that looks farthest ahead on the cycle that feeds `start`."""
    node = start
    for _ in cause:
        node = cause[node].body
    cycle, first = [cause[node]], node
    while (node := cause[node].body) != first:
        cycle.append(cause[node])
    return max(cycle, key=lambda edge: edge.weight).rule


def _edges(program: Program, timeline: str) -> Iterator[_Edge]:
    for rule in program.rules:
        for head, written, _ in _distances(rule.head, timeline, Fraction(0), Fraction(0)):
            for body, _, hi in reads(rule, timeline):
                yield _Edge(head, body, hi - written, rule)


def reads(rule: Rule, timeline: str) -> Iterator[tuple[str, Time, Time]]:
    """Each predicate of the body with the least and greatest distance at which it is read; back is negative."""
    for part in rule.body:
        if isinstance(part, Literal):
            for predicate, lo, hi in _distances(part.formula, timeline, Fraction(0), Fraction(0)):
                if predicate != CONSTRAINT:
                    yield predicate, lo, hi


def _distances(formula: Formula, timeline: str, lo: Time, hi: Time) -> Iterator[tuple[str, Time, Time]]:
    """Each atom's predicate with the least and greatest distance at which it is read (or written, in a head)."""
    match formula:
        case Atom(predicate=predicate):
            yield predicate, lo, hi
        case Bottom():
            yield CONSTRAINT, lo, hi
        case Top():
            return
        case Unary(op=op, range=interval, arg=arg):
            found = range_on(interval, timeline)
            if found is not None and op in (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS):
                yield from _distances(arg, timeline, lo - found.hi, hi - found.lo)
            elif found is not None:
                yield from _distances(arg, timeline, lo + found.lo, hi + found.hi)
        case Binary(op=op, range=interval, left=left, right=right):
            found = range_on(interval, timeline)
            if found is None:
                return
            # Strictly between: over the integers one step away from both ends.
            step = 1 if timeline == "integer" else 0
            between = found.hi - step
            if op is BinaryOp.SINCE:
                yield from _distances(right, timeline, lo - found.hi, hi - found.lo)
                if between >= step and found.hi > 0:
                    yield from _distances(left, timeline, lo - between, hi - step)
            else:
                yield from _distances(right, timeline, lo + found.lo, hi + found.hi)
                if between >= step and found.hi > 0:
                    yield from _distances(left, timeline, lo + step, hi + between)
