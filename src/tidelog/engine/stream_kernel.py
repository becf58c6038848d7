"""Many steps of a stream in one compiled call, so that a step costs no more than the changes in it.

A step moves the clock, takes due and new facts, derives what follows, evaluates rules with negation over the times that
have become complete, reads off the answers, and forgets. `take` returns where something has to be done that compiled
code cannot do, and resumes there when it is called again: everything it has to remember is in the array `at`, whose
positions are named below.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.compiler.opcodes import PUSHES, VISITS, Code
from tidelog.engine.agenda import ANSWERS, REMADE, RULES, advance_to, next_time
from tidelog.engine.join_kernels import EVALUATED as MUCH_EVALUATED
from tidelog.engine.join_kernels import GROW, NO_ROOM
from tidelog.engine.plan_machine import run
from tidelog.engine.retention import (
    Found,
    begins_by,
    count_ended,
    first_entry,
    forget,
    has_begun,
    matters_beyond,
    move_due,
    recursion_may_go_on,
    schedule_changes,
    write_ended,
    write_holding,
)
from tidelog.engine.store_tables import (
    AIM,
    ENDLESS,
    HELD,
    KNOWN_TO,
    MAY_STAND,
    NEWS,
    NEXT_DUE,
    PRED,
    RECURSION_NEWS,
    SIZE,
    Array,
    Number,
    Tables,
)
from tidelog.engine.system_clock import read_nanoseconds
from tidelog.engine.time_heap import pop_time, push_time, to_grid_position
from tidelog.jit import inlined_kernel, kernel
from tidelog.timeline.grid import NEG_INF, POS_INF

#: Times of the stream, as grid positions: the clock; the last time in the input; up to where the input is complete but
#: for the delay; up to where it is complete; up to where rules with negation have been evaluated; and up to where
#: answers have been reported.
NOW, LAST, CLOSED, FRONTIER, EVALUATED, REPORTED = range(6)
#: The number of new pieces (`NEWS`) when negations were last evaluated, and when facts were last forgotten.
JUDGED, FORGOTTEN = range(6, 8)
#: Output times, in output ticks: the next multiple, the last one answered, and how many are in the heap.
NEXT_TIME, LAST_TIME, N_TIMES = range(8, 11)
#: The step under way: its phase, the component it evaluates, the next scheduled atom of it, whether that component's
#: plans are still to be queued, `NEWS` before it, and the nanosecond at which the step began.
PHASE, GROUP, PLACE, FRESH, BEFORE, BEGAN = range(11, 17)
#: The position and ends of the queues; the number of answers, and how many need room; the number of empty atoms.
POSITION, END, FOLLOWING_END, LATER_END, N_FOUND, NEEDED, EMPTY = range(17, 24)
#: The position at which the stream ends, in its last step; the next position at which an aggregate changes by itself.
STOP, CHANGES = 24, 25
#: Up to where rules with negation are evaluated now, `RECURSION_NEWS` before, and the next atom to derive again.
TARGET, KNOWN, REMADE_PLACE = range(26, 29)
#: Whether the step takes records that begin where everything is complete after it.
COMPLETED = 29
AT_SIZE = 30

#: Phases of a step.
BEGIN, TAKE, WORK, EVALUATE, ANSWER, LEAVE = range(6)

#: Why `take` returns: all steps are done; the store is full; a queue or the heap is full; the answers are full; enough
#: answers for one call; a constraint is violated, and the step has its answers; many atoms hold nowhere; the last step
#: of a stream has reached its answers; pieces are logged to compute with; aggregates are due; or a queue is full.
DONE, STORE_FULL, QUEUE_FULL, ANSWERS_FULL, ENOUGH, VIOLATED, SPARSE, STOPPED, LOGGED, AGGREGATE = range(10)
NO_SPACE, NO_SPACE_LATER = 10, 11

MUCH = 1 << 16  # A call returns between two steps once it has this many answers.
#: Words of the queue that one call uses to request plans, not counting those of the last atom.
ASKED = 1 << 14
#: With at most this many facts every step forgets; with more, one in eight new facts triggers it.
SMALL = 4096
FEW = 1024  # Up to this many atoms that hold nowhere are left alone.
#: Up to this many atoms that hold nowhere are left alone per interval that is held: facts that hold at every second
#: time leave their atoms empty in between.
EMPTY_PER_HELD = 3


class Task(NamedTuple):
    """The standing query, as numbers. Distances and positions are grid positions.

    `listing` is an index of all atoms of the query, and `slice` how far evaluation may go at once, because of a
    recursion through time (0 without one); `meets_later`: facts may meet results of aggregations and negations only
    when these are evaluated. `asked`: there are output times; `ratio` of their ticks are one tick of the grid, and
    `every` of them lie between two (0: they are in the heap).

    Rules with negation: `repeated` says which components are recursive, and `aggregates` which of them begin with
    aggregations. `visits` are the plans for an atom of each predicate, from `visit_starts` on (component, plan, how
    long the rule waits, how its facts stand), `remakes` the plans that derive an atom of it again, and `readers` says
    how rules read the predicate, from `reader_starts` on (see `schedule_changes`). Rules of negations only are
    evaluated as a whole: `plans` has their components, plans, and waits. `standing`: predicates that stand, and waits.
    """

    query: int
    listing: int
    arity: int
    slice: int
    longest: int
    ahead: int
    dense: bool
    meets_later: bool
    asked: bool
    ratio: int
    every: int
    retention: Array
    persisting: Array
    constraints: Array
    repeated: Array
    aggregates: Array
    visit_starts: Array
    visits: Array
    reader_starts: Array
    readers: Array
    remake_starts: Array
    remakes: Array
    plans: Array
    standing: Array


class Todo(NamedTuple):
    """Steps to take: of each the clock, the last time, whether its time is over, the ends of its records and times."""

    clocks: Array
    lasts: Array
    over: Array
    records: Array
    record_ends: Array
    times: Array
    time_ends: Array


#: Columns of `taken`: facts held after the step (with an end, and without), its nanoseconds, the end of its answers.
FINITE, ENDLESS_HELD, TOOK, ANSWERS_END, NOTES = range(5)


@inlined_kernel
def _next_time(at: Array, heap: Array, every: int) -> Number:
    """Return the next output time, or POS_INF."""
    if every:
        return at[NEXT_TIME]
    return heap[0] if at[N_TIMES] else POS_INF


@inlined_kernel
def reached_time(at: Array) -> Number:
    """Return the position that time has reached: the clock, or the end of the stream."""
    return at[NOW] if at[STOP] == POS_INF else at[STOP]


@kernel
def _queue_plans(at: Array, task: Task, tables: Tables, queue: Array) -> Number:
    """Queue plans of a component for scheduled atoms, each for the times that have become complete for it.

    Return where the queue ends.
    """
    agenda, group, since, target, end = tables.agenda, at[GROUP], at[EVALUATED], at[TARGET], 0
    if at[PLACE] == 0:
        for i in range(len(task.plans)):
            if task.plans[i, 0] == group:
                _write_request(task.plans[i, 1], task.plans[i, 2], 0, since, target, -1, queue, end)
                end += 4
    if at[PLACE] == agenda.lengths[RULES]:
        while at[REMADE_PLACE] < agenda.lengths[REMADE] and end < ASKED:
            atom = agenda.lists[at[REMADE_PLACE], REMADE]
            end = _request_for_atom(atom, group, since, target, task.remake_starts, task.remakes, tables, queue, end)
            at[REMADE_PLACE] += 1
    while at[PLACE] < agenda.lengths[RULES] and end < ASKED:
        atom = agenda.lists[at[PLACE], RULES]
        end = _request_for_atom(atom, group, since, target, task.visit_starts, task.visits, tables, queue, end)
        at[PLACE] += 1
    return end


@inlined_kernel
def _request_for_atom(
    atom: int, group: int, since: int, target: int, starts: Array, plans: Array, tables: Tables, queue: Array, end: int
) -> Number:
    """Queue the plans of a component for one atom; return where the queue ends."""
    pred = tables.atoms[atom, PRED]
    for i in range(starts[pred], starts[pred + 1]):
        if plans[i, 0] == group:
            _write_request(plans[i, 1], plans[i, 2], plans[i, 3], since, target, atom, queue, end)
            end += 4
    return end


@inlined_kernel
def _write_request(
    plan: int, wait: int, stands: int, since: int, target: int, atom: int, queue: Array, end: int
) -> None:
    queue[end] = -1 - plan
    queue[end + 1] = NEG_INF if since == NEG_INF else since - wait + (0 if stands & VISITS else 1)
    queue[end + 2] = POS_INF if stands & PUSHES else target - wait
    queue[end + 3] = atom


@inlined_kernel
def _run_plans(
    code: Code, tables: Tables, task: Task, at: Array, queue: Array, following: Array, later: Array
) -> tuple[int, bool]:
    """Run the plan machine over the queue; keep its positions in `at`.

    Return why it stopped, and whether the queues have changed places.
    """
    status, turned, at[POSITION], at[END], at[FOLLOWING_END], at[LATER_END] = run(
        code,
        tables,
        NEG_INF,
        max(at[NOW], at[FRONTIER]),
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
    return status, turned


@inlined_kernel
def _answer_at_times(at: Array, task: Task, tables: Tables, heap: Array, found: Found, until: int) -> bool:
    """Write the atoms that hold at each output time up to `until`; return False where there is no room."""
    t = _next_time(at, heap, task.every)
    while t < POS_INF and to_grid_position(t, task.ratio, task.dense) <= until:
        at[NEEDED] = at[N_FOUND] + tables.preds[task.query, SIZE]
        if at[NEEDED] > len(found.lo):
            return False
        if task.every:
            at[NEXT_TIME] += task.every
        else:
            pop_time(heap, at[N_TIMES])
            at[N_TIMES] -= 1
        if t > at[LAST_TIME]:
            at[LAST_TIME] = t
            if task.dense or t % task.ratio == 0:
                when = 2 * t if task.dense else t // task.ratio
                place = to_grid_position(t, task.ratio, task.dense)
                at[N_FOUND] = write_holding(
                    first_entry(task.listing, tables), place, when, task.arity, tables, found, at[N_FOUND]
                )
        t = _next_time(at, heap, task.every)
    return True


@inlined_kernel
def _answer_intervals(at: Array, task: Task, tables: Tables, found: Found, until: int) -> bool:
    """Write the answers that have ended before `until`; return False where there is no room."""
    advance_to(until + task.ahead, ANSWERS, tables.agenda)
    if at[N_FOUND] + tables.meta[HELD] > len(found.lo):  # else there is room even if all that is held has ended
        at[NEEDED] = at[N_FOUND] + count_ended(at[REPORTED], until, tables)
        if at[NEEDED] > len(found.lo):
            return False
    # Facts that a negation derives end where it was evaluated last, and may go on; those that stand have no end.
    stands = tables.preds[task.query, MAY_STAND]
    open_end = at[EVALUATED] if task.persisting[task.query] and not stands else NEG_INF
    at[N_FOUND] = write_ended(at[REPORTED], until, task.ahead, open_end, task.arity, tables, found, at[N_FOUND])
    at[REPORTED] = until
    return True


@inlined_kernel
def _must_evaluate(at: Array, task: Task, tables: Tables, heap: Array) -> bool:
    """Return whether rules with negation have to be evaluated up to the frontier, or may be put off."""
    frontier, agenda = at[FRONTIER], tables.agenda
    if frontier <= at[EVALUATED]:
        return False
    if task.asked and to_grid_position(_next_time(at, heap, task.every), task.ratio, task.dense) <= frontier:
        return True
    change = min(next_time(RULES, agenda), next_time(ANSWERS, agenda), at[CHANGES])
    if frontier >= change or tables.meta[NEWS] != at[JUDGED] or at[STOP] != POS_INF or task.slice:
        return True
    # Facts beyond this position have not met the results of aggregations and negations yet.
    return bool(task.meets_later and matters_beyond(at[EVALUATED], task.retention, task.persisting, tables.preds))


@kernel
def _aim(at: Array, task: Task, tables: Tables, quiet: bool) -> None:
    """Choose up to where to evaluate next, and look at what changes by then.

    With a recursion through time, no farther than what it reads is known or, if nothing new holds in it (`quiet`) and
    nothing in it may go on, than something that it reads changes.
    """
    at[TARGET] = at[FRONTIER]
    if task.slice and at[EVALUATED] != NEG_INF:
        target = at[EVALUATED] + task.slice
        if quiet and not recursion_may_go_on(tables):
            target = max(target, min(next_time(RULES, tables.agenda), at[CHANGES]) - 1)
        at[TARGET] = min(at[FRONTIER], target)
    advance_to(at[TARGET], RULES, tables.agenda)
    for i in range(len(task.standing)):
        pred, wait = task.standing[i, 0], task.standing[i, 1]
        tables.preds[pred, KNOWN_TO] = at[EVALUATED] - wait if at[EVALUATED] != NEG_INF else NEG_INF
        tables.preds[pred, AIM] = at[TARGET] - wait
    at[GROUP], at[PLACE], at[REMADE_PLACE], at[FRESH] = 0, 0, 0, 1
    at[BEFORE], at[KNOWN] = tables.meta[NEWS], tables.meta[RECURSION_NEWS]


@kernel
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
) -> tuple[int, int, bool]:
    """Take steps up to `stop`, and record each in a row of `taken`.

    Return why the call ends, the step that comes next or is under way, and whether the queues have changed places.
    """
    meta, preds, agenda = tables.meta, tables.preds, tables.agenda
    n_groups = len(task.repeated)
    scratch, turned = tables.scratch[0], False
    while step < stop:
        if at[PHASE] == BEGIN:
            at[BEGAN] = read_nanoseconds(scratch)
            first = todo.time_ends[step - 1] if step else 0
            if at[N_TIMES] + todo.time_ends[step] - first > len(heap):
                return QUEUE_FULL, step, turned
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
                return QUEUE_FULL, step, turned
            end = 0
            if waiting:
                end, at[LATER_END], meta[NEXT_DUE] = move_due(later, waiting, horizon, preds, queue)
            for i in range(size):
                queue[end + i] = todo.records[first + i]
            at[POSITION], at[END], at[FOLLOWING_END] = 0, end + size, 0
            at[COMPLETED] = n_groups > 0 and begins_by(frontier, queue, end + size, preds)
            at[PHASE] = WORK

        if at[PHASE] == WORK:
            if at[END] or at[FOLLOWING_END]:
                status, changed = _run_plans(code, tables, task, at, queue, following, later)
                if changed:
                    queue, following, turned = following, queue, not turned
                if status == GROW:
                    return STORE_FULL, step, turned
                if status >= NO_ROOM:
                    return NO_SPACE + status - NO_ROOM, step, turned
                at[POSITION], at[END] = 0, 0
                if tables.log[0, 0]:
                    return LOGGED, step, turned
            at[PHASE] = ANSWER
            if n_groups and _must_evaluate(at, task, tables, heap):
                _aim(at, task, tables, False)
                at[PHASE] = EVALUATE

        if at[PHASE] == EVALUATE:
            # The queues change places below, so both need room for the requests.
            requests = 4 * (len(task.plans) + len(task.visits) + len(task.remakes)) + ASKED
            if requests > min(len(queue), len(following)):
                return QUEUE_FULL, step, turned
            while at[GROUP] < n_groups:
                group = at[GROUP]
                if at[FRESH]:
                    at[POSITION], at[END], at[FOLLOWING_END], at[FRESH] = 0, _queue_plans(at, task, tables, queue), 0, 0
                    if task.aggregates[group]:
                        return AGGREGATE, step, turned
                status, changed = _run_plans(code, tables, task, at, queue, following, later)
                if changed:
                    queue, following, turned = following, queue, not turned
                if status == GROW:
                    return STORE_FULL, step, turned
                if status >= NO_ROOM:
                    return NO_SPACE + status - NO_ROOM, step, turned
                if status == MUCH_EVALUATED:
                    queue, following, turned = following, queue, not turned
                    at[POSITION], at[END], at[FOLLOWING_END] = 0, at[FOLLOWING_END], 0
                    continue
                at[POSITION], at[END] = 0, 0
                if tables.log[0, 0]:
                    return LOGGED, step, turned
                at[FRESH] = 1
                if at[PLACE] < agenda.lengths[RULES] or at[REMADE_PLACE] < agenda.lengths[REMADE]:
                    continue
                # Repeat a component whose rules may feed each other until nothing is new.
                if meta[NEWS] == at[BEFORE] or not task.repeated[group]:
                    at[GROUP] += 1
                at[PLACE], at[REMADE_PLACE], at[BEFORE] = 0, 0, meta[NEWS]
                if at[GROUP] == n_groups:
                    at[EVALUATED] = at[TARGET]
                    for i in range(len(task.standing)):
                        preds[task.standing[i, 0], KNOWN_TO] = preds[task.standing[i, 0], AIM]
                    schedule_changes(at[TARGET], task.reader_starts, task.readers, task.persisting, task.dense, tables)
                    if at[TARGET] < frontier:
                        _aim(at, task, tables, meta[RECURSION_NEWS] == at[KNOWN])
            # A fact that ends where everything is complete looks as if it went on, like one that a negation derives.
            at[JUDGED] = -1 if at[COMPLETED] else meta[NEWS]
            at[PHASE] = ANSWER

        if at[PHASE] == ANSWER:
            # Where evaluation was put off nothing begins or ends, so no answer does; persisting facts stay as they are.
            until = (at[EVALUATED] if n_groups else frontier) - task.ahead
            if task.asked:
                if not _answer_at_times(at, task, tables, heap, found, min(until, at[STOP])):
                    return ANSWERS_FULL, step, turned
            elif at[STOP] != POS_INF:
                return STOPPED, step, turned
            elif until > at[REPORTED] and not _answer_intervals(at, task, tables, found, until):
                return ANSWERS_FULL, step, turned
            at[PHASE] = LEAVE

        for number in task.constraints:
            if preds[number, SIZE] and has_begun(number, reached_time(at), tables.atoms, tables.iv, meta):
                return VIOLATED, step, turned
        base = min(frontier, at[EVALUATED]) if n_groups else frontier
        fresh = meta[NEWS] - at[FORGOTTEN]
        held = meta[HELD]
        if base != NEG_INF and (held <= SMALL or 8 * fresh >= held):
            at[FORGOTTEN] = meta[NEWS]
            at[EMPTY] = forget(tables.atoms, tables.iv, meta, base, task.retention)
        taken[step, FINITE] = meta[HELD] - meta[ENDLESS]
        taken[step, ENDLESS_HELD] = meta[ENDLESS]
        taken[step, TOOK] = read_nanoseconds(scratch) - at[BEGAN]
        taken[step, ANSWERS_END] = at[N_FOUND]
        step += 1
        at[PHASE] = BEGIN
        if at[EMPTY] > FEW and at[EMPTY] > EMPTY_PER_HELD * meta[HELD]:
            return SPARSE, step, turned
        if at[N_FOUND] > MUCH:
            return ENOUGH, step, turned
    return DONE, step, turned
