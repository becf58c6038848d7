"""Open hypotheses of a single schema in which every premise has all variables, one of them the time.

Any fact then binds all variables. The open hypotheses are a mask per binding, in tables by time: an arrival looks up
one mask for each premise that it matches, and a deadline of a time concerns only the table of that time. An answer
stays in its table until the last deadline, so a fact that arrives twice finds it there. If delays depend on constants,
bindings with the same delays share tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidelog.hypothetical.compiled_schemas import Binding, CompiledSchema, PremiseDispatch, build_getter
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.ground_facts import GroundFact

#: The values of the object variables: the value itself if there is one, a tuple otherwise.
Objects = Any

#: The table of a time without hypotheses.
_EMPTY_TABLE: dict[Objects, int] = {}
#: The largest number of objects whose delays are cached.
_MAX_KNOWN = 100_000


@dataclass(slots=True)
class _Reader:
    """How to read the objects from the arguments of a fact, and the premises that the fact matches.

    Each premise is its bit, its offset in time, and its index."""

    objects: Callable[[Sequence[Any]], Objects]
    premises: list[tuple[int, int, int]] = field(default_factory=list)


class MaskTables:
    """The bindings whose premises have the same delays.

    `ends` has, for each premise, how long after the time of the binding its fact may arrive."""

    def __init__(self, ends: tuple[int, ...]) -> None:
        #: By time and then by objects: the mask of the premises that have arrived.
        self.masks: dict[int, dict[Objects, int]] = {}
        self.last = max(ends)
        #: For each premise, how long after the time of the binding all other premises may still arrive.
        self.reach = [min(ends[:i] + ends[i + 1 :], default=self.last) for i in range(len(ends))]
        #: The premises that must have arrived, by the time that has passed since the time of the binding.
        self._required = {end: sum(1 << i for i, other in enumerate(ends) if other <= end) for end in sorted(set(ends))}

    def required_mask(self, elapsed: int) -> int:
        """Return the mask of the premises that must have arrived after this much time."""
        return max((mask for end, mask in self._required.items() if end <= elapsed), default=0)

    def drop(self, before: int, tau: int) -> None:
        """Drop what can no longer become an answer at `tau`; `before` is the moment of the last call."""
        for time in list(self.masks):
            required = self.required_mask(tau - 1 - time)
            if time + self.last < tau:
                del self.masks[time]
            elif required != self.required_mask(before - 1 - time):
                table = self.masks[time]
                self.masks[time] = {key: mask for key, mask in table.items() if mask & required == required}


#: A hypothesis by its place: its tables, its time and its objects.
_Place = tuple[MaskTables, int, Objects]


def _keep_open(mask: int | None, full: int, required: int) -> int | None:
    """Return the mask of a hypothesis that can still become an answer, else None."""
    return None if mask is None or mask == full or mask & required != required else mask


def is_regular(schema: CompiledSchema) -> bool:
    """Return whether every premise has all variables, each once, and the same time variable."""
    time_slots = {premise.time_slot for premise in schema.premises}
    return (
        len(time_slots) == 1
        and None not in time_slots
        and not schema.schema.comparisons
        and all(
            len(premise.slots) == len(schema.names) == 1 + sum(slot is not None for slot in premise.arg_slots)
            for premise in schema.premises
        )
    )


class RegularHypotheses:
    """All open hypotheses of a query with a single, regular schema."""

    def __init__(self, schema: CompiledSchema, delays: Delays) -> None:
        self.schema = schema
        self.tau = -1
        #: Tables by the `ends` of their premises.
        self.tables: dict[tuple[int, ...], MaskTables] = {}
        self._delays = delays
        #: The slot of the time variable, which is the last, and so the number of objects.
        self._time_slot = len(schema.names) - 1
        #: The first time of a binding: no premise is before time 0.
        self._first_time = -min(premise.offset for premise in schema.premises)
        self._dispatch = PremiseDispatch(self._readers())
        self._tables_by_objects: dict[Objects, MaskTables] = {}
        uniform = all(delays.uniform_delay(premise.predicate) is not None for premise in schema.premises)
        #: The tables of all bindings, if all have the same delays.
        self._shared_tables = self.tables_of(self._ends(schema.unbound)) if uniform else None
        #: The masks before this step of all hypotheses that it concerned; None if nobody asked for changes.
        self._journal: dict[_Place, int | None] | None = None
        #: The hypotheses that were open before this step and need a fact by now.
        self._expiring: dict[_Place, int] = {}

    def _readers(self) -> Iterator[tuple[Any, _Reader]]:
        readers: dict[object, _Reader] = {}
        for index, premise in enumerate(self.schema.premises):
            positions = [premise.arg_slots.index(slot) for slot in range(self._time_slot)]
            key = (premise.predicate, premise.constants, tuple(positions))
            is_new = key not in readers
            reader = readers.setdefault(key, _Reader(build_getter(positions)))
            reader.premises.append((1 << index, premise.offset, index))
            if is_new:
                yield premise, reader

    def _ends(self, binding: Binding) -> tuple[int, ...]:
        premises = self.schema.premises
        return tuple(p.offset + self._delays.of(p.predicate, p.args(binding)) for p in premises)

    def tables_of(self, ends: tuple[int, ...]) -> MaskTables:
        """Return the tables for bindings with these ends, new ones if there are none."""
        tables = self.tables.get(ends)
        if tables is None:
            tables = self.tables[ends] = MaskTables(ends)
        return tables

    def _find_tables(self, objects: Objects) -> MaskTables:
        """Return the tables of a binding, by the delays of its facts."""
        if len(self._tables_by_objects) >= _MAX_KNOWN:
            self._tables_by_objects.clear()
        tables = self._tables_by_objects[objects] = self.tables_of(self._ends(self._binding(objects, 0)))
        return tables

    def advance(self, tau: int) -> None:
        """Advance time to `tau`: drop hypotheses whose deadline has passed."""
        if self._journal is not None:
            self._record_expiring(tau)
        for tables in self.tables.values():
            tables.drop(self.tau, tau)
        self.tau = tau

    def has_arrived(self, fact: GroundFact, deadline: int) -> bool:
        """Return False: no premise is a fact before any fact has bound its variables."""
        return False

    def is_answered(self, values: Sequence[object]) -> bool:
        """Return False: no answer is known before any fact has bound its variables."""
        return False

    def start_journal(self) -> None:
        """Begin to record changes for `take_changes`."""
        self._journal, self._expiring = {}, {}

    def stop_journal(self) -> None:
        """Record changes no longer."""
        self._journal, self._expiring = None, {}

    def take_changes(self) -> Iterator[tuple[int | None, int | None, Binding]]:
        """Yield the hypotheses that changed since the last call, each with its mask before and now.

        A mask is None if the hypothesis was, or is, not open. Hypotheses that became answers are left out."""
        assert self._journal is not None
        touched, expiring = self._journal, self._expiring
        self.start_journal()
        full = self.schema.full
        masks: dict[tuple[MaskTables, int], int] = {}
        for place in dict.fromkeys((*touched, *expiring)):
            tables, time, objects = place
            required = masks.get((tables, time), -1)
            if required < 0:
                required = masks[tables, time] = tables.required_mask(self.tau - time)
            before = expiring.get(place)
            if before is None:
                before = _keep_open(touched[place], full, required)
            mask = tables.masks.get(time, _EMPTY_TABLE).get(objects)
            now = _keep_open(mask, full, required)
            if before != now and mask != full:
                yield before, now, self._binding(objects, time)

    def _record_expiring(self, tau: int) -> None:
        full = self.schema.full
        for tables in self.tables.values():
            for time, table in tables.masks.items():
                earlier, required = tables.required_mask(self.tau - time), tables.required_mask(tau - time)
                if earlier != required:
                    for objects, mask in table.items():
                        if mask != full and mask & earlier == earlier and mask & required != required:
                            self._expiring[tables, time, objects] = mask

    def add_facts(self, facts: Iterable[GroundFact]) -> list[Binding]:
        """Add facts that may arrive now; return the bindings that they complete."""
        tau, full, first_time, single = self.tau, self.schema.full, self._first_time, self._time_slot == 1
        dispatch, known_tables, shared = self._dispatch.tables, self._tables_by_objects, self._shared_tables
        journal = self._journal
        answers: list[Binding] = []
        for predicate, args, time in facts:
            for read_key, waiting in dispatch[predicate]:
                for reader in waiting.get(read_key(args), ()):
                    objects = reader.objects(args)
                    tables = shared or known_tables.get(objects) or self._find_tables(objects)
                    masks = tables.masks
                    for bit, offset, index in reader.premises:
                        start = time - offset
                        table = masks.get(start, _EMPTY_TABLE)
                        mask = table.get(objects)
                        if journal is not None and (tables, start, objects) not in journal:
                            journal[tables, start, objects] = mask
                        if mask is None:
                            if start < first_time or start + tables.reach[index] < tau:
                                continue
                            if table is _EMPTY_TABLE:
                                table = masks[start] = {}
                            table[objects] = bit
                            if bit != full:
                                continue
                        elif mask & bit:
                            continue
                        else:
                            mask |= bit
                            table[objects] = mask
                            if mask != full:
                                continue
                        answers.append((objects, start) if single else (*objects, start))
        return answers

    def open_hypotheses(self) -> Iterator[tuple[int, Binding]]:
        """Yield the masks and bindings of hypotheses that can still become answers after this moment."""
        full = self.schema.full
        for tables in self.tables.values():
            for time, table in tables.masks.items():
                required = tables.required_mask(self.tau - time)
                for objects, mask in table.items():
                    if mask != full and mask & required == required:
                        yield mask, self._binding(objects, time)

    def _binding(self, objects: Objects, time: int) -> Binding:
        return (objects, time) if self._time_slot == 1 else (*objects, time)
