"""Describe conditions with numbers: computed values, and aggregates with the rows that count.

A proof shows them where they hold, why-not where they fail. A row of an aggregate rests on facts, which have proofs of
their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from tidelog.language.bindings import expression_variables
from tidelog.language.comparisons import FLIPPED, constant_order
from tidelog.language.printer import format_expression, format_literal
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    Atom,
    Comparison,
    Constant,
    Expression,
    Literal,
    Operation,
    Value,
    Variable,
)
from tidelog.language.syntax import Condition as SourceCondition
from tidelog.numeric.expressions import UndefinedError, evaluate
from tidelog.proofs.aggregate_values import Duration, Piece, Row, find_held, find_pieces
from tidelog.proofs.encoded_rules import EncodedAggregate, EncodedCondition, EncodedRule, shift_range
from tidelog.proofs.explained_model import ExplainedModel
from tidelog.proofs.formula_evaluation import GroundAtom, find_support, merge_facts
from tidelog.proofs.proof_step import AggregateValue, Condition, CountedRow
from tidelog.proofs.rule_instances import bind_groups, bind_values, find_rows, resolve_aggregates
from tidelog.timeline.grid import negate
from tidelog.timeline.time_sets import Pair, Times, find_touching, intersect, subtract

#: The largest number of rows of an aggregate that are shown; further ones are only counted.
MOST_ROWS = 20
#: The largest number of groups that are shown where a condition fails for all of them.
_MOST_GROUPS = 3

_WINNING = (AggregateFunction.LAST, AggregateFunction.FIRST)


def describe_condition(
    model: ExplainedModel, rule: EncodedRule, condition: EncodedCondition, binding: dict[str, int], when: Pair
) -> Iterator[Condition]:
    """Describe a condition that holds throughout `when`: its aggregates, and what is computed."""
    interval = model.grid.to_interval(*when)
    values: dict[Aggregate, Value] = {}
    for aggregate in condition.aggregates:
        value = find_value(model, rule, aggregate, binding, when)
        if value.least is not None and value.least == value.greatest:
            values[aggregate.source] = value.least
        facts = tuple(dict.fromkeys(fact for row in value.rows for fact in row.facts))
        text = format_aggregate_value(model, value, condition, binding)
        yield Condition("aggregate", text, interval, facts, value)
    source = condition.source
    if all(isinstance(side, Aggregate | Variable | Constant) for side in (source.left, source.right)) and values:
        return
    if len(values) == len(condition.aggregates):
        yield Condition("computed", _format_computed(model, source, binding, values), interval)


# Values and operations


def _format_computed(
    model: ExplainedModel,
    source: SourceCondition | Comparison,
    binding: Mapping[str, int],
    values: Mapping[Aggregate, Value],
) -> str:
    """Write an assignment as `expression = value`, and a test with its values."""
    left, right = (resolve_aggregates(side, values) for side in (source.left, source.right))
    decoder = model.decoder
    if source.op == "=" and isinstance(right, Variable) and isinstance(left, Operation):
        left, right = right, left
    if source.op == "=" and isinstance(left, Variable):
        if isinstance(right, Operation):
            return f"{decoder.format_expression(right, binding)} = {decoder.format_expression(left, binding)}"
        return f"{format_expression(left)} = {decoder.format_expression(right, binding)}"
    text = decoder.format_literal(SourceCondition(source.op, left, right), binding)
    if not isinstance(left, Operation) and not isinstance(right, Operation):
        return text
    bound = bind_values(binding, model.index)
    computed = SourceCondition(source.op, Constant(evaluate(left, bound)), Constant(evaluate(right, bound)))
    return f"{text}, that is {format_literal(computed)}"


def describe_operations(
    model: ExplainedModel,
    source: SourceCondition | Comparison,
    binding: Mapping[str, int],
    values: Mapping[Aggregate, Value],
) -> Iterator[str]:
    """Yield the value of each computed side of a condition, or which operation in it is undefined, and why."""
    bound = bind_values(binding, model.index)
    for side, other in ((source.left, source.right), (source.right, source.left)):
        resolved = resolve_aggregates(side, values)
        if isinstance(resolved, Operation) and all(name in bound for name in expression_variables(resolved)):
            undefined = _find_undefined(resolved, bound)
            text = model.decoder.format_expression(resolved if undefined is None else undefined[0], binding)
            if undefined is not None:
                yield f"{text} is undefined: {undefined[1]}"
            else:
                name = other.name if isinstance(other, Variable) else ""
                yield f"{text} is {model.decoder.format_variable(name, evaluate(resolved, bound))}"


def _find_undefined(expression: Expression, bound: Mapping[Variable, Value]) -> tuple[Expression, str] | None:
    """Return the innermost operation without a result, and why it has none."""
    for arg in expression.args if isinstance(expression, Operation) else ():
        found = _find_undefined(arg, bound)
        if found is not None:
            return found
    try:
        evaluate(expression, bound)
    except UndefinedError as error:
        return expression, str(error)
    return None


# Aggregates


def find_value(
    model: ExplainedModel, rule: EncodedRule, aggregate: EncodedAggregate, binding: Mapping[str, int], when: Pair
) -> AggregateValue:
    """Return the values that an aggregate has for a group in some times, and the rows that count."""
    rows = find_rows(aggregate, binding, when, model.index)
    group = {name: binding[name] for name in aggregate.group if name in binding}
    found = [value for _, value in _find_pieces(model, aggregate, rows, when)]
    defined = sorted((value for value in found if value is not None), key=constant_order)
    shown = _choose_rows(model, aggregate, rows, when)
    component = model.recursive.get(rule.head.predicate, frozenset()) & model.through_time
    return AggregateValue(
        aggregate.source,
        model.decoder.binding(group),
        defined[0] if defined else None,
        defined[-1] if defined else None,
        tuple(_show_row(model, aggregate, row, when, component) for row in shown[:MOST_ROWS]),
        max(0, len(shown) - MOST_ROWS),
    )


def _find_pieces(model: ExplainedModel, aggregate: EncodedAggregate, rows: Sequence[Row], when: Pair) -> list[Piece]:
    if aggregate.source.function is not AggregateFunction.DURATION:
        return find_pieces(aggregate, rows, when, model.grid)
    held = find_held(rows)
    assert aggregate.range is not None
    if aggregate.needs_row and not rows:
        return [(when, None)]
    return [(when, value) for value in Duration.of(held, aggregate.range, model.grid).extremes(when)]


def _choose_rows(model: ExplainedModel, aggregate: EncodedAggregate, rows: list[Row], when: Pair) -> list[Row]:
    """Return the rows to show: those that count, and of `last` and `first` those that give the value.

    Rows that give a minimum or maximum come first.
    """
    function = aggregate.source.function
    if function is AggregateFunction.DURATION:
        assert aggregate.range is not None
        window = shift_range(when, negate(aggregate.range), model.grid.dense)
        return [row for row in rows if intersect([row.pair], [window])]
    if function is AggregateFunction.START:
        whole = [pair for pair in find_held(rows) if intersect([pair], [when])]
        return [row for row in rows if intersect([row.pair], whole)]
    counting = [row for row in rows if intersect([row.counts], [when])]
    if function in (*_WINNING, AggregateFunction.MIN, AggregateFunction.MAX):
        winners = _find_winners(function, counting, when)
        others = [] if function in _WINNING else [row for row in counting if row not in winners]
        return winners + others
    return counting


def _find_winners(function: AggregateFunction, rows: list[Row], when: Pair) -> list[Row]:
    """Return the rows that give the value at some of the times."""
    ranked = [(row, constant_order(row.values[0])) for row in rows if row.values is not None]
    ranked.sort(key=lambda one: one[1], reverse=function is not AggregateFunction.MIN)
    if function in _WINNING:
        ranked.sort(key=lambda one: one[0].pair[0], reverse=function is AggregateFunction.LAST)
    uncovered: Times = [when]
    winners: list[Row] = []
    for row, _ in ranked:
        if intersect(uncovered, [row.counts]):
            winners.append(row)
            uncovered = subtract(uncovered, [row.counts])
    return sorted(winners, key=lambda row: row.pair)


def _show_row(
    model: ExplainedModel, aggregate: EncodedAggregate, row: Row, when: Pair, component: frozenset[str]
) -> CountedRow:
    """Return a row with the facts that make it hold: throughout `when`, at its start, or within the window."""
    part = _find_needed_part(model, aggregate, row, when)
    facts = merge_facts(
        [
            (atom, pair if atom[0] in component or model.repeating else _widen(model, atom, pair))
            for literal in aggregate.body.positive
            for atom, pair in find_support(literal.formula, row.binding, part, model.index.lookup, model.grid.dense)
        ]
    )
    local = {name: row.binding[name] for name in row.binding if name not in aggregate.group}
    whole = row.pair[0], min(row.pair[1], when[1])
    shown = part if aggregate.source.function is AggregateFunction.DURATION else whole
    return CountedRow(
        _format_row(model, aggregate.source, row, local),
        model.decoder.binding(local),
        model.grid.to_interval(*shown),
        tuple(model.decoder.fact(*fact) for fact in facts),
    )


def _find_needed_part(model: ExplainedModel, aggregate: EncodedAggregate, row: Row, when: Pair) -> Pair:
    """Return the part of a row's times that the aggregate depends on."""
    function = aggregate.source.function
    if function is AggregateFunction.DURATION:
        assert aggregate.range is not None
        return intersect([row.pair], [shift_range(when, negate(aggregate.range), model.grid.dense)])[0]
    if function is AggregateFunction.START:
        return row.pair[0], min(row.pair[1], when[1])
    if aggregate.range is not None:
        return row.pair[0], row.pair[0]
    return intersect([row.pair], [when])[0]


