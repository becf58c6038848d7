"""When atoms hold: the engine's rows, indexed by some of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tidelog.engine.fact_store import Int64s, Rows
from tidelog.language.syntax import Value
from tidelog.proofs.encoded_rules import EncodedAtom
from tidelog.timeline.grid import Grid
from tidelog.timeline.time_sets import Pair, Times, coalesce, find_touching

Ids = tuple[int, ...]


class PredicateIndex:
    """The facts of one predicate. Indexes are built when they are first needed."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._indexes: dict[tuple[int, ...], tuple[Int64s, dict[Ids, Pair]]] = {}
        self._times: dict[Ids, Times] = {}

    def times(self, ids: Ids) -> Times:
        """Return when an atom holds."""
        times = self._times.get(ids)
        if times is None:
            rows = self._find_rows(tuple(range(len(ids))), ids)
            times = coalesce(zip(self.rows.lo[rows].tolist(), self.rows.hi[rows].tolist(), strict=True))
            self._times[ids] = times
        return times

    def matching(self, pattern: tuple[int | None, ...], window: Pair) -> Iterator[Ids]:
        """Yield the arguments of the atoms that hold at some time of a window; None stands for any constant."""
        bound = tuple(position for position, value in enumerate(pattern) if value is not None)
        rows = self._find_rows(bound, tuple(value for value in pattern if value is not None))
        rows = rows[(self.rows.lo[rows] <= window[1]) & (self.rows.hi[rows] >= window[0])]
        yield from dict.fromkeys(zip(*self.rows.args[:, rows].tolist(), strict=True) if pattern else [()] * len(rows))

    def _find_rows(self, positions: tuple[int, ...], ids: Ids) -> Int64s:
        """Return the numbers of the rows with these constants at these positions."""
        if positions not in self._indexes:
            self._indexes[positions] = self._build_index(positions)
        order, groups = self._indexes[positions]
        first, last = groups.get(ids, (0, 0))
        return order[first:last]

    def _build_index(self, positions: tuple[int, ...]) -> tuple[Int64s, dict[Ids, Pair]]:
        """Sort the rows by the columns at some positions; return the order, and where each group begins and ends."""
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


class FactIndex:
    """All facts of a model, given and derived, and the constants that their numbers stand for."""

    def __init__(
        self,
        tables: dict[str, PredicateIndex],
        value: Callable[[int], Value],
        intern: Callable[[Value], int],
        grid: Grid,
    ) -> None:
        self.tables = tables
        self.value = value
        #: Returns the number of a constant, which may be one that a rule computes.
        self.intern = intern
        self.grid = grid
        self.dense = grid.dense

    def times(self, predicate: str, ids: Ids) -> Times:
        """Return when an atom holds."""
        table = self.tables.get(predicate)
        return table.times(ids) if table else []

    def lookup(self, predicate: str, ids: Ids, window: Pair) -> Sequence[Pair]:
        """Return when an atom holds in a window, in uncut pairs."""
        return find_touching(self.times(predicate, ids), window)

    def matching(self, atom: EncodedAtom, binding: dict[str, int], window: Pair) -> Iterator[dict[str, int]]:
        """Yield the binding extended to the variables of an atom, for each of its instances that holds in a window."""
        table = self.tables.get(atom.predicate)
        if table is None:
            return
        pattern = tuple(binding.get(arg) if isinstance(arg, str) else arg for arg in atom.args)
        for ids in table.matching(pattern, window):
            extended = match_atom(atom, ids, binding)
            if extended is not None:
                yield extended


def match_atom(atom: EncodedAtom, ids: Ids, binding: dict[str, int]) -> dict[str, int] | None:
    """Extend a binding so that an atom has these arguments; None where that is impossible."""
    extended = dict(binding)
    for arg, value in zip(atom.args, ids, strict=True):
        if (extended.setdefault(arg, value) if isinstance(arg, str) else arg) != value:
            return None
    return extended
