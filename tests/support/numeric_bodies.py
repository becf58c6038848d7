"""Bodies with numbers, solved by the definitions: all bindings of the variables, each with where the body holds.

Bindings of variables come from the atoms of positive literals, by matching them with all that holds at any time.
`V = E` adds the value of E; if E has aggregates, the value depends on the time, and the binding falls into one for each
value, each with the cells in which it is the value. Aggregates add groups, if their braces bind group variables.
Variables of left operands of Since and Until that nothing binds mean "for some value", whatever it is.

The literals are taken in an order in which everything is bound before it is used, so the order in which they stand does
not matter. If there is no such order, the body is unsafe.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from formula_parts import atoms_of, computes, variables_of
from numeric_values import (
    Undefined,
    aggregates_of,
    body_aggregates,
    calculate,
    compare_values,
    expression_variables,
    sides,
)
from oracle import FRESH, Binding, Evaluator, Key, ground_term
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    Atom,
    Binary,
    BodyLiteral,
    Comparison,
    Condition,
    Expression,
    Formula,
    Group,
    Literal,
    Rule,
    Unary,
    Value,
    Variable,
)
from truth_cells import Scope, Vector, conjunction, disjunction, negation

#: A binding, and where the body holds under it.
Solution = tuple[Binding, Vector]
#: A binding, as a key.
Place = tuple[tuple[str, Value], ...]
#: The value of an aggregate left of the window, in each of its cells, and right of it; None where it has none.
Values = list[Value | None]


class Unsafe(Exception):
    """Variables that nothing binds."""


# What binds variables


def binding_atoms(formula: Formula) -> Iterator[Atom]:
    """The atoms that must hold at some time for the formula to hold: not those of left operands."""
    match formula:
        case Atom():
            yield formula
        case Unary(_, _, arg):
            yield from binding_atoms(arg)
        case Binary(_, _, _, right):
            yield from binding_atoms(right)


def literal_variables(literal: BodyLiteral) -> set[str]:
    """The variables of a literal outside braces."""
    if isinstance(literal, Literal):
        return set(variables_of(literal.formula))
    return {name for side in sides(literal) for name in expression_variables(side)}


def brace_variables(aggregate: Aggregate) -> set[str]:
    inside = {name for literal in aggregate.body for name in literal_variables(literal)}
    return inside | {name for value in aggregate.values for name in expression_variables(value)}


def outside_variables(rule: Rule) -> set[str]:
    """The variables that a rule has outside all braces; in braces, they are group variables."""
    return set(variables_of(rule.head)) | {name for literal in rule.body for name in literal_variables(literal)}


def assignments(literal: BodyLiteral) -> Iterator[tuple[str, Expression]]:
    """The ways to read a literal as `V = E`; a duration is only compared."""
    if isinstance(literal, Comparison | Condition) and literal.op == "=":
        for one, other in (sides(literal), sides(literal)[::-1]):
            durations = [x for x in aggregates_of([other]) if x.function is AggregateFunction.DURATION]
            if isinstance(one, Variable) and not durations:
                yield one.name, other


def bound_variables(body: Iterable[BodyLiteral], outside: set[str], given: Iterable[str] = ()) -> set[str]:
    """The variables that positive atoms outside braces bind, and those that are computed from them."""
    body = list(body)
    bound = set(given)
    for literal in body:
        if isinstance(literal, Literal) and not literal.negated:
            bound |= bound_by(literal.formula, outside)
    while True:
        more = {
            name
            for literal in body
            for name, expression in assignments(literal)
            if name not in bound and needed_variables(expression, outside) <= bound
        }
        if not more:
            return bound
        bound |= more


def bound_by(formula: Formula, outside: set[str]) -> set[str]:
    """The variables that the atoms of a formula bind; those of a group that computes, where all alternatives do."""
    found: set[str] = set()
    for atom in binding_atoms(formula):
        if computes(Literal(atom)):
            ways = [bound_variables(body, outside) for body in bodies_of(atom)]
            found |= set.intersection(*ways)
        else:
            found |= set(variables_of(atom))
    return found


def bound_in_braces(formula: Formula, outside: set[str]) -> set[str]:
    """The variables of the rule that braces in the groups of a formula bind, as their groups."""
    bodies = [body for atom in binding_atoms(formula) if computes(Literal(atom)) for body in bodies_of(atom)]
    return {name for body in bodies for one in body_aggregates(body) for name in brace_variables(one) & outside}


def bodies_of(group: Atom) -> list[list[BodyLiteral]]:
    """Return the bodies of a group, which holds where one of them does."""
    assert isinstance(group, Group)
    return [[literal] for literal in group.literals] if group.alternatives else [list(group.literals)]


def needed_variables(expression: Expression, outside: set[str]) -> set[str]:
    """The variables of an expression, and the group variables of its braces."""
    groups = [brace_variables(aggregate) & outside for aggregate in aggregates_of([expression])]
    return set(expression_variables(expression)).union(*groups)


# Solutions


@dataclass
class World:
    """What bodies read: `own` for positive literals, `settled` for `not` and for aggregates.

    What `not` and aggregates read is complete, or a guess that is fixed while rules are applied.
    """

    scope: Scope
    own: Mapping[Key, Vector]
    settled: Mapping[Key, Vector]
    #: The variables that the rule has outside all braces, and those of them that are bound there.
    outside: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    #: The rows of aggregates for groups; they do not change while `settled` does not.
    cache: dict[tuple[Aggregate, Place], list[Solution]] = field(default_factory=dict)

    def for_rule(self, rule: Rule) -> World:
        outside = outside_variables(rule)
        return replace(self, outside=frozenset(outside), elsewhere=frozenset(bound_variables(rule.body, outside)))

    def inside_braces(self) -> World:
        return replace(self, own=self.settled, outside=frozenset(), elsewhere=frozenset())

    def group_of(self, aggregate: Aggregate) -> set[str]:
        """The group variables of an aggregate."""
        return brace_variables(aggregate) & self.outside


@dataclass(frozen=True)
class BodyEvaluator(Evaluator):
    """Truth of ground formulas, in which groups may compute."""

    world: World | None = None

    def of_group(self, group: Group, binding: Binding) -> Vector:
        if not computes(Literal(group)):
            return super().of_group(group, binding)
        assert self.world is not None
        held = self.scope.constant(False)
        for _, vector in solve_group(group, binding, replace(self.world, own=self.table)):
            held = disjunction(held, vector)
        return held


def solve_group(group: Atom, given: Binding, world: World) -> list[Solution]:
    """All solutions of a group; its braces have the group variables of the whole rule."""
    known = {name: value for name, value in given.items() if name in world.outside}
    return [found for body in bodies_of(group) for found in solve_body(body, known, world)]


def match_atom(atom: Atom, binding: Binding, world: World) -> Iterator[Binding]:
    if isinstance(atom, Group) and (computes(Literal(atom)) or not atom.predicate):  # as written, inside a group
        for found, _ in solve_group(atom, binding, world):
            if all(found.get(name, value) == value for name, value in binding.items()):
                yield {**binding, **found}
        return
    for (predicate, args), vector in list(world.own.items()):
        if predicate != atom.predicate or 1 not in vector:
            continue
        found = dict(binding)
        for term, value in zip(atom.args, args, strict=True):
            if isinstance(term, Variable):
                found.setdefault(term.name, value)
            if ground_term(term, found) != value:
                break
        else:
            yield found


def solve_body(body: Iterable[BodyLiteral], given: Binding, world: World) -> list[Solution]:
    """All solutions of a body that extend a binding."""
    pending = list(body)
    bindings = [given]
    for literal in pending:
        if isinstance(literal, Literal) and not literal.negated:
            for atom in binding_atoms(literal.formula):
                bindings = unique(found for binding in bindings for found in match_atom(atom, binding, world))
    bound = set(given)
    for literal in pending:
        if isinstance(literal, Literal) and not literal.negated:
            bound |= bound_by(literal.formula, set(world.outside))
            bound |= bound_in_braces(literal.formula, set(world.outside))
    solutions: list[Solution] = [(binding, world.scope.constant(True)) for binding in bindings]
    while ready := [literal for literal in pending if is_ready(literal, bound, world)]:
        # Aggregates come last: what is computed without them is bound then.
        literal = min(ready, key=lambda literal: bool(body_aggregates([literal])))
        pending.remove(literal)
        solutions = [after for before in solutions for after in take(literal, before, world)]
        bound |= literal_variables(literal)
        for aggregate in body_aggregates([literal]):
            bound |= world.group_of(aggregate)
    return for_some_value(pending, solutions, bound, world)


def unique(bindings: Iterable[Binding]) -> list[Binding]:
    return list({tuple(sorted(binding.items())): binding for binding in bindings}.values())


def is_ready(literal: BodyLiteral, bound: set[str], world: World) -> bool:
    """Whether everything that a literal needs is bound, or bound by its own braces, or computed by it."""
    if isinstance(literal, Literal):
        return literal_variables(literal) <= bound
    after = set(bound)
    for aggregate in body_aggregates([literal]):
        inside = bound_variables(aggregate.body, set(), after)
        if not world.group_of(aggregate) <= inside:
            return False
        after |= world.group_of(aggregate)
    missing = literal_variables(literal) - after
    return not missing or any(
        missing == {name} and name not in expression_variables(expression) for name, expression in assignments(literal)
    )


def take(literal: BodyLiteral, solution: Solution, world: World) -> Iterator[Solution]:
    """A solution with one more literal."""
    binding, vector = solution
    if isinstance(literal, Literal):
        read = world.settled if literal.negated else world.own
        value = BodyEvaluator(world.scope, read, definite=True, world=world)(literal.formula, binding)
        found: Iterable[Solution] = [(binding, negation(value) if literal.negated else value)]
    else:
        found = take_condition(literal, binding, world)
    for extended, value in found:
        both = conjunction(vector, value)
        if 1 in both:
            yield extended, both


def take_condition(condition: Comparison | Condition, binding: Binding, world: World) -> Iterator[Solution]:
    """The binding with what the condition adds to it, and where the condition holds."""
    from numeric_aggregates import group_bindings, values_of  # which solves the bodies in braces

    aggregates = aggregates_of(sides(condition))
    bindings = [binding]
    for aggregate in aggregates:
        bindings = unique(more for one in bindings for more in group_bindings(aggregate, one, world))
    for grouped in bindings:
        if not aggregates:
            extended = decide(condition, grouped, {})
            if extended is not None:
                yield extended, world.scope.constant(True)
            continue
        columns = [values_of(aggregate, grouped, condition, world) for aggregate in aggregates]
        # Cells in which all aggregates have the same values are decided together.
        places: dict[tuple[Value | None, ...], list[int]] = defaultdict(list)
        for place, row in enumerate(zip(*columns, strict=True)):
            places[row].append(place)
        for row, where in places.items():
            extended = decide(condition, grouped, dict(zip(aggregates, row, strict=True)))
            if extended is not None:
                cells = bytearray(world.scope.constant(False))
                for place in where:
                    cells[place] = 1
                yield extended, bytes(cells)


def decide(
    condition: Comparison | Condition, binding: Binding, results: Mapping[Aggregate, Value | None]
) -> Binding | None:
    """The binding if the condition holds, with the variable that it computes, if any."""
    try:
        for name, expression in assignments(condition):
            if name not in binding and set(expression_variables(expression)) <= binding.keys():
                return {**binding, name: calculate(expression, binding, results)}
        left, right = (calculate(side, binding, results) for side in sides(condition))
        return binding if compare_values(condition.op, left, right) else None
    except Undefined:
        return None


def for_some_value(
    pending: list[BodyLiteral], solutions: list[Solution], bound: set[str], world: World
) -> list[Solution]:
    """Solutions with the literals that are left: their free variables are those of left operands alone."""
    if any(not isinstance(literal, Literal) or literal.negated for literal in pending):
        raise Unsafe(f"{pending}, where {sorted(bound)} are bound")
    formulas = [literal.formula for literal in pending if isinstance(literal, Literal)]
    free = sorted({name for formula in formulas for name in variables_of(formula)} - bound)
    if not formulas:
        return solutions
    named = {atom.predicate for formula in formulas for atom in atoms_of(formula)}
    domain = {FRESH, *(value for predicate, args in world.own if predicate in named for value in args)}
    evaluator = BodyEvaluator(world.scope, world.own, definite=True, world=world)
    found = []
    for binding, vector in solutions:
        somewhere = world.scope.constant(False)
        for values in itertools.product(sorted(domain, key=str), repeat=len(free)):
            full = {**binding, **dict(zip(free, values, strict=True))}
            holds = vector
            for formula in formulas:
                holds = conjunction(holds, evaluator(formula, full))
            somewhere = disjunction(somewhere, holds)
        if 1 in somewhere:
            found.append((binding, somewhere))
    return found
