"""Rules in normal form: literals that carry one operator each, with ranges on the grid. Data only; see `flatten`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from tidelog.language.syntax import Comparison, Term, Variable

#: A range or an interval on the grid: both ends belong to it.
Pair = tuple[int, int]


class Op(IntEnum):
    """How a literal reads the intervals of its atom."""

    HOLDS = 0
    DIAMOND = 1
    BOX = 2
    SINCE = 3
    UNTIL = 4


@dataclass(frozen=True, slots=True)
class FlatLiteral:
    """An atom under one operator; the range of a diamond or box is a distance into the past, and may be negative."""

    predicate: str
    args: tuple[Term, ...]
    op: Op = Op.HOLDS
    range: Pair = (0, 0)
    negated: bool = False


@dataclass(frozen=True, slots=True)
class FlatRule:
    """A rule whose head holds at the times of its body plus `range`; `origin` is the number of the user's rule."""

    predicate: str
    args: tuple[Term, ...]
    range: Pair
    body: tuple[FlatLiteral, ...]
    comparisons: tuple[Comparison, ...]
    origin: int

    def terms(self) -> Iterator[Term]:
        """Yield all terms of the rule."""
        yield from self.args
        for literal in self.body:
            yield from literal.args
        for comparison in self.comparisons:
            yield comparison.left
            yield comparison.right

    def atoms(self) -> Iterator[tuple[str, int]]:
        """Yield the predicates of head and body, each with its number of arguments."""
        yield self.predicate, len(self.args)
        for literal in self.body:
            yield literal.predicate, len(literal.args)


def variables_of(literals: Iterable[FlatLiteral]) -> tuple[Variable, ...]:
    """Return the distinct variables of literals, in order of occurrence."""
    return tuple(dict.fromkeys(term for b in literals for term in b.args if isinstance(term, Variable)))
