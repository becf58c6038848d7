"""Evaluate many steps with late facts at once: each key as it was before its correction, and as it is afterwards.

Where a query falls apart by keys (`key_replay`), a late fact changes the answers about its key only. So the evaluation
takes all steps of a window in order, as if no fact were late. The keys with late facts are evaluated a second time, all
of them together, from a checkpoint on and with their late facts in place. Up to the step in which the late facts of a
key arrive, its answers are those of the first evaluation; from then on, they are those of the second one. A window ends
before the late facts of a key for the second time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidelog.data.relation import join_relations
from tidelog.engine.fact_store import Rows
from tidelog.engine.store_tables import ARITY, Array, Number
from tidelog.engine.stream_kernel import ANSWERS_END, CLOSED, FRONTIER, NOW, TOOK, Todo
from tidelog.errors import TidelogError
from tidelog.jit import kernel
from tidelog.streaming.answer_changes import ChangeStep
from tidelog.streaming.answer_segments import TimedRows, find_differences
from tidelog.streaming.answers import AnswerColumns
from tidelog.streaming.arrival_order import Arrived
from tidelog.streaming.arrivals import Relations
from tidelog.streaming.corrections import Corrections
from tidelog.streaming.feeding import NO_FACTS
from tidelog.streaming.key_replay import (
    KeyPlan,
    Part,
    complete_evaluation,
    evaluate_apart,
    find_base,
    is_same_position,
    mark_keys,
    replace_answers,
    select_answers,
)
from tidelog.streaming.marks import Mark, go_back, mark_evaluation
from tidelog.streaming.step_layout import Clock, join_steps
from tidelog.timeline.grid import NEG_INF, POS_INF

if TYPE_CHECKING:
    from tidelog.streaming.query_evaluation import Evaluation
    from tidelog.streaming.reasoner import Reasoner

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: The most steps, rows and keys with late facts in a window.
MAX_STEPS, MAX_ROWS, MAX_KEYS = 1 << 13, 1 << 16, 1 << 10
#: Late facts that are looked at together, since windows often end soon.
FEW = 256
#: A delay on the grid with which nothing is late.
UNLIMITED = 1 << 61


@dataclass(frozen=True)
class LateRows:
    """The late facts of a feed: when they arrive, in which step, and their keys (-1: no rule reads them).

    The key is -2 where a fact belongs to all keys.
    """

    arrival: Int64s
    step: Int64s
    key: Int64s

    @staticmethod
    def of(arrived: Arrived, plan: KeyPlan) -> LateRows:
        arrival = np.flatnonzero(arrived.is_behind)
        key = np.full(len(arrival), -1, np.int64)
        numbers = arrived.relation[arrival]
        for number in np.unique(numbers).tolist():
            rows, mine = arrived.relations[number], numbers == number
            if (rows.predicate, rows.arity) in plan.arguments:
                position = plan.arguments[rows.predicate, rows.arity]
                key[mine] = -2 if position is None else rows.args[position][arrived.row[arrival[mine]]]
        return LateRows(arrival, np.searchsorted(arrived.begins, arrival, "right") - 1, key)


@dataclass(frozen=True)
class WindowPlan:
    """Steps from `first` to `stop`, and the step in which each key is corrected."""

    first: int
    stop: int
    steps: dict[int, int]


def plan_window(arrived: Arrived, late: LateRows, first: int) -> WindowPlan | None:
    """Plan the longest window that begins with a step; None if that step has to be taken alone."""
    stop = min(len(arrived.begins), first + MAX_STEPS)
    hard = np.flatnonzero(arrived.is_hard[first:stop])
    stop = first + int(hard[0]) if len(hard) else stop
    stop = min(stop, int(np.searchsorted(arrived.begins, arrived.begins[first] + MAX_ROWS)))
    steps: dict[int, int] = {}
    begin, end = np.searchsorted(late.step, [first, stop]).tolist()
    for step, key in chain.from_iterable(
        zip(late.step[place : min(place + FEW, end)].tolist(), late.key[place : place + FEW].tolist(), strict=False)
        for place in range(begin, end, FEW)
    ):
        if key == -2 or steps.get(key, step) != step or len(steps) == MAX_KEYS:
            stop = step
            break
        if key >= 0:
            steps[key] = step
    return WindowPlan(first, stop, {key: step for key, step in steps.items() if step < stop}) if stop > first else None


@dataclass
class Window:
    """An evaluated window: its steps, how to roll back, and what is to be noted once all steps were given out."""

    corrections: Corrections
    arrived: Arrived
    plan: WindowPlan
    before: Mark
    changes: WindowChanges
    taken: Int64s
    clocks: Int64s
    rows: Relations
    late: Relations
    place: int
    words: int
    given: int = 0

    def roll_back(self, evaluation: Evaluation) -> None:
        """Restore the evaluation to the last step that was given out, and note what came up to there."""
        go_back(evaluation, self.before)
        for step in range(self.plan.first, self.plan.first + self.given):
            end = int(self.arrived.ends[step])
            arrivals, _ = self.arrived.select(int(self.arrived.begins[step]), end, self.corrections)
            self.corrections.take(int(self.arrived.clock[end - 1]), False, arrivals)

    def note(self) -> None:
        """Note the rows and the answers of all steps."""
        corrections, keys = self.corrections, set(self.plan.steps)
        if keys and corrections.plan is not None:
            replace_answers(corrections, corrections.plan, self.place, keys, self.changes.corrected)
            corrections.replays += len(set(self.plan.steps.values()))
        for key, relation in self.late.items():
            corrections.ledger.insert(key, relation, corrections.epoch)
        corrections.note_in_order(self.rows, self.changes.plain, self.words)

    def give_steps(self, reasoner: Reasoner) -> Iterator[ChangeStep]:
        """Yield the steps; before the last one, note everything."""
        mine = slice(self.plan.first, self.plan.stop)
        counts = (self.arrived.ends[mine] - self.arrived.begins[mine]).tolist()
        evaluation, kept = reasoner.evaluation, reasoner.evaluation.count_rows()
        changes = self.changes
        removed, added = changes.removed_begins.tolist(), changes.added_begins.tolist()
        steps = zip(self.clocks.tolist(), counts, self.taken.tolist(), strict=True)
        for number, (clock, count, (finite, endless, spent, _)) in enumerate(steps):
            self.given = number + 1
            if self.given == len(counts):
                reasoner.speculation = None
                self.note()
            reasoner.facts_taken += count
            gained = changes.added, added[number], added[number + 1]
            lost = changes.removed, removed[number], removed[number + 1]
            step = ChangeStep(clock, evaluation.grid, count, finite + kept, endless, spent, gained, NO_FACTS)
            if lost[1] < lost[2]:
                step.take_back(lost)
            reasoner.last_step = step
            yield step


@dataclass(frozen=True)
class WindowChanges:
    """The answers that a window takes back and adds, with where those of each step begin.

    `plain` are the answers about other keys than the corrected ones, `corrected` those about the latter since the
    checkpoint.
    """

    removed: AnswerColumns
    removed_begins: Int64s
    added: AnswerColumns
    added_begins: Int64s
    plain: TimedRows
    corrected: TimedRows


@dataclass(frozen=True)
class Found:
    """Answers of several steps, with the step of each."""

    rows: Rows
    step: Int64s

    def where(self, kept: Bools) -> Found:
        return Found(self.rows.where(kept), self.step[kept])

    def place(self, ended: Int64s) -> Found:
        """Return answers of steps that were taken at once, each in the first step that could give it.

        `ended` are positions, one for each step: answers that end before it are given by then.
        """
        return Found(self.rows, np.searchsorted(ended, self.rows.hi, "right"))


def evaluate_window(
    corrections: Corrections, keys: KeyPlan, arrived: Arrived, late: LateRows, plan: WindowPlan, length: int
) -> Window | None:
    """Evaluate a window; None if its first step has to be taken alone."""
    evaluation = corrections.evaluation
    first, end = int(arrived.begins[plan.first]), int(arrived.ends[plan.stop - 1])
    behind = arrived.is_behind[first:end]
    rows = arrived.gather(first + np.flatnonzero(~behind))
    late_rows = arrived.gather(first + np.flatnonzero(behind))
    batch = evaluation.batch(corrections.as_dataset(rows), evaluation.clock, length, delay=UNLIMITED, merged=False)
    clocks = arrived.clock[arrived.ends[plan.first : plan.stop] - 1]
    if not np.array_equal(batch.todo.clocks, clocks):
        return None
    complete_evaluation(evaluation)
    before = mark_evaluation(evaluation, numbers=True)
    if evaluation.numbers is not None:
        # Aggregations cost much in every step: as in a stream without corrections, take many at once.
        batch = join_steps(batch, np.array([len(clocks) - 1]))
    begin = evaluation.at.copy()
    try:
        found, taken = _run_steps(evaluation, batch.todo)
        complete_evaluation(evaluation)
        place, part, again = len(corrections.checkpoints) - 1, None, None
        if plan.steps:
            first_late = min(int(corrections.first_positions(r).min()) for r in late_rows.values())
            place = find_base(corrections, set(plan.steps), first_late, POS_INF)
            part, again = _evaluate_again(corrections, keys, place, set(plan.steps), late_rows, batch.todo, begin)
            if part is None or not is_same_position(part.at, evaluation.at):
                go_back(evaluation, before)
                return None
    except TidelogError:
        go_back(evaluation, before)
        return None
    if evaluation.numbers is not None:
        ended = np.maximum(clocks - 1 - evaluation.task.longest, begin[FRONTIER]) - evaluation.task.ahead
        found, again = found.place(ended), None if again is None else again.place(ended)
        taken = np.repeat(taken[-1:], len(clocks), axis=0)
        taken[:, TOOK] //= len(clocks)
    steps = {key: step - plan.first for key, step in plan.steps.items()}
    if part is not None:
        part.replace_in(evaluation, keys, mark_keys(evaluation, steps))
    changes = _compare(corrections, keys, steps, place, found, again, part, len(clocks))
    words = len(batch.todo.records)
    return Window(corrections, arrived, plan, before, changes, taken, clocks, rows, late_rows, place, words)


def _run_steps(evaluation: Evaluation, todo: Todo) -> tuple[Found, Int64s]:
    """Take steps; return the answers and the records of all of them."""
    parts, steps, records, done, count = [], [], [], 0, len(todo.clocks)
    while done < count:
        found, taken, stop, _ = evaluation.run(todo, done, count)
        taken = taken[done:stop]
        parts.append(found.rows(0, len(found.lo)))
        steps.append(np.repeat(np.arange(done, stop), np.diff(taken[:, ANSWERS_END], prepend=0)))
        records.append(taken)
        done = stop
    return Found(Rows.concatenate(parts, evaluation.task.arity), np.concatenate(steps)), np.concatenate(records)


def _evaluate_again(
    corrections: Corrections,
    plan: KeyPlan,
    place: int,
    keys: set[int],
    late: Relations,
    todo: Todo,
    begin: Int64s,
) -> tuple[Part | None, Found | None]:
    """Evaluate the steps for some keys, with their late facts in place; return the result, and answers in the steps.

    The answers of the result are those from before.
    """
    evaluation, base = corrections.evaluation, corrections.checkpoints[place]
    wanted = mark_keys(evaluation, keys)
    rows, ahead = corrections.ledger.select_keys(base.epoch, plan.arguments, wanted), {}
    for key, relation in late.items():
        begun = corrections.first_positions(relation) <= begin[NOW]
        if begun.any():
            rows[key] = join_relations([*([rows[key]] if key in rows else []), relation.select(begun)])
        ahead[key] = relation.select(~begun)
    own = _select_steps(corrections, plan, wanted, todo, ahead)
    with evaluate_apart(evaluation, plan, base.mark, wanted) as part:
        earlier = evaluation.no_answers()
        if begin[NOW] > NEG_INF:
            earlier, _ = corrections.run_rows(rows, int(begin[NOW]), bool(begin[CLOSED] >= begin[NOW]))
        complete_evaluation(evaluation)
        if not is_same_position(evaluation.at, begin):
            return None, None
        found, _ = _run_steps(evaluation, own)
        complete_evaluation(evaluation)
        return Part(part, evaluation.at.copy(), evaluation.numbers, earlier), found


def _select_steps(corrections: Corrections, plan: KeyPlan, wanted: Bools, todo: Todo, late: Relations) -> Todo:
    """Return the steps with the records of some keys and the shared ones, and with late facts where they begin."""
    evaluation = corrections.evaluation
    preds = evaluation.store.preds
    more = np.zeros(0, np.int64)
    if any(map(len, late.values())):
        clock = Clock(int(todo.clocks[-1]), NEG_INF, NEG_INF)
        more = evaluation.batch(corrections.as_dataset(late), clock, fixed=True, delay=0, merged=False).todo.records
    places, at = [], 0
    while at < len(more):
        places.append(at)
        at += 3 + int(preds[more[at], ARITY])
    order = np.array(sorted(places, key=lambda place: int(more[place + 1])), np.int64)
    records = np.empty(len(todo.records) + len(more), np.int64)
    ends = np.empty(len(todo.record_ends), np.int64)
    end = _select_records(todo, preds, plan.positions, wanted, more, order, records, ends)
    return todo._replace(records=records[:end], record_ends=ends)


@kernel
def _select_records(
    todo: Todo, preds: Array, positions: Array, wanted: Array, late: Array, order: Array, records: Array, ends: Array
) -> Number:
    """Write the records of some keys and the shared ones, step by step, and the late ones by where they begin.

    `order` are the places of the late ones. Return where the records end.
    """
    at, end, next_late = 0, 0, 0
    for step in range(len(ends)):
        while at < todo.record_ends[step]:
            position, width = positions[todo.records[at]], 3 + preds[todo.records[at], ARITY]
            if position < 0 or wanted[todo.records[at + 3 + position]]:
                for i in range(width):
                    records[end + i] = todo.records[at + i]
                end += width
            at += width
        while next_late < len(order) and late[order[next_late] + 1] <= todo.clocks[step]:
            width = 3 + preds[late[order[next_late]], ARITY]
            for i in range(width):
                records[end + i] = late[order[next_late] + i]
            end += width
            next_late += 1
        ends[step] = end
    return end


def _compare(
    corrections: Corrections,
    plan: KeyPlan,
    steps: dict[int, int],
    place: int,
    found: Found,
    again: Found | None,
    part: Part | None,
    count: int,
) -> WindowChanges:
    """Compare the answers of both evaluations; `steps` says in which step each key is corrected."""
    evaluation = corrections.evaluation
    arity, denominator = evaluation.task.arity, evaluation.grid.denominator
    turn = np.full(len(evaluation.symbols), POS_INF, np.int64)
    turn[list(steps)] = list(steps.values())
    wanted = turn < POS_INF
    due = turn[found.rows.args[plan.answer]]
    kept, removed, added = found.where(found.step < due), [], [found.where(found.step < due)]
    corrected = TimedRows(Rows.empty(arity), denominator)
    if part is not None and again is not None:
        mine = again.where(wanted[again.rows.args[plan.answer]])
        due = turn[mine.rows.args[plan.answer]]
        added.append(mine.where(mine.step >= due))
        earlier = select_answers(TimedRows.of(part.found), plan, wanted).rows
        new = Rows.concatenate([earlier, mine.rows.where(mine.step < due)], arity)
        known = corrections.answers.select_keys(corrections.checkpoints[place].epoch, plan.answer, wanted)
        given = kept.rows.where(wanted[kept.rows.args[plan.answer]])
        old = Rows.concatenate([*(some.rows for some in known), given], arity)
        gone, fresh = find_differences(old, new)
        gone_rows, fresh_rows = old.where(gone), new.where(fresh)
        removed.append(Found(gone_rows, turn[gone_rows.args[plan.answer]]))
        added.append(Found(fresh_rows, turn[fresh_rows.args[plan.answer]]))
        corrected = TimedRows(Rows.concatenate([earlier, mine.rows], arity), denominator)
    plain = found.rows.where(~wanted[found.rows.args[plan.answer]])
    return WindowChanges(
        *_sort_by_step(evaluation, removed, count),
        *_sort_by_step(evaluation, added, count),
        TimedRows(plain, denominator),
        corrected,
    )


def _sort_by_step(evaluation: Evaluation, parts: list[Found], count: int) -> tuple[AnswerColumns, Int64s]:
    """Return answers in the order of their steps, and where those of each step begin."""
    step = np.concatenate([np.zeros(0, np.int64), *(part.step for part in parts)])
    rows = Rows.concatenate([part.rows for part in parts], evaluation.task.arity)
    order = np.argsort(step, kind="stable")
    begins = np.searchsorted(step[order], np.arange(count + 1))
    return evaluation.answers(Rows(rows.args[:, order], rows.lo[order], rows.hi[order])), begins
