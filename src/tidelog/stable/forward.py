"""Stable models of forward-propagating programs: the parts of the ground program, each solved by itself.

The parts share nothing, so a model of all is one model of each; they are put together only when they are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidelog.stable.grounding import Component, Ground, Grounding, GroundLiteral, GroundRule, components
from tidelog.stable.limits import Limit
from tidelog.stable.machine import Machine, Shape, shape_of
from tidelog.stable.normal import Directed, Kind
from tidelog.stable.past import Past, eternal
from tidelog.stable.problem import Pair, Problem, coalesced
from tidelog.stable.walk import Given, Trace, Walks
from tidelog.timeline.grid import NEG_INF, POS_INF, negated


@dataclass(frozen=True, slots=True)
class Question:
    """Only models in which an atom holds all through an interval (or, with `fails`, fails somewhere in it)."""

    atom: Ground
    interval: Pair
    fails: bool


#: Longer stretches of time are not gone through point by point.
MOST_POINTS = 2_000_000

_ASKED, _FAILED, _END = ("$asked", ()), ("$failed", ()), ("$end", ())


class Forward:
    """The parts of a forward-propagating problem, and their machines."""

    def __init__(self, problem: Problem, program: Directed, limit: Limit) -> None:
        self.problem, self.program, self.limit = problem, program, limit
        self.grounding = Grounding(program.rules, problem.data.symbols)
        self.grounding.add(problem.facts)
        self._machines: dict[Shape, Machine] = {}
        self._pasts: dict[tuple[Shape, int], Past] = {}

    def parts(self, lo: int, hi: int, question: Question | None = None) -> Iterator[Part]:
        """The parts with all their walks, shown on LO..HI. A part without a walk is the last: there is no model."""
        rules = self.grounding.instances
        facts = {atom: self._inside(atom, pairs) for atom, pairs in self.problem.facts.items()}
        accepted = None
        if question is not None:
            rules, facts, accepted = self._asked(question, facts)
        for component in components(rules):
            part = self._part(component, facts, lo, hi, accepted)
            yield part
            if part.walks.stuck is not None:
                return

    def offset(self, atom: Ground) -> int:
        return self.program.offsets.get(atom[0], 0)

    def _inside(self, atom: Ground, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
        """Intervals at internal times."""
        offset = self.offset(atom)
        if self.program.mirrored:
            pairs = tuple(negated(pair) for pair in reversed(pairs))
        if not offset:
            return pairs
        return tuple((_plus(lo, offset), _plus(hi, offset)) for lo, hi in pairs)

    def _asked(
        self, question: Question, facts: dict[Ground, tuple[Pair, ...]]
    ) -> tuple[list[GroundRule], dict[Ground, tuple[Pair, ...]], int | None]:
        """Rules and facts that leave only the models in question, and an atom that must hold at last."""
        number = self.grounding.number
        (interval,) = self._inside(question.atom, (question.interval,))

        def now(atom: Ground, negated: bool = False, ago: int = 0) -> GroundLiteral:
            return GroundLiteral(Kind.DIAMOND, number(atom), ago, ago, negated)

        facts = facts | {_ASKED: (interval,)}
        here = len(self.grounding.rules)
        if not question.fails:
            added = [GroundRule(here, -1, (now(_ASKED), now(question.atom, negated=True)))]
            return self.grounding.instances + added, facts, None
        failed = number(_FAILED)
        added = [
            GroundRule(here, failed, (now(_ASKED), now(question.atom, negated=True))),
            GroundRule(here + 1, failed, (now(_FAILED, ago=1),)),
        ]
        if interval[1] == POS_INF:
            return self.grounding.instances + added, facts, failed
        added.append(GroundRule(here + 2, -1, (now(_END), now(_FAILED, negated=True))))
        return self.grounding.instances + added, facts | {_END: ((interval[1], interval[1]),)}, None

    def _part(
        self, component: Component, facts: dict[Ground, tuple[Pair, ...]], lo: int, hi: int, accepted: int | None
    ) -> Part:
        shape = shape_of(component)
        machine = self._machines.get(shape)
        if machine is None:
            machine = self._machines[shape] = Machine(shape, self.limit.note)
        atoms = tuple(self.grounding.atoms[a] for a in (*component.derived, *component.read))
        given = given_by([facts.get(atom, ()) for atom in atoms])
        key = shape, given.before
        past = self._pasts.get(key)
        if past is None:
            past = self._pasts[key] = eternal(machine, given.before, possible_atoms(shape, given.before), self.limit)
        mirrored = self.program.mirrored
        offsets = [self.offset(atom) for atom in atoms]
        visible = [i for i in range(shape.derived) if not atoms[i][0].startswith("$")]
        first_shown, last_shown = (-hi, -lo) if mirrored else (lo, hi)
        spans: dict[Pair, int] = {}
        for i in visible:
            span = first_shown + offsets[i], last_shown + offsets[i]
            spans[span] = spans.get(span, 0) | 1 << i
        ends = [end for span in spans for end in span] + [time for time, _ in given.changes]
        first, last = (min(ends), max(ends)) if ends else (0, -1)
        if last - first > MOST_POINTS:
            raise self.limit.exceeded(f"there are {last - first:,} time points")
        local = None
        if accepted is not None and accepted in component.derived:
            local = component.derived.index(accepted)
        walks = Walks(machine, past, given, first, last, local)
        return Part(component, atoms, offsets, visible, spans, walks, mirrored)


@dataclass(frozen=True, slots=True)
class Part:
    """A component with its walks. Of the atoms, those in `visible` are shown, at the times of their span."""

    component: Component
    atoms: tuple[Ground, ...]
    offsets: list[int]
    visible: list[int]
    spans: dict[Pair, int]
    walks: Walks
    mirrored: bool

    def satisfiable(self) -> bool:
        return self.walks.stuck is None

    def traces(self) -> Iterator[Trace]:
        """One walk for each way in which the visible atoms can be on LO..HI."""
        spans = list(self.spans.items())
        if len(spans) == 1:
            ((first, last), only) = spans[0]
            return self.walks.traces(lambda time: only if first <= time <= last else 0)
        return self.walks.traces(lambda time: sum(mask for (a, b), mask in spans if a <= time <= b))


def given_by(intervals: list[tuple[Pair, ...]]) -> Given:
    """Which atoms are given when, from the intervals of each."""
    before = 0
    turns: dict[int, int] = {}
    for atom, pairs in enumerate(intervals):
        bit = 1 << atom
        for lo, hi in coalesced(pairs):
            if lo == NEG_INF:
                before |= bit
            else:
                turns[lo] = turns.get(lo, 0) ^ bit
            if hi != POS_INF:
                turns[hi + 1] = turns.get(hi + 1, 0) ^ bit
    changes = []
    atoms = before
    for time in sorted(turns):
        if turns[time]:
            atoms ^= turns[time]
            changes.append((time, atoms))
    return Given(before, tuple(changes))


def possible_atoms(shape: Shape, held: int) -> int:
    """The atoms that could be derived in the past if negation were ignored."""
    possible = held
    while True:
        before = possible
        for _, head, body in shape.rules:
            if head >= 0 and all(
                possible >> atom & 1 and (left < 0 or possible >> left & 1)
                for _, atom, _, _, negated, left in body
                if not negated
            ):
                possible |= 1 << head
        if possible == before:
            return possible


def _plus(end: int, offset: int) -> int:
    return end if end in (NEG_INF, POS_INF) else end + offset
