"""Recursive rules: find cycles, and say why nothing bounds them."""

from __future__ import annotations

from tidelog.analysis.predicate_graph import find_components
from tidelog.analysis.temporal_dependencies import temporal_body_atoms
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.hypothetical.schemas import Query, Schema
from tidelog.hypothetical.supported_answers import schema_to_text
from tidelog.language.syntax import TemporalRule


def find_cycle(rules: list[TemporalRule]) -> str | None:
    """Return a cycle of predicates as text; None where there is no recursion."""
    graph = _build_graph(rules)
    cycles = [part.predicates for part in find_components(graph) if part.recursive]
    return _format_cycle(graph, cycles[0]) if cycles else None


def _build_graph(rules: list[TemporalRule]) -> dict[str, list[str]]:
    graph: dict[str, list[str]] = {}
    for rule in rules:
        assert rule.head is not None
        graph.setdefault(rule.head.predicate, []).extend(atom.predicate for atom in temporal_body_atoms(rule))
    return graph


def unbounded_recursion_error(
    rules: list[TemporalRule], query: Query, cycle: str, grown: Schema | None
) -> TidelogError:
    """Return the error for recursion that nothing bounds; `grown` is a schema that a deeper resolution added."""
    why = f", and goes on to {schema_to_text(query, grown)}" if grown else ""
    time = query.atom.time
    fixed = "ask for one time instead of any, if rules only look back; or " if time and time.variable else ""
    return TidelogError(
        Diagnostic(
            "TL701",
            f"resolution of {query.atom.predicate} does not terminate: {cycle} is a cycle{why}",
            _find_place(rules, tuple(cycle.split(" -> "))),
            help=f"{fixed}limit resolution: --depth N for proofs of at most N rules on top of each other, or "
            "--horizon H for facts at most H before or after the answer",
        )
    )


def require_moving_cycles(rules: list[TemporalRule], query: str, horizon: int) -> None:
    """Raise for recursion that never leaves a horizon."""
    recurring = _find_timeless_cycle(rules, query, horizon)
    if recurring:
        raise TidelogError(
            Diagnostic(
                "TL701",
                f"resolution of {query} does not terminate within the horizon: {recurring} depends on "
                "itself at the same time",
                _find_place(rules, (recurring,)),
                law="a horizon limits only recursion that always moves in time in the same direction",
                help="limit the number of rules on top of each other instead: --depth N",
            )
        )


def _find_timeless_cycle(rules: list[TemporalRule], query: str, horizon: int) -> str | None:
    """Return a predicate that can depend on itself at the same time, through times at most `horizon` from the query's.

    All times at no fixed distance from the query's count as one."""
    graph: dict[str, list[str]] = {}
    pending: list[tuple[str, int | None]] = [(query, 0)]
    while pending:
        name, at = pending.pop()
        if f"{name} {at}" in graph:
            continue
        successors = graph.setdefault(f"{name} {at}", [])
        for rule in rules:
            head = rule.head
            if head is None or head.predicate != name:
                continue
            for atom in temporal_body_atoms(rule):
                to = None
                if at is not None and head.time and atom.time and head.time.variable == atom.time.variable:
                    to = at + atom.time.offset - head.time.offset
                if to is None or abs(to) <= horizon:
                    successors.append(f"{atom.predicate} {to}")
                    pending.append((atom.predicate, to))
    return next((part.predicates[0].split(" ")[0] for part in find_components(graph) if part.recursive), None)


def _format_cycle(graph: dict[str, list[str]], members: tuple[str, ...]) -> str:
    """Return a path from the first member back to itself, as text."""
    start = members[0]
    predecessors: dict[str, str] = {}
    queue = [start]
    for name in queue:
        for successor in graph.get(name, ()):
            if successor == start:
                path = [name]
                while path[-1] != start:
                    path.append(predecessors[path[-1]])
                return " -> ".join([*reversed(path), start])
            if successor in members and successor not in predecessors:
                predecessors[successor] = name
                queue.append(successor)
    raise AssertionError(f"{members} is not a cycle")


def _find_place(rules: list[TemporalRule], members: tuple[str, ...]) -> Place | None:
    """Return the place of a rule of a cycle that leads back into it."""
    for rule in rules:
        if (
            rule.head
            and rule.head.predicate in members
            and any(atom.predicate in members for atom in temporal_body_atoms(rule))
        ):
            return rule.place
    return None
