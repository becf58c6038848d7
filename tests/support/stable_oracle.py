"""Stable models by definitions 3.2 to 3.5 of the paper, for small propositional programs that only look back.

An interpretation is a word of sets of atoms: `left` repeats for ever before time `begin`, and the slices of `body`
follow. Formulas are evaluated on it as in table 1. T is a stable model if H, the least interpretation whose HT-pair
with T satisfies rules and data (theorem 3.4), equals T, and no constraint is violated.

Where T repeats, H repeats too: the rules only look back, so H up to a time depends only on T up to that time, and T up
to a time and T up to one period earlier are equal except for a shift. From there on H is computed point by point.

The oracle shares nothing with tidelog except the syntax tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from math import ceil, floor, inf

from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
    Bottom,
    Formula,
    Literal,
    Rule,
    Top,
    Unary,
    UnaryOp,
)
from tidelog.timeline.interval import Interval

Slice = frozenset[str]
#: A given fact: an atom, and its first and last time, which may be infinite.
Given = tuple[str, float, float]


@dataclass(frozen=True)
class Word:
    """`left` repeats before `begin`; `body` follows."""

    begin: int
    left: tuple[Slice, ...]
    body: tuple[Slice, ...]

    def at(self, time: int) -> Slice:
        place = time - self.begin
        return self.body[place] if place >= 0 else self.left[place % len(self.left)]


def bounds(interval: Interval) -> tuple[int, float]:
    """Return the least and the greatest integer of a range."""
    lo = ceil(interval.lo) if interval.lo_closed else floor(interval.lo) + 1
    if interval.hi == inf:
        return lo, inf
    return lo, floor(interval.hi) if interval.hi_closed else ceil(interval.hi) - 1


def holds(word: Word, formula: Formula, time: int) -> bool:
    """Evaluate a formula as in table 1, for operators that look back.

    Far to the left everything repeats with the period of the word.
    """
    match formula:
        case Atom():
            return formula.predicate in word.at(time)
        case Top():
            return True
        case Bottom():
            return False
        case Unary(op, range_, arg):
            lo, hi = bounds(range_)
            points = _points(word, time, lo, hi)
            if op is UnaryOp.DIAMOND_MINUS:
                return any(holds(word, arg, point) for point in points)
            assert op is UnaryOp.BOX_MINUS
            return all(holds(word, arg, point) for point in points)
        case Binary(op, range_, left, right):
            assert op is BinaryOp.SINCE
            lo, hi = bounds(range_)
            for point in _points(word, time, lo, hi):
                if holds(word, right, point) and all(holds(word, left, p) for p in range(point + 1, time)):
                    return True
            return False
    raise AssertionError


def _points(word: Word, time: int, lo: int, hi: float) -> Iterator[int]:
    """Yield the times at a distance from lo to hi; of infinitely many, those that can differ."""
    far = time - hi if hi != inf else min(time - lo, word.begin) - 2 * len(word.left)
    yield from range(time - lo, int(far) - 1, -1)


def find_head(rule: Rule) -> tuple[str | None, int, float]:
    """Return the atom of a head, and how much later than the body it holds."""
    lo, hi = 0, 0.0
    head = rule.head
    while isinstance(head, Unary):
        assert head.op is UnaryOp.BOX_PLUS
        a, b = bounds(head.range)
        if a > b:
            return None, 0, -1.0
        lo, hi, head = lo + a, hi + b, head.arg
    return (head.predicate if isinstance(head, Atom) else None), lo, hi


def fires(rule: Rule, here: Word, there: Word, time: int) -> bool:
    """Tell whether the body holds: positive literals in `here`, negated ones in `there` (definition 3.2)."""
    for literal in rule.body:
        assert isinstance(literal, Literal)
        if literal.negated and holds(there, literal.formula, time):
            return False
        if not literal.negated and not holds(here, literal.formula, time):
            return False
    return True


class StableOracle:
    """Finds and checks stable models of a program and data."""

    def __init__(self, rules: tuple[Rule, ...], given: tuple[Given, ...]) -> None:
        self.rules, self.given = rules, given

    def data(self, time: float) -> set[str]:
        return {atom for atom, lo, hi in self.given if lo <= time <= hi}

    def derive(self, here: Word, there: Word, time: int) -> set[str]:
        """Return the atoms that data and rules derive at a time from all of the past."""
        found = self.data(time)
        for rule in self.rules:
            atom, lo, hi = find_head(rule)
            if atom is None or atom in found or hi < lo:
                continue
            if any(fires(rule, here, there, point) for point in _points(here, time, lo, hi)):
                found.add(atom)
        return found

    def is_violated(self, word: Word, time: int) -> bool:
        return any(_is_constraint(rule) and fires(rule, word, word, time) for rule in self.rules)

    def left_is_founded(self, word: Word) -> bool:
        """Tell whether H equals T before `begin`, where no fact may begin."""
        begin, size = word.begin, len(word.left)
        left: tuple[Slice, ...] = (frozenset(),) * size
        while True:
            here = Word(begin, left, ())
            after = tuple(
                frozenset(self.derive(here, word, time)) | here.at(time) for time in range(begin - size, begin)
            )
            if after == left:
                break
            left = after
        return left == word.left and not any(self.is_violated(word, time) for time in range(begin - size, begin))

    def next_is_founded(self, word: Word) -> bool:
        """Tell whether H equals T at the last time point of the body, given that it does before.

        There must be no violated constraint either.
        """
        time = word.begin + len(word.body) - 1
        here: Slice = frozenset()
        while True:
            so_far = Word(word.begin, word.left, (*word.body[:-1], here))
            after = here | self.derive(so_far, word, time)
            if after == here:
                break
            here = after
        return here == word.body[-1] and not self.is_violated(word, time)

    def is_stable(self, word: Word, right: int, settled: int) -> bool:
        """Tell whether the word with its last `right` slices repeated for ever is a stable model.

        From `settled` on the data does not change.
        """
        if not self.left_is_founded(Word(word.begin, word.left, ())):
            return False
        # The truth of formulas at t depends on the window before t, and on what ever held, held since then, or always
        # held before it: after this many periods nothing of that can change any more.
        body = list(word.body)
        until = max(settled - word.begin, len(body)) + right * (4 + 40 // right)
        while len(body) < until:
            body.append(body[-right])
        return all(self.next_is_founded(Word(word.begin, word.left, tuple(body[: n + 1]))) for n in range(len(body)))

    def find_prefixes(self, atoms: str, left: int, begin: int, end: int) -> Iterator[Word]:
        """Yield all words with a founded left part of this period and founded slices from `begin` to `end`."""
        slices = [frozenset(some) for k in range(len(atoms) + 1) for some in combinations(atoms, k)]

        def grow(word: Word) -> Iterator[Word]:
            if word.begin + len(word.body) > end:
                yield word
                return
            for slice in slices:
                longer = Word(word.begin, word.left, (*word.body, slice))
                if self.next_is_founded(longer):
                    yield from grow(longer)

        def lefts(size: int) -> Iterator[tuple[Slice, ...]]:
            if size == 0:
                yield ()
                return
            for rest in lefts(size - 1):
                for slice in slices:
                    yield (*rest, slice)

        for some in lefts(left):
            word = Word(begin, some, ())
            if self.left_is_founded(word):
                yield from grow(word)

    def find_models(self, atoms: str, lo: int, hi: int, settled: int) -> set[tuple[Slice, ...]]:
        """Return the slices on lo..hi of all stable models with short periods; there may be other stable models."""
        found: set[tuple[Slice, ...]] = set()
        for left in (1, 2):
            end = max(hi, settled)
            for word in self.find_prefixes(atoms, left, lo - 1, end):
                appearance = word.body[1 : hi - lo + 2]
                if appearance not in found and self._continues(word, atoms, settled):
                    found.add(appearance)
        return found

    def _continues(self, word: Word, atoms: str, settled: int) -> bool:
        """Tell whether the word followed by some short loop is a stable model."""
        slices = [frozenset(some) for k in range(len(atoms) + 1) for some in combinations(atoms, k)]
        for slice in slices:
            longer = Word(word.begin, word.left, (*word.body, slice))
            if not self.next_is_founded(longer):
                continue
            if self.is_stable(longer, 1, settled):
                return True
            for second in slices:
                longest = Word(word.begin, word.left, (*longer.body, second))
                if self.next_is_founded(longest) and self.is_stable(longest, 2, settled):
                    return True
        return False


def _is_constraint(rule: Rule) -> bool:
    head = rule.head
    while isinstance(head, Unary):
        if bounds(head.range)[0] > bounds(head.range)[1]:
            return False
        head = head.arg
    return isinstance(head, Bottom)


def atoms_of(rules: tuple[Rule, ...], given: tuple[Given, ...]) -> str:
    """Return the names of all atoms, which are single letters."""

    def inside(formula: Formula) -> Iterator[str]:
        match formula:
            case Atom():
                yield formula.predicate
            case Unary():
                yield from inside(formula.arg)
            case Binary():
                yield from inside(formula.left)
                yield from inside(formula.right)

    parts = chain.from_iterable(
        [rule.head, *(part.formula for part in rule.body if isinstance(part, Literal))] for rule in rules
    )
    names = {name for formula in parts for name in inside(formula)} | {atom for atom, _, _ in given}
    return "".join(sorted(names))


class FiniteOracle:
    """Finds the stable models of programs of any direction whose rules all need the atom E.

    Each rule needs E at the time of its body, and E holds at finitely many times. Nothing else holds at other times, so
    all interpretations can be enumerated.
    """

    def __init__(self, rules: tuple[Rule, ...], given: tuple[Given, ...], lo: int, hi: int) -> None:
        self.rules, self.given, self.lo, self.hi = rules, given, lo, hi

    def holds(self, facts: frozenset[tuple[str, int]], formula: Formula, time: int) -> bool:
        """Evaluate a formula as in table 1; nothing holds before `lo` and after `hi`."""
        match formula:
            case Atom():
                return (formula.predicate, time) in facts
            case Top():
                return True
            case Bottom():
                return False
            case Unary(op, range_, arg):
                sign = 1 if op in (UnaryOp.DIAMOND_PLUS, UnaryOp.BOX_PLUS) else -1
                points = [time + sign * d for d in self._distances(range_)]
                truths = (self.holds(facts, arg, point) for point in points)
                return any(truths) if op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS) else all(truths)
            case Binary(op, range_, left, right):
                sign = 1 if op is BinaryOp.UNTIL else -1
                return any(
                    self.holds(facts, right, time + sign * d)
                    and all(self.holds(facts, left, time + sign * k) for k in range(1, d))
                    for d in self._distances(range_)
                )
        raise AssertionError

    def _distances(self, interval: Interval) -> range:
        """Return the distances at which formulas can differ: beyond both ends everything is false."""
        lo, hi = bounds(interval)
        return range(lo, int(min(hi, lo + 3 * (self.hi - self.lo) + 20)) + 1)

    def find_least(self, there: frozenset[tuple[str, int]]) -> frozenset[tuple[str, int]] | None:
        """Return the least H relative to T; None where T violates a constraint."""
        here = frozenset((a, t) for a, lo, hi in self.given for t in range(int(lo), int(hi) + 1))
        times = range(self.lo, self.hi + 1)
        while True:
            found = set(here)
            for rule in self.rules:
                for time in times:
                    if not all(
                        not self.holds(there, part.formula, time)
                        if part.negated
                        else self.holds(here, part.formula, time)
                        for part in rule.body
                        if isinstance(part, Literal)
                    ):
                        continue
                    if isinstance(rule.head, Bottom):
                        return None
                    assert isinstance(rule.head, Atom)
                    found.add((rule.head.predicate, time))
            if found == here:
                return here
            here = frozenset(found)

    def find_models(self, atoms: str) -> set[frozenset[tuple[str, int]]]:
        """Return all stable models: T is one if it is the least H relative to itself."""
        data = frozenset((a, t) for a, lo, hi in self.given for t in range(int(lo), int(hi) + 1))
        times = sorted({t for a, t in data if a == "E"})
        free = [(a, t) for a in atoms for t in times if (a, t) not in data]
        return {
            there
            for k in range(len(free) + 1)
            for some in combinations(free, k)
            if self.find_least(there := data | frozenset(some)) == there
        }
