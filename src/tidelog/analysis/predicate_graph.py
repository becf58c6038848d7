"""The predicate graph: strongly connected components in dependency order, needed rules, and stratification.

A predicate depends on the predicates in the bodies of its rules. A component is recursive if it depends on itself. A
program is stratified if no component depends on itself through a negation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from tidelog.errors import Diagnostic
from tidelog.language import validation
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom, is_constraint
from tidelog.language.syntax import Atom, Literal, Rule

Node = TypeVar("Node", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Component:
    """Predicates that depend on each other; a single predicate is recursive if it depends on itself."""

    predicates: tuple[str, ...]
    recursive: bool


def body_atoms(rule: Rule) -> Iterator[tuple[Atom, bool]]:
    """Yield the atoms of a rule's body, each with whether a negation or an aggregate reads it."""
    return validation.body_atoms(rule.body)


def find_components(graph: Mapping[str, Iterable[str]]) -> list[Component]:
    """Return the strongly connected components, each after those that it depends on. Nodes are the keys."""
    return [
        Component(tuple(sorted(members)), len(members) > 1 or members[0] in set(graph[members[0]]))
        for members in strongly_connected_components(graph)
    ]


def strongly_connected_components(graph: Mapping[Node, Iterable[Node]]) -> Iterator[list[Node]]:
    """Yield the strongly connected components (Tarjan), each after those that its nodes lead to. Nodes are the keys."""
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


