"""The slow, obviously right evaluator: truth tables over a finite window of time, written by the definitions.

**Cells.** Over the rationals, let a tick be one over the common denominator of all times in program and data. Time
falls into cells: cell 2n is the point n ticks, cell 2n+1 the open gap between n and n+1 ticks. Over the integers cell
n is the time n. Every formula is true throughout a cell or false throughout it. Data are so by choice of the tick;
for operators it follows by induction. Take `Diamondminus` with a range from a to b ticks at t. If t is the point n,
it looks at the interval from n-b to n-a, whose ends are ticks, so it meets a cell wholly or not at all. If t lies in
the gap after n, its look goes from somewhere inside the gap after n-b to somewhere inside the gap after n-a: which t
it was, and whether the range's brackets are open, makes no difference to the set of cells that are met. So an
operator sees a run of cells, `Scope.seen`, and a diamond is "some cell of the run", a box "every cell of the run".

**Since.** Some t' in the look with B at t', and A at all points strictly between t' and t. Take t' in cell k and t in
cell c. If t' = t nothing lies between, which needs 0 in the range (and k = c). Otherwise t' < t: the points between
meet every cell from k+1 to c-1, and k itself if it is a gap (t' is inside an open set), and likewise c if it is a gap.
They meet no other cell; over the integers k and c are never met. Whether t' can be chosen in cell k is just whether
the look meets k, and the cells that lie between do not depend on which t' in k was chosen.

**Outside the window.** All that lies left of the window is one more cell, and so is all that lies right of it. Two
tables bracket the truth: `definite` (outside entry: true at every time out there) and `possible` (outside entry: may
be true at some time out there). Each is a least fixpoint, stratum by stratum, and negation reads the other table.
Where they agree, the oracle knows; where they do not, it says so (None). The values of an operator far outside are
found by evaluating it at cells beyond the edge, further out than the finite ends of its range, where it has become
constant, and by taking "every" (definite) or "some" (possible) of them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
    BodyLiteral,
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
    Variable,
)
from tidelog.timeline.interval import INF, Interval, Time

#: A ground atom: predicate and arguments.
Key = tuple[str, tuple[Value, ...]]
Binding = dict[str, Value]
#: One byte a cell, 0 or 1: first all that lies left of the window, then its cells, then all that lies right of it.
Vector = bytes
Table = dict[Key, Vector]

#: Stands for all constants that neither program nor data mention.
FRESH: Value = "\0some other constant"


# Times


def times_of(formula: Formula) -> Iterator[Time]:
    """All ends of ranges in a formula."""
    match formula:
        case Group():
            for inner in formulas_in(formula):
                yield from times_of(inner)
        case Unary(_, range_, arg):
            yield from (range_.lo, range_.hi)
            yield from times_of(arg)
        case Binary(_, range_, left, right):
            yield from (range_.lo, range_.hi)
            yield from times_of(left)
            yield from times_of(right)


def formulas_in(group: Group) -> list[Formula]:
    return [literal.formula for literal in group.literals if isinstance(literal, Literal)]


def formulas_of(rule: Rule) -> list[Formula]:
    return [rule.head] + [literal.formula for literal in rule.body if isinstance(literal, Literal)]


def common_denominator(times: Iterable[Time]) -> int:
    return math.lcm(1, *(Fraction(t).denominator for t in times if abs(t) != INF))


def denominator_of(rules: Iterable[Rule], facts: Iterable[Fact]) -> int:
    rule_times = (t for rule in rules for formula in formulas_of(rule) for t in times_of(formula))
    fact_times = (t for fact in facts for t in (fact.interval.lo, fact.interval.hi))
    return common_denominator(itertools.chain(rule_times, fact_times))


def contains(interval: Interval, t: Fraction) -> bool:
    after = interval.lo < t or (interval.lo == t and interval.lo_closed)
    before = t < interval.hi or (t == interval.hi and interval.hi_closed)
    return after and before


@dataclass(frozen=True)
class Scope:
    """A window of cells `first` to `last`; over the rationals both are points."""

    first: int
    last: int
    #: One over the tick.
    denominator: int | Fraction = 1
    integer: bool = False

    @staticmethod
    def between(lo: int, hi: int, denominator: int | Fraction = 1, *, integer: bool = False) -> Scope:
        """The window of all times from lo to hi, both included."""
        if integer:
            return Scope(lo, hi, 1, True)
        return Scope(int(2 * lo * denominator), int(2 * hi * denominator), denominator)

    @property
    def cells(self) -> range:
        return range(self.first, self.last + 1)

    def is_gap(self, cell: int) -> bool:
        return not self.integer and cell % 2 == 1

    def time(self, cell: int) -> Fraction:
        """The point of a cell, or the middle of a gap."""
        return Fraction(cell) if self.integer else Fraction(cell, 2 * self.denominator)

    def index(self, cell: int) -> int:
        """Where a cell stands in a vector."""
        return min(max(cell - self.first + 1, 0), self.last - self.first + 2)

    def constant(self, value: bool) -> Vector:
        return bytes([value]) * (self.last - self.first + 3)

    def of_interval(self, interval: Interval, *, definite: bool) -> Vector:
        """The truth of a fact."""
        inside = bytes(contains(interval, t) for t in cell_times(self))
        lo, hi = self.time(self.first), self.time(self.last)
        if definite:
            left, right = interval.lo == -INF and interval.hi >= lo, interval.hi == INF and interval.lo <= hi
        else:
            left, right = interval.lo < lo, interval.hi > hi
        return bytes([left]) + inside + bytes([right])

    def seen(self, cell: int, range_: Interval, *, past: bool) -> tuple[float, float]:
        """The first and the last cell that an operator with this range looks at from the given cell."""
        if self.integer:
            low = math.ceil(range_.lo) if range_.lo_closed else math.floor(range_.lo) + 1
            high = INF if range_.hi == INF else math.floor(range_.hi) if range_.hi_closed else math.ceil(range_.hi) - 1
            return (cell - high, cell - low) if past else (cell + low, cell + high)
        near = int(2 * range_.lo * self.denominator)
        far = INF if range_.hi == INF else int(2 * range_.hi * self.denominator)
        if not self.is_gap(cell):
            near, far = near + (not range_.lo_closed), far - (not range_.hi_closed)
        return (cell - far, cell - near) if past else (cell + near, cell + far)

    def runs(self, vector: Vector) -> list[tuple[int, int]]:
        """The maximal runs of true cells inside the window, as first and last cell."""
        found = []
        for value, group in itertools.groupby(self.cells, lambda cell: vector[self.index(cell)]):
            if value:
                cells = list(group)
                found.append((cells[0], cells[-1]))
        return found

    def interval(self, first: int, last: int) -> Interval:
        """The interval that a run of cells covers."""
        lo, hi = first - self.is_gap(first), last + self.is_gap(last)
        return Interval(self.time(lo), self.time(hi), lo == first, hi == last)


@functools.lru_cache(maxsize=16)
def cell_times(scope: Scope) -> list[Fraction]:
    """The time of each cell of the window."""
    return [scope.time(cell) for cell in scope.cells]


# Operators


def conjunction(a: Vector, b: Vector) -> Vector:
    return (int.from_bytes(a, "little") & int.from_bytes(b, "little")).to_bytes(len(a), "little")


def disjunction(a: Vector, b: Vector) -> Vector:
    return (int.from_bytes(a, "little") | int.from_bytes(b, "little")).to_bytes(len(a), "little")


def negation(a: Vector) -> Vector:
    return bytes(1 - value for value in a)


@dataclass(frozen=True)
class Beyond:
    """A vector continued beyond the window's edges with what is known of the outside, addressed by cell.

    `margin` cells on each side are where an operator is evaluated, twice as many are there to be looked at.
    """

    scope: Scope
    margin: int

    @property
    def cells(self) -> range:
        return range(self.scope.first - self.margin, self.scope.last + self.margin + 1)

    def spread(self, vector: Vector) -> bytes:
        pad = 2 * self.margin
        return vector[:1] * pad + vector[1:-1] + vector[-1:] * pad

    def position(self, cell: float) -> int:
        """Where a cell stands in a spread vector; infinities are its ends."""
        last = self.scope.last - self.scope.first + 4 * self.margin
        if abs(cell) == INF:
            return 0 if cell < 0 else last
        position = int(cell) - self.scope.first + 2 * self.margin
        assert 0 <= position <= last
        return position

    def gather(self, values: Sequence[bool], *, definite: bool) -> Vector:
        """Back to a vector over the window, the cells beyond each edge taken together."""
        together = all if definite else any
        left, right = values[: self.margin], values[-self.margin :]
        return bytes([together(left), *values[self.margin : -self.margin], together(right)])


def beyond(scope: Scope, range_: Interval) -> Beyond:
    finite = [t for t in (range_.lo, range_.hi) if t != INF]
    return Beyond(scope, 2 * math.ceil(max(finite) * scope.denominator) + 4)


@functools.lru_cache(maxsize=4096)
def some_or_every(scope: Scope, op: UnaryOp, range_: Interval, vector: Vector, *, definite: bool) -> Vector:
    """A diamond or a box, cell by cell."""
    around = beyond(scope, range_)
    spread = around.spread(vector)
    past = op in (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS)
    diamond = op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS)
    values = []
    for cell in around.cells:
        first, last = scope.seen(cell, range_, past=past)
        look = spread[around.position(first) : around.position(last) + 1] if first <= last else b""
        values.append(1 in look if diamond else 0 not in look)
    return around.gather(values, definite=definite)


@functools.lru_cache(maxsize=4096)
def since_or_until(
    scope: Scope, op: BinaryOp, range_: Interval, left: Vector, right: Vector, *, definite: bool
) -> Vector:
    """Since or Until, cell by cell.

    Of the cells in the look where the right operand holds only the one nearest to t is tried: the points between it
    and t are fewest.
    """
    around = beyond(scope, range_)
    a, b = around.spread(left), around.spread(right)
    past = op is BinaryOp.SINCE
    at_once = contains(range_, Fraction(0))
    values = []
    for cell in around.cells:
        here = around.position(cell)
        first, last = scope.seen(cell, range_, past=past)
        value = bool(at_once and b[here])
        if not value and first <= last:
            start, stop = around.position(first), around.position(last) + 1
            there = b.rfind(1, start, stop) if past else b.find(1, start, stop)
            if there >= 0:
                earlier, later = min(here, there), max(here, there)
                # A spread vector begins at a cell of the parity of `first`, which is even where there are gaps.
                begin = earlier if not scope.integer and earlier % 2 == 1 else earlier + 1
                end = later if not scope.integer and later % 2 == 1 else later - 1
                value = 0 not in a[begin : end + 1]
        values.append(value)
    return around.gather(values, definite=definite)


# Ground formulas


def variables_of(formula: Formula) -> Iterator[str]:
    match formula:
        case Group(literals=literals):
            for literal in literals:
                if isinstance(literal, Literal):
                    yield from variables_of(literal.formula)
                else:
                    assert isinstance(literal, Comparison)
                    yield from (term.name for term in (literal.left, literal.right) if isinstance(term, Variable))
        case Atom(_, args):
            yield from (term.name for term in args if isinstance(term, Variable))
        case Unary(_, _, arg):
            yield from variables_of(arg)
        case Binary(_, _, left, right):
            yield from variables_of(left)
            yield from variables_of(right)


def groups_of(formula: Formula) -> Iterator[Group]:
    """The groups of a formula, those inside others first."""
    match formula:
        case Group():
            for inner in formulas_in(formula):
                yield from groups_of(inner)
            yield formula
        case Unary(_, _, arg):
            yield from groups_of(arg)
        case Binary(_, _, left, right):
            yield from groups_of(left)
            yield from groups_of(right)


def atoms_of(formula: Formula) -> Iterator[Atom]:
    yield from (atom for atom, _ in signed_atoms_of(formula, False))


def signed_atoms_of(formula: Formula, negated: bool) -> Iterator[tuple[Atom, bool]]:
    """The atoms of a formula, each with whether a negation is above it: the formula's own, or one inside a group."""
    match formula:
        case Group(literals=literals):
            for literal in literals:
                if isinstance(literal, Literal):
                    yield from signed_atoms_of(literal.formula, negated or literal.negated)
        case Atom():
            yield formula, negated
        case Unary(_, _, arg):
            yield from signed_atoms_of(arg, negated)
        case Binary(_, _, left, right):
            yield from signed_atoms_of(left, negated)
            yield from signed_atoms_of(right, negated)


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


