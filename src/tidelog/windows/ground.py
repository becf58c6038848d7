"""Two queries over known objects, as one propositional program: the product of their two automata.

The question is whether, on some input, the left query has an answer that the right one lacks. Input facts mention only
the given objects. Rules are instantiated over the atoms that can be derived at all from such facts (constants of the
rules come in through their heads), and only those instances stay that an answer asked for depends on.

Predicates that both queries define by the same rules, all the way down, are derived once; of the others there is a
left and a right copy. Objects that no rule names are interchangeable, unless rules compare by order, so that of answers
that differ only in such objects one is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from tidelog.language.syntax import Value, Variable
from tidelog.windows.evaluate import Facts, add, instance, matches
from tidelog.windows.query import PastRule, Query
from tidelog.windows.solver import in_time
from tidelog.windows.terms import order

LEFT, RIGHT, BOTH = "left", "right", "both"


@dataclass(frozen=True, slots=True)
class GroundAtom:
    """An atom without variables, of one of the queries or of both."""

    predicate: str
    args: tuple[Value, ...]
    side: str = BOTH


@dataclass(frozen=True, slots=True)
class GroundRule:
    """An instance of a rule: `body` holds each atom with its lag, 0 for rigid ones."""

    head: GroundAtom
    body: tuple[tuple[GroundAtom, int], ...]


@dataclass(frozen=True)
class Product:
    """The propositional program. `inputs` are the atoms that are chosen: at every time, or once for the `rigid` ones.
    `goals` are pairs of an answer of the left query and the same of the right one, None if that has no rule for it.
    `longest` is the greatest lag at which each atom is read. Any permutation of the objects in `alike` leaves the
    program as it is."""

    rules: tuple[GroundRule, ...]
    inputs: tuple[GroundAtom, ...]
    rigid: frozenset[GroundAtom]
    facts: frozenset[GroundAtom]
    goals: tuple[tuple[GroundAtom, GroundAtom | None], ...]
    longest: dict[GroundAtom, int]
    alike: tuple[Value, ...]

    @property
    def atoms(self) -> tuple[GroundAtom, ...]:
        """Every atom that occurs."""
        parts = [atom for rule in self.rules for atom in (rule.head, *(part for part, _ in rule.body))]
        goals = [atom for goal in self.goals for atom in goal if atom is not None]
        return tuple(dict.fromkeys([*parts, *goals, *self.inputs, *sorted(self.facts, key=repr)]))

    @property
    def bits(self) -> int:
        """The size of a state of the product automaton."""
        return sum(self.longest.values()) + sum(atom in self.rigid for atom in self.inputs)


def pair(left: Query, right: Query, objects: Sequence[Value], deadline: float | None = None) -> Product:
    """The product of two queries with outputs of the same arity. Raises `OutOfTime`."""
    shared = _shared(left, right)
    named = frozenset(objects) if left.ordered or right.ordered else left.constants | right.constants
    position = {value: number for number, value in enumerate(objects)}
    rules: dict[GroundRule, None] = {}
    inputs: dict[GroundAtom, None] = {}
    possible: dict[str, Facts] = {}
    facts: set[GroundAtom] = set()
    for side, query in ((LEFT, left), (RIGHT, right)):
        found = possible[side] = _possible(query, objects, deadline)
        for rule in query.rules:
            rules |= dict.fromkeys(in_time(_instances(rule, found, side, shared), deadline))
        for name in query.inputs:
            tuples = in_time(product(objects, repeat=query.arities[name]), deadline)
            atoms = [GroundAtom(name, args) for args in tuples]
            inputs |= dict.fromkeys(atoms)
            if name not in shared:  # the rule files have different facts of it
                rules |= {GroundRule(GroundAtom(name, atom.args, side), ((atom, 0),)): None for atom in atoms}
        facts |= {_atom(*fact, side, shared) for fact in query.facts}
    answers = sorted(
        possible[LEFT].get(left.output, ()), key=lambda args: [(position.get(a, len(objects)), order(a)) for a in args]
    )
    goals: list[tuple[GroundAtom, GroundAtom | None]] = []
    for args in answers:
        if args == _representative(args, objects, named):
            first = _atom(left.output, args, LEFT, shared)
            known = args in possible[RIGHT].get(right.output, ())
            second = _atom(right.output, args, RIGHT, shared) if known else None
            if first != second:
                goals.append((first, second))
    timeless = {name for query in (left, right) for name in query.arities if name not in query.temporal}
    asked = {value for goal, _ in goals for value in goal.args}
    alike = tuple(value for value in objects if value not in named and value not in asked)
    return _relevant(list(rules), list(inputs), timeless, facts, goals, alike)


def instances(query: Query, objects: Sequence[Value]) -> int:
    """How many instances of rules, and how many input facts, there are at most."""
    count = len({*objects, *query.constants})
    variables = [{t for atom in rule.body for t in atom.args if isinstance(t, Variable)} for rule in query.rules]
    found: int = sum(count ** len(some) for some in variables)
    return found + sum(int(count ** query.arities[name]) for name in query.inputs)


def _shared(left: Query, right: Query) -> frozenset[str]:
    """The predicates that both queries define alike, and those that neither defines."""
    names = {*left.arities, *right.arities}
    by_name = [{name: {r for r in q.rules if r.predicate == name} for name in names} for q in (left, right)]
    facts = [{name: {f for f in q.facts if f[0] == name} for name in names} for q in (left, right)]
    alike = {name for name in names if all(table[0][name] == table[1][name] for table in (by_name, facts))}
    while True:
        kept = {n for n in alike if all(atom.predicate in alike for rule in by_name[0][n] for atom in rule.body)}
        if kept == alike:
            return frozenset(kept)
        alike = kept


def _possible(query: Query, objects: Sequence[Value], deadline: float | None) -> Facts:
    """The facts that hold at some time on some input: all, if every input fact is there at all times."""
    found: Facts = {}
    for predicate, values in sorted(query.facts, key=lambda fact: (fact[0], [order(v) for v in fact[1]])):
        add(found, predicate, values)
    for name in query.inputs:
        tuples = in_time(product(objects, repeat=query.arities[name]), deadline)
        found.setdefault(name, {}).update(dict.fromkeys(tuples))
    grown = True
    while grown:
        grown = False
        for rule in query.rules:
            atoms = [(atom.args, found.get(atom.predicate, {})) for atom in rule.body]
            for binding in list(in_time(matches(atoms, rule.comparisons), deadline)):
                grown |= add(found, rule.predicate, instance(rule.args, binding))
    return found


def _instances(rule: PastRule, possible: Facts, side: str, shared: frozenset[str]) -> Iterator[GroundRule]:
    atoms = [(atom.args, possible.get(atom.predicate, {})) for atom in rule.body]
    for binding in matches(atoms, rule.comparisons):
        head = _atom(rule.predicate, instance(rule.args, binding), side, shared)
        body = tuple(
            dict.fromkeys(
                (_atom(atom.predicate, instance(atom.args, binding), side, shared), atom.lag or 0) for atom in rule.body
            )
        )
        if (head, 0) not in body:
            yield GroundRule(head, body)


def _atom(predicate: str, args: tuple[Value, ...], side: str, shared: frozenset[str]) -> GroundAtom:
    return GroundAtom(predicate, args, BOTH if predicate in shared else side)


def _representative(args: tuple[Value, ...], objects: Sequence[Value], named: frozenset[Value]) -> tuple[Value, ...]:
    """The first of all tuples that differ only by a permutation of the objects that no rule names."""
    free = iter([value for value in objects if value not in named])
    renamed: dict[Value, Value] = {}
    for value in args:
        if value not in named and value not in renamed:
            renamed[value] = next(free)
    return tuple(renamed.get(value, value) for value in args)


def _relevant(
    rules: list[GroundRule],
    inputs: list[GroundAtom],
    timeless: Iterable[str],
    facts: set[GroundAtom],
    goals: list[tuple[GroundAtom, GroundAtom | None]],
    alike: tuple[Value, ...],
) -> Product:
    """The part of a program that its goals depend on."""
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
            for atom, lag in rule.body:
                longest[atom] = max(longest.get(atom, 0), lag)
                if atom not in needed:
                    needed.add(atom)
                    pending.append(atom)
    rigid = set(timeless)
    return Product(
        tuple(kept),
        tuple(atom for atom in inputs if atom in needed),
        frozenset(atom for atom in needed if atom.predicate in rigid),
        frozenset(atom for atom in facts if atom in needed),
        tuple(goals),
        {atom: lag for atom, lag in longest.items() if lag},
        alike,
    )
