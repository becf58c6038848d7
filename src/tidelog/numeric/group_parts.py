"""Parts of an aggregator over a window: the groups of some keys, to compute them apart and to put them back.

A key is a constant in one column of the groups; `wanted` says of every constant whether it is one of the keys. Only
functions that keep running totals can be taken apart: count, sum, average and last, without `distinct`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidelog.jit import Array, Number, kernel
from tidelog.numeric import aggregate_state as cells
from tidelog.numeric.aggregate_state import (
    BASE,
    CELLS,
    DIRTY,
    EXTRA,
    FIRST,
    FUNCTION,
    GROUPS,
    HEAD,
    MID,
    MIN,
    NONE,
    RUNNING,
    SINCE,
    TAIL,
    TOTAL,
    State,
    find_group,
)
from tidelog.numeric.contributions import Contributions
from tidelog.numeric.hash_tables import add_tuple, find_tuple
from tidelog.timeline.grid import NEG_INF

Arrays = Mapping[str, NDArray[Any]]
Bools = NDArray[np.bool_]


def can_take_parts(held: Contributions) -> bool:
    """Return whether an aggregator can be taken apart by its groups."""
    plan = held.state.plan
    return bool(plan[cells.WINDOW]) and not plan[cells.DISTINCT] and not len(held.state.links)


def select_groups(saved: Arrays, column: int, wanted: Bools) -> dict[str, NDArray[Any]]:
    """Return the saved arrays of an aggregator with the groups of some keys only."""
    kept = wanted[saved["groups"][:, column]]
    numbers = np.append(np.cumsum(kept) - 1, 0)
    members = saved["members"]
    mine = kept[members] if len(kept) else np.zeros(len(members), np.bool_)
    counters = saved["counters"].copy()
    entered = int(mine[: int(counters[MID] - counters[HEAD])].sum())
    rows = wanted[saved["running"][:, column]]
    counters[HEAD], counters[MID], counters[TAIL], counters[BASE] = 0, entered, int(mine.sum()), 0
    counters[GROUPS], counters[RUNNING] = int(kept.sum()), int(rows.sum())
    part = dict(saved)
    for name in ("times", "members", "values", "amounts"):
        part[name] = saved[name][mine] if len(saved[name]) else saved[name]
    part["members"] = numbers[part["members"]].astype(members.dtype)
    part |= {"counters": counters, "groups": saved["groups"][kept], "cells": saved["cells"][kept]}
    part |= {"running": saved["running"][rows], "ends": saved["ends"][rows]}
    return part


def replace_groups(held: Contributions, part: Contributions, column: int, wanted: Bools) -> None:
    """Replace the groups of some keys by those of a part, which is at the same position."""
    other = part.state
    n_groups, n_running = int(other.counters[GROUPS]), int(other.counters[RUNNING])
    while int(held.state.counters[GROUPS]) + n_groups > len(held.state.cells):
        held.grow_table(cells.ROOM_GROUPS)
    while int(held.state.counters[RUNNING]) + n_running > len(held.state.ends):
        held.grow_table(cells.ROOM_RUNNING)
    state = held.state
    counters = state.counters
    _drop_groups(state, column, wanted)
    numbers = np.empty(n_groups + 1, np.int64)
    _copy_groups(state, other, np.ascontiguousarray(other.groups.keys[:n_groups].T), column, wanted, numbers)
    _copy_running(state, other, np.ascontiguousarray(other.running.keys[:n_running].T), column, wanted)
    room = max(
        len(state.times), int(counters[TAIL] - counters[HEAD]) + int(other.counters[TAIL] - other.counters[HEAD])
    )

    def make_room(array: NDArray[Any]) -> NDArray[Any]:
        return np.empty(room if len(array) else 0, array.dtype)

    merged = state._replace(
        times=make_room(state.times),
        members=make_room(state.members),
        values=make_room(state.values),
        amounts=make_room(state.amounts),
    )
    entered, count = _merge_contributions(state, other, column, wanted, numbers, merged)
    counters[HEAD], counters[MID], counters[TAIL], counters[BASE] = 0, entered, count, 0
    held.state = merged


@kernel
def _drop_groups(state: State, column: int, wanted: Array) -> None:
    """Let the groups of some keys be empty, and their rows hold nowhere."""
    for group in range(state.counters[GROUPS]):
        if wanted[state.groups.keys[group, column]]:
            for cell in range(CELLS):
                state.cells[group, cell] = 0
            if MIN <= state.plan[FUNCTION] <= FIRST:
                state.cells[group, TOTAL], state.cells[group, EXTRA] = -1, -1
            state.cells[group, DIRTY], state.cells[group, SINCE] = NONE, NONE
    for row in range(state.counters[RUNNING]):
        if wanted[state.running.keys[row, column]]:
            state.ends[row] = NEG_INF


@kernel
def _copy_groups(state: State, part: State, keys: Array, column: int, wanted: Array, numbers: Array) -> None:
    """Copy the groups of some keys from a part; `numbers` gets their numbers, or -1."""
    for group in range(part.counters[GROUPS]):
        numbers[group] = -1
        if wanted[keys[column, group]]:
            own = find_group(state, keys, group)
            numbers[group] = own
            for cell in range(CELLS):
                state.cells[own, cell] = part.cells[group, cell]


@kernel
def _copy_running(state: State, part: State, rows: Array, column: int, wanted: Array) -> None:
    """Copy the rows that hold at present from a part."""
    for row in range(part.counters[RUNNING]):
        if wanted[rows[column, row]]:
            slot = find_tuple(state.running, rows, row, state.row_columns)
            number = state.running.slots[slot]
            if number < 0:
                number = state.counters[RUNNING]
                state.counters[RUNNING] += 1
                add_tuple(state.running, slot, number, rows, row, state.row_columns)
            state.ends[number] = part.ends[row]


@kernel
def _merge_contributions(
    state: State, part: State, column: int, wanted: Array, numbers: Array, merged: State
) -> tuple[Number, Number]:
    """Merge the contributions of other groups with those of a part, by time.

    Return how many have entered the window, and how many there are.
    """
    base, other_base = state.counters[BASE], part.counters[BASE]
    own, other = state.counters[HEAD], part.counters[HEAD]
    entered, count = 0, 0
    while own < state.counters[TAIL] or other < part.counters[TAIL]:
        place, other_place = own - base, other - other_base
        if own < state.counters[TAIL] and wanted[state.groups.keys[state.members[place], column]]:
            own += 1
            continue
        if other < part.counters[TAIL] and numbers[part.members[other_place]] < 0:
            other += 1
            continue
        if other == part.counters[TAIL] or (
            own < state.counters[TAIL] and state.times[place] <= part.times[other_place]
        ):
            _copy_contribution(state, place, state.members[place], merged, count)
            entered += own < state.counters[MID]
            own += 1
        else:
            _copy_contribution(part, other_place, numbers[part.members[other_place]], merged, count)
            entered += other < part.counters[MID]
            other += 1
        count += 1
    return entered, count


@kernel
def _copy_contribution(state: State, place: int, member: int, merged: State, count: int) -> None:
    """Copy a contribution to the next place."""
    merged.times[count], merged.members[count] = state.times[place], member
    if len(state.values) > 0:
        merged.values[count] = state.values[place]
    if len(state.amounts) > 0:
        merged.amounts[count] = state.amounts[place]
