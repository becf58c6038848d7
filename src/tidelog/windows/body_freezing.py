"""Freeze DatalogMTL rules: turn a rule body into facts, one set for each way in which it can be true at time 0.

Variables become constants that occur nowhere else. A box over an interval becomes a fact that holds throughout it. A
diamond, or the right side of Since, becomes a fact at one point of its range, and each point is a separate case. On the
integers there are finitely many points. On the rationals it only matters between which multiples of the tick a point
lies, and in which order the k points of a case lie within their ticks: a monotone map of time that keeps distances of
whole ticks changes no truth value. So multiples of tick/(k+1) represent all points.

A literal that cannot be frozen (a diamond under a box, an unbounded diamond) or that has too many cases is abstracted:
replaced by an atom of its own. So are negated literals and comparisons. `FrozenRule.abstracted` lists these atoms, so
that `abstract_rule` can do the same to other rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import ceil, floor, isinf

from tidelog.analysis.fragments import range_on_timeline, subformulas
from tidelog.language.hidden_predicates import hidden_name
from tidelog.language.printer import format_formula
from tidelog.language.rule_checks import diagnose_safety
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
from tidelog.timeline.interval import INF, Interval, Time, TimelineName
from tidelog.windows.frozen_terms import freeze_term, weaken_comparison

#: The largest number of cases that a body is split into.
MAX_CASES = 256
_PAST = (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS)
_BOXES = (UnaryOp.BOX_MINUS, UnaryOp.BOX_PLUS)
_NOW = Interval.point(Fraction(0))

#: Atoms with the interval in which each holds.
_Case = tuple[tuple[Atom, Interval], ...]


@dataclass(frozen=True)
class FrozenRule:
    """The cases of a body, and the fact of the head, which must follow in each of them. `abstracted` holds the
    predicates of the atoms that replaced literals."""

    cases: tuple[tuple[Fact, ...], ...]
    head: Fact
    abstracted: frozenset[str]


class _CannotFreeze(Exception):
    """The truth of a formula does not depend on finitely many sets of facts."""


def freeze_rule(rule: Rule, tick: Fraction, timeline: TimelineName, split: bool = True) -> FrozenRule | None:
    """Return a rule as facts, or None for a constraint and for a head that holds nowhere. Without `split`, literals
    with more than one case are abstracted."""
    head = _head_interval(rule.head, timeline)
    if head is None:
        return None
    points = sum(_count_choices(part.formula) for part in rule.body if isinstance(part, Literal) and not part.negated)
    step = tick if timeline == "integer" else tick / (points + 1)
    named: dict[str, None] = {}
    choices: list[list[_Case]] = []
    for part in rule.body:
        ways: list[_Case] | None = None
        if isinstance(part, Literal) and not part.negated:
            try:
                ways = list(_ways_to_hold(part.formula, _NOW, step, timeline))
            except _CannotFreeze:
                ways = None
        if ways is None or len(ways) * _count_combinations(choices) > (MAX_CASES if split else 1):
            atoms = abstract_literal(part)
            named |= dict.fromkeys(atom.predicate for atom in atoms)
            always = Interval.always() if isinstance(part, Comparison) else _NOW
            ways = [tuple((atom, always) for atom in atoms)]
        choices.append(ways)
    cases = [tuple(_freeze_atom(*held) for part in case for held in part) for case in product(*choices)]
    return FrozenRule(tuple(cases), _freeze_atom(*head), frozenset(named))


def _count_combinations(choices: list[list[_Case]]) -> int:
    count = 1
    for ways in choices:
        count *= max(1, len(ways))
    return count


def _count_choices(formula: Formula) -> int:
    """Return how many points a case of the formula chooses."""
    return sum(
        isinstance(node, Binary) or (isinstance(node, Unary) and node.op not in _BOXES and not node.range.is_point())
        for node in subformulas(formula)
    )


def _ways_to_hold(formula: Formula, when: Interval, step: Fraction, timeline: TimelineName) -> Iterator[_Case]:
    """Yield the cases in which a formula holds throughout an interval."""
    match formula:
        case Atom():
            yield ((formula, when),)
        case Top():
            yield ()
        case Unary(op=op, range=interval, arg=arg):
            distance = range_on_timeline(interval, timeline)
            if distance is None:
                raise _CannotFreeze
            if op in _BOXES or distance.is_point():
                yield from _ways_to_hold(arg, _shift(when, distance, op in _PAST), step, timeline)
            elif when.is_point():
                for point in _multiples_in(_shift(when, distance, op in _PAST), step):
                    yield from _ways_to_hold(arg, point, step, timeline)
            else:
                raise _CannotFreeze
        case Binary(op=op, range=interval, left=left, right=right):
            distance = range_on_timeline(interval, timeline)
            if distance is None or not when.is_point():
                raise _CannotFreeze
            for point in _multiples_in(_shift(when, distance, op is BinaryOp.SINCE), step):
                lo, hi = sorted((when.lo, point.lo))
                between = range_on_timeline(Interval(lo, hi, False, False), timeline) if lo < hi else None
                lefts = [()] if between is None else list(_ways_to_hold(left, between, step, timeline))
                for first, second in product(lefts, list(_ways_to_hold(right, point, step, timeline))):
                    yield first + second
        case _:
            raise _CannotFreeze


def _shift(when: Interval, distance: Interval, back: bool) -> Interval:
    """Return all points whose distance from a point of the interval lies in `distance`."""
    if back:
        distance = Interval(-distance.hi, -distance.lo, distance.hi_closed, distance.lo_closed)
    lo, hi = when.lo + distance.lo, when.hi + distance.hi
    return Interval(
        lo, hi, when.lo_closed and distance.lo_closed and lo > -INF, when.hi_closed and distance.hi_closed and hi < INF
    )


def _multiples_in(interval: Interval, step: Fraction) -> Iterator[Interval]:
    if isinf(interval.lo) or isinf(interval.hi):
        raise _CannotFreeze
    first, last = ceil(interval.lo / step), floor(interval.hi / step)
    if last - first > MAX_CASES:
        raise _CannotFreeze
    for number in range(first, last + 1):
        at = number * step
        if (at > interval.lo or interval.lo_closed) and (at < interval.hi or interval.hi_closed):
            yield Interval.point(at)


def _head_interval(formula: Formula, timeline: TimelineName) -> tuple[Atom, Interval] | None:
    when: Interval = _NOW
    while isinstance(formula, Unary):
        distance = range_on_timeline(formula.range, timeline)
        if distance is None:
            return None
        when = _shift(when, distance, formula.op in _PAST)
        formula = formula.arg
    return (formula, when) if isinstance(formula, Atom) else None


def _freeze_atom(atom: Atom, when: Interval) -> Fact:
    return Fact(atom.predicate, tuple(map(freeze_term, atom.args)), when)


def abstract_rule(rule: Rule, named: frozenset[str]) -> Iterator[Rule]:
    """Yield the rule with the abstracted literals replaced by their atoms, and rules that define these atoms. Yield
    nothing for a rule with any other negated literal or comparison, since that may not hold."""
    body: list[BodyLiteral] = []
    for part in rule.body:
        atom = abstract_literal(part)[0]
        positive = isinstance(part, Literal) and not part.negated
        definition = Rule(atom, (part,))
        if atom.predicate in named and positive and next(diagnose_safety(definition), None) is None:
            yield definition
            body.append(Literal(atom))
        elif positive:
            body.append(part)
        elif atom.predicate in named:
            body.append(Literal(atom))
        else:
            return
    yield replace(rule, body=tuple(body))


def abstract_literal(part: BodyLiteral) -> list[Atom]:
    """Return the atom that replaces a literal, followed by atoms that hold wherever it does. Their predicates are
    hidden names, which no user can write."""
    if isinstance(part, Comparison):
        return [Atom(hidden_name(f" {op}"), args) for op, args in weaken_comparison(part)]
    assert isinstance(part, Literal), "rules that compute are never compared with others"
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
    return [Atom(hidden_name(f" {'not ' if part.negated else ''}{text}"), tuple(args))]


def range_endpoints(rule: Rule) -> Iterator[Time]:
    """Yield the endpoints of all ranges of a rule."""
    formulas = [rule.head, *(part.formula for part in rule.body if isinstance(part, Literal))]
    for formula in formulas:
        for node in subformulas(formula):
            if isinstance(node, Unary | Binary):
                yield from (node.range.lo, node.range.hi)
