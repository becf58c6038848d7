"""Which atoms are given as facts at which times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidelog.compiler.flat_rules import Pair
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.time_sets import coalesce


@dataclass(frozen=True, slots=True)
class GivenAtoms:
    """Which atoms are given when: `before` the first change, and from each change on. Changes are sorted by time.

    Sets of atoms are integers with one bit per atom.
    """

    before: int
    changes: tuple[tuple[int, int], ...]

    @property
    def after(self) -> int:
        """The atoms that are given after the last change."""
        return self.changes[-1][1] if self.changes else self.before

    def constant_spans(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Yield the spans from `first` to `last` in which the same atoms are given, as begin, end and atoms."""
        atoms, begin = self.before, first
        for time, changed in self.changes:
            if time > last:
                break
            if time > begin:
                yield begin, time - 1, atoms
                begin = time
            atoms = changed
        if begin <= last:
            yield begin, last, atoms


def build_given_atoms(intervals: list[tuple[Pair, ...]]) -> GivenAtoms:
    """Combine the intervals of each atom; the position of an atom in the list is the number of its bit."""
    before = 0
    toggles: dict[int, int] = {}
    for atom, pairs in enumerate(intervals):
        bit = 1 << atom
        for lo, hi in coalesce(pairs):
            if lo == NEG_INF:
                before |= bit
            else:
                toggles[lo] = toggles.get(lo, 0) ^ bit
            if hi != POS_INF:
                toggles[hi + 1] = toggles.get(hi + 1, 0) ^ bit
    changes = []
    atoms = before
    for time in sorted(toggles):
        if toggles[time]:
            atoms ^= toggles[time]
            changes.append((time, atoms))
    return GivenAtoms(before, tuple(changes))
