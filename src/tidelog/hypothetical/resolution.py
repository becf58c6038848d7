"""Resolve a query before any data: SLD resolution until only extensional atoms remain (the set P_Q of the paper).

Facts of the program are resolved like rules without a body; the remaining atoms are what a stream has to deliver. With
recursion, resolution need not terminate. A depth limits how many rules are applied on top of each other in a proof, a
horizon limits how far in time an atom may be from the answer. Resolution within such a bound is sound, and complete for
proofs within the bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tidelog.analysis.predicate_graph import find_components
from tidelog.analysis.temporal_dependencies import needed_predicates, temporal_body_atoms
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.hypothetical.comparison_constraints import is_satisfiable
from tidelog.hypothetical.schemas import (
    Query,
    Schema,
    Substitution,
    apply_to_atom,
    apply_to_comparison,
    apply_to_term,
    atom_variables,
    term_variables,
)
from tidelog.hypothetical.subsumption import remove_subsumed
from tidelog.hypothetical.unification import compose_unifier, unify, unify_terms
from tidelog.language.syntax import (
    Comparison,
    TemporalAtom,
    TemporalLiteral,
    TemporalProgram,
    TemporalRule,
    Term,
    TimeTerm,
    Variable,
)

#: Limits on the number of schemas, and of goals resolved to find them.
MAX_SCHEMAS = 50_000
MAX_GOALS = 1_000_000

NEGATION_LAW = "hypothetical answers need rules without negation: a fact that is absent now may still arrive"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits for resolution that does not terminate by itself."""

    depth: int | None = None
    horizon: int | None = None


@dataclass(frozen=True, slots=True)
class _Goal:
    """A node of the SLD tree: atoms to resolve, each with the number of rules above it, and the result so far."""

    answer: tuple[Term | TimeTerm, ...]
    #: The time of the atom of the query.
    clock: TimeTerm | None
    pending: tuple[tuple[TemporalAtom, int], ...]
    premises: tuple[TemporalAtom, ...] = ()
    comparisons: tuple[Comparison, ...] = ()


def resolve(program: TemporalProgram, query: Query, bounds: Bounds | None = None) -> tuple[Schema, ...]:
    """Return the schemas of a query, none of which subsumes another."""
    bounds = bounds or Bounds()
    needed = needed_predicates(program.rules, query.atom.predicate)
    rules = [rule for rule in program.rules if rule.head and rule.head.predicate in needed]
    _require_no_negation(rules)
    _require_termination(rules, query, bounds)
    clauses: dict[str, list[TemporalRule]] = {}
    for rule in (*rules, *program.facts):
        assert rule.head is not None
        clauses.setdefault(rule.head.predicate, []).append(rule)
    derived = derived_predicates(program)
    start = _Goal(tuple(_query_term(name, query.atom) for name in query.variables), query.atom.time, ((query.atom, 0),))
    found: dict[Schema, None] = {}
    # The names in the query are never used for anything else.
    asked = frozenset(atom_variables(query.atom))
    work = [start]
    steps = 0
    while work:
        steps += 1
        goal = work.pop()
        if not goal.pending:
            found[Schema(goal.answer, goal.premises, goal.comparisons)] = None
        else:
            work.extend(reversed(list(_resolve_first(goal, clauses, derived, bounds, asked))))
        if len(found) > MAX_SCHEMAS or steps > MAX_GOALS:
            raise too_many_ways(
                f"{query.atom.predicate} can be derived in too many ways",
                "ask a more specific query, or limit resolution with a smaller --depth or --horizon",
            )
    return tuple(remove_subsumed(found))


def derived_predicates(program: TemporalProgram) -> frozenset[str]:
    """Return the intensional predicates: those with a rule that has a body."""
    return frozenset(rule.head.predicate for rule in program.rules if rule.head and rule.body)


def _query_term(name: str, atom: TemporalAtom) -> Term | TimeTerm:
    for term in atom.args:
        if isinstance(term, Variable) and term.name == name:
            return term
    return TimeTerm(name, 0)


def _resolve_first(
    goal: _Goal,
    clauses: dict[str, list[TemporalRule]],
    derived: frozenset[str],
    bounds: Bounds,
    asked: frozenset[str],
) -> Iterator[_Goal]:
    """Yield the goals after the first pending atom was resolved, or became a premise."""
    (atom, depth), rest = goal.pending[0], goal.pending[1:]
    if atom.predicate not in derived and _can_arrive(atom):
        premises = goal.premises if atom in goal.premises else (*goal.premises, atom)
        yield replace(goal, pending=rest, premises=premises)
    used = asked.union(_goal_variables(goal))
    for clause in clauses.get(atom.predicate, ()):
        if clause.body and bounds.depth is not None and depth >= bounds.depth:
            continue
        renamed = _rename_apart(clause, used)
        assert renamed.head is not None
        steps = unify(atom, renamed.head)
        if steps is None:
            continue
        body = tuple((part.atom, depth + 1) for part in renamed.body if isinstance(part, TemporalLiteral))
        comparisons = [part for part in renamed.body if isinstance(part, Comparison)]
        if not all(unify_terms(c.left, c.right, steps) for c in comparisons if c.op == "="):
            continue
        others = tuple(c for c in comparisons if c.op != "=")
        next_goal = _apply_to_goal(
            replace(goal, pending=body + rest, comparisons=goal.comparisons + others), compose_unifier(steps)
        )
        if _is_within(next_goal, bounds) and is_satisfiable(next_goal.comparisons):
            yield next_goal


