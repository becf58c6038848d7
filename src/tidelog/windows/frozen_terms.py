"""Terms of frozen rules: the constants that replace variables, and the comparisons that a comparison implies."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.language.comparisons import FLIPPED
from tidelog.language.syntax import Comparison, Constant, Term, Value

_WEAKER = {"<": ("<=", "!="), ">": (">=", "!="), "=": ("<=", ">="), "<=": (), ">=": (), "!=": ()}
_FROZEN = "\0"


def weaken_comparison(comparison: Comparison) -> Iterator[tuple[str, tuple[Term, Term]]]:
    """Yield a comparison, then the comparisons that it implies for any terms, as operators with their operands."""
    for op in (comparison.op, *_WEAKER[comparison.op]):
        yield op, (comparison.left, comparison.right)
        yield FLIPPED[op], (comparison.right, comparison.left)


def freeze_term(term: Term) -> Value:
    """Return the value of a constant; for a variable, an object that no rule or fact names."""
    return term.value if isinstance(term, Constant) else f"{_FROZEN}{term.name}"


def is_frozen(value: Value) -> bool:
    """Return whether an object replaces a variable."""
    return isinstance(value, str) and value.startswith(_FROZEN)
