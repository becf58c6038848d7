"""Aggregates by their definitions, cell by cell.

**The grid.** Where the body of the braces holds is a set of cells, so starts of occurrences are ticks. For a range from
a to b ticks and a start at s, t - s is in the range from s+a to s+b with the range's brackets, or for an open start in
(s+a, s+b]: sets of cells again, since all ends are ticks. So every aggregate but `duration` is constant in every cell,
and it is right to ask at one time of each cell: at its point, or in the middle of its gap.

**Durations.** Over the rationals, the duration at t is the measure of the part of [t-b, t-a] where the body holds.
Single points and brackets do not matter to it. Between two neighbouring ticks its slope is what it gains at t-a less
what it loses at t-b, so 1, 0 or -1 throughout, and at ticks it is a whole number of ticks. So in the gap between the
ticks n and n+1 it runs straight from one whole number to the same one or a neighbour, and strictly inside the gap it
meets no whole number unless it is constant. If the value that it is compared with is a whole number of ticks, then the
comparison is constant in every gap, and it is right to ask in the middle. `values_of` checks that it is one, and asks
for finer ticks if not (`Coarse`). Over the integers the duration is a number of points, and each cell is a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from numeric_bodies import Place, Solution, Values, World, bound_variables, solve_body
from numeric_values import Undefined, calculate, sides
from oracle import Binding, order
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    Comparison,
    Condition,
    Constant,
    UnaryOp,
    Value,
    Variable,
)
from tidelog.timeline.interval import Interval
from truth_cells import Scope, Vector, cell_times, contains, disjunction, some_or_every


class Coarse(Exception):
    """A value that durations are compared with is no whole number of ticks."""

    def __init__(self, value: Fraction) -> None:
        super().__init__(value)
        self.value = value


@dataclass(frozen=True)
class Occurrence:
    """A value of a row (None: undefined), and the start of a maximal stretch on which it holds."""

    values: tuple[Value, ...] | None
    start: Fraction
    closed: bool

    def is_in(self, range_: Interval, t: Fraction) -> bool:
        if self.closed:
            return contains(range_, t - self.start)
        return self.start + range_.lo < t <= self.start + range_.hi


# Groups and rows


def group_bindings(aggregate: Aggregate, binding: Binding, world: World) -> list[Binding]:
    """The binding with each group that the braces bind, whenever it has rows."""
    group = world.group_of(aggregate)
    if group <= binding.keys():
        return [binding]
    return [{**binding, **{name: row[name] for name in group}} for row, _ in rows_of(aggregate, binding, world)]


def rows_of(aggregate: Aggregate, binding: Binding, world: World) -> list[Solution]:
    """The distinct bindings of the variables in the braces, under what is bound outside, and where each holds."""
    group = {name: value for name, value in binding.items() if name in world.group_of(aggregate)}
    key = (aggregate, tuple(sorted(group.items())))
    if key not in world.cache:
        found: dict[Place, Vector] = {}
        for row, vector in solve_body(aggregate.body, group, world.inside_braces()):
            place = tuple(sorted(row.items()))
            found[place] = disjunction(found.get(place, world.scope.constant(False)), vector)
        world.cache[key] = [(dict(place), vector) for place, vector in found.items()]
    return world.cache[key]


def needs_row(aggregate: Aggregate, world: World) -> bool:
    """Whether only groups with rows exist: the braces bind a group variable that is not bound outside of braces."""
    inside = bound_variables(aggregate.body, set(), world.elsewhere)
    return bool((world.group_of(aggregate) & inside) - world.elsewhere)


# Values


def values_of(aggregate: Aggregate, binding: Binding, condition: Comparison | Condition, world: World) -> Values:
    """The aggregate's value for a group, which is bound, at all times."""
    scope, demand = world.scope, needs_row(aggregate, world)
    rows = rows_of(aggregate, binding, world)
    if aggregate.function is AggregateFunction.START:
        return starts(scope, union(scope, rows))
    if aggregate.function is AggregateFunction.DURATION:
        check_grid(aggregate, binding, condition, scope)
        return durations(scope, aggregate, union(scope, rows), demand)
    candidates, places = contributions(scope, aggregate, rows)
    known: dict[tuple[int, ...], Value | None] = {}
    for place in places:
        if place not in known:
            known[place] = combine(aggregate, [candidates[number] for number in place], demand)
    return [known[place] for place in places]


def union(scope: Scope, rows: Iterable[Solution]) -> Vector:
    """Where some row holds."""
    found = scope.constant(False)
    for _, vector in rows:
        found = disjunction(found, vector)
    return found


def row_values(aggregate: Aggregate, row: Binding) -> tuple[Value, ...] | None:
    try:
        return tuple(calculate(value, row, {}) for value in aggregate.values)
    except Undefined:
        return None


def sample_cells(scope: Scope, *ranges: Interval | None) -> Iterator[int]:
    """A cell far left of the window, the cells of the window, and one far right of it: further than ranges reach."""
    ends = [t for range_ in ranges if range_ for t in (range_.lo, range_.hi) if t != float("inf")]
    far = 4 + 2 * int(max(ends, default=0) * scope.denominator + 1) + (scope.last - scope.first)
    yield scope.first - 2 * far
    yield from scope.cells
    yield scope.last + 2 * far


