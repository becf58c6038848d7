"""The answers of a stream that can still be corrected, by the epoch in which they were given, and their differences."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidelog.data.relation import refine_pairs
from tidelog.engine.fact_store import Rows
from tidelog.streaming.answers import AnswerColumns
from tidelog.timeline.grid import Grid

#: Parts of the answers with at most this many rows are always joined.
FEW = 64


@dataclass(frozen=True)
class TimedRows:
    """Answers as rows, in ticks of `1/denominator`."""

    rows: Rows
    denominator: int

    @staticmethod
    def of(found: AnswerColumns) -> TimedRows:
        """Return all answers of some columns."""
        return TimedRows(found.rows(0, len(found.lo)), found.grid.denominator)

    def at_step(self, denominator: int, dense: bool) -> Rows:
        """Return the rows in ticks of `1/denominator`, a multiple of the present denominator."""
        factor = denominator // self.denominator
        if factor == 1 or not dense:
            return self.rows
        return Rows(self.rows.args, *refine_pairs(self.rows.lo, self.rows.hi, factor))


@dataclass(frozen=True)
class Difference:
    """The answers that a step takes back and adds, on a grid of their own."""

    removed: Rows
    added: Rows
    grid: Grid

    @staticmethod
    def of_added(found: AnswerColumns) -> Difference:
        """Return answers that are all new."""
        rows = found.rows(0, len(found.lo))
        return Difference(Rows.empty(len(rows.args)), rows, found.grid)

    def add(self, found: AnswerColumns) -> Difference:
        """Return the same changes and further answers that are new."""
        if not len(found.lo):
            return self
        dense, own = self.grid.dense, self.grid.denominator
        more = TimedRows.of(found)
        denominator = lcm(own, more.denominator)
        parts = TimedRows(self.removed, own), TimedRows(self.added, own), more
        removed, added, rest = (part.at_step(denominator, dense) for part in parts)
        return Difference(removed, Rows.concatenate([added, rest], len(added.args)), Grid(dense, denominator))


def compare(before: list[TimedRows], after: list[TimedRows], arity: int, dense: bool) -> Difference:
    """Compare answers; those in both lists are left out."""
    denominator = lcm(*(part.denominator for part in (*before, *after)))
    old, new = (
        Rows.concatenate([part.at_step(denominator, dense) for part in parts], arity) for parts in (before, after)
    )
    gone, fresh = find_differences(old, new)
    return Difference(old.where(gone), new.where(fresh), Grid(dense, denominator))


def find_differences(old: Rows, new: Rows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows are only among the old ones, and which only among the new ones."""
    columns = [
        np.concatenate(pair) for pair in zip((old.lo, old.hi, *old.args), (new.lo, new.hi, *new.args), strict=True)
    ]
    order = np.lexsort(columns)
    begins = np.zeros(len(order), np.bool_)
    for column in columns:
        begins[1:] |= column[order[1:]] != column[order[:-1]]
    same = np.empty(len(order), np.int64)
    same[order] = np.cumsum(begins)
    groups = same[: len(old)], same[len(old) :]
    is_old, is_new = (np.bincount(group, minlength=len(order) + 1) > 0 for group in groups)
    return ~is_new[groups[0]], ~is_old[groups[1]]


class AnswerSegments:
    """The answers given since the oldest checkpoint, in the order of their epochs."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, TimedRows]] = []

    def add(self, epoch: int, found: AnswerColumns) -> None:
        """Add the answers of an epoch."""
        self.put(epoch, TimedRows.of(found))

    def put(self, epoch: int, rows: TimedRows) -> None:
        """Add rows of an epoch."""
        parts = self._parts
        if not len(rows.rows):
            return
        parts.append((epoch, rows))
        # Parts of like size are joined, so that there are few of them and each row is copied a few times.
        while len(parts) > 1 and _can_join(*parts[-2:]):
            epoch, last = parts.pop()
            before = parts.pop()[1]
            joined = Rows.concatenate([before.rows, last.rows], len(last.rows.args))
            parts.append((epoch, TimedRows(joined, last.denominator)))

    def take_after(self, epoch: int) -> list[TimedRows]:
        """Remove and return the answers of all epochs after one."""
        taken = [part for own, part in self._parts if own > epoch]
        self._parts = [(own, part) for own, part in self._parts if own <= epoch]
        return taken

    def select_keys(self, epoch: int, column: int, wanted: NDArray[np.bool_]) -> list[TimedRows]:
        """Return the answers of all epochs after one that have a wanted constant in a column."""
        found: list[TimedRows] = []
        for own, part in self._parts:
            if own > epoch and (mine := wanted[part.rows.args[column]]).any():
                found.append(TimedRows(part.rows.where(mine), part.denominator))
        return found

    def drop_keys(self, epoch: int, column: int, wanted: NDArray[np.bool_]) -> None:
        """Remove the answers that `select_keys` returns."""
        for place, (own, part) in enumerate(self._parts):
            if own > epoch and (mine := wanted[part.rows.args[column]]).any():
                self._parts[place] = own, TimedRows(part.rows.where(~mine), part.denominator)

    def forget(self, epoch: int) -> None:
        """Forget the answers up to an epoch: they are final."""
        if any(own <= epoch for own, _ in self._parts):
            self._parts = [(own, part) for own, part in self._parts if own > epoch]

    def mark_constants(self, used: NDArray[np.bool_]) -> None:
        """Mark the constants that answers mention."""
        for _, part in self._parts:
            used[part.rows.args] = True

    def renumber(self, ids: NDArray[np.int32]) -> None:
        """Give constants new numbers."""
        self._parts = [
            (epoch, TimedRows(Rows(ids[part.rows.args], part.rows.lo, part.rows.hi), part.denominator))
            for epoch, part in self._parts
        ]

    def __len__(self) -> int:
        return sum(len(part.rows) for _, part in self._parts)

    def state(self, arity: int, dense: bool) -> tuple[int, dict[str, NDArray[Any]]]:
        """Return the denominator of all answers, and their arrays."""
        denominator = lcm(*(part.denominator for _, part in self._parts))
        rows = Rows.concatenate([part.at_step(denominator, dense) for _, part in self._parts], arity)
        epochs = np.repeat([epoch for epoch, _ in self._parts], [len(part.rows) for _, part in self._parts])
        return denominator, {
            "given.args": rows.args,
            "given.times": np.array([rows.lo, rows.hi, epochs.astype(np.int64)]),
        }


def _can_join(one: tuple[int, TimedRows], other: tuple[int, TimedRows]) -> bool:
    """Return whether two parts that follow each other are of one epoch and of like size."""
    alike = one[0] == other[0] and one[1].denominator == other[1].denominator
    return alike and len(one[1].rows) <= 2 * len(other[1].rows) + FEW
