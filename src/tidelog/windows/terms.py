"""Constants and how they compare; and objects that stand for variables when a rule is taken for data."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tidelog.analysis.flatten import COMPARISONS
from tidelog.language.syntax import Comparison, Constant, Term, Value

_WEAKER = {"<": ("<=", "!="), ">": (">=", "!="), "=": ("<=", ">="), "<=": (), ">=": (), "!=": ()}
_FLIPPED = {"<": ">", "<=": ">=", "=": "=", "!=": "!=", ">": "<", ">=": "<="}
_FROZEN = "\0"


def order(value: Value) -> tuple[int, Fraction, bytes]:
    """The order of constants: numbers by value, then names by the bytes of their text."""
    if isinstance(value, Fraction):
        return 0, value, b""
    return 1, Fraction(0), value.encode()


def compare(op: str, left: Value, right: Value) -> bool:
    return COMPARISONS[op](order(left), order(right))


def implied(comparison: Comparison) -> Iterator[tuple[str, tuple[Term, Term]]]:
    """A comparison first, then what follows from it whatever its terms are."""
    for op in (comparison.op, *_WEAKER[comparison.op]):
        yield op, (comparison.left, comparison.right)
        yield _FLIPPED[op], (comparison.right, comparison.left)


def frozen_term(term: Term) -> Value:
    """A constant as it is; for a variable an object that no rule or fact names."""
    return term.value if isinstance(term, Constant) else f"{_FROZEN}{term.name}"


def is_frozen(value: Value) -> bool:
    return isinstance(value, str) and value.startswith(_FROZEN)
