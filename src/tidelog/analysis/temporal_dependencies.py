"""Dependencies between the predicates of temporal Datalog rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidelog.analysis.predicate_graph import reachable
from tidelog.language.syntax import TemporalAtom, TemporalLiteral, TemporalRule


def temporal_body_atoms(rule: TemporalRule, negated: bool | None = None) -> Iterator[TemporalAtom]:
    """Yield the atoms of a rule's body: all of them, or only those that are negated, or that are not."""
    literals = (literal for literal in rule.body if isinstance(literal, TemporalLiteral))
    return (literal.atom for literal in literals if negated is None or literal.negated == negated)


def needed_predicates(rules: Iterable[TemporalRule], predicate: str) -> set[str]:
    """Return the predicates that a predicate depends on, itself included."""
    successors: dict[str, set[str]] = {}
    for rule in rules:
        if rule.head:
            successors.setdefault(rule.head.predicate, set()).update(
                atom.predicate for atom in temporal_body_atoms(rule)
            )
    return reachable([predicate], lambda name: successors.get(name, ()))
