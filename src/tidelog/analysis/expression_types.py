"""Find expressions of rules that read text as numbers, or numbers as text, and comparisons of the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from tidelog.analysis.value_columns import (
    Position,
    ValueColumn,
    ValueType,
    describe_conflict,
    describe_constant,
    describe_values,
    merge_types,
)
from tidelog.errors import Diagnostic, Place
from tidelog.language.aggregate_checks import body_aggregates
from tidelog.language.bindings import find_equations, outer_variables
from tidelog.language.expression_tokens import TEXT_TESTS
from tidelog.language.printer import format_expression, format_literal
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    BodyLiteral,
    Comparison,
    Condition,
    Constant,
    Expression,
    Literal,
    Operation,
    Rule,
    Variable,
)
from tidelog.language.validation import formula_atoms

#: The types of the arguments of predicates, and those of the variables of a rule.
PositionTypes = Mapping[Position, ValueColumn]
VariableTypes = Mapping[Variable, ValueColumn]
#: A warning, and the two parts that meet, so that each pair is reported once.
Conflict = tuple[Diagnostic, tuple[str, str]]

_OF_TEXT = ("++", "lower", "upper", "length")
_OF_ANY = ("min", "max")
_ADDING = (AggregateFunction.SUM, AggregateFunction.AVG)
_NUMERIC = (*_ADDING, AggregateFunction.COUNT, AggregateFunction.DURATION)


def bind_types(body: Sequence[BodyLiteral], types: PositionTypes, given: VariableTypes) -> dict[Variable, ValueColumn]:
    """Find the types of the variables of a body: from its positive atoms, its braces and its equations."""
    bound = dict(given)
    for literal in body:
        if isinstance(literal, Literal) and not literal.negated:
            for atom in formula_atoms(literal.formula):
                for position, term in enumerate(atom.args):
                    if isinstance(term, Variable) and (atom.predicate, position) in types:
                        bound.setdefault(term, types[atom.predicate, position])
    for _ in range(len(body)):
        known = len(bound)
        for variable, expression in find_equations(body):
            found = None if variable in bound else find_type(expression, types, bound)
            if found is not None:
                bound[variable] = found
        if len(bound) == known:
            break
    return bound


def bind_rule_types(rule: Rule, types: PositionTypes) -> dict[Variable, ValueColumn]:
    """Find the types of the variables outside braces; those that only braces bind have the types found there."""
    bound = bind_types(rule.body, types, {})
    outer = outer_variables(rule)
    for aggregate in body_aggregates(rule.body):
        for variable, column in bind_types(aggregate.body, types, {}).items():
            if variable in outer:
                bound.setdefault(variable, column)
    return bound


def find_type(expression: Expression, types: PositionTypes, bound: VariableTypes) -> ValueColumn | None:
    """Find the type of an expression; None if it is not known."""
    match expression:
        case Variable():
            return bound.get(expression)
        case Constant():
            return describe_constant(expression)
        case Operation(name, args):
            if name in _OF_ANY:
                found = [find_type(arg, types, bound) for arg in args]
                known = [column for column in found if column is not None]
                return merge_types(*known) if len(known) == len(args) == 2 else None
            return _describe_expression(expression, "text" if name in _OF_TEXT[:-1] else "number")
        case Aggregate(function, values, body):
            if function in _NUMERIC:
                return _describe_expression(expression, "number")
            if function is AggregateFunction.START or not values:
                return None
            return find_type(values[0], types, bind_types(body, types, bound))
        case _:
            assert_never(expression)


def _describe_expression(expression: Expression, type: ValueType) -> ValueColumn:
    return ValueColumn("", 0, type, "expression", format_expression(expression))


def check_expressions(rule: Rule, types: PositionTypes) -> Iterator[Conflict]:
    """Yield the conflicts of the comparisons, the operations and the sums of a rule, also inside braces."""
    return _check_body(rule.body, types, bind_rule_types(rule, types))


def _check_body(body: Iterable[BodyLiteral], types: PositionTypes, bound: VariableTypes) -> Iterator[Conflict]:
    for literal in body:
        if isinstance(literal, Literal):
            continue
        if isinstance(literal, Condition):
            for side in (literal.left, literal.right):
                yield from _check_operands(side, literal, types, bound)
        if literal.op.split()[-1] in TEXT_TESTS:
            yield from _check_use(literal.left, "text", "reads it as text", format_literal(literal), literal, bound)
        else:
            yield from _check_comparison(literal, types, bound)


def _check_comparison(
    comparison: Comparison | Condition, types: PositionTypes, bound: VariableTypes
) -> Iterator[Conflict]:
    """Yield a comparison between numbers and text, for order or for equality."""
    left, right = (find_type(side, types, bound) for side in (comparison.left, comparison.right))
    if left is None or right is None or str(left) == str(right):
        return
    shown, pair = format_literal(comparison), (str(left), str(right))
    if comparison.op in ("=", "!="):
        if can_miss(left, right):
            reason = f"the rule {'joins' if comparison.op == '=' else 'compares'} them in `{shown}`"
            yield describe_conflict(left, right, comparison.place, reason), pair
    elif left.type != right.type and "number" in (left.type, right.type):
        problem = describe_conflict(left, right, comparison.place, f"the rule compares them in `{shown}`")
        yield replace(problem, law="in the order of constants, text comes after all numbers"), pair


def can_miss(left: ValueColumn, right: ValueColumn) -> bool:
    """Whether equal values of two columns are missed, because they are numbers in one and text in the other."""
    if "mixed" not in (left.type, right.type):
        return left.type != right.type
    return (left.holds_numbers and right.numeric_text) or (right.holds_numbers and left.numeric_text)


def _check_operands(
    expression: Expression, literal: Condition, types: PositionTypes, bound: VariableTypes
) -> Iterator[Conflict]:
    """Yield the operands of a wrong type of an expression and its parts."""
    match expression:
        case Operation(name, args):
            for arg in args:
                yield from _check_operands(arg, literal, types, bound)
                if name not in _OF_ANY:
                    wanted: ValueType = "text" if name in _OF_TEXT else "number"
                    verb = "reads it as text" if wanted == "text" else "calculates with it"
                    yield from _check_use(arg, wanted, verb, format_expression(expression), literal, bound)
        case Aggregate(function, values, body):
            inside = bind_types(body, types, bound)
            yield from _check_body(body, types, inside)
            for value in values:
                yield from _check_operands(value, literal, types, inside)
                if function in _ADDING:
                    shown = format_expression(expression)
                    yield from _check_use(value, "number", "adds it up", shown, literal, inside)
        case Variable() | Constant():
            pass
        case _:
            assert_never(expression)


def _check_use(
    operand: Expression, wanted: ValueType, verb: str, shown: str, literal: Comparison | Condition, bound: VariableTypes
) -> Iterator[Conflict]:
    column = bound.get(operand) if isinstance(operand, Variable) else None
    if column is not None and column.type != wanted:
        problem = f"{describe_values(column)}, but the rule {verb} in `{shown}`"
        yield _build_use_warning(problem, verb, literal.place), (str(column), wanted)


def _build_use_warning(problem: str, verb: str, place: Place | None) -> Diagnostic:
    law = "an operation on a value of the wrong type has no result, so that its literal does not hold"
    if verb == "adds it up":
        law = "sum and avg leave out rows whose value is not a number"
    help = "declare the type of the column in a schema: `tidelog infer DATA...` prints one for --schema FILE"
    return Diagnostic("TL208", problem, place, law=law, help=help, severity="warning")
