"""Ground rules over the atoms that could be derived if negation and time were ignored.

Grounding is incremental: atoms that come later, as they do in a stream, make only the instances that need them. A
negated atom is kept in an instance whether or not it can be derived, so that instances stay right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.analysis.flatten import ALWAYS, decided
from tidelog.language.syntax import Comparison, Constant, Term, Variable
from tidelog.stable.normal import Kind, NormalAtom, NormalRule

if TYPE_CHECKING:
    from tidelog.data.symbols import Symbols

#: A predicate and the numbers of its constants.
Ground = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class GroundLiteral:
    """As a literal of a rule, with the numbers of atoms; `left` is -1 except for Since and Until."""

    kind: Kind
    atom: int
    lo: int
    hi: int
    negated: bool
    left: int = -1


@dataclass(frozen=True, slots=True)
class GroundRule:
    """An instance of the rule with number `rule`; `head` is -1 for a constraint, then `told` are the values to tell."""

    rule: int
    head: int
    body: tuple[GroundLiteral, ...]
    told: tuple[int, ...] = ()


#: A term of an atom to match: the number of a variable, or -1 - the number of a constant.
_Pattern = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How one rule is joined: the variables, and an order of the positive atoms for each of them as the first."""

    variables: tuple[Variable, ...]
    positive: tuple[_Pattern, ...]
    orders: tuple[tuple[int, ...], ...]


class Grounding:
    """Atoms by number, and the instances of the rules so far."""

    def __init__(self, rules: Sequence[NormalRule], symbols: Symbols) -> None:
        self.rules = rules
        self.symbols = symbols
        self.atoms: list[Ground] = []
        self.numbers: dict[Ground, int] = {}
        self.instances: list[GroundRule] = []
        self._possible: dict[str, dict[tuple[int, ...], None]] = defaultdict(dict)
        self._indexes: dict[tuple[str, tuple[int, ...]], dict[tuple[int, ...], list[tuple[int, ...]]]] = {}
        self._by_predicate: dict[str, list[tuple[str, tuple[int, ...]]]] = defaultdict(list)
        self._plans = [self._plan(rule) for rule in rules]
        self._readers: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, plan in enumerate(self._plans):
            for position, (predicate, _) in enumerate(plan.positive):
                self._readers[predicate].append((number, position))
        self._seen: set[tuple[int, tuple[int, ...]]] = set()
        self._todo: list[Ground] = []
        for number, plan in enumerate(self._plans):
            if not plan.positive:
                self._instance(number, [-1] * len(plan.variables))
        self.add([(ALWAYS, ())])

    def number(self, atom: Ground) -> int:
        known = self.numbers.get(atom)
        if known is None:
            known = self.numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
        return known

    def add(self, atoms: Iterable[Ground]) -> None:
        """Atoms that may hold from now on, and all that may follow from them."""
        for atom in atoms:
            self._possibly(atom)
        while self._todo:
            predicate, args = self._todo.pop()
            for number, position in self._readers[predicate]:
                plan = self._plans[number]
                binding = [-1] * len(plan.variables)
                if self._match(plan.positive[position][1], args, binding):
                    self._join(number, plan.orders[position], 0, binding)

    def derived(self, atom: Ground) -> bool:
        """Whether some instance may derive the atom."""
        number = self.numbers.get(atom)
        return number is not None and any(rule.head == number for rule in self.instances)

    def _possibly(self, atom: Ground) -> None:
        predicate, args = atom
        known = self._possible[predicate]
        if args in known:
            return
        known[args] = None
        self.number(atom)
        for key in self._by_predicate[predicate]:
            self._indexes[key].setdefault(tuple(args[i] for i in key[1]), []).append(args)
        self._todo.append(atom)

    def _plan(self, rule: NormalRule) -> _Plan:
        positive: list[NormalAtom] = []
        for literal in rule.body:
            if not literal.negated:
                positive.append(literal.atom)
                if literal.left is not None:
                    positive.append(literal.left)
        positive += rule.binders
        variables: dict[Variable, int] = {}
        patterns = []
        for atom in positive:
            patterns.append((atom.predicate, tuple(self._term(term, variables) for term in atom.args)))
        orders = tuple(_order(patterns, first) for first in range(len(patterns)))
        return _Plan(tuple(variables), tuple(patterns), orders)

    def _term(self, term: Term, variables: dict[Variable, int]) -> int:
        if isinstance(term, Variable):
            return variables.setdefault(term, len(variables))
        return -1 - self.symbols.intern(term.value)

    def _match(self, pattern: tuple[int, ...], args: tuple[int, ...], binding: list[int]) -> bool:
        """Bind the variables of a pattern; whether that can be done."""
        if len(pattern) != len(args):
            return False
        for term, value in zip(pattern, args, strict=True):
            if term < 0:
                if value != -1 - term:
                    return False
            elif binding[term] < 0:
                binding[term] = value
            elif binding[term] != value:
                return False
        return True

    def _join(self, number: int, order: tuple[int, ...], depth: int, binding: list[int]) -> None:
        if depth == len(order):
            self._instance(number, binding)
            return
        predicate, pattern = self._plans[number].positive[order[depth]]
        for args in list(self._candidates(predicate, pattern, binding)):
            further = binding.copy()
            if self._match(pattern, args, further):
                self._join(number, order, depth + 1, further)

    def _candidates(self, predicate: str, pattern: tuple[int, ...], binding: list[int]) -> Iterable[tuple[int, ...]]:
        bound = tuple(i for i, term in enumerate(pattern) if term < 0 or binding[term] >= 0)
        if not bound:
            return self._possible[predicate]
        key = predicate, bound
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = {}
            self._by_predicate[predicate].append(key)
            for args in self._possible[predicate]:
                if len(args) == len(pattern):
                    index.setdefault(tuple(args[i] for i in bound), []).append(args)
        wanted = tuple(-1 - pattern[i] if pattern[i] < 0 else binding[pattern[i]] for i in bound)
        return index.get(wanted, ())

    def _instance(self, number: int, binding: list[int]) -> None:
        key = number, tuple(binding)
        if key in self._seen:
            return
        self._seen.add(key)
        rule = self.rules[number]
        values = dict(zip(self._plans[number].variables, binding, strict=True))
        if not all(self._true(comparison, values) for comparison in rule.comparisons):
            return
        body = tuple(
            GroundLiteral(
                part.kind,
                self.number(self._ground(part.atom, values)),
                part.lo,
                part.hi,
                part.negated,
                -1 if part.left is None else self.number(self._ground(part.left, values)),
            )
            for part in rule.body
        )
        if rule.head is None:
            told = tuple(values[term] for term in rule.told if isinstance(term, Variable))
            self.instances.append(GroundRule(number, -1, body, told))
            return
        head = self._ground(rule.head, values)
        self.instances.append(GroundRule(number, self.number(head), body))
        self._possibly(head)

    def _ground(self, atom: NormalAtom, values: dict[Variable, int]) -> Ground:
        args = (values[t] if isinstance(t, Variable) else self.symbols.intern(t.value) for t in atom.args)
        return atom.predicate, tuple(args)

    def _true(self, comparison: Comparison, values: dict[Variable, int]) -> bool:
        def constant(term: Term) -> Term:
            return Constant(self.symbols.value(values[term])) if isinstance(term, Variable) else term

        return decided(Comparison(comparison.op, constant(comparison.left), constant(comparison.right)))


