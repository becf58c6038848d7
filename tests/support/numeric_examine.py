"""Run random programs with numbers through the engine, in batch and as streams, and judge its answers by the oracle.

An `Outcome` says what was compared, so that tests can count it: programs that are refused, or that derive nothing,
show little.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import tidelog as tl
from behaviour import format_case
from examine import ParsedCase, parse_case
from formula_parts import head_predicates, variables_of
from judge import Claim, unroll
from numeric_aggregates import combine, contributions, needs_row, row_values
from numeric_bodies import (
    Solution,
    World,
    binding_atoms,
    bound_variables,
    brace_variables,
    literal_variables,
    match_atom,
    outside_variables,
    solve_body,
    unique,
)
from numeric_oracle import Model, Refused, components_of, intervals_of, readings, solve
from numeric_values import aggregates_of, body_aggregates, sides
from oracle import Binding
from strategies import Case
from streams import BAD, Maker, Plan, Setup, complaints, relax, run, set_up
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    Atom,
    Condition,
    Expression,
    Fact,
    Literal,
    Operation,
    Rule,
    Value,
    Variable,
)
from tidelog.testing import same_answers
from tidelog.timeline.interval import INF, Interval, Time, TimelineName
from truth_cells import Scope

#: The times between which batch reasoning is asked, around the data of random programs.
BETWEEN = Fraction(-3), Fraction(16)
#: Sums are refused if they reach this on the common denominator of their values: they have 63 bits, with the sign.
SUM_BOUND = 1 << 62
#: The code of that refusal, and of the refusal of a recursion through time that has no beginning.
OVERFLOW, NO_BEGINNING = "TL312", "TL311"
#: The code of the refusal of an aggregate over a stream that cannot look back.
NO_LOOK_BACK = "TL313"
TEXT_TESTS = ("starts_with", "ends_with", "contains", "matches")


@dataclass(frozen=True)
class Outcome:
    """What came of a program: the complaint, if any, else what was compared.

    `kind` is "answers", "no answers", "inconsistent", "overflow" (refused, rightly), "no beginning" (the same) or
    "undecided". `forms` are those of the rules that derive something.
    """

    kind: str
    complaint: str | None = None
    forms: frozenset[str] = frozenset()


# Batch


def judge_batch(case: Case) -> Outcome:
    """Judge the engine's model of a case: of all time, of a range, of a query, and of single facts."""
    given = parse_case(case)
    try:
        model = solve(case.rules, case.facts, BETWEEN, given.timeline)
    except Refused as reason:
        return _judge_refusal(given, reason)
    expected = _facts_between(case.rules, model, BETWEEN)
    try:
        found = set(given.materialise(between=BETWEEN).facts)
    except tl.errors.Inconsistent as error:
        return Outcome("inconsistent", f"should be consistent, but: {error}" if model.consistent else None)
    except tl.errors.Undecided as error:
        complaint = None if model.recursive else f"should be decided, but: {error}"
        return Outcome("undecided", complaint)
    except tl.TidelogError as refusal:
        overflow = refusal.diagnostics[0].code == OVERFLOW and leaves_63_bits(case.rules, model)
        return Outcome("overflow", None if overflow else f"should be answered, but: {refusal}")
    if not model.consistent:
        return Outcome("inconsistent", "should be inconsistent")
    if found != expected:
        return Outcome("answers", _describe_difference(f"between {BETWEEN}", expected, found))
    complaint = next(_complaints_of_all_time(given, model), None) or next(_complaints_of_parts(given, expected), None)
    return Outcome("answers" if expected else "no answers", complaint, find_used_forms(case.rules, model))


def _judge_refusal(given: ParsedCase, reason: Refused) -> Outcome:
    try:
        given.materialise(between=BETWEEN)
    except tl.TidelogError as refusal:
        code, case = refusal.diagnostics[0].code, given.case
        overflow = code == OVERFLOW and overflows_elsewhere(case.rules, case.facts, BETWEEN, given.timeline, reason)
        right = code == NO_BEGINNING or overflow
        return Outcome("no beginning", None if right else f"should be refused with {NO_BEGINNING}, but: {refusal}")
    return Outcome("no beginning", f"should be refused: {reason}")


