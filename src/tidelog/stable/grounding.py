"""Ground rules over the atoms that could be derived if negation and time were ignored.

Grounding is incremental: atoms that arrive later, as in a stream, add only the instances that need them. An instance
keeps a negated atom whether or not the atom can be derived, so that instances stay valid when more atoms arrive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidelog.language.comparisons import may_hold
from tidelog.language.hidden_predicates import ALWAYS
from tidelog.language.syntax import Comparison, Constant, Term, Variable
from tidelog.stable.normal_form import NormalAtom, NormalRule, OperatorKind

if TYPE_CHECKING:
    from tidelog.data.symbol_table import Symbols

#: A predicate and the numbers of its constants.
GroundAtom = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class GroundLiteral:
    """A literal of a rule with atoms as numbers; `left` is -1 except for Since and Until."""

    kind: OperatorKind
    atom: int
    lo: int
    hi: int
    negated: bool
    left: int = -1


@dataclass(frozen=True, slots=True)
class GroundRule:
    """An instance of the rule with number `rule`.

    `head` is -1 for a constraint; `reported` are then the constants that its violation reports.
    """

    rule: int
    head: int
    body: tuple[GroundLiteral, ...]
    reported: tuple[int, ...] = ()


#: A predicate and terms to match: each is the number of a variable, or -1 minus the number of a constant.
_Pattern = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _JoinPlan:
    """How to join one rule: its variables, its positive atoms, and for each of these an order of the others."""

    variables: tuple[Variable, ...]
    positive: tuple[_Pattern, ...]
    orders: tuple[tuple[int, ...], ...]


class Grounding:
    """Atoms by number, and the instances of the rules so far."""

    #: Marks a variable that is not bound yet.
    _UNBOUND = -1

    def __init__(self, rules: Sequence[NormalRule], symbols: Symbols) -> None:
        self.rules = rules
        self.symbols = symbols
        self.atoms: list[GroundAtom] = []
        self.numbers: dict[GroundAtom, int] = {}
        self.instances: list[GroundRule] = []
        self._possible: dict[str, dict[tuple[int, ...], None]] = defaultdict(dict)
        self._indexes: dict[tuple[str, tuple[int, ...]], dict[tuple[int, ...], list[tuple[int, ...]]]] = {}
        self._by_predicate: dict[str, list[tuple[str, tuple[int, ...]]]] = defaultdict(list)
        self._plans = [self._plan_join(rule) for rule in rules]
        self._readers: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, plan in enumerate(self._plans):
            for position, (predicate, _) in enumerate(plan.positive):
                self._readers[predicate].append((number, position))
        self._seen: set[tuple[int, tuple[int, ...]]] = set()
        self._todo: list[GroundAtom] = []
        for number, plan in enumerate(self._plans):
            if not plan.positive:
                self._add_instance(number, [self._UNBOUND] * len(plan.variables))
        self.add([(ALWAYS, ())])

    def number(self, atom: GroundAtom) -> int:
        """Return the number of an atom, which is assigned when it is first asked for."""
        known = self.numbers.get(atom)
        if known is None:
            known = self.numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
        return known

    def add(self, atoms: Iterable[GroundAtom]) -> None:
        """Add atoms that may hold from now on, and all instances and atoms that may follow from them."""
        for atom in atoms:
            self._add_possible(atom)
        while self._todo:
            predicate, args = self._todo.pop()
            for number, position in self._readers[predicate]:
                plan = self._plans[number]
                binding = [self._UNBOUND] * len(plan.variables)
                if self._match(plan.positive[position][1], args, binding):
                    self._join(number, plan.orders[position], 0, binding)

    def to_json(self) -> dict[str, Any]:
        """Return the atoms and instances so far as JSON values; constants are numbers of the symbol table."""
        return {
            "atoms": self.atoms,
            "possible": [[predicate, list(args)] for predicate, args in self._possible.items()],
            "bindings": [[number, list(binding)] for number, binding in sorted(self._seen)],
            "instances": [
                [
                    rule.rule,
                    rule.head,
                    [[b.kind.value, b.atom, b.lo, b.hi, b.negated, b.left] for b in rule.body],
                    rule.reported,
                ]
                for rule in self.instances
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Replace the atoms and instances by those of `to_json`; the symbol table must be the same."""
        self.atoms = [(predicate, tuple(args)) for predicate, args in state["atoms"]]
        self.numbers = {atom: number for number, atom in enumerate(self.atoms)}
        self._seen = {(number, tuple(binding)) for number, binding in state["bindings"]}
        self.instances = [
            GroundRule(
                rule,
                head,
                tuple(GroundLiteral(OperatorKind(kind), *rest) for kind, *rest in body),
                tuple(reported),
            )
            for rule, head, body, reported in state["instances"]
        ]
        self._possible.clear()
        self._indexes.clear()
        self._by_predicate.clear()
        for predicate, possible in state["possible"]:
            self._possible[predicate] = dict.fromkeys(tuple(args) for args in possible)

    def is_derivable(self, atom: GroundAtom) -> bool:
        """Tell whether some instance may derive the atom."""
        number = self.numbers.get(atom)
        return number is not None and any(rule.head == number for rule in self.instances)

    def _add_possible(self, atom: GroundAtom) -> None:
        """Add an atom that may hold, to be joined with the rules that read it."""
        predicate, args = atom
        known = self._possible[predicate]
        if args in known:
            return
        known[args] = None
        self.number(atom)
        for key in self._by_predicate[predicate]:
            self._indexes[key].setdefault(tuple(args[i] for i in key[1]), []).append(args)
        self._todo.append(atom)

    def _plan_join(self, rule: NormalRule) -> _JoinPlan:
        """Plan the join of a rule, starting from each of its positive atoms."""
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
            patterns.append((atom.predicate, tuple(self._encode_term(term, variables) for term in atom.args)))
        orders = tuple(_order_atoms(patterns, first) for first in range(len(patterns)))
        return _JoinPlan(tuple(variables), tuple(patterns), orders)

    def _encode_term(self, term: Term, variables: dict[Variable, int]) -> int:
        if isinstance(term, Variable):
            return variables.setdefault(term, len(variables))
        return -1 - self.symbols.intern(term.value)

    def _match(self, pattern: tuple[int, ...], args: tuple[int, ...], binding: list[int]) -> bool:
        """Bind the variables of a pattern in place; tell whether the pattern matches."""
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
        """Extend a binding to the remaining atoms of an order in every possible way."""
        if depth == len(order):
            self._add_instance(number, binding)
            return
        predicate, pattern = self._plans[number].positive[order[depth]]
        for args in list(self._find_candidates(predicate, pattern, binding)):
            extended = binding.copy()
            if self._match(pattern, args, extended):
                self._join(number, order, depth + 1, extended)

    def _find_candidates(
        self, predicate: str, pattern: tuple[int, ...], binding: list[int]
    ) -> Iterable[tuple[int, ...]]:
        """Return the arguments of possible atoms that agree with what is bound, by an index on those positions."""
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

    def _add_instance(self, number: int, binding: list[int]) -> None:
        """Add the instance of a rule under a binding, if it is new and its comparisons hold."""
        key = number, tuple(binding)
        if key in self._seen:
            return
        self._seen.add(key)
        rule = self.rules[number]
        values = dict(zip(self._plans[number].variables, binding, strict=True))
        if not all(self._is_true(comparison, values) for comparison in rule.comparisons):
            return
        body = tuple(
            GroundLiteral(
                literal.kind,
                self.number(self._ground(literal.atom, values)),
                literal.lo,
                literal.hi,
                literal.negated,
                -1 if literal.left is None else self.number(self._ground(literal.left, values)),
            )
            for literal in rule.body
        )
        if rule.head is None:
            reported = tuple(values[term] for term in rule.reported if isinstance(term, Variable))
            self.instances.append(GroundRule(number, -1, body, reported))
            return
        head = self._ground(rule.head, values)
        self.instances.append(GroundRule(number, self.number(head), body))
        self._add_possible(head)

    def _ground(self, atom: NormalAtom, values: dict[Variable, int]) -> GroundAtom:
        args = (values[t] if isinstance(t, Variable) else self.symbols.intern(t.value) for t in atom.args)
        return atom.predicate, tuple(args)

    def _is_true(self, comparison: Comparison, values: dict[Variable, int]) -> bool:
        def constant(term: Term) -> Term:
            return Constant(self.symbols.value(values[term])) if isinstance(term, Variable) else term

        return may_hold(Comparison(comparison.op, constant(comparison.left), constant(comparison.right)))


