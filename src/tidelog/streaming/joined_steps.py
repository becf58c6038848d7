"""Take many steps in one, and give each answer in the first of them that could give it.

Aggregations cost much in every step. So a stream takes the facts of many times at once; with corrections, the log says
at which clock each answer was known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidelog.engine.fact_store import Rows
from tidelog.engine.stream_kernel import ANSWERS_END, FRONTIER, TOOK, Todo
from tidelog.errors import Inconsistent
from tidelog.streaming.answers import AnswerColumns
from tidelog.streaming.query_evaluation import WORDS_PER_STEP
from tidelog.streaming.speculation import CHEAP_BYTES_PER_WORD
from tidelog.streaming.step_layout import Batch, find_last_steps, join_steps

if TYPE_CHECKING:
    from tidelog.streaming.query_evaluation import Evaluation

Int64s = NDArray[np.int64]

#: Words of records that are taken at once. The store and the aggregations are copied before, so these are more than a
#: step has in a stream without corrections.
WORDS_AT_ONCE = 2 * WORDS_PER_STEP


@dataclass(frozen=True)
class Found:
    """Answers of several steps, with the step of each."""

    rows: Rows
    step: Int64s

    def where(self, kept: NDArray[np.bool_]) -> Found:
        return Found(self.rows.where(kept), self.step[kept])

    def place(self, ended: Int64s) -> Found:
        """Return answers of steps that were taken at once, each in the first step that could give it.

        `ended` are positions, one for each step: answers that end before it are given by then.
        """
        return Found(self.rows, np.searchsorted(ended, self.rows.hi, "right"))


def find_ends(evaluation: Evaluation, clocks: Int64s, begin: Int64s) -> Int64s:
    """Return for each step the position before which its answers end, for an evaluation that was at `begin`."""
    ends: Int64s = np.maximum(clocks - 1 - evaluation.task.longest, begin[FRONTIER]) - evaluation.task.ahead
    return ends


def find_pieces(record_ends: Int64s) -> Int64s:
    """Return the steps with which the pieces end that are taken in one step each, of steps with such records."""
    return find_last_steps(record_ends, WORDS_PER_STEP)


def repeat_records(records: Int64s, counts: Int64s) -> Int64s:
    """Return the record of each step as many times as it stands for steps."""
    repeated = np.repeat(records, counts, axis=0)
    repeated[:, TOOK] //= np.repeat(counts, counts)
    return repeated


def run_steps(evaluation: Evaluation, todo: Todo, first: int = 0) -> tuple[Found, Int64s, Inconsistent | None]:
    """Take all steps from one on, up to a violated constraint if there is one; return answers and records."""
    parts, steps, records, done, count = [], [], [], first, len(todo.clocks)
    violated = None
    while done < count and not violated:
        found, taken, stop, violated = evaluation.run(todo, done, count)
        taken = taken[done:stop]
        parts.append(found.rows(0, len(found.lo)))
        steps.append(np.repeat(np.arange(done, stop), np.diff(taken[:, ANSWERS_END], prepend=0)))
        records.append(taken)
        done = stop
    rows = Rows.concatenate(parts, evaluation.task.arity)
    return Found(rows, np.concatenate(steps)), np.concatenate(records), violated


def plan_joined_steps(batch: Batch, first: int, held_bytes: int) -> int:
    """Find the step to stop before when steps are taken in one, for a store of `held_bytes` that is copied before."""
    ends = batch.todo.record_ends
    before = int(ends[first - 1]) if first else batch.first_record
    words = max(WORDS_AT_ONCE, held_bytes // CHEAP_BYTES_PER_WORD)
    return max(first + 1, int(np.searchsorted(ends, before + words, "right")))


def run_joined(
    evaluation: Evaluation, batch: Batch, first: int, stop: int
) -> tuple[AnswerColumns, Int64s, int, Inconsistent | None]:
    """Take the steps from `first` to `stop`, many in one; return what `Evaluation.run` returns for all of them."""
    begin = evaluation.at.copy()
    last = first + find_pieces(batch.todo.record_ends[first:stop])
    number = 1 if first else 0
    joined = join_steps(batch, np.append(first - 1, last) if first else last)
    found, taken, violated = run_steps(evaluation, joined.todo, number)
    last = last[: len(taken)]
    stop = int(last[-1]) + 1
    count = stop - first
    placed = found.place(find_ends(evaluation, batch.todo.clocks[first:stop], begin))
    step = np.minimum(placed.step, count - 1)
    order = np.argsort(step, kind="stable")
    records = np.zeros((stop, taken.shape[1]), np.int64)
    records[first:] = repeat_records(taken, np.diff(last, prepend=first - 1))
    records[first:, ANSWERS_END] = np.searchsorted(step[order], np.arange(count), "right")
    rows = placed.rows
    answers = evaluation.answers(Rows(rows.args[:, order], rows.lo[order], rows.hi[order]))
    return answers, records, stop, violated
