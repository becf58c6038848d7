"""Many steps of a stream in one compiled call: a step costs no more than what happens in it.

A step moves the clock, takes in what is due and what has come, derives what follows, evaluates the rules with negation
on the stretch that has become complete, reads off the answers, and forgets. The call comes back where something has to
be done that compiled code cannot do here, and goes on where it stopped when it is called again: all that it has to know
is in the array `at`.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from numba import types

from tidelog.engine.agenda import ANSWERS, RULES, come_to, next_time
from tidelog.engine.machine import EVALUATED as MUCH_EVALUATED
from tidelog.engine.machine import GROW, Code, run
from tidelog.engine.tables import ENDLESS, HELD, NEWS, NEXT_DUE, PRED, SIZE, Array, Number, Tables
from tidelog.engine.window import (
    Found,
    count_ended,
    due,
    first_entry,
    forget,
    look_ahead,
    write_ended,
    write_holding,
)
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.kernels import allocating_kernel, inlined, kernel

# Where a reasoner stands. First positions: its clock, the last time in its input, up to where its input is complete
# but for the delay, up to where it is complete, up to where rules with negation have been evaluated, and up to where
# answers were given.
NOW, LAST, CLOSED, FRONTIER, EVALUATED, REPORTED = range(6)
# The numbers of new parts when negations were last evaluated, and facts forgotten.
JUDGED, FORGOTTEN = range(6, 8)
# Output times: the next multiple, the last that was answered, how many there are in the heap (in output ticks).
NEXT_TIME, LAST_TIME, N_TIMES = range(8, 11)
# Where a step stands: its phase, component, the atom that this looks at next, whether it is to go on with it, the news
# before it, the nanosecond it began.
PHASE, GROUP, PLACE, FRESH, BEFORE, BEGAN = range(11, 17)
# How far the queues reach; how many answers there are, and how many there must be room for; how many empty atoms.
POSITION, END, FOLLOWING_END, LATER_END, N_FOUND, NEEDED, EMPTY = range(17, 24)
# The position at which the stream ends, in its last step.
STOP = 24
AT_SIZE = 25

BEGIN, TAKE, WORK, EVALUATE, ANSWER, LEAVE = range(6)

# Why a call came back: all steps are done; the store is full; a queue or the heap is full, or the answers are; enough
# answers for one call; a constraint is violated, and the step has its answers; there are many atoms that hold nowhere;
# or the last step of a stream has come to its answers.
DONE, STORE_FULL, QUEUE_FULL, ANSWERS_FULL, ENOUGH, VIOLATED, SPARSE, STOPPED = range(8)

#: Rows of answers after which a call comes back between two steps.
MUCH = 1 << 16
#: Words of the queue that ask for rules to be evaluated in one call, but for those of one atom.
ASKED = 1 << 14
#: With fewer facts than this, every step forgets; with more, every so many new ones.
SMALL = 4096
#: So many atoms that hold nowhere are left alone.
FEW = 1024


class Task(NamedTuple):
    """What stands over the stream. Distances and positions are the grid's.

    `listing` is an index of all atoms of the query. `asked` tells that there are output times: `ratio` of their ticks
    are one of the grid's, and `every` of them lie between two (0: they are in the heap).

    Rules with negation: `repeated` tells which components are recursive. Of a rule that reads something that holds,
    `visits` are the plans for an atom of each predicate, from `visit_starts` on (component, plan, how long the rule
    waits), and `readers` how it reads the predicate, from `reader_starts` on (see `look_ahead`). Rules of nothing but
    negations are evaluated as a whole: `plans` has their components, plans, and how long they wait.
    """

    query: int
    listing: int
    arity: int
    longest: int
    ahead: int
    dense: bool
    asked: bool
    ratio: int
    every: int
    retention: Array
    persisting: Array
    constraints: Array
    repeated: Array
    visit_starts: Array
    visits: Array
    reader_starts: Array
    readers: Array
    plans: Array


class Todo(NamedTuple):
    """Steps to take: of each the clock, the last time in it, whether its time is over, and where its records and the
    times of its own end."""

    clocks: Array
    lasts: Array
    over: Array
    records: Array
    record_ends: Array
    times: Array
    time_ends: Array


# What is noted of a step: what was held after it, how many nanoseconds it took, and where its answers end.
FINITE, ENDLESS_HELD, TOOK, ANSWERS_END, NOTES = range(5)


_gettime: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.uintp))
_CLOCK = time.CLOCK_MONOTONIC


@inlined
def _nanoseconds(pair: Array) -> Number:
    """The time of the system's steady clock."""
    _gettime(_CLOCK, pair.ctypes.data)
    return pair[0] * 1_000_000_000 + pair[1]


@kernel
def push_time(heap: Array, size: int, t: int) -> None:
    """Adds a time to a heap of so many, which has room for it."""
    at = size
    while at > 0 and heap[(at - 1) >> 1] > t:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = t


@kernel
def pop_time(heap: Array, size: int) -> None:
    """Takes the least of so many times from a heap."""
    t, at = heap[size - 1], 0
    while 2 * at + 1 < size - 1:
        child = 2 * at + 1
        if child + 1 < size - 1 and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= t:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = t


