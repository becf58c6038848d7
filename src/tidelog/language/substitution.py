"""Replace variables by terms, everywhere in a formula, a literal or an expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from tidelog.language.syntax import (
    Aggregate,
    Atom,
    Binary,
    BodyLiteral,
    Bottom,
    Comparison,
    Condition,
    Constant,
    Expression,
    Formula,
    Group,
    Literal,
    Operation,
    Term,
    Top,
    Unary,
    Variable,
)

Substitution = Mapping[Variable, Term]


def substitute_term(term: Term, by: Substitution) -> Term:
    """Return a term with variables replaced."""
    return by.get(term, term) if isinstance(term, Variable) else term


def substitute_formula(formula: Formula, by: Substitution) -> Formula:
    """Return a formula with variables replaced."""
    match formula:
        case Group(_, args, literals=literals):
            inner = tuple(substitute_literal(literal, by) for literal in literals)
            return replace(formula, args=tuple(substitute_term(arg, by) for arg in args), literals=inner)
        case Atom(_, args):
            return replace(formula, args=tuple(substitute_term(arg, by) for arg in args))
        case Top() | Bottom():
            return formula
        case Unary(_, _, arg):
            return replace(formula, arg=substitute_formula(arg, by))
        case Binary(_, _, left, right):
            return replace(formula, left=substitute_formula(left, by), right=substitute_formula(right, by))
        case _:
            assert_never(formula)


def substitute_literal(literal: BodyLiteral, by: Substitution) -> BodyLiteral:
    """Return a body literal with variables replaced."""
    match literal:
        case Literal(formula):
            return replace(literal, formula=substitute_formula(formula, by))
        case Comparison(_, left, right):
            return replace(literal, left=substitute_term(left, by), right=substitute_term(right, by))
        case Condition(_, one, other):
            return replace(literal, left=substitute_expression(one, by), right=substitute_expression(other, by))
        case _:
            assert_never(literal)


def substitute_expression(expression: Expression, by: Substitution) -> Expression:
    """Return an expression with variables replaced, also inside braces."""
    match expression:
        case Variable():
            return by.get(expression, expression)
        case Constant():
            return expression
        case Operation(_, args):
            return replace(expression, args=tuple(substitute_expression(arg, by) for arg in args))
        case Aggregate(_, values, body):
            return replace(
                expression,
                values=tuple(substitute_expression(value, by) for value in values),
                body=tuple(substitute_literal(literal, by) for literal in body),
            )
        case _:
            assert_never(expression)