def _widen(model: ExplainedModel, atom: GroundAtom, pair: Pair) -> Pair:
    """Return the whole interval of an atom around a part of it."""
    return next((one for one in find_touching(model.index.times(*atom), pair) if intersect([one], [pair])), pair)


def _format_row(model: ExplainedModel, aggregate: Aggregate, row: Row, local: Mapping[str, int]) -> str:
    """Write a row by its local variables and its computed value; nothing if it is a single fact that shows all."""
    (first, *rest), computed = aggregate.body, [e for e in aggregate.values if isinstance(e, Operation)]
    plain = isinstance(first, Literal) and isinstance(first.formula, Atom) and not first.negated and not rest
    if plain and not computed:
        return ""
    named = model.decoder.binding(local)
    shown = (name for name in sorted(named) if not name.startswith(("_", "$")))
    texts = [f"{name} = {model.decoder.format_variable(name, named[name])}" for name in shown]
    if computed and row.values is None:
        texts.append(f"{format_expression(computed[0])} is undefined")
    elif computed and row.values is not None:
        texts += [
            f"{format_expression(expression)} = {model.decoder.format_result(aggregate, value)}"
            for expression, value in zip(aggregate.values, row.values, strict=True)
            if isinstance(expression, Operation)
        ]
    texts = texts or [model.decoder.format_literal(literal, row.binding) for literal in aggregate.body]
    return ", ".join(texts)


