"""Open hypotheses of one schema in which every premise has all variables, among them one time.

Any fact then binds everything. What is open is a mask for each binding, in tables by time: an arrival looks up one mask
for each premise that it can be, and a deadline of a time concerns that time's table only. An answer stays in its table
until the last deadline, so that a fact that comes twice finds it there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidelog.hypothetical.compiled import Binding, Compiled, Dispatch, GroundFact, Inside, getter
from tidelog.hypothetical.delays import Delays

#: The values of the objects: the value itself if there is one, a tuple otherwise.
_Objects = Any


@dataclass(slots=True)
class _Reader:
    """How to read the objects from the arguments of a fact, and for each premise that such a fact can be: its bit, its
    offset in time, and until when after the time of the binding the others may still come."""

    objects: Callable[[Sequence[Any]], _Objects]
    premises: list[tuple[int, int, int]] = field(default_factory=list)


def is_regular(schema: Compiled, delays: Delays) -> bool:
    """Whether every premise has all variables, each once, and a delay that does not depend on constants."""
    clocks = {premise.clock for premise in schema.premises}
    return (
        len(clocks) == 1
        and None not in clocks
        and not schema.schema.comparisons
        and all(
            len(premise.places) == len(schema.names)
            and len(premise.places) == 1 + sum(slot is not None for slot in premise.slots)
            and delays.plain(premise.predicate) is not None
            for premise in schema.premises
        )
    )


class Regular:
    """All open hypotheses of a query with a single, regular schema."""

    def __init__(self, schema: Compiled, delays: Delays) -> None:
        self.schema = schema
        self.tau = -1
        #: By time, and then by objects: which premises have come.
        self.tables: dict[int, dict[_Objects, int]] = {}
        self._clock = len(schema.names) - 1
        #: No premise is before time 0.
        self._first = -min(premise.offset for premise in schema.premises)
        ends = [premise.offset + (delays.plain(premise.predicate) or 0) for premise in schema.premises]
        self._last = max(ends)
        #: What must have come once so much time has gone by since a binding's time.
        self._musts = {end: sum(1 << i for i, other in enumerate(ends) if other <= end) for end in sorted(set(ends))}
        self._dispatch = Dispatch(self._readers(ends))

    def _readers(self, ends: list[int]) -> Iterator[tuple[Any, _Reader]]:
        readers: dict[object, _Reader] = {}
        for place, premise in enumerate(self.schema.premises):
            assert premise.clock == self._clock
            where = [premise.slots.index(slot) for slot in range(self._clock)]
            key = (premise.predicate, premise.constants, tuple(where))
            new = key not in readers
            if new:
                readers[key] = _Reader(getter(where))
            others = [end for i, end in enumerate(ends) if i != place]
            readers[key].premises.append((1 << place, premise.offset, min(others, default=self._last)))
            if new:
                yield premise, readers[key]

    def move(self, tau: int) -> None:
        """Time goes on to `tau`: drop what could only come before it."""
        for time in list(self.tables):
            if time + self._last < tau:
                del self.tables[time]
                continue
            must = 0
            for end, mask in self._musts.items():
                if self.tau <= time + end < tau:
                    must = mask
            if must:
                table = self.tables[time]
                self.tables[time] = {objects: mask for objects, mask in table.items() if mask & must == must}
        self.tau = tau

    def arrive(self, facts: Iterable[GroundFact]) -> list[Binding]:
        """Take facts that may come now; gives the bindings that they complete."""
        tables, tau, full, first = self.tables, self.tau, self.schema.full, self._first
        dispatch = self._dispatch.tables
        answers: list[Binding] = []
        single = self._clock == 1
        for predicate, args, time in facts:
            for read, waiting in dispatch[predicate]:
                readers = waiting.get(read(args))
                if readers is None:
                    continue
                for reader in readers:
                    objects = reader.objects(args)
                    for bit, offset, reach in reader.premises:
                        start = time - offset
                        table = tables.get(start)
                        known = None if table is None else table.get(objects)
                        if known is None:
                            if start < first or start + reach < tau:
                                continue
                            if table is None:
                                table = tables[start] = {}
                            table[objects] = bit
                            if bit != full:
                                continue
                        elif known & bit:
                            continue
                        else:
                            known |= bit
                            table[objects] = known  # type: ignore[index]
                            if known != full:
                                continue
                        answers.append((objects, start) if single else (*objects, start))
        return answers

    def open(self) -> Iterator[tuple[int, Binding]]:
        """The masks and bindings of what can still come true after this moment."""
        full = self.schema.full
        for time, table in self.tables.items():
            must = max((mask for end, mask in self._musts.items() if time + end <= self.tau), default=0)
            for objects, mask in table.items():
                if mask != full and mask & must == must:
                    yield mask, self._binding(objects, time)

    def _binding(self, objects: _Objects, time: int) -> Binding:
        bound: tuple[Inside, ...] = (objects,) if self._clock == 1 else objects
        return (*bound, time)