def _facts_between(rules: Sequence[Rule], model: Model, between: tuple[Time, Time]) -> set[Fact]:
    heads = head_predicates(rules)
    return {
        Fact(*key, interval)
        for key, vector in model.table.items()
        if key[0] in heads
        for interval in intervals_of(model.scope, vector, between)
    }


def _describe_difference(where: str, expected: Iterable[Fact], found: Iterable[Fact]) -> str:
    return f"{where}: {same_answers(sorted(expected, key=str), sorted(found, key=str))}"


def _complaints_of_all_time(given: ParsedCase, model: Model) -> Iterator[str]:
    """Judge the model of all time: by the oracle or, if it does not know the far future, where the oracle does."""
    try:
        claim = given.materialise()
    except tl.errors.Undecided as error:
        if not model.recursive:
            yield f"should be decided, but: {error}"
        return
    if not model.recursive:
        expected = _facts_between(given.case.rules, model, (-INF, INF))
        if set(claim.facts) != expected or claim.repeats:
            yield _describe_difference("at all times", expected, claim.facts)
        return
    expected, found = _facts_between(given.case.rules, model, BETWEEN), set(clip(claim, *BETWEEN))
    if not same_answers(expected, found, timeline=given.timeline):
        yield _describe_difference("at all times", expected, found)


def clip(claim: Claim, lo: Fraction, hi: Fraction) -> Iterator[Fact]:
    """Clip a claim to a range of times; what repeats is unrolled."""
    wide = Scope.between(math.floor(lo), math.ceil(hi), integer=True)
    for fact in unroll(claim, wide):
        held = fact.interval
        first, last = max((held.lo, not held.lo_closed), (lo, False)), min((held.hi, held.hi_closed), (hi, True))
        inside = Interval(first[0], last[0], not first[1], last[1])
        if not inside.is_empty():
            yield Fact(fact.predicate, fact.args, inside)


def _complaints_of_parts(given: ParsedCase, expected: set[Fact]) -> Iterator[str]:
    """Judge the answers to the last predicate as a query, and to single facts."""
    name = max(head_predicates(given.case.rules))
    own = {fact for fact in expected if fact.predicate == name}
    found = set(given.materialise(query=name, between=BETWEEN).facts)
    if found != own:
        yield _describe_difference(f"query {name}", own, found)
    for fact in sorted(expected, key=str)[:1]:
        if (answer := given.entails(fact)) not in ("yes", "unknown"):
            yield f"{fact} is {answer}"
        denied = Fact(fact.predicate, ("never",) * len(fact.args), fact.interval)
        if fact.args and (answer := given.entails(denied)) not in ("no", "unknown"):
            yield f"{denied} is {answer}"


def format_numeric_case(note: str, case: Case) -> str:
    """Format a case as a file of the behaviour suite, with the oracle's answers; recursive ones end somewhere."""
    rules, facts = str(tl.Program(case.rules, case.features.timeline)), "\n".join(map(format_fact, case.facts))
    try:
        model = solve(case.rules, case.facts, BETWEEN, case.features.timeline)
    except Refused as reason:
        return format_case(f"{note}; {reason}", rules, facts, timeline=case.features.timeline)
    between = BETWEEN if model.recursive else (-INF, INF)
    expect = sorted(map(format_fact, _facts_between(case.rules, model, between)))
    return format_case(note, rules, facts, timeline=case.features.timeline, expect=expect)


# Streams


