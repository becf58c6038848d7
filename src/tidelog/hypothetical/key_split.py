"""Find the arguments by which awaited facts can be distributed over buckets that work independently.

This is sound if some argument of the answer is also an argument of every premise, in every schema, at the same position
for each predicate. Then all facts of one supported answer, and all supported answers of one answer, which compete with
each other, meet in one bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidelog.hypothetical.schemas import Query, Schema
from tidelog.hypothetical.supported_answers import format_atom
from tidelog.language.syntax import Term, TimeTerm


@dataclass(frozen=True)
class KeySplit:
    """The argument (from 0) that selects the bucket of a fact, by predicate; or the reason why there is none."""

    keys: Mapping[str, int]
    reason: str = ""

    @property
    def single(self) -> bool:
        """Whether all facts go to one bucket."""
        return bool(self.reason)


def find_key_split(query: Query, schemas: Sequence[Schema]) -> KeySplit:
    """Return how to distribute the facts that the schemas of a query await.

    >>> from tidelog.hypothetical.session import Hypotheses
    >>> from tidelog.language.program import Program
    >>> def split(rules):
    ...     session = Hypotheses(Program.parse(rules, syntax="tdl"), "P(X, T)")
    ...     return find_key_split(session.query, session.schemas)
    >>> split("P(X, T) :- A(X, T), B(Y, X, T+1).").keys
    {'A': 0, 'B': 1}
    >>> split("P(X, T) :- A(X, T), C(T+1).").reason
    'since no argument of P is in all of A(X,T), C(T+1)'
    """
    name = query.atom.predicate
    if not all(schema.premises for schema in schemas):
        return KeySplit({}, f"since there are answers to {name} that await nothing")
    positions = range(len(query.variables))
    for position in positions:
        keys = _find_keys(schemas, position)
        if keys:
            return KeySplit(keys)
    for schema in schemas:
        if not any(all(schema.answer[position] in atom.args for atom in schema.premises) for position in positions):
            atoms = ", ".join(map(format_atom, schema.premises))
            return KeySplit({}, f"since no argument of {name} is in all of {atoms}")
    return KeySplit({}, f"since no argument of {name} is in the same place in all ways to it")


def _find_keys(schemas: Sequence[Schema], position: int) -> dict[str, int]:
    """Return the argument of each predicate that equals one of the answer, in all schemas; empty if one has none."""
    found: dict[str, set[int]] = {}
    for schema in schemas:
        key = schema.answer[position]
        for atom in schema.premises:
            here = {i for i, term in enumerate(atom.args) if _equals_key(term, key)}
            found[atom.predicate] = found.get(atom.predicate, here) & here
    return {name: min(at) for name, at in found.items()} if all(found.values()) else {}


def _equals_key(term: Term, key: Term | TimeTerm) -> bool:
    return not isinstance(key, TimeTerm) and term == key
