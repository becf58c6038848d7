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

#: How many matching atoms are looked up at a time.
_BLOCK = 256


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
        """Yield the arguments of the atoms that hold at some time of a window; None stands for any constant.

        They come in the order of their constants, whatever order the engine found them in.
        """
        bound = tuple(position for position, value in enumerate(pattern) if value is not None)
        rows = self._find_rows(bound, tuple(value for value in pattern if value is not None))
        rows = rows[(self.rows.lo[rows] <= window[1]) & (self.rows.hi[rows] >= window[0])]
        args = self.rows.args[:, rows]
        if len(rows) <= _BLOCK or not pattern:
            yield from sorted(set(zip(*args.tolist(), strict=True) if pattern else [()] * len(rows)))
            return
        args = args[:, np.lexsort(args[::-1])]
        # Often only the first ones are looked at.
        for start in range(0, len(rows), _BLOCK):
            found = dict.fromkeys(zip(*args[:, start : start + _BLOCK].tolist(), strict=True))
            if start:
                found.pop(tuple(args[:, start - 1].tolist()), None)
            yield from found

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

    def lookup_cut(self, predicate: str, ids: Ids, window: Pair) -> Sequence[Pair]:
        """Return when an atom holds in a window, in pairs that may be cut at the window."""
        return self.lookup(predicate, ids, window)

    def expect(self, atom: EncodedAtom, bindings: Sequence[dict[str, int]], window: Pair) -> None:
        """Hear that an atom will be looked up under some bindings, in a window."""

    def mentions(self, constant: int) -> bool:
        """Return whether a fact mentions a constant."""
        return any(bool((table.rows.args == constant).any()) for table in self.tables.values())

    def constants(self) -> list[int]:
        """Return all constants that facts mention, in order."""
        return sorted({number for table in self.tables.values() for number in np.unique(table.rows.args).tolist()})

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