# Text


def format_aggregate_value(
    model: ExplainedModel,
    value: AggregateValue,
    condition: EncodedCondition,
    binding: Mapping[str, int],
    fails: bool = False,
) -> str:
    """Write an aggregate with its value, and what a comparison with it needs."""
    aggregate = value.aggregate
    group = {name: binding[name] for name in value.binding}
    text = model.decoder.format_expression(aggregate, group)
    if value.least is None:
        empty = "no value" if value.rows else "no rows"
        text += f" has {empty}"
    elif value.least == value.greatest:
        text += f" is {model.decoder.format_result(aggregate, value.least)}"
    else:
        assert value.greatest is not None
        least, greatest = (model.decoder.format_result(aggregate, end) for end in (value.least, value.greatest))
        text += f" is between {least} and {greatest}"
    return text + _format_need(model, aggregate, condition.source, binding, fails)


def _format_need(
    model: ExplainedModel,
    aggregate: Aggregate,
    source: SourceCondition | Comparison,
    binding: Mapping[str, int],
    fails: bool,
) -> str:
    """Write what an aggregate is compared with, if that is a term: `, needs >= 3`."""
    for one, op, other in ((source.left, source.op, source.right), (source.right, FLIPPED.get(source.op), source.left)):
        if one != aggregate or op is None or not isinstance(other, Variable | Constant):
            continue
        if op == "=" and not fails and isinstance(other, Variable):
            return ""
        return f", needs {op} {model.decoder.format_expression(other, binding)}"
    return ""


# Why not


@dataclass(frozen=True, slots=True)
class FailingValue:
    """A value that makes a condition fail: in words and, of an aggregate, with its rows."""

    text: str
    value: AggregateValue | None = None


def describe_failure(
    model: ExplainedModel, rule: EncodedRule, condition: EncodedCondition, binding: dict[str, int], when: Pair
) -> Iterator[FailingValue]:
    """Yield the values with which a condition fails throughout `when`."""
    groups = bind_groups(condition.aggregates, binding, when, model.index)
    for grouped in islice(groups or [binding], _MOST_GROUPS):
        values: dict[Aggregate, Value] = {}
        for aggregate in condition.aggregates:
            value = find_value(model, rule, aggregate, grouped, when)
            if value.least is not None and value.least == value.greatest:
                values[aggregate.source] = value.least
            text = format_aggregate_value(model, value, condition, grouped, fails=True)
            yield FailingValue(text, value)
        if len(values) == len(condition.aggregates):
            for text in describe_operations(model, condition.source, grouped, values):
                yield FailingValue(text)
