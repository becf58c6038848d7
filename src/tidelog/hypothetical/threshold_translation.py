"""Translate comparisons of aggregates with numbers into facts that must, or must not, arrive.

`count{ ... } >= 3` holds if there are three different rows, so it is certain as soon as three have arrived, and
`count{ ... } < 3` says that there are not. `max{ V : ... } > 5` holds if there is a row with `V > 5`, and `< 5` if
there is a row and none with `V >= 5`. Other aggregates may cross a threshold in both directions until all facts are
known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import ceil, comb, floor

from tidelog.errors import Diagnostic
from tidelog.hypothetical.resolution import MAX_SCHEMAS, too_many_ways
from tidelog.language.comparisons import OPPOSITE
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    Atom,
    Comparison,
    Condition,
    Constant,
    Expression,
    Formula,
    Literal,
    Operation,
    Rule,
    Term,
    Variable,
)
from tidelog.language.validation import formula_atoms

#: Atoms, each with its distance from the time of the rule.
Way = tuple[tuple[Atom, int], ...]
#: Returns every way to make a formula true.
Expand = Callable[[Formula], list[Way]]

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_LAW = (
    "count, min and max over what holds now, compared with a number, are certain once facts that are still to come "
    "cannot change the comparison"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One way to have rows: atoms, and comparisons of their arguments."""

    atoms: Way
    comparisons: tuple[Comparison, ...] = ()

    def __add__(self, other: Row) -> Row:
        return Row(tuple(dict.fromkeys(self.atoms + other.atoms)), self.comparisons + other.comparisons)


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to make a part of a body true: what must hold, and rows that must not.

    These have `names`, the variables that are bound outside."""

    row: Row
    absent: tuple[tuple[tuple[str, ...], tuple[Row, ...]], ...] = ()


class UnsupportedCondition(Exception):
    """A condition that is not supported, with the diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def translate_condition(rule: Rule, condition: Condition, expand: Expand) -> list[Choice]:
    """Return the ways to make a comparison of an aggregate with a number true; raise where that is not supported."""
    op, left, right = condition.op, condition.left, condition.right
    if isinstance(right, Aggregate):
        op, left, right = _FLIPPED.get(op, op), right, left
    if not isinstance(left, Aggregate):
        message = "arithmetic and tests of text are not supported by hypothetical answers"
        law = "rules for hypothetical answers have atoms, comparisons of terms, and aggregates compared with numbers"
        help = "compute these values beforehand and give them as facts, or leave the condition out"
        raise UnsupportedCondition(Diagnostic("TL702", message, condition.place or rule.place, law, help))
    name = left.function.value
    if left.function not in (AggregateFunction.COUNT, AggregateFunction.MIN, AggregateFunction.MAX):
        raise _unsupported(rule, condition, f"`{name}` is")
    if left.range is not None:
        raise _unsupported(rule, condition, f"`{name}` over a window of occurrences is")
    if not isinstance(right, Constant) or op not in _FLIPPED:
        raise _unsupported(rule, condition, f"`{name}` is, unless it is compared with a constant,")
    threshold = _Threshold(rule, condition, left, expand)
    if left.function is AggregateFunction.COUNT:
        if not isinstance(right.value, Fraction):
            raise _unsupported(rule, condition, "`count` is, unless it is compared with a number,")
        return threshold.compare_count(op, right.value)
    return threshold.compare_extreme(op, right, ">" if left.function is AggregateFunction.MAX else "<")


def _unsupported(rule: Rule, condition: Condition, what: str) -> UnsupportedCondition:
    message = f"{what} not supported by hypothetical answers"
    help = "compare `count`, `min` or `max` with a number, or leave the condition out"
    if "window" in what:
        help = "count over `Diamondminus[0,w]` inside the braces instead"
    return UnsupportedCondition(Diagnostic("TL702", message, condition.place or rule.place, _LAW, help))


