"""Stable models of forward-propagating programs: the components of the ground program, each solved on its own.

Components share no derived atom, so a stable model of the program is one model of each component. They are combined
only when models are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tidelog.compiler.flat_rules import Pair
from tidelog.language.hidden_predicates import hidden_name, is_hidden
from tidelog.stable.given_atoms import build_given_atoms
from tidelog.stable.grounding import GroundAtom, GroundComponent, GroundLiteral, GroundRule, split_components
from tidelog.stable.initial_windows import InitialWindows, find_initial_windows
from tidelog.stable.normal_form import ForwardProgram, OperatorKind, shift_end
from tidelog.stable.problem import Problem
from tidelog.stable.question import Question
from tidelog.stable.search_limits import SearchLimit
from tidelog.stable.slice_machine import ComponentShape, SliceMachine, compute_shape
from tidelog.stable.window_paths import Cost, Trace, WindowPaths
from tidelog.timeline.grid import POS_INF, negate

#: Hidden atoms for a question: the times it asks about, "the atom has failed", and the last time it asks about.
_ASKED, _FAILED, _END = ((hidden_name(text), ()) for text in ("asked", "failed", "end"))

#: When each atom of the data holds.
_Facts = dict[GroundAtom, tuple[Pair, ...]]


class ForwardSolver:
    """Solves the components of a forward-propagating problem; those of the same shape share a machine."""

    def __init__(self, problem: Problem, program: ForwardProgram, limit: SearchLimit) -> None:
        self.problem, self.program, self.limit = problem, program, limit
        self.grounding = problem.ground(program.rules)
        self._machines: dict[ComponentShape, SliceMachine] = {}
        self._initial_windows: dict[tuple[ComponentShape, int], InitialWindows] = {}

    def solve(self, lo: int, hi: int, question: Question | None = None) -> Iterator[ForwardComponent]:
        """Yield the components with all their paths, to be shown on LO..HI.

        Stops after a component without a path, since then there is no model.
        """
        rules = self.grounding.instances
        facts = {atom: self._to_internal_times(atom, pairs) for atom, pairs in self.problem.facts.items()}
        accepted = None
        if question is not None:
            rules, facts, accepted = self._add_question(question, facts)
        for ground_component in split_components(rules):
            component = self._solve_component(ground_component, facts, (lo, hi), accepted)
            yield component
            if not component.is_satisfiable():
                return

    def offset(self, atom: GroundAtom) -> int:
        """Return how much later than it holds an atom is stored."""
        return self.program.offsets.get(atom[0], 0)

    def _to_internal_times(self, atom: GroundAtom, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
        """Mirror and shift the intervals of an atom as its rules are."""
        offset = self.offset(atom)
        if self.program.mirrored:
            pairs = tuple(negate(pair) for pair in reversed(pairs))
        if not offset:
            return pairs
        return tuple((shift_end(lo, offset), shift_end(hi, offset)) for lo, hi in pairs)

    def _add_question(self, question: Question, facts: _Facts) -> tuple[list[GroundRule], _Facts, int | None]:
        """Return rules and facts that leave only the models in question, and an atom that must hold in the end."""
        number = self.grounding.number
        (interval,) = self._to_internal_times(question.atom, (question.interval,))

        def now(atom: GroundAtom, negated: bool = False, ago: int = 0) -> GroundLiteral:
            return GroundLiteral(OperatorKind.DIAMOND, number(atom), ago, ago, negated)

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

    def _solve_component(
        self, component: GroundComponent, facts: _Facts, shown: Pair, accepted: int | None
    ) -> ForwardComponent:
        """Find all paths of a component, with a machine shared by components of the same shape."""
        shape = compute_shape(component)
        machine = self._machines.get(shape)
        if machine is None:
            machine = self._machines[shape] = SliceMachine(shape, self.limit.count_windows, self.limit.count_choices)
        atoms = tuple(self.grounding.atoms[a] for a in (*component.derived, *component.read))
        given = build_given_atoms([facts.get(atom, ()) for atom in atoms])
        key = shape, given.before
        past = self._initial_windows.get(key)
        if past is None:
            past = self._initial_windows[key] = find_initial_windows(machine, given.before, self.limit)
        mirrored = self.program.mirrored
        offsets = [self.offset(atom) for atom in atoms]
        visible = [i for i in range(shape.derived) if not is_hidden(atoms[i][0])]
        first_shown, last_shown = negate(shown) if mirrored else shown
        spans: dict[Pair, int] = {}
        for i in visible:
            span = first_shown + offsets[i], last_shown + offsets[i]
            spans[span] = spans.get(span, 0) | 1 << i
        ends = [end for span in spans for end in span] + [time for time, _ in given.changes]
        first, last = (min(ends), max(ends)) if ends else (0, -1)
        local = None
        if accepted is not None and accepted in component.derived:
            local = component.derived.index(accepted)
        paths = WindowPaths(machine, past, given, first, last, self.limit, local)
        return ForwardComponent(atoms, offsets, visible, spans, paths, mirrored)


@dataclass(frozen=True, slots=True)
class ForwardComponent:
    """A component with its paths. Of the atoms, those in `visible` are shown, at the times of their span."""

    atoms: tuple[GroundAtom, ...]
    offsets: list[int]
    visible: list[int]
    #: The visible atoms, as bits, that are shown in each span of internal times.
    spans: dict[Pair, int]
    paths: WindowPaths
    mirrored: bool

    def is_satisfiable(self) -> bool:
        """Tell whether there is a model."""
        return self.paths.dead_end is None

    def consequences(self, brave: bool) -> Iterator[tuple[int, int, int]]:
        """Yield spans of internal times, each with the atoms that hold in some or in all models."""
        return self.paths.consequences(brave, min(a for a, _ in self.spans), max(b for _, b in self.spans))

    def traces(self) -> Iterator[Trace]:
        """Yield one path for each way in which the visible atoms can hold on LO..HI."""
        return self.paths.traces(self._find_shown())

    def optimal_traces(self, weights: Mapping[int, int]) -> Iterator[Trace]:
        """Yield those of least cost among the traces."""
        return self.paths.traces(self._find_shown(), self._build_cost(weights))

    def _find_shown(self) -> Callable[[int], int]:
        """Return a function from times to the atoms that are visible then."""
        spans = list(self.spans.items())
        if len(spans) == 1:
            ((first, last), only) = spans[0]
            return lambda time: only if first <= time <= last else 0
        return lambda time: sum(mask for (a, b), mask in spans if a <= time <= b)

    def _build_cost(self, weights: Mapping[int, int]) -> Cost:
        """Return a function that computes what a slice costs at a time."""
        weighed = [
            (first, last, 1 << i, weight)
            for (first, last), mask in self.spans.items()
            for i, weight in weights.items()
            if mask >> i & 1
        ]

        def cost(time: int, slice: int) -> int:
            return sum(weight for first, last, bit, weight in weighed if slice & bit and first <= time <= last)

        return cost
