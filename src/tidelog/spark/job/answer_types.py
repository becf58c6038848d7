"""The Spark types of the arguments of answers, inferred from the rules and the columns of the facts.

A computed value has the type that SQL users expect: integers stay integers, decimals keep their digits, a division or
an average is a double, a count a bigint, and the result of `start` a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tidelog.data.dataset import Dataset
from tidelog.language.bindings import find_equations
from tidelog.language.calendar_predicates import names_numbers
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    BodyLiteral,
    Constant,
    Expression,
    Operation,
    Rule,
    Value,
    Variable,
)
from tidelog.language.validation import body_atoms
from tidelog.spark.plan.fact_columns import FactColumns

#: The types of the values at each argument of each predicate, as far as they are known.
Types = dict[tuple[str, int], set[str]]

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
#: The digits that a decimal of Spark has at most.
_DIGITS = 38


def infer_argument_types(
    program: Program, query: str, arity: int, columns: Iterable[FactColumns], background: Dataset, time: str = "double"
) -> tuple[str, ...]:
    """Return the type of each argument of the query: that of the columns, constants and facts that can reach it.

    `time` is the type of the times of the job.
    """
    types: Types = {}
    for one in columns:
        for position, (_, kind) in enumerate(one.args):
            types.setdefault((one.predicate, position), set()).add(_argument_type(kind))
    for relation in background.relations.values():
        for position, ids in enumerate(relation.args):
            kinds = {_value_type(background.symbols.value(int(i))) for i in np.unique(ids)}
            types.setdefault((relation.predicate, position), set()).update(kinds)
    for name in program.calendars:
        types[name, 0], types[name, 1] = {"string"}, {"int" if names_numbers(name) else "string"}
    changed = True
    while changed:
        changed = False
        for rule in program.rules:
            head = head_atom(rule)
            for position, term in enumerate(head.args if head else ()):
                assert head is not None
                here = types.setdefault((head.predicate, position), set())
                before = len(here)
                here |= _RuleTypes(rule, types, time).infer(term)
                changed |= len(here) > before
    return tuple(_common_type(types.get((query, position), set())) for position in range(arity))


@dataclass(frozen=True)
class _RuleTypes:
    """The types of the variables and expressions of one rule, given those of the predicates."""

    rule: Rule
    types: Mapping[tuple[str, int], set[str]]
    time: str

    def infer(
        self, expression: Expression, braces: tuple[BodyLiteral, ...] = (), open: tuple[Variable, ...] = ()
    ) -> set[str]:
        """Return the types that an expression may have: outside of all braces, or inside of some.

        `open` are the variables whose types are being inferred, since equations may go round in a circle.
        """
        match expression:
            case Constant(value):
                return {_value_type(value)}
            case Variable():
                return self._infer_variable(expression, braces, open)
            case Operation(name, args):
                found = [self.infer(arg, braces, open) for arg in args]
                return _infer_operation(name, found) if all(found) else set()
            case Aggregate():
                return self._infer_aggregate(expression)

    def _infer_variable(
        self, variable: Variable, braces: tuple[BodyLiteral, ...], open: tuple[Variable, ...]
    ) -> set[str]:
        bodies = (braces, self.rule.body)
        positions = [place for body in bodies for place in _find_positions(variable, body)]
        if positions:
            return {kind for place in positions for kind in self.types.get(place, ())}
        if variable in open:
            return set()
        return {
            kind
            for body in bodies
            for other, value in find_equations(body)
            if other == variable
            for kind in self.infer(value, braces, (*open, variable))
        }

    def _infer_aggregate(self, aggregate: Aggregate) -> set[str]:
        match aggregate.function:
            case AggregateFunction.COUNT | AggregateFunction.DURATION:
                return {"bigint"}
            case AggregateFunction.START:
                return {self.time}
        values = self.infer(aggregate.values[0], aggregate.body)
        match aggregate.function:
            case AggregateFunction.SUM:
                return {_arithmetic_type("+", [values])} if values else set()
            case AggregateFunction.AVG:
                return {"double"}
        return values


def _find_positions(variable: Variable, body: Iterable[BodyLiteral]) -> Iterator[tuple[str, int]]:
    """Yield the arguments of the atoms of a body that have the variable."""
    for atom, _ in body_atoms(body):
        for position, term in enumerate(atom.args):
            if term == variable:
                yield atom.predicate, position


def _infer_operation(name: str, args: list[set[str]]) -> set[str]:
    """Return the types of the result of an operation, given those of its operands."""
    match name:
        case "++" | "lower" | "upper":
            return {"string"}
        case "length" | "floor" | "ceil":
            return {"bigint"}
        case "/":
            return {"double"}
        case "min" | "max":
            return {kind for types in args for kind in types}
    return {_arithmetic_type(name, args)}


def _arithmetic_type(name: str, args: list[set[str]]) -> str:
    """Return the type of a sum or product: operands that are not numbers have none."""
    kinds = {kind for types in args for kind in types if kind != "string"}
    if kinds and kinds <= _INTEGERS:
        return "bigint"
    if kinds and all(kind in _INTEGERS or kind.startswith("decimal") for kind in kinds):
        scales = [max(_scale(kind) for kind in types if kind != "string") for types in args if types - {"string"}]
        scale = sum(scales) if name == "*" else max(scales)
        if scale <= _DIGITS // 2:
            return f"decimal({_DIGITS},{scale})"
    return "double"


def _scale(kind: str) -> int:
    """Return the number of digits behind the point."""
    return 0 if kind in _INTEGERS else int(kind.rstrip(")").rpartition(",")[2])


def _argument_type(kind: str) -> str:
    """Return the type that the constants of a column have in answers."""
    if kind in _INTEGERS or kind in ("float", "double", "string") or kind.startswith("decimal"):
        return kind
    return "string"


def _value_type(value: Value) -> str:
    if isinstance(value, str):
        return "string"
    return "bigint" if value.denominator == 1 and abs(value) < 1 << 63 else "double"


def _common_type(types: set[str]) -> str:
    if len(types) == 1:
        return next(iter(types))
    if types and types <= _INTEGERS:
        return "bigint"
    if types and all(kind in _INTEGERS or kind.startswith("decimal") for kind in types):
        return _arithmetic_type("+", [types])
    return "string" if not types or "string" in types else "double"
