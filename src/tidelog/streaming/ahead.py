"""Steps that are taken before they are asked for, many in one call, as long as it costs little to go back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidelog.streaming.batch import Batch
from tidelog.streaming.evaluation import Evaluation, Mark

#: Steps are taken ahead of those that were asked for only if going back costs little beside them: at most so many
#: bytes of the store, and so many more for each word that comes in, have to be copied for it.
CHEAP, CHEAP_A_WORD = 1 << 16, 32
#: The most words of records, and the most steps, that are taken in one call.
WORDS, STEPS = 1 << 19, 1 << 14


@dataclass
class Ahead:
    """Steps that were taken, of which not all have been asked for: how it was before, and how far it has come."""

    before: Mark
    batch: Batch
    first: int
    shown: int

    def settle(self, evaluation: Evaluation) -> None:
        """Goes back to the last step that was asked for."""
        evaluation.go_back(self.before)
        evaluation.run(self.batch.todo, self.first, self.shown)


def reach(batch: Batch, first: int, held: int) -> int:
    """The step up to which steps are taken in one call, where a store of so many bytes would have to be copied."""
    ends = batch.todo.record_ends
    before = int(ends[first - 1]) if first else batch.first_record
    stop = min(int(np.searchsorted(ends, before + WORDS, "right")), first + STEPS, len(ends))
    words = int(ends[max(stop, first + 1) - 1]) - before
    return stop if held <= CHEAP + CHEAP_A_WORD * words else first + 1
