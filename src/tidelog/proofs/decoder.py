"""Decode numbers and grid times into what the user wrote: facts, and conditions of rules with their variables bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tidelog.data.symbol_table import Symbols
from tidelog.language.fact_text import format_value
from tidelog.language.printer import format_expression, format_formula, format_literal
from tidelog.language.substitution import substitute_expression, substitute_formula, substitute_literal
from tidelog.language.syntax import (
    Aggregate,
    BodyLiteral,
    Constant,
    Expression,
    Fact,
    Formula,
    Term,
    Value,
    Variable,
)
from tidelog.language.time_arguments import NO_TIMES, TimeTerms
from tidelog.language.time_text import format_iso
from tidelog.proofs.formula_evaluation import ANY, GroundAtom
from tidelog.timeline.grid import Grid
from tidelog.timeline.time_sets import Pair


@dataclass(frozen=True)
class Decoder:
    """Turns encoded atoms, times and bindings into facts, values and text."""

    grid: Grid
    symbols: Symbols
    #: The variables and aggregates that are written as dates.
    dates: TimeTerms = NO_TIMES
    #: Values that were looked up before.
    known: dict[int, Value] = field(default_factory=dict, repr=False)

    def value(self, number: int) -> Value:
        """Return the constant with a number."""
        value = self.known.get(number)
        if value is None:
            value = self.known[number] = self.symbols.value(number)
        return value

    def fact(self, atom: GroundAtom, pair: Pair) -> Fact:
        """Return the fact that an atom holds at the times of a pair."""
        return Fact(atom[0], tuple(self.value(number) for number in atom[1]), self.grid.to_interval(*pair))

    def binding(self, binding: Mapping[str, int]) -> dict[str, Value]:
        """Return a binding with the constants themselves, without variables that may be anything."""
        return {name: self.value(number) for name, number in binding.items() if number != ANY}

    def format_literal(self, literal: BodyLiteral, binding: Mapping[str, int]) -> str:
        """Write a condition of a body with its variables bound."""
        return format_literal(substitute_literal(literal, self._constants(binding)))

    def format_expression(self, expression: Expression, binding: Mapping[str, int]) -> str:
        """Write an expression with its variables bound."""
        return format_expression(substitute_expression(expression, self._constants(binding)))

    def format_formula(self, formula: Formula, binding: Mapping[str, int]) -> str:
        """Write a formula with its variables bound."""
        return format_formula(substitute_formula(formula, self._constants(binding)))

    def format_atom(self, atom: GroundAtom) -> str:
        """Write a ground atom as in facts."""
        args = f"({','.join(format_value(self.value(number)) for number in atom[1])})" if atom[1] else ""
        return atom[0] + args

    def format_result(self, aggregate: Aggregate, value: Value) -> str:
        """Write a value of an aggregate, as a date where it is a time."""
        return _format_value(value, aggregate in self.dates.aggregates)

    def format_variable(self, name: str, value: Value) -> str:
        """Write a value of a variable, as a date where it is a time."""
        return _format_value(value, name in self.dates.variables)

    def _constants(self, binding: Mapping[str, int]) -> dict[Variable, Term]:
        """Return what a binding gives to variables, anonymous ones included."""
        bound = self.binding(binding)
        names = [(name, anonymous) for name in bound for anonymous in (False, True)]
        return {Variable(name, anonymous): self._term(name, bound[name]) for name, anonymous in names}

    def _term(self, name: str, value: Value) -> Term:
        """Return a value as a term to print; a date is printed without quotes, as the name of a variable is."""
        is_date = name in self.dates.variables and isinstance(value, Fraction)
        return Variable(self.format_variable(name, value)) if is_date else Constant(value)


def _format_value(value: Value, is_time: bool) -> str:
    return format_iso(value) if is_time and isinstance(value, Fraction) else format_value(value)
