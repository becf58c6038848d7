"""Schemas made ready for arrivals: variables are places in a tuple, and atoms know how to read a fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import Any, TypeVar

from tidelog.hypothetical.comparisons import holds
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.schemas import Schema, atom_names, term_names
from tidelog.language.syntax import Constant, TemporalAtom, Term, TimeTerm, Value, Variable

T = TypeVar("T")

#: A constant inside: whole numbers are `int`, which is equal to the fraction and quicker.
Inside = Value | int
#: What the variables of a schema stand for; None for those that are still open.
Binding = tuple[Inside | None, ...]
#: Values of which none is open.
Known = tuple[Inside, ...]
#: A fact: its predicate, its arguments without the time, its time (0 for rigid facts).
GroundFact = tuple[str, Known, int]
#: What is known of a fact that has not come; None for a time or an argument that is still open.
Awaited = tuple[str, tuple[Inside | None, ...], int | None]


@dataclass(frozen=True, slots=True)
class Premise:
    """An atom of a schema. `places` are those of its variables in a binding; of `args`, a slot is the place of a
    variable, and the constant stands beside it."""

    predicate: str
    slots: tuple[int | None, ...]
    constants: tuple[Inside | None, ...]
    #: The place of the time variable, or None where the time is the offset itself.
    clock: int | None
    offset: int
    rigid: bool
    places: frozenset[int]

    def args(self, binding: Binding) -> tuple[Inside | None, ...]:
        pairs = zip(self.slots, self.constants, strict=True)
        return tuple(constant if slot is None else binding[slot] for slot, constant in pairs)

    def time(self, binding: Binding) -> int | None:
        if self.clock is None:
            return self.offset
        start = binding[self.clock]
        return start + self.offset if isinstance(start, int) else None

    def deadline(self, binding: Binding, delays: Delays) -> int | None:
        """The last moment at which a fact for this premise may come; None while its time is open."""
        time = self.time(binding)
        return None if time is None else time + delays.of(self.predicate, self.args(binding))

    def extended(self, binding: Binding, args: Sequence[Inside], time: int) -> Binding | None:
        """The binding under which this premise is the fact, whose constants are known to fit; None if there is none."""
        found = list(binding)
        for slot, arg in zip(self.slots, args, strict=True):
            if slot is not None:
                known = found[slot]
                if known is None:
                    found[slot] = arg
                elif known != arg:
                    return None
        if self.clock is None:
            return tuple(found) if time == self.offset else None
        start = found[self.clock]
        if start is None:
            found[self.clock] = time - self.offset
        elif start != time - self.offset:
            return None
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A schema with its premises in terms of places; `answer` has a place and an offset for each variable of the query
    that is not a constant."""

    number: int
    schema: Schema
    names: tuple[str, ...]
    premises: tuple[Premise, ...]
    answer: tuple[tuple[int, int] | Inside, ...]
    full: int

    @property
    def unbound(self) -> Binding:
        return (None,) * len(self.names)

    def answered(self, binding: Binding) -> tuple[Inside | None, ...]:
        """What the variables of the query stand for."""
        return tuple(_shifted(binding, part) if isinstance(part, tuple) else part for part in self.answer)

    def evidence(self, mask: int, binding: Binding) -> Iterator[GroundFact]:
        """The facts that have come, by a mask of the premises that they are."""
        for place, premise in enumerate(self.premises):
            if mask >> place & 1:
                time = premise.time(binding)
                assert time is not None
                yield premise.predicate, known(premise.args(binding)), time

    def allows(self, binding: Binding) -> bool:
        """Whether no comparison that can be judged yet is false."""
        for comparison in self.schema.comparisons:
            left, right = (self._value(term, binding) for term in (comparison.left, comparison.right))
            if left is not None and right is not None and not holds(comparison.op, left, right):
                return False
        return True

    def _value(self, term: Term, binding: Binding) -> Inside | None:
        return binding[self.names.index(term.name)] if isinstance(term, Variable) else inside(term.value)

    def substitution(self, binding: Binding) -> dict[str, Term | TimeTerm]:
        """The binding in terms of syntax."""
        clocks = {premise.clock for premise in self.premises}
        return {
            name: TimeTerm(None, value) if place in clocks and isinstance(value, int) else Constant(outside(value))
            for place, (name, value) in enumerate(zip(self.names, binding, strict=True))
            if value is not None
        }


def known(values: Iterable[Inside | None]) -> Known:
    """Values none of which is open."""
    return tuple(value for value in values if value is not None)


def _shifted(binding: Binding, part: tuple[int, int]) -> Inside | None:
    value = binding[part[0]]
    return value + part[1] if part[1] and isinstance(value, int) else value


def inside(value: Value) -> Inside:
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def outside(value: Inside) -> Value:
    return Fraction(value) if isinstance(value, int) else value


def compiled(number: int, schema: Schema) -> Compiled:
    objects = dict.fromkeys(t.name for p in schema.premises for t in p.args if isinstance(t, Variable))
    times = dict.fromkeys(p.time.variable for p in schema.premises if p.time and p.time.variable)
    others = dict.fromkeys(name for term in schema.answer for name in term_names(term))
    names = tuple(dict.fromkeys([*objects, *times, *others]))
    places = {name: place for place, name in enumerate(names)}
    premises = tuple(_premise(atom, places) for atom in schema.premises)
    answer = tuple(_part(term, places) for term in schema.answer)
    return Compiled(number, schema, names, premises, answer, (1 << len(premises)) - 1)


def _premise(atom: TemporalAtom, places: dict[str, int]) -> Premise:
    time = atom.time or TimeTerm(None, 0)
    return Premise(
        atom.predicate,
        tuple(places[term.name] if isinstance(term, Variable) else None for term in atom.args),
        tuple(inside(term.value) if isinstance(term, Constant) else None for term in atom.args),
        None if time.variable is None else places[time.variable],
        time.offset,
        atom.time is None,
        frozenset(places[name] for name in atom_names(atom)),
    )


def _part(term: Term | TimeTerm, places: dict[str, int]) -> tuple[int, int] | Inside:
    if isinstance(term, TimeTerm):
        return term.offset if term.variable is None else (places[term.variable], term.offset)
    return (places[term.name], 0) if isinstance(term, Variable) else inside(term.value)


def getter(places: Sequence[int]) -> Callable[[Sequence[Any]], Any]:
    """Reads some places of a tuple: the value for a single place, a tuple for several, () for none."""
    return itemgetter(*places) if places else _nothing


def _nothing(values: Sequence[Any]) -> tuple[()]:
    return ()


class Dispatch:
    """Finds what waits for facts like a given one, by its predicate and the constants that atoms want in it."""

    def __init__(self, premises: Iterable[tuple[Premise, T]]) -> None:
        #: By predicate: how to read a key from the arguments, and what waits by key.
        self.tables: dict[str, list[tuple[Callable[[Sequence[Any]], Any], dict[Any, list[Any]]]]] = {}
        by_shape: dict[tuple[str, tuple[int, ...]], dict[Any, list[Any]]] = {}
        for premise, waiting in premises:
            fixed = tuple(i for i, slot in enumerate(premise.slots) if slot is None)
            read = getter(fixed)
            table = by_shape.get((premise.predicate, fixed))
            if table is None:
                table = by_shape[premise.predicate, fixed] = {}
                self.tables.setdefault(premise.predicate, []).append((read, table))
            table.setdefault(read(premise.constants), []).append(waiting)

    def find(self, predicate: str, args: Sequence[Inside]) -> list[Any]:
        found: list[Any] = []
        for read, table in self.tables.get(predicate, ()):
            found += table.get(read(args), ())
        return found
