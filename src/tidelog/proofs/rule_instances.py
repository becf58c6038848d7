"""Instances of rules: the bindings under which the body of a rule holds at some time of a window.

The rows of an aggregate are instances of the body in its braces. What an aggregate or a negated literal reads is
looked up in the whole model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tidelog.language.comparisons import FLIPPED, may_hold
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    Comparison,
    Condition,
    Constant,
    Expression,
    Operation,
    Term,
    Value,
    Variable,
)
from tidelog.numeric.expressions import UndefinedError, evaluate, holds
from tidelog.proofs.aggregate_values import (
    Row,
    find_counted,
    find_duration_times,
    find_pieces,
    find_row_window,
)
from tidelog.proofs.encoded_rules import (
    EncodedAggregate,
    EncodedAtom,
    EncodedBody,
    EncodedCondition,
    EncodedLiteral,
    EncodedRule,
    find_atom_windows,
    shift_range,
)
from tidelog.proofs.fact_index import FactIndex, Ids, match_atom
from tidelog.proofs.formula_evaluation import ANY, Lookup, find_times
from tidelog.timeline.grid import negate
from tidelog.timeline.time_sets import Pair, Times, coalesce, complement, intersect

#: A binding, and the times at which a body holds under it.
Solution = tuple[dict[str, int], Times]


def find_instances(rule: EncodedRule, ids: Ids, window: Pair, index: FactIndex) -> Iterator[Solution]:
    """Yield the bindings under which a rule derives an atom at some time of a window, with the times of the body."""
    binding = match_atom(rule.head, ids, {})
    if binding is None:
        return
    times = [shift_range(window, negate(rule.shift), index.dense)]
    yield from find_solutions(rule.body, binding, times, index)


def find_solutions(body: EncodedBody, binding: dict[str, int], times: Times, index: FactIndex) -> Iterator[Solution]:
    """Yield the extensions of a binding under which a body holds at some of the times, with these times."""
    yield from _join_literals(body, list(body.positive), binding, times, index)


def _join_literals(
    body: EncodedBody, rest: list[EncodedLiteral], binding: dict[str, int], times: Times, index: FactIndex
) -> Iterator[Solution]:
    """Yield the extensions of a binding under which the remaining literals hold, with the times at which all do."""
    if not rest:
        if all(comparison_holds(c, binding, index.value) for c in body.comparisons):
            yield from _add_conditions([*body.negative, *body.conditions], binding, times, index)
        return
    # The literal with the fewest unbound variables is the cheapest to look up.
    literal = min(rest, key=lambda literal: len(literal.binders - binding.keys()))
    others = [other for other in rest if other is not literal]
    window = times[0][0], times[-1][1]
    for extended in find_bindings(literal, binding, window, index):
        remaining = restrict_times(literal, extended, times, index.lookup_cut, index.dense)
        if remaining:
            yield from _join_literals(body, others, extended, remaining, index)


def _add_conditions(
    rest: list[EncodedLiteral | EncodedCondition], binding: dict[str, int], times: Times, index: FactIndex
) -> Iterator[Solution]:
    """Yield the extensions of a binding under which negated literals and conditions hold, in an order that binds all.

    Aggregates come last.
    """
    if not rest:
        yield binding, times
        return
    ready = [one for one in rest if is_ready(one, binding)] or rest[:1]
    first = min(ready, key=lambda one: bool(getattr(one, "aggregates", ())))
    others = [one for one in rest if one is not first]
    if isinstance(first, EncodedLiteral):
        remaining = restrict_times(first, binding, times, index.lookup_cut, index.dense)
        if remaining:
            yield from _add_conditions(others, binding, remaining, index)
        return
    for extended, remaining in apply_condition(first, binding, times, index):
        yield from _add_conditions(others, extended, remaining, index)


def is_ready(condition: EncodedLiteral | EncodedCondition, bound: Mapping[str, object] | set[str]) -> bool:
    """Tell whether a negated literal or a condition can be evaluated once some variables are bound."""
    if isinstance(condition, EncodedLiteral):
        return all(name in bound for name in condition.variables)
    missing = {name for name in condition.needed if name not in bound}
    return not missing or (len(missing) == 1 and _find_assigned(condition.source, missing) is not None)


def _find_assigned(source: Condition | Comparison, missing: set[str]) -> tuple[str, Expression] | None:
    """Return the variable that an assignment computes, and its expression; None if it is no assignment."""
    if source.op == "=":
        for one, other in ((source.left, source.right), (source.right, source.left)):
            if isinstance(one, Variable) and one.name in missing and one != other:
                return one.name, other
    return None


def restrict_to_body(
    body: EncodedBody, binding: dict[str, int], times: Times, lookup: Lookup, index: FactIndex
) -> Times:
    """Return the part of `times` at which a body holds under a binding of all its variables.

    Positive literals see what `lookup` finds; negated ones and aggregates see the whole model.
    """
    for literals, seen in ((body.positive, lookup), (body.negative, index.lookup)):
        for literal in literals:
            if times:
                times = restrict_times(literal, binding, times, seen, index.dense)
    for condition in body.conditions:
        if times:
            times = coalesce(pair for _, pairs in apply_condition(condition, binding, times, index) for pair in pairs)
    return times


# Literals


def restrict_times(
    literal: EncodedLiteral, binding: dict[str, int], times: Sequence[Pair], lookup: Lookup, dense: bool
) -> Times:
    """Return the part of `times` at which a literal holds."""
    held = find_times(literal.formula, binding, (times[0][0], times[-1][1]), lookup, dense)
    return intersect(times, complement(held) if literal.source.negated else held)


def find_bindings(
    literal: EncodedLiteral, binding: dict[str, int], window: Pair, index: FactIndex
) -> Iterator[dict[str, int]]:
    """Yield extensions of a binding to the variables of a literal under which it may hold in a window."""
    if all(name in binding for name in literal.variables):
        yield binding
        return
    seen: set[tuple[int, ...]] = set()
    required = list(find_atom_windows(literal.formula, window, index.dense, left=False))
    left_operands = [
        found for found in find_atom_windows(literal.formula, window, index.dense) if found not in required
    ]
    for bound in _match_atoms(required, binding, index):
        # A variable that only a left operand mentions may be anything where that operand is not needed.
        free = {name: ANY for name in literal.variables if name not in bound}
        for extended in (*(_match_atoms(left_operands, bound, index) if free else ()), {**bound, **free}):
            key = tuple(extended.get(name, ANY) for name in literal.variables)
            if key not in seen:
                seen.add(key)
                yield {**free, **extended}


def _match_atoms(
    atoms: Sequence[tuple[EncodedAtom, Pair]], binding: dict[str, int], index: FactIndex
) -> Iterator[dict[str, int]]:
    """Yield the extensions of a binding under which each atom holds at some time of its window."""
    if not atoms:
        yield binding
        return
    (atom, window), *rest = atoms
    if all(arg in binding for arg in atom.args if isinstance(arg, str)):
        yield from _match_atoms(rest, binding, index)
        return
    for extended in index.matching(atom, binding, window):
        yield from _match_atoms(rest, extended, index)


def comparison_holds(comparison: Comparison, binding: dict[str, int], value: Callable[[int], Value]) -> bool:
    """Tell whether a comparison holds under a binding."""
    left, right = (substitute_term(term, binding, value) for term in (comparison.left, comparison.right))
    return may_hold(Comparison(comparison.op, left, right))


def substitute_term(term: Term, binding: dict[str, int], value: Callable[[int], Value]) -> Term:
    """Return the constant that a binding gives to a term, or the term itself where it gives none."""
    if isinstance(term, Constant) or binding.get(term.name, ANY) == ANY:
        return term
    return Constant(value(binding[term.name]))


# Conditions with numbers


def apply_condition(
    condition: EncodedCondition, binding: dict[str, int], times: Times, index: FactIndex
) -> Iterator[Solution]:
    """Yield the binding with what a condition computes, and the part of the times at which it holds."""
    if not condition.aggregates:
        extended = _decide(condition.source, binding, {}, index)
        if extended is not None:
            yield extended, times
        return
    window = times[0][0], times[-1][1]
    for grouped in bind_groups(condition.aggregates, binding, window, index):
        found: dict[tuple[tuple[str, int], ...], list[Pair]] = {}
        for pairs, extended in _evaluate_group(condition, grouped, window, index):
            found.setdefault(tuple(sorted(extended.items())), []).extend(pairs)
        for key, pairs in found.items():
            remaining = intersect(times, coalesce(pairs))
            if remaining:
                yield dict(key), remaining


def _evaluate_group(
    condition: EncodedCondition, binding: dict[str, int], window: Pair, index: FactIndex
) -> Iterator[tuple[Times, dict[str, int]]]:
    """Yield the times of a window at which a condition holds for one group, with what it computes."""
    duration = condition.aggregates[0]
    if duration.source.function is AggregateFunction.DURATION:
        op, value = find_limit(condition.source, binding, index)
        rows = find_rows(duration, binding, window, index)
        yield intersect(find_duration_times(duration, rows, op, value, index.grid), [window]), binding
        return
    parts: list[tuple[Pair, dict[Aggregate, Value | None]]] = [(window, {})]
    for aggregate in condition.aggregates:
        rows = find_rows(aggregate, binding, window, index)
        pieces = find_pieces(aggregate, rows, window, index.grid)
        parts = [
            (common, {**known, aggregate.source: value})
            for part, known in parts
            for pair, value in pieces
            for common in intersect([part], [pair])
        ]
    for part, values in parts:
        extended = _decide(condition.source, binding, values, index)
        if extended is not None:
            yield [part], extended


def find_limit(source: Condition | Comparison, binding: Mapping[str, int], index: FactIndex) -> tuple[str, Value]:
    """Return the operator and the value that a duration is compared with, the duration being on the left."""
    left, op, right = source.left, source.op, source.right
    if not isinstance(left, Aggregate):
        op, right = FLIPPED[op], left
    return op, evaluate(right, bind_values(binding, index))


def bind_groups(
    aggregates: Sequence[EncodedAggregate], binding: dict[str, int], window: Pair, index: FactIndex
) -> list[dict[str, int]]:
    """Return the binding with each group that the braces bind and that has rows for a window of times."""
    found = [binding]
    for aggregate in aggregates:
        if all(name in one for one in found for name in aggregate.group):
            continue
        extended: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}
        for one in found:
            for row in find_rows(aggregate, one, window, index):
                grouped = {**one, **{name: row.binding[name] for name in aggregate.group}}
                extended[tuple(sorted(grouped.items()))] = grouped
        found = list(extended.values())
    return found


def find_rows(aggregate: EncodedAggregate, binding: Mapping[str, int], window: Pair, index: FactIndex) -> list[Row]:
    """Return the rows of a group that count at some time of a window, in the order of their starts."""
    search = find_row_window(aggregate, window, index.dense)
    group = {name: binding[name] for name in aggregate.group if name in binding}
    found: dict[tuple[int, ...], tuple[dict[str, int], list[Pair]]] = {}
    if search[0] > search[1]:
        return []
    for row, times in find_solutions(aggregate.body, group, [search], index):
        key = tuple(row.get(name, ANY) for name in aggregate.columns)
        found.setdefault(key, (row, []))[1].extend(times)
    rows: list[Row] = []
    for row, times in found.values():
        values = find_values(aggregate.source, row, index)
        for pair in coalesce(times):
            counts = find_counted(aggregate, pair, search, index.dense)
            if counts is not None and (counts == pair or intersect([counts], [window])):
                rows.append(Row(row, pair, counts, values))
    return sorted(rows, key=lambda row: row.pair)


def find_values(aggregate: Aggregate, binding: Mapping[str, int], index: FactIndex) -> tuple[Value, ...] | None:
    """Return the values of a row; None if one of them is undefined."""
    values = bind_values(binding, index)
    try:
        return tuple(evaluate(expression, values) for expression in aggregate.values)
    except UndefinedError:
        return None


def bind_values(binding: Mapping[str, int], index: FactIndex) -> dict[Variable, Value]:
    """Return a binding as one to values."""
    return {Variable(name): index.value(number) for name, number in binding.items() if number != ANY}


def _decide(
    source: Condition | Comparison,
    binding: dict[str, int],
    results: Mapping[Aggregate, Value | None],
    index: FactIndex,
) -> dict[str, int] | None:
    """Return the binding if a condition holds, with the variable that it computes, if any."""
    if None in results.values():
        return None
    values = bind_values(binding, index)
    try:
        left, right = (resolve_aggregates(side, results) for side in (source.left, source.right))
        resolved = Condition(source.op, left, right)
        assigned = _find_assigned(resolved, {v.name for v in (left, right) if isinstance(v, Variable)} - binding.keys())
        if assigned is not None:
            return {**binding, assigned[0]: index.intern(evaluate(assigned[1], values))}
        return binding if holds(source.op, evaluate(left, values), evaluate(right, values)) else None
    except UndefinedError:
        return None


def resolve_aggregates(expression: Expression, results: Mapping[Aggregate, Value | None]) -> Expression:
    """Return an expression with values in place of its aggregates."""
    match expression:
        case Aggregate():
            value = results[expression]
            assert value is not None
            return Constant(value)
        case Operation(_, args):
            return replace(expression, args=tuple(resolve_aggregates(arg, results) for arg in args))
    return expression
