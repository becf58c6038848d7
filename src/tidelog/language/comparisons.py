"""The comparison operators of the language, and the order of constants that they compare by.

Numbers come before names. Numbers are ordered by value, names by the code points of their text, which is also the order
of their UTF-8 bytes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tidelog.language.syntax import Comparison, Value, Variable

#: The operators of the language. Compiled plans refer to an operator by its position here.
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
#: The operator that holds exactly where another does not.
OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "=": "!=", "!=": "="}
#: The operator that holds of (b, a) exactly where another holds of (a, b).
FLIPPED = {"<": ">", "<=": ">=", "=": "=", "!=": "!=", ">": "<", ">=": "<="}


def constant_order(value: Value | int) -> tuple[bool, Fraction | int, str]:
    """Return the key that sorts constants: numbers by value, then names."""
    return (True, 0, value) if isinstance(value, str) else (False, value, "")


def compare(op: str, left: Value | int, right: Value | int) -> bool:
    """Return whether `left op right` holds between two constants.

    >>> compare("<", Fraction(10), Fraction(9)), compare("<", Fraction(10), "9")
    (False, True)
    """
    return OPERATORS[op](constant_order(left), constant_order(right))


def opposite(op: str) -> str:
    """Return the comparison operator or test of text that holds where another does not.

    >>> opposite("<"), opposite("matches"), opposite("not matches")
    ('>=', 'not matches', 'matches')
    """
    if op in OPPOSITE:
        return OPPOSITE[op]
    return op.removeprefix("not ") if op.startswith("not ") else f"not {op}"


def may_hold(comparison: Comparison) -> bool:
    """Return whether a comparison of two constants is true; one with a variable always may be."""
    left, right = comparison.left, comparison.right
    if isinstance(left, Variable) or isinstance(right, Variable):
        return True
    return compare(comparison.op, left.value, right.value)
