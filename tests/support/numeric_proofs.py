"""Check steps and reasons with numbers by the definitions: `numeric_oracle`'s, over the model as the engine claims it.

Positive literals of a rule see the facts that a step names. Negated ones and aggregates see the claim, which other
tests judge. Of an aggregate, the value at all times of the step and the rows that count are checked, and that each row
follows from the facts that it names.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from formula_parts import computes, groups_of, head_predicates, variables_of
from judge import Claim
from numeric_aggregates import Coarse, contributions, durations, group_bindings, rows_of, union, values_of
from numeric_bodies import World, solve_body, take_condition
from numeric_oracle import choose_scope
from numeric_values import body_aggregates
from oracle import Binding, Evaluator, Table, below_boxes, domain_of, ground_atom, order, tables_of
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    Atom,
    Binary,
    BodyLiteral,
    Comparison,
    Condition,
    Fact,
    Formula,
    Group,
    Literal,
    Rule,
    Unary,
    Value,
)
from tidelog.proofs.proof_step import AggregateValue, CountedRow, ProofStep
from tidelog.proofs.why_not import BlockedRule
from tidelog.timeline.interval import INF, Interval
from truth_cells import Scope, Vector, disjunction

WINNING = (AggregateFunction.LAST, AggregateFunction.FIRST)
#: Windows of more cells than this take too long.
MOST_CELLS = 3_000


def is_numeric(rule: Rule) -> bool:
    """Whether a rule computes: it has a condition, possibly in a group."""
    return any(map(computes, rule.body))


def conditions_of(body: Iterable[BodyLiteral], rules: Sequence[Rule]) -> Iterator[BodyLiteral]:
    """The comparisons and conditions of a body, and those of the rules for its groups, which steps name."""
    for literal in body:
        if isinstance(literal, Literal):
            names = {group.predicate for group in groups_of(literal.formula)}
            bodies = [rule.body for rule in rules if head_predicates([rule]) & names]
            yield from (inner for one in bodies for inner in one if not isinstance(inner, Literal))
        else:
            yield literal


def to_named_literal(literal: BodyLiteral) -> BodyLiteral:
    """Return a literal with the predicates of its groups instead of the groups: rows name facts of these predicates."""

    def rename(formula: Formula) -> Formula:
        match formula:
            case Group(predicate, args):
                return Atom(predicate, args)
            case Unary():
                return replace(formula, arg=rename(formula.arg))
            case Binary():
                return replace(formula, left=rename(formula.left), right=rename(formula.right))
        return formula

    return replace(literal, formula=rename(literal.formula)) if isinstance(literal, Literal) else literal


class NumericChecker:
    """Checks what one program with numbers claims."""

    def __init__(self, rules: Sequence[Rule], facts: Sequence[Fact], claim: Claim, *, integer: bool) -> None:
        self.rules, self.facts, self.claim, self.integer = rules, facts, claim, integer

    def check(self, around: Iterable[Fact], find: Callable[[Scope], Iterator[str]]) -> list[str]:
        """Return the complaints in a window over all data, all claims and some facts, with ticks that are fine enough.

        There are none if something repeats for ever, or if the window would have too many cells.
        """
        everything, numbers = [*self.facts, *self.claim.facts, *around], list[Fraction]()
        while not self.claim.repeats:
            scope = choose_scope(self.rules, everything, (INF, INF), numbers, integer=self.integer)
            if len(scope.cells) > MOST_CELLS:
                break
            try:
                return list(find(scope))
            except Coarse as coarse:
                numbers.append(coarse.value)
        return []

    def step_complaints(self, step: ProofStep) -> list[str]:
        """Return what is wrong with a step by a rule with numbers."""
        return self.check([step.fact, *step.premises], lambda scope: self.complaints_in(scope, step))

    def complaints_in(self, scope: Scope, step: ProofStep) -> Iterator[str]:
        assert step.rule is not None
        assert step.when is not None
        conditions = list(conditions_of(step.rule.body, self.rules))
        model = self.with_groups(tables_of(self.claim.facts, scope).definite, body_aggregates(conditions), scope)
        alone = tables_of(step.premises, scope).definite
        world = World(scope, alone, model).for_rule(step.rule)
        held = scope.constant(False)
        for binding, vector in solve_body(step.rule.body, dict(step.binding), world):
            if all(binding.get(name) == value for name, value in step.binding.items()):
                held = disjunction(held, vector)
        derived = below_boxes(scope, step.rule.head, held, definite=True)
        wanted = scope.of_interval(step.fact.interval, definite=False)
        if any(want and not have for want, have in zip(wanted, derived, strict=True)):
            named = ", ".join(map(format_fact, step.premises))
            yield f"does not follow by {step.rule.text} with {step.binding} from {named}"
        found = [(condition.value, condition.when) for condition in step.conditions if condition.value is not None]
        shown, direct = {value.aggregate for value, _ in found}, set(body_aggregates(step.rule.body))
        if not direct <= shown <= set(body_aggregates(conditions)):
            yield "not every aggregate is shown"
        for value, when in found:
            times = step.when if value.aggregate in direct else when
            yield from self.value_complaints(replace(world, own=model), step.rule, value, step.binding, times)

    def with_groups(self, table: Table, aggregates: Iterable[Aggregate], scope: Scope) -> Table:
        """Add when the groups in the braces of aggregates hold; claims do not mention their predicates."""
        found = dict(table)
        literals = [literal for aggregate in aggregates for literal in aggregate.body]
        groups = [g for literal in literals if isinstance(literal, Literal) for g in groups_of(literal.formula)]
        for group in groups:
            names = sorted(set(variables_of(group)))
            for values in itertools.product(domain_of(self.rules, self.claim.facts), repeat=len(names)):
                binding = dict(zip(names, values, strict=True))
                held = Evaluator(scope, table, True, table).of_group(group, binding)
                key = ground_atom(Atom(group.predicate, group.args), binding)
                found[key] = disjunction(found.get(key, scope.constant(False)), held)
        return found

    # Aggregates

    def value_complaints(
        self, world: World, rule: Rule, value: AggregateValue, binding: Mapping[str, Value], when: Interval
    ) -> Iterator[str]:
        """Yield what is wrong with the value of an aggregate and with its rows."""
        scope, aggregate = world.scope, value.aggregate
        places = [place for place, inside in enumerate(scope.of_interval(when, definite=False)) if inside]
        (condition,) = [c for c in conditions_of(rule.body, self.rules) if aggregate in body_aggregates([c])][:1]
        assert isinstance(condition, Comparison | Condition)
        full: Binding = {**binding, **value.binding}
        if not world.group_of(aggregate) <= full.keys():
            if any(full.items() <= found.items() for found in group_bindings(aggregate, full, world)):
                yield f"{aggregate} has groups"
            return
        if aggregate.function is AggregateFunction.DURATION:
            yield from self.duration_complaints(world, value, full, when)
            return
        column = values_of(aggregate, full, condition, world)
        found = sorted({one for place in places if (one := column[place]) is not None}, key=order)
        ends = (found[0], found[-1]) if found else (None, None)
        if (value.least, value.greatest) != ends:
            yield f"{aggregate} is {ends[0]} to {ends[1]}, not {value.least} to {value.greatest}"
        yield from self.row_complaints(world, value, full, places, when)

    def duration_complaints(
        self, world: World, value: AggregateValue, binding: Binding, when: Interval
    ) -> Iterator[str]:
        scope, aggregate = world.scope, value.aggregate
        assert aggregate.range is not None
        held = union(scope, rows_of(aggregate, binding, world))
        closed = Interval(when.lo, when.hi, when.lo != -INF, when.hi != INF)
        near = scope.of_interval(closed, definite=False)
        column = durations(scope, aggregate, held, demand=False)
        places = [scope.index(cell) for cell in scope.cells if not scope.is_gap(cell)]
        lengths = [length for place in places if near[place] and (length := number_of(column[place])) is not None]
        if value.least is not None and lengths and (value.least, value.greatest) != (min(lengths), max(lengths)):
            yield f"{aggregate} is {min(lengths)} to {max(lengths)}, not {value.least} to {value.greatest}"
        for row in value.rows:
            if not covers(held, scope, row.when):
                yield f"{row} does not hold"

    def row_complaints(
        self, world: World, value: AggregateValue, binding: Binding, places: Sequence[int], when: Interval
    ) -> Iterator[str]:
        """Yield what is wrong with the rows: all that count at some of the times are shown or counted, and no other."""
        scope, aggregate = world.scope, value.aggregate
        rows = rows_of(aggregate, binding, world)
        for row in value.rows:
            yield from self.one_row_complaints(world, aggregate, row, binding, when)
        if aggregate.function is AggregateFunction.START or aggregate.function in WINNING:
            return
        candidates, counting = contributions(scope, aggregate, rows)
        numbers = {number for place in places for number in counting[place]}
        if aggregate.range is not None:
            if len(value.rows) + value.hidden != len(numbers):
                yield f"{aggregate} has {len(numbers)} rows, not {len(value.rows) + value.hidden}"
            return
        named = {tuple(sorted(rows[number][0].items())) for number in numbers}
        shown = {tuple(sorted({**row.binding, **self.group(aggregate, binding, world)}.items())) for row in value.rows}
        if not shown <= named or (not value.hidden and len(shown) != len(named)):
            yield f"{aggregate} has the rows {named}, not {shown}"
        assert len(candidates) == len(rows)

    def group(self, aggregate: Aggregate, binding: Binding, world: World) -> Binding:
        return {name: binding[name] for name in world.group_of(aggregate)}

    def one_row_complaints(
        self, world: World, aggregate: Aggregate, row: CountedRow, binding: Binding, when: Interval
    ) -> Iterator[str]:
        """A row follows from the facts that it names: at its start, or at the times of the step at which it holds."""
        scope = world.scope
        named = self.with_groups(tables_of(row.facts, scope).definite, [aggregate], scope)
        inside = replace(world.inside_braces(), own=named)
        given = {**self.group(aggregate, binding, world), **row.binding}
        held = scope.constant(False)
        for found, vector in solve_body([to_named_literal(literal) for literal in aggregate.body], given, inside):
            if given.items() <= found.items():
                held = disjunction(held, vector)
        cells = [i for i, on in enumerate(scope.of_interval(row.when, definite=False)) if on]
        wanted = cells[:1]
        if aggregate.range is None and aggregate.function is not AggregateFunction.START:
            now = scope.of_interval(when, definite=False)
            wanted = [i for i in cells if now[i]]
        if not all(held[i] for i in wanted):
            yield f"the row {row.binding} of {aggregate} does not follow from {', '.join(map(format_fact, row.facts))}"

    # Why not

    def blocked_complaints(self, blocked: BlockedRule) -> list[str]:
        """Return what is wrong with a condition that is said to fail, and with the values that are given for it."""
        around = [Fact("", (), interval) for interval in (*blocked.when, *blocked.nearest)]
        return self.check(around, lambda scope: self.blocked_complaints_in(scope, blocked))

    def blocked_complaints_in(self, scope: Scope, blocked: BlockedRule) -> Iterator[str]:
        condition = blocked.failing
        model = self.with_groups(tables_of(self.claim.facts, scope).definite, body_aggregates([condition]), scope)
        world = World(scope, model, model).for_rule(blocked.rule)
        held = scope.constant(False)
        given = dict(blocked.binding)
        solutions = (
            solve_body([condition], given, world)
            if isinstance(condition, Literal)
            else take_condition(condition, given, world)
        )
        for found, vector in solutions:
            if blocked.binding.items() <= found.items():
                held = disjunction(held, vector)
        for interval in blocked.when:
            fails = scope.of_interval(interval, definite=False)
            if any(a and b for a, b in zip(fails, held, strict=True)):
                yield f"{blocked.text} does not fail"
        for interval in blocked.nearest:
            if not covers(held, scope, interval):
                yield f"{blocked.text} does not hold on {interval}"
        hull = Interval(blocked.when[0].lo, blocked.when[-1].hi, blocked.when[0].lo_closed, blocked.when[-1].hi_closed)
        for value in blocked.values:
            if value.value is not None:
                yield from self.value_complaints(world, blocked.rule, value.value, blocked.binding, hull)


def covers(held: Vector, scope: Scope, interval: Interval) -> bool:
    """Whether something holds throughout an interval, outside of the window as well."""
    wanted = scope.of_interval(interval, definite=False)
    return all(have or not want for want, have in zip(wanted, held, strict=True))


def number_of(value: Value | None) -> Fraction | None:
    return None if isinstance(value, str) else value
