"""Rules that follow from the others, and so need not be evaluated nor looked back for.

A rule follows if, whatever facts there are, the other rules derive its head wherever its body holds (uniform
containment). To find out, the body is frozen into facts and the batch engine asked for the head, case by case. Rules
that look back farthest are tried first, so that what has to be remembered becomes less; of rules that say the same the
last ones are left out. Nothing else is lost: every predicate keeps all of its facts, on every input.

A rule with negation may follow from rules with the same negation, or none: what is negated lies in lower strata, which
are complete before either is asked. Constraints are never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, isinf, lcm

from tidelog.analysis.components import dependencies, head_atom
from tidelog.analysis.horizon import reads
from tidelog.errors import TidelogError
from tidelog.language.program import Program
from tidelog.language.syntax import Fact, Rule, Top
from tidelog.timeline.interval import Interval, Time
from tidelog.windows.freezing import Frozen, ends, frozen, without_names


@dataclass(frozen=True, slots=True)
class Redundant:
    """The number of a rule that follows from those with the numbers `others`."""

    number: int
    others: tuple[int, ...]


@lru_cache(maxsize=16)
def redundant(program: Program, timeline: str) -> tuple[Redundant, ...]:
    """The rules that can be left out together, each with a few rules that it follows from."""
    rules = program.rules
    tick = _tick(rules, timeline)
    always = tuple(fact for fact in program.facts if fact.interval == Interval.always())
    kept = list(range(len(rules)))
    found: dict[int, Frozen] = {}
    for number in sorted(kept, key=lambda n: (-_reach(rules[n], timeline), -n)):
        others = [n for n in kept if n != number]
        if not _may_follow(rules[number], [rules[n] for n in others]):
            continue
        body = frozen(rules[number], tick, timeline)
        if body is not None and _follows(body, [rules[n] for n in others], always, timeline):
            kept = others
            found[number] = body
    return tuple(Redundant(n, _few(found[n], rules, kept, always, timeline)) for n in sorted(found))


def _few(
    body: Frozen, rules: Sequence[Rule], others: list[int], always: tuple[Fact, ...], timeline: str
) -> tuple[int, ...]:
    """As few of the rules as the head still follows from: one where one is enough."""
    for number in others:
        if _may_derive(body, [rules[number]]) and _follows(body, [rules[number]], always, timeline):
            return (number,)
    needed = list(others)
    for number in others:
        fewer = [n for n in needed if n != number]
        derives = _may_derive(body, [rules[n] for n in fewer])
        if derives and _follows(body, [rules[n] for n in fewer], always, timeline):
            needed = fewer
    return tuple(needed)


def _follows(body: Frozen, rules: Iterable[Rule], always: tuple[Fact, ...], timeline: str) -> bool:
    """Whether the head is derived in every case of a body."""
    from tidelog.data.dataset import Dataset
    from tidelog.reasoning import Answer, entails

    used = dict.fromkeys(made for rule in rules if head_atom(rule) for made in without_names(rule, body.named))
    program = Program(tuple(used), timeline)
    if body.head.predicate not in program.predicates:
        return False

    try:
        return all(
            entails(program, Dataset.from_facts((*always, *case)), body.head, timeline=timeline) is Answer.YES
            for case in body.cases
        )
    except TidelogError:  # the points of a case may be too fine for the grid
        return False


def _may_follow(rule: Rule, others: Sequence[Rule]) -> bool:
    """Whether the predicates alone allow it: cheap, and no for nearly every rule."""
    head = head_atom(rule)
    if head is None or not any((other := head_atom(o)) and other.predicate == head.predicate for o in others):
        return False
    return head.predicate in _reached({atom.predicate for atom, negated in dependencies(rule) if not negated}, others)


def _may_derive(body: Frozen, rules: Sequence[Rule]) -> bool:
    given = {fact.predicate for fact in body.cases[0]} if body.cases else set()
    return bool(body.named) or body.head.predicate in _reached(given, rules)


def _reached(given: set[str], rules: Sequence[Rule]) -> set[str]:
    """The predicates that rules can derive facts of from facts of others."""
    reached: set[str] = set()
    grown = True
    while grown:
        grown = False
        for rule in rules:
            head = head_atom(rule)
            if head is None or head.predicate in reached:
                continue
            if all(atom.predicate in given or atom.predicate in reached for atom, n in dependencies(rule) if not n):
                reached.add(head.predicate)
                grown = True
    return reached


def _reach(rule: Rule, timeline: str) -> Time:
    """How far back a rule looks."""
    return max((-lo for _, lo, _ in reads(rule, timeline)), default=Fraction(0))


def _tick(rules: Iterable[Rule], timeline: str) -> Fraction:
    """The greatest length of which all ranges are multiples; 1 on the integers."""
    numbers = [Fraction(end) for rule in rules for end in ends(rule) if not isinf(end) and end]
    if timeline == "integer" or not numbers:
        return Fraction(1)
    scale = lcm(*(number.denominator for number in numbers))
    return Fraction(gcd(*(int(number * scale) for number in numbers)), scale)


def kept_rules(program: Program, timeline: str) -> tuple[Rule, ...]:
    """The rules with `Top` for each that follows from others: they say nothing, and all numbers stay as they are."""
    left_out = {found.number for found in redundant(program, timeline)}
    return tuple(Rule(Top()) if number in left_out else rule for number, rule in enumerate(program.rules))
