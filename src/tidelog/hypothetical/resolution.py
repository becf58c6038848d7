"""Before any data: SLD-resolution of the query until only extensional atoms remain (the set P_Q of the paper).

Facts of the program are resolved with like rules without a body; what remains is what a stream has to deliver. With
recursion this need not end. A depth bounds how many rules stand above each other in a proof, a horizon how far in time
an atom may be from the answer; what is found within such a bound is right, and everything within it is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tidelog.analysis.components import connected
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.hypothetical.comparisons import satisfiable
from tidelog.hypothetical.schemas import (
    Query,
    Schema,
    Substitution,
    apply,
    apply_atom,
    apply_comparison,
    atom_names,
    term_names,
)
from tidelog.hypothetical.subsumption import minimal
from tidelog.hypothetical.unification import solved, unify, unify_terms
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

#: More schemas, or goals on the way to them, are refused.
MOST_SCHEMAS = 50_000
MOST_GOALS = 1_000_000

NEGATION_LAW = "hypothetical answers are for rules without negation: what is absent now may still arrive"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far to resolve where resolution does not end by itself."""

    depth: int | None = None
    horizon: int | None = None


@dataclass(frozen=True, slots=True)
class _Goal:
    """A node of the SLD-tree: atoms to resolve, each with the number of rules above it, and what is found so far."""

    answer: tuple[Term | TimeTerm, ...]
    #: The time of the query's atom.
    clock: TimeTerm | None
    pending: tuple[tuple[TemporalAtom, int], ...]
    premises: tuple[TemporalAtom, ...] = ()
    comparisons: tuple[Comparison, ...] = ()


def resolve(program: TemporalProgram, query: Query, bounds: Bounds | None = None) -> tuple[Schema, ...]:
    """The schemas of a query, none of which makes another one needless."""
    bounds = bounds or Bounds()
    needed = _needed(program, query.atom.predicate)
    rules = [rule for rule in program.rules if rule.head and rule.head.predicate in needed]
    _refuse_negation(rules)
    _refuse_endless(rules, query, bounds)
    clauses: dict[str, list[TemporalRule]] = {}
    for rule in (*rules, *program.facts):
        assert rule.head is not None
        clauses.setdefault(rule.head.predicate, []).append(rule)
    derived = derived_predicates(program)
    start = _Goal(tuple(_asked(name, query.atom) for name in query.variables), query.atom.time, ((query.atom, 0),))
    found: dict[Schema, None] = {}
    # Names that the user asked with never stand for anything else.
    asked = frozenset(atom_names(query.atom))
    work = [start]
    steps = 0
    while work:
        steps += 1
        goal = work.pop()
        if not goal.pending:
            found[Schema(goal.answer, goal.premises, goal.comparisons)] = None
        else:
            work.extend(reversed(list(_resolvents(goal, clauses, derived, bounds, asked))))
        if len(found) > MOST_SCHEMAS or steps > MOST_GOALS:
            raise _too_many(query)
    return tuple(minimal(found))


def derived_predicates(program: TemporalProgram) -> frozenset[str]:
    """The intensional predicates: those with a rule that has a body."""
    return frozenset(rule.head.predicate for rule in program.rules if rule.head and rule.body)


def _asked(name: str, atom: TemporalAtom) -> Term | TimeTerm:
    for term in atom.args:
        if isinstance(term, Variable) and term.name == name:
            return term
    return TimeTerm(name, 0)


def _resolvents(
    goal: _Goal,
    clauses: dict[str, list[TemporalRule]],
    derived: frozenset[str],
    bounds: Bounds,
    asked: frozenset[str],
) -> Iterator[_Goal]:
    """The goals after the first pending atom was resolved, or found to be a premise."""
    (atom, depth), rest = goal.pending[0], goal.pending[1:]
    if atom.predicate not in derived and _can_arrive(atom):
        premises = goal.premises if atom in goal.premises else (*goal.premises, atom)
        yield replace(goal, pending=rest, premises=premises)
    used = asked.union(_goal_names(goal))
    for clause in clauses.get(atom.predicate, ()):
        if clause.body and bounds.depth is not None and depth >= bounds.depth:
            continue
        apart = _apart(clause, used)
        assert apart.head is not None
        steps = unify(atom, apart.head)
        if steps is None:
            continue
        body = tuple((part.atom, depth + 1) for part in apart.body if isinstance(part, TemporalLiteral))
        comparisons = [part for part in apart.body if isinstance(part, Comparison)]
        if not all(unify_terms(c.left, c.right, steps) for c in comparisons if c.op == "="):
            continue
        others = tuple(c for c in comparisons if c.op != "=")
        next_goal = _applied(replace(goal, pending=body + rest, comparisons=goal.comparisons + others), solved(steps))
        if _within(next_goal, bounds) and satisfiable(next_goal.comparisons):
            yield next_goal


def _can_arrive(atom: TemporalAtom) -> bool:
    """No fact is before time 0."""
    return atom.time is None or atom.time.variable is not None or atom.time.offset >= 0


def _within(goal: _Goal, bounds: Bounds) -> bool:
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


def _applied(goal: _Goal, by: Substitution) -> _Goal:
    clock = apply(goal.clock, by) if goal.clock else None
    assert clock is None or isinstance(clock, TimeTerm)
    return _Goal(
        tuple(apply(term, by) for term in goal.answer),
        clock,
        tuple((apply_atom(atom, by), depth) for atom, depth in goal.pending),
        tuple(dict.fromkeys(apply_atom(atom, by) for atom in goal.premises)),
        tuple(dict.fromkeys(apply_comparison(comparison, by) for comparison in goal.comparisons)),
    )


