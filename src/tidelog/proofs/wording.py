"""From the grid back to what the user wrote: facts, and ground conditions of rules in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.data.symbols import Symbols
from tidelog.language.facts import format_value
from tidelog.language.printer import format_comparison, format_formula
from tidelog.language.syntax import Atom, Binary, Comparison, Fact, Formula, Term, Unary, Value
from tidelog.proofs.evaluation import ANY, Ground
from tidelog.proofs.instances import bound_term
from tidelog.proofs.sets import Pair
from tidelog.timeline.grid import Grid

#: The auxiliary predicate of temporal Datalog that holds at one time only.
CLOCK = "$at"


def is_hidden(predicate: str) -> bool:
    """Whether a predicate is an auxiliary one, which no user wrote."""
    return predicate.startswith("$")


@dataclass(frozen=True)
class Wording:
    grid: Grid
    symbols: Symbols
    #: Values that were looked up before.
    known: dict[int, Value] = field(default_factory=dict, repr=False)

    def value(self, number: int) -> Value:
        found = self.known.get(number)
        if found is None:
            found = self.known[number] = self.symbols.value(number)
        return found

    def fact(self, atom: Ground, pair: Pair) -> Fact:
        return Fact(atom[0], tuple(self.value(number) for number in atom[1]), self.grid.interval(*pair))

    def binding(self, binding: Mapping[str, int]) -> dict[str, Value]:
        return {name: self.value(number) for name, number in binding.items() if number != ANY}

    def comparison(self, comparison: Comparison, binding: dict[str, int]) -> str:
        left, right = (bound_term(term, binding, self.value) for term in (comparison.left, comparison.right))
        return format_comparison(Comparison(comparison.op, left, right))

    def formula(self, formula: Formula, binding: dict[str, int]) -> str:
        """A formula with its variables bound."""
        return format_formula(self._bound(formula, binding))

    def atom(self, atom: Ground) -> str:
        """A ground atom as facts show it."""
        args = f"({','.join(format_value(self.value(number)) for number in atom[1])})" if atom[1] else ""
        return atom[0] + args

    def _bound(self, formula: Formula, binding: dict[str, int]) -> Formula:
        match formula:
            case Atom(predicate, args):
                return Atom(predicate, tuple(self._term(term, binding) for term in args))
            case Unary(op, range_, arg):
                return Unary(op, range_, self._bound(arg, binding))
            case Binary(op, range_, left, right):
                return Binary(op, range_, self._bound(left, binding), self._bound(right, binding))
            case _:
                return formula

    def _term(self, term: Term, binding: dict[str, int]) -> Term:
        return bound_term(term, binding, self.value)