def contributions(
    scope: Scope, aggregate: Aggregate, rows: list[Solution]
) -> tuple[list[Occurrence], list[tuple[int, ...]]]:
    """All that may count, and for each time the numbers of those that do."""
    if aggregate.range is None:
        candidates = [Occurrence(row_values(aggregate, row), Fraction(0), True) for row, _ in rows]
        vectors = [vector for _, vector in rows]
        now = [tuple(n for n, vector in enumerate(vectors) if vector[i]) for i in range(len(scope.constant(False)))]
        return candidates, now
    candidates = [
        Occurrence(row_values(aggregate, row), scope.time(first - scope.is_gap(first)), not scope.is_gap(first))
        for row, vector in rows
        for first in first_cells(scope, vector)
    ]
    left, *_, right = sample_cells(scope, aggregate.range)
    times = [scope.time(left), *cell_times(scope), scope.time(right)]
    return candidates, [tuple(n for n, one in enumerate(candidates) if one.is_in(aggregate.range, t)) for t in times]


def first_cells(scope: Scope, vector: Vector) -> list[int]:
    """The first cells of the maximal runs that have a start."""
    return [cell for cell in scope.cells if vector[scope.index(cell)] and not vector[scope.index(cell) - 1]]


def combine(aggregate: Aggregate, found: list[Occurrence], demand: bool) -> Value | None:
    """The aggregate's value over what counts at one time."""
    if demand and not found:
        return None
    function = aggregate.function
    if function in (AggregateFunction.LAST, AggregateFunction.FIRST):
        return last_or_first(function, [one for one in found if one.values is not None])
    values = [one.values for one in found]
    if function is AggregateFunction.COUNT and not aggregate.distinct:
        return Fraction(len(values))
    if aggregate.distinct:
        values = list(dict.fromkeys(values))
    defined = [value for value in values if value is not None]
    if function is AggregateFunction.COUNT:
        return Fraction(len(defined))
    single = [value[0] for value in defined]
    if function is AggregateFunction.MIN:
        return min(single, key=order, default=None)
    if function is AggregateFunction.MAX:
        return max(single, key=order, default=None)
    numbers = [Fraction(value) for value in single if not isinstance(value, str)]
    if function is AggregateFunction.SUM:
        return sum(numbers, Fraction(0))
    assert function is AggregateFunction.AVG
    return sum(numbers, Fraction(0)) / len(numbers) if numbers else None


def last_or_first(function: AggregateFunction, found: list[Occurrence]) -> Value | None:
    """The greatest value of the latest or earliest start; an open start comes right after a closed one."""
    if not found:
        return None
    moments = [(one.start, not one.closed) for one in found]
    moment = max(moments) if function is AggregateFunction.LAST else min(moments)
    tied = [one.values[0] for one in found if (one.start, not one.closed) == moment and one.values is not None]
    return max(tied, key=order)


def starts(scope: Scope, held: Vector) -> Values:
    found: Values = []
    start: Fraction | None = None
    for before, now, cell in zip(itertools.chain([0], held), held, sample_cells(scope), strict=False):
        if now and not before:
            first = cell - scope.is_gap(cell)
            start = None if cell < scope.first else scope.time(first)
        found.append(start if now else None)
    return found


def durations(scope: Scope, aggregate: Aggregate, held: Vector, demand: bool) -> Values:
    assert aggregate.range is not None
    exists = scope.constant(True)
    if demand:
        exists = some_or_every(scope, UnaryOp.DIAMOND_MINUS, aggregate.range, held, definite=True)
    cells = list(sample_cells(scope, aggregate.range))
    lengths = (
        point_counts(scope, aggregate.range, held, cells)
        if scope.integer
        else measures(scope, aggregate.range, held, cells)
    )
    return [length if there else None for length, there in zip(lengths, exists, strict=True)]


def point_counts(scope: Scope, range_: Interval, held: Vector, cells: list[int]) -> list[Fraction]:
    """At how many of the points that the range sees from each cell something holds."""
    found = []
    for cell in cells:
        first, last = scope.seen(cell, range_, past=True)
        found.append(Fraction(sum(held[scope.index(point)] for point in range(int(first), int(last) + 1))))
    return found


def measures(scope: Scope, range_: Interval, held: Vector, cells: list[int]) -> list[Fraction]:
    """The measure of the times from t - b to t - a at which something holds, for the time t of each cell.

    Cell c stands for the time of c half ticks, and the half tick after each k lies in one gap. Half ticks are counted.
    """
    near, far = (int(2 * t * scope.denominator) for t in (range_.lo, range_.hi))
    first = cells[0] - far
    so_far = [0]
    for k in range(first, cells[-1]):
        so_far.append(so_far[-1] + held[scope.index(k if scope.is_gap(k) else k + 1)])
    counts = (so_far[cell - near - first] - so_far[cell - far - first] for cell in cells)
    return [Fraction(count) / (2 * scope.denominator) for count in counts]


def check_grid(aggregate: Aggregate, binding: Binding, condition: Comparison | Condition, scope: Scope) -> None:
    """A duration is compared with a whole number of ticks."""
    if scope.integer:
        return
    (other,) = (side for side in sides(condition) if side != aggregate)
    assert isinstance(other, Constant | Variable)
    value = other.value if isinstance(other, Constant) else binding[other.name]
    assert aggregate.range is not None
    if isinstance(value, str) or not 0 <= value <= aggregate.range.hi - aggregate.range.lo:
        return  # which no duration meets
    if (value * scope.denominator).denominator != 1:
        raise Coarse(value)
