"""Facts of a model that is not there: each is found when a proof looks at it.

It is looked at like an index of all facts, and every look gives what that index would give: `FactSource` answers all of
them exactly. Where answers would take too many facts, it raises `TooManyFacts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidelog.goals.demand import Box
from tidelog.goals.fact_source import FactSource, TooManyFacts
from tidelog.goals.given_columns import Constants, contains
from tidelog.goals.time_windows import ALL_TIME
from tidelog.proofs.encoded_rules import EncodedAtom
from tidelog.proofs.fact_index import FactIndex, Ids, PredicateIndex, match_atom
from tidelog.timeline.time_sets import Pair, Times, find_touching

#: Where a predicate has too many atoms to find them all, how many constants are looked up at a time: first, and later.
CHUNKS = 512, 8_192


@dataclass(frozen=True, slots=True)
class _Part:
    """The facts of a predicate in a box, complete within a span of time."""

    box: Box
    span: Pair
    table: PredicateIndex

    def covers(self, known: Mapping[int, int], window: Pair) -> bool:
        """Return whether it has all facts with some constants in a window."""
        if not (self.span[0] <= window[0] and window[1] <= self.span[1]):
            return False
        return all(position in known and contains(ids, known[position]) for position, ids in self.box.items())


class AskedFacts(FactIndex):
    """The facts of a model, found when they are asked for."""

    def __init__(self, source: FactSource, index: FactIndex, count: int) -> None:
        """`index` has the constants and the grid; `count` is the number of constants that facts may have."""
        super().__init__({}, index.value, index.intern, index.grid)
        self._source = source
        self._count = count
        self._parts: dict[str, list[_Part]] = {}

    def times(self, predicate: str, ids: Ids) -> Times:
        """Return when an atom holds."""
        return self._find(predicate, dict(enumerate(ids)), ALL_TIME).times(ids) if self._may_hold(ids) else []

    def lookup_cut(self, predicate: str, ids: Ids, window: Pair) -> Sequence[Pair]:
        """Return when an atom holds in a window, in pairs that may be cut at the window."""
        if not self._may_hold(ids):
            return []
        return find_touching(self._find(predicate, dict(enumerate(ids)), window).times(ids), window)

    def matching(self, atom: EncodedAtom, binding: dict[str, int], window: Pair) -> Iterator[dict[str, int]]:
        """Yield the binding extended to the variables of an atom, for each of its instances that holds in a window."""
        pattern = tuple(binding.get(arg) if isinstance(arg, str) else arg for arg in atom.args)
        known = {position: id for position, id in enumerate(pattern) if id is not None}
        if not self._may_hold(known.values()):
            return
        for table in self._find_in_turn(atom.predicate, known, len(pattern), window):
            for ids in table.matching(pattern, window):
                extended = match_atom(atom, ids, binding)
                if extended is not None:
                    yield extended

    def expect(self, atom: EncodedAtom, bindings: Sequence[dict[str, int]], window: Pair) -> None:
        """Find the atoms of several bindings at once."""
        box: dict[int, Constants] = {}
        for position, arg in enumerate(atom.args):
            ids = [binding.get(arg) if isinstance(arg, str) else arg for binding in bindings]
            if None not in ids:
                box[position] = np.unique([id for id in ids if id is not None and id >= 0]).astype(np.int32)
        if box and all(map(len, box.values())):
            self._add(atom.predicate, box, window)

    def mentions(self, constant: int) -> bool:
        """Return whether a fact mentions a constant."""
        return self._source.mentions(constant)

    def constants(self) -> list[int]:
        """Return all constants that facts mention, in order."""
        return self._source.find_constants()

    def _may_hold(self, ids: Iterable[int]) -> bool:
        """Return whether facts may have some constants: a number that was given since stands for none of theirs."""
        return all(0 <= id < self._count for id in ids)

    def _find(self, predicate: str, known: Mapping[int, int], window: Pair) -> PredicateIndex:
        """Return facts with all those that have some constants in a window."""
        for part in self._parts.get(predicate, ()):
            if part.covers(known, window):
                return part.table
        box = {position: np.array([id], np.int32) for position, id in known.items()}
        if box and window != ALL_TIME:
            # Times at which else a condition holds are asked for next.
            try:
                return self._add(predicate, box, ALL_TIME)
            except TooManyFacts:
                pass
        return self._add(predicate, box, window)

    def _find_in_turn(
        self, predicate: str, known: Mapping[int, int], arity: int, window: Pair
    ) -> Iterator[PredicateIndex]:
        """Yield tables with all facts that have some constants in a window, in the order of their constants."""
        try:
            yield self._find(predicate, known, window)
            return
        except TooManyFacts:
            free = next((position for position in range(arity) if position not in known), None)
            if free is None:
                raise
        box = {position: np.array([id], np.int32) for position, id in known.items()}
        start = 0
        for size in CHUNKS:
            chunk = np.arange(start, min(start + size, self._count), dtype=np.int32)
            yield self._add(predicate, {**box, free: chunk}, window)
            start += size
            if start >= self._count:
                return
        raise TooManyFacts

    def _add(self, predicate: str, box: Box, span: Pair) -> PredicateIndex:
        table = PredicateIndex(self._source.find(predicate, box, span))
        self._parts.setdefault(predicate, []).append(_Part(box, span, table))
        return table
