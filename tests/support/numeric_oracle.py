"""The slow, obviously right evaluator for programs with numbers, by the definitions; `oracle` for the rest.

**The window.** One truth table over the cells of `oracle.Scope`. The window holds all times of the data and of the
question, and on both sides as much more as all ranges of the program together reach. So outside of it:

- On the left, everything is constant. Data are. A program's rules, `not` and aggregates do not mention times, so what
  holds just before t follows from the data up to t and a bounded look ahead, and those are the same data as before any
  earlier time. (The numbers that `start` gives are times, but what has always held has no start.) This also holds for
  recursive rules, if they do not look ahead.
- On the right, everything is constant if no rule is recursive: each range is met at most once on the way from data to
  an answer. If some rule is recursive, what lies on the right is not known, and no rule may look ahead without bound;
  what the tables say is then right up to the end of the question.

**Ticks.** `numeric_aggregates` says why cells stay cells under aggregates; durations may ask for finer ticks.

**Components.** Predicates that depend on each other are evaluated together, after those that they depend on. Without
`not` and aggregates among them, they are the least fixpoint of their rules. With them, every cycle through `not` or an
aggregate must go back in time, by at least a tick, and no range between the predicates may lead ahead. Then: guess what
`not` and aggregates read, at first nothing; take the least fixpoint of the rules under this guess; take it as the next
guess; and so on until the guess is what follows from it. In each round at least one more tick, or one more predicate
at it, is right for good: what `not` and aggregates read of it belongs to earlier times. So the rounds end, and the
end does not depend on the first guess: the model is the only one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from formula_parts import head_atom, head_predicates, times_of
from numeric_aggregates import Coarse
from numeric_bodies import World, solve_body
from numeric_values import body_aggregates
from oracle import Key, Table, below_boxes, ground_atom, tables_of
from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
    BodyLiteral,
    Bottom,
    Fact,
    Formula,
    Literal,
    Rule,
    Unary,
    UnaryOp,
)
from tidelog.timeline.interval import INF, Interval, Time, TimelineName
from truth_cells import Scope, contains, disjunction

#: With more atoms or cells than this, values or times are created without end, or it takes too long.
MOST_ATOMS, MOST_CELLS = 20_000, 50_000


class Refused(Exception):
    """The definitions give such a program or its data no meaning, perhaps because of a recursion of some predicates."""

    def __init__(self, reason: str, predicates: Iterable[str] = ()) -> None:
        self.predicates = frozenset(predicates)
        super().__init__(f"{reason}: {sorted(self.predicates)}" if self.predicates else reason)


# Reading and going back in time


@dataclass(frozen=True)
class Reading:
    """A rule's head reads a predicate, at times that are earlier by at least `back` (negative: it looks ahead)."""

    head: str
    reads: str
    back: Time
    #: Whether through `not` or an aggregate.
    steps_down: bool


def least(range_: Interval, *, integer: bool) -> Fraction:
    """The greatest number that is no larger than any time of the range."""
    lo = Fraction(range_.lo)
    if not integer:
        return lo
    return Fraction(math.ceil(lo) if range_.lo_closed else math.floor(lo) + 1)


def read_formula(formula: Formula, back: Time, *, integer: bool) -> Iterator[tuple[str, Time]]:
    """The predicates of a formula, each with how far it reads back at least."""
    match formula:
        case Atom(name):
            yield name, back
        case Unary(op, range_, arg):
            if op in (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS):
                yield from read_formula(arg, back + least(range_, integer=integer), integer=integer)
            else:
                yield from read_formula(arg, back - range_.hi, integer=integer)
        case Binary(BinaryOp.SINCE, range_, left, right):
            yield from read_formula(left, back + (1 if integer else 0), integer=integer)
            yield from read_formula(right, back + least(range_, integer=integer), integer=integer)
        case Binary(_, range_, left, right):
            yield from read_formula(left, back - range_.hi, integer=integer)
            yield from read_formula(right, back - range_.hi, integer=integer)


def readings(rule: Rule, *, integer: bool) -> Iterator[Reading]:
    head, back = rule.head, Fraction(0)
    ahead: Time = Fraction(0)
    while isinstance(head, Unary):
        if head.op is UnaryOp.BOX_PLUS:
            back += least(head.range, integer=integer)
        else:
            ahead += head.range.hi
        head = head.arg
    if not isinstance(head, Atom):
        return
    shift = back - ahead
    yield from (Reading(head.predicate, *found) for found in read_body(rule.body, shift, integer=integer))


