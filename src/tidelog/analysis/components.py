"""The predicate graph: strongly connected components in dependency order, and stratification.

A predicate depends on those in the bodies of its rules. A component is recursive if it depends on itself; a program
is stratified if no component depends on itself through a negation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.safety import atoms
from tidelog.language.syntax import Atom, Bottom, Literal, Rule, Unary

Node = TypeVar("Node", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Component:
    """Predicates that depend on each other; a single one that does not depend on itself is not recursive."""

    predicates: tuple[str, ...]
    recursive: bool


def dependencies(rule: Rule) -> Iterator[tuple[Atom, bool]]:
    """The atoms of a rule's body, each with whether it stands under `not`."""
    for literal in rule.body:
        if isinstance(literal, Literal):
            for atom in atoms(literal.formula):
                yield atom, literal.negated


def connected(graph: Mapping[str, Iterable[str]]) -> list[Component]:
    """Strongly connected components, each after all that it depends on. Nodes are the keys."""
    return [
        Component(tuple(sorted(members)), len(members) > 1 or members[0] in set(graph[members[0]]))
        for members in strongly_connected(graph)
    ]


def strongly_connected(graph: Mapping[Node, Iterable[Node]]) -> Iterator[list[Node]]:
    """Strongly connected components (Tarjan), each after all that its nodes lead to. Nodes are the keys."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()

    def enter(node: Node) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)

    for root in graph:
        if root in index:
            continue
        enter(root)
        work: list[tuple[Node, Iterator[Node]]] = [(root, iter(graph[root]))]
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in graph:
                    continue
                if successor not in index:
                    enter(successor)
                    work.append((successor, iter(graph[successor])))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members: list[Node] = []
                    while not members or members[-1] != node:
                        members.append(stack.pop())
                        on_stack.discard(members[-1])
                    yield members


def head_atom(rule: Rule) -> Atom | None:
    """The atom under the boxes of a head; None for Top and Bottom."""
    head = rule.head
    while isinstance(head, Unary):
        head = head.arg
    return head if isinstance(head, Atom) else None


def is_constraint(rule: Rule) -> bool:
    """Whether the head is Bottom, be it under boxes."""
    head = rule.head
    while isinstance(head, Unary):
        head = head.arg
    return isinstance(head, Bottom)


def needed(rules: Sequence[Rule], wanted: Iterable[str]) -> tuple[int, ...]:
    """The numbers of the rules that the wanted predicates depend on, and of the constraints with theirs: a violated one
    concerns every question."""
    below = set(wanted)
    found: set[int] = set()
    grown = True
    while grown:
        grown = False
        for number, rule in enumerate(rules):
            head = head_atom(rule)
            if number not in found and (is_constraint(rule) if head is None else head.predicate in below):
                found.add(number)
                below |= {atom.predicate for atom, _ in dependencies(rule)}
                grown = True
    return tuple(sorted(found))


def components(rules: Iterable[Rule]) -> list[Component]:
    """The components of the predicates that occur in heads, each after those that it depends on."""
    graph: dict[str, list[str]] = {}
    for rule in rules:
        head = head_atom(rule)
        if head is not None:
            graph.setdefault(head.predicate, []).extend(atom.predicate for atom, _ in dependencies(rule))
    return connected(graph)


def strata(rules: tuple[Rule, ...]) -> list[tuple[str, ...]]:
    """The predicates of heads by stratum, lowest first; raises where negation runs through a cycle."""
    problems = list(negative_cycles(rules))
    if problems:
        raise TidelogError(problems)
    level: dict[str, int] = {}
    for component in components(rules):
        inside = set(component.predicates)
        height = 0
        for rule in rules:
            head = head_atom(rule)
            if head is None or head.predicate not in inside:
                continue
            for atom, negative in dependencies(rule):
                if atom.predicate in level:
                    height = max(height, level[atom.predicate] + negative)
                elif negative:
                    height = max(height, 1)
        level.update(dict.fromkeys(inside, height))
    levels = sorted(set(level.values()))
    return [tuple(sorted(p for p in level if level[p] == height)) for height in levels]


def negative_cycles(rules: tuple[Rule, ...]) -> Iterator[Diagnostic]:
    """One diagnostic for every recursion through negation, with the cycle by name."""
    graph: dict[str, list[str]] = {}
    for rule in rules:
        head = head_atom(rule)
        if head is not None:
            graph.setdefault(head.predicate, []).extend(atom.predicate for atom, _ in dependencies(rule))
    positive = {
        (head.predicate, atom.predicate)
        for rule in rules
        if (head := head_atom(rule)) is not None
        for atom, negative in dependencies(rule)
        if not negative
    }
    home = {p: component for component in connected(graph) for p in component.predicates}
    reported: set[tuple[str, ...]] = set()
    for rule in rules:
        head = head_atom(rule)
        if head is None:
            continue
        component = home[head.predicate]
        for atom, negative in dependencies(rule):
            if not negative or home.get(atom.predicate) != component or component.predicates in reported:
                continue
            reported.add(component.predicates)
            path = _path(graph, atom.predicate, head.predicate, set(component.predicates))
            steps = (f"not {b}" if (a, b) not in positive else b for a, b in pairwise(path))
            cycle = " -> ".join([head.predicate, f"not {atom.predicate}", *steps])
            yield Diagnostic(
                "TL301",
                f"negation runs through a cycle: {cycle}",
                atom.place or rule.place,
                law="a program is stratified if no predicate depends on its own negation",
                help="break the cycle, or ask for its stable models with `tidelog stable`",
            )


def _path(graph: Mapping[str, Iterable[str]], start: str, goal: str, inside: set[str]) -> list[str]:
    """A shortest path of the graph inside a component, breadth first."""
    came: dict[str, str | None] = {start: None}
    queue = [start]
    for node in queue:
        if node == goal:
            break
        for successor in graph.get(node, ()):
            if successor in inside and successor not in came:
                came[successor] = node
                queue.append(successor)
    path: list[str] = []
    at: str | None = goal
    while at is not None:
        path.append(at)
        at = came[at]
    return path[::-1]
