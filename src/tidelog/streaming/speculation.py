"""Evaluate several steps ahead in one kernel call, while rolling back stays cheap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidelog.streaming.marks import Mark, go_back
from tidelog.streaming.query_evaluation import Evaluation
from tidelog.streaming.step_layout import Batch

#: Rolling back is cheap if the copy of the store takes at most this many bytes, plus this many per word of new records
#: and per step: a call costs as much as copying some hundred kilobytes.
CHEAP_BYTES, CHEAP_BYTES_PER_WORD, CHEAP_BYTES_PER_STEP = 1 << 16, 32, 1 << 17
#: The most words of records, and the most steps, in one call.
MAX_WORDS, MAX_STEPS = 1 << 19, 1 << 14


@dataclass
class Speculation:
    """Steps evaluated in one call: the mark before them, the first one, and how many of them were given out."""

    before: Mark
    batch: Batch
    first: int
    given: int

    def roll_back(self, evaluation: Evaluation) -> None:
        """Restore the evaluation to the last step that was given out."""
        go_back(evaluation, self.before)
        evaluation.run(self.batch.todo, self.first, self.given)


def plan_speculation(batch: Batch, first: int, held_bytes: int) -> int:
    """Find the step to stop before in the next call, for a store of `held_bytes` that rolling back would copy."""
    ends = batch.todo.record_ends
    before = int(ends[first - 1]) if first else batch.first_record
    stop = min(int(np.searchsorted(ends, before + MAX_WORDS, "right")), first + MAX_STEPS, len(ends))
    words = int(ends[max(stop, first + 1) - 1]) - before
    cheap = CHEAP_BYTES + CHEAP_BYTES_PER_WORD * words + CHEAP_BYTES_PER_STEP * (stop - first)
    return stop if held_bytes <= cheap else first + 1
