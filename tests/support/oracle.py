"""The slow, obviously right evaluator: truth tables over a finite window of time, written by the definitions.

`truth_cells` has the cells of time and the operators, `formula_parts` finds the parts of rules.

**Outside the window.** All that lies left of the window is one more cell, and so is all that lies right of it. Two
tables bracket the truth: `definite` (outside entry: true at every time out there) and `possible` (outside entry: may
be true at some time out there). Each is a least fixpoint, stratum by stratum, and negation reads the other table.
Where they agree, the oracle knows; where they do not, it says so (None). The values of an operator far outside are
found by evaluating it at cells beyond the edge, further out than the finite ends of its range, where it has become
constant, and by taking "every" (definite) or "some" (possible) of them.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from formula_parts import (
    atoms_of,
    comparisons_of,
    denominator_of,
    formulas_of,
    head_atom,
    signed_atoms_of,
    variables_of,
)
from tidelog.language.syntax import (
    Atom,
    Binary,
    Bottom,
    Comparison,
    Condition,
    Constant,
    Fact,
    Formula,
    Group,
    Literal,
    Rule,
    Term,
    Top,
    Unary,
    UnaryOp,
    Value,
)
from truth_cells import Scope, Vector, conjunction, disjunction, negation, since_or_until, some_or_every

#: A ground atom: predicate and arguments.
Key = tuple[str, tuple[Value, ...]]
Binding = dict[str, Value]
Table = dict[Key, Vector]
#: Stands for all constants that neither program nor data mention.
FRESH: Value = "\0some other constant"


def ground_term(term: Term, binding: Binding) -> Value:
    return term.value if isinstance(term, Constant) else binding[term.name]


def ground_atom(atom: Atom, binding: Binding) -> Key:
    return atom.predicate, tuple(ground_term(term, binding) for term in atom.args)


def order(value: Value) -> tuple[int, Value]:
    """Numbers by value, then strings by order."""
    return (1, value) if isinstance(value, str) else (0, value)


def compare(comparison: Comparison, binding: Binding) -> bool:
    a, b = order(ground_term(comparison.left, binding)), order(ground_term(comparison.right, binding))
    match comparison.op:
        case "<":
            return a < b
        case "<=":
            return a <= b
        case "=":
            return a == b
        case "!=":
            return a != b
        case ">":
            return a > b
        case ">=":
            return a >= b
    raise ValueError(comparison.op)


@dataclass(frozen=True)
class Evaluator:
    """Truth of ground formulas in one of the two tables; negations inside groups read the other one."""

    scope: Scope
    table: Mapping[Key, Vector]
    definite: bool
    other: Mapping[Key, Vector] = field(default_factory=dict)

    def of_group(self, group: Group, binding: Binding) -> Vector:
        """All literals of a group hold, or one of them does."""
        result = self.scope.constant(not group.alternatives)
        for literal in group.literals:
            if isinstance(literal, Comparison):
                value = self.scope.constant(compare(literal, binding))
            else:
                assert isinstance(literal, Literal)
                if literal.negated:
                    denied = Evaluator(self.scope, self.other, not self.definite, self.table)
                    value = negation(denied(literal.formula, binding))
                else:
                    value = self(literal.formula, binding)
            result = disjunction(result, value) if group.alternatives else conjunction(result, value)
        return result

    def __call__(self, formula: Formula, binding: Binding) -> Vector:
        match formula:
            case Group():
                return self.of_group(formula, binding)
            case Top():
                return self.scope.constant(True)
            case Bottom():
                return self.scope.constant(False)
            case Atom():
                return self.table.get(ground_atom(formula, binding), self.scope.constant(False))
            case Unary(op, range_, arg):
                return some_or_every(self.scope, op, range_, self(arg, binding), definite=self.definite)
            case Binary(op, range_, left, right):
                a, b = self(left, binding), self(right, binding)
                return since_or_until(self.scope, op, range_, a, b, definite=self.definite)


def below_boxes(scope: Scope, head: Formula, body: Vector, *, definite: bool) -> Vector:
    """Where the atom under a head's boxes must hold if the head holds where the body does.

    `Boxplus` with range r over M at s: M at all s + r, so M at t iff the head holds at some s with t - s in r.
    """
    while isinstance(head, Unary):
        mirror = {UnaryOp.BOX_PLUS: UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS: UnaryOp.DIAMOND_PLUS}[head.op]
        body = some_or_every(scope, mirror, head.range, body, definite=definite)
        head = head.arg
    return body


def strata_of(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Rules by the stratum of their heads, constraints last; ValueError if negation is in a cycle."""
    level: dict[str, int] = defaultdict(int)
    predicates = {atom.predicate for rule in rules for formula in formulas_of(rule) for atom in atoms_of(formula)}
    changed = True
    while changed:
        changed = False
        for rule in rules:
            head = head_atom(rule.head)
            if not isinstance(head, Atom):
                continue
            for literal in rule.body:
                if not isinstance(literal, Literal):
                    continue
                for atom, negated in signed_atoms_of(literal.formula, literal.negated):
                    least = level[atom.predicate] + negated
                    if level[head.predicate] < least:
                        level[head.predicate] = least
                        changed = True
                    if least > len(predicates):
                        raise ValueError("not stratifiable")
    strata: dict[int, list[Rule]] = defaultdict(list)
    constraints = []
    for rule in rules:
        head = head_atom(rule.head)
        if isinstance(head, Atom):
            strata[level[head.predicate]].append(rule)
        elif isinstance(head, Bottom):
            constraints.append(rule)
    return [strata[number] for number in sorted(strata)] + [constraints]


