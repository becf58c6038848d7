"""Resolve a query before any data: SLD resolution until only extensional atoms remain (the set P_Q of the paper).

Facts of the program are resolved like rules without a body; the remaining atoms are what a stream has to deliver. With
recursion, resolution need not terminate. Where it does not, a depth is looked for that suffices. A given depth limits
how many rules are applied on top of each other in a proof, a horizon limits how far in time an atom may be from the
answer. Resolution within such a bound is sound, and complete for proofs within the bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tidelog.analysis.temporal_dependencies import needed_predicates
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.hypothetical.absence_checks import nested_negation_error
from tidelog.hypothetical.comparison_constraints import is_satisfiable
from tidelog.hypothetical.recursion import find_cycle, require_moving_cycles, unbounded_recursion_error
from tidelog.hypothetical.schemas import (
    Blocker,
    Query,
    Schema,
    Substitution,
    apply_to_atom,
    apply_to_comparison,
    apply_to_term,
    atom_variables,
    build_query,
    term_variables,
)
from tidelog.hypothetical.subsumption import remove_subsumed, subsumes
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
#: Limits on the search for a bound of recursive rules: goals for one query, and schemas and premises to compare.
_MOST_TRIED = 5_000
_MOST_COMPARED = 60
_MOST_PREMISES = 6


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
    #: Negated atoms, which are resolved when nothing else is left.
    negated: tuple[TemporalAtom, ...] = ()


def resolve(program: TemporalProgram, query: Query, bounds: Bounds | None = None) -> tuple[Schema, ...]:
    """Return the schemas of a query, none of which subsumes another."""
    bounds = bounds or Bounds()
    needed = needed_predicates(program.rules, query.atom.predicate)
    rules = [rule for rule in program.rules if rule.head and rule.head.predicate in needed]
    search = SchemaSearch(program, rules)
    if bounds.depth is None and (cycle := find_cycle(rules)):
        if bounds.horizon is not None:
            require_moving_cycles(rules, query.atom.predicate, bounds.horizon)
        else:
            bounds = _find_own_bound(search, query, cycle)
    found = search.find_schemas(query, bounds, MAX_GOALS)
    if found is None:
        raise too_many_ways(
            f"{query.atom.predicate} can be derived in too many ways",
            "ask a more specific query, or limit resolution with a smaller --depth or --horizon",
        )
    return tuple(remove_subsumed(search.resolve_negation(found)))


class SchemaSearch:
    """Resolves queries over some rules and the facts of a program."""

    def __init__(self, program: TemporalProgram, rules: list[TemporalRule]) -> None:
        self.rules = rules
        self.clauses: dict[str, list[TemporalRule]] = {}
        for rule in (*rules, *program.facts):
            assert rule.head is not None
            self.clauses.setdefault(rule.head.predicate, []).append(rule)
        self.derived = derived_predicates(program)

    def find_schemas(self, query: Query, bounds: Bounds, most: int) -> dict[Schema, None] | None:
        """Return the schemas of a query, also those that others subsume; None if more than `most` goals are needed."""
        answer = tuple(_query_term(name, query.atom) for name in query.variables)
        found: dict[Schema, None] = {}
        # The names in the query are never used for anything else.
        asked = frozenset(atom_variables(query.atom))
        work = [_Goal(answer, query.atom.time, ((query.atom, 0),))]
        steps = 0
        while work:
            goal = work.pop()
            steps += 1 if most >= MAX_GOALS else _estimate_work(goal)
            if not goal.pending:
                blockers = tuple(_negate(atom) for atom in goal.negated)
                found[Schema(goal.answer, goal.premises, goal.comparisons, blockers)] = None
            else:
                work.extend(reversed(list(self._resolve_first(goal, bounds, asked))))
            # A goal with that many atoms is one of a recursion that does not end.
            if len(found) > MAX_SCHEMAS or steps > most or len(goal.pending) > most // 50:
                return None
        return found

    def resolve_negation(self, schemas: Iterable[Schema]) -> list[Schema]:
        """Return the schemas with blockers that await facts: what is negated is resolved like a query."""
        return [
            replace(schema, blockers=tuple(b for blocker in schema.blockers for b in self._resolve_blocker(blocker)))
            for schema in schemas
        ]

    def _resolve_blocker(self, blocker: Blocker) -> Iterator[Blocker]:
        name = blocker.atom.predicate
        needed = needed_predicates(self.rules, name)
        rules = [rule for rule in self.rules if rule.head and rule.head.predicate in needed]
        for rule in rules:
            for part in rule.body:
                if isinstance(part, TemporalLiteral) and part.negated:
                    raise nested_negation_error(blocker.atom, part.atom)
        # The arguments of the negated atom are bound outside, so it is resolved for any.
        general = build_query(_generalise(blocker.atom))
        bounds = _find_own_bound(self, general, cycle) if (cycle := find_cycle(rules)) else Bounds()
        found = self.find_schemas(general, bounds, MAX_GOALS)
        if found is None:
            raise too_many_ways(f"{name} can be derived in too many ways", "negate a more specific predicate")
        return (replace(blocker, schema=schema) for schema in remove_subsumed(found))

    def _resolve_first(self, goal: _Goal, bounds: Bounds, asked: frozenset[str]) -> Iterator[_Goal]:
        """Yield the goals after the first pending atom was resolved, or became a premise."""
        (atom, depth), rest = goal.pending[0], goal.pending[1:]
        if atom.predicate not in self.derived and _can_arrive(atom):
            premises = goal.premises if atom in goal.premises else (*goal.premises, atom)
            yield replace(goal, pending=rest, premises=premises)
        used = asked.union(_goal_variables(goal))
        for clause in self.clauses.get(atom.predicate, ()):
            if clause.body and bounds.depth is not None and depth >= bounds.depth:
                continue
            renamed = _rename_apart(clause, used)
            assert renamed.head is not None
            steps = unify(atom, renamed.head)
            if steps is None:
                continue
            literals = [part for part in renamed.body if isinstance(part, TemporalLiteral)]
            body = tuple((part.atom, depth + 1) for part in literals if not part.negated)
            negated = tuple(part.atom for part in literals if part.negated)
            comparisons = [part for part in renamed.body if isinstance(part, Comparison)]
            if not all(unify_terms(c.left, c.right, steps) for c in comparisons if c.op == "="):
                continue
            others = tuple(c for c in comparisons if c.op != "=")
            next_goal = replace(
                goal, pending=body + rest, comparisons=goal.comparisons + others, negated=goal.negated + negated
            )
            next_goal = _apply_to_goal(next_goal, compose_unifier(steps))
            if self._is_within(next_goal, bounds) and is_satisfiable(next_goal.comparisons):
                yield next_goal

    def _is_within(self, goal: _Goal, bounds: Bounds) -> bool:
        if any(not _can_arrive(atom) for atom in goal.premises):
            return False
        if any(not _can_arrive(atom) and not self._has_clause(atom) for atom, _ in goal.pending):
            return False
        if bounds.horizon is None or goal.clock is None:
            return True
        times = [atom.time for atom in goal.premises] + [atom.time for atom, _ in goal.pending]
        return all(
            abs(time.offset - goal.clock.offset) <= bounds.horizon
            for time in times
            if time and time.variable == goal.clock.variable
        )

    def _has_clause(self, atom: TemporalAtom) -> bool:
        """Return whether a rule or a fact may derive an atom."""
        return any(rule.head and unify(atom, rule.head) is not None for rule in self.clauses.get(atom.predicate, ()))


def _estimate_work(goal: _Goal) -> int:
    """Return how much a goal counts in a search that may not end: large goals take longer."""
    return 1 + len(goal.comparisons) ** 2 + (len(goal.pending) + len(goal.premises)) // 3


def _negate(atom: TemporalAtom) -> Blocker:
    """Return a blocker that is not resolved yet."""
    outer: tuple[Term | TimeTerm, ...] = (*atom.args, *((atom.time,) if atom.time else ()))
    return Blocker(outer, Schema((), ()), atom)


def _find_own_bound(search: SchemaSearch, query: Query, cycle: str) -> Bounds:
    """Return a depth that recursive rules do not need to exceed; raise if none is found.

    Either resolution ends by itself, since it runs into times before 0. Or at some depth n no predicate has a schema
    of depth n + 1 that those of depth n do not subsume: then rules derive nothing more at any depth, since what is
    derived at depth n + 1 follows from what is derived at depth n by one more rule.
    """
    if search.find_schemas(query, Bounds(), _MOST_TRIED) is not None:
        return Bounds()
    names = {rule.head.predicate: rule.head for rule in search.rules if rule.head}
    queries = [query, *(build_query(_generalise(atom)) for atom in names.values())]
    before: list[list[Schema]] | None = None
    grown = None
    for depth in range(1, _MOST_PREMISES + 2):
        found = [search.find_schemas(general, Bounds(depth), _MOST_TRIED) for general in queries]
        if any(some is None or not _are_comparable(some) for some in found):
            break
        now = [remove_subsumed(some or ()) for some in found]
        if before is not None:
            new = [_find_new(some, known) for some, known in zip(now, before, strict=True)]
            if not any(new):
                return Bounds(depth - 1)
            grown = grown or new[0]
        before = now
    raise unbounded_recursion_error(search.rules, query, cycle, grown)


def _are_comparable(schemas: Collection[Schema]) -> bool:
    """Return whether schemas are few and small: to find subsumed ones takes exponential time."""
    return len(schemas) <= _MOST_COMPARED and all(len(schema.premises) <= _MOST_PREMISES for schema in schemas)


def _find_new(schemas: Iterable[Schema], known: Sequence[Schema]) -> Schema | None:
    """Return a schema that no known one subsumes."""
    return next((schema for schema in schemas if not any(subsumes(other, schema) for other in known)), None)


def _generalise(atom: TemporalAtom) -> TemporalAtom:
    """Return the most general atom with the predicate of another."""
    args = tuple(Variable(f"X{number}") for number in range(len(atom.args)))
    return TemporalAtom(atom.predicate, args, TimeTerm("T", 0) if atom.time else None)


def derived_predicates(program: TemporalProgram) -> frozenset[str]:
    """Return the intensional predicates: those with a rule that has a body."""
    return frozenset(rule.head.predicate for rule in program.rules if rule.head and rule.body)


def _query_term(name: str, atom: TemporalAtom) -> Term | TimeTerm:
    for term in atom.args:
        if isinstance(term, Variable) and term.name == name:
            return term
    return TimeTerm(name, 0)


def _can_arrive(atom: TemporalAtom) -> bool:
    """Return whether a fact may have the time of an atom: no fact is before time 0."""
    return atom.time is None or atom.time.variable is not None or atom.time.offset >= 0


def _apply_to_goal(goal: _Goal, by: Substitution) -> _Goal:
    clock = apply_to_term(goal.clock, by) if goal.clock else None
    assert clock is None or isinstance(clock, TimeTerm)
    return _Goal(
        tuple(apply_to_term(term, by) for term in goal.answer),
        clock,
        tuple((apply_to_atom(atom, by), depth) for atom, depth in goal.pending),
        tuple(dict.fromkeys(apply_to_atom(atom, by) for atom in goal.premises)),
        tuple(dict.fromkeys(apply_to_comparison(comparison, by) for comparison in goal.comparisons)),
        tuple(dict.fromkeys(apply_to_atom(atom, by) for atom in goal.negated)),
    )


def _goal_variables(goal: _Goal) -> Iterator[str]:
    for term in goal.answer:
        yield from term_variables(term)
    for atom in (*goal.premises, *(atom for atom, _ in goal.pending), *goal.negated):
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
        TemporalLiteral(apply_to_atom(part.atom, by), part.negated)
        if isinstance(part, TemporalLiteral)
        else apply_to_comparison(part, by)
        for part in clause.body
    )
    return TemporalRule(apply_to_atom(clause.head, by), body)


def too_many_ways(message: str, help: str, place: Place | None = None) -> TidelogError:
    """Return the error for a query with more schemas than `MAX_SCHEMAS`."""
    law = f"a query resolves to at most {MAX_SCHEMAS:,} sets of awaited facts"
    return TidelogError(Diagnostic("TL705", message, place, law, help))
