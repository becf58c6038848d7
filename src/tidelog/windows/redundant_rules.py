"""Find redundant rules: rules that follow from the others, and need neither evaluation nor memory.

A rule is redundant if, for any facts, the other rules derive its head wherever its body holds (uniform containment).
To decide this, the body is frozen into facts, and the batch engine is asked for the head, case by case. Rules that look
back farthest are tried first, which reduces what has to be remembered; of equivalent rules the last are left out.
Every predicate keeps all of its facts, on every input.

A rule with negation may follow from rules with the same negation, or with none: negated predicates lie in lower strata,
which are complete before either rule is evaluated. Constraints are never left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from fractions import Fraction
from functools import lru_cache
from math import isinf

from tidelog.analysis.memory_bounds import greatest_common_divisor
from tidelog.analysis.predicate_graph import body_atoms
from tidelog.analysis.time_reach import find_reads
from tidelog.errors import TidelogError
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Rule, Top
from tidelog.timeline.interval import Interval, Time, TimelineName
from tidelog.windows.body_freezing import FrozenRule, abstract_rule, freeze_rule, range_endpoints

#: Limit on the total number of rules that the engine evaluates; rules undecided by then are kept.
MAX_EFFORT = 1000
#: The cost of one entailment check besides its rules.
_CHECK_COST = 5


@lru_cache(maxsize=16)
def find_redundant_rules(program: Program, timeline: TimelineName) -> tuple[int, ...]:
    """Return the numbers of the rules that can be left out together: none of a program that computes with numbers."""
    if program.core.rules is not program.rules:
        return ()
    check = _RedundancyCheck(program, timeline)
    kept = set(range(len(program.rules)))
    for number in sorted(kept, key=lambda n: (-_lookback(program.rules[n], timeline), -n)):
        kept.remove(number)
        if not check.follows(number, kept):
            kept.add(number)
    return tuple(number for number in range(len(program.rules)) if number not in kept)


def explain_redundancy(program: Program, timeline: TimelineName) -> dict[int, tuple[int, ...]]:
    """Return each redundant rule with a few rules that it follows from: a single one if one is enough."""
    left_out = find_redundant_rules(program, timeline)
    kept = set(range(len(program.rules))).difference(left_out)
    found: dict[int, tuple[int, ...]] = {}
    for number in left_out:
        check = _RedundancyCheck(program, timeline)
        few = check.find_useful_rules(number, kept)
        single = next((other for other in few if check.follows(number, [other])), None)
        if single is not None:
            found[number] = (single,)
            continue
        for other in list(few):
            fewer = [n for n in few if n != other]
            if check.follows(number, fewer):
                few = fewer
        found[number] = tuple(few)
    return found


class _RedundancyCheck:
    """Entailment checks between the rules of a program, with a limited effort."""

    def __init__(self, program: Program, timeline: TimelineName) -> None:
        self.rules = program.rules
        self.timeline = timeline
        self.tick = _tick(program.rules, timeline)
        self.always = tuple(fact for fact in program.facts if fact.interval == Interval.always())
        self.effort_left = MAX_EFFORT
        heads = map(head_atom, self.rules)
        self.heads = [head.predicate if head else None for head in heads]
        atoms = [list(body_atoms(rule)) for rule in self.rules]
        self.reads = [frozenset(atom.predicate for atom, _ in body) for body in atoms]
        self.needs = [frozenset(atom.predicate for atom, negated in body if not negated) for body in atoms]
        self.derivers: dict[str | None, list[int]] = defaultdict(list)
        self.readers: dict[str, list[int]] = defaultdict(list)
        for number, head in enumerate(self.heads):
            self.derivers[head].append(number)
            for name in self.needs[number]:
                self.readers[name].append(number)
        self.unconditional = [number for number, needs in enumerate(self.needs) if not needs]

    def follows(self, number: int, others: Collection[int]) -> bool:
        """Return whether a rule is known to follow from others; False once the effort is used up.

        Abstracting diamonds needs a single case and is often enough, so it is tried first."""
        if self.effort_left < 0:
            return False
        used = [self.rules[n] for n in self.find_useful_rules(number, others)]
        for split in (False, True):
            frozen = freeze_rule(self.rules[number], self.tick, self.timeline, split) if used else None
            if frozen is not None and self._derives_head(frozen, used):
                return True
        return False

    def find_useful_rules(self, number: int, others: Collection[int]) -> list[int]:
        """Return the rules that may take part in deriving the head from the body, judging by predicates.

        For nearly every rule there are none."""
        head = self.heads[number]
        if head is None or not any(other in others for other in self.derivers[head]):
            return []
        fired = self._find_applicable_rules(self.needs[number], others)
        useful: set[int] = set()
        waiting: list[str] = [head]
        wanted = {head}
        for name in waiting:
            for other in fired.intersection(self.derivers[name]):
                useful.add(other)
                new = self.reads[other] - wanted
                wanted |= new
                waiting += new
        return sorted(useful)

    def _find_applicable_rules(self, given: Iterable[str], others: Collection[int]) -> set[int]:
        """Return the rules whose positive literals are all given, or derived by such rules, judging by predicates."""
        known = {*given, *(fact.predicate for fact in self.always)}
        waiting = list(known)
        fired: set[int] = set()
        candidates: Iterable[int] = self.unconditional
        while True:
            for other in candidates:
                if other in others and other not in fired and self.needs[other] <= known:
                    fired.add(other)
                    derived = self.heads[other]
                    if derived is not None and derived not in known:
                        known.add(derived)
                        waiting.append(derived)
            if not waiting:
                return fired
            candidates = self.readers[waiting.pop()]

    def _derives_head(self, frozen: FrozenRule, rules: Iterable[Rule]) -> bool:
        """Return whether the rules derive the head in every case of a frozen rule."""
        from tidelog.batch import entails
        from tidelog.data.dataset import Dataset
        from tidelog.model import Answer

        used = dict.fromkeys(abstracted for rule in rules for abstracted in abstract_rule(rule, frozen.abstracted))
        program = Program(tuple(used), self.timeline)
        if frozen.head.predicate not in program.predicates:
            return False
        for case in frozen.cases:
            self.effort_left -= len(used) + _CHECK_COST
            if self.effort_left < 0:
                return False
            try:
                answer = entails(
                    program, Dataset.from_facts((*self.always, *case)), frozen.head, timeline=self.timeline
                )
            except TidelogError:  # The points of a case may be too fine for the grid.
                return False
            if answer is not Answer.YES:
                return False
        return True


def _lookback(rule: Rule, timeline: TimelineName) -> Time:
    """Return how far back a rule looks."""
    return max((-read.lo for read in find_reads(rule, timeline)), default=Fraction(0))


def _tick(rules: Iterable[Rule], timeline: TimelineName) -> Fraction:
    """Return the greatest length that divides all endpoints of ranges; 1 on the integers."""
    if timeline == "integer":
        return Fraction(1)
    ends = (Fraction(end) for rule in rules for end in range_endpoints(rule) if not isinf(end))
    return greatest_common_divisor(ends) or Fraction(1)


def drop_redundant_rules(program: Program, timeline: TimelineName) -> tuple[Rule, ...]:
    """Return the rules with each redundant one replaced by `Top`, which keeps the numbers of the others."""
    left_out = set(find_redundant_rules(program, timeline))
    return tuple(Rule(Top()) if number in left_out else rule for number, rule in enumerate(program.rules))