class OracleSetup(Setup):
    """A standing query whose answers the oracle knows."""

    def batch(self, facts: Iterable[Fact], end: Fraction) -> tuple[list[Fact], list[Fact]]:
        """Return the query's answers up to a time, and when constraints are violated up to then."""
        rules = tuple(map(relax, self.program.rules))
        model = solve(rules, [*self.background, *facts], (-INF, end), self.timeline)
        found = [fact for fact in _facts_between(rules, model, (-INF, end)) if fact.predicate in (self.query, BAD)]
        return [f for f in found if f.predicate == self.query], [f for f in found if f.predicate == BAD]

    def accepts(self, refusal: tl.TidelogError) -> bool:
        """Return whether a refusal is right: some sum leaves 63 bits, or an aggregate cannot look back."""
        code = refusal.diagnostics[0].code
        if code == NO_LOOK_BACK:
            return any(cannot_look_back(rule) for rule in self.needed_rules)
        return code == OVERFLOW and self.overflows

    @cached_property
    def overflows(self) -> bool:
        facts = [*self.background, *self.stream]
        model = solve(self.program.rules, facts, (-INF, self.last + 8), self.timeline)
        return leaves_63_bits(self.needed_rules, model)


def judge_stream(maker: Maker, case: Case, plan: Plan) -> Outcome:
    """Judge the answers to one of the heads, over a stream that is fed as the plan says."""
    heads = sorted(head_predicates(case.rules))
    plain = set_up(parse_case(case).program, heads[plan.seed % len(heads)], case.facts, case.features.timeline)
    setup = OracleSetup(plain.program, plain.query, plain.timeline, plain.background, plain.stream)
    end = setup.last + (plan.beyond or 0)
    try:
        model = solve(case.rules, case.facts, (-INF, end), case.features.timeline)
    except Refused as reason:
        return _judge_stream_refusal(maker, setup, plan, reason)
    complaint = next(complaints(maker, setup, plan), None)
    if complaint:
        return Outcome("answers", f"query {setup.query}: {complaint}")
    if leaves_63_bits(setup.needed_rules, model):
        return Outcome("overflow")
    if not any(fact.predicate == setup.query for fact in _facts_between(case.rules, model, (-INF, end))):
        return Outcome("no answers")
    return Outcome("answers", forms=find_used_forms(setup.needed_rules, model))


def _judge_stream_refusal(maker: Maker, setup: OracleSetup, plan: Plan, reason: Refused) -> Outcome:
    try:
        run(maker, setup, replace(plan, memory=None))
    except tl.TidelogError as refusal:
        code, facts, end = refusal.diagnostics[0].code, [*setup.background, *setup.stream], setup.last + 8
        overflow = code == OVERFLOW and overflows_elsewhere(
            setup.needed_rules, facts, (-INF, end), setup.timeline, reason
        )
        right = code == NO_BEGINNING or overflow
        return Outcome("no beginning", None if right else f"should be refused with {NO_BEGINNING}, but: {refusal}")
    if not reason.predicates & head_predicates(setup.needed_rules):
        return Outcome("no beginning")  # of a recursion that the query does not read
    return Outcome("no beginning", f"query {setup.query} should be refused: {reason}")


# Refusals


def cannot_look_back(rule: Rule) -> bool:
    """Whether an aggregate over time depends on an outside value that its braces do not bind, for ever or by `not`."""
    outside = outside_variables(rule)
    for aggregate in body_aggregates(rule.body):
        over_time = aggregate.range is not None or aggregate.function is AggregateFunction.START
        group = outside & brace_variables(aggregate)
        endless = aggregate.range is not None and aggregate.range.hi == INF
        missing = group - bound_variables(aggregate.body, outside)
        if over_time and missing and (endless or _denies_by(aggregate, missing)):
            return True
    return False


def _denies_by(aggregate: Aggregate, missing: set[str]) -> bool:
    """Whether a `not` in the braces reads variables that only literals with the missing ones bind, or these."""
    apart = [literal for literal in aggregate.body if not literal_variables(literal) & missing]
    known = bound_variables(apart, set())
    denied = (literal for literal in aggregate.body if isinstance(literal, Literal) and literal.negated)
    return any(not literal_variables(literal) <= known for literal in denied)


