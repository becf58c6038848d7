"""Schemas compiled for arrivals: variables are slots of a tuple, and premises know how to match a fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar

from tidelog.hypothetical.ground_facts import GroundArgs, GroundFact, Scalar, to_scalar, to_value
from tidelog.hypothetical.schemas import Schema, atom_variables, term_variables
from tidelog.language.comparisons import compare
from tidelog.language.syntax import Constant, TemporalAtom, Term, TimeTerm, Variable

T = TypeVar("T")

#: The values of a schema's variables, by slot; None for a variable that is still open.
Binding = tuple[Scalar | None, ...]


@dataclass(frozen=True, slots=True)
class Premise:
    """An atom of a schema.

    For each argument, `arg_slots` has the slot of a variable or None, and `constants` has the constant or None.
    `time_slot` is the slot of the time variable, or None if the time is `offset` itself. `slots` are the slots of all
    variables."""

    predicate: str
    arg_slots: tuple[int | None, ...]
    constants: tuple[Scalar | None, ...]
    time_slot: int | None
    offset: int
    slots: frozenset[int]

    def args(self, binding: Binding) -> tuple[Scalar | None, ...]:
        """Return the arguments under a binding; None for an open one."""
        pairs = zip(self.arg_slots, self.constants, strict=True)
        return tuple(constant if slot is None else binding[slot] for slot, constant in pairs)

    def time(self, binding: Binding) -> int | None:
        """Return the time under a binding, or None if it is open."""
        if self.time_slot is None:
            return self.offset
        start = binding[self.time_slot]
        return start + self.offset if isinstance(start, int) else None

    def extend_binding(self, binding: Binding, args: Sequence[Scalar], time: int) -> Binding | None:
        """Return the binding extended such that this premise is the fact, or None if they do not match.

        The caller has checked that the constants of the premise match (see `PremiseDispatch`)."""
        extended = list(binding)
        for slot, arg in zip(self.arg_slots, args, strict=True):
            if slot is not None:
                known = extended[slot]
                if known is None:
                    extended[slot] = arg
                elif known != arg:
                    return None
        if self.time_slot is None:
            return tuple(extended) if time == self.offset else None
        start = extended[self.time_slot]
        if start is None:
            extended[self.time_slot] = time - self.offset
        elif start != time - self.offset:
            return None
        return tuple(extended)


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema with its premises in terms of slots.

    `names` has the variable of each slot. `answer` has, for each variable of the query, a slot and an offset, or a
    constant. `full` is the mask of all premises."""

    number: int
    schema: Schema
    names: tuple[str, ...]
    premises: tuple[Premise, ...]
    answer: tuple[tuple[int, int] | Scalar, ...]
    full: int

    @property
    def unbound(self) -> Binding:
        """The binding in which every variable is open."""
        return (None,) * len(self.names)

    def answer_values(self, binding: Binding) -> tuple[Scalar | None, ...]:
        """Return the values of the query's variables; None for an open one."""
        return tuple(_shift_value(binding, part) if isinstance(part, tuple) else part for part in self.answer)

    def evidence(self, mask: int, binding: Binding) -> Iterator[GroundFact]:
        """Yield the facts that have arrived; `mask` has a bit for each premise that has."""
        for index, premise in enumerate(self.premises):
            if mask >> index & 1:
                time = premise.time(binding)
                assert time is not None
                yield premise.predicate, to_ground_args(premise.args(binding)), time

    def allows(self, binding: Binding) -> bool:
        """Return whether no comparison between known values is false."""
        for comparison in self.schema.comparisons:
            left, right = (self._value(term, binding) for term in (comparison.left, comparison.right))
            if left is not None and right is not None and not compare(comparison.op, left, right):
                return False
        return True

    def _value(self, term: Term, binding: Binding) -> Scalar | None:
        return binding[self.names.index(term.name)] if isinstance(term, Variable) else to_scalar(term.value)

    def substitution(self, binding: Binding) -> dict[str, Term | TimeTerm]:
        """Return the binding as a substitution of terms for variables."""
        time_slots = {premise.time_slot for premise in self.premises}
        return {
            name: TimeTerm(None, value) if slot in time_slots and isinstance(value, int) else Constant(to_value(value))
            for slot, (name, value) in enumerate(zip(self.names, binding, strict=True))
            if value is not None
        }


