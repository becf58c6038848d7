"""Stable models of programs that look both ways: a search for models that repeat at both ends.

A component whose atoms can hold only in a finite range of times is solved exactly, by one clingo program over that
range. For all others, what follows applies.

Each component of the ground program is folded into finite ranges of time of growing size, and clingo finds its stable
models there. Every stable model with these periods is among them, but not conversely: an atom that is derived at one
time of a folded range need not be derived at all the times that it stands for. So every candidate is verified
(`foundedness`) before it is accepted.

A second clingo program leaves open what holds outside of a range. Every stable model, whatever it does outside, is a
model of it. So if it has no model, there is no stable model, and if it has no model that differs visibly from those
found, there are no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice

from tidelog.compiler.flat_rules import Pair
from tidelog.language.hidden_predicates import is_hidden
from tidelog.stable.clingo_control import create_ground_control
from tidelog.stable.clingo_encoding import FALSE, NO_HEAD, TRUE, ClingoEncoding
from tidelog.stable.folded_interpretation import FoldedTimeline
from tidelog.stable.foundedness import FoundednessCheck
from tidelog.stable.grounding import GroundAtom, GroundComponent, GroundRule, split_components
from tidelog.stable.normal_form import normalise
from tidelog.stable.problem import Problem
from tidelog.stable.question import Question
from tidelog.stable.search_limits import SearchLimit
from tidelog.stable.time_bounds import compute_time_bounds
from tidelog.stable.window_paths import Trace
from tidelog.timeline.grid import NEG_INF, POS_INF

#: The longest period that is tried at either end.
LONGEST_PERIOD = 6
#: The largest number of rule instances, one per rule and time point, that is given to clingo.
MOST_INSTANCES = 300_000
#: The largest number of candidates that are verified for one size.
_MOST_CANDIDATES = 500

#: A model of a component as pairs of atom and time; restricted to the visible atoms in LO..HI, its appearance.
_AtomTimes = frozenset[tuple[int, int]]
#: The numbers that atoms have at times in a clingo program.
_TimedAtoms = dict[tuple[int, int], int]


class TwoWaySolver:
    """Solves the components of a problem whose rules look both ways.

    With `bounded_only`, raises `Undecided` for a component whose atoms may hold arbitrarily far out."""

    def __init__(self, problem: Problem, limit: SearchLimit, *, bounded_only: bool = False) -> None:
        self.problem, self.limit, self._bounded_only = problem, limit, bounded_only
        self.grounding = problem.ground(normalise(problem.rules))

    def solve(self, lo: int, hi: int, question: Question | None = None) -> Iterator[TwoWayComponent]:
        """Yield the components, each of which searches for its models when asked for them."""
        for component in split_components(self.grounding.instances):
            atoms = tuple(self.grounding.atoms[a] for a in (*component.derived, *component.read))
            mine = question if question is not None and question.atom in atoms[: len(component.derived)] else None
            solved = TwoWayComponent(self, component, atoms, (lo, hi), mine)
            if self._bounded_only and not solved.is_bounded:
                raise self.limit.build_undecided("some atoms may hold at infinitely many times")
            yield solved


@dataclass(frozen=True, slots=True)
class _SearchSize:
    """Periods to try: a folded range, and the part of it between the periods."""

    timeline: FoldedTimeline
    #: Grows with the periods.
    middle: Pair


class TwoWayComponent:
    """One component. Of its atoms, those in `visible` are shown."""

    mirrored = False

    def __init__(
        self,
        solver: TwoWaySolver,
        component: GroundComponent,
        atoms: tuple[GroundAtom, ...],
        shown: Pair,
        question: Question | None,
    ) -> None:
        self.limit = solver.limit
        self.component, self.atoms = component, atoms
        (self.lo, self.hi), self.question = shown, question
        self.offsets = [0] * len(atoms)
        self.visible = [i for i in range(len(component.derived)) if not is_hidden(atoms[i][0])]
        self.derived = frozenset(component.derived)
        numbers = (*component.derived, *component.read)
        self.facts = {n: solver.problem.facts.get(atom, ()) for n, atom in zip(numbers, atoms, strict=True)}
        self.time_bounds = compute_time_bounds(
            component.rules, {n: (p[0][0], p[-1][1]) for n, p in self.facts.items() if p}
        )
        ends = [
            abs(end)
            for rule in component.rules
            for literal in rule.body
            for end in (literal.lo, literal.hi)
            if abs(end) != POS_INF
        ]
        self.reach = max(ends, default=0)
        #: Whether the derived atoms can hold only in a finite range of times.
        self.is_bounded = not (self._is_unbounded(0, NEG_INF) or self._is_unbounded(1, POS_INF))
        self._models = self._search()
        self._first_model: list[Trace] = []

    def is_satisfiable(self) -> bool:
        """Tell whether there is a model; raises `Undecided` where that is not known."""
        if not self._first_model:
            self._first_model = list(islice(self._models, 1))
        return bool(self._first_model)

    def traces(self) -> Iterator[Trace]:
        """Yield models that differ visibly on LO..HI; raises `Undecided` where there may be more."""
        self.is_satisfiable()
        return chain(self._first_model, self._models)

    def optimal_traces(self, weights: Mapping[int, int]) -> Iterator[Trace]:
        """Yield those of least cost among the traces; raises `Undecided` where there may be cheaper ones."""
        if self.is_bounded:
            return self._search_range(weights)
        traces = list(self.traces())
        costs = [self._compute_cost(trace, weights) for trace in traces]
        return (trace for trace, cost in zip(traces, costs, strict=True) if cost == min(costs))

    def _compute_cost(self, trace: Trace, weights: Mapping[int, int]) -> int:
        slices = [trace.slices[time - trace.start] for time in range(self.lo, self.hi + 1)]
        return sum(weight for slice in slices for i, weight in weights.items() if slice >> i & 1)

    def consequences(self, brave: bool) -> Iterator[tuple[int, int, int]]:
        """Yield each time of LO..HI with the atoms that hold in some or in all models."""
        pairs: set[tuple[int, int]] | None = None
        if self.is_bounded:
            timeline = next(self._list_sizes()).timeline
            self._require_few_points(timeline)
            pairs = self._find_consequences(timeline, brave)
        else:
            for trace in self.traces():
                model = {
                    (atom, time)
                    for time in range(self.lo, self.hi + 1)
                    for i, atom in enumerate(self.component.derived)
                    if trace.slices[time - trace.start] >> i & 1
                }
                pairs = model if pairs is None else pairs | model if brave else pairs & model
        assert pairs is not None, "there is a model"
        for time in range(self.lo, self.hi + 1):
            yield time, time, sum(1 << i for i, atom in enumerate(self.component.derived) if (atom, time) in pairs)

    def is_given(self, atom: int, time: int) -> bool:
        # A loop: `any` takes twice as long.
        for lo, hi in self.facts.get(atom, ()):  # noqa: SIM110
            if lo <= time <= hi:
                return True
        return False

    def is_possible(self, atom: int, time: int) -> bool:
        bounds = self.time_bounds.get(atom)
        return bounds is not None and bounds[0] <= time <= bounds[1]

    # The search

    def _search(self) -> Iterator[Trace]:
        """Yield the models of a bounded component, or verified ones for growing periods, until there are no others."""
        if self.is_bounded:
            yield from self._search_range()
            return
        known: list[_AtomTimes] = []
        longest = 0
        for size in self._list_sizes():
            timeline = size.timeline
            self._require_few_points(timeline)
            self.limit.activity = f"searching for models with periods {timeline.left} and {timeline.right}"
            for model in self._find_candidates(timeline, known):
                appearance = self._select_visible(model)
                if appearance not in known and self._is_founded(model, timeline):
                    known.append(appearance)
                    yield self._build_trace(model, timeline)
            if max(timeline.left, timeline.right) > longest or longest == 0:
                longest = max(timeline.left, timeline.right)
                if not self._may_have_others(size.middle, known):
                    return
        raise self.limit.build_undecided(
            f"models that repeat with periods of up to {LONGEST_PERIOD} were tried, and there may be others"
        )

    def _search_range(self, weights: Mapping[int, int] | None = None) -> Iterator[Trace]:
        """Yield the stable models of a bounded component, one for each appearance; with weights, those of least cost.

        No derived atom holds outside of the range, and the data does not change there. So the program over the range
        has exactly the stable models of the component."""
        timeline = next(self._list_sizes()).timeline
        self._require_few_points(timeline)
        self.limit.activity = f"searching for models from {timeline.first} to {timeline.last}"
        encoding, timed = self._encode(timeline)
        shown = self._find_shown(timed)
        options = ["--models=1"]
        if shown:
            encoding.project(list(shown))
            options = ["--models=0", "--project=project"]
        by_atom = {self.component.derived[i]: weight for i, weight in (weights or {}).items()}
        costs = {literal: by_atom[atom] for literal, (atom, _) in shown.items() if atom in by_atom}
        if costs:
            encoding.minimise(costs)
            options.append(f"--opt-mode=enum,{self._find_least_cost(encoding)}")
        for model in self._solve(encoding, timed, options):
            yield self._build_trace(model, timeline)

    def _find_shown(self, timed: _TimedAtoms) -> dict[int, tuple[int, int]]:
        """Return the literals of the visible atoms in LO..HI that may hold, with the atom and its time."""
        pairs = [(self.component.derived[i], time) for i in self.visible for time in range(self.lo, self.hi + 1)]
        return {timed[pair]: pair for pair in pairs if pair in timed}

    def _find_consequences(self, timeline: FoldedTimeline, brave: bool) -> set[tuple[int, int]]:
        """Return the visible atoms in LO..HI that hold in some, or in all, stable models of a bounded component."""
        encoding, timed = self._encode(timeline)
        encoding.show(self._find_shown(timed))
        mode = "brave" if brave else "cautious"
        solver = create_ground_control(["--models=0", f"--enum-mode={mode}"], encoding.text())
        pairs: set[tuple[int, int]] = set()
        with solver.solve(yield_=True) as handle:
            for model in handle:  # each one is better than the one before; the last one is final
                self.limit.count_windows(1)
                arguments = (symbol.arguments for symbol in model.symbols(shown=True))
                pairs = {(atom.number, time.number) for atom, time in arguments}
        return pairs

    def _require_few_points(self, timeline: FoldedTimeline) -> None:
        """Raise `Undecided` where clingo would get too many rules."""
        points = timeline.last - timeline.first + 2 * self.reach
        if points * len(self.component.rules) > MOST_INSTANCES:
            raise self.limit.build_undecided(f"the search would need {points:,} time points")

    def _list_sizes(self) -> Iterator[_SearchSize]:
        """Yield the sizes to try, shortest periods first."""
        ends = [end for pairs in self.facts.values() for pair in pairs for end in pair if abs(end) != POS_INF]
        ends += [end for bounds in self.time_bounds.values() for end in bounds if abs(end) != POS_INF]
        if self.question is not None:
            ends += [end for end in self.question.interval if abs(end) != POS_INF]
        lo, hi = min([self.lo, *ends]), max([self.hi, *ends])
        lefts = range(1, LONGEST_PERIOD + 1) if self._is_unbounded(0, NEG_INF) else (1,)
        rights = range(1, LONGEST_PERIOD + 1) if self._is_unbounded(1, POS_INF) else (1,)
        for left, right in sorted(((a, b) for a in lefts for b in rights), key=lambda pair: (max(pair), sum(pair))):
            # Leave room for a transition between the data and what repeats.
            room = self.reach + 2 * max(left, right)
            middle = lo - room, hi + room
            yield _SearchSize(FoldedTimeline(middle[0] - left, middle[1] + right, left, right), middle)

    def _is_unbounded(self, side: int, infinite: int) -> bool:
        """Tell whether some derived atom may hold arbitrarily far out on one side."""
        return any(self.time_bounds[a][side] == infinite for a in self.component.derived if a in self.time_bounds)

    def _select_visible(self, model: _AtomTimes) -> _AtomTimes:
        """Return the visible atoms of a model in LO..HI."""
        shown = {self.component.derived[i] for i in self.visible}
        return frozenset((a, t) for a, t in model if a in shown and self.lo <= t <= self.hi)

    def _find_candidates(self, timeline: FoldedTimeline, known: list[_AtomTimes]) -> Iterator[_AtomTimes]:
        """Yield stable models of the folded program that differ visibly from those known."""
        encoding, timed = self._encode(timeline)
        self._exclude(encoding, known)
        yield from self._solve(encoding, timed, [f"--models={_MOST_CANDIDATES}"])

    def _encode(self, timeline: FoldedTimeline) -> tuple[ClingoEncoding, _TimedAtoms]:
        """Encode the program over a folded range, with only the models in question; return the numbers of its atoms."""
        reach = self.reach
        timed: _TimedAtoms = {}

        def at(atom: int, time: int) -> int:
            literal = timed.get((atom, time))
            if literal is not None:
                return literal
            if atom not in self.derived:
                return TRUE if self.is_given(atom, time) else FALSE
            if not self.is_possible(atom, time):
                return FALSE
            folded = atom, timeline.fold(time)
            return timed.get(folded) or timed.setdefault(folded, encoding.create_atom())

        encoding = ClingoEncoding(at, timeline.first, timeline.last, timeline.left, timeline.right)
        first, last = timeline.first - reach - timeline.left, timeline.last + reach + timeline.right
        self._add_program(encoding, first, last)
        for atom in self.component.derived:
            for k in range(reach):
                for one, other in ((k, k + timeline.left), (-k - 1, -k - 1 - timeline.right)):
                    start = timeline.first if one >= 0 else timeline.last + 1
                    _require_equal(encoding, at(atom, start + one), at(atom, start + other))
        self._encode_question(encoding, timeline)
        return encoding, timed

    def _add_program(self, encoding: ClingoEncoding, first: int, last: int) -> None:
        """Add the instances of the rules, and the facts, from one time to another."""
        ranges: list[tuple[GroundRule, range]] = []
        for rule in self.component.rules:
            lo, hi = (first, last) if rule.head < 0 else self.time_bounds.get(rule.head, (POS_INF, NEG_INF))
            ranges.append((rule, range(max(first, lo), min(last, hi) + 1)))
        encoding.add_rules(ranges)
        for atom in self.component.derived:
            for lo, hi in self.facts.get(atom, ()):
                for time in range(max(first, lo), min(last, hi) + 1):
                    encoding.add(encoding.at(atom, time), ())

    def _may_have_others(self, middle: Pair, known: list[_AtomTimes]) -> bool:
        """Tell whether there may be models that differ visibly from those known."""
        first, last = middle
        timed: _TimedAtoms = {}

        def at(atom: int, time: int) -> int:
            if atom not in self.derived:
                return TRUE if self.is_given(atom, time) else FALSE
            if not self.is_possible(atom, time):
                return FALSE
            return timed.get((atom, time)) or timed.setdefault((atom, time), encoding.create_atom())

        encoding = ClingoEncoding(at, first - self.reach - 1, last + self.reach + 1, 0, 0)
        self._add_program(encoding, first, last)
        self._encode_question(encoding, middle)
        self._exclude(encoding, known)
        for (_, time), literal in timed.items():
            if not first <= time <= last:
                encoding.add_choice(literal)
        return next(self._solve(encoding, timed, ["--models=1"]), None) is not None

    def _encode_question(self, encoding: ClingoEncoding, times: FoldedTimeline | Pair) -> None:
        """Leave only the models in question.

        `times` is a folded timeline, or a range outside of which nothing is known: there the question stays open.
        """
        if self.question is None:
            return
        atom = next(n for n, a in zip(self.component.derived, self.atoms, strict=False) if a == self.question.atom)
        lo, hi = self.question.interval
        if isinstance(times, FoldedTimeline):
            points, is_open = times.fold_range(lo, hi), False
        else:
            points = list(range(max(lo, times[0]), min(hi, times[1]) + 1))
            is_open = lo < times[0] or hi > times[1]
        literals = [encoding.at(atom, time) for time in points]
        if not self.question.fails:
            for literal in literals:
                encoding.add(NO_HEAD, [-literal])
            return
        fails = encoding.create_atom()
        for literal in literals:
            encoding.add(fails, [-literal])
        if is_open:
            encoding.add_choice(fails)
        encoding.add(NO_HEAD, [-fails])

    def _exclude(self, encoding: ClingoEncoding, known: list[_AtomTimes]) -> None:
        """Exclude every known appearance."""
        for appearance in known:
            body = []
            for i in self.visible:
                for time in range(self.lo, self.hi + 1):
                    literal = encoding.at(self.component.derived[i], time)
                    body.append(literal if (self.component.derived[i], time) in appearance else -literal)
            encoding.add(NO_HEAD, body)

    def _find_least_cost(self, encoding: ClingoEncoding) -> int:
        """Return what the cheapest stable models of a clingo program, which has one, cost."""
        solver = create_ground_control(["--models=0", "--opt-mode=opt"], encoding.text())
        least = 0
        with solver.solve(yield_=True) as handle:
            for model in handle:  # each one is cheaper than the one before
                self.limit.count_windows(1)
                self.limit.report_progress()
                (least,) = model.cost
        return least

    def _solve(self, encoding: ClingoEncoding, timed: _TimedAtoms, options: list[str]) -> Iterator[_AtomTimes]:
        """Yield the stable models of a clingo program that the options ask for."""
        solver = create_ground_control(options, encoding.text())
        with solver.solve(yield_=True) as handle:
            for model in handle:
                self.limit.count_windows(1)
                self.limit.report_progress()
                holds = model.is_true
                yield frozenset([pair for pair, literal in timed.items() if holds(literal)])

    def _is_founded(self, model: _AtomTimes, timeline: FoldedTimeline) -> bool:
        """Tell whether everything in a model can be derived."""

        def truth(atom: int, time: int) -> bool:
            if atom not in self.derived:
                return self.is_given(atom, time)
            return (atom, timeline.fold(time)) in model

        check = FoundednessCheck(self.component.rules, self.component.derived, truth, self.is_given, timeline)
        return check.is_founded()

    def _build_trace(self, model: _AtomTimes, timeline: FoldedTimeline) -> Trace:
        slices = tuple(
            sum(1 << i for i, atom in enumerate(self.component.derived) if (atom, time) in model)
            for time in range(timeline.first, timeline.last + 1)
        )
        return Trace(timeline.first, slices, timeline.left, timeline.right)


def _require_equal(encoding: ClingoEncoding, one: int, other: int) -> None:
    """Make two literals equivalent."""
    if one != other:
        encoding.add(NO_HEAD, [one, -other])
        encoding.add(NO_HEAD, [other, -one])
