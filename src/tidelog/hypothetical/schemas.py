"""Schemas, the result of resolving a query: sets of extensional atoms that together make an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tidelog.language.syntax import Comparison, TemporalAtom, Term, TimeTerm, Variable

#: The terms that replace variables, all at once. In one schema, objects and times never share a name.
Substitution = Mapping[str, Term | TimeTerm]


@dataclass(frozen=True, slots=True)
class Query:
    """An atom and the names of its variables in order, without anonymous ones."""

    atom: TemporalAtom
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """Premises and the answer that they make: a term for each variable of the query.

    `blockers` prevent the answer. They are not part of the `repr`, which the fingerprints of saved sessions contain."""

    answer: tuple[Term | TimeTerm, ...]
    premises: tuple[TemporalAtom, ...]
    comparisons: tuple[Comparison, ...] = ()
    blockers: tuple[Blocker, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Blocker:
    """One way in which something negated comes true: a schema with variables of its own.

    Its answer are the terms `outer` of the schema that it blocks."""

    outer: tuple[Term | TimeTerm, ...]
    schema: Schema
    #: The negated atom.
    atom: TemporalAtom = field(compare=False)


def list_awaited(schema: Schema) -> tuple[TemporalAtom, ...]:
    """Return the atoms whose facts matter to a schema, those that block it included."""
    return (*schema.premises, *(atom for blocker in schema.blockers for atom in blocker.schema.premises))


def apply_answer(query: Query, schema: Schema) -> TemporalAtom:
    """Return the atom of the query as the schema answers it."""
    return apply_to_atom(query.atom, dict(zip(query.variables, schema.answer, strict=True)))


def build_query(atom: TemporalAtom) -> Query:
    """Return the query for an atom."""
    names = [term.name for term in atom.args if isinstance(term, Variable) and not term.anonymous]
    if atom.time and atom.time.variable and not is_anonymous(atom.time.variable):
        names.append(atom.time.variable)
    return Query(atom, tuple(dict.fromkeys(names)))


def is_anonymous(name: str) -> bool:
    """Return whether a time variable was written as `_`."""
    return name.startswith("_") and name[1:].isdigit()


def atom_variables(atom: TemporalAtom) -> Iterator[str]:
    """Yield the names of the variables of an atom."""
    for term in atom.args:
        if isinstance(term, Variable):
            yield term.name
    if atom.time and atom.time.variable:
        yield atom.time.variable


def term_variables(term: Term | TimeTerm) -> Iterator[str]:
    """Yield the name of the variable in a term, if there is one."""
    if isinstance(term, Variable):
        yield term.name
    elif isinstance(term, TimeTerm) and term.variable:
        yield term.variable


def apply_to_schema(schema: Schema, by: Substitution) -> Schema:
    """Return the schema under a substitution; premises that become equal are merged."""
    return Schema(
        tuple(apply_to_term(term, by) for term in schema.answer),
        tuple(dict.fromkeys(apply_to_atom(atom, by) for atom in schema.premises)),
        tuple(dict.fromkeys(apply_to_comparison(comparison, by) for comparison in schema.comparisons)),
        tuple(dict.fromkeys(apply_to_blocker(blocker, by) for blocker in schema.blockers)),
    )


def apply_to_blocker(blocker: Blocker, by: Substitution) -> Blocker:
    """Return a blocker under a substitution of variables of the schema that it blocks."""
    return replace(blocker, outer=tuple(apply_to_term(term, by) for term in blocker.outer))


def apply_to_term(term: Term | TimeTerm, by: Substitution) -> Term | TimeTerm:
    """Return an object or a time under a substitution."""
    return apply_to_time(term, by) if isinstance(term, TimeTerm) else apply_to_object(term, by)


def apply_to_object(term: Term, by: Substitution) -> Term:
    """Return a term that is no time under a substitution."""
    if isinstance(term, Variable):
        found = by.get(term.name, term)
        assert not isinstance(found, TimeTerm)
        return found
    return term


def apply_to_time(time: TimeTerm, by: Substitution) -> TimeTerm:
    """Return a time under a substitution."""
    if time.variable is None or time.variable not in by:
        return time
    found = by[time.variable]
    assert isinstance(found, TimeTerm)
    return TimeTerm(found.variable, found.offset + time.offset)


def apply_to_atom(atom: TemporalAtom, by: Substitution) -> TemporalAtom:
    """Return an atom under a substitution."""
    time = apply_to_time(atom.time, by) if atom.time else None
    return TemporalAtom(atom.predicate, tuple(apply_to_object(term, by) for term in atom.args), time, atom.place)


def apply_to_comparison(comparison: Comparison, by: Substitution) -> Comparison:
    """Return a comparison under a substitution."""
    left, right = apply_to_object(comparison.left, by), apply_to_object(comparison.right, by)
    return Comparison(comparison.op, left, right, comparison.place)
