"""The arrays of an aggregator, and the steps that its two kernels share: read a row, settle a group, write a result.

Both kernels move through time. A row enters a group at one position and leaves it at another: when its start enters and
leaves the window (`window_kernels`), or when it begins and ceases to hold (`point_kernels`). A group that changes is
dirty at that position. It is settled when time has moved on: its new value is compared with the one shown so far, and
if they differ, the interval of the old value is written.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.jit import Array, Number, inlined_kernel, int64, kernel
from tidelog.numeric.hash_tables import TupleTable, add_tuple, find_tuple
from tidelog.numeric.number_kernels import BOUND, NOT_A_NUMBER, Constants, compare_constants, compare_products
from tidelog.timeline.grid import NEG_INF

#: The functions, as numbers.
COUNT, SUM, AVG, MIN, MAX, LAST, FIRST, START, SOME = range(9)

#: A plan as numbers: the function, whether values are distinct, the timeline, whether there is a window, its range (in
#: grid positions) and whether that is bounded, and the column of the value.
FUNCTION, DISTINCT, DENSE, WINDOW, NEAR, FAR, BOUNDED, VALUE, PLAN_SIZE = range(9)

#: Counters. Contributions from HEAD to MID are in the window, those from MID to TAIL have not entered it yet; the one
#: with number BASE is the first in the arrays. SCALE is the denominator of all sums. CURSOR is the next group to show,
#: NEXT_ADD and NEXT_END are the next pieces to enter and to leave. RUNS is the number of sorted runs of rows that wait
#: for their end, FREE the first unused place of a contribution.
GROUPS, KEYS, RUNNING, HEAD, MID, TAIL, BASE, SCALE, SKIPPED, CURSOR, NEXT_ADD, NEXT_END, RUNS, FREE, STATUS = range(15)
COUNTERS = 15

#: Why a kernel returns: all done, or something is to be done first: write results, enlarge a table, change the common
#: denominator; or a sum has become too large.
DONE, FULL, ROOM_GROUPS, ROOM_KEYS, ROOM_RUNNING, RESCALE, OVERFLOW = range(7)

#: The cells of a group: how many rows (with `distinct`, values) are in it; TOTAL is the sum, the best constant, or the
#: first contribution of a queue or heap; EXTRA is the number of numeric rows, a start, or the last of a queue. DIRTY is
#: where the group changed, SINCE where the shown value began, or NONE. The shown value is TOP / BOTTOM.
ROWS, TOTAL, EXTRA, DIRTY, SINCE, TOP, BOTTOM, CELLS = range(8)
#: The cells of a distinct value: its group, and the number of its rows.
OWNER, HOLDERS, KEY_CELLS = range(3)
#: No position.
NONE = (1 << 63) - 1

#: Comparison operators, as numbers.
OPERATORS = ("<", "<=", "=", "!=", ">=", ">")
_LT, _LE, _EQ, _NE, _GE, _GT = range(6)


class State(NamedTuple):
    """Everything that an aggregator keeps."""

    plan: Array
    #: One row per comparison with the result: the operator, then the numerator and denominator of a number, or an id.
    thresholds: Array
    group_columns: Array
    key_columns: Array
    row_columns: Array
    counters: Array
    groups: TupleTable
    cells: Array
    keys: TupleTable
    key_cells: Array
    #: Rows that hold at present or held until right before it, and where they end.
    running: TupleTable
    ends: Array
    #: Contributions: where the row starts (windows) or ends (points), its group or distinct value, and its value as a
    #: constant (-1 in a sum: not a number) and as an amount.
    times: Array
    members: Array
    values: Array
    amounts: Array
    #: Queues and heaps of contributions within a group.
    links: Array
    #: Rows that wait for their end (see `sorted_runs`), and where the runs begin and end.
    waiting: Array
    runs: Array


class Output(NamedTuple):
    """Results: a group, an interval and a value each."""

    groups: Array
    lo: Array
    hi: Array
    tops: Array
    bottoms: Array


class Pieces(NamedTuple):
    """New rows, and the order in which they begin; no order means that they are sorted."""

    args: Array
    lo: Array
    hi: Array
    order: Array


@inlined_kernel
def find_group(state: State, args: Array, row: int) -> Number:
    """Return the group of a row; a new one is empty."""
    slot = find_tuple(state.groups, args, row, state.group_columns)
    group = int64(state.groups.slots[slot])
    if group < 0:
        group = state.counters[GROUPS]
        state.counters[GROUPS] += 1
        add_tuple(state.groups, slot, group, args, row, state.group_columns)
        for cell in range(CELLS):
            state.cells[group, cell] = 0
        if state.plan[FUNCTION] >= MIN and state.plan[FUNCTION] <= FIRST:
            state.cells[group, TOTAL], state.cells[group, EXTRA] = -1, -1
        state.cells[group, DIRTY], state.cells[group, SINCE] = NONE, NONE
    return group


@inlined_kernel
def find_member(state: State, args: Array, row: int) -> Number:
    """Return the group of a row, or with `distinct` its value."""
    if state.plan[DISTINCT] == 0:
        return find_group(state, args, row)
    slot = find_tuple(state.keys, args, row, state.key_columns)
    key = int64(state.keys.slots[slot])
    if key < 0:
        key = state.counters[KEYS]
        state.counters[KEYS] += 1
        add_tuple(state.keys, slot, key, args, row, state.key_columns)
        state.key_cells[key, OWNER], state.key_cells[key, HOLDERS] = find_group(state, args, row), 0
    return key


@inlined_kernel
def lacks_room(state: State) -> Number:
    """Return which table has no room for one more entry, or DONE."""
    if state.counters[GROUPS] == len(state.cells):
        return ROOM_GROUPS
    if state.counters[KEYS] == len(state.key_cells):
        return ROOM_KEYS
    return DONE


@inlined_kernel
def _read_amount(state: State, constants: Constants, id: int) -> tuple[int, int, int]:
    """Return a constant on the common denominator: a status, the amount, and -1 if it is not a number."""
    top, bottom, scale = constants.numerators[id], constants.denominators[id], state.counters[SCALE]
    if bottom == scale:
        return DONE, top, 0
    if bottom == NOT_A_NUMBER:
        return DONE, 0, -1
    if bottom < 0:
        return OVERFLOW, 0, 0
    factor = scale // bottom
    if factor * bottom != scale:
        return RESCALE, bottom, 0
    near = int64(1) << 31
    if (abs(top) >= near or factor >= near) and abs(top) > BOUND // factor:
        return OVERFLOW, 0, 0
    return DONE, top * factor, 0


@inlined_kernel
def read_contribution(state: State, constants: Constants, pieces: Pieces, row: int) -> tuple[int, int, int]:
    """Return what a row contributes: a status, for sums and averages an amount, and its value.

    The value is a constant; for sums and averages it is 0, or -1 if the row has no number. With RESCALE, the amount is
    the denominator that was met.
    """
    column = state.plan[VALUE]
    if column < 0:
        return DONE, 0, 0
    if state.plan[FUNCTION] in (SUM, AVG):
        return _read_amount(state, constants, pieces.args[column, row])
    return DONE, 0, int64(pieces.args[column, row])


@inlined_kernel
def write_contribution(state: State, pieces: Pieces, row: int, place: int, time: int, value: int, amount: int) -> None:
    """Write the contribution of a row to its place."""
    state.times[place] = time
    state.members[place] = find_member(state, pieces.args, row)
    if state.plan[VALUE] >= 0:
        state.values[place] = value
        if state.plan[FUNCTION] in (SUM, AVG):
            state.amounts[place] = amount


@inlined_kernel
def _holds(op: int, sign: int) -> bool:
    if op == _LT:
        return sign < 0
    if op == _LE:
        return sign <= 0
    if op == _EQ:
        return sign == 0
    if op == _NE:
        return sign != 0
    return sign > 0 or (op == _GE and sign == 0)


@inlined_kernel
def _compute(state: State, constants: Constants, group: int) -> tuple[bool, int, int]:
    """Return whether a group has a value now, and the value: top / bottom, or a constant."""
    function = state.plan[FUNCTION]
    cells = state.cells
    present, top, bottom = cells[group, ROWS] > 0, int64(1), int64(1)
    if function == COUNT:
        top = cells[group, ROWS]
    elif function == SUM:
        top = cells[group, TOTAL]
    elif function == AVG:
        top, bottom = cells[group, TOTAL], cells[group, EXTRA]
        present = bottom > 0
    elif function == START:
        top = cells[group, EXTRA]
        present = present and top != NEG_INF
        if present and state.plan[DENSE] != 0:
            top >>= 1
    elif function != SOME:
        top = cells[group, TOTAL]
        present = top >= 0
        if present and len(state.links) > 0:
            top = int64(state.values[top - state.counters[BASE]])
    if present:
        for i in range(len(state.thresholds)):
            if MIN <= function <= FIRST:
                sign = compare_constants(constants, top, state.thresholds[i, 1])
            else:
                sign = compare_products(top, state.thresholds[i, 2], state.thresholds[i, 1], bottom)
            if not _holds(state.thresholds[i, 0], sign):
                present = False
                break
        if len(state.thresholds) > 0:
            top, bottom = int64(1), int64(1)
    return present, top, bottom


@inlined_kernel
def settle(state: State, constants: Constants, group: int, output: Output, at: int) -> Number:
    """Compare the value of a dirty group with the one shown; if they differ, write the old one and show the new one.

    Return the number of results.
    """
    cells = state.cells
    position = cells[group, DIRTY]
    cells[group, DIRTY] = NONE
    present, top, bottom = _compute(state, constants, group)
    since = cells[group, SINCE]
    if since != NONE:
        shown_top, shown_bottom = cells[group, TOP], cells[group, BOTTOM]
        if present and (
            (top == shown_top and bottom == shown_bottom)
            or (bottom != shown_bottom and compare_products(top, shown_bottom, shown_top, bottom) == 0)
        ):
            return at
        if since < position:
            output.groups[at], output.lo[at], output.hi[at] = group, since, position - 1
            output.tops[at], output.bottoms[at] = shown_top, shown_bottom
            at += 1
    cells[group, SINCE] = position if present else NONE
    cells[group, TOP], cells[group, BOTTOM] = top, bottom
    return at


@inlined_kernel
def show_groups(state: State, constants: Constants, until: int, output: Output, at: int) -> Number:
    """Settle all groups and write the values that hold at `until`; return the number of results.

    Stop where the output is full, with STATUS FULL and the next group in CURSOR.
    """
    cells = state.cells
    group = state.counters[CURSOR]
    while group < state.counters[GROUPS]:
        if at + 2 > len(output.lo):
            state.counters[CURSOR], state.counters[STATUS] = group, FULL
            return at
        if cells[group, DIRTY] != NONE:
            at = settle(state, constants, group, output, at)
        if cells[group, SINCE] <= until:
            output.groups[at], output.lo[at], output.hi[at] = group, cells[group, SINCE], until
            output.tops[at], output.bottoms[at] = cells[group, TOP], cells[group, BOTTOM]
            at += 1
            cells[group, SINCE] = until + 1
        group += 1
    state.counters[CURSOR], state.counters[STATUS] = 0, DONE
    return at


@kernel
def write_groups(keys: Array, groups: Array, count: int, args: Array) -> None:
    """Write the constants of the groups of results as columns."""
    for column in range(keys.shape[1]):
        for i in range(count):
            args[column, i] = keys[groups[i], column]
