"""Calculations and aggregations that go forward in time, between the runs of the plan machine.

The machine logs every new piece of an interval that a calculation or aggregation reads. Calculations turn pieces into
facts at once. Aggregations collect them, and give their results for the times that have become complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.data.relation import finer, refine_pairs
from tidelog.data.symbol_table import Symbols
from tidelog.engine import store_tables
from tidelog.engine.fact_store import Int32s, Int64s, Rows
from tidelog.engine.numeric_steps import NumericSteps, find_shift, order_columns, order_results, shift_rows
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.core_rules import Aggregation
from tidelog.language.syntax import AggregateFunction
from tidelog.numeric.aggregation import Aggregator
from tidelog.numeric.refinement import FinerGridNeeded
from tidelog.timeline.grid import NEG_INF, POS_INF


class RunningNumbers:
    """Calculators and aggregators of a program, with the pieces that wait for the next aggregation."""

    def __init__(self, form: CompiledProgram, symbols: Symbols, steps: NumericSteps | None = None) -> None:
        self._set_form(form)
        self.steps = steps or NumericSteps.of(form, symbols)
        self._numbers = {name: number for number, name in enumerate(form.names)}
        self._arrived: dict[Aggregation, list[Rows]] = {step: [] for step in form.aggregations}
        self._until = dict.fromkeys(form.aggregations, NEG_INF - 1)
        #: The aggregations that have got rows from before the position up to which they were computed.
        self._outdated: set[Aggregation] = set()

    def _set_form(self, form: CompiledProgram) -> None:
        """Set the program, by how much it moves the rows of each aggregation, and how long each waits for them."""
        self.form = form
        self._shifts = {step: find_shift(form, step) for step in form.aggregations}
        self._waits = {
            step: max(0, form.bounds.delay.get(step.input.predicate, 0) - shift) for step, shift in self._shifts.items()
        }

    def compute(self, pieces: Mapping[int, Rows]) -> Int64s:
        """Take new pieces, by predicate, from a store's log; return the records that calculations derive from them."""
        records: list[Int64s] = []
        for number, rows in pieces.items():
            name = self.form.names[number]
            for step in self.form.calculations:
                if step.input.predicate == name:
                    records.append(self._pack(step.head.predicate, self.steps.calculators[step].apply(rows)))
            for aggregation in self.form.aggregations:
                if aggregation.input.predicate == name:
                    moved = self._move(aggregation, rows)
                    self._arrived[aggregation].append(moved)
                    if aggregation in self.form.late_rows and (moved.lo <= self._until[aggregation]).any():
                        self._outdated.add(aggregation)
            self._require_look_back(name)
        return _concatenate(records)

    def _require_look_back(self, arrived: str) -> None:
        """Raise if facts have arrived that bring late rows to an aggregation that cannot look back for them."""
        for step, late in self.form.late_rows.items():
            if arrived in late.sources and not late.looks_back and self._until[step] >= NEG_INF:
                rule = self.form.source.rules[step.origin]
                message = f"the aggregate in `{rule.text}` got a new value to compare with after the stream had begun"
                raise TidelogError(Diagnostic("TL313", message, rule.place))

    def aggregate(
        self, steps: Iterable[Aggregation], frontier: int, rows_of: Callable[[int], Rows]
    ) -> tuple[Int64s, int]:
        """Advance aggregations to a frontier; `rows_of` returns the known rows of a predicate.

        Return the records that they derive, and the frontier at which any aggregation changes next without new facts.
        Raise `FinerGridNeeded`, with nothing changed, if the grid is too coarse for one of them.
        """
        records: list[Int64s] = []
        due = [step for step in steps if frontier - self._waits[step] > self._until[step]]
        self._require_grid(due, rows_of)
        for step in due:
            until = frontier - self._waits[step]
            if step in self._outdated:
                self._outdated.discard(step)
                known = self._move(step, rows_of(self._numbers[step.input.predicate]))
                # Rows that have begun are replayed with their ends, which may lie ahead.
                self.steps.replay(step, self.form, known.where(known.lo <= self._until[step]), self._until[step])
                rows = known.where(known.lo > self._until[step])
            else:
                rows = Rows.concatenate(self._arrived[step], len(step.input.args)).clip(self._until[step] + 1, POS_INF)
            found = self.steps.advance(step, rows, until)
            self._arrived[step], self._until[step] = [], until
            records.append(self._pack(step.head.predicate, order_results(step, found)))
        return _concatenate(records), self.next_change()

    def _require_grid(self, steps: Iterable[Aggregation], rows_of: Callable[[int], Rows]) -> None:
        """Raise `FinerGridNeeded` if durations are compared with values between two ticks of the grid."""
        needed, origin = self.form.grid.denominator, None
        for step in steps:
            if step.function is AggregateFunction.DURATION:
                parts = self._arrived[step]
                if step in self._outdated:
                    parts = [self._move(step, rows_of(self._numbers[step.input.predicate]))]
                for rows in parts:
                    if needed % (denominator := self.steps.find_denominator(step, rows)):
                        needed, origin = lcm(needed, denominator), step.origin
        if origin is not None:
            raise FinerGridNeeded(needed, origin)

    def _move(self, step: Aggregation, rows: Rows) -> Rows:
        """Return rows as an aggregator takes them."""
        return shift_rows(order_columns(step, rows), self._shifts[step])

    def next_change(self) -> int:
        """Return the frontier at which an aggregation changes next without new facts."""
        changes = (self.steps.aggregators[step].next_change() + wait for step, wait in self._waits.items())
        return min(changes, default=POS_INF)

    def count_held(self) -> int:
        """Return how many rows all aggregations keep, and how many wait for the next one."""
        waiting = sum(len(rows) for parts in self._arrived.values() for rows in parts)
        return waiting + sum(aggregator.count_held() for aggregator in self.steps.aggregators.values())

    def _pack(self, name: str, rows: Rows) -> Int64s:
        queue = np.empty((3 + len(rows.args)) * len(rows), np.int64)
        columns = np.ascontiguousarray(rows.args, np.int32)
        store_tables.pack(self._numbers[name], columns, rows.lo, rows.hi, 0, len(rows), queue, 0)
        return queue

    # Parts

    def take_part(
        self, arrays: Mapping[str, NDArray[Any]], columns: Mapping[Aggregation, int], wanted: NDArray[np.bool_]
    ) -> RunningNumbers:
        """Return the part of a saved state with some keys, which `columns` says in which columns to find."""
        chosen = dict(arrays)
        for number, step in enumerate(self.form.aggregations):
            prefix, column = f"numbers.{number}.", columns[step]
            own = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
            chosen |= {f"{prefix}{name}": a for name, a in Aggregator.select_part(own, column, wanted).items()}
            args, times = arrays[f"arrived.{number}.args"], arrays[f"arrived.{number}.times"]
            mine = wanted[args[column]]
            chosen |= {f"arrived.{number}.args": args[:, mine], f"arrived.{number}.times": times[:, mine]}
        return self.take_all(chosen)

    def take_all(self, arrays: Mapping[str, NDArray[Any]], ids: Int32s | None = None) -> RunningNumbers:
        """Return the numbers of a saved state, over the same dictionary of constants, with new numbers if given."""
        other = RunningNumbers(self.form, self.steps.numbers.symbols, self.steps.share(self.form))
        other.restore(arrays, ids)
        return other

    def replace_part(self, part: RunningNumbers, columns: Mapping[Aggregation, int], wanted: NDArray[np.bool_]) -> None:
        """Replace what belongs to some keys by that of a part, which is at the same position."""
        for step in self.form.aggregations:
            column, mine, other = columns[step], self.steps.aggregators[step], part.steps.aggregators[step]
            assert isinstance(mine, Aggregator)
            assert isinstance(other, Aggregator)
            mine.replace_part(other, column, wanted)
            kept = [rows.where(~wanted[rows.args[column]]) for rows in self._arrived[step]]
            self._arrived[step] = [*kept, *(rows.where(wanted[rows.args[column]]) for rows in part._arrived[step])]
            if step in part._outdated:
                self._outdated.add(step)

    # States

    def mark_constants(self, used: NDArray[np.bool_]) -> None:
        """Mark the constants that occur in rows and results."""
        for step in self.form.aggregations:
            self.steps.aggregators[step].mark_constants(used)
            for rows in self._arrived[step]:
                used[rows.args] = True

    def renumber(self, ids: Int32s, symbols: Symbols) -> None:
        """Change to another dictionary, with new numbers for constants."""
        self.steps = self.steps.renumber(ids, symbols)
        self._arrived = {
            step: [Rows(ids[rows.args], rows.lo, rows.hi) for rows in parts] for step, parts in self._arrived.items()
        }

    def refine(self, form: CompiledProgram, factor: int) -> None:
        """Change to the same program on a grid that is `factor` times as fine."""
        self._set_form(form)
        for step in form.aggregations:
            self.steps.aggregators[step].refine(factor)
            self._until[step] = finer(self._until[step], factor)
            self._arrived[step] = [
                Rows(rows.args, *refine_pairs(rows.lo, rows.hi, factor)) for rows in self._arrived[step]
            ]

    def state(self, *, tidy: bool = True) -> dict[str, NDArray[Any]]:
        """Return everything that has to be remembered, as arrays that stay as they are.

        To go on right after that costs less without `tidy`: aggregators then keep the room for what they drop.
        """
        arrays: dict[str, NDArray[Any]] = {}
        for number, step in enumerate(self.form.aggregations):
            rows = Rows.concatenate(self._arrived[step], len(step.input.args))
            aggregator = self.steps.aggregators[step]
            own = aggregator.state(tidy=tidy) if isinstance(aggregator, Aggregator) else aggregator.state()
            arrays |= {f"numbers.{number}.{name}": a for name, a in own.items()}
            arrays[f"arrived.{number}.args"] = rows.args
            arrays[f"arrived.{number}.times"] = np.array([rows.lo, rows.hi])
            arrays[f"arrived.{number}.until"] = np.array([self._until[step], step in self._outdated])
        undefined = [calculator.undefined for calculator in self.steps.calculators.values()]
        return arrays | {"numbers.undefined": np.array(undefined, np.int64)}

    def restore(self, arrays: Mapping[str, NDArray[Any]], ids: Int32s | None) -> None:
        """Take over a saved state of the same steps on the same grid, with new numbers for constants, if any."""
        for number, step in enumerate(self.form.aggregations):
            prefix = f"numbers.{number}."
            own = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
            self.steps.aggregators[step].restore(own)
            if ids is not None:
                self.steps.aggregators[step].renumber(ids)
            args, times = arrays[f"arrived.{number}.args"], arrays[f"arrived.{number}.times"]
            self._arrived[step] = [Rows(args if ids is None else ids[args], times[0], times[1])]
            self._until[step] = int(arrays[f"arrived.{number}.until"][0])
            if arrays[f"arrived.{number}.until"][1]:
                self._outdated.add(step)
        for calculator, count in zip(self.steps.calculators.values(), arrays["numbers.undefined"], strict=True):
            calculator.undefined = int(count)


def _concatenate(parts: list[Int64s]) -> Int64s:
    return np.concatenate([np.empty(0, np.int64), *parts])
