"""Containment of queries over all data, with any objects, if the first query is not recursive (corollary 13).

A query without recursion is a union of conjunctive queries over its input: its rules are unfolded until only input
atoms are left. Each conjunctive query is frozen: its variables become distinct objects, its atoms become facts, and
the second query must derive the frozen head from them. If it does, it derives every instance of that head, because
queries are preserved when objects are renamed or identified. If it does not, the frozen facts are a witness.

A second query with `!=` is not preserved when objects are identified. Then every way to identify the variables of a
conjunctive query with each other, and with the constants of both queries, is frozen. Other comparisons depend on which
objects lie between others; queries with these are not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from string import ascii_lowercase

from tidelog.analysis.predicate_graph import find_components
from tidelog.errors import Place
from tidelog.language.comparisons import compare
from tidelog.language.syntax import Comparison, Constant, Term, Value, Variable
from tidelog.windows.forward_query import ForwardQuery, ForwardRule, LaggedAtom
from tidelog.windows.incremental_solver import Deadline, check_deadline, until_deadline
from tidelog.windows.pointwise_evaluation import Facts, add_fact, evaluate_stream, instantiate
from tidelog.windows.witness import TimedFact, Witness

_Binding = dict[Variable, Term]

#: Steps that evaluating a rule at one time point counts as.
_STEPS_PER_RULE = 100


@dataclass(frozen=True)
class ConjunctiveQuery:
    """Arguments of an answer, and the input atoms and comparisons that it follows from; lags count from the answer."""

    args: tuple[Term, ...]
    body: tuple[LaggedAtom, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        terms = chain(self.args, *(atom.args for atom in self.body), *((c.left, c.right) for c in self.comparisons))
        return tuple(dict.fromkeys(term for term in terms if isinstance(term, Variable)))


@dataclass(frozen=True)
class Obstacle:
    """Why containment over all data is not decided, and a rule that is the reason."""

    reason: str
    rule: ForwardRule

    @property
    def place(self) -> Place | None:
        return self.rule.source.place if self.rule.source else None


def find_obstacle(left: ForwardQuery, right: ForwardQuery) -> Obstacle | None:
    """Return why containment in `right` over all data is not decided; None if it is."""
    rules = (*left.rules, *right.rules)
    if negating := next((rule for rule in rules if rule.negated), None):
        return Obstacle("the rules use negation", negating)
    if ordering := next((rule for rule in rules if rule.ordered), None):
        return Obstacle("the rules compare objects by order", ordering)
    graph: dict[str, list[str]] = {rule.predicate: [] for rule in left.rules}
    for rule in left.rules:
        graph[rule.predicate] += [atom.predicate for atom in rule.body]
    for part in find_components(graph):
        if part.recursive:
            inside = [rule for rule in left.rules if rule.predicate in part.predicates]
            looping = next(rule for rule in inside if any(atom.predicate in part.predicates for atom in rule.body))
            return Obstacle("the query is recursive", looping)
    return None


def find_open_loss(left: ForwardQuery, right: ForwardQuery, deadline: Deadline = None) -> Witness | None:
    """Return an input on which the right query lacks an answer of the left, or None if there is none.

    Both must be without obstacle. Raise `DeadlineExceeded` if time runs out.
    """
    constants = sorted(left.constants | right.constants, key=str)
    distinguishes = any(part.op == "!=" for rule in right.rules for part in rule.comparisons)
    tried: set[object] = set()
    for found in until_deadline(unfold(left, right.facts), deadline):
        for binding in _choose_objects(found, constants, distinguishes):
            witness = _freeze(left, found, binding)
            facts = frozenset((*witness.background, *witness.stream)), witness.lost
            if facts in tried:
                continue
            tried.add(facts)
            check_deadline(deadline, _STEPS_PER_RULE * len(right.rules) * ((witness.lost[2] or 0) + 1))
            if not _derives(right, witness):
                return _shrink(left, right, witness)
    return None


def unfold(query: ForwardQuery, shared: Iterable[tuple[str, tuple[Value, ...]]] = ()) -> Iterator[ConjunctiveQuery]:
    """Yield conjunctive queries whose answers together are those of a query without recursion.

    Facts of the rule file that are not `shared` with the query to compare count as rules without a body.
    """
    rules: dict[str, list[ForwardRule]] = {}
    for rule in query.rules:
        rules.setdefault(rule.predicate, []).append(rule)
    known = set(shared)
    facts = [(name, values) for name, values in query.facts if name in rules or (name, values) not in known]
    numbers = count()

    def expand(
        goals: tuple[LaggedAtom, ...],
        leaves: tuple[LaggedAtom, ...],
        comparisons: tuple[Comparison, ...],
        binding: _Binding,
    ) -> Iterator[tuple[tuple[LaggedAtom, ...], tuple[Comparison, ...], _Binding]]:
        if not goals:
            yield leaves, comparisons, binding
            return
        goal, rest = goals[0], goals[1:]
        for name, values in facts:
            if name == goal.predicate:
                found = _unify(goal.args, tuple(map(Constant, values)), binding)
                if found is not None:
                    yield from expand(rest, leaves, comparisons, found)
        if goal.predicate not in rules:
            yield from expand(rest, (*leaves, goal), comparisons, binding)
        for rule in rules.get(goal.predicate, ()):
            own = _rename(rule, next(numbers))
            found = _unify(goal.args, own.args, binding)
            for comparison in own.comparisons:
                if comparison.op == "=" and found is not None:
                    found = _unify((comparison.left,), (comparison.right,), found)
            if found is not None:
                body = tuple(_delay(atom, goal.lag) for atom in own.body)
                yield from expand((*body, *rest), leaves, (*comparisons, *own.comparisons), found)

    args = tuple(Variable(f"answer {i}") for i in range(query.arities[query.output]))
    asked = LaggedAtom(query.output, args, 0 if query.output in query.temporal else None)
    for leaves, comparisons, binding in expand((asked,), (), (), {}):
        yield ConjunctiveQuery(
            _resolve_all(args, binding),
            tuple(dict.fromkeys(LaggedAtom(a.predicate, _resolve_all(a.args, binding), a.lag) for a in leaves)),
            tuple(Comparison(c.op, _resolve(c.left, binding), _resolve(c.right, binding)) for c in comparisons),
        )


def _rename(rule: ForwardRule, number: int) -> ForwardRule:
    """Return a rule with variables that occur nowhere else."""

    def fresh(term: Term) -> Term:
        return Variable(f"{term.name} {number}") if isinstance(term, Variable) else term

    body = tuple(LaggedAtom(atom.predicate, tuple(map(fresh, atom.args)), atom.lag) for atom in rule.body)
    comparisons = tuple(Comparison(part.op, fresh(part.left), fresh(part.right)) for part in rule.comparisons)
    return ForwardRule(rule.predicate, tuple(map(fresh, rule.args)), rule.temporal, body, comparisons)


def _delay(atom: LaggedAtom, lag: int | None) -> LaggedAtom:
    """Return a body atom with its lag counted from the answer; rigid atoms have none."""
    return atom if atom.lag is None else LaggedAtom(atom.predicate, atom.args, atom.lag + (lag or 0))


def _resolve(term: Term, binding: _Binding) -> Term:
    while isinstance(term, Variable) and term in binding:
        term = binding[term]
    return term if isinstance(term, Variable) else Constant(term.value)


def _resolve_all(terms: Iterable[Term], binding: _Binding) -> tuple[Term, ...]:
    return tuple(_resolve(term, binding) for term in terms)


def _unify(left: Sequence[Term], right: Sequence[Term], binding: _Binding) -> _Binding | None:
    """Return the binding extended so that both lists of terms are equal, or None if they cannot be."""
    found = dict(binding)
    for one, other in zip(_resolve_all(left, found), right, strict=True):
        one, other = _resolve(one, found), _resolve(other, found)
        if one == other:
            continue
        if isinstance(one, Variable):
            found[one] = other
        elif isinstance(other, Variable):
            found[other] = one
        else:
            return None
    return found


def _choose_objects(
    query: ConjunctiveQuery, constants: Sequence[Value], identify: bool
) -> Iterator[dict[Variable, Value]]:
    """Yield objects for the variables that satisfy the comparisons: distinct new ones or, to `identify`, any."""
    taken = {value for value in constants if isinstance(value, str)}
    names = chain(ascii_lowercase, (f"object{n}" for n in count(1)))
    variables = query.variables
    fresh = [name for name, _ in zip((n for n in names if n not in taken), variables, strict=False)]

    def assign(position: int, used: int, binding: dict[Variable, Value]) -> Iterator[dict[Variable, Value]]:
        if position == len(variables):
            if all(compare(c.op, *instantiate((c.left, c.right), binding)) for c in query.comparisons):
                yield binding
            return
        others = [*fresh[:used], *constants] if identify else []
        for value in (fresh[used], *others):
            more = used + (value is fresh[used])
            yield from assign(position + 1, more, {**binding, variables[position]: value})

    yield from assign(0, 0, {})


def _freeze(query: ForwardQuery, found: ConjunctiveQuery, binding: dict[Variable, Value]) -> Witness:
    last = max((atom.lag for atom in found.body if atom.lag is not None), default=0)
    facts: list[TimedFact] = [
        (atom.predicate, instantiate(atom.args, binding), None if atom.lag is None else last - atom.lag)
        for atom in found.body
    ]
    facts = list(dict.fromkeys(facts))
    stream = sorted((fact for fact in facts if fact[2] is not None), key=lambda fact: fact[2] or 0)
    when = last if query.output in query.temporal else None
    lost = query.output, instantiate(found.args, binding), when
    return Witness(tuple(fact for fact in facts if fact[2] is None), tuple(stream), lost)


def _derives(query: ForwardQuery, witness: Witness) -> bool:
    """Return whether a query has the lost answer of a witness, as an answer of its own output."""
    _, args, when = witness.lost
    rigid: Facts = {}
    for predicate, values in query.facts:
        add_fact(rigid, predicate, values)
    for predicate, values, _ in witness.background:
        add_fact(rigid, predicate, values)
    held = evaluate_stream(query.rules, rigid, witness.steps, when or 0)
    return args in (rigid if when is None else held[when]).get(query.output, ())


def _shrink(left: ForwardQuery, right: ForwardQuery, witness: Witness) -> Witness:
    """Return the witness without facts that it does not need."""
    for fact in (*witness.background, *witness.stream):
        less = Witness(
            tuple(other for other in witness.background if other != fact),
            tuple(other for other in witness.stream if other != fact),
            witness.lost,
        )
        if _derives(left, less) and not _derives(right, less):
            witness = less
    return witness
