"""The room of an aggregator: its tables and contributions, how they grow, shrink, are saved and change their units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidelog.numeric import aggregate_state as cells
from tidelog.numeric.aggregate_state import State
from tidelog.numeric.hash_tables import grow_rows, make_table, prune, rebuild_table
from tidelog.numeric.number_kernels import BOUND
from tidelog.numeric.pairing_heaps import LINKS
from tidelog.numeric.refinement import refine_lefts, refine_rights
from tidelog.numeric.rows import Int32s, Int64s
from tidelog.numeric.sorted_runs import END, MAX_RUNS, push_sorted

#: Tables start with room for this many entries.
_FEW = 64
#: Groups are forgotten once there are this many more than twice those that were in use.
_MANY_GROUPS = 1 << 10


class Contributions:
    """The arrays of an aggregator."""

    def __init__(self, plan: Int64s, arity: int, group: int, values: tuple[int, ...]) -> None:
        function, windows = plan[cells.FUNCTION], bool(plan[cells.WINDOW])
        constant = cells.MIN <= function <= cells.FIRST
        linked = constant and function != cells.LAST and bool(plan[cells.BOUNDED] or not windows)
        numeric = function in (cells.SUM, cells.AVG)
        counters = np.zeros(cells.COUNTERS, np.int64)
        counters[cells.SCALE], counters[cells.FREE] = 1, -1
        key_columns = np.array([*range(group), *values], np.int64)
        self.state = State(
            plan,
            np.empty((0, 3), np.int64),
            np.arange(group),
            key_columns,
            np.arange(arity),
            counters,
            make_table(group, _FEW),
            np.empty((_FEW, cells.CELLS), np.int64),
            make_table(len(key_columns), _FEW),
            np.empty((_FEW, cells.KEY_CELLS), np.int64),
            make_table(arity, _FEW),
            np.empty(_FEW, np.int64),
            np.empty(_FEW, np.int64),
            np.empty(_FEW, np.int32),
            np.empty(_FEW if numeric or constant else 0, np.int32),
            np.empty(_FEW if numeric else 0, np.int64),
            np.empty((_FEW if linked else 0, LINKS), np.int64 if windows else np.int32),
            np.empty((0 if windows else 2 * _FEW, 2), np.int64),
            np.zeros((MAX_RUNS, 2), np.int64),
        )
        self._windows = windows
        self._limit = _MANY_GROUPS
        self._scratch = np.empty((0, 2), np.int64)

    def make_room(self, count: int) -> None:
        """Make room for this many more contributions."""
        state, counters = self.state, self.state.counters
        head, tail, base = (int(counters[place]) for place in (cells.HEAD, cells.TAIL, cells.BASE))
        capacity = len(state.times)
        if tail - base + count <= capacity:
            return
        if self._windows and 2 * (tail - head + count) <= capacity:
            for array in (state.times, state.members, state.values, state.amounts, state.links):
                if len(array):
                    array[: tail - head] = array[head - base : tail - base]
        else:
            first = head - base if self._windows else 0
            size = max(2 * capacity, 2 * (tail - base - first + count))
            grown = {
                name: grow_rows(array[first:], size) if len(array) else array
                for name, array in zip(_CONTRIBUTED, self._contribution_arrays(), strict=True)
            }
            self.state = _replace(state, grown)._replace(
                waiting=state.waiting if self._windows else grow_rows(state.waiting, 2 * size),
            )
        if self._windows:
            counters[cells.BASE] = head

    def push_ends(self, places: Int64s, first: int) -> None:
        """Let contributions wait for their ends, by which they are sorted, from the one at `first` on."""
        if first == len(places):
            return
        state, counters = self.state, self.state.counters
        if len(self._scratch) < len(state.times):
            self._scratch = np.empty((len(state.times), 2), np.int64)
        counters[cells.RUNS] = push_sorted(
            state.waiting, state.runs, counters[cells.RUNS], state.times, places, first, self._scratch
        )

    def _contribution_arrays(self) -> list[NDArray[Any]]:
        """Return the arrays with one entry per contribution."""
        return [getattr(self.state, name) for name in _CONTRIBUTED]

    def grow_table(self, status: int) -> None:
        """Enlarge the table that is full."""
        state, counters = self.state, self.state.counters
        if status == cells.ROOM_GROUPS:
            size = 2 * len(state.cells)
            groups = rebuild_table(state.groups.keys[: counters[cells.GROUPS]], size)
            self.state = state._replace(groups=groups, cells=grow_rows(state.cells, size))
        elif status == cells.ROOM_KEYS:
            size = 2 * len(state.key_cells)
            keys = rebuild_table(state.keys.keys[: counters[cells.KEYS]], size)
            self.state = state._replace(keys=keys, key_cells=grow_rows(state.key_cells, size))
        else:
            size = 2 * len(state.ends)
            running = rebuild_table(state.running.keys[: counters[cells.RUNNING]], size)
            self.state = state._replace(running=running, ends=grow_rows(state.ends, size))

    def rescale(self, factor: int) -> bool:
        """Multiply all sums; return False if one of them would become too large."""
        state = self.state
        groups = state.cells[: state.counters[cells.GROUPS]]
        sums = [state.amounts[self._live()], groups[:, cells.TOTAL]]
        if not len(state.thresholds):
            sums.append(groups[:, cells.TOP])
        if any(int(np.abs(part).max(initial=0)) * factor >= BOUND for part in sums):
            return False
        for part in sums:
            part *= factor
        return True

    def _live(self) -> slice:
        """Return where the contributions are that are still needed."""
        counters = self.state.counters
        base, tail = int(counters[cells.BASE]), int(counters[cells.TAIL])
        return slice(int(counters[cells.HEAD]) - base if self._windows else 0, tail - base)

    def count(self) -> int:
        """Return how many rows are held or, where there are fewer, how many groups."""
        state, live = self.state, self._live()
        groups = state.cells[: state.counters[cells.GROUPS]]
        rows = live.stop - live.start if self._windows else int(groups[:, cells.ROWS].sum())
        return max(rows, len(groups))

    def _waiting_end(self) -> int:
        """Return the number of entries of `waiting` up to the last one in use."""
        runs = int(self.state.counters[cells.RUNS])
        return int(self.state.runs[runs - 1, 1]) if runs else 0

    def forget_groups(self, force: bool = False) -> None:
        """Drop groups and distinct values without rows, once there are many; with `force`, tables keep their room."""
        state, counters = self.state, self.state.counters
        n_groups, n_keys = int(counters[cells.GROUPS]), int(counters[cells.KEYS])
        if max(n_groups, n_keys) < self._limit and not force:
            return
        live = self._live()
        members = state.members[live]
        waiting = state.members[int(counters[cells.MID] - counters[cells.BASE]) : live.stop]
        waiting = waiting if self._windows else members[:0]
        used = state.cells[:n_groups, cells.ROWS] > 0
        if state.plan[cells.DISTINCT]:
            used_keys = state.key_cells[:n_keys, cells.HOLDERS] > 0
            used_keys[waiting] = True
            used[state.key_cells[:n_keys, cells.OWNER][used_keys]] = True
            new_keys = _number(used_keys)
            new_groups = _number(used)
            key_cells = state.key_cells[:n_keys][used_keys]
            key_cells[:, cells.OWNER] = new_groups[key_cells[:, cells.OWNER]]
            members[:] = new_keys[members]
            counters[cells.KEYS] = len(key_cells)
            keys = rebuild_table(state.keys.keys[:n_keys][used_keys], len(state.key_cells) if force else _FEW)
            state = state._replace(keys=keys, key_cells=grow_rows(key_cells, len(keys.keys)))
        else:
            used[waiting] = True
            members[:] = _number(used)[members]
        groups = rebuild_table(state.groups.keys[:n_groups][used], len(state.cells) if force else _FEW)
        group_cells = state.cells[:n_groups][used]
        counters[cells.GROUPS] = len(group_cells)
        self.state = state._replace(groups=groups, cells=grow_rows(group_cells, len(groups.keys)))
        self._limit = 2 * max(len(group_cells), int(counters[cells.KEYS])) + _MANY_GROUPS

    def _tidy(self, until: int) -> None:
        """Drop everything that is not needed any more, so that what is left can be saved or renumbered."""
        state, counters = self.state, self.state.counters
        self.forget_groups(force=True)
        counters[cells.RUNNING] = prune(state.running, state.ends, counters[cells.RUNNING], until)

    def save(self, until: int, tidy: bool) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays that `load` needs; with `tidy`, without groups and rows that are not needed."""
        if tidy:
            self._tidy(until)
        state, counters, live = self.state, self.state.counters, self._live()
        return {
            "counters": counters.copy(),
            "groups": state.groups.keys[: counters[cells.GROUPS]].copy(),
            "cells": state.cells[: counters[cells.GROUPS]].copy(),
            "keys": state.keys.keys[: counters[cells.KEYS]].copy(),
            "key_cells": state.key_cells[: counters[cells.KEYS]].copy(),
            "running": state.running.keys[: counters[cells.RUNNING]].copy(),
            "ends": state.ends[: counters[cells.RUNNING]].copy(),
            "waiting": state.waiting[: self._waiting_end()].copy(),
            "runs": state.runs.copy(),
            **{name: array[live].copy() for name, array in zip(_CONTRIBUTED, self._contribution_arrays(), strict=True)},
        }

    def load(self, saved: Mapping[str, NDArray[Any]], plan: Int64s) -> None:
        """Take over saved arrays."""
        counters = saved["counters"].copy()
        if self._windows:
            counters[cells.BASE] = counters[cells.HEAD]
        groups, keys, running = (rebuild_table(saved[name], _FEW) for name in ("groups", "keys", "running"))
        held = max(_FEW, len(saved["times"]))
        contributed = {
            name: grow_rows(saved[name], held) if len(array) else array
            for name, array in zip(_CONTRIBUTED, self._contribution_arrays(), strict=True)
        }
        self.state = _replace(self.state, contributed)._replace(
            plan=plan,
            counters=counters,
            groups=groups,
            cells=grow_rows(saved["cells"], len(groups.keys)),
            keys=keys,
            key_cells=grow_rows(saved["key_cells"], len(keys.keys)),
            running=running,
            ends=grow_rows(saved["ends"], len(running.keys)),
            waiting=grow_rows(saved["waiting"], max(2 * held, len(saved["waiting"]))),
            runs=saved["runs"].copy(),
        )

    def renumber(self, ids: Int32s, until: int, constant: bool) -> None:
        """Give constants new numbers; `constant` says that values are constants."""
        self._tidy(until)
        state, counters = self.state, self.state.counters
        self.state = state._replace(
            groups=rebuild_table(ids[state.groups.keys[: counters[cells.GROUPS]]], len(state.cells)),
            keys=rebuild_table(ids[state.keys.keys[: counters[cells.KEYS]]], len(state.key_cells)),
            running=rebuild_table(ids[state.running.keys[: counters[cells.RUNNING]]], len(state.ends)),
        )
        for values in self._constants(constant):
            known = values >= 0
            values[known] = ids[values[known]]

    def mark_constants(self, used: NDArray[np.bool_], until: int, constant: bool) -> None:
        """Mark the constants that occur anywhere."""
        self._tidy(until)
        state, counters = self.state, self.state.counters
        used[state.groups.keys[: counters[cells.GROUPS]]] = True
        used[state.keys.keys[: counters[cells.KEYS]]] = True
        used[state.running.keys[: counters[cells.RUNNING]]] = True
        for values in self._constants(constant):
            used[values[values >= 0]] = True

    def _constants(self, constant: bool) -> list[NDArray[Any]]:
        """Return the arrays of values that are constants, or -1."""
        if not constant:
            return []
        state = self.state
        groups = state.cells[: state.counters[cells.GROUPS]]
        found = [state.values[self._live()]]
        if not len(state.links):
            found.append(groups[:, cells.TOTAL])
        if not len(state.thresholds):
            found.append(groups[:, cells.TOP])
        return found

    def refine(self, factor: int, until: int, plan: Int64s) -> None:
        """Change all positions to a grid that is `factor` times as fine."""
        state, counters, live = self.state, self.state.counters, self._live()
        if self._windows:
            state.times[live] = refine_lefts(state.times[live], factor)
        else:
            in_use = np.ones(live.stop, np.bool_)
            free = int(counters[cells.FREE])
            while free >= 0:
                in_use[free] = False
                free = int(state.times[free])
            ends = state.times[live]
            ends[in_use] = refine_rights(ends[in_use], factor)
            waiting = state.waiting[: self._waiting_end(), END]
            waiting[:] = refine_rights(waiting, factor)
        ends = state.ends[: counters[cells.RUNNING]]
        ends[:] = refine_rights(ends, factor)
        groups = state.cells[: counters[cells.GROUPS]]
        groups[:, cells.SINCE] = np.where(groups[:, cells.SINCE] == cells.NONE, cells.NONE, until + 1)
        function = plan[cells.FUNCTION]
        if function in (cells.START, cells.LAST, cells.FIRST) and not len(state.links):
            groups[:, cells.EXTRA] = refine_lefts(groups[:, cells.EXTRA], factor)
        if function == cells.START and not len(state.thresholds):
            groups[:, cells.TOP] *= factor
        self.state = state._replace(plan=plan)


#: The arrays with one entry per contribution.
_CONTRIBUTED = ("times", "members", "values", "amounts", "links")


def _replace(state: State, arrays: Mapping[str, Any]) -> State:
    """Return a state with other arrays."""
    return state._replace(**arrays)


def _number(used: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the new number of everything that is used; the last one is for places that are not in use."""
    return np.append(np.cumsum(used) - 1, 0)
