"""Compares what an engine claims with what the oracle knows.

A model is taken as a claim about all time: its facts and, unrolled, what repeats. Where the oracle knows the truth in
its window, the claim must agree. Where it does not (recursion that runs out of the window and may come back), the
claim is proved instead: it must be closed under the rules, so that the canonical model is no larger, and what it says
to hold must be derived in a larger window, so that the canonical model is no smaller.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from formula_parts import atoms_of, denominator_of, formulas_of, head_predicates, times_of
from oracle import Key, Truth, broken_rules, domain_of, evaluate, tables_of
from tidelog.language.fact_text import parse_fact
from tidelog.language.syntax import Fact, Formula, Rule
from tidelog.timeline.interval import INF, Interval
from truth_cells import Scope

#: Larger windows than this take too long.
MOST_CELLS = 800


class RepeatLike(Protocol):
    @property
    def fact(self) -> Fact: ...
    @property
    def every(self) -> Fraction: ...
    @property
    def start(self) -> Fraction: ...
    @property
    def before(self) -> bool: ...


@dataclass(frozen=True)
class Claim:
    """A model as data: facts, and what repeats for ever."""

    facts: tuple[Fact, ...]
    repeats: tuple[RepeatLike, ...]

    def keys(self) -> set[Key]:
        return {(fact.predicate, fact.args) for fact in (*self.facts, *(repeat.fact for repeat in self.repeats))}

    def of(self, predicate: str) -> Claim:
        return Claim(
            tuple(fact for fact in self.facts if fact.predicate == predicate),
            tuple(repeat for repeat in self.repeats if repeat.fact.predicate == predicate),
        )


@dataclass(frozen=True)
class Repeating:
    """A printed line of what repeats."""

    fact: Fact
    every: Fraction
    start: Fraction
    before: bool


def read_claim(lines: Iterable[str]) -> Claim:
    """The model that printed lines show."""
    facts: list[Fact] = []
    repeats: list[Repeating] = []
    for line in lines:
        if line.startswith("%"):
            match = re.fullmatch(r"% repeats every (\S+) (from|before) (\S+): (.*)", line)
            assert match, line
            every, start = Fraction(match[1]), Fraction(match[3])
            repeats.append(Repeating(parse_fact(match[4])[0], every, start, match[2] == "before"))
        else:
            facts.append(parse_fact(line)[0])
    return Claim(tuple(facts), tuple(repeats))


# Windows


def finite_times(facts: Iterable[Fact]) -> list[Fraction]:
    ends = (t for fact in facts for t in (fact.interval.lo, fact.interval.hi))
    return [Fraction(t) for t in ends if abs(t) != INF]


def choose_scope(
    rules: Sequence[Rule], facts: Sequence[Fact], claim: Claim | None, *, pad: int, integer: bool
) -> Scope:
    """A window around the data and, unless it would be too large, around the first round of all that repeats."""
    denominator = 1 if integer else denominator_of(rules, facts)
    times = [Fraction(0), *finite_times(facts)]
    wide = list(times)
    if claim:
        wide += finite_times(claim.facts)
        for repeat in claim.repeats:
            wide += [repeat.start, repeat.start + (-2 if repeat.before else 2) * repeat.every]
    for chosen in (wide, times):
        scope = Scope.between(math.floor(min(chosen)) - pad, math.ceil(max(chosen)) + pad, denominator, integer=integer)
        if len(scope.cells) <= MOST_CELLS:
            return scope
    return scope


def unroll(claim: Claim, scope: Scope) -> list[Fact]:
    """The facts of a claim with every round of what repeats that meets the window."""
    lo, hi = scope.time(scope.first), scope.time(scope.last)
    facts = list(claim.facts)
    for repeat in claim.repeats:
        held, step = repeat.fact.interval, -repeat.every if repeat.before else repeat.every
        while (held.hi >= lo) if repeat.before else (held.lo <= hi):
            facts.append(Fact(repeat.fact.predicate, repeat.fact.args, held))
            held = Interval(held.lo + step, held.hi + step, held.lo_closed, held.hi_closed)
    return facts


def claimed_truth(claim: Claim, scope: Scope) -> Truth:
    """The claim as tables over the window, the outside included."""
    times = [scope.time(scope.first), scope.time(scope.last), *finite_times(claim.facts)]
    times += [repeat.start for repeat in claim.repeats]
    longest = max((repeat.every for repeat in claim.repeats), default=Fraction(0))
    outer = Scope.between(
        math.floor(min(times) - longest) - 1,
        math.ceil(max(times) + longest) + 1,
        scope.denominator,
        integer=scope.integer,
    )
    around = tables_of(unroll(claim, outer), outer)
    truth = Truth(scope)
    first, last = outer.index(scope.first), outer.index(scope.last)
    endless: dict[Key, list[bool]] = defaultdict(lambda: [False, False])
    for repeat in claim.repeats:
        endless[repeat.fact.predicate, repeat.fact.args][0 if repeat.before else 1] = True
    for key, vector in around.possible.items():
        left, inside, right = vector[:first], vector[first : last + 1], vector[last + 1 :]
        # The outermost entries say what facts that never end say; what repeats is in the rounds beside them.
        past, future = endless[key]
        left, right = left[past:], right[: len(right) - future]
        truth.definite[key] = bytes([0 not in left, *inside, 0 not in right])
        truth.possible[key] = bytes([1 in left, *inside, 1 in right])
    return truth


# The judgement


def format_key(key: Key) -> str:
    predicate, args = key
    return f"{predicate}({','.join(map(str, args))})" if args else predicate


def find_complaints(rules: Sequence[Rule], facts: Sequence[Fact], claim: Claim, *, integer: bool) -> Iterator[str]:
    """What is wrong with a claimed model of a consistent program, the predicates of heads considered.

    Goes up the components of the program; what is claimed of lower ones, found right, is taken as known for all time
    when a higher one is judged. Auxiliary predicates, which no model shows, are evaluated along.
    """
    hidden = [rule for rule in rules if any(name.startswith("$") for name in head_predicates([rule]))]
    done: set[str] = set()
    for component in find_components(rules):
        if any(name.startswith("$") for name in component):
            continue
        own = [rule for rule in rules if head_predicates([rule]) & component]
        found = list(find_component_complaints([*hidden, *own], component, facts, claim, done, integer=integer))
        yield from found
        if found:
            return
        done |= component
    if not hidden:
        scope = choose_scope(rules, facts, claim, pad=12, integer=integer)
        yield from find_broken_rules(rules, facts, claim, scope)


def find_component_complaints(
    rules: Sequence[Rule], component: set[str], facts: Sequence[Fact], claim: Claim, lower: set[str], *, integer: bool
) -> Iterator[str]:
    inner = choose_scope(rules, facts, claim, pad=12, integer=integer).cells
    for pad in (12, 24, 48):
        scope = choose_scope(rules, facts, claim, pad=pad, integer=integer)
        nothing, claimed = scope.constant(False), claimed_truth(claim, scope)
        known = Truth(scope)
        for key in claimed.possible:
            if key[0] in lower:
                known.definite[key], known.possible[key] = claimed.definite[key], claimed.possible[key]
        truth = evaluate(rules, facts, scope, known)
        unsupported = ""
        for key in sorted({*truth.possible, *claimed.possible}, key=str):
            if key[0] not in component:
                continue
            said = claimed.possible.get(key, nothing)
            for cell in scope.cells:
                true, index = truth.at(key, cell), scope.index(cell)
                if true is not None and true != bool(said[index]):
                    yield f"{format_key(key)} at {scope.interval(cell, cell)} should be {true}"
                    return
                if true is None and said[index] and cell in inner:
                    unsupported = f"{format_key(key)} at {scope.interval(cell, cell)} has no derivation in {scope}"
        if not unsupported:
            return
    # Where the component itself looks without bound, no window is large enough to find all derivations.
    if not any(t == INF for rule in rules for formula in formulas_of(rule) for t in times_of(formula)):
        yield unsupported


def find_broken_rules(rules: Sequence[Rule], facts: Sequence[Fact], claim: Claim, scope: Scope) -> Iterator[str]:
    """Rules that a claimed model breaks; predicates without rules are as the data have them."""
    claimed, given, heads = claimed_truth(claim, scope), tables_of(facts, scope), head_predicates(rules)
    for key in given.possible:
        if key[0] not in heads:
            claimed.definite[key], claimed.possible[key] = given.definite[key], given.possible[key]
    for instance, cell in broken_rules(rules, domain_of(rules, facts), claimed):
        yield f"not closed under {instance} at {scope.interval(cell, cell)}"


# Form


def find_form_complaints(claim: Claim, denominator: int, *, integer: bool) -> Iterator[str]:
    """What is wrong with how a model is put: facts are maximal, periods least, starts tightest."""
    step = 1 if integer else 2 * denominator
    for key in sorted(claim.keys(), key=str):
        own = Claim(
            tuple(fact for fact in claim.facts if (fact.predicate, fact.args) == key),
            tuple(repeat for repeat in claim.repeats if (repeat.fact.predicate, repeat.fact.args) == key),
        )
        forward = [repeat for repeat in own.repeats if not repeat.before]
        backward = [repeat for repeat in own.repeats if repeat.before]
        for side in (forward, backward):
            if len({(repeat.every, repeat.start) for repeat in side}) > 1:
                yield f"{format_key(key)} has several periods: {side}"
                return
        times = [Fraction(0), *finite_times(own.facts), *(repeat.start for repeat in own.repeats)]
        reach = 3 * max((repeat.every for repeat in own.repeats), default=Fraction(0)) + 1
        scope = Scope.between(
            math.floor(min(times) - reach), math.ceil(max(times) + reach), denominator, integer=integer
        )
        vector = tables_of(unroll(own, scope), scope).definite[key]
        at = {cell: vector[scope.index(cell)] for cell in scope.cells}
        starts = [first for first, _ in scope.runs(vector)]
        if integer:
            begin = {first: first for first in starts}
        else:
            begin = {first - (first % 2): first for first in starts}
        apart = tables_of(own.facts, scope).definite.get(key, scope.constant(False))
        if len(own.facts) != len(scope.runs(apart)):
            yield f"facts of {format_key(key)} are not maximal"
        if forward:
            every, start = int(forward[0].every * step), int(forward[0].start * step)
            period = [at[cell] for cell in range(start, start + every)]
            yield from find_period_complaints(key, period, 1 if integer else 2)
            if start not in begin and not at[start]:
                yield f"{format_key(key)} does not begin at {forward[0].start}"
            # A fact may reach across: the first round may be the end of a longer stretch.
            if any(fact.interval.lo >= forward[0].start for fact in own.facts):
                yield f"facts of {format_key(key)} after {forward[0].start}"
            previous = max((cell for cell in begin if cell < start), default=None)
            earlier = not backward and previous is not None and previous > scope.first
            if earlier and all(at[cell] == at[cell + every] for cell in range(previous or 0, start)):
                yield f"{format_key(key)} repeats from {scope.time(previous or 0)}, before {forward[0].start}"
        if backward:
            every, start = int(backward[0].every * step), int(backward[0].start * step)
            period = [at[cell] for cell in range(start - every, start)]
            yield from find_period_complaints(key, period, 1 if integer else 2)
            if start - every not in begin:
                yield f"{format_key(key)} does not begin at {backward[0].start - backward[0].every}"
            # A fact may reach across: the last round may be the beginning of a longer stretch, up to the start itself.
            if any(is_before(fact.interval, backward[0].start) for fact in own.facts):
                yield f"facts of {format_key(key)} before {backward[0].start}"
            following = min((cell for cell in begin if cell > start - every), default=None)
            later = not forward and following is not None and following + every < scope.last
            if later and all(at[cell] == at[cell - every] for cell in range(start, (following or 0) + every)):
                end = scope.time((following or 0) + every)
                yield f"{format_key(key)} repeats before {end}, after {backward[0].start}"


def is_before(interval: Interval, time: Fraction) -> bool:
    """Return whether an interval ends before a time, or right before it."""
    return interval.hi < time or (interval.hi == time and not interval.hi_closed)


def find_period_complaints(key: Key, period: list[int], tick: int) -> Iterator[str]:
    if 0 not in period:
        yield f"{format_key(key)} repeats without end: it should reach infinity"
    for shorter in range(tick, len(period), tick):
        if len(period) % shorter == 0 and period == period[:shorter] * (len(period) // shorter):
            yield f"{format_key(key)} has a period of {shorter} cells, shorter than {len(period)}"
            return


def clip_claim(claim: Claim, lo: int, hi: int, denominator: int, *, integer: bool) -> set[Fact]:
    """The facts of a claim from lo to hi, both included."""
    scope = Scope.between(lo, hi, denominator, integer=integer)
    truth = claimed_truth(claim, scope)
    return {
        Fact(key[0], key[1], scope.interval(*run))
        for key, vector in truth.possible.items()
        for run in scope.runs(vector)
    }


# What may be refused


def find_reads(rules: Sequence[Rule]) -> dict[str, set[str]]:
    """For every predicate of a head the predicates that it depends on, however far."""
    reads: dict[str, set[str]] = {name: set() for name in head_predicates(rules)}
    for rule in rules:
        for formula in formulas_of(rule)[1:]:
            for head in head_predicates([rule]):
                reads[head] |= find_predicates(formula)
    changed = True
    while changed:
        changed = False
        for known in reads.values():
            more = set().union(*(reads.get(name, set()) for name in known)) - known
            changed |= bool(more)
            known |= more
    return reads


def find_components(rules: Sequence[Rule]) -> list[set[str]]:
    """The predicates of heads, those that depend on each other together, each after what it depends on."""
    reads = find_reads(rules)
    together = {
        name: frozenset({name} | {other for other in reads[name] & reads.keys() if name in reads[other]})
        for name in reads
    }
    return [set(group) for group in sorted(set(together.values()), key=lambda group: len(reads[min(group)] | group))]


def find_predicates(formula: Formula) -> set[str]:
    return {atom.predicate for atom in atoms_of(formula)}


def may_be_undecided(rules: Sequence[Rule]) -> bool:
    """Whether unbounded operators meet recursion."""
    recursive = any(name in known for name, known in find_reads(rules).items())
    return recursive and any(t == INF for rule in rules for formula in formulas_of(rule) for t in times_of(formula))
