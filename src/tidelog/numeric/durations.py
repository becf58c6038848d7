"""Durations: where a group has held for at least (at most, exactly, ...) some time within a window.

`DurationAggregator` has the protocol of `aggregation.Aggregator`. What holds is first projected on the group, since
local variables mean "for some value"; then `duration_kernels` follows the duration along its linear pieces.

On the rational timeline a duration crosses the limit between two ticks unless the limit is a whole number of ticks: the
denominator of the grid must be a multiple of that of every limit, in units of time. `find_denominator` says which one
is needed, and `advance` raises `FinerGridNeeded`, with nothing changed, if the grid is too coarse: refine it, and call
again. On the integer timeline a limit may be any number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidelog.language.syntax import Value
from tidelog.numeric import duration_kernels as kernels
from tidelog.numeric.aggregate_state import write_groups
from tidelog.numeric.aggregation import AggregationPlan, Aggregator
from tidelog.numeric.duration_kernels import DurationState, Intervals, find_groups, find_next_event, sweep_durations
from tidelog.numeric.hash_tables import grow_rows, make_table, rebuild_table
from tidelog.numeric.numbers import Numbers
from tidelog.numeric.refinement import FinerGridNeeded, refine_left, refine_lefts, refine_right
from tidelog.numeric.rows import Int32s, Int64s, Rows
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, Grid

_OPERATORS = ("<", "<=", "=", "!=", ">=", ">")
#: Tables start with room for this many entries.
_FEW = 64
#: Room for results beyond one per group, and four per new interval; where it is not enough, they come in parts.
_MORE_RESULTS = 64
#: Groups are forgotten once there are this many more than twice those that were in use.
_MANY_GROUPS = 1 << 10


@dataclass(frozen=True, slots=True)
class DurationPlan:
    """A comparison `duration[range] op limit`.

    The first `group` columns of the rows are the group; others do not matter. The range is a pair of finite grid
    distances into the past. The limit is in units of time; without one, it is the last column of the group. Results are
    groups, at times at which they hold anywhere in the window and the comparison is true; without an operator, at all
    times at which they hold anywhere in the window.
    """

    group: int
    range: tuple[int, int]
    op: str | None
    limit: Value | None
    grid: Grid


class DurationAggregator:
    """The state of one comparison of durations, which moves forward in time."""

    skipped = 0

    def __init__(self, plan: DurationPlan, numbers: Numbers) -> None:
        self.plan = plan
        self.numbers = numbers
        self.until = NEG_INF - 1
        self._cover = Aggregator(AggregationPlan("some", plan.group, plan.group, dense=plan.grid.dense), numbers)
        self._limit = _MANY_GROUPS
        self._state = DurationState(
            self._encode(),
            np.arange(plan.group),
            np.zeros(kernels.COUNTERS, np.int64),
            make_table(plan.group, _FEW),
            np.empty((_FEW, kernels.CELLS), np.int64),
            np.empty(_FEW, np.int64),
            np.empty(_FEW, np.int32),
        )

    def find_denominator(self, rows: Rows) -> int:
        """Return the denominator that the grid must have for these rows: the present one or a multiple of it."""
        plan, denominator = self.plan, self.plan.grid.denominator
        if not plan.grid.dense or plan.op is None or isinstance(plan.limit, str):
            return denominator
        if plan.limit is not None:
            return lcm(denominator, plan.limit.denominator)
        bottoms = np.unique(self.numbers.denominators(rows.args[plan.group - 1]))
        return lcm(denominator, *(int(bottom) for bottom in bottoms if bottom > 0))

    def advance(self, rows: Rows, until: int) -> Rows:
        """Take new pieces of rows, move to `until`, and return the results after the last position up to there.

        See `Aggregator.advance`.
        """
        if (needed := self.find_denominator(rows)) != self.plan.grid.denominator:
            raise FinerGridNeeded(needed)
        cover = self._cover.advance(Rows(rows.args[: self.plan.group], rows.lo, rows.hi), until)
        self._toggle(cover, self._find_groups(cover), until)
        parts = []
        while True:
            size = 4 * len(cover) + int(self._state.counters[kernels.GROUPS]) + _MORE_RESULTS
            output = Intervals(np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.int64))
            count, more = sweep_durations(self._state, until, output)
            args = np.empty((self.plan.group, count), np.int32)
            write_groups(self._state.groups.keys, output.groups, count, args)
            parts.append(Rows(args, output.lo[:count].copy(), output.hi[:count].copy()))
            if not more:
                break
        self.until = until
        self._forget_groups()
        return Rows.concatenate(parts, self.plan.group)

    def next_change(self) -> int:
        """Return the next position at which the result may change although no row arrives; POS_INF if there is none."""
        state = self._state
        groups = state.cells[: state.counters[kernels.GROUPS]]
        position = min(int(find_next_event(state)), self._cover.next_change())
        bent = groups[groups[:, kernels.SLOPE] != 0]
        if len(bent) and self.plan.op is not None:
            # The duration comes to the limit, which it may leave again at the next position.
            slope = bent[:, kernels.SLOPE]
            ticks = bent[:, kernels.TICK] + (bent[:, kernels.LIMIT] - bent[:, kernels.LEVEL]) // (2 * slope)
            at = 2 * ticks if self.plan.grid.dense else ticks - 1
            near = np.concatenate([at - 1, at, at + 1, at + 2])
            position = min(position, int(near[near > self.until].min(initial=POS_INF)))
        return min(position, POS_INF)

    def count_held(self) -> int:
        """Return how many ends of intervals are kept, and how many rows hold now."""
        live = self._live()
        return int(live.stop - live.start) + self._cover.count_held()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that is kept, as arrays from which `restore` resumes."""
        self._forget_groups(force=True)
        state, counters = self._state, self._state.counters
        plan, live = self.plan, self._live()
        return {
            **{f"cover_{name}": array for name, array in self._cover.state().items()},
            "position": np.array([self.until, plan.grid.denominator, *plan.range]),
            "counters": counters.copy(),
            "groups": state.groups.keys[: counters[kernels.GROUPS]].copy(),
            "cells": state.cells[: counters[kernels.GROUPS]].copy(),
            "positions": state.positions[live].copy(),
            "toggles": state.toggles[live].copy(),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Resume from the state of an object with the same plan, possibly on another grid."""
        self._cover.restore(
            {name.removeprefix("cover_"): array for name, array in state.items() if name[:6] == "cover_"}
        )
        self.until, denominator, near, far = (int(number) for number in state["position"])
        self.plan = replace(self.plan, grid=Grid(self.plan.grid.dense, denominator), range=(near, far))
        counters = state["counters"].copy()
        counters[kernels.BASE] = counters[kernels.TAIL] - len(state["positions"])
        groups = rebuild_table(state["groups"], _FEW)
        room = len(state["positions"]) + _FEW
        self._state = self._state._replace(
            plan=self._encode(),
            counters=counters,
            groups=groups,
            cells=grow_rows(state["cells"], len(groups.keys)),
            positions=grow_rows(state["positions"], room),
            toggles=grow_rows(state["toggles"], room),
        )

    def renumber(self, ids: Int32s) -> None:
        """Give constants new numbers, after `numbers` has changed to another dictionary."""
        self._cover.renumber(ids)
        state = self._state
        groups = rebuild_table(ids[state.groups.keys[: state.counters[kernels.GROUPS]]], len(state.cells))
        self._state = state._replace(groups=groups)

    def mark_constants(self, used: NDArray[np.bool_]) -> None:
        """Mark the constants that are referred to."""
        self._cover.mark_constants(used)
        self._forget_groups(force=True)
        used[self._state.groups.keys[: self._state.counters[kernels.GROUPS]]] = True

    def refine(self, factor: int) -> None:
        """Change to a grid that is `factor` times as fine."""
        if not self.plan.grid.dense or factor == 1:
            return
        self._cover.refine(factor)
        near, far = self.plan.range
        self.plan = replace(
            self.plan,
            range=(refine_left(near, factor), refine_right(far, factor)),
            grid=Grid(True, self.plan.grid.denominator * factor),
        )
        self.until = refine_right(self.until, factor)
        state, live = self._state, self._live()
        state.positions[live] = refine_lefts(state.positions[live], factor)
        groups = state.cells[: state.counters[kernels.GROUPS]]
        groups[:, [kernels.LEVEL, kernels.TICK]] *= factor
        limits = groups[:, kernels.LIMIT]
        limits[np.abs(limits) < POS_INF] *= factor
        groups[:, kernels.AT] = self.until + 1
        self._state = state._replace(plan=self._encode())

    # Steps

    def _encode(self) -> Int64s:
        """Write the plan as numbers."""
        plan = self.plan
        near, far = plan.range
        assert max(abs(near), abs(far)) < LIMIT, "the range of a duration is finite"
        code = np.zeros(kernels.PLAN_SIZE, np.int64)
        code[kernels.DENSE], code[kernels.NEAR], code[kernels.FAR] = plan.grid.dense, near, far
        code[kernels.NEAR_TICKS] = near >> 1 if plan.grid.dense else near
        code[kernels.FAR_TICKS] = (far + 1) >> 1 if plan.grid.dense else far + 1
        code[kernels.OPERATOR] = kernels.SOME if plan.op is None else _OPERATORS.index(plan.op)
        return code

    def _find_groups(self, cover: Rows) -> Int64s:
        """Return the group of each row, and set the limits of new groups."""
        numbers = np.empty(len(cover), np.int64)
        args = cover.args
        known = int(self._state.counters[kernels.GROUPS])
        at = 0
        while (at := int(find_groups(self._state, args, at, numbers))) < len(numbers):
            state = self._state
            size = 2 * len(state.cells)
            groups = rebuild_table(state.groups.keys[: state.counters[kernels.GROUPS]], size)
            self._state = state._replace(groups=groups, cells=grow_rows(state.cells, size))
        state = self._state
        count = int(state.counters[kernels.GROUPS])
        if self.plan.op is not None and count > known:
            state.cells[known:count, kernels.LIMIT] = self._find_limits(state.groups.keys[known:count])
        return numbers

    def _find_limits(self, groups: Int32s) -> Int64s | int:
        """Return the limits of groups, in half ticks."""
        if self.plan.limit is not None:
            return self._scale_limit(self.plan.limit)
        distinct, places = np.unique(groups[:, self.plan.group - 1], return_inverse=True)
        limits = [self._scale_limit(self.numbers.symbols.value(int(id))) for id in distinct]
        return np.array(limits, np.int64)[places]

    def _scale_limit(self, limit: Value) -> int:
        """Return a limit in half ticks; on the integers, one between two ticks becomes the middle between them."""
        if isinstance(limit, str):  # every number is before every name
            return POS_INF
        ticks = limit * self.plan.grid.denominator
        if abs(ticks) >= LIMIT:
            return POS_INF if ticks > 0 else NEG_INF
        if ticks.denominator == 1:
            return 2 * int(ticks)
        assert not self.plan.grid.dense, "the limit is a whole number of ticks"
        return 2 * floor(ticks) + 1

    def _toggle(self, cover: Rows, groups: Int64s, until: int) -> None:
        """Append where groups begin and cease to hold. `cover` has their intervals up to `until`."""
        state = self._state
        holds = state.cells[: state.counters[kernels.GROUPS], kernels.HOLDS]
        continued = (cover.lo == self.until + 1) & (holds[groups] == 1)
        holds[groups[continued]] = 0
        ceased = np.flatnonzero(holds)
        ended = cover.hi < until
        holds[:] = 0
        holds[groups[~ended]] = 1
        positions = [np.full(len(ceased), self.until + 1), cover.lo[~continued], cover.hi[ended] + 1]
        toggles = [2 * ceased, 2 * groups[~continued] + 1, 2 * groups[ended]]
        all_positions, all_toggles = np.concatenate(positions), np.concatenate(toggles)
        order = np.argsort(all_positions, kind="stable")
        self._make_room(len(order))
        tail, base = int(self._state.counters[kernels.TAIL]), int(self._state.counters[kernels.BASE])
        self._state.positions[tail - base : tail - base + len(order)] = all_positions[order]
        self._state.toggles[tail - base : tail - base + len(order)] = all_toggles[order]
        self._state.counters[kernels.TAIL] += len(order)

    def _live(self) -> slice:
        """Return where the toggles are that are still needed."""
        counters = self._state.counters
        first = int(counters[kernels.GROWS : kernels.CEASES + 1].min())
        return slice(first - int(counters[kernels.BASE]), int(counters[kernels.TAIL] - counters[kernels.BASE]))

    def _make_room(self, count: int) -> None:
        """Make room for this many more toggles."""
        state, live = self._state, self._live()
        if live.stop + count <= len(state.positions):
            return
        size = max(len(state.positions), 2 * (live.stop - live.start + count))
        self._state = state._replace(
            positions=grow_rows(state.positions[live], size), toggles=grow_rows(state.toggles[live], size)
        )
        state.counters[kernels.BASE] += live.start

    def _forget_groups(self, force: bool = False) -> None:
        """Drop groups that have not held within the window, once there are many."""
        state = self._state
        count = int(state.counters[kernels.GROUPS])
        if count < self._limit and not force:
            return
        groups, live = state.cells[:count], self._live()
        used = (groups[:, kernels.HOLDS] != 0) | (groups[:, kernels.PRESENT] != 0)
        used[state.toggles[live] >> 1] = True
        numbers = np.append(np.cumsum(used) - 1, 0)
        toggles = state.toggles[live]
        toggles[:] = 2 * numbers[toggles >> 1] + (toggles & 1)
        table = rebuild_table(state.groups.keys[:count][used], _FEW)
        kept = groups[used]
        state.counters[kernels.GROUPS] = len(kept)
        self._state = state._replace(groups=table, cells=grow_rows(kept, len(table.keys)))
        self._limit = 2 * len(kept) + _MANY_GROUPS
