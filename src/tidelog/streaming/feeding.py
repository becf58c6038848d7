"""Feed a dataset to a reasoner step by step, several steps in one kernel call while rolling back stays cheap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tidelog.compiler.prepare_facts import read_time_arguments
from tidelog.data.dataset import Dataset
from tidelog.data.relation import finer
from tidelog.data.symbol_table import Symbols
from tidelog.engine.fact_store import Int64s
from tidelog.language.time_like import DurationLike, TimeLike, to_duration, to_time
from tidelog.streaming.answers import AnswerColumns, Answers, StepColumns, StreamStep
from tidelog.streaming.marks import mark_evaluation
from tidelog.streaming.speculation import Speculation, plan_speculation
from tidelog.streaming.step_layout import Batch, Clock
from tidelog.timeline.grid import POS_INF, Grid
from tidelog.timeline.interval import INF

if TYPE_CHECKING:
    from tidelog.streaming.reasoner import Reasoner

#: The class of the records of steps.
S = TypeVar("S", bound=StreamStep)

NO_FACTS = Answers(0, (), 0, Symbols())


def feed_in_order(
    reasoner: Reasoner, data: Dataset, step: DurationLike | None, until: TimeLike | None
) -> Iterator[StreamStep]:
    """Yield one step per time, or per multiple of `step`; see `Reasoner.feed`."""
    reasoner.roll_back()
    evaluation = reasoner.evaluation
    if until is not None:
        evaluation.fit(to_time(until))
    data = read_time_arguments(reasoner.program, data)
    reasoner.note_dates(data.dates)
    data = evaluation.on_grid(data)
    if reasoner.fact_log is not None:
        reasoner.fact_log.add(-INF, data)
    grid, symbols, clock = evaluation.grid, evaluation.symbols, evaluation.clock
    length = 0 if step is None else max(1, int(to_duration(step) * grid.denominator * grid.tick))
    last = POS_INF if until is None else evaluation.position(to_time(until))
    batch = evaluation.batch(data, clock, length, last)
    if len(batch.counts):
        reasoner.cover_calendar(int(batch.todo.clocks[0]), int(batch.todo.clocks[-1]), data)
    reasoner.facts_taken += evaluation.take_first(batch)
    done = 0
    may_speculate = evaluation.numbers is None
    while done < len(batch.counts):
        if evaluation.grid is not grid or evaluation.symbols is not symbols:
            # Other calls between two steps have renumbered times or constants.
            factor = evaluation.grid.denominator // grid.denominator
            grid, symbols = evaluation.grid, evaluation.symbols
            clock = Clock(*(finer(at, factor) for at in clock))
            last, length = finer(last, factor), factor * length
            batch = evaluation.batch(evaluation.on_grid(data), clock, length, last)
        stop = plan_speculation(batch, done, evaluation.store.nbytes()) if may_speculate else done + 1
        mark = mark_evaluation(evaluation) if stop > done + 1 else None
        found, taken, stop, violated = evaluation.run(batch.todo, done, stop)
        mine = reasoner.speculation = None if mark is None else Speculation(mark, batch, done, done)
        try:
            for record in give_steps(reasoner, batch, found, taken, done, stop, StreamStep, grid):
                done += 1
                if mine:
                    mine.given = done
                    if done == stop:
                        reasoner.speculation = None
                if reasoner.fact_log is not None:
                    reasoner.fact_log.exclude(record.late)
                yield record
                if mine and reasoner.speculation is not mine and done < stop:
                    may_speculate = False  # the caller used the reasoner between steps and will do so again
                    break
        finally:
            if mine and reasoner.speculation is mine:
                reasoner.roll_back()
        if violated and done == stop:
            raise violated
    evaluation.seen = finer(batch.seen, evaluation.grid.denominator // grid.denominator)
    evaluation.forget_names()


def count_late(reasoner: Reasoner, batch: Batch, step: int) -> Answers:
    """Count the late facts of a step, and return them."""
    if step not in batch.late:
        return NO_FACTS
    groups = batch.late[step]
    reasoner.late_count += len(groups)
    return Answers(len(groups), groups, 0, batch.symbols, reasoner.dates)


def give_steps(
    reasoner: Reasoner,
    batch: Batch,
    found: AnswerColumns,
    taken: Int64s,
    first: int,
    stop: int,
    kind: type[S],
    grid: Grid,
) -> Iterator[S]:
    """Yield the records of evaluated steps, of a kind, each counted as it is given out; `grid` is that of the batch."""
    finite, endless, spent, ends = taken[first:stop].T
    columns = (
        batch.todo.clocks[first:stop],
        batch.counts[first:stop],
        finite + reasoner.evaluation.count_rows(),
        endless,
        spent,
        np.append(0, ends[:-1]),
        ends,
    )
    shared, any_late, late = StepColumns(grid, found), bool(batch.late), NO_FACTS
    for number, numbers in enumerate(zip(*(column.tolist() for column in columns), strict=True), first):
        if any_late:
            late = count_late(reasoner, batch, number)
        reasoner.facts_taken += numbers[1]
        step = reasoner.last_step = kind(shared, numbers, late)
        yield step
