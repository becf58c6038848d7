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
from fractions import Fraction
from functools import lru_cache
from math import gcd, isinf, lcm

from tidelog.analysis.components import dependencies, head_atom
from tidelog.analysis.horizon import reads
from tidelog.errors import TidelogError
from tidelog.language.program import Program
from tidelog.language.syntax import Rule, Top
from tidelog.timeline.interval import Interval, Time
from tidelog.windows.freezing import Frozen, ends, frozen, without_names

#: How many rules the engine is asked about at most, over all questions; what is not found out by then is kept.
EFFORT = 1000
#: What a question costs besides its rules.
_QUESTION = 5


@lru_cache(maxsize=16)
def redundant(program: Program, timeline: str) -> tuple[int, ...]:
    """The numbers of the rules that can be left out together."""
    work = _Freezing(program, timeline)
    kept = list(range(len(program.rules)))
    for number in sorted(kept, key=lambda n: (-_reach(program.rules[n], timeline), -n)):
        others = [n for n in kept if n != number]
        if work.follows(number, others):
            kept = others
    return tuple(number for number in range(len(program.rules)) if number not in set(kept))


def reasons(program: Program, timeline: str) -> dict[int, tuple[int, ...]]:
    """The rules that can be left out, each with a few of the others that it follows from: one where one is enough."""
    left_out = redundant(program, timeline)
    kept = [number for number in range(len(program.rules)) if number not in left_out]
    found: dict[int, tuple[int, ...]] = {}
    for number in left_out:
        work = _Freezing(program, timeline)
        few = work.useful(number, kept)
        single = next((other for other in few if work.follows(number, [other])), None)
        if single is not None:
            found[number] = (single,)
            continue
        for other in list(few):
            fewer = [n for n in few if n != other]
            if work.follows(number, fewer):
                few = fewer
        found[number] = tuple(few)
    return found


class _Freezing:
    """A program under examination, and how much effort is left."""

    def __init__(self, program: Program, timeline: str) -> None:
        self.rules = program.rules
        self.timeline = timeline
        self.tick = _tick(program.rules, timeline)
        self.always = tuple(fact for fact in program.facts if fact.interval == Interval.always())
        self.left = EFFORT

    def follows(self, number: int, others: Sequence[int]) -> bool:
        """Whether a rule follows from others; no where the effort is used up. Taking diamonds for atoms needs one case,
        and often suffices."""
        used = [self.rules[n] for n in self.useful(number, others)]
        for split in (False, True):
            body = frozen(self.rules[number], self.tick, self.timeline, split) if used else None
            if body is not None and self._derived(body, used):
                return True
        return False

    def useful(self, number: int, others: Sequence[int]) -> list[int]:
        """Those of the rules that can take part in a derivation of the head from the body, going by predicates; for
        nearly every rule there are none."""
        head = head_atom(self.rules[number])
        if head is None:
            return []
        given = {atom.predicate for atom, negated in dependencies(self.rules[number]) if not negated}
        given |= {fact.predicate for fact in self.always}
        fired, grown = dict[int, str](), True
        while grown:
            grown = False
            for other in others:
                derived = head_atom(self.rules[other])
                body = (atom.predicate for atom, negated in dependencies(self.rules[other]) if not negated)
                if derived and other not in fired and all(name in given for name in body):
                    fired[other] = derived.predicate
                    given.add(derived.predicate)
                    grown = True
        wanted, grown = {head.predicate}, True
        while grown:
            before = len(wanted)
            for other, predicate in fired.items():
                if predicate in wanted:
                    wanted |= {atom.predicate for atom, _ in dependencies(self.rules[other])}
            grown = len(wanted) > before
        return [other for other in others if fired.get(other) in wanted]

    def _derived(self, body: Frozen, rules: Iterable[Rule]) -> bool:
        """Whether the head is derived in every case of a body."""
        from tidelog.data.dataset import Dataset
        from tidelog.reasoning import Answer, entails

        used = dict.fromkeys(made for rule in rules for made in without_names(rule, body.named))
        program = Program(tuple(used), self.timeline)
        if body.head.predicate not in program.predicates:
            return False
        for case in body.cases:
            self.left -= len(used) + _QUESTION
            if self.left < 0:
                return False
            try:
                answer = entails(program, Dataset.from_facts((*self.always, *case)), body.head, timeline=self.timeline)
            except TidelogError:  # the points of a case may be too fine for the grid
                return False
            if answer is not Answer.YES:
                return False
        return True


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
    left_out = set(redundant(program, timeline))
    return tuple(Rule(Top()) if number in left_out else rule for number, rule in enumerate(program.rules))
