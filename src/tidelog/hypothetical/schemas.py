"""What a query resolves to: schemas, which are sets of extensional atoms that together make an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidelog.language.syntax import Comparison, TemporalAtom, Term, TimeTerm, Variable

#: What variables stand for, all at once; names of objects and of times are never the same in one schema.
Substitution = Mapping[str, Term | TimeTerm]


@dataclass(frozen=True, slots=True)
class Query:
    """An atom, and the names of its variables in order; anonymous ones are not asked for."""

    atom: TemporalAtom
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """`answer` says what each variable of the query stands for; it is one if all premises are facts."""

    answer: tuple[Term | TimeTerm, ...]
    premises: tuple[TemporalAtom, ...]
    comparisons: tuple[Comparison, ...] = ()


def query_of(atom: TemporalAtom) -> Query:
    names = [term.name for term in atom.args if isinstance(term, Variable) and not term.anonymous]
    if atom.time and atom.time.variable and not is_anonymous(atom.time.variable):
        names.append(atom.time.variable)
    return Query(atom, tuple(dict.fromkeys(names)))


def is_anonymous(name: str) -> bool:
    """Whether a time variable was written as `_`."""
    return name.startswith("_") and name[1:].isdigit()


def names(schema: Schema) -> dict[str, None]:
    """The variables of a schema, each once, in order."""
    return dict.fromkeys(_names(schema))


def atom_names(atom: TemporalAtom) -> Iterator[str]:
    for term in atom.args:
        if isinstance(term, Variable):
            yield term.name
    if atom.time and atom.time.variable:
        yield atom.time.variable


def term_names(term: Term | TimeTerm) -> Iterator[str]:
    if isinstance(term, Variable):
        yield term.name
    elif isinstance(term, TimeTerm) and term.variable:
        yield term.variable


def _names(schema: Schema) -> Iterator[str]:
    for answer in schema.answer:
        yield from term_names(answer)
    for atom in schema.premises:
        yield from atom_names(atom)
    for comparison in schema.comparisons:
        yield from term_names(comparison.left)
        yield from term_names(comparison.right)


def applied(schema: Schema, by: Substitution) -> Schema:
    """The schema under a substitution; premises that become the same are one."""
    return Schema(
        tuple(apply(term, by) for term in schema.answer),
        tuple(dict.fromkeys(apply_atom(atom, by) for atom in schema.premises)),
        tuple(dict.fromkeys(apply_comparison(comparison, by) for comparison in schema.comparisons)),
    )


def apply(term: Term | TimeTerm, by: Substitution) -> Term | TimeTerm:
    return apply_time(term, by) if isinstance(term, TimeTerm) else apply_term(term, by)


def apply_term(term: Term, by: Substitution) -> Term:
    if isinstance(term, Variable):
        found = by.get(term.name, term)
        assert not isinstance(found, TimeTerm)
        return found
    return term


def apply_time(time: TimeTerm, by: Substitution) -> TimeTerm:
    if time.variable is None or time.variable not in by:
        return time
    found = by[time.variable]
    assert isinstance(found, TimeTerm)
    return TimeTerm(found.variable, found.offset + time.offset)


def apply_atom(atom: TemporalAtom, by: Substitution) -> TemporalAtom:
    time = apply_time(atom.time, by) if atom.time else None
    return TemporalAtom(atom.predicate, tuple(apply_term(term, by) for term in atom.args), time, atom.place)


def apply_comparison(comparison: Comparison, by: Substitution) -> Comparison:
    left, right = apply_term(comparison.left, by), apply_term(comparison.right, by)
    return Comparison(comparison.op, left, right, comparison.place)
