"""Find the fragments of DatalogMTL that a program belongs to.

A fragment is a property of the form of the rules, and decides what can be promised about reasoning. `FRAGMENTS` has the
definitions; `stratified` is a property of the predicate graph and is decided in `predicate_graph`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf

from tidelog.language.program import Program
from tidelog.language.syntax import Atom, Binary, BinaryOp, Bottom, Formula, Literal, Rule, Top, Unary, UnaryOp
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import Interval, TimelineName

#: The definition of every fragment, by the name that `tidelog check` prints.
FRAGMENTS: dict[str, str] = {
    "datalog": "no temporal operators",
    "forward-propagating": "only Diamondminus, Boxminus and Since in bodies, only Boxplus in heads, no Top or Bottom",
    "backward-propagating": "only Diamondplus, Boxplus and Until in bodies, only Boxminus in heads, no Top or Bottom",
    "bounded": "no operator reaches to infinity",
    "non-punctual": "no operator's range is a single point",
    "stratified": "no predicate depends on its own negation",
}

_PAST: frozenset[UnaryOp | BinaryOp] = frozenset({UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS, BinaryOp.SINCE})
_FUTURE: frozenset[UnaryOp | BinaryOp] = frozenset({UnaryOp.DIAMOND_PLUS, UnaryOp.BOX_PLUS, BinaryOp.UNTIL})


def find_fragments(program: Program, timeline: TimelineName) -> tuple[str, ...]:
    """Return the fragments that the form of the rules decides, in the order of `FRAGMENTS`.

    Only `non-punctual` depends on the timeline: over the integers the range `(0,2)` is the single point 1.
    """
    operators = [node for rule in program.rules for node in _operators(rule)]
    ranges = [range_on_timeline(node.range, timeline) for node in operators]
    holds = {
        "datalog": not operators,
        "forward-propagating": _propagates_one_way(program, _PAST, UnaryOp.BOX_PLUS),
        "backward-propagating": _propagates_one_way(program, _FUTURE, UnaryOp.BOX_MINUS),
        "bounded": all(span is None or not isinf(span.hi) for span in ranges),
        "non-punctual": not any(span is not None and span.is_point() for span in ranges),
    }
    return tuple(name for name in FRAGMENTS if holds.get(name))


def range_on_timeline(interval: Interval, timeline: TimelineName) -> Interval | None:
    """Return an operator's range on a timeline: over the integers its brackets are closed. None if no point is left."""
    if timeline != "integer":
        return interval
    grid = Grid(dense=False)
    pair = grid.to_pair(interval)
    return None if pair is None else grid.to_interval(*pair)


def subformulas(formula: Formula) -> Iterator[Formula]:
    """Yield the formula and all formulas inside it, outermost first."""
    yield formula
    match formula:
        case Unary(arg=arg):
            yield from subformulas(arg)
        case Binary(left=left, right=right):
            yield from subformulas(left)
            yield from subformulas(right)


def _body_formulas(rule: Rule) -> Iterator[Formula]:
    return (node for part in rule.body if isinstance(part, Literal) for node in subformulas(part.formula))


def _operators(rule: Rule) -> Iterator[Unary | Binary]:
    for node in subformulas(rule.head):
        if isinstance(node, Unary | Binary):
            yield node
    for node in _body_formulas(rule):
        if isinstance(node, Unary | Binary):
            yield node


def _propagates_one_way(program: Program, body: frozenset[UnaryOp | BinaryOp], head: UnaryOp) -> bool:
    """Return whether truth moves in one direction only: no body reads, and no head writes, the other way."""

    def fits(node: Formula, allowed: frozenset[UnaryOp | BinaryOp]) -> bool:
        match node:
            case Unary(op=op) | Binary(op=op):
                return op in allowed
            case Top() | Bottom():
                return False
            case Atom():
                return True

    return all(
        all(fits(node, frozenset({head})) for node in subformulas(rule.head))
        and all(fits(node, body) for node in _body_formulas(rule))
        for rule in program.rules
    )