class _Threshold:
    """The rows of one aggregate, and what it means that there are enough of them."""

    def __init__(self, rule: Rule, condition: Condition, aggregate: Aggregate, expand: Expand) -> None:
        parts = aggregate.body
        if any(isinstance(part, Condition) or (isinstance(part, Literal) and part.negated) for part in parts):
            raise _unsupported(rule, condition, "`not`, arithmetic and tests of text inside of braces are")
        if not all(isinstance(value, Variable) for value in aggregate.values):
            raise _unsupported(rule, condition, "an aggregate of an expression is")
        comparisons = tuple(part for part in parts if isinstance(part, Comparison))
        formulas = [part.formula for part in parts if isinstance(part, Literal)]
        self._rows = [
            Row(tuple(dict.fromkeys(pair for way in ways for pair in way)), comparisons)
            for ways in product(*map(expand, formulas))
        ]
        self._place = condition.place or rule.place
        inside = dict.fromkeys(_names_of_body(parts))
        bound, named = _find_outside(rule, condition)
        self._group = tuple(name for name in inside if name in named)
        self._is_bound = all(name in bound for name in self._group)
        self._local = tuple(name for name in inside if name not in named)
        self._values = [value.name for value in aggregate.values if isinstance(value, Variable)]
        self._different = self._values if aggregate.distinct else list(self._local)

    def compare_count(self, op: str, number: Fraction) -> list[Choice]:
        if op == "!=":
            return self.compare_count("<", number) + self.compare_count(">", number)
        if op == "=":
            if number.denominator != 1:
                return []
            pairs = product(self.compare_count(">=", number), self.compare_count("<=", number))
            return [Choice(a.row + b.row, a.absent + b.absent) for a, b in pairs]
        least = floor(number) + 1 if op in (">", "<=") else ceil(number)
        if op in (">", ">="):
            return [Choice(row) for row in self._find_rows(least)] if least > 0 else self._find_group()
        if least <= 0:
            return []
        absent = (self._group, tuple(self._find_rows(least)))
        return [replace(choice, absent=(absent,)) for choice in self._find_group()]

    def compare_extreme(self, op: str, limit: Constant, beyond: str) -> list[Choice]:
        """Return the ways to make a minimum (or maximum) true; values that are `beyond` others decide it."""
        if op == "!=":
            return self.compare_extreme("<", limit, beyond) + self.compare_extreme(">", limit, beyond)
        value = Variable(self._values[0])
        some = [Choice(row + Row((), (Comparison(op, value, limit),))) for row in self._find_rows(1)]
        if op.startswith(beyond):
            return some
        # All rows satisfy the comparison: there is one that does, and none that does not.
        opposite = beyond if op == "=" else OPPOSITE[op]
        rows = tuple(row + Row((), (Comparison(opposite, value, limit),)) for row in self._rows)
        return [replace(choice, absent=((self._group, rows),)) for choice in some]

    def _find_group(self) -> list[Choice]:
        """Return the ways in which the group exists: always, if it is bound outside, or with a row."""
        return [Choice(Row(()))] if self._is_bound else [Choice(row) for row in self._find_rows(1)]

    def _find_rows(self, number: int) -> Iterator[Row]:
        """Yield the ways to have this number of different rows."""
        if number > 1 and not self._different:
            return
        ways = comb(len(self._rows) + number - 1, number) * len(self._different) ** comb(number, 2)
        if ways > MAX_SCHEMAS:
            help = "use shorter ranges or a smaller number"
            raise too_many_ways("this aggregate can be reached in too many ways", help, self._place)
        copies = [[_rename(row, self._local, copy) for row in self._rows] for copy in range(number)]
        pairs = list(combinations(range(number), 2))
        for numbers in combinations_with_replacement(range(len(self._rows)), number):
            whole = Row(())
            for copy, place in enumerate(numbers):
                whole += copies[copy][place]
            for places in product(self._different, repeat=len(pairs)):
                differ = tuple(
                    Comparison("!=", _copy_name(name, self._local, a), _copy_name(name, self._local, b))
                    for name, (a, b) in zip(places, pairs, strict=True)
                )
                yield whole + Row((), differ)


def _copy_name(name: str, local: Sequence[str], copy: int) -> Variable:
    """Return a local variable of a copy of a row; the first copy keeps its names, others cannot be written by users."""
    return Variable(f"{name}'{copy + 1}" if copy and name in local else name)


def _rename(row: Row, local: Sequence[str], copy: int) -> Row:
    def term(given: Term) -> Term:
        return _copy_name(given.name, local, copy) if isinstance(given, Variable) else given

    return Row(
        tuple((replace(atom, args=tuple(map(term, atom.args))), at) for atom, at in row.atoms),
        tuple(replace(c, left=term(c.left), right=term(c.right)) for c in row.comparisons),
    )


def _find_outside(rule: Rule, condition: Condition) -> tuple[set[str], set[str]]:
    """Return the variables that atoms outside of braces bind, and all that occur outside of braces."""
    bound = {
        name
        for part in rule.body
        if isinstance(part, Literal) and not part.negated
        for name in _names_of_formula(part.formula)
    }
    named = set(_names_of_formula(rule.head)) | set(
        _names_of_body([part for part in rule.body if not isinstance(part, Condition)])
    )
    for part in rule.body:
        if isinstance(part, Condition):
            named |= {name for side in (part.left, part.right) for name in _names_outside_braces(side)}
    return bound, named


def _names_of_body(parts: Sequence[Literal | Comparison | Condition]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Literal):
            yield from _names_of_formula(part.formula)
        elif isinstance(part, Comparison):
            yield from (term.name for term in (part.left, part.right) if isinstance(term, Variable))


def _names_of_formula(formula: Formula) -> Iterator[str]:
    return (term.name for atom in formula_atoms(formula) for term in atom.args if isinstance(term, Variable))


def _names_outside_braces(side: Expression) -> Iterator[str]:
    if isinstance(side, Variable):
        yield side.name
    elif isinstance(side, Operation):
        for argument in side.args:
            yield from _names_outside_braces(argument)
