"""Aggregates over a window: rows count while their start is in the window.

Starts enter and leave the window in the order of time, whatever the brackets of the range. So the contributions are one
queue for all groups, with a mark between those in the window and those before it. Running totals serve count, sum and
average; minimum, maximum and first have in each group a queue of the contributions that may still become the result
(for a minimum, those with no later, smaller one), linked through the contributions; last needs only the latest.
"""

from __future__ import annotations

from tidelog.jit import Array, Number, inlined_kernel, int64, kernel
from tidelog.numeric.aggregate_state import (
    AVG,
    BASE,
    BOUNDED,
    COUNT,
    DENSE,
    DIRTY,
    DISTINCT,
    DONE,
    EXTRA,
    FAR,
    FIRST,
    FULL,
    FUNCTION,
    HEAD,
    HOLDERS,
    LAST,
    MAX,
    MID,
    MIN,
    NEAR,
    NONE,
    OVERFLOW,
    OWNER,
    ROOM_RUNNING,
    ROWS,
    RUNNING,
    SKIPPED,
    SOME,
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
from tidelog.numeric.hash_tables import add_tuple, drop_ended, find_tuple
from tidelog.numeric.number_kernels import BOUND, Constants, compare_constants
from tidelog.timeline.grid import NEG_INF

#: Columns of `links`: the contributions before and after in a group's queue.
_BEFORE, _AFTER = range(2)


@inlined_kernel
def _first_position(plan: Array, start: int) -> Number:
    """Return where a start enters the window. A start in a gap (odd) enters right after its distance has passed."""
    if plan[DENSE] != 0 and start & 1:
        return start + plan[NEAR] - (plan[NEAR] & 1)
    return start + plan[NEAR]


@inlined_kernel
def _last_position(plan: Array, start: int) -> Number:
    """Return the last position at which a start is in the window. A start in a gap is in it up to a closed end."""
    if plan[DENSE] != 0 and start & 1:
        return start - 1 + plan[FAR] + (plan[FAR] & 1)
    return start + plan[FAR]


@inlined_kernel
def is_continued(state: State, pieces: Pieces, row: int) -> Number:
    """Note that a row holds on a piece. Return whether the piece continues an interval: 1, 0, or -1 for lack of room.

    Rows must come in the order of time, so that those which ended earlier can be dropped when the table is full.
    """
    running, ends = state.running, state.ends
    if state.counters[RUNNING] == len(ends):
        kept = drop_ended(running, ends, state.counters[RUNNING], pieces.lo[row] - 1)
        state.counters[RUNNING] = kept
        if 2 * kept > len(ends):
            return -1
    slot = find_tuple(running, pieces.args, row, state.row_columns)
    number = int64(running.slots[slot])
    if number < 0:
        number = state.counters[RUNNING]
        state.counters[RUNNING] += 1
        add_tuple(running, slot, number, pieces.args, row, state.row_columns)
        ends[number] = pieces.hi[row]
        return 0
    continued = ends[number] >= pieces.lo[row] - 1
    ends[number] = pieces.hi[row]
    return 1 if continued else 0


@inlined_kernel
def _add_starts(state: State, constants: Constants, pieces: Pieces, first: int) -> tuple[int, int, int]:
    """Append the starts of new pieces, from the one at `first` on, to the contributions, which must have room for all.

    Return a status, where to go on, and with RESCALE the denominator that was met.
    """
    plan, counters = state.plan, state.counters
    for i in range(first, len(pieces.lo)):
        row = pieces.order[i] if len(pieces.order) > 0 else i
        status = lacks_room(state)
        if status != DONE:
            return status, i, 0
        status, amount, value = read_contribution(state, constants, pieces, row)
        if status != DONE:
            return status, i, amount
        continued = is_continued(state, pieces, row)
        if continued < 0:
            return ROOM_RUNNING, i, 0
        start = pieces.lo[row]
        if continued or start == NEG_INF:
            continue
        if value < 0:
            counters[SKIPPED] += 1
        if plan[BOUNDED] != 0 and _first_position(plan, start) > _last_position(plan, start):
            continue
        write_contribution(state, pieces, row, counters[TAIL] - counters[BASE], start, value, amount)
        counters[TAIL] += 1
    return DONE, len(pieces.lo), 0


@inlined_kernel
def _enter(state: State, constants: Constants, number: int, group: int) -> Number:
    """Add a contribution to its group; return False where the sum leaves 62 bits."""
    function, cells, base = state.plan[FUNCTION], state.cells, state.counters[BASE]
    place = number - base
    cells[group, ROWS] += 1
    if function in (COUNT, SOME):
        return True
    value = int64(state.values[place])
    if function in (SUM, AVG):
        cells[group, TOTAL] += state.amounts[place]
        cells[group, EXTRA] += 1 + value
        return abs(cells[group, TOTAL]) < BOUND
    start = state.times[place]
    best, extra = cells[group, TOTAL], cells[group, EXTRA]
    if function == LAST or state.plan[BOUNDED] == 0:
        if best < 0:
            better = True
        elif function == MIN:
            better = compare_constants(constants, value, best) < 0
        elif function == MAX or start == extra:
            better = compare_constants(constants, value, best) > 0
        else:
            better = function == LAST
        if better:
            cells[group, TOTAL], cells[group, EXTRA] = value, start
        return True
    links = state.links
    last = extra
    if function == FIRST:
        if last >= 0 and state.times[last - base] == start:
            if compare_constants(constants, value, int64(state.values[last - base])) < 0:
                return True
            last = links[last - base, _BEFORE]
    else:
        while last >= 0:
            order = compare_constants(constants, value, int64(state.values[last - base]))
            if (order > 0) if function == MIN else (order < 0):
                break
            last = links[last - base, _BEFORE]
    links[place, _BEFORE], links[place, _AFTER] = last, -1
    if last < 0:
        cells[group, TOTAL] = number
    else:
        links[last - base, _AFTER] = number
    cells[group, EXTRA] = number
    return True


@inlined_kernel
def _leave(state: State, number: int, group: int) -> None:
    """Remove a contribution, the earliest in the window, from its group."""
    function, cells, base = state.plan[FUNCTION], state.cells, state.counters[BASE]
    place = number - base
    cells[group, ROWS] -= 1
    if function in (SUM, AVG):
        cells[group, TOTAL] -= state.amounts[place]
        cells[group, EXTRA] -= 1 + int64(state.values[place])
    elif function == LAST:
        if cells[group, EXTRA] == state.times[place]:
            cells[group, TOTAL], cells[group, EXTRA] = -1, -1
    elif MIN <= function <= FIRST and cells[group, TOTAL] == number:
        after = state.links[place, _AFTER]
        cells[group, TOTAL] = after
        if after < 0:
            cells[group, EXTRA] = -1
        else:
            state.links[after - base, _BEFORE] = -1


@inlined_kernel
def _sweep(state: State, constants: Constants, until: int, output: Output) -> Number:
    """Move to `until`; return the number of results. STATUS says if the output was full or a sum too large."""
    plan, counters, cells = state.plan, state.counters, state.cells
    base, tail = counters[BASE], counters[TAIL]
    at = 0
    while True:
        head, mid = counters[HEAD], counters[MID]
        entering = _first_position(plan, state.times[mid - base]) if mid < tail else NONE
        leaving = _last_position(plan, state.times[head - base]) + 1 if head < mid else NONE
        position = min(entering, leaving)
        if position > until:
            break
        if at == len(output.lo):
            counters[STATUS] = FULL
            return at
        enters = entering <= leaving
        number = mid if enters else head
        group = int64(state.members[number - base])
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
            counters[MID] += 1
            if changes and not _enter(state, constants, number, group):
                counters[STATUS] = OVERFLOW
                return at
            if plan[BOUNDED] == 0:
                counters[HEAD] = counters[MID]
        else:
            counters[HEAD] += 1
            if changes:
                _leave(state, number, group)
    return show_groups(state, constants, until, output, at)


@kernel
def advance_windows(
    state: State, constants: Constants, pieces: Pieces, first: int, until: int, output: Output
) -> tuple[int, int, int, int]:
    """Take the new pieces from the one at `first` on, and move to `until` once all are taken.

    Return a status, the next piece, with RESCALE the denominator that was met, and the number of results.
    """
    status, first, bottom = _add_starts(state, constants, pieces, first)
    if status != DONE:
        return status, first, bottom, 0
    count = _sweep(state, constants, until, output)
    return state.counters[STATUS], first, 0, count


@kernel
def find_next_change(state: State) -> Number:
    """Return the next position at which something enters or leaves the window, or NONE."""
    counters, base = state.counters, state.counters[BASE]
    head, mid = counters[HEAD], counters[MID]
    position = NONE
    if mid < counters[TAIL]:
        position = _first_position(state.plan, state.times[mid - base])
    if head < mid:
        position = min(position, _last_position(state.plan, state.times[head - base]) + 1)
    return position
