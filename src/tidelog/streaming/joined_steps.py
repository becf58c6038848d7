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
from tidelog.engine.stream_kernel import ANSWERS_END, FRONTIER, TOOK
from tidelog.errors import Inconsistent
from tidelog.streaming.answers import AnswerColumns
from tidelog.streaming.query_evaluation import WORDS_PER_STEP
from tidelog.streaming.speculation import CHEAP_BYTES_PER_WORD
from tidelog.streaming.step_layout import Batch, join_steps

if TYPE_CHECKING:
    from tidelog.streaming.query_evaluation import Evaluation

Int64s = NDArray[np.int64]


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


def repeat_record(record: Int64s, count: int) -> Int64s:
    """Return the record of a step for each of the steps that it stands for."""
    records = np.repeat(record.reshape(1, -1), count, axis=0)
    records[:, TOOK] //= count
    return records


def plan_joined_steps(batch: Batch, first: int, held_bytes: int) -> int:
    """Find the step to stop before when steps are taken in one, for a store of `held_bytes` that is copied before."""
    ends = batch.todo.record_ends
    before = int(ends[first - 1]) if first else batch.first_record
    words = max(WORDS_PER_STEP, held_bytes // CHEAP_BYTES_PER_WORD)
    return max(first + 1, int(np.searchsorted(ends, before + words, "right")))


def run_joined(
    evaluation: Evaluation, batch: Batch, first: int, stop: int
) -> tuple[AnswerColumns, Int64s, Inconsistent | None]:
    """Take the steps from `first` to `stop` in one; return what `Evaluation.run` returns for all of them."""
    count, begin = stop - first, evaluation.at.copy()
    joined = join_steps(batch, np.array([first - 1, stop - 1] if first else [stop - 1]))
    number = len(joined.counts) - 1
    found, taken, _, violated = evaluation.run(joined.todo, number, number + 1)
    placed = Found(found.rows(0, len(found.lo)), np.zeros(0, np.int64)).place(
        find_ends(evaluation, batch.todo.clocks[first:stop], begin)
    )
    step = np.minimum(placed.step, count - 1)
    order = np.argsort(step, kind="stable")
    records = np.zeros((stop, taken.shape[1]), np.int64)
    records[first:] = repeat_record(taken[number], count)
    records[first:, ANSWERS_END] = np.searchsorted(step[order], np.arange(count), "right")
    rows = placed.rows
    return evaluation.answers(Rows(rows.args[:, order], rows.lo[order], rows.hi[order])), records, violated
