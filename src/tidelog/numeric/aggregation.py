"""Aggregates over rows: counts, sums, averages, least and greatest values, first and last ones, start times.

One operator serves batch and streams. It takes rows as pieces of intervals and moves forward in time; a batch is one
move to the end of time. It keeps the rows that hold (at a point in time) or that start in the window, and the groups
that have any. A row costs O(log n) at most, whatever the window holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, lcm
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.syntax import AggregateFunction, Value
from tidelog.numeric import aggregate_state as cells
from tidelog.numeric.aggregate_state import Output, Pieces, write_groups
from tidelog.numeric.contributions import Contributions
from tidelog.numeric.group_parts import can_take_parts, replace_groups, select_groups
from tidelog.numeric.number_kernels import BOUND
from tidelog.numeric.numbers import Numbers
from tidelog.numeric.point_kernels import add_pieces, sweep_points
from tidelog.numeric.refinement import refine_left, refine_lefts, refine_right, refine_rights
from tidelog.numeric.rows import Int32s, Int64s, Rows
from tidelog.numeric.sorted_runs import END
from tidelog.numeric.window_kernels import advance_windows, find_next_change
from tidelog.timeline.grid import NEG_INF, POS_INF

FUNCTIONS = {
    AggregateFunction.COUNT: cells.COUNT,
    AggregateFunction.SUM: cells.SUM,
    AggregateFunction.AVG: cells.AVG,
    AggregateFunction.MIN: cells.MIN,
    AggregateFunction.MAX: cells.MAX,
    AggregateFunction.LAST: cells.LAST,
    AggregateFunction.FIRST: cells.FIRST,
    AggregateFunction.START: cells.START,
    "some": cells.SOME,
}
_NO_ORDER = np.empty(0, np.int64)
#: Room for results beyond one per group, and two per new row; where it is not enough, they are collected in parts.
_MORE_RESULTS = 64


@dataclass(frozen=True, slots=True)
class AggregationPlan:
    """One aggregate: its function, its columns and its range.

    The rows have `arity` columns, of which the first `group` are the group; `values` are the columns with the value or,
    for a count of distinct values, the values. A result is the group and the value. For `some` (the group has a row),
    and with `thresholds` (comparisons that must all hold for the value), it is the group alone.

    With a `range`, a pair of grid distances into the past, rows count while their start is in the window; without,
    while they hold. A start in a gap of the dense grid, an open start at s, is in the window for (s+a, s+b], where a
    and b are the ends of the range, whatever its brackets. `denominator` is that of the grid, for `start`.
    """

    function: AggregateFunction | Literal["some"]
    arity: int
    group: int
    values: tuple[int, ...] = ()
    distinct: bool = False
    range: tuple[int, int] | None = None
    dense: bool = True
    denominator: int = 1
    thresholds: tuple[tuple[str, Value], ...] = ()


class Aggregator:
    """The state of one aggregate, which moves forward in time.

    `skipped` counts the rows that a sum or an average has left out because their value is not a number; `until` is the
    last position that has been dealt with.
    """

    def __init__(self, plan: AggregationPlan, numbers: Numbers) -> None:
        self.plan = plan
        self.numbers = numbers
        self.until = NEG_INF - 1
        self._code = FUNCTIONS[plan.function]
        self._numeric = self._code in (cells.SUM, cells.AVG)
        self._constant = cells.MIN <= self._code <= cells.FIRST
        self._held = Contributions(self._encode(), plan.arity, plan.group, plan.values)
        self._later = Rows.empty(plan.arity)
        self._set_thresholds()

    @property
    def skipped(self) -> int:
        return int(self._held.state.counters[cells.SKIPPED])

    def advance(self, rows: Rows, until: int) -> Rows:
        """Take new pieces of rows, move to `until`, and return the results after the last position up to there.

        The pieces of a row are disjoint, begin after the last position, and come in any order; all that begin up to
        `until` have come by now. Pieces of a row that touch are one interval. Results are maximal within their range.
        """
        pieces = self._take(rows, until)
        self._held.make_room(len(pieces.lo))
        parts = self._advance_points(pieces, until) if self.plan.range is None else self._advance_windows(pieces, until)
        self.until = until
        self._held.forget_groups()
        return Rows.concatenate(parts, self.plan.group + self._has_value)

    def next_change(self) -> int:
        """Return the next position at which the result may change although no row arrives; POS_INF if there is none."""
        state = self._held.state
        if self.plan.range is not None:
            position = int(find_next_change(state))
        else:
            firsts = state.waiting[state.runs[: state.counters[cells.RUNS], 0], END]
            position = int(firsts.min(initial=POS_INF)) + 1
        return min(position, int(self._later.lo.min(initial=POS_INF)), POS_INF)

    def count_held(self) -> int:
        """Return how many rows the aggregator keeps or, where it keeps none of them, how many groups."""
        return len(self._later) + self._held.count()

    def state(self, *, tidy: bool = True) -> dict[str, NDArray[Any]]:
        """Return everything that the aggregator keeps, as arrays from which `restore` resumes.

        What is not needed any more is dropped before, unless `tidy` is false.
        """
        plan = self._held.state.plan
        return {
            **self._held.save(self.until, tidy),
            "position": np.array([self.until, self.plan.denominator, plan[cells.NEAR], plan[cells.FAR]]),
            "later_args": self._later.args,
            "later_lo": self._later.lo,
            "later_hi": self._later.hi,
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Resume from the state of an aggregator with the same plan, possibly on another grid."""
        self.until, denominator, near, far = (int(number) for number in state["position"])
        self.plan = replace(self.plan, denominator=denominator, range=None if self.plan.range is None else (near, far))
        self._held.load(state, self._encode())
        self._later = Rows(state["later_args"], state["later_lo"], state["later_hi"])
        self._set_thresholds()

    @property
    def can_take_parts(self) -> bool:
        """Whether `select_part` and `replace_part` can be used."""
        return can_take_parts(self._held)

    @staticmethod
    def select_part(state: Mapping[str, NDArray[Any]], column: int, wanted: NDArray[np.bool_]) -> dict[str, Any]:
        """Return a saved state with the groups that have a wanted constant in a column."""
        part, later = select_groups(state, column, wanted), wanted[state["later_args"][column]]
        return part | {
            "later_args": state["later_args"][:, later],
            "later_lo": state["later_lo"][later],
            "later_hi": state["later_hi"][later],
        }

    def replace_part(self, part: Aggregator, column: int, wanted: NDArray[np.bool_]) -> None:
        """Replace the groups that have a wanted constant in a column by those of another aggregator of the same plan.

        Both are at the same position.
        """
        assert part.until == self.until, "parts are replaced at the same position"
        scales = [int(one._held.state.counters[cells.SCALE]) for one in (self, part)]
        if scales[0] != scales[1]:
            self._rescale(scales[1])
            part._rescale(scales[0])
        replace_groups(self._held, part._held, column, wanted)
        mine, other = self._later, part._later
        kept = [mine.where(~wanted[mine.args[column]]), other.where(wanted[other.args[column]])]
        self._later = Rows.concatenate(kept, self.plan.arity)

    def renumber(self, ids: Int32s) -> None:
        """Give constants new numbers, after `numbers` has changed to another dictionary."""
        self._held.renumber(ids, self.until, self._constant)
        self._later = Rows(ids[self._later.args], self._later.lo, self._later.hi)
        self._set_thresholds()

    def mark_constants(self, used: NDArray[np.bool_]) -> None:
        """Mark the constants that the aggregator refers to."""
        self._held.mark_constants(used, self.until, self._constant)
        used[self._later.args] = True

    def refine(self, factor: int) -> None:
        """Change to a grid that is `factor` times as fine."""
        if not self.plan.dense or factor == 1:
            return
        plan = self.plan
        if plan.range is not None:
            near, far = plan.range
            plan = replace(plan, range=(refine_left(near, factor), refine_right(far, factor)))
        self.plan = replace(plan, denominator=plan.denominator * factor)
        self.until = refine_right(self.until, factor)
        self._held.refine(factor, self.until, self._encode())
        later = self._later
        self._later = Rows(later.args, refine_lefts(later.lo, factor), refine_rights(later.hi, factor))
        self._set_thresholds()

    # Steps

    @property
    def _has_value(self) -> bool:
        return self._code != cells.SOME and not self.plan.thresholds

    def _encode(self) -> Int64s:
        """Write the plan as numbers."""
        plan = self.plan
        near, far = plan.range if plan.range is not None else (0, POS_INF)
        code = np.zeros(cells.PLAN_SIZE, np.int64)
        code[cells.FUNCTION], code[cells.DENSE] = FUNCTIONS[plan.function], plan.dense
        code[cells.DISTINCT] = plan.distinct and self._code in (cells.COUNT, cells.SUM, cells.AVG)
        code[cells.WINDOW], code[cells.BOUNDED] = plan.range is not None, far != POS_INF
        code[cells.NEAR], code[cells.FAR] = near, far
        code[cells.VALUE] = plan.values[0] if self._numeric or self._constant else -1
        return code

    def _set_thresholds(self) -> None:
        """Write the comparisons as numbers, for the current common denominator and dictionary."""
        rows = []
        for op, value in self.plan.thresholds:
            code = cells.OPERATORS.index(op)
            if self._constant:
                rows.append((code, self.numbers.symbols.intern(value), 0))
            elif isinstance(value, str):  # every number is before every name
                rows.append((code, BOUND, 1))
            else:
                rows.append((code, *self._scale_threshold(value)))
        table = np.array(rows, np.int64).reshape(-1, 3)
        self._held.state = self._held.state._replace(thresholds=table)

    def _scale_threshold(self, value: Fraction) -> tuple[int, int]:
        """Return a number on the scale of results, as a numerator and a denominator."""
        if self._code == cells.START:
            value *= self.plan.denominator
        elif self._numeric:
            value *= int(self._held.state.counters[cells.SCALE])
        if self._code == cells.AVG:
            if abs(value.numerator) >= BOUND or value.denominator >= BOUND:
                raise _sum_overflow(f"an average that is compared with {value}")
            return value.numerator, value.denominator
        # Results are integers here, which a number between two integers divides wherever it is.
        if abs(value) >= BOUND:
            return (BOUND, 1) if value > 0 else (-BOUND, 1)
        return (int(value), 1) if value.denominator == 1 else (2 * floor(value) + 1, 2)

    def _take(self, rows: Rows, until: int) -> Pieces:
        """Return the pieces that begin up to `until`, in the order in which they begin, and keep the others."""
        assert until >= self.until, "time moves forward"
        if len(self._later):
            rows = Rows.concatenate([self._later, rows], self.plan.arity)
            self._later = Rows.empty(self.plan.arity)
        order = _sort(rows.lo)
        if len(rows):
            first, last = (order[0], order[-1]) if len(order) else (0, -1)
            assert rows.lo[first] > self.until, "new pieces begin after the position that was reached"
            if rows.lo[last] > until:
                begun = rows.lo <= until
                self._later, rows = rows.where(~begun), rows.where(begun)
                order = _sort(rows.lo)
        return Pieces(_plain(rows.args), _plain(rows.lo), _plain(rows.hi), order)

    def _advance_windows(self, pieces: Pieces, until: int) -> list[Rows]:
        """Take pieces and move to `until`; return the results in one or more parts."""
        held, constants, at = self._held, self.numbers.constants(), 0
        parts: list[Rows] = []
        while True:
            output = self._make_output(len(pieces.lo))
            status, at, bottom, count = advance_windows(held.state, constants, pieces, at, until, output)
            self._collect(output, count, parts)
            if status == cells.DONE:
                return parts
            self._prepare(status, bottom)

    def _advance_points(self, pieces: Pieces, until: int) -> list[Rows]:
        """Do what `_advance_windows` does, at a point in time."""
        held, constants, at = self._held, self.numbers.constants(), 0
        places = np.empty(len(pieces.lo), np.int64)
        while True:
            status, at, bottom = add_pieces(held.state, constants, pieces, at, places)
            if status == cells.DONE:
                break
            self._prepare(status, bottom)
        begins = pieces.lo[pieces.order] if len(pieces.order) else pieces.lo
        ends = held.state.times[places]
        by_end = _sort(ends)
        ended, ends = (places[by_end], ends[by_end]) if len(by_end) else (places, ends)
        due = int(ends.searchsorted(until))
        parts: list[Rows] = []
        held.state.counters[cells.NEXT_ADD] = held.state.counters[cells.NEXT_END] = 0
        while True:
            output = self._make_output(len(places))
            count = sweep_points(held.state, constants, begins, places, ended[:due], until, output)
            self._collect(output, count, parts)
            if held.state.counters[cells.STATUS] == cells.DONE:
                break
            self._prepare(held.state.counters[cells.STATUS], 0)
        held.push_ends(ended, due)
        return parts

    def _prepare(self, status: int, bottom: int) -> None:
        """Do what a kernel needs before it can go on; raise an error if it cannot."""
        if status == cells.OVERFLOW:
            raise _sum_overflow("a sum, or a value on the common denominator of all values,")
        if status == cells.RESCALE:
            self._rescale(int(bottom))
        elif status != cells.FULL:
            self._held.grow_table(status)

    def _rescale(self, bottom: int) -> None:
        """Change the common denominator, so that a value with this one fits."""
        scale = int(self._held.state.counters[cells.SCALE])
        common = lcm(scale, bottom)
        if common >= BOUND or not self._held.rescale(common // scale):
            raise _sum_overflow(f"a sum on the common denominator {common}")
        self._held.state.counters[cells.SCALE] = common
        self._set_thresholds()

    def _make_output(self, added: int) -> Output:
        """Make room for the results of a move with this many new pieces."""
        size = 2 * added + int(self._held.state.counters[cells.GROUPS]) + _MORE_RESULTS
        return Output(np.empty(size, np.int32), *[np.empty(size, np.int64) for _ in range(4)])

    def _collect(self, output: Output, count: int, parts: list[Rows]) -> None:
        """Append results as rows to `parts`."""
        if count == 0:
            return
        width = self.plan.group
        args = np.empty((width + self._has_value, count), np.int32)
        write_groups(self._held.state.groups.keys, output.groups, count, args)
        tops = output.tops[:count]
        if self._has_value:
            if self._constant:
                args[width] = tops
            elif self._code == cells.AVG:
                scale, bottoms = int(self._held.state.counters[cells.SCALE]), output.bottoms[:count]
                if int(bottoms.max()) * scale >= BOUND:
                    raise _sum_overflow("the denominator of an average")
                self.numbers.intern_into(args[width], tops, bottoms * scale)
            else:
                scale = self.plan.denominator if self._code == cells.START else 1
                scale = int(self._held.state.counters[cells.SCALE]) if self._code == cells.SUM else scale
                self.numbers.intern_into(args[width], tops, scale)
        lo, hi = output.lo[:count], output.hi[:count]
        parts.append(Rows(args, lo, hi) if 2 * count > len(output.lo) else Rows(args, lo.copy(), hi.copy()))


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the one layout that the kernels are compiled for."""
    return array if array.flags.c_contiguous and array.flags.writeable else array.copy()


def _sort(values: Int64s) -> Int64s:
    """Return the order that sorts values, or no order if they are sorted."""
    if len(values) < 2 or bool((values[1:] >= values[:-1]).all()):
        return _NO_ORDER
    return np.argsort(values)


def _sum_overflow(what: str) -> TidelogError:
    """Build the error for a sum, or a part of it, that does not fit."""
    return TidelogError(Diagnostic("TL312", f"{what} does not fit into 63 bits"))
