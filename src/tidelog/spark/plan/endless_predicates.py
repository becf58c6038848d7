"""Predicates whose facts a finite DataFrame may not be able to hold."""

from __future__ import annotations

from tidelog.analysis.predicate_graph import body_atoms, find_components
from tidelog.analysis.rule_ranges import rule_ranges
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom


def find_endless_predicates(program: Program) -> frozenset[str]:
    """Find the predicates whose facts may repeat forever: those in a recursion through time, and all that read them.

    In a batch job such facts cannot pass from one stage to the next, since no finite set of rows holds them.
    """
    through_time = {
        head.predicate
        for rule in program.rules
        if (head := head_atom(rule)) is not None and any(True for _ in rule_ranges(rule))
    }
    graph: dict[str, list[str]] = {}
    for rule in program.rules:
        if (head := head_atom(rule)) is not None:
            graph.setdefault(head.predicate, []).extend(atom.predicate for atom, _ in body_atoms(rule))
    found = {
        name
        for component in find_components(graph)
        if component.recursive and not through_time.isdisjoint(component.predicates)
        for name in component.predicates
    }
    while more := {name for name, below in graph.items() if not found.isdisjoint(below)} - found:
        found |= more
    return frozenset(found)
