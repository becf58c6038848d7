"""Aggregates at a point in time: rows count where they hold.

Pieces begin in the order of time and end in any order. Those that end within the call are sorted by their ends; the
others wait in a queue (`sorted_runs`). At each position rows enter before others leave, so that a group or a distinct
value which one row hands over to the next one never becomes empty in between.
"""

from __future__ import annotations

from tidelog.jit import Array, Number, inlined_kernel, int64, kernel
from tidelog.numeric.aggregate_state import (
    AVG,
    DIRTY,
    DISTINCT,
    DONE,
    EXTRA,
    FREE,
    FULL,
    FUNCTION,
    HOLDERS,
    MAX,
    MIN,
    NEXT_ADD,
    NEXT_END,
    NONE,
    OVERFLOW,
    OWNER,
    ROOM_RUNNING,
    ROWS,
    RUNS,
    SKIPPED,
    START,
    STATUS,
    SUM,
    TAIL,
    TOTAL,
    Output,
    Pieces,
    State,
    lacks_room,
    read_contribution,
    settle,
    show_groups,
    write_contribution,
)
from tidelog.numeric.number_kernels import BOUND, Constants
from tidelog.numeric.pairing_heaps import insert_node, remove_node
from tidelog.numeric.sorted_runs import END, PLACE, find_first_run, pop_first
from tidelog.numeric.window_kernels import is_continued


@kernel
def add_pieces(state: State, constants: Constants, pieces: Pieces, first: int, places: Array) -> tuple[int, int, int]:
    """Make contributions of new pieces, from the one at `first` on; there must be room for all.

    Write the place of each, in the order of `pieces.order`. Return a status, where to go on, and with RESCALE the
    denominator that was met.
    """
    counters = state.counters
    for i in range(first, len(pieces.lo)):
        row = pieces.order[i] if len(pieces.order) > 0 else i
        status = lacks_room(state)
        if status != DONE:
            return status, i, 0
        status, amount, value = read_contribution(state, constants, pieces, row)
        if status != DONE:
            return status, i, amount
        if value < 0:
            continued = is_continued(state, pieces, row)
            if continued < 0:
                return ROOM_RUNNING, i, 0
            if continued == 0:
                counters[SKIPPED] += 1
        place = counters[FREE]
        if place >= 0:
            counters[FREE] = state.times[place]
        else:
            place = counters[TAIL]
            counters[TAIL] += 1
        places[i] = place
        write_contribution(state, pieces, row, place, pieces.hi[row], value, amount)
    return DONE, len(pieces.lo), 0


@inlined_kernel
def _enter(state: State, constants: Constants, place: int, group: int, position: int) -> Number:
    """Add a contribution to its group; return False where the sum leaves 62 bits."""
    function, cells = state.plan[FUNCTION], state.cells
    cells[group, ROWS] += 1
    if function in (SUM, AVG):
        cells[group, TOTAL] += state.amounts[place]
        cells[group, EXTRA] += 1 + int64(state.values[place])
        return abs(cells[group, TOTAL]) < BOUND
    if function == START:
        if cells[group, ROWS] == 1:
            cells[group, EXTRA] = position
    elif function in (MIN, MAX):
        sign = 1 if function == MIN else -1
        cells[group, TOTAL] = insert_node(state.links, state.values, constants, sign, cells[group, TOTAL], place)
    return True


@inlined_kernel
def _leave(state: State, constants: Constants, place: int, group: int) -> None:
    """Remove a contribution from its group."""
    function, cells = state.plan[FUNCTION], state.cells
    cells[group, ROWS] -= 1
    if function in (SUM, AVG):
        cells[group, TOTAL] -= state.amounts[place]
        cells[group, EXTRA] -= 1 + int64(state.values[place])
    elif function in (MIN, MAX):
        sign = 1 if function == MIN else -1
        cells[group, TOTAL] = remove_node(state.links, state.values, constants, sign, cells[group, TOTAL], place)
        state.values[place] = -1


@kernel
def sweep_points(
    state: State, constants: Constants, begins: Array, places: Array, ended: Array, until: int, output: Output
) -> Number:
    """Move to `until`; return the number of results. STATUS says if the output was full or a sum too large.

    `begins` and `places` are the new pieces in the order in which they begin, `ended` those that end before `until`.
    """
    plan, counters, cells = state.plan, state.counters, state.cells
    at = 0
    run = find_first_run(state.waiting, state.runs, counters[RUNS])
    while True:
        add, end = counters[NEXT_ADD], counters[NEXT_END]
        entering = begins[add] if add < len(begins) else NONE
        leaving = state.times[ended[end]] + 1 if end < len(ended) else NONE
        waiting = state.waiting[state.runs[run, 0], END] + 1 if run >= 0 else NONE
        position = min(entering, leaving, waiting)
        if position > until:
            break
        if at == len(output.lo):
            counters[STATUS] = FULL
            return at
        enters = entering == position
        if enters:
            place = int64(places[add])
            counters[NEXT_ADD] += 1
        elif leaving == position:
            place = int64(ended[end])
            counters[NEXT_END] += 1
        else:
            place = state.waiting[state.runs[run, 0], PLACE]
            counters[RUNS] = pop_first(state.runs, counters[RUNS], run)
            run = find_first_run(state.waiting, state.runs, counters[RUNS])
        group = int64(state.members[place])
        changes = True
        if plan[DISTINCT] != 0:
            holders = state.key_cells[group, HOLDERS] + (1 if enters else -1)
            state.key_cells[group, HOLDERS] = holders
            changes = holders == (1 if enters else 0)
            group = state.key_cells[group, OWNER]
        if changes and cells[group, DIRTY] != position:
            if cells[group, DIRTY] != NONE:
                at = settle(state, constants, group, output, at)
            cells[group, DIRTY] = position
        if enters:
            if changes and not _enter(state, constants, place, group, position):
                counters[STATUS] = OVERFLOW
                return at
        else:
            if changes:
                _leave(state, constants, place, group)
            state.times[place] = counters[FREE]
            counters[FREE] = place
    return show_groups(state, constants, until, output, at)