def _order_atoms(patterns: Sequence[_Pattern], first: int) -> tuple[int, ...]:
    """Order the other atoms after the first, always taking the one with the most bound terms."""
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
class GroundComponent:
    """Derived atoms that depend on each other in any way, the atoms that they only read, and all their rules."""

    derived: tuple[int, ...]
    read: tuple[int, ...]
    rules: tuple[GroundRule, ...]


def split_components(rules: Iterable[GroundRule]) -> Iterator[GroundComponent]:
    """Split a ground program into independent components: they share only atoms that no rule derives."""
    rules = list(rules)
    derived = {rule.head for rule in rules if rule.head >= 0}
    parent: dict[int, int] = {}

    def root(atom: int) -> int:
        while parent.setdefault(atom, atom) != atom:
            parent[atom] = parent[parent[atom]]
            atom = parent[atom]
        return atom

    for rule in rules:
        heads = [atom for atom in atoms_of_rule(rule) if atom in derived]
        for atom in heads[1:]:
            parent[root(atom)] = root(heads[0])
        if heads:
            root(heads[0])
    grouped: dict[int, list[GroundRule]] = defaultdict(list)
    alone: list[GroundRule] = []
    for rule in rules:
        first = next((atom for atom in atoms_of_rule(rule) if atom in derived), None)
        if first is None:
            alone.append(rule)
        else:
            grouped[root(first)].append(rule)
    for group in (*grouped.values(), *([rule] for rule in alone)):
        # Components of the same shape get their rules in the same order, so that their atoms correspond.
        group.sort(key=lambda rule: rule.rule)
        atoms = dict.fromkeys(atom for rule in group for atom in atoms_of_rule(rule))
        yield GroundComponent(
            tuple(a for a in atoms if a in derived), tuple(a for a in atoms if a not in derived), tuple(group)
        )


def atoms_of_rule(rule: GroundRule) -> Iterator[int]:
    """Yield the numbers of a rule's atoms, the head first."""
    if rule.head >= 0:
        yield rule.head
    for literal in rule.body:
        yield literal.atom
        if literal.left >= 0:
            yield literal.left
