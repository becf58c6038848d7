"""Comparisons as constraints on variables: whether they can hold together, and whether one follows from others.

The order of constants is dense enough that only two patterns are unsatisfiable: a cycle of `<=` that contains a `<`,
and two terms that a cycle of `<=` makes equal although `!=` separates them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from tidelog.language.comparisons import OPPOSITE, constant_order
from tidelog.language.syntax import Comparison, Constant, Term


def is_implied(wanted: Comparison, given: Iterable[Comparison]) -> bool:
    """Return whether a comparison holds wherever the given ones do."""
    return not is_satisfiable([*given, Comparison(OPPOSITE[wanted.op], wanted.left, wanted.right)])


def is_satisfiable(comparisons: Iterable[Comparison]) -> bool:
    """Return whether some values make all comparisons true."""
    comparisons = list(comparisons)
    terms: list[Term] = list(dict.fromkeys(term for c in comparisons for term in (c.left, c.right)))
    #: (a, b) is a key if a <= b is known; its value is True if even a < b is known.
    below: dict[tuple[Term, Term], bool] = {}

    def require_below(a: Term, b: Term, strict: bool) -> None:
        below[a, b] = below.get((a, b), False) or strict

    for a, b in product(terms, terms):
        if isinstance(a, Constant) and isinstance(b, Constant) and constant_order(a.value) < constant_order(b.value):
            require_below(a, b, True)
    for c in comparisons:
        if c.op in ("<", "<=", "="):
            require_below(c.left, c.right, c.op == "<")
        if c.op in (">", ">=", "="):
            require_below(c.right, c.left, c.op == ">")
    for middle, a, b in product(terms, terms, terms):
        if (a, middle) in below and (middle, b) in below:
            require_below(a, b, below[a, middle] or below[middle, b])
    if any(below.get((term, term)) for term in terms):
        return False
    for c in comparisons:
        if c.op == "!=" and (c.left == c.right or ((c.left, c.right) in below and (c.right, c.left) in below)):
            return False
    return True
