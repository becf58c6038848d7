"""Cut a conjunction at its calculations and aggregates: what comes before, what is computed, what comes after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tidelog.language.aggregate_checks import body_aggregates
from tidelog.language.bindings import (
    atom_variables,
    bound_anywhere,
    bound_outside,
    expression_variables,
    find_unbound,
    literal_variables,
)
from tidelog.language.core_rules import Assign, Test
from tidelog.language.substitution import substitute_formula, substitute_literal
from tidelog.language.syntax import BodyLiteral, Comparison, Condition, Constant, Formula, Literal, Rule, Variable
from tidelog.language.validation import formula_atoms


def remove_renamings(head: Formula, body: Sequence[BodyLiteral]) -> tuple[Formula, Sequence[BodyLiteral]]:
    """Replace variables that are equal to a constant or to a bound variable, and that nothing else binds."""
    while True:
        bound = atom_variables(body)
        for equation in body:
            if isinstance(equation, Literal) or equation.op != "=":
                continue
            for variable, term in ((equation.left, equation.right), (equation.right, equation.left)):
                if (
                    isinstance(variable, Variable)
                    and variable not in bound
                    and (isinstance(term, Constant) or (isinstance(term, Variable) and term in bound))
                ):
                    by = {variable: term}
                    head = substitute_formula(head, by)
                    body = [substitute_literal(literal, by) for literal in body if literal is not equation]
                    break
            else:
                continue
            break
        else:
            return head, body


def is_ready(literal: BodyLiteral, bound: Iterable[Variable]) -> bool:
    """Return whether a literal can be evaluated before any calculation."""
    match literal:
        case Condition():
            return False
        case Literal(_, False):
            return True
        case _:
            return set(literal_variables(literal)) <= set(bound)


def find_step(literal: BodyLiteral, known: set[Variable]) -> Assign | Test | None:
    """Return how a condition is evaluated once some variables are known; None if it has to wait."""
    assert isinstance(literal, Comparison | Condition)
    if set(literal_variables(literal)) <= known:
        return Test(literal.op, literal.left, literal.right)
    if literal.op == "=":
        for variable, expression in ((literal.left, literal.right), (literal.right, literal.left)):
            if (
                isinstance(variable, Variable)
                and variable not in known
                and set(expression_variables(expression)) <= known
            ):
                return Assign(variable, expression)
    return None


def variables_used_after(steps: Iterable[Assign | Test], late: Iterable[Literal], head: Formula) -> set[Variable]:
    used = set(variables_after(late, head))
    for step in steps:
        expressions = (step.expression,) if isinstance(step, Assign) else (step.left, step.right)
        used |= {variable for expression in expressions for variable in expression_variables(expression)}
    return used


def variables_after(late: Iterable[Literal], head: Formula) -> set[Variable]:
    used = {v for literal in late for v in literal_variables(literal)}
    return used | {t for atom in formula_atoms(head) for t in atom.args if isinstance(t, Variable)}


@dataclass(frozen=True)
class GivenPart:
    """The part of a body that needs no value of an aggregate inside braces: positive literals, conditions, and the
    variables that they bind. `waiting` are the conditions with an aggregate that does need such a value."""

    positive: tuple[Literal, ...]
    conditions: tuple[BodyLiteral, ...]
    variables: dict[Variable, None]
    waiting: tuple[BodyLiteral, ...]

    @staticmethod
    def of(rule: Rule) -> GivenPart:
        """Find this part of a rule."""
        positive = tuple(one for one in rule.body if isinstance(one, Literal) and not one.negated)
        plain: list[BodyLiteral] = []
        with_aggregates: list[BodyLiteral] = []
        for literal in rule.body:
            if not isinstance(literal, Literal):
                (with_aggregates if any(body_aggregates([literal])) else plain).append(literal)
        known = bound_outside(replace(rule, body=(*positive, *plain)))
        ready = [
            literal
            for literal in with_aggregates
            if not any(find_unbound(aggregate, rule, known) for aggregate in body_aggregates([literal]))
        ]
        bound = bound_anywhere(replace(rule, body=(*positive, *plain, *ready)))
        computed = [literal for literal in plain if all(v in bound for v in literal_variables(literal))]
        ready = [literal for literal in ready if all(v in bound for v in literal_variables(literal, braces=False))]
        waiting = tuple(literal for literal in with_aggregates if literal not in ready)
        return GivenPart(positive, (*computed, *ready) if ready else (), bound, waiting)
