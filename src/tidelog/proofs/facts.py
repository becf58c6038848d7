"""What holds, atom by atom: rows of the engine, found by some of their arguments."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidelog.engine.store import Int64s, Rows
from tidelog.proofs.sets import Pair, Times, coalesced

Ids = tuple[int, ...]


class Table:
    """The facts of one predicate. Indexes are made when they are first needed."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._indexes: dict[tuple[int, ...], tuple[Int64s, dict[Ids, Pair]]] = {}
        self._times: dict[Ids, Times] = {}

    def times(self, ids: Ids) -> Times:
        """When an atom holds."""
        found = self._times.get(ids)
        if found is None:
            which = self._which(tuple(range(len(ids))), ids)
            found = coalesced(zip(self.rows.lo[which].tolist(), self.rows.hi[which].tolist(), strict=True))
            self._times[ids] = found
        return found

    def matching(self, pattern: tuple[int | None, ...], window: Pair) -> Iterator[Ids]:
        """The arguments of the atoms that hold at some time of a window; None stands for any constant."""
        bound = tuple(position for position, value in enumerate(pattern) if value is not None)
        which = self._which(bound, tuple(value for value in pattern if value is not None))
        which = which[(self.rows.lo[which] <= window[1]) & (self.rows.hi[which] >= window[0])]
        yield from dict.fromkeys(zip(*self.rows.args[:, which].tolist(), strict=True) if pattern else [()] * len(which))

    def _which(self, positions: tuple[int, ...], ids: Ids) -> Int64s:
        """The rows with these constants at these positions."""
        if positions not in self._indexes:
            self._indexes[positions] = self._index(positions)
        order, groups = self._indexes[positions]
        first, last = groups.get(ids, (0, 0))
        return order[first:last]

    def _index(self, positions: tuple[int, ...]) -> tuple[Int64s, dict[Ids, Pair]]:
        count = len(self.rows)
        if not positions:
            return np.arange(count), {(): (0, count)}
        columns = self.rows.args[list(positions)]
        order = np.lexsort(columns)
        columns = columns[:, order]
        starts = np.flatnonzero(np.append(True, (columns[:, 1:] != columns[:, :-1]).any(axis=0))[:count])
        keys = zip(*columns[:, starts].tolist(), strict=True)
        ends = np.append(starts[1:], count)
        return order, dict(zip(keys, zip(starts.tolist(), ends.tolist(), strict=True), strict=False))
