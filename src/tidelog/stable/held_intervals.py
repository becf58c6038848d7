"""When the atoms of a predicate hold along a stream, in some or in all stable models so far: as maximal intervals.

What holds at a time is known once that time is evaluated, and facts that begin later change nothing about it. So an
interval is final when the first time after it is evaluated. Before the stream begins nothing changes: what holds there
has held from the beginning of time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class EndedInterval(NamedTuple):
    """An atom, by number, and the first and the last time of an interval; NEG_INF is the beginning of time."""

    atom: int
    lo: int
    hi: int


class HeldIntervals:
    """The intervals of a predicate that have ended and were not taken, and since when its other atoms hold.

    With `brave`, an atom holds if it does in some model, and otherwise if it does in all.
    """

    def __init__(self, predicate: str, brave: bool) -> None:
        self.predicate = predicate
        self._brave = brave
        self.since: dict[int, int] = {}
        #: How many intervals have begun or ended.
        self.changes = 0
        self._ended: list[EndedInterval] = []

    def note_slices(self, asked: Iterable[tuple[int, int]], slices: Iterable[int], time: int) -> None:
        """Note the slices that a component may have from a time on; `asked` are pairs of a bit and an atom."""
        held = 0 if self._brave else -1
        for slice in slices:
            held = held | slice if self._brave else held & slice
        for bit, atom in asked:
            self.note(atom, bool(held & bit), time)

    def note(self, atom: int, holds: bool, time: int) -> None:
        """Note whether an atom holds from a time on."""
        if holds == (atom in self.since):
            return
        self.changes += 1
        if holds:
            self.since[atom] = time
        else:
            self._ended.append(EndedInterval(atom, self.since.pop(atom), time - 1))

    def take_ended(self) -> list[EndedInterval]:
        """Return the intervals that have ended since the last call, in order of time."""
        ended, self._ended = self._ended, []
        return sorted(ended, key=lambda found: (found.hi, found.lo, found.atom))

    def find_open(self, until: int) -> list[EndedInterval]:
        """Return the intervals that have not ended, up to and including a time."""
        return sorted(EndedInterval(atom, lo, until) for atom, lo in self.since.items() if lo <= until)
