"""Evaluate expressions exactly, one binding at a time.

Numbers are rationals. An operation without a result, such as a division by zero or `+` on text, raises
`UndefinedError`: the literal around it is false for that binding. `calculation` evaluates whole columns, and uses this
module for what does not fit its kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import assert_never

from tidelog.language.comparisons import OPERATORS, compare, constant_order
from tidelog.language.core_rules import OR_ELSE
from tidelog.language.expression_tokens import TEXT_TESTS
from tidelog.language.patterns import PatternError
from tidelog.language.syntax import Aggregate, Constant, Expression, Operation, Value, Variable
from tidelog.language.time_text import MAX_DIGITS
from tidelog.numeric.pattern_matching import matches_whole

#: A computed number has at most as many digits as one that can be read.
_MAX_BITS = len(bin(10**MAX_DIGITS))


class UndefinedError(Exception):
    """An operation that has no result; the message says why."""


def evaluate(expression: Expression, binding: Mapping[Variable, Value]) -> Value:
    """Return the value of an expression without aggregates. Raises `UndefinedError` if it has none.

    >>> x = Variable("X")
    >>> evaluate(Operation("mod", (x, Constant(Fraction(3)))), {x: Fraction(-7)})
    Fraction(2, 1)
    """
    match expression:
        case Constant(value):
            return value
        case Variable():
            return binding[expression]
        case Operation(name, (first, second)) if name == OR_ELSE:
            try:
                return evaluate(first, binding)
            except UndefinedError:
                return evaluate(second, binding)
        case Operation(name, args):
            return apply_operation(name, *(evaluate(arg, binding) for arg in args))
        case Aggregate():
            raise AssertionError("aggregates are computed before expressions")
        case _:
            assert_never(expression)


def holds(op: str, left: Value, right: Value) -> bool:
    """Return whether a comparison or a test of text holds. Raises `UndefinedError` for a test of something else.

    >>> holds("<", Fraction(2), Fraction(10)), holds("not starts_with", "abc", "ab")
    (True, False)
    """
    if op in OPERATORS:
        return compare(op, left, right)
    name = op.rpartition(" ")[2]
    return _TESTS[name](_text(name, left), _text(name, right)) == (op == name)


def apply_operation(name: str, *args: Value) -> Value:
    """Apply a function or operator to values. Raises `UndefinedError` if it has no result for them."""
    if name == "-" and len(args) == 1:
        return -_number(name, args[0])
    if name in _ON_NUMBERS:
        result = _ON_NUMBERS[name](*(_number(name, arg) for arg in args))
        if result.numerator.bit_length() + result.denominator.bit_length() > _MAX_BITS:
            raise UndefinedError(f"the result of `{name}` has more than {MAX_DIGITS} digits")
        return result
    if name in _ON_TEXT:
        return _ON_TEXT[name](*(_text(name, arg) for arg in args))
    if len({isinstance(arg, str) for arg in args}) > 1:
        raise UndefinedError(f"{name} of a number and a text")
    return (min if name == "min" else max)(args, key=constant_order)


def _divide(left: Fraction, right: Fraction) -> Fraction:
    if not right:
        raise UndefinedError("a division by zero")
    return left / right


def _remainder(left: Fraction, right: Fraction) -> Fraction:
    if not right:
        raise UndefinedError("mod 0")
    return left - right * floor(left / right)


_ON_NUMBERS: dict[str, Callable[..., Fraction]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divide,
    "mod": _remainder,
    "abs": abs,
    "floor": lambda number: Fraction(floor(number)),
    "ceil": lambda number: Fraction(ceil(number)),
}
_ON_TEXT: dict[str, Callable[..., Value]] = {
    "++": lambda left, right: left + right,
    "lower": str.lower,
    "upper": str.upper,
    "length": lambda text: Fraction(len(text)),
}


def _matches(text: str, pattern: str) -> bool:
    try:
        return matches_whole(pattern, text)
    except PatternError as error:
        raise UndefinedError(f"the pattern {pattern} is not RE2: {error}") from None


_TESTS: dict[str, Callable[[str, str], bool]] = dict(
    zip(TEXT_TESTS, (str.startswith, str.endswith, str.__contains__, _matches), strict=True)
)


def _number(name: str, value: Value) -> Fraction:
    if isinstance(value, str):
        raise UndefinedError(f"`{name}` of the text {value}")
    return value


def _text(name: str, value: Value) -> str:
    if not isinstance(value, str):
        raise UndefinedError(f"`{name}` of the number {value}")
    return value