def to_ground_args(values: Iterable[Scalar | None]) -> GroundArgs:
    """Return values that are all known, with a type that says so."""
    return tuple(value for value in values if value is not None)


def _shift_value(binding: Binding, part: tuple[int, int]) -> Scalar | None:
    value = binding[part[0]]
    return value + part[1] if part[1] and isinstance(value, int) else value


def compile_schema(number: int, schema: Schema) -> CompiledSchema:
    """Compile a schema: give slots to its variables, first objects and then times."""
    objects = dict.fromkeys(t.name for p in schema.premises for t in p.args if isinstance(t, Variable))
    times = dict.fromkeys(p.time.variable for p in schema.premises if p.time and p.time.variable)
    others = dict.fromkeys(name for term in schema.answer for name in term_variables(term))
    names = tuple(dict.fromkeys([*objects, *times, *others]))
    slots = {name: slot for slot, name in enumerate(names)}
    premises = tuple(_compile_premise(atom, slots) for atom in schema.premises)
    answer = tuple(_compile_answer(term, slots) for term in schema.answer)
    return CompiledSchema(number, schema, names, premises, answer, (1 << len(premises)) - 1)


def _compile_premise(atom: TemporalAtom, slots: dict[str, int]) -> Premise:
    time = atom.time or TimeTerm(None, 0)
    return Premise(
        atom.predicate,
        tuple(slots[term.name] if isinstance(term, Variable) else None for term in atom.args),
        tuple(to_scalar(term.value) if isinstance(term, Constant) else None for term in atom.args),
        None if time.variable is None else slots[time.variable],
        time.offset,
        frozenset(slots[name] for name in atom_variables(atom)),
    )


def _compile_answer(term: Term | TimeTerm, slots: dict[str, int]) -> tuple[int, int] | Scalar:
    if isinstance(term, TimeTerm):
        return term.offset if term.variable is None else (slots[term.variable], term.offset)
    return (slots[term.name], 0) if isinstance(term, Variable) else to_scalar(term.value)


def build_getter(positions: Sequence[int]) -> Callable[[Sequence[Any]], Any]:
    """Return a function that reads positions of a tuple: a value for one position, a tuple for several, () for none."""
    return itemgetter(*positions) if positions else _get_nothing


def _get_nothing(values: Sequence[Any]) -> tuple[()]:
    return ()


class PremiseDispatch:
    """Find what waits for a fact, by its predicate and by the constants of premises."""

    def __init__(self, premises: Iterable[tuple[Premise, T]]) -> None:
        #: By predicate: how to read a key from the arguments, and what waits by key.
        self.tables: dict[str, list[tuple[Callable[[Sequence[Any]], Any], dict[Any, list[Any]]]]] = {}
        by_shape: dict[tuple[str, tuple[int, ...]], dict[Any, list[Any]]] = {}
        for premise, waiting in premises:
            fixed = tuple(i for i, slot in enumerate(premise.arg_slots) if slot is None)
            read_key = build_getter(fixed)
            table = by_shape.get((premise.predicate, fixed))
            if table is None:
                table = by_shape[premise.predicate, fixed] = {}
                self.tables.setdefault(premise.predicate, []).append((read_key, table))
            table.setdefault(read_key(premise.constants), []).append(waiting)

    def find(self, predicate: str, args: Sequence[Scalar]) -> list[Any]:
        """Return what waits for facts with this predicate and these arguments."""
        found: list[Any] = []
        for read_key, table in self.tables.get(predicate, ()):
            found += table.get(read_key(args), ())
        return found
