"""Evaluate many steps with late facts at once: each key as it was before its correction, and as it is afterwards.

Where a query falls apart by keys (`key_replay`), a late fact changes the answers about its key only. So the evaluation
takes all steps of a window in order, as if no fact were late. The keys with late facts are evaluated a second time, all
of them together, from a checkpoint on and with their late facts in place. Up to the step in which the late facts of a
key arrive, its answers are those of the first evaluation; from then on, they are those of the second one. The few keys
with late facts in a second step are evaluated in a second round, with all of these facts in place, and so on.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidelog.data.relation import join_relations
from tidelog.engine.fact_store import Rows
from tidelog.engine.store_tables import ARITY, Array, Number
from tidelog.engine.stream_kernel import CLOSED, NOW, Todo
from tidelog.errors import TidelogError
from tidelog.jit import kernel
from tidelog.streaming.answer_changes import ChangeStep
from tidelog.streaming.answer_segments import TimedRows, find_differences
from tidelog.streaming.answers import AnswerColumns, StepColumns
from tidelog.streaming.arrival_order import Arrived
from tidelog.streaming.arrivals import Relations
from tidelog.streaming.corrections import Corrections
from tidelog.streaming.feeding import NO_FACTS
from tidelog.streaming.joined_steps import Found, find_ends, find_pieces, repeat_records, run_steps
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
    select_rows_of_keys,
)
from tidelog.streaming.marks import Mark, go_back, mark_evaluation
from tidelog.streaming.step_layout import Clock, join_steps
from tidelog.timeline.grid import NEG_INF, POS_INF

if TYPE_CHECKING:
    from tidelog.streaming.query_evaluation import Evaluation
    from tidelog.streaming.reasoner import Reasoner

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: Steps of a feed; in the end the last of them, if the caller has used the reasoner after it.
GivenSteps = Generator[ChangeStep, None, ChangeStep | None]
#: The most steps, rows and keys with late facts in a window, and the most corrections of one key.
MAX_STEPS, MAX_ROWS, MAX_KEYS, MAX_ROUNDS = 1 << 13, 1 << 17, 1 << 11, 8
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

    def select(self, steps: dict[int, int], first: int, stop: int) -> Int64s:
        """Return the arrivals from one step to before another that belong to keys, each up to a step of its own."""
        begin, end = np.searchsorted(self.step, [first, stop]).tolist()
        last = np.full(int(self.key.max(initial=-1)) + 1, -1, np.int64)
        last[list(steps)] = list(steps.values())
        key, step = self.key[begin:end], self.step[begin:end]
        return self.arrival[begin:end][(key >= 0) & (step <= last[key])]


@dataclass(frozen=True)
class WindowPlan:
    """Steps from `first` to `stop`, and by round the step in which each key is corrected.

    The first round has all keys with late facts, the second one those with late facts in a second step, and so on.
    """

    first: int
    stop: int
    rounds: list[dict[int, int]]


def plan_window(arrived: Arrived, late: LateRows, first: int) -> WindowPlan | None:
    """Plan the longest window that begins with a step; None if that step has to be taken alone."""
    stop = min(len(arrived.begins), first + MAX_STEPS)
    hard = np.flatnonzero(arrived.is_hard[first:stop])
    stop = first + int(hard[0]) if len(hard) else stop
    stop = min(stop, int(np.searchsorted(arrived.begins, arrived.begins[first] + MAX_ROWS)))
    rounds: list[dict[int, int]] = [{}]
    corrected: dict[int, int] = {}
    begin, end = np.searchsorted(late.step, [first, stop]).tolist()
    for step, key in chain.from_iterable(
        zip(late.step[place : min(place + FEW, end)].tolist(), late.key[place : place + FEW].tolist(), strict=False)
        for place in range(begin, end, FEW)
    ):
        count = corrected.get(key, 0)
        if key == -1 or (count and rounds[count - 1][key] == step):
            continue
        if key == -2 or count == MAX_ROUNDS or (not count and len(corrected) == MAX_KEYS):
            stop = step
            break
        if count == len(rounds):
            rounds.append({})
        rounds[count][key], corrected[key] = step, count + 1
    kept = [{key: step for key, step in steps.items() if step < stop} for steps in rounds]
    return WindowPlan(first, stop, [steps for steps in kept if steps]) if stop > first else None


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
        corrections, rounds = self.corrections, self.plan.rounds
        if rounds and corrections.plan is not None:
            replace_answers(corrections, corrections.plan, self.place, set(rounds[0]), self.changes.corrected)
            corrections.replays += len({step for steps in rounds for step in steps.values()})
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
        shared = StepColumns(evaluation.grid, changes.added)
        steps = zip(self.clocks.tolist(), counts, self.taken.tolist(), strict=True)
        for number, (clock, count, (finite, endless, spent, _)) in enumerate(steps):
            self.given = number + 1
            if self.given == len(counts):
                reasoner.speculation = None
                self.note()
            reasoner.facts_taken += count
            numbers = clock, count, finite + kept, endless, spent, added[number], added[number + 1]
            lost = changes.removed, removed[number], removed[number + 1]
            step = ChangeStep(shared, numbers, NO_FACTS)
            if lost[1] < lost[2]:
                step.take_back(lost)
            reasoner.last_step = step
            yield step


def give_window(reasoner: Reasoner, window: Window) -> GivenSteps:
    """Yield the steps of a window; stop if the caller has used the reasoner between them, and will do so again."""
    reasoner.speculation = window if len(window.clocks) > 1 else None
    try:
        for step in window.give_steps(reasoner):
            yield step
            if reasoner.speculation is not window and window.given < len(window.clocks):
                return step
    finally:
        if reasoner.speculation is window:
            reasoner.roll_back()
    return step


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
class Round:
    """An evaluation of some keys: the step of the window from which on its answers count, by key, and these answers.

    `earlier` are the answers from before the window, since the checkpoint.
    """

    steps: dict[int, int]
    part: Part
    earlier: Rows
    found: Found


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
    together, last = batch, np.arange(len(clocks))
    if evaluation.numbers is not None:
        # Aggregations cost much in every step: as in a stream without corrections, take many at once.
        last = find_pieces(batch.todo.record_ends)
        together, batch = join_steps(batch, last), join_steps(batch, last[-1:])
    begin = evaluation.at.copy()
    place, rounds = len(corrections.checkpoints) - 1, []
    try:
        found, taken, _ = run_steps(evaluation, together.todo)
        complete_evaluation(evaluation)
        if plan.rounds:
            first_late = min(int(corrections.first_positions(r).min()) for r in late_rows.values())
            place = find_base(corrections, set(plan.rounds[0]), first_late, POS_INF)
            # The keys of later rounds are among those of the first one.
            wanted = mark_keys(evaluation, plan.rounds[0])
            known = corrections.ledger.select_keys(corrections.checkpoints[place].epoch, keys.arguments, wanted)
            todo = _select_steps(corrections, keys, wanted, batch.todo, {})
        for steps in plan.rounds:
            mine = arrived.gather(late.select(steps, plan.first, plan.stop))
            again = _evaluate_again(corrections, keys, place, steps, known, mine, todo, begin)
            if again is None or not is_same_position(again.part.at, evaluation.at):
                go_back(evaluation, before)
                return None
            rounds.append(again)
    except TidelogError:
        go_back(evaluation, before)
        return None
    if evaluation.numbers is not None:
        ended = find_ends(evaluation, clocks, begin)
        found = found.place(ended)
        rounds = [replace(again, found=again.found.place(ended)) for again in rounds]
        taken = repeat_records(taken, np.diff(last, prepend=-1))
    for again in rounds:
        again.part.replace_in(evaluation, keys, mark_keys(evaluation, again.steps))
    changes = _compare(corrections, keys, plan.first, place, found, rounds, len(clocks))
    words = len(batch.todo.records)
    return Window(corrections, arrived, plan, before, changes, taken, clocks, rows, late_rows, place, words)


def _evaluate_again(
    corrections: Corrections,
    plan: KeyPlan,
    place: int,
    steps: dict[int, int],
    known: Relations,
    late: Relations,
    todo: Todo,
    begin: Int64s,
) -> Round | None:
    """Evaluate the steps for some keys, with their late facts in place; None if that is not possible.

    `known` are the assertions since the checkpoint of these keys, and perhaps of others.
    """
    evaluation, base = corrections.evaluation, corrections.checkpoints[place]
    wanted = mark_keys(evaluation, steps)
    rows, ahead = select_rows_of_keys(known, plan, wanted), {}
    for key, relation in late.items():
        begun = corrections.first_positions(relation) <= begin[NOW]
        if begun.any():
            rows[key] = join_relations([*([rows[key]] if key in rows else []), relation.select(begun)])
        ahead[key] = relation.select(~begun)
    own = _select_steps(corrections, plan, wanted, todo, ahead)
    expected = sum(map(len, rows.values())) + len(own.records) // 4
    with evaluate_apart(evaluation, plan, base.mark, wanted, expected) as part:
        earlier = evaluation.no_answers()
        if begin[NOW] > NEG_INF:
            earlier, _ = corrections.run_rows(rows, int(begin[NOW]), bool(begin[CLOSED] >= begin[NOW]))
        complete_evaluation(evaluation)
        if not is_same_position(evaluation.at, begin):
            return None
        found, _, _ = run_steps(evaluation, own)
        complete_evaluation(evaluation)
        result = Part(part, evaluation.at.copy(), evaluation.numbers, earlier)
    wanted = mark_keys(evaluation, steps)
    mine = found.where(wanted[found.rows.args[plan.answer]])
    return Round(steps, result, select_answers(TimedRows.of(earlier), plan, wanted).rows, mine)


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
    first: int,
    place: int,
    found: Found,
    rounds: list[Round],
    count: int,
) -> WindowChanges:
    """Compare the answers of the evaluation in order with those of the rounds; `first` is the first step."""
    evaluation = corrections.evaluation
    arity, column = evaluation.task.arity, plan.answer
    # By round and constant, the step from which on its answers count; in order, that is the first one for all.
    turns = [np.zeros(len(evaluation.symbols), np.int64)]
    for again in rounds:
        turns.append(np.full(len(evaluation.symbols), POS_INF, np.int64))
        turns[-1][list(again.steps)] = np.array(list(again.steps.values())) - first
    turns.append(np.full(len(evaluation.symbols), POS_INF, np.int64))
    known = corrections.answers.select_keys(corrections.checkpoints[place].epoch, column, turns[1] < POS_INF)
    earlier = [Rows.concatenate([part.rows for part in known], arity), *(again.earlier for again in rounds)]
    given = [found, *(again.found for again in rounds)]
    removed: list[Found] = []
    added: list[Found] = []
    corrected: list[Rows] = []
    for number, (turn, next_turn) in enumerate(pairwise(turns)):
        step, key = given[number].step, given[number].rows.args[column]
        until = given[number].where(step < next_turn[key])
        added.append(until.where(until.step >= turn[until.rows.args[column]]))
        if number:
            rows = Rows.concatenate([earlier[number], given[number].rows], arity)
            corrected.append(rows.where(next_turn[rows.args[column]] == POS_INF))
        if number < len(rounds):
            following = given[number + 1]
            new = following.rows.where(following.step < next_turn[following.rows.args[column]])
            old = Rows.concatenate([earlier[number], until.rows], arity)
            old = old.where(next_turn[old.args[column]] < POS_INF)
            new = Rows.concatenate([earlier[number + 1], new], arity)
            for rows, which, target in zip((old, new), find_differences(old, new), (removed, added), strict=True):
                rows = rows.where(which)
                target.append(Found(rows, next_turn[rows.args[column]]))
    denominator = evaluation.grid.denominator
    return WindowChanges(
        *_sort_by_step(evaluation, removed, count),
        *_sort_by_step(evaluation, added, count),
        TimedRows(found.rows.where(turns[1][found.rows.args[column]] == POS_INF), denominator),
        TimedRows(Rows.concatenate(corrected, arity), denominator),
    )


def _sort_by_step(evaluation: Evaluation, parts: list[Found], count: int) -> tuple[AnswerColumns, Int64s]:
    """Return answers in the order of their steps, and where those of each step begin."""
    step = np.concatenate([np.zeros(0, np.int64), *(part.step for part in parts)])
    rows = Rows.concatenate([part.rows for part in parts], evaluation.task.arity)
    order = np.argsort(step, kind="stable")
    begins = np.searchsorted(step[order], np.arange(count + 1))
    return evaluation.answers(Rows(rows.args[:, order], rows.lo[order], rows.hi[order])), begins