def reachable(starts: Iterable[Node], successors: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """Return the nodes that some start leads to, the starts included.

    >>> sorted(reachable([3], lambda n: [n // 2]))
    [0, 1, 3]
    """
    seen = set(starts)
    pending = list(seen)
    while pending:
        for node in successors(pending.pop()):
            if node not in seen:
                seen.add(node)
                pending.append(node)
    return seen


def find_needed_rules(rules: Sequence[Rule], wanted: Iterable[str]) -> tuple[int, ...]:
    """Return the positions of the rules that the wanted predicates and the constraints depend on.

    Constraints are always needed: a violated one concerns every question.
    """
    constraints = [rule for rule in rules if is_constraint(rule)]
    starts = {*wanted, *(atom.predicate for rule in constraints for atom, _ in body_atoms(rule))}
    graph = _dependency_graph(rules)
    predicates = reachable(starts, lambda predicate: graph.get(predicate, ()))
    return tuple(
        number
        for number, rule in enumerate(rules)
        if is_constraint(rule) or ((head := head_atom(rule)) is not None and head.predicate in predicates)
    )


def find_defining_rules(rules: Sequence[Rule], predicate: str) -> list[Rule]:
    """Return the rules that a predicate depends on; constraints are not among them."""
    by_head: dict[str, list[Rule]] = {}
    for rule in rules:
        if head := head_atom(rule):
            by_head.setdefault(head.predicate, []).append(rule)
    needed = reachable(
        [predicate], lambda name: (atom.predicate for rule in by_head.get(name, ()) for atom, _ in body_atoms(rule))
    )
    return [rule for rule in rules if (head := head_atom(rule)) and head.predicate in needed]


def restrict_to_query(program: Program, query: str) -> Program:
    """Return the program with only the rules that the query and the constraints need."""
    return replace(program, rules=tuple(program.rules[number] for number in find_needed_rules(program.rules, [query])))


def find_predicate_components(rules: Iterable[Rule]) -> list[Component]:
    """Return the components of the predicates that occur in heads, each after those that it depends on."""
    return find_components(_dependency_graph(rules))


def find_denied_recursions(rules: Sequence[Rule]) -> set[str]:
    """Return the predicates that depend on themselves through a negation or an aggregate."""
    found: set[str] = set()
    reads = _collect_reads(rules)
    for component in find_predicate_components(rules):
        inside = set(component.predicates)
        if any(denied and name in inside for head in inside for name, denied in reads.get(head, ())):
            found |= inside
    return found


def _dependency_graph(rules: Iterable[Rule]) -> dict[str, list[str]]:
    """Map each predicate of a head to the predicates in the bodies of its rules."""
    graph: dict[str, list[str]] = {}
    for rule in rules:
        head = head_atom(rule)
        if head is not None:
            graph.setdefault(head.predicate, []).extend(atom.predicate for atom, _ in body_atoms(rule))
    return graph


def _collect_reads(rules: Iterable[Rule]) -> dict[str, set[tuple[str, bool]]]:
    """Return the predicates that the rules of each head read, each with whether a negation or an aggregate reads it."""
    reads: dict[str, set[tuple[str, bool]]] = {}
    for rule in rules:
        if head := head_atom(rule):
            own = reads.setdefault(head.predicate, set())
            own.update((atom.predicate, denied) for atom, denied in body_atoms(rule))
    return reads


def find_strata(rules: tuple[Rule, ...]) -> list[tuple[str, ...]]:
    """Return the predicates of heads by stratum, lowest first; those of one component are in one stratum."""
    level: dict[str, int] = {}
    reads = _collect_reads(rules)
    for component in find_predicate_components(rules):
        inside = set(component.predicates)
        height = 0
        for name, negative in (read for predicate in inside for read in reads.get(predicate, ())):
            if name in level:
                height = max(height, level[name] + negative)
            elif negative:
                height = max(height, 1)
        level.update(dict.fromkeys(inside, height))
    levels = sorted(set(level.values()))
    return [tuple(sorted(p for p in level if level[p] == height)) for height in levels]


def describe_negative_cycle(rules: tuple[Rule, ...], component: Component, reason: str | None) -> Diagnostic:
    """Describe a recursion through negation or an aggregate in a component, with the predicates of the cycle."""
    graph = _dependency_graph(rules)
    inside = set(component.predicates)
    reads = [
        (head.predicate, atom, negative, rule)
        for rule in rules
        if (head := head_atom(rule)) is not None and head.predicate in inside
        for atom, negative in body_atoms(rule)
        if atom.predicate in inside
    ]
    positive = {(head, atom.predicate) for head, atom, negative, _ in reads if not negative}
    start, atom, _, rule = next(read for read in reads if read[2])
    path = find_path(graph, atom.predicate, start, inside)
    steps = (f"not {b}" if (a, b) not in positive else b for a, b in pairwise(path))
    cycle = " -> ".join([start, f"not {atom.predicate}", *steps])
    negation = any(
        literal.negated and atom in validation.formula_atoms(literal.formula)
        for literal in rule.body
        if isinstance(literal, Literal)
    )
    what = "negation" if negation else "an aggregate"
    if not negation:
        cycle = cycle.replace("not ", "")
    message = f"{what} runs through a cycle: {cycle}" + (f"; {reason}" if reason else "")
    back = "let the cycle go back in time, by a range that begins at a distance: [1s,1h] instead of [0,1h] or (0,1h]"
    law = help = None
    if not negation:
        law = "no predicate depends on an aggregate over itself at the same time"
        help = back
    elif reason:
        help = f"{back}; or ask for the stable models over the integers with `tidelog stable`"
    return Diagnostic("TL301", message, atom.place or rule.place, law, help)


def find_path(graph: Mapping[Node, Iterable[Node]], start: Node, goal: Node, inside: set[Node]) -> list[Node]:
    """Return a shortest path of the graph inside a component, found breadth first."""
    previous: dict[Node, Node | None] = {start: None}
    queue = [start]
    for node in queue:
        if node == goal:
            break
        for successor in graph.get(node, ()):
            if successor in inside and successor not in previous:
                previous[successor] = node
                queue.append(successor)
    path: list[Node] = []
    at: Node | None = goal
    while at is not None:
        path.append(at)
        at = previous[at]
    return path[::-1]
