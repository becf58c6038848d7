"""The extents that a view holds of one predicate, found and replaced by the constant at one argument.

Extents are kept in chunks, each with its rows sorted by that argument. An update adds one chunk with the new extents of
the constants that it touches; `owner` says which chunk holds the extents of a constant, so older rows of it are dead.
Chunks may repeat in different ways.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tidelog.corrections.difference import align, estimate_merged_size, merge, refine_extent, sort_rows
from tidelog.engine.extent import Extent, Tail
from tidelog.engine.fact_store import Rows

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

Tails = tuple[Tail | None, Tail | None]

#: Chunks are merged when there are more of them than this, if that makes few rows more.
_MOST_CHUNKS = 256


class StoredExtents:
    """The extents of a predicate; `position` is the argument by which parts of them are replaced, if any."""

    def __init__(self, arity: int, position: int | None) -> None:
        self.position = position
        #: The order of columns by which rows are sorted: the argument at `position` comes first.
        self.columns = sorted(range(arity), key=lambda column: column != position)
        self.empty = Extent(Rows.empty(arity))
        self.chunks: list[Extent] = [self.empty]
        self.owner: Int32s = np.empty(0, np.int32)
        self.most_chunks = _MOST_CHUNKS
        #: The rows of all chunks, dead ones included, and those right after the last clean-up.
        self.size = self.clean_size = 0

    def sort(self, extent: Extent) -> Extent:
        """Return an extent with its rows in the order that is kept here."""
        return Extent(sort_rows(extent.rows, self.columns), extent.left, extent.right)

    def align(self, extent: Extent) -> Extent:
        """Return an extent with its rows in order, written out to repeat like the first chunk, if it does.

        Extents that repeat alike are compared all at once.
        """
        return align(extent, self.chunks[0], self.columns)

    def replace_all(self, extent: Extent) -> None:
        """Keep a sorted extent instead of everything."""
        self.chunks = [extent]
        self.size = self.clean_size = len(extent.rows)
        self.owner = np.empty(0, np.int32)
        if self.position is not None:
            self._own(extent.rows.args[self.position], 0)

    def replace(self, keys: Int64s, extent: Extent) -> None:
        """Keep a sorted extent as all that holds of some constants."""
        assert self.position is not None
        self._own(keys, -1)
        if len(extent.rows):
            self._own(extent.rows.args[self.position], len(self.chunks))
            self.chunks.append(extent)
            self.size += len(extent.rows)
        if len(self.chunks) > self.most_chunks or self.size > 2 * self.clean_size + (1 << 16):
            self._clean_up()

    def pair(self, new: Extent, keys: Int64s | None) -> Iterator[tuple[Extent, Extent]]:
        """Yield what is kept together with what is new of the same atoms; once for all chunks that repeat alike.

        `keys` are the sorted constants that the new extent is about; None if it is about all. It is sorted.
        """
        if self.position is None:
            yield self.chunks[0], new
            return
        if keys is None:
            parts = dict(enumerate(self.live()))
        else:
            of_keys = self._find_owners(keys)
            chunks = np.unique(of_keys[of_keys >= 0]).tolist()
            parts = {chunk: self._part(chunk, keys[of_keys == chunk]) for chunk in chunks}
        groups: dict[Tails, list[int]] = {}
        for chunk, part in parts.items():
            groups.setdefault((part.left, part.right), []).append(chunk)
        # Constants that nothing is kept of are new in the first group.
        group_of = np.zeros(len(self.chunks) + 1, np.int64)
        for number, members in enumerate(groups.values()):
            group_of[members] = number
        group_of[-1] = 0
        mine = group_of[self._find_owners(new.rows.args[self.position])] if len(groups) > 1 else None
        if not groups:
            yield self.empty, new
        for number, ((left, right), members) in enumerate(groups.items()):
            rows = parts[members[0]].rows
            if len(members) > 1:
                several = [parts[member].rows for member in members]
                rows = sort_rows(Rows.concatenate(several, len(self.columns)), self.columns)
            part = new if mine is None else Extent(new.rows.where(mine == number), new.left, new.right)
            yield Extent(rows, left, right), part

    def _find_owners(self, keys: Int64s | Int32s) -> Int32s:
        """Return the chunk that holds each constant, -1 where none does."""
        owners = np.full(len(keys), -1, np.int32)
        known = keys < len(self.owner)
        owners[known] = self.owner[keys[known]]
        return owners

    def live(self) -> tuple[Extent, ...]:
        """Return all extents, chunk by chunk, without dead rows."""
        if self.position is None:
            return tuple(self.chunks)
        live = []
        for number, chunk in enumerate(self.chunks):
            mine = self.owner[chunk.rows.args[self.position]] == number
            live.append(chunk if mine.all() else Extent(chunk.rows.where(mine), chunk.left, chunk.right))
        return tuple(live)

    def refine(self, factor: int) -> None:
        """Move everything to a grid that is `factor` times as fine."""
        self.chunks = [refine_extent(chunk, factor) for chunk in self.chunks]

    def is_two_sided(self) -> bool:
        """Return whether something repeats both from some time on and before some time."""
        return any(chunk.left is not None and chunk.right is not None for chunk in self.chunks)

    def _part(self, chunk: int, keys: Int64s) -> Extent:
        assert self.position is not None
        if chunk < 0:
            return self.empty
        extent = self.chunks[chunk]
        column = extent.rows.args[self.position]
        wanted = keys.astype(np.int32)
        first, last = np.searchsorted(column, wanted, "left"), np.searchsorted(column, wanted, "right")
        rows = list_ranges(first, last)
        taken = Rows(extent.rows.args[:, rows], extent.rows.lo[rows], extent.rows.hi[rows])
        return Extent(taken, extent.left, extent.right)

    def _own(self, keys: Int64s | Int32s, chunk: int) -> None:
        most = int(keys.max(initial=-1)) + 1
        if most > len(self.owner):
            longer = np.full(max(most, 2 * len(self.owner)), -1, np.int32)
            longer[: len(self.owner)] = self.owner
            self.owner = longer
        self.owner[keys] = chunk

    def _clean_up(self) -> None:
        """Drop dead rows, and merge chunks that do not become much larger by it."""
        merged: list[Extent] = []
        live = [extent for extent in self.live() if len(extent.rows)] or [self.empty]
        for extent in sorted(live, key=lambda extent: len(extent.rows)):
            size = sum(len(part.rows) for part in (*merged[-1:], extent))
            if merged and estimate_merged_size([merged[-1], extent]) <= 2 * size + 4096:
                merged[-1] = merge([merged[-1], extent], self.columns)
            else:
                merged.append(extent)
        self.chunks = merged
        self.size = self.clean_size = sum(len(chunk.rows) for chunk in merged)
        self.most_chunks = max(_MOST_CHUNKS, 2 * len(merged))
        self.owner[:] = -1
        for number, chunk in enumerate(merged):
            assert self.position is not None
            self.owner[chunk.rows.args[self.position]] = number


def list_ranges(first: Int64s, last: Int64s) -> Int64s:
    """Return all numbers of the ranges from `first` up to `last`, one range after the other.

    >>> list_ranges(np.array([3, 8]), np.array([5, 9])).tolist()
    [3, 4, 8]
    """
    lengths = last - first
    starts = np.cumsum(lengths) - lengths
    return np.repeat(first - starts, lengths) + np.arange(int(lengths.sum()))
