"""Stable models of programs that look both ways: a search for models that repeat at both ends.

Each part of the ground program is folded into stretches of time of growing size, and clingo finds its stable models
there. Every stable model that repeats so is one of them, but not the other way round: what is derived at one time of a
fold is not derived at all times that are like it. So each is verified (`foundation`) before it is believed.

A second program leaves open what holds outside of a stretch. Every stable model, whatever it does elsewhere, is a
model of it. So where it has no model, there is none, and where it has no model that looks other than those found,
there are no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from tidelog.stable.encoding import FALSE, TRUE, At, Encoding
from tidelog.stable.folded import Fold
from tidelog.stable.forward import Question
from tidelog.stable.foundation import Foundation
from tidelog.stable.grounding import Component, Ground, Grounding, components
from tidelog.stable.hull import hulls
from tidelog.stable.limits import Limit
from tidelog.stable.normal import normal
from tidelog.stable.problem import Pair, Problem
from tidelog.stable.solver import control
from tidelog.stable.walk import Trace
from tidelog.timeline.grid import NEG_INF, POS_INF

#: The longest period that is tried, at either end.
LONGEST_PERIOD = 6
#: A part of a program with more instances of rules at time points than this is not written out.
MOST_INSTANCES = 300_000
#: The most candidates that are verified for one size.
_MOST_CANDIDATES = 500


class Search:
    """A problem whose rules look both ways."""

    def __init__(self, problem: Problem, limit: Limit) -> None:
        self.problem, self.limit = problem, limit
        self.grounding = Grounding(normal(problem.rules), problem.data.symbols)
        self.grounding.add(problem.facts)

    def parts(self, lo: int, hi: int, question: Question | None = None) -> Iterator[SearchPart]:
        for component in components(self.grounding.instances):
            atoms = tuple(self.grounding.atoms[a] for a in (*component.derived, *component.read))
            mine = question if question is not None and question.atom in atoms[: len(component.derived)] else None
            yield SearchPart(self, component, atoms, lo, hi, mine)


@dataclass(frozen=True, slots=True)
class _Size:
    fold: Fold
    #: A stretch that is larger the larger the size is.
    stretch: Pair


class SearchPart:
    """One component. Of its atoms, those in `visible` are shown."""

    mirrored = False

    def __init__(
        self,
        search: Search,
        component: Component,
        atoms: tuple[Ground, ...],
        lo: int,
        hi: int,
        question: Question | None,
    ) -> None:
        self.limit = search.limit
        self.component, self.atoms = component, atoms
        self.lo, self.hi, self.question = lo, hi, question
        self.offsets = [0] * len(atoms)
        self.visible = [i for i in range(len(component.derived)) if not atoms[i][0].startswith("$")]
        self.derived = frozenset(component.derived)
        numbers = (*component.derived, *component.read)
        self.facts = {n: search.problem.facts.get(atom, ()) for n, atom in zip(numbers, atoms, strict=True)}
        self.hulls = hulls(component.rules, {n: (p[0][0], p[-1][1]) for n, p in self.facts.items() if p})
        ends = [
            abs(end)
            for rule in component.rules
            for part in rule.body
            for end in (part.lo, part.hi)
            if abs(end) != POS_INF
        ]
        self.reach = max(ends, default=0)
        self._models = self._found()
        self._begun: list[Trace] = []

    def satisfiable(self) -> bool:
        """Whether there is a model; raises where that is not known."""
        if not self._begun:
            self._begun = list(islice(self._models, 1))
        return bool(self._begun)

    def traces(self) -> Iterator[Trace]:
        """Models that look different on LO..HI; raises where it is not known whether there are more."""
        self.satisfiable()
        return chain(self._begun, self._models)

    def given(self, atom: int, time: int) -> bool:
        return any(lo <= time <= hi for lo, hi in self.facts.get(atom, ()))

    def possible(self, atom: int, time: int) -> bool:
        hull = self.hulls.get(atom)
        return hull is not None and hull[0] <= time <= hull[1]

    # The search

    def _found(self) -> Iterator[Trace]:
        looks: list[frozenset[tuple[int, int]]] = []
        biggest = 0
        for size in self._sizes():
            fold = size.fold
            points = fold.last - fold.first + 2 * self.reach
            if points * len(self.component.rules) > MOST_INSTANCES:
                raise self.limit.exceeded(f"the search would need {points:,} time points")
            self.limit.doing = f"searching for models with periods {fold.left} and {fold.right}"
            for model in self._candidates(fold, looks):
                look = self._look(model)
                if look not in looks and self._founded(model, fold):
                    looks.append(look)
                    yield self._trace(model, fold)
            if max(fold.left, fold.right) > biggest or biggest == 0:
                biggest = max(fold.left, fold.right)
                if not self._others(size.stretch, looks):
                    return
        raise self.limit.exceeded(
            f"models that repeat with periods of up to {LONGEST_PERIOD} were tried, and there may be others"
        )

    def _sizes(self) -> Iterator[_Size]:
        turns = [end for pairs in self.facts.values() for pair in pairs for end in pair if abs(end) != POS_INF]
        turns += [end for hull in self.hulls.values() for end in hull if abs(end) != POS_INF]
        if self.question is not None:
            turns += [end for end in self.question.interval if abs(end) != POS_INF]
        lo, hi = min([self.lo, *turns]), max([self.hi, *turns])
        lefts = range(1, LONGEST_PERIOD + 1) if self._endless(0, NEG_INF) else (1,)
        rights = range(1, LONGEST_PERIOD + 1) if self._endless(1, POS_INF) else (1,)
        for left, right in sorted(((a, b) for a in lefts for b in rights), key=lambda pair: (max(pair), sum(pair))):
            # Between the data and what repeats there is room for what does neither.
            room = self.reach + 2 * max(left, right)
            stretch = lo - room, hi + room
            yield _Size(Fold(stretch[0] - left, stretch[1] + right, left, right), stretch)

    def _endless(self, side: int, far: int) -> bool:
        return any(self.hulls[a][side] == far for a in self.component.derived if a in self.hulls)

    def _look(self, model: frozenset[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        shown = {self.component.derived[i] for i in self.visible}
        return frozenset((a, t) for a, t in model if a in shown and self.lo <= t <= self.hi)

    def _candidates(self, fold: Fold, looks: list[frozenset[tuple[int, int]]]) -> Iterator[frozenset[tuple[int, int]]]:
        """Stable models of the folded program that look other than those known."""
        reach = self.reach

        def at(atom: int, time: int) -> str:
            if atom not in self.derived:
                return TRUE if self.given(atom, time) else FALSE
            return f"s({atom},{fold(time)})" if self.possible(atom, time) else FALSE

        text = Encoding(at, fold.first, fold.last, fold.left, fold.right)
        for time in range(fold.first - reach - fold.left, fold.last + reach + fold.right + 1):
            for rule in self.component.rules:
                if rule.head < 0:
                    text.rule(rule, time, "")
                elif self.possible(rule.head, time):
                    text.rule(rule, time, at(rule.head, time))
            for atom in self.component.derived:
                if self.given(atom, time):
                    text.lines.append(f"{at(atom, time)}.")
        for atom in self.component.derived:
            for k in range(reach):
                for one, other in ((k, k + fold.left), (-k - 1, -k - 1 - fold.right)):
                    start = fold.first if one >= 0 else fold.last + 1
                    text.lines += _equal(at(atom, start + one), at(atom, start + other))
        text.lines += self._asked(at, fold)
        text.lines += self._blocked(at, looks)
        yield from self._solved(text.lines, _MOST_CANDIDATES)

    def _others(self, stretch: Pair, looks: list[frozenset[tuple[int, int]]]) -> bool:
        """Whether there may be models that look other than those known."""
        first, last = stretch
        outside: set[str] = set()

        def at(atom: int, time: int) -> str:
            if atom not in self.derived:
                return TRUE if self.given(atom, time) else FALSE
            if not self.possible(atom, time):
                return FALSE
            text = f"s({atom},{time})"
            if not first <= time <= last:
                outside.add(text)
            return text

        text = Encoding(at, first - self.reach - 1, last + self.reach + 1, 0, 0)
        for time in range(first, last + 1):
            for rule in self.component.rules:
                if rule.head < 0:
                    text.rule(rule, time, "")
                elif self.possible(rule.head, time):
                    text.rule(rule, time, at(rule.head, time))
            text.lines += [f"{at(atom, time)}." for atom in self.component.derived if self.given(atom, time)]
        text.lines += self._asked(at, None, stretch)
        text.lines += self._blocked(at, looks)
        text.lines += [f"{{ {name} }}." for name in sorted(outside)]
        return next(self._solved(text.lines, 1), None) is not None

    def _asked(self, at: At, fold: Fold | None, stretch: Pair | None = None) -> list[str]:
        """Only models in question. Where nothing is known of the outside, what is asked of it may be as it likes."""
        if self.question is None:
            return []
        atom = next(n for n, a in zip(self.component.derived, self.atoms, strict=False) if a == self.question.atom)
        lo, hi = self.question.interval
        if fold is not None:
            points = fold.points(lo, hi)
        else:
            assert stretch is not None
            points = list(range(max(lo, stretch[0]), min(hi, stretch[1]) + 1))
        texts = [at(atom, time) for time in points]
        if not self.question.fails:
            return [f":- not {text}." if text not in (TRUE, FALSE) else ":- ." for text in texts if text != TRUE]
        lines = [f"fails :- not {text}." if text != FALSE else "fails." for text in texts if text != TRUE]
        if stretch is not None and (lo < stretch[0] or hi > stretch[1]):
            lines.append("{ fails }.")
        return [*lines, ":- not fails."]

    def _blocked(self, at: At, looks: list[frozenset[tuple[int, int]]]) -> list[str]:
        """No look that is known already."""
        lines = []
        for look in looks:
            body = []
            for i in self.visible:
                for time in range(self.lo, self.hi + 1):
                    text = at(self.component.derived[i], time)
                    if text != FALSE:
                        body.append(text if (self.component.derived[i], time) in look else f"not {text}")
            lines.append(f":- {', '.join(body)}.")
        return lines

    def _solved(self, lines: list[str], most: int) -> Iterator[frozenset[tuple[int, int]]]:
        solver = control([f"--models={most}"])
        solver.add("base", [], "\n".join([*lines, "#show s/2."]))
        solver.ground([("base", [])])
        with solver.solve(yield_=True) as handle:
            for model in handle:
                self.limit.note(1)
                self.limit.tell()
                found = (symbol.arguments for symbol in model.symbols(shown=True))
                yield frozenset((a.number, t.number) for a, t in found)

    def _founded(self, model: frozenset[tuple[int, int]], fold: Fold) -> bool:
        def truth(atom: int, time: int) -> bool:
            if atom not in self.derived:
                return self.given(atom, time)
            return (atom, fold(time)) in model

        return Foundation(self.component.rules, self.component.derived, truth, self.given, fold).complete()

    def _trace(self, model: frozenset[tuple[int, int]], fold: Fold) -> Trace:
        slices = tuple(
            sum(1 << i for i, atom in enumerate(self.component.derived) if (atom, time) in model)
            for time in range(fold.first, fold.last + 1)
        )
        return Trace(fold.first, slices, fold.left, fold.right)


def _equal(one: str, other: str) -> list[str]:
    if one == other:
        return []
    sides = ((one, other), (other, one))
    return [
        ":- " + ", ".join(([] if a == TRUE else [a]) + ([] if b == FALSE else [f"not {b}"])) + "."
        for a, b in sides
        if a != FALSE and b != TRUE
    ]
