"""Find joins that cannot match because one side holds numbers and the other text, and expressions over the wrong type.

`1001` in CSV is a number and `"1001"` in JSON a text, so that a rule that joins them finds nothing. Batch, streams and
Spark describe their data as `ValueColumn`s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce

from tidelog.analysis.expression_types import Conflict, PositionTypes, bind_rule_types, can_miss, check_expressions
from tidelog.analysis.value_columns import (
    Position,
    ValueColumn,
    describe_conflict,
    describe_constant,
    merge_columns,
    merge_types,
)
from tidelog.errors import Diagnostic
from tidelog.language.aggregate_checks import body_aggregates
from tidelog.language.bindings import outer_variables
from tidelog.language.printer import format_term
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Atom, Constant, Literal, Rule, Term, Variable
from tidelog.language.validation import body_atoms, locate


def find_type_conflicts(rules: Sequence[Rule], columns: Iterable[ValueColumn]) -> list[Diagnostic]:
    """Find the joins and comparisons of rules, and the sources of one predicate, whose values differ in type."""
    by_position: dict[Position, list[ValueColumn]] = {}
    for column in merge_columns(columns):
        by_position.setdefault((column.predicate, column.position), []).append(column)
    problems = list(_compare_sources(by_position))
    derived = _spread_types(rules, by_position)
    seen: set[tuple[str, str]] = set()
    for rule in rules:
        for problem, pair in (*_check_joins(rule, derived), *check_expressions(rule, derived)):
            if pair not in seen:
                seen.add(pair)
                problems.append(problem)
    return problems


def _compare_sources(by_position: Mapping[Position, list[ValueColumn]]) -> Iterator[Diagnostic]:
    for (predicate, position), columns in by_position.items():
        number = next((column for column in columns if column.type == "number"), None)
        text = next((column for column in columns if column.type == "text"), None)
        if number and text:
            yield describe_conflict(number, text, None, f"both are argument {position + 1} of {predicate}")


def _spread_types(
    rules: Sequence[Rule], by_position: Mapping[Position, list[ValueColumn]]
) -> dict[Position, ValueColumn]:
    """Compute the type of each position, also of derived predicates, whose values come from their rules."""
    types: dict[Position, ValueColumn] = {}
    for position, columns in by_position.items():
        types[position] = reduce(merge_types, columns)
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
    merged = merge_types(known, more)
    if merged.type == known.type:
        return merged
    return ValueColumn(*position, merged.type, "", None, merged.numeric_text)


def _derive_types(rule: Rule, head: Atom, types: PositionTypes) -> Iterator[tuple[Position, ValueColumn]]:
    bound = bind_rule_types(rule, types)
    for position, term in enumerate(head.args):
        if isinstance(term, Constant):
            yield (head.predicate, position), describe_constant(term)
        elif term in bound:
            yield (head.predicate, position), bound[term]


def _check_joins(rule: Rule, types: PositionTypes) -> Iterator[Conflict]:
    """Yield the pairs of columns of different types that the atoms of a rule require to be equal."""
    outer = outer_variables(rule)
    first: dict[tuple[Term, int], ValueColumn] = {}
    for atom, scope in _number_scopes(rule):
        for position, term in enumerate(atom.args):
            column = types.get((atom.predicate, position))
            if column is None:
                continue
            key = (term, 0 if term in outer else scope)
            other = describe_constant(term) if isinstance(term, Constant) else first.setdefault(key, column)
            if str(other) != str(column) and can_miss(other, column):
                name = term.name if isinstance(term, Variable) else format_term(term)
                reason = f"the rule joins them in `{name}`"
                yield (
                    describe_conflict(other, column, locate(atom.place, name), reason),
                    (str(other), str(column)),
                )


def _number_scopes(rule: Rule) -> Iterator[tuple[Atom, int]]:
    """Yield the atoms of a body with 0, and those in braces, where names are local, with the number of the braces."""
    literals = [literal for literal in rule.body if isinstance(literal, Literal)]
    for scope, body in enumerate((literals, *(aggregate.body for aggregate in body_aggregates(rule.body)))):
        yield from ((atom, scope) for atom, _ in body_atoms(body))
