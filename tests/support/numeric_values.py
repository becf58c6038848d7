"""Expressions and comparisons by their definitions: exact rationals, and operations that may be undefined."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from oracle import Binding, order
from tidelog.language.syntax import (
    Aggregate,
    BodyLiteral,
    Comparison,
    Condition,
    Constant,
    Expression,
    Operation,
    Value,
    Variable,
)


class Undefined(Exception):
    """Division by zero, an operation on values of the wrong kind, or an aggregate that has no value."""


def calculate(expression: Expression, binding: Binding, results: Mapping[Aggregate, Value | None]) -> Value:
    """The value of an expression, given the values of its aggregates (None: no value)."""
    match expression:
        case Constant(value):
            return value
        case Variable(name):
            return binding[name]
        case Aggregate():
            result = results[expression]
            if result is None:
                raise Undefined("no value")
            return result
        case Operation(name, args):
            return operate(name, [calculate(arg, binding, results) for arg in args])


def operate(name: str, args: list[Value]) -> Value:
    if name in ("min", "max"):
        if len({isinstance(arg, str) for arg in args}) > 1:
            raise Undefined("a number and a text")
        return (min if name == "min" else max)(args, key=order)
    if name in ("++", "lower", "upper", "length"):
        return operate_on_text(name, list(map(text, args)))
    return operate_on_numbers(name, list(map(number, args)))


def operate_on_numbers(name: str, args: list[Fraction]) -> Fraction:
    match name, args:
        case "+", (a, b):
            return a + b
        case "-", (a,):
            return -a
        case "-", (a, b):
            return a - b
        case "*", (a, b):
            return a * b
        case "/", (a, b):
            if b == 0:
                raise Undefined("division by zero")
            return a / b
        case "mod", (a, b):
            if b == 0:
                raise Undefined("division by zero")
            return a - b * math.floor(a / b)
        case "abs", (a,):
            return abs(a)
        case "floor", (a,):
            return Fraction(math.floor(a))
        case "ceil", (a,):
            return Fraction(math.ceil(a))
    raise ValueError(name)


def operate_on_text(name: str, args: list[str]) -> Value:
    match name, args:
        case "++", (a, b):
            return a + b
        case "lower", (a,):
            return a.lower()
        case "upper", (a,):
            return a.upper()
        case "length", (a,):
            return Fraction(len(a))
    raise ValueError(name)


def number(value: Value) -> Fraction:
    if isinstance(value, str):
        raise Undefined("not a number")
    return Fraction(value)


def text(value: Value) -> str:
    if not isinstance(value, str):
        raise Undefined("not a text")
    return value


def compare_values(op: str, left: Value, right: Value) -> bool:
    """A comparison, or a test of text; its denial too is false of values that are not texts."""
    a, b = order(left), order(right)
    match op:
        case "<":
            return a < b
        case "<=":
            return a <= b
        case "=":
            return a == b
        case "!=":
            return a != b
        case ">":
            return a > b
        case ">=":
            return a >= b
    test, whole, part = op.removeprefix("not "), text(left), text(right)
    found = {
        "starts_with": lambda: whole.startswith(part),
        "ends_with": lambda: whole.endswith(part),
        "contains": lambda: part in whole,
        "matches": lambda: re.fullmatch(part, whole) is not None,
    }[test]()
    return found != op.startswith("not ")


# What expressions mention


def sides(literal: Comparison | Condition) -> tuple[Expression, Expression]:
    return literal.left, literal.right


def aggregates_of(expressions: Iterable[Expression]) -> list[Aggregate]:
    """The aggregates of expressions, each once."""
    found: dict[Aggregate, None] = {}
    todo = list(expressions)
    while todo:
        match todo.pop(0):
            case Aggregate() as aggregate:
                found[aggregate] = None
            case Operation(_, args):
                todo += args
    return list(found)


def body_aggregates(body: Iterable[BodyLiteral]) -> list[Aggregate]:
    return aggregates_of(side for literal in body if isinstance(literal, Condition) for side in sides(literal))


def expression_variables(expression: Expression) -> Iterator[str]:
    """The variables of an expression outside braces."""
    match expression:
        case Variable(name):
            yield name
        case Operation(_, args):
            for arg in args:
                yield from expression_variables(arg)