def _can_arrive(atom: TemporalAtom) -> bool:
    """Return whether a fact may have the time of an atom: no fact is before time 0."""
    return atom.time is None or atom.time.variable is not None or atom.time.offset >= 0


def _is_within(goal: _Goal, bounds: Bounds) -> bool:
    if any(not _can_arrive(atom) for atom in goal.premises):
        return False
    if bounds.horizon is None or goal.clock is None:
        return True
    times = [atom.time for atom in goal.premises] + [atom.time for atom, _ in goal.pending]
    return all(
        abs(time.offset - goal.clock.offset) <= bounds.horizon
        for time in times
        if time and time.variable == goal.clock.variable
    )


def _apply_to_goal(goal: _Goal, by: Substitution) -> _Goal:
    clock = apply_to_term(goal.clock, by) if goal.clock else None
    assert clock is None or isinstance(clock, TimeTerm)
    return _Goal(
        tuple(apply_to_term(term, by) for term in goal.answer),
        clock,
        tuple((apply_to_atom(atom, by), depth) for atom, depth in goal.pending),
        tuple(dict.fromkeys(apply_to_atom(atom, by) for atom in goal.premises)),
        tuple(dict.fromkeys(apply_to_comparison(comparison, by) for comparison in goal.comparisons)),
    )


def _goal_variables(goal: _Goal) -> Iterator[str]:
    for term in goal.answer:
        yield from term_variables(term)
    for atom in (*goal.premises, *(atom for atom, _ in goal.pending)):
        yield from atom_variables(atom)


def _rename_apart(clause: TemporalRule, used: frozenset[str]) -> TemporalRule:
    """Return the clause with variables that the goal does not use; names are kept where possible."""
    assert clause.head is not None
    literals = [part for part in clause.body if isinstance(part, TemporalLiteral)]
    taken = {*used} | {
        name for atom in (clause.head, *(part.atom for part in literals)) for name in atom_variables(atom)
    }
    by: dict[str, Term | TimeTerm] = {}
    for atom in (clause.head, *(part.atom for part in literals)):
        objects = {term.name for term in atom.args if isinstance(term, Variable)}
        for name in atom_variables(atom):
            if name in used and name not in by:
                number = 1
                while f"{name}{number}" in taken:
                    number += 1
                fresh = f"{name}{number}"
                taken.add(fresh)
                by[name] = Variable(fresh) if name in objects else TimeTerm(fresh, 0)
    if not by:
        return clause
    body = tuple(
        TemporalLiteral(apply_to_atom(part.atom, by))
        if isinstance(part, TemporalLiteral)
        else apply_to_comparison(part, by)
        for part in clause.body
    )
    return TemporalRule(apply_to_atom(clause.head, by), body)


# Checks before resolution


def _require_no_negation(rules: Iterable[TemporalRule]) -> None:
    negated = [
        Diagnostic(
            "TL702",
            f"`not {literal.atom.predicate}` is not supported by hypothetical answers",
            literal.atom.place,
            NEGATION_LAW,
        )
        for rule in rules
        for literal in rule.body
        if isinstance(literal, TemporalLiteral) and literal.negated
    ]
    if negated:
        raise TidelogError(negated)


def _require_termination(rules: list[TemporalRule], query: Query, bounds: Bounds) -> None:
    """Raise for recursion without a bound, or with a horizon that some cycle never leaves."""
    if bounds.depth is not None:
        return
    graph: dict[str, list[str]] = {}
    for rule in rules:
        assert rule.head is not None
        graph.setdefault(rule.head.predicate, []).extend(atom.predicate for atom in temporal_body_atoms(rule))
    cycles = [part.predicates for part in find_components(graph) if part.recursive]
    if not cycles:
        return
    if bounds.horizon is None:
        cycle = _format_cycle(graph, cycles[0])
        raise TidelogError(
            Diagnostic(
                "TL701",
                f"resolution of {query.atom.predicate} does not terminate: {cycle} is a cycle",
                _find_place(rules, cycles[0]),
                help="limit resolution: --depth N for proofs of at most N rules on top of each other, or --horizon H "
                "for facts at most H before or after the answer",
            )
        )
    recurring = _find_timeless_cycle(rules, query.atom.predicate, bounds.horizon)
    if recurring:
        raise TidelogError(
            Diagnostic(
                "TL701",
                f"resolution of {query.atom.predicate} does not terminate within the horizon: {recurring} depends on "
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


def too_many_ways(message: str, help: str, place: Place | None = None) -> TidelogError:
    """Return the error for a query with more schemas than `MAX_SCHEMAS`."""
    law = f"a query resolves to at most {MAX_SCHEMAS:,} sets of awaited facts"
    return TidelogError(Diagnostic("TL705", message, place, law, help))
