"""Find joins that cannot match because one side holds numbers and the other text, and comparisons of the two.

`1001` in CSV is a number and `"1001"` in JSON a text, so that a rule that joins them finds nothing. Batch, streams and
Spark describe their data as `ValueColumn`s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Literal

from tidelog.analysis.predicate_graph import body_atoms, head_atom
from tidelog.errors import Diagnostic, Place
from tidelog.language.printer import format_comparison, format_term
from tidelog.language.syntax import Atom, Comparison, Constant, Rule, Term, Variable
from tidelog.language.time_text import read_number
from tidelog.language.validation import locate

ValueType = Literal["number", "text", "mixed"]
#: A predicate and the number of one of its arguments, from 0.
Position = tuple[str, int]


@dataclass(frozen=True)
class ValueColumn:
    """One argument of a predicate in one source of data: the type of its values, and where they are for a reader."""

    predicate: str
    position: int
    type: ValueType
    source: str
    column: str | None = None
    #: Whether some of the texts look like numbers.
    numeric_text: bool = False

    @property
    def holds_numbers(self) -> bool:
        return self.type != "text"

    def __str__(self) -> str:
        if not self.predicate:
            return f"the constant {self.column}"
        where = f"column `{self.column}`" if self.column else f"argument {self.position + 1} of {self.predicate}"
        return f"{where} of {self.source}" if self.source else where


def merge_columns(columns: Iterable[ValueColumn]) -> list[ValueColumn]:
    """Merge the descriptions of parts of the same source."""
    merged: dict[tuple[str, int, str], ValueColumn] = {}
    for column in columns:
        key = (column.predicate, column.position, column.source)
        known = merged.get(key)
        merged[key] = column if known is None else _merge(known, column)
    return list(merged.values())


def _merge(known: ValueColumn, more: ValueColumn) -> ValueColumn:
    numeric_text = known.numeric_text or more.numeric_text
    return replace(known, type=known.type if known.type == more.type else "mixed", numeric_text=numeric_text)


def find_type_conflicts(rules: Sequence[Rule], columns: Iterable[ValueColumn]) -> list[Diagnostic]:
    """Find the joins and comparisons of rules, and the sources of one predicate, whose values differ in type."""
    by_position: dict[Position, list[ValueColumn]] = {}
    for column in merge_columns(columns):
        by_position.setdefault((column.predicate, column.position), []).append(column)
    problems = list(_compare_sources(by_position))
    derived = _spread_types(rules, by_position)
    seen: set[tuple[str, str]] = set()
    for rule in rules:
        for problem, pair in (*_check_joins(rule, derived), *_check_comparisons(rule, derived)):
            if pair not in seen:
                seen.add(pair)
                problems.append(problem)
    return problems


def _differ(left: ValueColumn, right: ValueColumn) -> bool:
    """Whether equal values of two columns are missed, because they are numbers in one and text in the other."""
    if "mixed" not in (left.type, right.type):
        return left.type != right.type
    return (left.holds_numbers and right.numeric_text) or (right.holds_numbers and left.numeric_text)


def _compare_sources(by_position: Mapping[Position, list[ValueColumn]]) -> Iterator[Diagnostic]:
    for (predicate, position), columns in by_position.items():
        number = next((column for column in columns if column.type == "number"), None)
        text = next((column for column in columns if column.type == "text"), None)
        if number and text:
            yield _describe_conflict(number, text, None, f"both are argument {position + 1} of {predicate}")


def _describe_conflict(left: ValueColumn, right: ValueColumn, place: Place | None, reason: str) -> Diagnostic:
    number, text = (left, right) if right.type == "text" or left.type == "number" else (right, left)
    message = f"{_describe_values(number)}, and {_describe_values(text, number)}, but {reason}"
    return Diagnostic("TL208", message, place, severity="warning")


def _describe_values(column: ValueColumn, beside: ValueColumn | None = None) -> str:
    """Say what a column holds; `beside` a column of numbers, without repeating the verb."""
    if not column.predicate:
        return f"{column} is a {column.type}"
    if column.type == "mixed" or (beside and beside.type == "mixed" and column.numeric_text):
        kind = "numbers and text" if column.type == "mixed" else "text that looks like numbers"
        return f"{column} holds {kind}"
    verb = "" if beside and beside.predicate and beside.type == "number" else " holds"
    return f"{column}{verb} only {'numbers' if column.type == 'number' else 'text'}"


def _spread_types(
    rules: Sequence[Rule], by_position: Mapping[Position, list[ValueColumn]]
) -> dict[Position, ValueColumn]:
    """Compute the type of each position, also of derived predicates, whose values come from their rules."""
    types: dict[Position, ValueColumn] = {}
    for position, columns in by_position.items():
        types[position] = reduce(_merge, columns)
    changed = True
    while changed:
        changed = False
        for rule in rules:
            head = head_atom(rule)
            for position, column in _derive_types(rule, head, types) if head else ():
                known = types.get(position)
                new = column if known is None else _merge_derived(position, known, column)
                if known is None or (known.type, known.numeric_text) != (new.type, new.numeric_text):
                    types[position], changed = new, True
    return types


def _merge_derived(position: Position, known: ValueColumn, more: ValueColumn) -> ValueColumn:
    """Merge the types of two rules; a mixture is described by the predicate that they derive."""
    merged = _merge(known, more)
    if merged.type == known.type:
        return merged
    return ValueColumn(*position, merged.type, "", None, merged.numeric_text)


def _derive_types(
    rule: Rule, head: Atom, types: Mapping[Position, ValueColumn]
) -> Iterator[tuple[Position, ValueColumn]]:
    bound: dict[Term, ValueColumn] = {}
    for atom, negated in body_atoms(rule):
        for position, term in enumerate(atom.args):
            if isinstance(term, Variable) and not negated and (atom.predicate, position) in types:
                bound.setdefault(term, types[atom.predicate, position])
    for position, term in enumerate(head.args):
        if isinstance(term, Constant):
            yield (head.predicate, position), _describe_constant(term)
        elif term in bound:
            yield (head.predicate, position), bound[term]


def _describe_constant(term: Constant) -> ValueColumn:
    number = isinstance(term.value, Fraction)
    looks = isinstance(term.value, str) and read_number(term.value) is not None
    return ValueColumn("", 0, "number" if number else "text", "", format_term(term), looks)


def _check_joins(rule: Rule, types: Mapping[Position, ValueColumn]) -> Iterator[tuple[Diagnostic, tuple[str, str]]]:
    """Yield the pairs of columns of different types that the atoms of a rule require to be equal."""
    first: dict[Term, ValueColumn] = {}
    for atom, _ in body_atoms(rule):
        for position, term in enumerate(atom.args):
            column = types.get((atom.predicate, position))
            if column is None:
                continue
            other = _describe_constant(term) if isinstance(term, Constant) else first.setdefault(term, column)
            if str(other) != str(column) and _differ(other, column):
                name = term.name if isinstance(term, Variable) else format_term(term)
                reason = f"the rule joins them in `{name}`"
                yield (
                    _describe_conflict(other, column, locate(atom.place, name), reason),
                    (str(other), str(column)),
                )


def _check_comparisons(
    rule: Rule, types: Mapping[Position, ValueColumn]
) -> Iterator[tuple[Diagnostic, tuple[str, str]]]:
    """Yield the comparisons of a rule between numbers and text: those for order, and those for equality."""
    first: dict[Term, ValueColumn] = {}
    for atom, negated in body_atoms(rule):
        for position, term in enumerate(atom.args):
            if not negated and (atom.predicate, position) in types:
                first.setdefault(term, types[atom.predicate, position])
    for comparison in rule.body:
        if not isinstance(comparison, Comparison):
            continue
        left, right = (
            _describe_constant(term) if isinstance(term, Constant) else first.get(term)
            for term in (comparison.left, comparison.right)
        )
        if left is None or right is None or str(left) == str(right):
            continue
        shown, pair = format_comparison(comparison), (str(left), str(right))
        if comparison.op in ("=", "!="):
            if _differ(left, right):
                reason = f"the rule {'joins' if comparison.op == '=' else 'compares'} them in `{shown}`"
                yield _describe_conflict(left, right, comparison.place, reason), pair
        elif left.type != right.type and "number" in (left.type, right.type):
            problem = _describe_conflict(left, right, comparison.place, f"the rule compares them in `{shown}`")
            yield replace(problem, law="in the order of constants, text comes after all numbers"), pair
