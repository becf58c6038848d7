"""Weights of facts: what a stable model costs, so that the models of least cost can be found.

`Late=5` is the weight of every fact of a predicate, `Late(bus,_)=5` of those that match, and `Fare(_,W)=W` is the
argument itself. A fact costs the sum of all weights that match it, at every time point of LO..HI at which it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import format_value, parse_fact
from tidelog.language.syntax import Value
from tidelog.language.time_text import read_number
from tidelog.language.wording import plural, suggest
from tidelog.stable.grounding import GroundAtom

#: What weights may be given as: texts like `Late=5` (`Late` alone is `Late=1`), or a mapping from patterns to numbers.
WeightsLike = str | Iterable[str] | Mapping[str, int | Fraction | str]

#: The largest weight that clingo takes.
_LARGEST = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class WeightPattern:
    """The weight of facts with these arguments (None: any value): a number, or the position of the argument that is."""

    text: str
    predicate: str
    args: tuple[Value | None, ...]
    amount: Fraction | int

    def weigh(self, values: Sequence[Value]) -> Fraction:
        """Return the weight of a fact of the predicate; 0 for one that does not match."""
        if len(values) != len(self.args):
            return Fraction(0)
        if not all(wanted is None or wanted == value for wanted, value in zip(self.args, values, strict=True)):
            return Fraction(0)
        if isinstance(self.amount, Fraction):
            return self.amount
        weight = values[self.amount]
        if not isinstance(weight, Fraction):
            fact = f"{self.predicate}({','.join(map(format_value, values))})"
            raise TidelogError(Diagnostic("TL330", f"`{self.text}`: {format_value(weight)} in {fact} is no number"))
        return weight


@dataclass(frozen=True)
class Weights:
    """The weights of all facts, by patterns."""

    patterns: tuple[WeightPattern, ...]

    @staticmethod
    def parse(weights: WeightsLike, predicates: Mapping[str, int]) -> Weights:
        """Parse weights; `predicates` are those that may occur, with their arities."""
        if isinstance(weights, str):
            weights = [weights]
        if isinstance(weights, Mapping):
            weights = [f"{pattern}={weight}" for pattern, weight in weights.items()]
        patterns: list[WeightPattern] = []
        errors: list[Diagnostic] = []
        for text in weights:
            found = _parse_pattern(text, predicates)
            if isinstance(found, WeightPattern):
                patterns.append(found)
            else:
                errors.append(found)
        if errors:
            raise TidelogError(errors)
        return Weights(tuple(patterns))

    @cached_property
    def _by_predicate(self) -> dict[str, list[WeightPattern]]:
        found: dict[str, list[WeightPattern]] = {}
        for pattern in self.patterns:
            found.setdefault(pattern.predicate, []).append(pattern)
        return found

    def of(self, predicate: str, values: Sequence[Value]) -> Fraction:
        """Return the weight of a fact."""
        return sum((pattern.weigh(values) for pattern in self._by_predicate.get(predicate, ())), Fraction(0))


def scale_weights(weights: Mapping[GroundAtom, Fraction]) -> dict[GroundAtom, int]:
    """Return weights as integers in the same proportions, without those that are 0."""
    scale = lcm(*(weight.denominator for weight in weights.values()))
    scaled = {atom: int(weight * scale) for atom, weight in weights.items() if weight}
    if any(abs(weight) > _LARGEST for weight in scaled.values()):
        law = f"weights, as multiples of a common unit, are at most {_LARGEST:,}"
        raise TidelogError(Diagnostic("TL330", "the weights differ too much in size", law=law))
    return scaled


def _parse_pattern(text: str, predicates: Mapping[str, int]) -> WeightPattern | Diagnostic:
    """Return the pattern, or what is wrong with it."""
    name, equals, written = text.rpartition("=")
    name, written = (name.strip(), written.strip()) if equals else (text.strip(), "1")
    try:
        fact, _ = parse_fact(name)
    except TidelogError as error:
        return Diagnostic("TL330", f"`{text}`: {error.diagnostics[0].message}")
    arity = predicates.get(fact.predicate)
    if arity is None:
        close = suggest(fact.predicate, predicates)
        message = f"`{text}`: {fact.predicate} occurs neither in the rules nor in the facts"
        return Diagnostic("TL330", message, help=f"did you mean {close}?" if close else None)
    args: tuple[Value | None, ...] = tuple(None if arg == "_" else arg for arg in fact.args)
    if "(" not in name:
        args = (None,) * arity
    if len(args) != arity:
        return Diagnostic("TL330", f"`{text}`: {fact.predicate} has {plural(arity, 'argument')}, not {len(args)}")
    if written in args:
        position = args.index(written)
        args = tuple(None if place == position else arg for place, arg in enumerate(args))
        return WeightPattern(text, fact.predicate, args, position)
    amount = read_number(written, units=False)
    if amount is None:
        return Diagnostic("TL330", f"`{text}`: `{written}` is neither a number nor an argument of the pattern")
    return WeightPattern(text, fact.predicate, args, amount)
