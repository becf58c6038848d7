"""The calculations and aggregations of a compiled program, ready to run over columns of constants."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidelog.compiler.bound_memory import least_distance, window_of
from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.data.symbol_table import Symbols
from tidelog.engine.fact_store import Int32s, Rows
from tidelog.errors import TidelogError
from tidelog.language.core_rules import Aggregation, Calculation
from tidelog.language.syntax import AggregateFunction, Constant, Rule, Value, Variable
from tidelog.numeric.calculation import Calculation as CalculationPlan
from tidelog.numeric.calculation import Calculator
from tidelog.numeric.numbers import Numbers
from tidelog.timeline.grid import POS_INF, Grid

if TYPE_CHECKING:
    from tidelog.numeric.aggregation import Aggregator
    from tidelog.numeric.durations import DurationAggregator


@dataclass(frozen=True)
class NumericSteps:
    """Calculators and aggregators of a program, over one dictionary of constants."""

    numbers: Numbers
    calculators: dict[Calculation, Calculator]
    aggregators: dict[Aggregation, Aggregator | DurationAggregator]
    #: The rules as the user wrote them.
    rules: tuple[Rule, ...]

    @staticmethod
    def of(compiled: CompiledProgram, symbols: Symbols) -> NumericSteps:
        """Make the calculators and aggregators of a program over a dictionary of constants."""
        numbers = Numbers(symbols)
        return NumericSteps(
            numbers,
            {step: Calculator(_plan_calculation(step), numbers) for step in compiled.calculations},
            {
                step: _build_aggregator(step, compiled.grid, numbers, find_shift(compiled, step))
                for step in compiled.aggregations
            },
            compiled.source.rules,
        )

    def share(self, compiled: CompiledProgram) -> NumericSteps:
        """Return the same steps with the same numbers, but counters and aggregators of their own."""
        made = {
            step: _build_aggregator(step, compiled.grid, self.numbers, find_shift(compiled, step))
            for step in self.aggregators
        }
        return replace(self, calculators={step: copy(one) for step, one in self.calculators.items()}, aggregators=made)

    def replay(self, step: Aggregation, compiled: CompiledProgram, rows: Rows, until: int) -> None:
        """Compute an aggregation again from the rows in its window, up to a position."""
        self.aggregators[step] = _build_aggregator(step, compiled.grid, self.numbers, find_shift(compiled, step))
        self.advance(step, rows, until)

    def advance(self, step: Aggregation, rows: Rows, until: int) -> Rows:
        """Advance an aggregation, as `Aggregator.advance` does; errors name its rule."""
        try:
            return self.aggregators[step].advance(rows, until)
        except TidelogError as error:
            rule = self.rules[step.origin]
            found = error.diagnostics
            raise TidelogError(
                [replace(d, message=f"{d.message}, in `{rule.text}`", place=rule.place) for d in found]
            ) from None

    def find_denominator(self, step: Aggregation, rows: Rows) -> int:
        """Return the denominator that the grid must have to compare durations of these rows."""
        from tidelog.numeric.durations import DurationAggregator

        aggregator = self.aggregators[step]
        assert isinstance(aggregator, DurationAggregator)
        return aggregator.find_denominator(rows)

    @property
    def undefined(self) -> int:
        """How many rows had an undefined operation, or a value that is not a number in a sum."""
        return sum(c.undefined for c in self.calculators.values()) + sum(a.skipped for a in self.aggregators.values())

    def undefined_by_rule(self) -> Counter[int]:
        """Return how many rows had an undefined operation, by the number of the user's rule."""
        counts: Counter[int] = Counter()
        for calculation, calculator in self.calculators.items():
            counts[calculation.origin] += calculator.undefined
        for aggregation, aggregator in self.aggregators.items():
            counts[aggregation.origin] += aggregator.skipped
        return +counts

    def renumber(self, ids: Int32s, symbols: Symbols) -> NumericSteps:
        """Return the same steps over another dictionary, with new numbers for constants."""
        self.numbers.replace(symbols)
        for aggregator in self.aggregators.values():
            aggregator.renumber(ids)
        calculators = {step: Calculator(_plan_calculation(step), self.numbers) for step in self.calculators}
        for step, calculator in self.calculators.items():
            calculators[step].undefined = calculator.undefined
        return replace(self, calculators=calculators)


def _plan_calculation(step: Calculation) -> CalculationPlan:
    inputs = tuple(term for term in step.input.args if isinstance(term, Variable))
    return CalculationPlan(inputs, step.steps, step.head.args)


def find_shift(compiled: CompiledProgram, step: Aggregation) -> int:
    """Return by how much the rows of an aggregation are moved forward in time, and its window with them.

    A window that lies back in time is evaluated before its rows at the same time are known: in a recursion through
    time, and in a stream if the rows wait for facts ahead of them. Moved forward by that distance, they are known.
    """
    waits = compiled.bounds.delay.get(step.input.predicate, 0) > 0
    if waits or any(component.slice and step in component.aggregations for component in compiled.components):
        return least_distance(step, compiled.grid)
    return 0


def shift_rows(rows: Rows, by: int) -> Rows:
    """Return rows moved forward in time."""
    lo, hi = (np.where(np.abs(ends) >= POS_INF, ends, ends + by) for ends in (rows.lo, rows.hi))
    return Rows(rows.args, lo, hi) if by else rows


def _build_aggregator(step: Aggregation, grid: Grid, numbers: Numbers, shift: int) -> Aggregator | DurationAggregator:
    """Bring an aggregation onto the grid; its group comes first, see `order_columns`."""
    near, far = window_of(step, grid)
    window = near - shift, far if far == POS_INF else far - shift
    if step.function is AggregateFunction.DURATION:
        from tidelog.numeric.durations import DurationAggregator, DurationPlan

        assert step.compared is not None
        op, limit = step.compared
        value = limit.value if isinstance(limit, Constant) else None
        return DurationAggregator(DurationPlan(len(step.group), window, op, value, grid), numbers)
    from tidelog.numeric.aggregation import AggregationPlan, Aggregator

    columns = column_order(step)
    thresholds: tuple[tuple[str, Value], ...] = ()
    if step.compared is not None:
        op, term = step.compared
        assert isinstance(term, Constant)
        thresholds = ((op, term.value),)
    plan = AggregationPlan(
        function=step.function or "some",
        arity=len(columns),
        group=len(step.group),
        values=tuple(columns.index(value) for value in step.values),
        distinct=step.distinct,
        range=None if step.range is None else window,
        dense=grid.dense,
        denominator=grid.denominator,
        thresholds=thresholds,
    )
    return Aggregator(plan, numbers)


def column_order(step: Aggregation) -> list[int]:
    """Return the columns of an aggregation's input, those of the group first."""
    rest = [place for place in range(len(step.input.args)) if place not in step.group]
    return [*step.group, *rest]


def order_columns(step: Aggregation, rows: Rows) -> Rows:
    """Return the rows of an aggregation's input with the columns of the group first."""
    order = column_order(step)
    if order == list(range(len(order))):
        return rows
    return Rows(np.ascontiguousarray(rows.args[order]), rows.lo, rows.hi)


def order_results(step: Aggregation, rows: Rows) -> Rows:
    """Return the results of an aggregation in the order of the arguments of its head."""
    if step.output == tuple(range(len(step.output))):
        return rows
    return Rows(np.ascontiguousarray(rows.args[list(step.output)]), rows.lo, rows.hi)
