"""Which variables of a rule with numbers are bound where: by atoms, by equations, or by the braces of an aggregate."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import assert_never

from tidelog.language.aggregate_checks import body_aggregates, find_aggregates
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    BodyLiteral,
    Comparison,
    Condition,
    Constant,
    Expression,
    Formula,
    Literal,
    Operation,
    Rule,
    Variable,
)
from tidelog.language.validation import formula_atoms

#: Aggregates with a value in a group without rows.
WITH_ZERO = (AggregateFunction.COUNT, AggregateFunction.SUM, AggregateFunction.DURATION)


def expression_variables(expression: Expression, braces: bool = True) -> Iterator[Variable]:
    """Yield the variables of an expression, with or without those inside the braces of aggregates."""
    match expression:
        case Variable():
            yield expression
        case Constant():
            return
        case Operation(_, args):
            for arg in args:
                yield from expression_variables(arg, braces)
        case Aggregate(_, values, body):
            if braces:
                for value in values:
                    yield from expression_variables(value)
                for literal in body:
                    yield from literal_variables(literal)
        case _:
            assert_never(expression)


def literal_variables(literal: BodyLiteral, braces: bool = True) -> Iterator[Variable]:
    """Yield the variables of a body literal, with or without those inside the braces of aggregates."""
    match literal:
        case Literal(formula):
            yield from _formula_variables(formula)
        case Comparison(_, left, right) | Condition(_, left, right):
            yield from expression_variables(left, braces)
            yield from expression_variables(right, braces)
        case _:
            assert_never(literal)


def _formula_variables(formula: Formula) -> Iterator[Variable]:
    for atom in formula_atoms(formula):
        yield from (term for term in atom.args if isinstance(term, Variable))


def outer_variables(rule: Rule) -> dict[Variable, None]:
    """Return the variables that occur outside all braces, in order."""
    found = dict.fromkeys(_formula_variables(rule.head))
    for literal in rule.body:
        found |= dict.fromkeys(literal_variables(literal, braces=False))
    return found


def group_variables(aggregate: Aggregate, rule: Rule) -> tuple[Variable, ...]:
    """Return the variables of an aggregate's braces that also occur outside all braces, in order."""
    outer = outer_variables(rule)
    return tuple(dict.fromkeys(v for v in expression_variables(aggregate) if v in outer))


def atom_variables(body: Iterable[BodyLiteral]) -> dict[Variable, None]:
    """Return the variables that the positive atoms of a body bind, in order.

    Left operands of Since and Until bind nothing.
    """
    return {
        term: None
        for literal in body
        if isinstance(literal, Literal) and not literal.negated
        for atom in formula_atoms(literal.formula, left=False)
        for term in atom.args
        if isinstance(term, Variable)
    }


def rule_aggregates(rule: Rule) -> tuple[Aggregate, ...]:
    """Return the aggregates of a rule, in order."""
    return tuple(body_aggregates(rule.body))


def bound_outside(rule: Rule) -> dict[Variable, None]:
    """Return the variables that are bound outside of all braces: by a positive atom, or computed from such variables.

    An aggregate computes a value only if all of its group variables are bound outside of it.
    """
    outer = outer_variables(rule)

    def find_needed(expression: Expression) -> Iterator[Variable]:
        return (variable for variable in expression_variables(expression) if variable in outer)

    return _add_computed(atom_variables(rule.body), rule.body, find_needed)


def bound_inside(aggregate: Aggregate, given: Iterable[Variable]) -> dict[Variable, None]:
    """Return the variables that are bound inside the braces, by atoms or computed, if some are given from outside."""
    return _add_computed(atom_variables(aggregate.body) | dict.fromkeys(given), aggregate.body, expression_variables)


def bound_anywhere(rule: Rule) -> dict[Variable, None]:
    """Return the variables outside all braces that something binds: atoms, equations, or braces, as group variables.

    An aggregate binds variables once everything that its braces need from outside is bound, so two aggregates cannot
    bind each other's variables.
    """
    bound = bound_outside(rule)
    equations = list(find_equations(rule.body))
    while True:
        ready = {aggregate for aggregate in rule_aggregates(rule) if not find_unbound(aggregate, rule, bound)}
        found = {
            variable: None
            for aggregate in ready
            for variable in group_variables(aggregate, rule)
            if variable not in bound
        } | {
            variable: None
            for variable, expression in equations
            if variable not in bound
            and ready.issuperset(find_aggregates(expression))
            and all(v in bound for v in expression_variables(expression, braces=False))
        }
        if not found:
            return bound
        bound = bound | found


def find_unbound(aggregate: Aggregate, rule: Rule, given: Container[Variable]) -> tuple[Variable, ...]:
    """Return the variables of an aggregate that its braces do not bind and that are not given from outside."""
    inside = bound_inside(aggregate, (v for v in group_variables(aggregate, rule) if v in given))
    return tuple(dict.fromkeys(v for v in expression_variables(aggregate) if v not in inside))


def find_equations(body: Iterable[BodyLiteral]) -> Iterator[tuple[Variable, Expression]]:
    """Yield a variable and an expression for each way to read a literal of a body as `V = E`.

    A duration is only compared: it computes nothing.
    """
    for literal in body:
        if isinstance(literal, Comparison | Condition) and literal.op == "=":
            for variable, expression in ((literal.left, literal.right), (literal.right, literal.left)):
                if isinstance(variable, Variable) and not _has_duration(expression):
                    yield variable, expression


def _has_duration(expression: Expression) -> bool:
    return any(aggregate.function is AggregateFunction.DURATION for aggregate in find_aggregates(expression))


def needs_row(aggregate: Aggregate, rule: Rule) -> bool:
    """Return whether only groups with a row exist: the braces bind a group variable that is not bound outside."""
    inside, outside = bound_inside(aggregate, ()), bound_outside(rule)
    return any(variable in inside and variable not in outside for variable in group_variables(aggregate, rule))


def has_value_without_rows(aggregate: Aggregate, rule: Rule) -> bool:
    """Return whether an aggregate is 0 in a group without rows."""
    return aggregate.function in WITH_ZERO and not needs_row(aggregate, rule)


def _add_computed(
    bound: dict[Variable, None], body: Iterable[BodyLiteral], needed: Callable[[Expression], Iterator[Variable]]
) -> dict[Variable, None]:
    """Add the variables that equations compute once everything that they need is bound, in any order."""
    equations = list(find_equations(body))
    while True:
        found = {
            variable: None
            for variable, expression in equations
            if variable not in bound and all(v in bound for v in needed(expression))
        }
        if not found:
            return bound
        bound = bound | found