def _goal_names(goal: _Goal) -> Iterator[str]:
    for term in goal.answer:
        yield from term_names(term)
    for atom in (*goal.premises, *(atom for atom, _ in goal.pending)):
        yield from atom_names(atom)


def _apart(clause: TemporalRule, used: frozenset[str]) -> TemporalRule:
    """The clause with variables that the goal does not have; names stay as they are where they can."""
    assert clause.head is not None
    literals = [part for part in clause.body if isinstance(part, TemporalLiteral)]
    taken = {*used} | {name for atom in (clause.head, *(part.atom for part in literals)) for name in atom_names(atom)}
    by: dict[str, Term | TimeTerm] = {}
    for atom in (clause.head, *(part.atom for part in literals)):
        objects = {term.name for term in atom.args if isinstance(term, Variable)}
        for name in atom_names(atom):
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
        TemporalLiteral(apply_atom(part.atom, by)) if isinstance(part, TemporalLiteral) else apply_comparison(part, by)
        for part in clause.body
    )
    return TemporalRule(apply_atom(clause.head, by), body)


# What is refused


def _needed(program: TemporalProgram, predicate: str) -> set[str]:
    """The predicates that the query depends on, itself included."""
    needed, waiting = {predicate}, [predicate]
    while waiting:
        name = waiting.pop()
        for rule in program.rules:
            if rule.head and rule.head.predicate == name:
                new = {atom.predicate for atom in _body(rule)} - needed
                needed |= new
                waiting += new
    return needed


def _body(rule: TemporalRule) -> Iterator[TemporalAtom]:
    return (literal.atom for literal in rule.body if isinstance(literal, TemporalLiteral))


def _refuse_negation(rules: Iterable[TemporalRule]) -> None:
    negated = [
        Diagnostic("TL702", f"`not {literal.atom.predicate}` stands in the way", literal.atom.place, NEGATION_LAW)
        for rule in rules
        for literal in rule.body
        if isinstance(literal, TemporalLiteral) and literal.negated
    ]
    if negated:
        raise TidelogError(negated)


def _refuse_endless(rules: list[TemporalRule], query: Query, bounds: Bounds) -> None:
    """Recursion without a bound, or with a horizon that some cycle never leaves."""
    if bounds.depth is not None:
        return
    graph: dict[str, list[str]] = {}
    for rule in rules:
        assert rule.head is not None
        graph.setdefault(rule.head.predicate, []).extend(atom.predicate for atom in _body(rule))
    cycles = [part.predicates for part in connected(graph) if part.recursive]
    if not cycles:
        return
    if bounds.horizon is None:
        shown = _cycle(graph, cycles[0])
        raise TidelogError(
            Diagnostic(
                "TL701",
                f"resolution of {query.atom.predicate} does not end: {shown} is a cycle",
                _place(rules, cycles[0]),
                law="a query is resolved down to the facts that it awaits, so that it must not depend on itself",
                help="bound it: --depth N for proofs of at most N rules above each other, or --horizon H for facts "
                "at most H before or after the answer",
            )
        )
    still = _stays(rules, query.atom.predicate, bounds.horizon)
    if still:
        raise TidelogError(
            Diagnostic(
                "TL701",
                f"resolution of {query.atom.predicate} does not end within the horizon: {still} comes back to its time",
                _place(rules, (still,)),
                law="a horizon bounds a recursion that moves in time, always in one direction",
                help="bound the number of rules above each other instead: --depth N",
            )
        )


def _stays(rules: list[TemporalRule], query: str, horizon: int) -> str | None:
    """A predicate that can depend on itself at its own time, with times at most `horizon` from the query's in between;
    times at no fixed distance from it count as one."""
    graph: dict[str, list[str]] = {}
    waiting: list[tuple[str, int | None]] = [(query, 0)]
    while waiting:
        name, at = waiting.pop()
        if f"{name} {at}" in graph:
            continue
        successors = graph.setdefault(f"{name} {at}", [])
        for rule in rules:
            head = rule.head
            if head is None or head.predicate != name:
                continue
            for atom in _body(rule):
                to = None
                if at is not None and head.time and atom.time and head.time.variable == atom.time.variable:
                    to = at + atom.time.offset - head.time.offset
                if to is None or abs(to) <= horizon:
                    successors.append(f"{atom.predicate} {to}")
                    waiting.append((atom.predicate, to))
    return next((part.predicates[0].split(" ")[0] for part in connected(graph) if part.recursive), None)


def _cycle(graph: dict[str, list[str]], members: tuple[str, ...]) -> str:
    """A way from the first member back to itself."""
    start = members[0]
    came: dict[str, str] = {}
    queue = [start]
    for name in queue:
        for successor in graph.get(name, ()):
            if successor == start:
                path = [name]
                while path[-1] != start:
                    path.append(came[path[-1]])
                return " -> ".join([*reversed(path), start])
            if successor in members and successor not in came:
                came[successor] = name
                queue.append(successor)
    raise AssertionError(f"{members} is no cycle")


def _place(rules: list[TemporalRule], members: tuple[str, ...]) -> Place | None:
    """Where a rule of a cycle stands that leads back into it."""
    for rule in rules:
        if rule.head and rule.head.predicate in members and any(atom.predicate in members for atom in _body(rule)):
            return rule.place
    return None


def _too_many(query: Query) -> TidelogError:
    return TidelogError(
        Diagnostic(
            "TL705",
            f"{query.atom.predicate} can be derived in too many ways",
            law=f"a query resolves to at most {MOST_SCHEMAS:,} sets of awaited facts",
            help="ask a more special query, or bound resolution with a smaller --depth or --horizon",
        )
    )
