"""Run one random program through the batch engine, and check everything that must hold for its answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import tidelog as tl
from behaviour import format_case
from formula_parts import atoms_of, denominator_of, formulas_of, head_predicates
from judge import (
    Claim,
    choose_scope,
    claimed_truth,
    clip_claim,
    find_complaints,
    find_form_complaints,
    may_be_undecided,
)
from oracle import Key, Truth, evaluate
from strategies import Case, numbered
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import INF, Interval, TimelineName
from truth_cells import Scope


@dataclass(frozen=True)
class ParsedCase:
    """A case as the engine gets it: printed and parsed again."""

    case: Case
    program: tl.Program
    data: tl.Dataset

    @property
    def timeline(self) -> TimelineName:
        return self.case.features.timeline

    @property
    def denominator(self) -> int:
        return 1 if self.case.features.integer else denominator_of(self.case.rules, self.case.facts)

    def materialise(self, **options: object) -> Claim:
        model = tl.materialise(self.program, self.data, timeline=self.timeline, **options)  # type: ignore[arg-type]
        return Claim(tuple(model), tuple(model.repeats))

    def entails(self, fact: Fact) -> str:
        return tl.entails(self.program, self.data, fact, timeline=self.timeline).value


def parse_case(case: Case) -> ParsedCase:
    text = str(tl.Program(case.rules, case.features.timeline))
    program = tl.Program.parse(text)
    assert tuple(map(numbered, program.written_rules)) == case.rules, f"does not round-trip:\n{text}"
    return ParsedCase(case, program, tl.Dataset.parse("".join(f"{format_fact(fact)}\n" for fact in case.facts)))


def format_as_behaviour(note: str, case: Case) -> str:
    """Format a case as a file of the behaviour suite, with the oracle's answers around the data as comments."""
    rules = str(tl.Program(case.rules, case.features.timeline))
    facts = "\n".join(map(format_fact, case.facts))
    return format_case(note, rules, facts, timeline=case.features.timeline) + "".join(
        f"% {line}\n" for line in describe_oracle(case)
    )


def describe_oracle(case: Case) -> Iterator[str]:
    scope = choose_scope(case.rules, case.facts, None, pad=12, integer=case.features.integer)
    truth = evaluate(case.rules, case.facts, scope)
    yield f"the oracle from {scope.time(scope.first)} to {scope.time(scope.last)}, consistent: {truth.consistent}"
    for key in sorted(truth.possible, key=str):
        if key[0] in head_predicates(case.rules):
            for run in scope.runs(truth.definite.get(key, scope.constant(False))):
                yield format_fact(Fact(key[0], key[1], scope.interval(*run)))
            if truth.definite.get(key) != truth.possible[key]:
                yield f"{key[0]}{key[1]} is not known everywhere"


# What must hold


def examine(case: Case) -> Iterator[str]:
    """Yield what is wrong with the engine's model of a case."""
    given, integer = parse_case(case), case.features.integer
    narrow = evaluate(case.rules, case.facts, choose_scope(case.rules, case.facts, None, pad=12, integer=integer))
    try:
        claim = given.materialise()
    except tl.errors.Inconsistent as error:
        if narrow.consistent:
            yield f"should be consistent, but: {error}"
        return
    except tl.errors.Undecided as error:
        if not may_be_undecided(case.rules):
            yield f"should be decided, but: {error}"
        return
    if narrow.consistent is False:
        yield "should be inconsistent"
        return
    off_grid = [fact for fact in claim.facts if given.denominator % denominator_of([], [fact])]
    if off_grid:
        yield f"off the grid: {off_grid}"
        return
    yield from find_complaints(case.rules, case.facts, claim, integer=integer)
    yield from find_form_complaints(claim, given.denominator, integer=integer)


def examine_restrictions(case: Case, lo: int, hi: int) -> Iterator[str]:
    """Yield what is wrong with the answers to a query, between two times, and to single facts."""
    given, integer = parse_case(case), case.features.integer
    try:
        claim = given.materialise()
    except (tl.errors.Inconsistent, tl.errors.Undecided):
        return
    for name in sorted({atom.predicate for rule in case.rules for f in formulas_of(rule) for atom in atoms_of(f)}):
        found = given.materialise(query=name)
        if name in head_predicates(case.rules):
            expected = claim.of(name)
        else:
            held = Claim(tuple(fact for fact in case.facts if fact.predicate == name), ())
            expected = Claim(tuple(coalesce(held, given)), ())
        if set(found.facts) != set(expected.facts) or set(map(str, found.repeats)) != set(map(str, expected.repeats)):
            yield f"query {name} gives {found}, not {expected}"
    found = given.materialise(between=(Fraction(lo), Fraction(hi)))
    inside = clip_claim(claim, lo, hi, given.denominator, integer=integer)
    if set(found.facts) != inside or found.repeats:
        yield f"between {lo} and {hi}: {found}, not {inside}"
    yield from examine_entailment(given, claim)


def coalesce(held: Claim, given: ParsedCase) -> Iterator[Fact]:
    scope = choose_scope([], held.facts, None, pad=2, integer=given.case.features.integer)
    scope = Scope(scope.first, scope.last, scope.denominator, scope.integer)
    truth = claimed_truth(held, scope)
    for key, vector in truth.definite.items():
        for first, last in scope.runs(vector):
            inner = scope.interval(first, last)
            before, after = first == scope.first, last == scope.last
            lo, hi = -INF if before else inner.lo, INF if after else inner.hi
            yield Fact(key[0], key[1], Interval(lo, hi, inner.lo_closed and not before, inner.hi_closed and not after))


def examine_entailment(given: ParsedCase, claim: Claim) -> Iterator[str]:
    """Check single facts: around the data, far away, off the grid, and over intervals."""
    case = given.case
    scope = choose_scope(case.rules, case.facts, claim, pad=4, integer=case.features.integer)
    truth = claimed_truth(claim, scope)
    keys: list[Key] = sorted((key for key in truth.possible if key[0] in head_predicates(case.rules)), key=str)[:2]
    for key in keys:
        vector = truth.possible[key]
        runs = scope.runs(vector)[:2]
        asked = [scope.interval(*run) for run in runs]
        asked += [scope.interval(max(first - 1, scope.first), last) for first, last in runs]
        asked += [scope.interval(cell, cell) for cell in scope.cells[3::29]]
        for interval in asked:
            expected = "yes" if holds_throughout(truth, key, interval) else "no"
            fact = Fact(key[0], key[1], interval)
            found = given.entails(fact)
            if found != expected:
                yield f"{format_fact(fact)} is {expected}, not {found}"
        if not case.features.integer:
            third = Interval.point(scope.time(scope.first + 1) + Fraction(1, 1000 * scope.denominator))
            expected = "yes" if vector[2] else "no"
            if (found := given.entails(Fact(key[0], key[1], third))) != expected:
                yield f"{format_fact(Fact(key[0], key[1], third))} is {expected}, not {found}"
    for repeat in claim.repeats[:2]:
        far = repeat.every * (-(10**6) if repeat.before else 10**6)
        held = repeat.fact.interval
        moved = Interval(held.lo + far, held.hi + far, held.lo_closed, held.hi_closed)
        if given.entails(Fact(repeat.fact.predicate, repeat.fact.args, moved)) != "yes":
            yield f"{repeat} does not entail the same at {moved}"


def holds_throughout(truth: Truth, key: Key, interval: Interval) -> bool:
    scope = truth.scope
    cells = [cell for cell in scope.cells if Scope.of_interval(scope, interval, definite=True)[scope.index(cell)]]
    return all(truth.possible[key][scope.index(cell)] for cell in cells)
