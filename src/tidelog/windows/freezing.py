"""Bodies of DatalogMTL rules as data: all the ways in which a body can be true at time 0.

Variables become constants that occur nowhere else. A box over an interval is a fact that holds throughout; a diamond,
or the right side of Since, is a fact at one of the points that it allows, and each of them is a case of its own. On
the integers these are finitely many. On the rationals it matters only between which multiples of the tick a point lies,
and in which order the k points of a case lie within their ticks, since moving all times by a monotone map that keeps
distances of whole ticks changes no truth; so multiples of tick/(k+1) stand for all points.

What cannot be frozen (a diamond under a box, an unbounded diamond) or has too many cases is taken for an atom of its
own, and so are negated literals and comparisons: `names` says which, so that the same can be done to other rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import ceil, floor, isinf

from tidelog.analysis.fragments import range_on, subformulas
from tidelog.language.printer import format_formula
from tidelog.language.safety import check_safety
from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
    BodyLiteral,
    Comparison,
    Fact,
    Formula,
    Literal,
    Rule,
    Term,
    Top,
    Unary,
    UnaryOp,
    Variable,
)
from tidelog.timeline.interval import INF, Interval, Time
from tidelog.windows.terms import frozen_term, implied

#: The most cases that a body is split into.
CASES = 256
_PAST = (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS)
_BOXES = (UnaryOp.BOX_MINUS, UnaryOp.BOX_PLUS)
_NOW = Interval.point(Fraction(0))

#: Atoms with the interval in which each holds.
_Case = tuple[tuple[Atom, Interval], ...]


@dataclass(frozen=True)
class Frozen:
    """The cases of a body, and the head's fact, which must follow in each of them. `named` are the names of formulas
    that were taken for atoms."""

    cases: tuple[tuple[Fact, ...], ...]
    head: Fact
    named: frozenset[str]


class _Unfreezable(Exception):
    """A formula whose truth is not that of finitely many sets of facts."""


def frozen(rule: Rule, tick: Fraction, timeline: str, split: bool = True) -> Frozen | None:
    """A rule as data; None for a constraint, and for heads that hold nowhere. Without `split`, what has more than one
    case is taken for an atom."""
    head = _head(rule.head, timeline)
    if head is None:
        return None
    points = sum(_points(part.formula) for part in rule.body if isinstance(part, Literal) and not part.negated)
    step = tick if timeline == "integer" else tick / (points + 1)
    named: dict[str, None] = {}
    choices: list[list[_Case]] = []
    for part in rule.body:
        ways: list[_Case] | None = None
        if isinstance(part, Literal) and not part.negated:
            try:
                ways = list(_throughout(part.formula, _NOW, step, timeline))
            except _Unfreezable:
                ways = None
        if ways is None or len(ways) * _count(choices) > (CASES if split else 1):
            atoms = taken_for_atoms(part)
            named |= dict.fromkeys(atom.predicate for atom in atoms)
            always = Interval.always() if isinstance(part, Comparison) else _NOW
            ways = [tuple((atom, always) for atom in atoms)]
        choices.append(ways)
    cases = [tuple(_fact(*held) for part in case for held in part) for case in product(*choices)]
    return Frozen(tuple(cases), _fact(*head), frozenset(named))


def _count(choices: list[list[_Case]]) -> int:
    count = 1
    for ways in choices:
        count *= max(1, len(ways))
    return count


def _points(formula: Formula) -> int:
    """How many points a case of the formula chooses."""
    return sum(
        isinstance(node, Binary) or (isinstance(node, Unary) and node.op not in _BOXES and not node.range.is_point())
        for node in subformulas(formula)
    )


def _throughout(formula: Formula, when: Interval, step: Fraction, timeline: str) -> Iterator[_Case]:
    """The ways in which a formula holds throughout an interval."""
    match formula:
        case Atom():
            yield ((formula, when),)
        case Top():
            yield ()
        case Unary(op=op, range=interval, arg=arg):
            distance = range_on(interval, timeline)
            if distance is None:
                raise _Unfreezable
            if op in _BOXES or distance.is_point():
                yield from _throughout(arg, _moved(when, distance, op in _PAST), step, timeline)
            elif when.is_point():
                for point in _multiples(_moved(when, distance, op in _PAST), step):
                    yield from _throughout(arg, point, step, timeline)
            else:
                raise _Unfreezable
        case Binary(op=op, range=interval, left=left, right=right):
            distance = range_on(interval, timeline)
            if distance is None or not when.is_point():
                raise _Unfreezable
            for point in _multiples(_moved(when, distance, op is BinaryOp.SINCE), step):
                lo, hi = sorted((when.lo, point.lo))
                between = range_on(Interval(lo, hi, False, False), timeline) if lo < hi else None
                lefts = [()] if between is None else list(_throughout(left, between, step, timeline))
                for first, second in product(lefts, list(_throughout(right, point, step, timeline))):
                    yield first + second
        case _:
            raise _Unfreezable


def _moved(when: Interval, distance: Interval, back: bool) -> Interval:
    """All points at some distance from a point of the interval."""
    if back:
        distance = Interval(-distance.hi, -distance.lo, distance.hi_closed, distance.lo_closed)
    lo, hi = when.lo + distance.lo, when.hi + distance.hi
    return Interval(
        lo, hi, when.lo_closed and distance.lo_closed and lo > -INF, when.hi_closed and distance.hi_closed and hi < INF
    )


def _multiples(interval: Interval, step: Fraction) -> Iterator[Interval]:
    if isinf(interval.lo) or isinf(interval.hi):
        raise _Unfreezable
    first, last = ceil(interval.lo / step), floor(interval.hi / step)
    if last - first > CASES:
        raise _Unfreezable
    for number in range(first, last + 1):
        at = number * step
        if (at > interval.lo or interval.lo_closed) and (at < interval.hi or interval.hi_closed):
            yield Interval.point(at)


def _head(formula: Formula, timeline: str) -> tuple[Atom, Interval] | None:
    when: Interval = _NOW
    while isinstance(formula, Unary):
        distance = range_on(formula.range, timeline)
        if distance is None:
            return None
        when = _moved(when, distance, formula.op in _PAST)
        formula = formula.arg
    return (formula, when) if isinstance(formula, Atom) else None


def _fact(atom: Atom, when: Interval) -> Fact:
    return Fact(atom.predicate, tuple(map(frozen_term, atom.args)), when)


def without_names(rule: Rule, named: frozenset[str]) -> Iterator[Rule]:
    """The rule with what has one of the names taken for atoms, too, and what these atoms follow from. A rule with
    negation or comparisons that have no name gives nothing: they may not hold."""
    body: list[BodyLiteral] = []
    for part in rule.body:
        atom = taken_for_atoms(part)[0]
        positive = isinstance(part, Literal) and not part.negated
        definition = Rule(atom, (part,))
        if atom.predicate in named and positive and next(check_safety(definition), None) is None:
            yield definition
            body.append(Literal(atom))
        elif positive:
            body.append(part)
        elif atom.predicate in named:
            body.append(Literal(atom))
        else:
            return
    yield replace(rule, body=tuple(body))


def taken_for_atoms(part: BodyLiteral) -> list[Atom]:
    """The atom that a literal is taken for, and others that hold wherever it does; names no user can write."""
    if isinstance(part, Comparison):
        return [Atom(f"$ {op}", args) for op, args in implied(part)]
    args: list[Term] = []

    def shape(formula: Formula) -> Formula:
        match formula:
            case Atom(predicate=predicate, args=terms):
                args.extend(terms)
                return Atom(predicate, tuple(Variable("_", True) for _ in terms))
            case Unary():
                return replace(formula, arg=shape(formula.arg))
            case Binary():
                return replace(formula, left=shape(formula.left), right=shape(formula.right))
            case _:
                return formula

    text = format_formula(shape(part.formula))
    return [Atom(f"$ {'not ' if part.negated else ''}{text}", tuple(args))]


def ends(rule: Rule) -> Iterator[Time]:
    """All numbers in the ranges of a rule."""
    formulas = [rule.head, *(part.formula for part in rule.body if isinstance(part, Literal))]
    for formula in formulas:
        for node in subformulas(formula):
            if isinstance(node, Unary | Binary):
                yield from (node.range.lo, node.range.hi)
