"""Comparisons between constants and variables: whether they hold, can hold, or follow from others.

Numbers come before names, and between two constants there is always room for another: only a cycle of `<=` with a `<`
in it, or one that `!=` denies, cannot be.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

from tidelog.language.parser import OPPOSITE
from tidelog.language.syntax import Comparison, Constant, Term, Value

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}


def order(value: Value | int) -> tuple[int, Any]:
    """What constants are sorted by."""
    return (1, value) if isinstance(value, str) else (0, value)


def holds(op: str, left: Value | int, right: Value | int) -> bool:
    return OPERATORS[op](order(left), order(right))


def implied(wanted: Comparison, given: Iterable[Comparison]) -> bool:
    """Whether a comparison holds wherever the given ones do."""
    return not satisfiable([*given, Comparison(OPPOSITE[wanted.op], wanted.left, wanted.right)])


def satisfiable(comparisons: Iterable[Comparison]) -> bool:
    """Whether some values make all comparisons true."""
    comparisons = list(comparisons)
    terms: list[Term] = list(dict.fromkeys(term for c in comparisons for term in (c.left, c.right)))
    #: below[a, b]: a <= b is known; True if even a < b is.
    below: dict[tuple[Term, Term], bool] = {}

    def note(a: Term, b: Term, strict: bool) -> None:
        below[a, b] = below.get((a, b), False) or strict

    for a, b in product(terms, terms):
        if isinstance(a, Constant) and isinstance(b, Constant) and order(a.value) < order(b.value):
            note(a, b, True)
    for c in comparisons:
        if c.op in ("<", "<=", "="):
            note(c.left, c.right, c.op == "<")
        if c.op in (">", ">=", "="):
            note(c.right, c.left, c.op == ">")
    for middle, a, b in product(terms, terms, terms):
        if (a, middle) in below and (middle, b) in below:
            note(a, b, below[a, middle] or below[middle, b])
    if any(below.get((term, term)) for term in terms):
        return False
    for c in comparisons:
        if c.op == "!=" and (c.left == c.right or ((c.left, c.right) in below and (c.right, c.left) in below)):
            return False
    return True
