"""From the grid back to what the user wrote: facts, and ground conditions of rules in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.data.symbols import Symbols
from tidelog.language.facts import format_value
from tidelog.language.printer import format_comparison, format_formula
from tidelog.language.syntax import Atom, Binary, Comparison, Fact, Formula, Term, Unary, Value
from tidelog.proofs.clauses import Leaf, Part, Some, added_to
from tidelog.proofs.evaluation import ANY, Ground, ground
from tidelog.proofs.instances import bound_term
from tidelog.proofs.sets import Pair
from tidelog.timeline.grid import Grid, negated
from tidelog.timeline.interval import Interval


@dataclass(frozen=True)
class Wording:
    grid: Grid
    symbols: Symbols

    def value(self, number: int) -> Value:
        return self.symbols.value(number)

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

    def absence(self, part: Part, binding: dict[str, int], when: Pair) -> tuple[str, Interval]:
        """What does not hold if a negated literal does, and throughout which time."""
        reading = part.reading
        if isinstance(reading, Some) and isinstance(reading.arg, Leaf):
            when, reading = added_to(when, negated(reading.by), self.grid.dense), reading.arg
        if not isinstance(reading, Leaf):
            return f"not {self.formula(part.literal.formula, binding)}", self.grid.interval(*when)
        predicate, ids = ground(reading, binding)
        args = f"({','.join(format_value(self.value(number)) for number in ids)})" if ids else ""
        return f"no {predicate}{args}", self.grid.interval(*when)

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