@inlined
def _place(t: int, ratio: int, dense: bool) -> int:
    """The grid position of an output time: of the point, or of the gap around it."""
    whole = t // ratio
    if not dense:
        return whole
    return 2 * whole + (1 if whole * ratio != t else 0)


@inlined
def _next_time(at: Array, heap: Array, every: int) -> Number:
    """The next output time, or POS_INF."""
    if every:
        return at[NEXT_TIME]
    return heap[0] if at[N_TIMES] else POS_INF


@kernel
def _ask(at: Array, task: Task, tables: Tables, queue: Array) -> Number:
    """Puts plans of a component into a queue, for atoms from a place of the agenda on; returns where they end.

    Each is asked for on the stretch that has become complete for it.
    """
    agenda, group, since, end = tables.agenda, at[GROUP], at[EVALUATED], 0
    if at[PLACE] == 0:
        for i in range(len(task.plans)):
            if task.plans[i, 0] == group:
                _write_ask(task.plans[i, 1], task.plans[i, 2], since, at[FRONTIER], -1, queue, end)
                end += 4
    while at[PLACE] < agenda.lengths[RULES] and end < ASKED:
        atom = agenda.lists[at[PLACE], RULES]
        pred = tables.atoms[atom, PRED]
        for i in range(task.visit_starts[pred], task.visit_starts[pred + 1]):
            if task.visits[i, 0] == group:
                _write_ask(task.visits[i, 1], task.visits[i, 2], since, at[FRONTIER], atom, queue, end)
                end += 4
        at[PLACE] += 1
    return end


@inlined
def _write_ask(plan: int, wait: int, since: int, frontier: int, atom: int, queue: Array, end: int) -> None:
    queue[end] = -1 - plan
    queue[end + 1] = NEG_INF if since == NEG_INF else since - wait + 1
    queue[end + 2] = frontier - wait
    queue[end + 3] = atom


