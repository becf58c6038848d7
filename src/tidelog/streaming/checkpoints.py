"""Checkpoints of an evaluation, to go back to when a fact is corrected: few of them, denser towards the present."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidelog.engine.stream_kernel import CLOSED, FRONTIER, NOW
from tidelog.streaming.marks import Mark
from tidelog.timeline.grid import NEG_INF

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