def head_atom(head: Formula) -> Formula:
    """The atom, Top or Bottom under a head's boxes."""
    while isinstance(head, Unary):
        head = head.arg
    return head


def below_boxes(scope: Scope, head: Formula, body: Vector, *, definite: bool) -> Vector:
    """Where the atom under a head's boxes must hold if the head holds where the body does.

    `Boxplus` with range r over M at s: M at all s + r, so M at t iff the head holds at some s with t - s in r.
    """
    while isinstance(head, Unary):
        mirror = {UnaryOp.BOX_PLUS: UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS: UnaryOp.DIAMOND_PLUS}[head.op]
        body = some_or_every(scope, mirror, head.range, body, definite=definite)
        head = head.arg
    return body


# Rules


def head_predicates(rules: Iterable[Rule]) -> set[str]:
    return {head.predicate for rule in rules if isinstance(head := head_atom(rule.head), Atom)}


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


def comparisons_of(body: Iterable[BodyLiteral]) -> Iterator[Comparison]:
    """The comparisons of a body, those inside groups included."""
    for literal in body:
        if isinstance(literal, Comparison):
            yield literal
        elif isinstance(literal, Literal):
            yield from comparisons_under(literal.formula)


def comparisons_under(formula: Formula) -> Iterator[Comparison]:
    match formula:
        case Group(literals=literals):
            yield from comparisons_of(literals)
        case Unary(_, _, arg):
            yield from comparisons_under(arg)
        case Binary(_, _, left, right):
            yield from comparisons_under(left)
            yield from comparisons_under(right)


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