def domain_of(rules: Iterable[Rule], facts: Iterable[Fact]) -> list[Value]:
    """All constants of program and data, and one that stands for all others."""
    values: dict[Value, None] = {FRESH: None}
    for rule in rules:
        terms = [term for formula in formulas_of(rule) for atom in atoms_of(formula) for term in atom.args]
        for comparison in comparisons_of(rule.body):
            terms += [comparison.left, comparison.right]
        values.update((term.value, None) for term in terms if isinstance(term, Constant))
    for fact in facts:
        values.update((value, None) for value in fact.args)
    return list(values)


@dataclass(frozen=True)
class Instance:
    """A rule under a binding of all its variables."""

    rule: Rule
    binding: Binding

    def body(self, scope: Scope, own: Mapping[Key, Vector], other: Mapping[Key, Vector], *, definite: bool) -> Vector:
        """Where the body holds; negated literals are read from the other table."""
        positive, negative = Evaluator(scope, own, definite, other), Evaluator(scope, other, not definite, own)
        result = scope.constant(True)
        for literal in self.rule.body:
            if not isinstance(literal, Literal):
                continue
            if literal.negated:
                value = negation(negative(literal.formula, self.binding))
            else:
                value = positive(literal.formula, self.binding)
            result = conjunction(result, value)
            if 1 not in result:
                break
        return result

    def reads(self) -> set[Key]:
        literals = [literal for literal in self.rule.body if isinstance(literal, Literal)]
        return {ground_atom(atom, self.binding) for literal in literals for atom in atoms_of(literal.formula)}


def instances_of(rule: Rule, domain: Sequence[Value]) -> Iterator[Instance]:
    """All bindings under which the comparisons hold."""
    names = dict.fromkeys(name for formula in formulas_of(rule) for name in variables_of(formula))
    comparisons = [literal for literal in rule.body if isinstance(literal, Comparison)]
    for values in itertools.product(domain, repeat=len(names)):
        binding = dict(zip(names, values, strict=True))
        if all(compare(comparison, binding) for comparison in comparisons):
            yield Instance(rule, binding)