# Sums that leave 63 bits


def overflows_elsewhere(
    rules: Sequence[Rule], facts: Sequence[Fact], between: tuple[Time, Time], timeline: TimelineName, reason: Refused
) -> bool:
    """Return whether a sum that reads nothing of a refused recursion leaves 63 bits: either may be refused first."""
    edges = [edge for rule in rules for edge in readings(rule, integer=timeline == "integer")]
    refused = set(reason.predicates)
    while more := {edge.head for edge in edges if edge.reads in refused} - refused:
        refused |= more
    rest = tuple(rule for rule in rules if not head_predicates([rule]) & refused)
    try:
        model = solve(rest, facts, between, timeline)
    except Refused as another:
        return overflows_elsewhere(rest, facts, between, timeline, another)
    return leaves_63_bits(rest, model)


def leaves_63_bits(rules: Iterable[Rule], model: Model) -> bool:
    """Return whether some sum or average, of any group at any time, leaves 63 bits on the denominator of its values."""
    world = World(model.scope, model.table, model.table)
    return any(
        _has_large_sum(aggregate, rule, world.for_rule(rule))
        for rule in rules
        for aggregate in body_aggregates(rule.body)
        if aggregate.function in (AggregateFunction.SUM, AggregateFunction.AVG)
    )


def _has_large_sum(aggregate: Aggregate, rule: Rule, world: World) -> bool:
    group = world.group_of(aggregate)
    added = replace(aggregate, function=AggregateFunction.SUM)
    numbers = [Fraction(0)]
    for given in _outside_bindings(aggregate, rule, world):
        groups: dict[tuple[Value, ...], list[Solution]] = defaultdict(list)
        for row, vector in solve_body(aggregate.body, given, world.inside_braces()):
            groups[tuple(row[name] for name in sorted(group))].append((row, vector))
        for rows in groups.values():
            candidates, places = contributions(world.scope, added, rows)
            for place in set(places):
                total = combine(added, [candidates[number] for number in place], demand=False)
                assert isinstance(total, Fraction)
                numbers.append(total)
            values = [row_values(aggregate, row) for row, _ in rows]
            numbers += [Fraction(value[0]) for value in values if value and not isinstance(value[0], str)]
    scale = math.lcm(*(number.denominator for number in numbers))
    return max(map(abs, numbers)) * scale >= SUM_BOUND


def _outside_bindings(aggregate: Aggregate, rule: Rule, world: World) -> list[Binding]:
    """Return bindings of the variables that the braces use but do not bind, from atoms that name them at any time.

    Aggregates have a value for each of them, whether or not the other literals of the rule hold. Where several choices
    of atoms name all of them, each choice counts: a sum that is too large for one of them may be refused.
    """
    missing = world.group_of(aggregate) - bound_variables(aggregate.body, set())
    if not missing:
        return [{}]
    plain = [literal for literal in rule.body if not body_aggregates([literal])]
    positive = [literal for literal in plain if isinstance(literal, Literal) and not literal.negated]
    # Only the equations that bind a missing variable count: another one may be false, or have no value.
    equations = [literal for literal in plain if not isinstance(literal, Literal) and literal.op == "="]
    needed = min(
        (some for size in range(len(equations) + 1) for some in itertools.combinations(equations, size)),
        key=lambda some: (not missing <= bound_variables([*positive, *some], set()), len(some)),
    )
    named = missing.union(*map(literal_variables, needed))
    atoms = [atom for literal in positive for atom in binding_atoms(literal.formula)]
    # Equations compute the others.
    named &= set().union(*map(variables_of, atoms))
    found = []
    for chosen in _least_choices(atoms, named):
        bindings: list[Binding] = [{}]
        for atom in chosen:
            bindings = unique(more for binding in bindings for more in match_atom(atom, binding, world))
        found += [more for binding in bindings for more, _ in solve_body(needed, binding, world)]
    return unique({name: binding[name] for name in missing} for binding in found)