@allocating_kernel
def take(
    code: Code,
    tables: Tables,
    task: Task,
    at: Array,
    todo: Todo,
    taken: Array,
    step: int,
    stop: int,
    heap: Array,
    found: Found,
    queue: Array,
    following: Array,
    later: Array,
) -> tuple[int, int, Array, Array, Array]:
    """Takes steps up to `stop`, and notes each in a row of `taken`.

    Returns why it came back, the step that comes next or is under way, and the queues.
    """
    meta, preds = tables.meta, tables.preds
    n_groups = len(task.repeated)
    agenda = tables.agenda
    scratch = tables.scratch[0]
    while step < stop:
        if at[PHASE] == BEGIN:
            at[BEGAN] = _nanoseconds(scratch)
            first = todo.time_ends[step - 1] if step else 0
            if at[N_TIMES] + todo.time_ends[step] - first > len(heap):
                return QUEUE_FULL, step, queue, following, later
            for i in range(first, todo.time_ends[step]):
                push_time(heap, at[N_TIMES], todo.times[i])
                at[N_TIMES] += 1
            at[LAST] = max(at[LAST], todo.lasts[step])
            now = todo.clocks[step]
            if now >= at[NOW]:
                at[NOW] = now
                at[CLOSED] = max(at[CLOSED], now if todo.over[step] else now - 1)
            at[FRONTIER] = max(at[CLOSED] - task.longest, at[FRONTIER])
            at[PHASE] = TAKE

        frontier = at[FRONTIER]
        horizon = max(at[NOW], frontier)
        if at[PHASE] == TAKE:
            first = todo.record_ends[step - 1] if step else 0
            size = todo.record_ends[step] - first
            waiting = at[LATER_END] if meta[NEXT_DUE] <= horizon else 0
            if size + waiting > len(queue):
                return QUEUE_FULL, step, queue, following, later
            end = 0
            if waiting:
                end, at[LATER_END], meta[NEXT_DUE] = due(later, waiting, horizon, preds, queue)
            for i in range(size):
                queue[end + i] = todo.records[first + i]
            at[POSITION], at[END], at[FOLLOWING_END] = 0, end + size, 0
            at[PHASE] = WORK

        if at[PHASE] == WORK:
            if at[END] or at[FOLLOWING_END]:
                status, queue, at[POSITION], at[END], following, at[FOLLOWING_END], later, at[LATER_END] = run(
                    code,
                    tables,
                    NEG_INF,
                    horizon,
                    task.dense,
                    queue,
                    at[POSITION],
                    at[END],
                    following,
                    at[FOLLOWING_END],
                    later,
                    at[LATER_END],
                    POS_INF,
                )
                if status == GROW:
                    return STORE_FULL, step, queue, following, later
            at[PHASE] = ANSWER
            if n_groups and frontier > at[EVALUATED]:
                asked = task.asked and _place(_next_time(at, heap, task.every), task.ratio, task.dense) <= frontier
                change = min(next_time(RULES, agenda), next_time(ANSWERS, agenda))
                if asked or frontier >= change or meta[NEWS] != at[JUDGED] or at[STOP] != POS_INF:
                    come_to(frontier, RULES, agenda)
                    at[PHASE], at[GROUP], at[PLACE], at[FRESH] = EVALUATE, 0, 0, 1
                    at[BEFORE] = meta[NEWS]

        if at[PHASE] == EVALUATE:
            if 4 * (len(task.plans) + len(task.visits)) + ASKED > len(queue):
                return QUEUE_FULL, step, queue, following, later
            while at[GROUP] < n_groups:
                group = at[GROUP]
                if at[FRESH]:
                    at[POSITION], at[END], at[FOLLOWING_END], at[FRESH] = 0, _ask(at, task, tables, queue), 0, 0
                status, queue, at[POSITION], at[END], following, at[FOLLOWING_END], later, at[LATER_END] = run(
                    code,
                    tables,
                    NEG_INF,
                    horizon,
                    task.dense,
                    queue,
                    at[POSITION],
                    at[END],
                    following,
                    at[FOLLOWING_END],
                    later,
                    at[LATER_END],
                    POS_INF,
                )
                if status == GROW:
                    return STORE_FULL, step, queue, following, later
                if status == MUCH_EVALUATED:
                    queue, following = following, queue
                    at[POSITION], at[END], at[FOLLOWING_END] = 0, at[FOLLOWING_END], 0
                    continue
                at[FRESH] = 1
                if at[PLACE] < agenda.lengths[RULES]:
                    continue
                # Once more where the rules of a component may feed each other.
                if meta[NEWS] == at[BEFORE] or not task.repeated[group]:
                    at[GROUP] += 1
                at[PLACE], at[BEFORE] = 0, meta[NEWS]
            at[EVALUATED] = frontier
            look_ahead(frontier, task.reader_starts, task.readers, task.persisting, task.dense, tables)
            at[JUDGED] = meta[NEWS]
            at[PHASE] = ANSWER

        if at[PHASE] == ANSWER:
            # Where evaluation was put off nothing begins or ends, so no answer does; what persists stands still.
            until = (at[EVALUATED] if n_groups else frontier) - task.ahead
            if task.asked:
                until = min(until, at[STOP])
                t = _next_time(at, heap, task.every)
                while t < POS_INF and _place(t, task.ratio, task.dense) <= until:
                    if at[N_FOUND] + preds[task.query, SIZE] > len(found.lo):
                        at[NEEDED] = at[N_FOUND] + preds[task.query, SIZE]
                        return ANSWERS_FULL, step, queue, following, later
                    if task.every:
                        at[NEXT_TIME] += task.every
                    else:
                        pop_time(heap, at[N_TIMES])
                        at[N_TIMES] -= 1
                    if t > at[LAST_TIME]:
                        at[LAST_TIME] = t
                        if task.dense or t % task.ratio == 0:
                            when = 2 * t if task.dense else t // task.ratio
                            place = _place(t, task.ratio, task.dense)
                            at[N_FOUND] = write_holding(
                                first_entry(task.listing, tables), place, when, task.arity, tables, found, at[N_FOUND]
                            )
                    t = _next_time(at, heap, task.every)
            elif at[STOP] != POS_INF:
                return STOPPED, step, queue, following, later
            elif until > at[REPORTED]:
                come_to(until + task.ahead, ANSWERS, agenda)
                count = count_ended(at[REPORTED], until, tables)
                if at[N_FOUND] + count > len(found.lo):
                    at[NEEDED] = at[N_FOUND] + count
                    return ANSWERS_FULL, step, queue, following, later
                # What a negation derives ends where it was evaluated last, and may go on.
                open_end = at[EVALUATED] if task.persisting[task.query] else NEG_INF
                at[N_FOUND] = write_ended(
                    at[REPORTED], until, task.ahead, open_end, task.arity, tables, found, at[N_FOUND]
                )
                at[REPORTED] = until
            at[PHASE] = LEAVE

        for number in task.constraints:
            if preds[number, SIZE]:
                return VIOLATED, step, queue, following, later
        base = min(frontier, at[EVALUATED]) if n_groups else frontier
        fresh = meta[NEWS] - at[FORGOTTEN]
        held = meta[HELD]
        if base != NEG_INF and (held <= SMALL or 8 * fresh >= held):
            at[FORGOTTEN] = meta[NEWS]
            at[EMPTY] = forget(tables.atoms, tables.iv, meta, base, task.retention)
        taken[step, FINITE] = meta[HELD] - meta[ENDLESS]
        taken[step, ENDLESS_HELD] = meta[ENDLESS]
        taken[step, TOOK] = _nanoseconds(scratch) - at[BEGAN]
        taken[step, ANSWERS_END] = at[N_FOUND]
        step += 1
        at[PHASE] = BEGIN
        if at[EMPTY] > FEW and at[EMPTY] > meta[HELD]:
            return SPARSE, step, queue, following, later
        if at[N_FOUND] > MUCH:
            return ENOUGH, step, queue, following, later
    return DONE, step, queue, following, later
