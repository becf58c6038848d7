"""By which of their arguments awaited facts can be spread over buckets, such that each bucket can work alone.

That is sound if some argument of the answer is also an argument of every awaited atom, in every way to an answer, and
always the same one for a predicate. Then facts of one entry, and all entries of one answer, which compete with each
other, meet in one bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidelog.hypothetical.entries import format_atom
from tidelog.hypothetical.schemas import Query, Schema
from tidelog.language.syntax import Term, TimeTerm


@dataclass(frozen=True)
class Splitting:
    """The argument (from 0) by which facts of each predicate go; or none, and why."""

    keys: Mapping[str, int]
    reason: str = ""

    @property
    def single(self) -> bool:
        return bool(self.reason)


def splitting(query: Query, schemas: Sequence[Schema]) -> Splitting:
    """How to spread the facts that the schemas of a query await.

    >>> from tidelog.hypothetical.online import Hypotheses
    >>> from tidelog.language.program import Program
    >>> def split(rules):
    ...     session = Hypotheses(Program.parse(rules, syntax="tdl"), "P(X, T)")
    ...     return splitting(session.query, session.schemas)
    >>> split("P(X, T) :- A(X, T), B(Y, X, T+1).").keys
    {'A': 0, 'B': 1}
    >>> split("P(X, T) :- A(X, T), C(T+1).").reason
    'since no argument of P is in all of A(X,T), C(T+1)'
    """
    name = query.atom.predicate
    if not all(schema.premises for schema in schemas):
        return Splitting({}, f"since there are answers to {name} that await nothing")
    places = range(len(query.variables))
    for place in places:
        keys = _keys(schemas, place)
        if keys:
            return Splitting(keys)
    for schema in schemas:
        if not any(all(schema.answer[place] in atom.args for atom in schema.premises) for place in places):
            atoms = ", ".join(map(format_atom, schema.premises))
            return Splitting({}, f"since no argument of {name} is in all of {atoms}")
    return Splitting({}, f"since no argument of {name} is in the same place in all ways to it")


def _keys(schemas: Sequence[Schema], place: int) -> dict[str, int]:
    """The arguments that are the one at a place of the answer, in all schemas; empty if some predicate has none."""
    found: dict[str, set[int]] = {}
    for schema in schemas:
        key = schema.answer[place]
        for atom in schema.premises:
            here = {i for i, term in enumerate(atom.args) if _same(term, key)}
            found[atom.predicate] = found.get(atom.predicate, here) & here
    return {name: min(at) for name, at in found.items()} if all(found.values()) else {}


def _same(term: Term, key: Term | TimeTerm) -> bool:
    return not isinstance(key, TimeTerm) and term == key
