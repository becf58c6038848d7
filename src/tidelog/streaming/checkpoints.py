"""Checkpoints of an evaluation, to go back to when a fact is corrected: few of them, denser towards the present."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidelog.engine.stream_kernel import CLOSED, FRONTIER, NOW
from tidelog.streaming.marks import Mark
from tidelog.timeline.grid import NEG_INF

if TYPE_CHECKING:
    from tidelog.streaming.query_evaluation import Evaluation

#: A checkpoint is taken when its copy costs at most this many bytes per word of the records since the last one.
BYTES_PER_WORD = 16
#: What a row that an aggregation keeps counts, in bytes.
BYTES_PER_ROW = 64


@dataclass(frozen=True)
class Checkpoint:
    """An evaluation after a step, with all rows of its epoch and of those before.

    Facts of the keys in `outdated` were corrected since: what it holds of these keys is not true any more.
    """

    mark: Mark
    epoch: int
    outdated: set[int] = field(default_factory=set)

    @property
    def now(self) -> int:
        """The clock of the step."""
        return int(self.mark.at[NOW])

    @property
    def frontier(self) -> int:
        """The position up to which the input was taken to be complete."""
        return int(self.mark.at[FRONTIER])

    @property
    def over(self) -> bool:
        """Whether the time of the step was over."""
        return bool(self.mark.at[CLOSED] >= self.mark.at[NOW])

    def mark_constants(self, evaluation: Evaluation, used: NDArray[np.bool_]) -> None:
        """Mark the constants that it mentions."""
        used[list(self.outdated)] = True
        used |= self.mark.store.constants(len(used))
        if evaluation.numbers is not None and self.mark.numbers is not None:
            evaluation.numbers.take_all(self.mark.numbers).mark_constants(used)

    def renumber(self, evaluation: Evaluation, ids: NDArray[np.int32]) -> Checkpoint:
        """Return it with new numbers for constants, those of an evaluation."""
        mark = self.mark
        mark.store.renumber(ids)
        if evaluation.numbers is not None and mark.numbers is not None:
            mark = replace(mark, numbers=evaluation.numbers.take_all(mark.numbers, ids).state())
        return Checkpoint(mark, self.epoch, set(ids[list(self.outdated)].tolist()))


def thin_out(checkpoints: list[Checkpoint], now: int, oldest: int) -> list[Checkpoint]:
    """Keep the checkpoints that corrections from the position `oldest` on may need, fewer of them the older they are.

    The first one is the last that comes before `oldest`: no correction goes farther back.
    """
    first = 0
    while first + 1 < len(checkpoints) and checkpoints[first + 1].now < oldest:
        first += 1
    kept = checkpoints[first:]
    place = 1
    while place < len(kept) - 1:
        before, after = kept[place - 1].now, kept[place + 1].now
        # Without this one, going back farther than to `after` costs at most half as much again.
        if before > NEG_INF and 2 * (after - before) <= now - after:
            del kept[place]
        else:
            place += 1
    return kept
