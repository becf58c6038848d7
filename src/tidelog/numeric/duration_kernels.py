"""How long groups held within a window, compared with a limit: piecewise linear functions of time.

A group begins and ceases to hold at toggles. A toggle enters the window at its near end, where the duration begins to
grow or stops growing, and leaves it at the far end, where it begins or stops to shrink. So between toggles the duration
is linear with slope 1, 0 or -1. Where all ends, the range and the limit are whole ticks, it crosses the limit at whole
ticks, too: then each position of the grid, point or gap, is on one side of the limit.

Durations are counted twice, so that the middle of a gap is an integer. On the integers, the duration at t is the number
of points from t - far to t - near: the length of the half-open intervals from t + 1 - (far + 1) to t + 1 - near.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.jit import Array, Number, inlined_kernel, int64, kernel
from tidelog.numeric.hash_tables import TupleTable, add_tuple, find_tuple
from tidelog.timeline.grid import NEG_INF

#: A plan as numbers: the timeline, the range in grid positions and in ticks, and the comparison (SOME: no comparison).
DENSE, NEAR, FAR, NEAR_TICKS, FAR_TICKS, OPERATOR, PLAN_SIZE = range(7)
LT, LE, EQ, NE, GE, GT, SOME = range(7)

#: Counters: groups, the next group to show, and toggles: the next ones to change the slope at the near end, to let the
#: group exist in the window, to change the slope at the far end, to let it cease to exist; the end of the toggles, and
#: the number of the first one in the arrays.
GROUPS, CURSOR, GROWS, EXISTS, SHRINKS, CEASES, TAIL, BASE, COUNTERS = range(9)

#: The cells of a group: whether it holds now; the slope, and the duration (twice) at a tick; how many of its intervals
#: are in the window; the first position that is not settled; the result that is not written yet; the limit (twice).
HOLDS, SLOPE, LEVEL, TICK, PRESENT, AT, FROM, TO, LIMIT, CELLS = range(10)
#: No position.
NONE = (1 << 63) - 1


class DurationState(NamedTuple):
    """Everything that is kept."""

    plan: Array
    columns: Array
    counters: Array
    groups: TupleTable
    cells: Array
    #: Toggles: the position, and twice the group, plus 1 if it begins to hold.
    positions: Array
    toggles: Array


class Intervals(NamedTuple):
    """Results: groups and intervals."""

    groups: Array
    lo: Array
    hi: Array


@kernel
def find_groups(state: DurationState, args: Array, first: int, numbers: Array) -> Number:
    """Write the group of each row from `first` on; return where there is no room for a new one, or the number of rows.

    New groups are empty and have no limit yet.
    """
    for row in range(first, len(numbers)):
        slot = find_tuple(state.groups, args, row, state.columns)
        group = int64(state.groups.slots[slot])
        if group < 0:
            group = state.counters[GROUPS]
            if group == len(state.cells):
                return row
            state.counters[GROUPS] += 1
            add_tuple(state.groups, slot, group, args, row, state.columns)
            for cell in range(CELLS):
                state.cells[group, cell] = 0
            state.cells[group, AT], state.cells[group, FROM] = NEG_INF, NONE
        numbers[row] = group
    return len(numbers)


@inlined_kernel
def _extend(state: DurationState, group: int, lo: int, hi: int, output: Intervals, at: int) -> Number:
    """Add an interval to the results of a group; write the one before it if they do not touch."""
    cells = state.cells
    if cells[group, FROM] != NONE and cells[group, TO] + 1 == lo:
        cells[group, TO] = hi
        return at
    if cells[group, FROM] != NONE:
        output.groups[at], output.lo[at], output.hi[at] = group, cells[group, FROM], cells[group, TO]
        at += 1
    cells[group, FROM], cells[group, TO] = lo, hi
    return at


@inlined_kernel
def _settle(state: DurationState, group: int, last: int, output: Intervals, at: int) -> Number:
    """Compare the duration with the limit on the positions up to `last`; return the number of results."""
    cells, op = state.cells, state.plan[OPERATOR]
    first = cells[group, AT]
    # An interval that ends with a point changes the slope there, though it is known to have ended only in the gap after
    # the point, when the point may be settled. The duration is continuous, so its value at the point is the same.
    if first > last:
        return at
    cells[group, AT] = last + 1
    if cells[group, PRESENT] == 0:
        return at
    slope, limit = cells[group, SLOPE], cells[group, LIMIT]
    if op == SOME:
        return _extend(state, group, first, last, output, at)
    if slope == 0:
        level = cells[group, LEVEL]
        if (
            (level < limit and op in (LT, LE, NE))
            or (level == limit and op in (LE, EQ, GE))
            or (level > limit and op in (GT, GE, NE))
        ):
            at = _extend(state, group, first, last, output, at)
        return at
    # The duration is `level + step * (position - origin)`. Below `begin` it is before the limit, in the direction in
    # which it moves; from `end` on it is beyond it; between them, at most at one position, it is equal.
    if state.plan[DENSE] != 0:
        step, origin = slope, 2 * cells[group, TICK]
    else:
        step, origin = 2 * slope, cells[group, TICK] - 1
    distance = (limit - cells[group, LEVEL]) * (1 if step > 0 else -1)
    size = abs(step)
    begin = origin - (-distance // size)
    end = origin + distance // size + 1
    before, equal, beyond = op in (LT, LE, NE), op in (LE, EQ, GE), op in (GT, GE, NE)
    if step < 0:
        before, beyond = beyond, before
    if before and first < begin:
        at = _extend(state, group, first, min(begin - 1, last), output, at)
    if equal and begin < end and first <= begin <= last:
        at = _extend(state, group, begin, begin, output, at)
    if beyond and end <= last:
        at = _extend(state, group, max(end, first), last, output, at)
    return at


@inlined_kernel
def _near_position(plan: Array, position: int, ticks: int) -> Number:
    """Return where a toggle changes the slope, a number of ticks later."""
    if position == NEG_INF:
        return NEG_INF
    return 2 * ((position >> 1) + ticks) if plan[DENSE] != 0 else position + ticks


@inlined_kernel
def _seen_position(plan: Array, position: int, begins: bool) -> Number:
    """Return from where on the window sees that a group begins to hold, or does not see any more that it held."""
    if begins:
        if position == NEG_INF:
            return NEG_INF
        return position + plan[NEAR] - (position & plan[NEAR] & 1 if plan[DENSE] != 0 else 0)
    last = position - 1
    return last + plan[FAR] + (last & plan[FAR] & 1 if plan[DENSE] != 0 else 0) + 1


@inlined_kernel
def _skip(state: DurationState, number: int, begins: int) -> Number:
    """Return the first toggle from this one on that begins (1) or ends (0) an interval."""
    base, tail = state.counters[BASE], state.counters[TAIL]
    while number < tail and (state.toggles[number - base] & 1) != begins:
        number += 1
    return number


@inlined_kernel
def _bend(state: DurationState, group: int, tick: int, by: int) -> None:
    """Change the slope of a group from a tick on."""
    cells = state.cells
    cells[group, LEVEL] += 2 * cells[group, SLOPE] * (tick - cells[group, TICK])
    cells[group, TICK] = tick
    cells[group, SLOPE] += by


@inlined_kernel
def _next_event(state: DurationState) -> tuple[int, int]:
    """Return the position of the next event and the counter of its toggle."""
    plan, counters, base, tail = state.plan, state.counters, state.counters[BASE], state.counters[TAIL]
    position, which = NONE, GROWS
    for counter in range(GROWS, CEASES + 1):
        number = counters[counter]
        if counter in (EXISTS, CEASES):
            number = _skip(state, number, 1 if counter == EXISTS else 0)
            counters[counter] = number
        if number < tail:
            toggled = state.positions[number - base]
            if counter == GROWS:
                due = _near_position(plan, toggled, plan[NEAR_TICKS])
            elif counter == SHRINKS:
                due = _near_position(plan, toggled, plan[FAR_TICKS])
            else:
                due = _seen_position(plan, toggled, counter == EXISTS)
            if due < position:
                position, which = due, counter
    return position, which


@kernel
def sweep_durations(state: DurationState, until: int, output: Intervals) -> tuple[int, bool]:
    """Move to `until`; return the number of results, and whether there is more, since the output was full."""
    plan, counters, cells = state.plan, state.counters, state.cells
    at = 0
    while True:
        position, which = _next_event(state)
        if position > until:
            break
        if at + 2 > len(output.lo):
            return at, True
        number = counters[which]
        counters[which] += 1
        toggled, toggle = state.positions[number - counters[BASE]], int64(state.toggles[number - counters[BASE]])
        group, sign = toggle >> 1, 2 * (toggle & 1) - 1
        at = _settle(state, group, position - 1, output, at)
        if which in (EXISTS, CEASES):
            cells[group, PRESENT] += sign
        elif toggled == NEG_INF:
            if which == GROWS:
                cells[group, LEVEL] += 2 * (plan[FAR_TICKS] - plan[NEAR_TICKS])
        elif which == GROWS:
            _bend(state, group, (toggled >> 1 if plan[DENSE] != 0 else toggled) + plan[NEAR_TICKS], sign)
        else:
            _bend(state, group, (toggled >> 1 if plan[DENSE] != 0 else toggled) + plan[FAR_TICKS], -sign)
    while counters[CURSOR] < counters[GROUPS]:
        if at + 4 > len(output.lo):
            return at, True
        group = counters[CURSOR]
        at = _settle(state, group, until, output, at)
        if cells[group, FROM] != NONE:
            output.groups[at], output.lo[at], output.hi[at] = group, cells[group, FROM], cells[group, TO]
            cells[group, FROM] = NONE
            at += 1
        counters[CURSOR] += 1
    counters[CURSOR] = 0
    return at, False


@kernel
def find_next_event(state: DurationState) -> Number:
    """Return the position of the next event, or NONE."""
    return _next_event(state)[0]
