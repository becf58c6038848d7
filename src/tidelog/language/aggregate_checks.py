"""Checks of the form of aggregates: which of them take values, a range, or `distinct`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tidelog.errors import Diagnostic
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    BodyLiteral,
    Condition,
    Expression,
    Operation,
    Variable,
)
from tidelog.timeline.interval import INF

_NEEDS_RANGE = (AggregateFunction.LAST, AggregateFunction.FIRST, AggregateFunction.DURATION)
_WITHOUT_VALUE = (AggregateFunction.COUNT, AggregateFunction.DURATION, AggregateFunction.START)
_WITH_DISTINCT = (
    AggregateFunction.COUNT,
    AggregateFunction.SUM,
    AggregateFunction.MIN,
    AggregateFunction.MAX,
    AggregateFunction.AVG,
)
_EXAMPLES = {
    "count": "count{ P(X) }",
    "last": "last[0,1h]{ V : P(X, V) }",
    "first": "first[0,1h]{ V : P(X, V) }",
    "duration": "duration[0,1h]{ P(X) }",
    "start": "start{ P(X) }",
}


def find_aggregates(expression: Expression) -> Iterator[Aggregate]:
    """Yield the aggregates of an expression, from left to right, without those inside other aggregates."""
    if isinstance(expression, Aggregate):
        yield expression
    elif isinstance(expression, Operation):
        for arg in expression.args:
            yield from find_aggregates(arg)


def map_aggregates(expression: Expression, change: Callable[[Aggregate], Expression]) -> Expression:
    """Return an expression with each of its aggregates changed."""
    match expression:
        case Aggregate():
            return change(expression)
        case Operation(_, args):
            return replace(expression, args=tuple(map_aggregates(arg, change) for arg in args))
    return expression


def body_aggregates(body: Iterable[BodyLiteral]) -> Iterator[Aggregate]:
    """Yield the aggregates of a body, in order."""
    for literal in body:
        if isinstance(literal, Condition):
            yield from find_aggregates(literal.left)
            yield from find_aggregates(literal.right)


def diagnose_aggregate(aggregate: Aggregate) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each part that an aggregate lacks or may not have."""
    function, name = aggregate.function, aggregate.function.value
    if function is AggregateFunction.COUNT and aggregate.values and not aggregate.distinct:
        help = "count rows with count{ P(X) }, or distinct values with count{ distinct X : P(X) }"
        yield _malformed_aggregate("count has no value", aggregate, help)
    elif function in _WITHOUT_VALUE and aggregate.values and not aggregate.distinct:
        yield _malformed_aggregate(f"{name} has no value", aggregate, f"write {example_aggregate(name)}")
    elif function not in _WITHOUT_VALUE and len(aggregate.values) != 1:
        yield _malformed_aggregate(f"{name} needs one value before `:`", aggregate, f"write {example_aggregate(name)}")
    if aggregate.distinct and function not in _WITH_DISTINCT:
        yield _malformed_aggregate(f"{name} has no distinct", aggregate, f"write {example_aggregate(name)}")
    if function in _NEEDS_RANGE and aggregate.range is None:
        yield _malformed_aggregate(f"{name} needs a range", aggregate, f"write {example_aggregate(name)}")
    if function is AggregateFunction.START and aggregate.range is not None:
        yield _malformed_aggregate("start has no range", aggregate, f"write {example_aggregate(name)}")
    if function is AggregateFunction.DURATION and aggregate.range is not None and aggregate.range.hi == INF:
        yield _malformed_aggregate("the range of a duration has no end", aggregate, f"write {example_aggregate(name)}")
    inner = [*body_aggregates(aggregate.body), *(found for e in aggregate.values for found in find_aggregates(e))]
    for nested in inner[:1]:
        help = "define the inner aggregate by a rule of its own, and use its predicate here"
        yield _malformed_aggregate("an aggregate inside another", nested, help)


def diagnose_durations(condition: Condition) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each duration that is not one side of a comparison with a number or a value."""
    for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
        for aggregate in find_aggregates(side):
            if aggregate.function is not AggregateFunction.DURATION:
                continue
            if aggregate is not side or condition.in_head:
                help = "compare it with a number or a variable: duration[0,1h]{ Hot(X) } >= 30min"
                message = "a duration changes continuously, so it can only be compared"
                yield _malformed_aggregate(message, aggregate, help)
            elif not _is_plain(other):
                help = "give the value a name: V = L / 2, duration[0,1h]{ Hot(X) } >= V"
                message = "a duration can only be compared with a number or a variable"
                yield _malformed_aggregate(message, aggregate, help)


def explain_duration(body: Iterable[BodyLiteral], name: str) -> str | None:
    """Return help for a variable that shall get its value from a duration; None if it is not meant to."""
    for literal in body:
        if isinstance(literal, Condition) and literal.op == "=":
            for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
                duration = isinstance(other, Aggregate) and other.function is AggregateFunction.DURATION
                if duration and isinstance(one, Variable) and one.name == name:
                    example = "duration[0,1h]{ Hot(X) } >= 30min"
                    return f"a duration changes continuously, so {name} gets no value from it; compare it: {example}"
    return None


def _is_plain(expression: Expression) -> bool:
    return not isinstance(expression, Operation | Aggregate)


def _malformed_aggregate(message: str, aggregate: Aggregate, help: str) -> Diagnostic:
    return Diagnostic("TL118", message, aggregate.place, help=help)


def example_aggregate(name: str) -> str:
    """Return an example of an aggregate, for messages."""
    return _EXAMPLES.get(name, f"{name}{{ V : P(X, V) }}")
