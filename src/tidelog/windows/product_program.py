"""Two queries over known objects as one propositional program: the product of their automata.

The question is whether the left query has, on some input, an answer that the right query lacks. Input facts mention
only the given objects. Rules are instantiated over the atoms that are derivable from such facts (constants of rules
enter through their heads), and only the instances that some goal depends on are kept.

Predicates that both queries define by the same rules, all the way down, are derived once; every other predicate has a
left and a right copy. Objects that no rule names are interchangeable, unless rules compare by order. Of the answers
that differ only in such objects, one is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from tidelog.language.comparisons import constant_order
from tidelog.language.syntax import Value, Variable
from tidelog.windows.forward_query import ForwardQuery, ForwardRule
from tidelog.windows.incremental_solver import Deadline, until_deadline
from tidelog.windows.pointwise_evaluation import Facts, add_fact, find_matches, instantiate

LEFT, RIGHT, BOTH = "left", "right", "both"


@dataclass(frozen=True, slots=True)
class GroundAtom:
    """An atom without variables, of one query or shared by both."""

    predicate: str
    args: tuple[Value, ...]
    side: str = BOTH


@dataclass(frozen=True, slots=True)
class GroundRule:
    """An instance of a rule; `body` and `negated` have each atom with its lag, which is 0 for rigid atoms."""

    head: GroundAtom
    body: tuple[tuple[GroundAtom, int], ...]
    negated: tuple[tuple[GroundAtom, int], ...] = ()

    @property
    def reads(self) -> tuple[tuple[GroundAtom, int], ...]:
        """The atoms of the body, negated or not, with their lags."""
        return self.body + self.negated


@dataclass(frozen=True)
class ProductProgram:
    """The propositional program of a product.

    `inputs` are the atoms that are chosen freely: at every time, or once if `rigid`. `goals` pairs each answer of the
    left query with the same answer of the right query, None if no rule derives it. `longest` is the largest lag at
    which each atom is read. Permuting the objects in `interchangeable` does not change the program."""

    rules: tuple[GroundRule, ...]
    inputs: tuple[GroundAtom, ...]
    rigid: frozenset[GroundAtom]
    facts: frozenset[GroundAtom]
    goals: tuple[tuple[GroundAtom, GroundAtom | None], ...]
    longest: dict[GroundAtom, int]
    interchangeable: tuple[Value, ...]

    @property
    def atoms(self) -> tuple[GroundAtom, ...]:
        """Every atom that occurs."""
        parts = [atom for rule in self.rules for atom in (rule.head, *(part for part, _ in rule.reads))]
        goals = [atom for goal in self.goals for atom in goal if atom is not None]
        return tuple(dict.fromkeys([*parts, *goals, *self.inputs, *sorted(self.facts, key=repr)]))

    @property
    def bits(self) -> int:
        """The size of a state of the product automaton, in bits."""
        return sum(self.longest.values()) + sum(atom in self.rigid for atom in self.inputs)


def build_product(
    left: ForwardQuery, right: ForwardQuery, objects: Sequence[Value], deadline: Deadline = None
) -> ProductProgram:
    """Return the product of two queries whose outputs have the same arity.

    Raise `DeadlineExceeded` if time runs out."""
    shared = _find_shared_predicates(left, right)
    named = frozenset(objects) if left.ordered or right.ordered else left.constants | right.constants
    position = {value: number for number, value in enumerate(objects)}
    rules: dict[GroundRule, None] = {}
    inputs: dict[GroundAtom, None] = {}
    possible: dict[str, Facts] = {}
    facts: set[GroundAtom] = set()
    for side, query in ((LEFT, left), (RIGHT, right)):
        found = possible[side] = _derive_possible_facts(query, objects, deadline)
        for rule in query.rules:
            rules |= dict.fromkeys(until_deadline(_instantiate_rule(rule, found, side, shared), deadline))
        for name in query.inputs:
            tuples = until_deadline(product(objects, repeat=query.arities[name]), deadline)
            atoms = [GroundAtom(name, args) for args in tuples]
            inputs |= dict.fromkeys(atoms)
            if name not in shared:  # the two rule files have different facts of this input
                rules |= {GroundRule(GroundAtom(name, atom.args, side), ((atom, 0),)): None for atom in atoms}
        facts |= {_build_atom(*fact, side, shared) for fact in query.facts}
    answers = sorted(
        possible[LEFT].get(left.output, ()),
        key=lambda args: [(position.get(a, len(objects)), constant_order(a)) for a in args],
    )
    goals: list[tuple[GroundAtom, GroundAtom | None]] = []
    for args in answers:
        if args == _canonical_args(args, objects, named):
            first = _build_atom(left.output, args, LEFT, shared)
            known = args in possible[RIGHT].get(right.output, ())
            second = _build_atom(right.output, args, RIGHT, shared) if known else None
            if first != second:
                goals.append((first, second))
    timeless = {name for query in (left, right) for name in query.arities if name not in query.temporal}
    asked = {value for goal, _ in goals for value in goal.args}
    interchangeable = tuple(value for value in objects if value not in named and value not in asked)
    return _keep_relevant(list(rules), list(inputs), timeless, facts, goals, interchangeable)


def count_instances(query: ForwardQuery, objects: Sequence[Value]) -> int:
    """Return an upper bound on the number of rule instances and input facts."""
    count = len({*objects, *query.constants})
    variables = [{t for atom in rule.body for t in atom.args if isinstance(t, Variable)} for rule in query.rules]
    found: int = sum(count ** len(some) for some in variables)
    return found + sum(int(count ** query.arities[name]) for name in query.inputs)


def _find_shared_predicates(left: ForwardQuery, right: ForwardQuery) -> frozenset[str]:
    """Return the predicates that both queries define in the same way, and those that neither defines."""
    names = {*left.arities, *right.arities}
    by_name = [{name: {r for r in q.rules if r.predicate == name} for name in names} for q in (left, right)]
    facts = [{name: {f for f in q.facts if f[0] == name} for name in names} for q in (left, right)]
    alike = {name for name in names if all(table[0][name] == table[1][name] for table in (by_name, facts))}
    while True:
        kept = {n for n in alike if all(atom.predicate in alike for rule in by_name[0][n] for atom in rule.atoms)}
        if kept == alike:
            return frozenset(kept)
        alike = kept


def _derive_possible_facts(query: ForwardQuery, objects: Sequence[Value], deadline: Deadline) -> Facts:
    """Return the facts that may hold at some time on some input: those that hold if every input fact always holds, and
    what is negated never."""
    found: Facts = {}
    for predicate, values in sorted(query.facts, key=lambda fact: (fact[0], [constant_order(v) for v in fact[1]])):
        add_fact(found, predicate, values)
    for name in query.inputs:
        tuples = until_deadline(product(objects, repeat=query.arities[name]), deadline)
        found.setdefault(name, {}).update(dict.fromkeys(tuples))
    grown = True
    while grown:
        grown = False
        for rule in query.rules:
            atoms = [(atom.args, found.get(atom.predicate, {})) for atom in rule.body]
            for binding in list(until_deadline(find_matches(atoms, rule.comparisons), deadline)):
                grown |= add_fact(found, rule.predicate, instantiate(rule.args, binding))
    return found


def _instantiate_rule(rule: ForwardRule, possible: Facts, side: str, shared: frozenset[str]) -> Iterator[GroundRule]:
    atoms = [(atom.args, possible.get(atom.predicate, {})) for atom in rule.body]
    for binding in find_matches(atoms, rule.comparisons):
        head = _build_atom(rule.predicate, instantiate(rule.args, binding), side, shared)
        body, negated = (
            dict.fromkeys(
                (_build_atom(atom.predicate, values, side, shared), atom.lag or 0)
                for atom in literals
                if (values := instantiate(atom.args, binding)) in possible.get(atom.predicate, ())
            )
            for literals in (rule.body, rule.negated)
        )
        if (head, 0) not in body and not body.keys() & negated.keys():
            yield GroundRule(head, tuple(body), tuple(negated))


def _build_atom(predicate: str, args: tuple[Value, ...], side: str, shared: frozenset[str]) -> GroundAtom:
    return GroundAtom(predicate, args, BOTH if predicate in shared else side)


def _canonical_args(args: tuple[Value, ...], objects: Sequence[Value], named: frozenset[Value]) -> tuple[Value, ...]:
    """Return the first of all tuples that differ only by a permutation of objects that no rule names."""
    free = iter([value for value in objects if value not in named])
    renamed: dict[Value, Value] = {}
    for value in args:
        if value not in named and value not in renamed:
            renamed[value] = next(free)
    return tuple(renamed.get(value, value) for value in args)


def _keep_relevant(
    rules: list[GroundRule],
    inputs: list[GroundAtom],
    timeless: Iterable[str],
    facts: set[GroundAtom],
    goals: list[tuple[GroundAtom, GroundAtom | None]],
    interchangeable: tuple[Value, ...],
) -> ProductProgram:
    """Return the part of a program that its goals depend on."""
    by_head: dict[GroundAtom, list[GroundRule]] = {}
    for rule in rules:
        by_head.setdefault(rule.head, []).append(rule)
    pending = [atom for goal in goals for atom in goal if atom is not None]
    needed = set(pending)
    longest: dict[GroundAtom, int] = {}
    kept: list[GroundRule] = []
    while pending:
        for rule in by_head.get(pending.pop(), ()):
            kept.append(rule)
            for atom, lag in rule.reads:
                longest[atom] = max(longest.get(atom, 0), lag)
                if atom not in needed:
                    needed.add(atom)
                    pending.append(atom)
    rigid = set(timeless)
    return ProductProgram(
        tuple(kept),
        tuple(atom for atom in inputs if atom in needed),
        frozenset(atom for atom in needed if atom.predicate in rigid),
        frozenset(atom for atom in facts if atom in needed),
        tuple(goals),
        {atom: lag for atom, lag in longest.items() if lag},
        interchangeable,
    )
