"""Open hypotheses of one schema in which every premise has all variables, among them one time.

Any fact then binds everything. What is open is a mask for each binding, in tables by time: an arrival looks up one mask
for each premise that it can be, and a deadline of a time concerns that time's table only. An answer stays in its table
until the last deadline, so that a fact that comes twice finds it there. Where delays depend on constants, bindings with
the same delays have tables of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidelog.hypothetical.compiled import Binding, Compiled, Dispatch, GroundFact, getter
from tidelog.hypothetical.delays import Delays

#: The values of the objects: the value itself if there is one, a tuple otherwise.
Objects = Any

#: The table of a time that has none.
_NONE: dict[Objects, int] = {}
#: Objects whose delays are remembered.
_MOST_KNOWN = 100_000


@dataclass(slots=True)
class _Reader:
    """How to read the objects from the arguments of a fact, and for each premise that such a fact can be: its bit, its
    offset in time, and its place."""

    objects: Callable[[Sequence[Any]], Objects]
    premises: list[tuple[int, int, int]] = field(default_factory=list)


class Tables:
    """The bindings whose premises have the same delays. `ends` says for every premise how long after the binding's time
    its fact may come."""

    def __init__(self, ends: tuple[int, ...]) -> None:
        #: By time, and then by objects: which premises have come.
        self.masks: dict[int, dict[Objects, int]] = {}
        self.last = max(ends)
        #: For every premise, until when after the binding's time all others may come.
        self.reach = [min(ends[:i] + ends[i + 1 :], default=self.last) for i in range(len(ends))]
        #: What must have come once so much time has gone by since a binding's time.
        self._musts = {end: sum(1 << i for i, other in enumerate(ends) if other <= end) for end in sorted(set(ends))}

    def must(self, gone: int) -> int:
        """What must have come when so much time has gone by."""
        return max((mask for end, mask in self._musts.items() if end <= gone), default=0)

    def drop(self, before: int, tau: int) -> None:
        """Drop what can no longer be at `tau`; `before` is the moment up to which this was done."""
        for time in list(self.masks):
            must = self.must(tau - 1 - time)
            if time + self.last < tau:
                del self.masks[time]
            elif must != self.must(before - 1 - time):
                self.masks[time] = {key: mask for key, mask in self.masks[time].items() if mask & must == must}


def is_regular(schema: Compiled) -> bool:
    """Whether every premise has all variables, each once, and the same one as its time."""
    clocks = {premise.clock for premise in schema.premises}
    return (
        len(clocks) == 1
        and None not in clocks
        and not schema.schema.comparisons
        and all(
            len(premise.places) == len(schema.names) == 1 + sum(slot is not None for slot in premise.slots)
            for premise in schema.premises
        )
    )


class Regular:
    """All open hypotheses of a query with a single, regular schema."""

    def __init__(self, schema: Compiled, delays: Delays) -> None:
        self.schema = schema
        self.tau = -1
        #: By delays, as the tables have them.
        self.tables: dict[tuple[int, ...], Tables] = {}
        self._delays = delays
        self._clock = len(schema.names) - 1
        #: No premise is before time 0.
        self._first = -min(premise.offset for premise in schema.premises)
        self._dispatch = Dispatch(self._readers())
        self._known: dict[Objects, Tables] = {}
        plain = all(delays.plain(premise.predicate) is not None for premise in schema.premises)
        #: The tables of all bindings, if they are the same for all.
        self._only = self.tables_of(self._ends(schema.unbound)) if plain else None

    def _readers(self) -> Iterator[tuple[Any, _Reader]]:
        readers: dict[object, _Reader] = {}
        for place, premise in enumerate(self.schema.premises):
            where = [premise.slots.index(slot) for slot in range(self._clock)]
            key = (premise.predicate, premise.constants, tuple(where))
            new = key not in readers
            reader = readers.setdefault(key, _Reader(getter(where)))
            reader.premises.append((1 << place, premise.offset, place))
            if new:
                yield premise, reader

    def _ends(self, binding: Binding) -> tuple[int, ...]:
        premises = self.schema.premises
        return tuple(p.offset + self._delays.of(p.predicate, p.args(binding)) for p in premises)

    def tables_of(self, ends: tuple[int, ...]) -> Tables:
        found = self.tables.get(ends)
        if found is None:
            found = self.tables[ends] = Tables(ends)
        return found

    def _find(self, objects: Objects) -> Tables:
        """The tables of a binding, by the delays of its facts."""
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        found = self._known[objects] = self.tables_of(self._ends(self._binding(objects, 0)))
        return found

    def move(self, tau: int) -> None:
        """Time goes on to `tau`: drop what could only come before it."""
        for tables in self.tables.values():
            tables.drop(self.tau, tau)
        self.tau = tau

    def arrive(self, facts: Iterable[GroundFact]) -> list[Binding]:
        """Take facts that may come now; gives the bindings that they complete."""
        tau, full, first, single = self.tau, self.schema.full, self._first, self._clock == 1
        dispatch, known_tables, only = self._dispatch.tables, self._known, self._only
        answers: list[Binding] = []
        for predicate, args, time in facts:
            for read, waiting in dispatch[predicate]:
                for reader in waiting.get(read(args), ()):
                    objects = reader.objects(args)
                    tables = only or known_tables.get(objects) or self._find(objects)
                    masks = tables.masks
                    for bit, offset, place in reader.premises:
                        start = time - offset
                        table = masks.get(start, _NONE)
                        known = table.get(objects)
                        if known is None:
                            if start < first or start + tables.reach[place] < tau:
                                continue
                            if table is _NONE:
                                table = masks[start] = {}
                            table[objects] = bit
                            if bit != full:
                                continue
                        elif known & bit:
                            continue
                        else:
                            known |= bit
                            table[objects] = known
                            if known != full:
                                continue
                        answers.append((objects, start) if single else (*objects, start))
        return answers

    def open(self) -> Iterator[tuple[int, Binding]]:
        """The masks and bindings of what can still come true after this moment."""
        full = self.schema.full
        for tables in self.tables.values():
            for time, table in tables.masks.items():
                must = tables.must(self.tau - time)
                for objects, mask in table.items():
                    if mask != full and mask & must == must:
                        yield mask, self._binding(objects, time)

    def _binding(self, objects: Objects, time: int) -> Binding:
        return (objects, time) if self._clock == 1 else (*objects, time)