def _least_choices(atoms: Sequence[Atom], named: set[str]) -> Iterator[tuple[Atom, ...]]:
    """Yield the choices of atoms that name all variables, and no longer do so without one of them."""
    for size in range(1, len(named) + 1):
        for chosen in itertools.combinations(atoms, size):
            names = [set(variables_of(atom)) for atom in chosen]
            others = (set().union(*names[:place], *names[place + 1 :]) for place in range(size))
            if named <= set().union(*names) and not any(named <= rest for rest in others):
                yield chosen


# Forms of numbers


def find_used_forms(rules: Iterable[Rule], model: Model) -> frozenset[str]:
    """Return the forms of numbers in the rules that derive something."""
    rules = tuple(rules)
    world = World(model.scope, model.table, model.table)
    used = [rule for rule in rules if solve_body(rule.body, {}, world.for_rule(rule))]
    found = {form for rule in used for form in _forms_of_rule(rule, world.for_rule(rule))}
    cycles = [part.predicates for part in components_of(rules, integer=model.scope.integer) if part.through_time]
    arithmetic = [part.predicates for part in components_of(rules, integer=model.scope.integer) if part.recursive]
    for rule in used:
        heads = head_predicates([rule])
        if any(heads <= cycle for cycle in cycles):
            found.add("recursion through time")
        elif any(heads <= cycle for cycle in arithmetic):
            computed = any(isinstance(literal, Condition) for literal in rule.body)
            found.add("recursion with arithmetic" if computed else "recursion beside numbers")
    return frozenset(found)


def _forms_of_rule(rule: Rule, world: World) -> Iterator[str]:
    aggregates = body_aggregates(rule.body)
    for literal in rule.body:
        if isinstance(literal, Literal) and literal.negated and aggregates:
            yield "not beside braces"
        if isinstance(literal, Condition):
            yield from _forms_of_condition(literal)
    for aggregate in aggregates:
        yield from _forms_of_aggregate(aggregate, world)
    names = [brace_variables(aggregate) - world.outside for aggregate in aggregates]
    if any(one & other for one, other in itertools.combinations(names, 2)):
        yield "a local name in two pairs of braces"


def _forms_of_condition(condition: Condition) -> Iterator[str]:
    inside = aggregates_of(sides(condition))
    if condition.in_head:
        yield "an expression in a head"
    if len(inside) > 1:
        yield "two aggregates in one condition"
    elif inside:
        bound = any(isinstance(side, Variable) for side in sides(condition)) and condition.op == "="
        yield "an aggregate as a value" if bound else "an aggregate that is compared"
    if condition.op.removeprefix("not ") in TEXT_TESTS:
        yield condition.op.removeprefix("not ")
    yield from (f"operation {name}" for name in _operations_of(sides(condition)))


def _operations_of(expressions: Iterable[Expression]) -> Iterator[str]:
    for expression in expressions:
        if isinstance(expression, Operation):
            yield expression.name
            yield from _operations_of(expression.args)


def _forms_of_aggregate(aggregate: Aggregate, world: World) -> Iterator[str]:
    window = "" if aggregate.range is None else " in a window"
    distinct = " distinct" if aggregate.distinct else ""
    yield f"{aggregate.function.value}{distinct}{window}"
    if aggregate.range is not None and aggregate.range.hi == INF:
        yield "a window without end"
    if any(isinstance(value, Operation) for value in aggregate.values):
        yield "an expression as the value"
    group = world.group_of(aggregate)
    yield "a group of the braces" if needs_row(aggregate, world) else "a group from outside" if group else "no group"
    for literal in aggregate.body:
        if not isinstance(literal, Literal):
            yield "a comparison in braces"
        elif literal.negated:
            yield "not in braces"
        elif not isinstance(literal.formula, Atom):
            yield "an operator in braces"
