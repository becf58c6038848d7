"""The parts of formulas and rules: times, variables, atoms, comparisons and heads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

from tidelog.language.syntax import (
    Atom,
    Binary,
    BodyLiteral,
    Comparison,
    Condition,
    Expression,
    Fact,
    Formula,
    Group,
    Literal,
    Operation,
    Rule,
    Unary,
    Variable,
)
from tidelog.timeline.interval import INF, Time


def times_of(formula: Formula) -> Iterator[Time]:
    """All ends of ranges in a formula."""
    match formula:
        case Group():
            for inner in formulas_in(formula):
                yield from times_of(inner)
        case Unary(_, range_, arg):
            yield from (range_.lo, range_.hi)
            yield from times_of(arg)
        case Binary(_, range_, left, right):
            yield from (range_.lo, range_.hi)
            yield from times_of(left)
            yield from times_of(right)


def formulas_in(group: Group) -> list[Formula]:
    return [literal.formula for literal in group.literals if isinstance(literal, Literal)]


def formulas_of(rule: Rule) -> list[Formula]:
    return [rule.head] + [literal.formula for literal in rule.body if isinstance(literal, Literal)]


def common_denominator(times: Iterable[Time]) -> int:
    return math.lcm(1, *(Fraction(t).denominator for t in times if abs(t) != INF))


def denominator_of(rules: Iterable[Rule], facts: Iterable[Fact]) -> int:
    rule_times = (t for rule in rules for formula in formulas_of(rule) for t in times_of(formula))
    fact_times = (t for fact in facts for t in (fact.interval.lo, fact.interval.hi))
    return common_denominator(itertools.chain(rule_times, fact_times))


def variables_of(formula: Formula) -> Iterator[str]:
    match formula:
        case Group(literals=literals):
            for literal in literals:
                if isinstance(literal, Literal):
                    yield from variables_of(literal.formula)
                else:
                    yield from variables_outside_braces(literal.left)
                    yield from variables_outside_braces(literal.right)
        case Atom(_, args):
            yield from (term.name for term in args if isinstance(term, Variable))
        case Unary(_, _, arg):
            yield from variables_of(arg)
        case Binary(_, _, left, right):
            yield from variables_of(left)
            yield from variables_of(right)


def variables_outside_braces(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Variable):
        yield expression.name
    elif isinstance(expression, Operation):
        for arg in expression.args:
            yield from variables_outside_braces(arg)


def computes(literal: BodyLiteral) -> bool:
    """Whether a literal is a condition, or has one in a group."""
    if not isinstance(literal, Literal):
        return isinstance(literal, Condition)
    return any(computes(inner) for group in groups_of(literal.formula) for inner in group.literals)


def groups_of(formula: Formula) -> Iterator[Group]:
    """The groups of a formula, those inside others first."""
    match formula:
        case Group():
            for inner in formulas_in(formula):
                yield from groups_of(inner)
            yield formula
        case Unary(_, _, arg):
            yield from groups_of(arg)
        case Binary(_, _, left, right):
            yield from groups_of(left)
            yield from groups_of(right)


def atoms_of(formula: Formula) -> Iterator[Atom]:
    yield from (atom for atom, _ in signed_atoms_of(formula, False))


def signed_atoms_of(formula: Formula, negated: bool) -> Iterator[tuple[Atom, bool]]:
    """The atoms of a formula, each with whether a negation is above it: the formula's own, or one inside a group."""
    match formula:
        case Group(literals=literals):
            for literal in literals:
                if isinstance(literal, Literal):
                    yield from signed_atoms_of(literal.formula, negated or literal.negated)
        case Atom():
            yield formula, negated
        case Unary(_, _, arg):
            yield from signed_atoms_of(arg, negated)
        case Binary(_, _, left, right):
            yield from signed_atoms_of(left, negated)
            yield from signed_atoms_of(right, negated)


def head_atom(head: Formula) -> Formula:
    """The atom, Top or Bottom under a head's boxes."""
    while isinstance(head, Unary):
        head = head.arg
    return head


def head_predicates(rules: Iterable[Rule]) -> set[str]:
    return {head.predicate for rule in rules if isinstance(head := head_atom(rule.head), Atom)}


def comparisons_of(body: Iterable[BodyLiteral]) -> Iterator[Comparison]:
    """The comparisons of a body, those inside groups included."""
    for literal in body:
        if isinstance(literal, Comparison):
            yield literal
        elif isinstance(literal, Literal):
            yield from comparisons_under(literal.formula)


def comparisons_under(formula: Formula) -> Iterator[Comparison]:
    match formula:
        case Group(literals=literals):
            yield from comparisons_of(literals)
        case Unary(_, _, arg):
            yield from comparisons_under(arg)
        case Binary(_, _, left, right):
            yield from comparisons_under(left)
            yield from comparisons_under(right)