def read_body(body: Iterable[BodyLiteral], shift: Time, *, integer: bool) -> Iterator[tuple[str, Time, bool]]:
    body = list(body)
    for literal in body:
        if isinstance(literal, Literal):
            for name, back in read_formula(literal.formula, shift, integer=integer):
                yield name, back, literal.negated
    for aggregate in body_aggregates(body):
        further = least(aggregate.range, integer=integer) if aggregate.range else Fraction(0)
        for name, back, _ in read_body(aggregate.body, shift + further, integer=integer):
            yield name, back, True


def reachable(edges: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Where a path of one or more edges leads."""
    found: dict[str, set[str]] = defaultdict(set)
    edges = set(edges)
    changed = True
    while changed:
        changed = False
        for start, end in edges:
            more = {end, *found[end]} - found[start]
            found[start] |= more
            changed |= bool(more)
    return found


@dataclass(frozen=True)
class Component:
    """Predicates that depend on each other."""

    predicates: frozenset[str]
    recursive: bool
    through_time: bool


def components_of(rules: Sequence[Rule], *, integer: bool) -> list[Component]:
    """The components of the heads, each after those that it reads; Refused where recursion has no meaning."""
    edges = [reading for rule in rules for reading in readings(rule, integer=integer)]
    heads = head_predicates(rules)
    reach = reachable((edge.head, edge.reads) for edge in edges)
    together = {frozenset({name, *(n for n in reach[name] if name in reach[n])}) for name in heads}
    found = []
    for predicates in sorted(together, key=lambda group: len(set().union(*(reach[n] for n in group)) | group)):
        inside = [edge for edge in edges if edge.head in predicates and edge.reads in predicates]
        through_time = any(edge.steps_down for edge in inside)
        if any(edge.back < 0 for edge in inside):
            raise Refused("recursion that looks ahead", predicates)
        at_once = reachable((edge.head, edge.reads) for edge in inside if edge.back == 0)
        if any(
            edge.steps_down and edge.back == 0 and edge.head in {edge.reads, *at_once[edge.reads]} for edge in inside
        ):
            raise Refused("recursion through `not` or an aggregate that does not go back", predicates)
        found.append(Component(predicates, bool(inside), through_time))
    return found


# Times and the window


def body_times(body: Iterable[BodyLiteral]) -> Iterator[Time]:
    body = list(body)
    for literal in body:
        if isinstance(literal, Literal):
            yield from times_of(literal.formula)
    for aggregate in body_aggregates(body):
        if aggregate.range:
            yield from (aggregate.range.lo, aggregate.range.hi)
        yield from body_times(aggregate.body)


def rule_times(rules: Iterable[Rule]) -> list[Time]:
    """All ends of ranges."""
    return [t for rule in rules for t in (*times_of(rule.head), *body_times(rule.body))]


def common_tick(times: Iterable[Time]) -> Fraction:
    """The longest tick of which all times are multiples; 1 if there is no time but 0."""
    tick = Fraction(0)
    for t in times:
        if abs(t) != INF:
            one, other = tick, Fraction(t)
            both = one.denominator * other.denominator
            tick = Fraction(math.gcd(int(one * both), int(other * both)), both)
    return tick or Fraction(1)


def choose_scope(
    rules: Sequence[Rule], facts: Sequence[Fact], between: tuple[Time, Time], numbers: list[Fraction], *, integer: bool
) -> Scope:
    """A window that is wide enough; `numbers` must be multiples of the tick as well."""
    times = [t for fact in facts for t in (fact.interval.lo, fact.interval.hi)] + list(between)
    finite = [Fraction(t) for t in times if abs(t) != INF] or [Fraction(0)]
    reach = sum((Fraction(t) for t in rule_times(rules) if t != INF), Fraction(0))
    tick = Fraction(1) if integer else common_tick([*times, *rule_times(rules), *numbers])
    lo, hi = math.floor((min(finite) - reach) / tick) - 1, math.ceil((max(finite) + reach) / tick) + 1
    return (
        Scope(lo, hi, 1, True)
        if integer
        else Scope(2 * lo, 2 * hi, tick.denominator if tick.numerator == 1 else 1 / tick)
    )


# Evaluation


def least_fixpoint(rules: Sequence[Rule], own: Table, world: World) -> None:
    changed = True
    while changed:
        changed = False
        for rule in rules:
            changed |= apply_rule(rule, own, world)
        if len(own) > MOST_ATOMS:
            raise Refused("values are created without end")


def apply_rule(rule: Rule, own: Table, world: World) -> bool:
    """Adds all that a rule derives; whether that was new."""
    changed = False
    head = head_atom(rule.head)
    if not isinstance(head, Atom):
        return False
    for binding, vector in solve_body(rule.body, {}, world.for_rule(rule)):
        key = ground_atom(head, binding)
        before = own.get(key, world.scope.constant(False))
        after = disjunction(before, below_boxes(world.scope, rule.head, vector, definite=True))
        if after != before:
            own[key] = after
            changed = True
    return changed


def fixpoint_through_time(rules: Sequence[Rule], component: Component, table: Table, scope: Scope) -> None:
    """Extends the table, in which everything else is complete, by a component with `not` or aggregates in cycles."""
    guess = dict(table)
    for _ in range(len(scope.cells) * (len(component.predicates) + 1) + 2):
        found = dict(table)
        least_fixpoint(rules, found, World(scope, found, guess))
        if up_to_the_end(found) == up_to_the_end(guess):
            break
        guess = found
    else:
        raise Refused("recursion without a beginning", component.predicates)
    if any(vector[0] for (predicate, _), vector in found.items() if predicate in component.predicates):
        raise Refused("recursion without a beginning", component.predicates)
    table |= found


def up_to_the_end(table: Table) -> dict[Key, bytes]:
    """What is left of the window and in it; what is right of it is not known."""
    return {key: vector[:-1] for key, vector in table.items() if 1 in vector[:-1]}


@dataclass(frozen=True)
class Model:
    """What holds in a window."""

    scope: Scope
    table: Table
    consistent: bool
    recursive: bool


def solve(
    rules: Sequence[Rule],
    facts: Sequence[Fact],
    between: tuple[Time, Time] | None = None,
    timeline: TimelineName = "rational",
) -> Model:
    """The model of rules and facts between two times; without them at all times, for rules that are not recursive."""
    integer = timeline == "integer"
    numbers: list[Fraction] = []
    components = components_of(rules, integer=integer)
    recursive = any(component.recursive for component in components)
    looks_ahead = any(reading.back == -INF for rule in rules for reading in readings(rule, integer=integer))
    if recursive and (looks_ahead or between is None or between[1] == INF):
        raise Refused("what lies in the far future of recursion is not known")
    while True:
        scope = choose_scope(rules, facts, between or (INF, INF), numbers, integer=integer)
        if len(scope.cells) > MOST_CELLS:
            raise Refused("a window of too many cells")
        try:
            return solve_in(scope, rules, facts, components)
        except Coarse as coarse:
            numbers.append(coarse.value)


def solve_in(scope: Scope, rules: Sequence[Rule], facts: Sequence[Fact], components: list[Component]) -> Model:
    table = tables_of(facts, scope).definite
    for component in components:
        own = [rule for rule in rules if head_predicates([rule]) & component.predicates]
        if component.through_time:
            fixpoint_through_time(own, component, table, scope)
        else:
            least_fixpoint(own, table, World(scope, table, table))
    world = World(scope, table, table)
    constraints = [rule for rule in rules if isinstance(head_atom(rule.head), Bottom)]
    broken = any(solve_body(rule.body, {}, world.for_rule(rule)) for rule in constraints)
    return Model(scope, table, not broken, any(component.recursive for component in components))


def evaluate(
    rules: Sequence[Rule],
    facts: Sequence[Fact],
    between: tuple[Time, Time] | None = None,
    timeline: TimelineName = "rational",
) -> list[Fact]:
    """The facts of all heads that hold between two times, both included; without them, at all times."""
    model, heads = solve(rules, facts, between, timeline), head_predicates(rules)
    return [
        Fact(*key, interval)
        for key, vector in model.table.items()
        if key[0] in heads
        for interval in intervals_of(model.scope, vector, between or (-INF, INF))
    ]


def intervals_of(scope: Scope, vector: bytes, between: tuple[Time, Time]) -> Iterator[Interval]:
    """The maximal intervals of a vector, clipped."""
    lo, hi = between
    shown = [cell for cell in scope.cells if meets(scope, cell, lo, hi)]
    inside = bytearray(scope.constant(False))
    for cell in shown:
        inside[scope.index(cell)] = vector[scope.index(cell)]
    for first, last in scope.runs(bytes(inside)):
        found = scope.interval(first, last)
        if lo == -INF and first == scope.first and vector[0]:
            found = Interval(-INF, found.hi, False, found.hi_closed)
        if hi == INF and last == scope.last and vector[-1]:
            found = Interval(found.lo, INF, found.lo_closed, False)
        yield found


def meets(scope: Scope, cell: int, lo: Time, hi: Time) -> bool:
    """Whether a cell is in an interval whose ends are ticks or infinite."""
    return contains(Interval(lo, hi, lo != -INF, hi != INF), scope.time(cell))