def fixpoint(
    scope: Scope, instances: Sequence[Instance], own: Table, other: Mapping[Key, Vector], *, definite: bool
) -> None:
    """Applies ground rules until nothing changes; a rule is tried again when an atom that it reads has grown."""
    readers: dict[Key, list[int]] = defaultdict(list)
    for number, instance in enumerate(instances):
        for key in instance.reads():
            readers[key].append(number)
    waiting = deque(range(len(instances)))
    queued = set(waiting)
    while waiting:
        number = waiting.popleft()
        queued.discard(number)
        instance = instances[number]
        body = instance.body(scope, own, other, definite=definite)
        if 1 not in body:
            continue
        head = head_atom(instance.rule.head)
        assert isinstance(head, Atom)
        key = ground_atom(head, instance.binding)
        before = own.get(key, scope.constant(False))
        after = disjunction(before, below_boxes(scope, instance.rule.head, body, definite=definite))
        if after != before:
            own[key] = after
            fresh = [reader for reader in readers[key] if reader not in queued]
            waiting.extend(fresh)
            queued.update(fresh)


@dataclass
class Truth:
    """What is known of the canonical model in a window."""

    scope: Scope
    definite: Table = field(default_factory=dict)
    possible: Table = field(default_factory=dict)
    #: Whether all constraints hold; None if that depends on what lies outside the window.
    consistent: bool | None = True

    def at(self, key: Key, cell: int) -> bool | None:
        index, nothing = self.scope.index(cell), self.scope.constant(False)
        if self.definite.get(key, nothing)[index]:
            return True
        return None if self.possible.get(key, nothing)[index] else False


def tables_of(facts: Iterable[Fact], scope: Scope) -> Truth:
    truth = Truth(scope)
    for fact in facts:
        key = fact.predicate, fact.args
        for table, definite in ((truth.definite, True), (truth.possible, False)):
            vector = scope.of_interval(fact.interval, definite=definite)
            table[key] = disjunction(table.get(key, scope.constant(False)), vector)
    return truth


def evaluate(rules: Sequence[Rule], facts: Sequence[Fact], scope: Scope, known: Truth | None = None) -> Truth:
    """The canonical model of rules and facts, as far as the window lets it be known.

    `known` is what is known of predicates that have no rules here.
    """
    assert not any(isinstance(literal, Condition) for rule in rules for literal in rule.body), "see numeric_oracle"
    assert scope.integer or scope.denominator % denominator_of(rules, facts) == 0
    truth = tables_of(facts, scope)
    if known:
        truth.definite |= known.definite
        truth.possible |= known.possible
    mentioned = [value for _, args in truth.possible for value in args]
    domain = list(dict.fromkeys([*domain_of(rules, facts), *mentioned]))
    *strata, constraints = strata_of(rules)
    for stratum in strata:
        instances = [instance for rule in stratum for instance in instances_of(rule, domain)]
        # Negated atoms belong to lower strata, whose tables are complete.
        fixpoint(scope, instances, truth.definite, truth.possible, definite=True)
        fixpoint(scope, instances, truth.possible, truth.definite, definite=False)
    for instance in (instance for rule in constraints for instance in instances_of(rule, domain)):
        if 1 in instance.body(scope, truth.definite, truth.possible, definite=True):
            truth.consistent = False
        elif truth.consistent and 1 in instance.body(scope, truth.possible, truth.definite, definite=False):
            truth.consistent = None
    return truth


def broken_rules(rules: Sequence[Rule], domain: Sequence[Value], truth: Truth) -> Iterator[tuple[Instance, int]]:
    """Ground rules whose body surely holds at a time at which the atom of the head surely should, but does not.

    Gives the instance and a cell of the window where the head's atom is missing.
    """
    scope, nothing = truth.scope, truth.scope.constant(False)
    for instance in (instance for rule in rules for instance in instances_of(rule, domain)):
        head = head_atom(instance.rule.head)
        if isinstance(head, Top):
            continue
        body = instance.body(scope, truth.definite, truth.possible, definite=True)
        if 1 not in body:
            continue
        due = below_boxes(scope, instance.rule.head, body, definite=True)
        have = truth.possible.get(ground_atom(head, instance.binding), nothing) if isinstance(head, Atom) else nothing
        missing = conjunction(due, negation(have))
        for cell in scope.cells:
            if missing[scope.index(cell)]:
                yield instance, cell
                break