def _order(patterns: Sequence[_Pattern], first: int) -> tuple[int, ...]:
    """The other atoms, each with as many bound terms as can be."""
    bound = {term for term in patterns[first][1] if term >= 0}
    rest = [i for i in range(len(patterns)) if i != first]
    order = []
    while rest:
        best = max(rest, key=lambda i: sum(term < 0 or term in bound for term in patterns[i][1]))
        rest.remove(best)
        order.append(best)
        bound |= {term for term in patterns[best][1] if term >= 0}
    return tuple(order)


@dataclass(frozen=True, slots=True)
class Component:
    """Derived atoms that depend on each other in any way, with all their rules, and the atoms that they only read."""

    derived: tuple[int, ...]
    read: tuple[int, ...]
    rules: tuple[GroundRule, ...]


def components(rules: Iterable[GroundRule]) -> Iterator[Component]:
    """Independent parts of a ground program: they share no atom but such as no rule derives."""
    rules = list(rules)
    derived = {rule.head for rule in rules if rule.head >= 0}
    parent: dict[int, int] = {}

    def root(atom: int) -> int:
        while parent.setdefault(atom, atom) != atom:
            parent[atom] = parent[parent[atom]]
            atom = parent[atom]
        return atom

    for rule in rules:
        mine = [atom for atom in mentioned(rule) if atom in derived]
        for atom in mine[1:]:
            parent[root(atom)] = root(mine[0])
        if mine:
            root(mine[0])
    grouped: dict[int, list[GroundRule]] = defaultdict(list)
    alone: list[GroundRule] = []
    for rule in rules:
        first = next((atom for atom in mentioned(rule) if atom in derived), None)
        if first is None:
            alone.append(rule)
        else:
            grouped[root(first)].append(rule)
    for some in (*grouped.values(), *([rule] for rule in alone)):
        # Parts that are alike get their rules in the same order, so that their atoms correspond.
        some.sort(key=lambda rule: rule.rule)
        atoms = dict.fromkeys(atom for rule in some for atom in mentioned(rule))
        yield Component(
            tuple(a for a in atoms if a in derived), tuple(a for a in atoms if a not in derived), tuple(some)
        )


def mentioned(rule: GroundRule) -> Iterator[int]:
    if rule.head >= 0:
        yield rule.head
    for literal in rule.body:
        yield literal.atom
        if literal.left >= 0:
            yield literal.left
