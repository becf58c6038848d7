"""Correct the facts of some keys alone: evaluate them apart from a checkpoint on, and put the result back.

Where a query falls apart by an argument (`compiler.key_arguments`), a correction concerns the keys of its facts only.
Their part of a checkpoint is taken, with the facts that all keys share, and the assertions of these keys since then are
replayed to where the evaluation stands. The part then replaces that of the same keys in the evaluation. So a correction
costs what its keys have: the facts of all others stay as they are.

Checkpoints from after a correction are outdated for its keys. The next correction of such a key goes back farther; a
checkpoint that becomes the oldest one, which has to be true, is corrected first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.key_arguments import find_key_arguments
from tidelog.data.relation import Key, Relation
from tidelog.engine.agenda import ANSWERS, schedule
from tidelog.engine.fact_store import Store
from tidelog.engine.store_parts import replace_part, take_part
from tidelog.engine.store_tables import ARGS, LENGTH, N_ATOMS, START, find_atoms
from tidelog.engine.stream_kernel import CHANGES, CLOSED, EVALUATED, FRONTIER, JUDGED, NOW, REPORTED
from tidelog.errors import TidelogError
from tidelog.language.core_rules import Aggregation
from tidelog.streaming.answer_segments import Difference, TimedRows, compare
from tidelog.streaming.answers import AnswerColumns
from tidelog.streaming.assertion_ledger import start_of
from tidelog.streaming.checkpoints import Checkpoint
from tidelog.streaming.marks import Mark
from tidelog.streaming.query_evaluation import Evaluation

if TYPE_CHECKING:
    from tidelog.engine.running_numbers import RunningNumbers
    from tidelog.streaming.arrivals import Relations
    from tidelog.streaming.corrections import Corrections

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class KeyPlan:
    """How a compiled query falls apart.

    By predicate, as a number and by name with its arity, the argument with the key; by aggregation, the column of rows
    with the key; and the argument of the query.
    """

    form: CompiledProgram
    positions: NDArray[np.int64]
    arguments: Mapping[Key, int | None]
    columns: Mapping[Aggregation, int]
    answer: int


def plan_keys(evaluation: Evaluation) -> KeyPlan | None:
    """Return how the query of an evaluation falls apart; None if it does not, or if its state cannot be divided."""
    form = evaluation.form
    arguments = find_key_arguments(form)
    if arguments is None or evaluation.output is not None:
        return None
    columns: dict[Aggregation, int] = {}
    for step in form.aggregations:
        position = arguments[step.input.predicate]
        if position is None or not _can_take_parts(evaluation.numbers, step):
            return None
        columns[step] = step.group.index(position)
    positions = np.array([-1 if at is None else at for at in map(arguments.__getitem__, form.names)], np.int64)
    answer = arguments[form.query]
    assert answer is not None, "the query is keyed"
    by_key = {(name, form.arities[name]): at for name, at in arguments.items()}
    return KeyPlan(form, positions, by_key, columns, answer)


def _can_take_parts(numbers: RunningNumbers | None, step: Aggregation) -> bool:
    from tidelog.numeric.aggregation import Aggregator

    aggregator = None if numbers is None else numbers.steps.aggregators[step]
    return isinstance(aggregator, Aggregator) and aggregator.can_take_parts


def find_keys(plan: KeyPlan, key: Key, rows: Relation) -> set[int] | None:
    """Return the keys that rows of a predicate belong to; None if they belong to all."""
    if key not in plan.arguments:
        return set()
    position = plan.arguments[key]
    return None if position is None else set(rows.args[position].tolist())


def correct_keys(
    corrections: Corrections, plan: KeyPlan, keys: set[int], first_late: int, first_epoch: int
) -> Difference | None:
    """Replay the assertions of some keys; return how the answers changed, or None if everything has to be replayed."""
    evaluation = corrections.evaluation
    complete_evaluation(evaluation)
    place = find_base(corrections, keys, first_late, first_epoch)
    base = corrections.checkpoints[place]
    wanted = mark_keys(evaluation, keys)
    rows = corrections.ledger.select_keys(base.epoch, plan.arguments, wanted)
    part = _evaluate_part(corrections, plan, base.mark, wanted, rows, evaluation.at.copy())
    if part is None:
        return None
    wanted = mark_keys(evaluation, keys)
    part.replace_in(evaluation, plan, wanted)
    before = corrections.answers.select_keys(base.epoch, plan.answer, wanted)
    after = select_answers(TimedRows.of(part.found), plan, wanted)
    replace_answers(corrections, plan, place, keys, after)
    corrections.replays += 1
    return compare(before, [after], evaluation.task.arity, evaluation.grid.dense)


def find_base(corrections: Corrections, keys: set[int], first_late: int, first_epoch: int) -> int:
    """Return the place of the last checkpoint that corrections of some keys do not concern."""
    checkpoints = corrections.checkpoints
    place = len(checkpoints) - 1
    while place and not (
        checkpoints[place].frontier < first_late
        and checkpoints[place].epoch < first_epoch
        and checkpoints[place].outdated.isdisjoint(keys)
    ):
        place -= 1
    return place


def select_answers(answers: TimedRows, plan: KeyPlan, wanted: Bools) -> TimedRows:
    """Return the answers of some keys."""
    return TimedRows(answers.rows.where(wanted[answers.rows.args[plan.answer]]), answers.denominator)


def select_rows_of_keys(rows: Relations, plan: KeyPlan, wanted: Bools) -> Relations:
    """Return the rows of some keys, and those that belong to all keys."""
    found: Relations = {}
    for key, relation in rows.items():
        position = plan.arguments[key]
        mine = relation if position is None else relation.select(wanted[relation.args[position]])
        if len(mine):
            found[key] = mine
    return found


def replace_answers(corrections: Corrections, plan: KeyPlan, place: int, keys: set[int], answers: TimedRows) -> None:
    """Replace the answers of some keys since a checkpoint, each in the epoch in which it would have been given.

    Later checkpoints are outdated for these keys.
    """
    base, later = corrections.checkpoints[place], corrections.checkpoints[place + 1 :]
    corrections.answers.drop_keys(base.epoch, plan.answer, mark_keys(corrections.evaluation, keys))
    for checkpoint in later:
        checkpoint.outdated.update(keys)
    rows = answers.rows
    turns = np.searchsorted([int(checkpoint.mark.at[REPORTED]) for checkpoint in later], rows.hi, "right")
    epochs = [*(checkpoint.epoch for checkpoint in later), corrections.epoch]
    for turn in np.unique(turns).tolist():
        corrections.answers.put(epochs[turn], TimedRows(rows.where(turns == turn), answers.denominator))


def repair_checkpoint(
    corrections: Corrections, plan: KeyPlan, base: Checkpoint, target: Checkpoint
) -> Checkpoint | None:
    """Return a checkpoint that is right about its outdated keys, too; None if that is not possible.

    `base` is an older one that is right about all keys.
    """
    evaluation, ledger = corrections.evaluation, corrections.ledger
    wanted = mark_keys(evaluation, target.outdated)
    until = target.now if evaluation.grid.dense else 2 * target.now
    rows: Relations = {}
    for key, relation in ledger.select_keys(base.epoch, plan.arguments, wanted).items():
        begun = start_of(relation.lo) <= until
        if begun.any():
            rows[key] = relation.select(begun)
    part = _evaluate_part(corrections, plan, base.mark, wanted, rows, target.mark.at)
    if part is None:
        return None
    wanted = mark_keys(evaluation, target.outdated)
    mark = target.mark
    replace_part(mark.store, part.store, plan.positions, wanted)
    mark.at[JUDGED], mark.at[CHANGES] = -1, min(mark.at[CHANGES], part.at[CHANGES])
    if mark.numbers is not None and part.numbers is not None and evaluation.numbers is not None:
        numbers = evaluation.numbers.take_all(mark.numbers)
        numbers.replace_part(part.numbers, plan.columns, wanted)
        mark = replace(mark, numbers=numbers.state())
    ledger.move_keys(target.epoch, until, plan.arguments, wanted)
    return Checkpoint(mark, target.epoch)


def complete_evaluation(evaluation: Evaluation) -> None:
    """Evaluate rules up to the frontier where that was put off, since nothing begins or ends until then."""
    at = evaluation.at
    if evaluation.form.waiting and at[EVALUATED] < at[FRONTIER]:
        at[JUDGED] = -1
        quiet = evaluation.quiet
        quiet.clocks[:], quiet.over[:] = at[NOW], at[CLOSED] >= at[NOW]
        found, _, _, _ = evaluation.run(quiet, 0, 1)
        assert not len(found.lo), "no answer ends where evaluation was put off"


@dataclass(frozen=True)
class Part:
    """The evaluation of some keys at a position, and the answers on the way there."""

    store: Store
    at: NDArray[np.int64]
    numbers: RunningNumbers | None
    found: AnswerColumns

    def replace_in(self, evaluation: Evaluation, plan: KeyPlan, wanted: Bools) -> None:
        """Put what belongs to the keys into an evaluation at the same position."""
        store, task = evaluation.store, evaluation.task
        replace_part(store, self.store, plan.positions, wanted)
        # An answer that ends where rules were evaluated last looks as if it went on: look at it again right after.
        found = find_atoms(task.query, store.atoms, store.meta[N_ATOMS])
        found = found[store.atoms[found, LENGTH] > 0]
        found = found[wanted[store.args[store.atoms[found, ARGS] + plan.answer]]]
        ends = store.iv[store.atoms[found, START] + store.atoms[found, LENGTH] - 1, 1]
        for atom, end in zip(found.tolist(), ends.tolist(), strict=True):
            schedule(end + task.ahead + 1, atom, ANSWERS, store.agenda)
        if evaluation.numbers is not None and self.numbers is not None:
            evaluation.numbers.replace_part(self.numbers, plan.columns, wanted)
        evaluation.at[JUDGED], evaluation.at[CHANGES] = -1, min(evaluation.at[CHANGES], self.at[CHANGES])


def mark_keys(evaluation: Evaluation, keys: Iterable[int]) -> Bools:
    """Return for every constant whether it is one of the keys."""
    wanted = np.zeros(len(evaluation.symbols), np.bool_)
    wanted[list(keys)] = True
    return wanted


def is_same_position(one: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    """Return whether two evaluations have come equally far."""
    same = [NOW, CLOSED, FRONTIER, EVALUATED, REPORTED]
    return bool((one[same] == other[same]).all())


@contextmanager
def evaluate_apart(evaluation: Evaluation, plan: KeyPlan, base: Mark, wanted: Bools, rows: int) -> Iterator[Store]:
    """Let an evaluation be that of some keys at a mark for a while, to take about this many rows."""
    live, numbers, at = evaluation.store, evaluation.numbers, evaluation.at.copy()
    store = take_part(base.store, plan.positions, wanted, 2 * rows)
    store.ranks = live.ranks
    if numbers is not None:
        assert base.numbers is not None
        evaluation.numbers = numbers.take_part(base.numbers, plan.columns, wanted)
    evaluation.engine = replace(evaluation.engine, store=store)
    evaluation.at[:] = base.at
    evaluation.at[JUDGED] = -1
    try:
        yield store
    finally:
        live.ranks = store.ranks
        evaluation.engine = replace(evaluation.engine, store=live)
        evaluation.numbers = numbers
        evaluation.at[:] = at


def _evaluate_part(
    corrections: Corrections,
    plan: KeyPlan,
    base: Mark,
    wanted: Bools,
    rows: Relations,
    target: NDArray[np.int64],
) -> Part | None:
    """Evaluate rows of some keys from a mark up to a position; None if it cannot be reached by them alone."""
    evaluation = corrections.evaluation
    try:
        with evaluate_apart(evaluation, plan, base, wanted, sum(map(len, rows.values()))) as store:
            found, _ = corrections.run_rows(rows, int(target[NOW]), bool(target[CLOSED] >= target[NOW]))
            complete_evaluation(evaluation)
            part = Part(store, evaluation.at.copy(), evaluation.numbers, found)
    except TidelogError:
        return None
    return part if is_same_position(part.at, target) else None
