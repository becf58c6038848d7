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
from tidelog.stable.clingo_control import add_costs, add_ground_rules, create_control
from tidelog.stable.clingo_encoding import FALSE, TRUE, At, ClingoEncoding
from tidelog.stable.folded_interpretation import FoldedTimeline
from tidelog.stable.foundedness import FoundednessCheck
from tidelog.stable.grounding import GroundAtom, GroundComponent, Grounding, split_components
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


class TwoWaySolver:
    """Solves the components of a problem whose rules look both ways.

    With `bounded_only`, raises `Undecided` for a component whose atoms may hold arbitrarily far out."""

    def __init__(self, problem: Problem, limit: SearchLimit, *, bounded_only: bool = False) -> None:
        self.problem, self.limit, self._bounded_only = problem, limit, bounded_only
        self.grounding = Grounding(normalise(problem.rules), problem.data.symbols)
        self.grounding.add(problem.facts)

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
            pairs = self._find_consequences(self._encode(timeline), brave)
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
        return any(lo <= time <= hi for lo, hi in self.facts.get(atom, ()))

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
        text = self._encode(timeline)
        shown = self._name_shown(text.at)
        text.lines += [f"#project {name}." for name in shown]
        options = ["--models=0", "--project=project"] if shown else ["--models=1"]
        by_atom = {self.component.derived[i]: weight for i, weight in (weights or {}).items()}
        costs = {name: by_atom[atom] for name, (atom, _) in shown.items() if atom in by_atom}
        if costs:
            options.append(f"--opt-mode=enum,{self._find_least_cost(text.lines, costs)}")
        for model in self._solve_text(text.lines, options, costs):
            yield self._build_trace(model, timeline)

    def _name_shown(self, at: At) -> dict[str, tuple[int, int]]:
        """Return the names of the visible atoms in LO..HI that may hold, with the atom and its time."""
        pairs = [(self.component.derived[i], time) for i in self.visible for time in range(self.lo, self.hi + 1)]
        return {name: pair for pair in pairs if (name := at(*pair)) != FALSE}

    def _find_consequences(self, text: ClingoEncoding, brave: bool) -> set[tuple[int, int]]:
        """Return the visible atoms in LO..HI that hold in some, or in all, stable models of a program."""
        solver = create_control(["--models=0", f"--enum-mode={'brave' if brave else 'cautious'}"])
        add_ground_rules(solver, text.lines, self._name_shown(text.at))
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
        text = self._encode(timeline)
        text.lines += self._exclude(text.at, known)
        yield from self._solve_text(text.lines, [f"--models={_MOST_CANDIDATES}"])

    def _encode(self, timeline: FoldedTimeline) -> ClingoEncoding:
        """Encode the program over a folded range, with only the models in question."""
        reach = self.reach
        names: dict[tuple[int, int], str] = {}

        def at(atom: int, time: int) -> str:
            name = names.get((atom, time))
            if name is None:
                if atom not in self.derived:
                    name = TRUE if self.is_given(atom, time) else FALSE
                else:
                    name = f"s({atom},{timeline.fold(time)})" if self.is_possible(atom, time) else FALSE
                names[atom, time] = name
            return name

        text = ClingoEncoding(at, timeline.first, timeline.last, timeline.left, timeline.right)
        for time in range(timeline.first - reach - timeline.left, timeline.last + reach + timeline.right + 1):
            for rule in self.component.rules:
                if rule.head < 0:
                    text.add_rule(rule, time, "")
                elif self.is_possible(rule.head, time):
                    text.add_rule(rule, time, at(rule.head, time))
            for atom in self.component.derived:
                if self.is_given(atom, time):
                    text.lines.append(f"{at(atom, time)}.")
        for atom in self.component.derived:
            for k in range(reach):
                for one, other in ((k, k + timeline.left), (-k - 1, -k - 1 - timeline.right)):
                    start = timeline.first if one >= 0 else timeline.last + 1
                    text.lines += _require_equal(at(atom, start + one), at(atom, start + other))
        text.lines += self._encode_question(at, timeline)
        return text

    def _may_have_others(self, middle: Pair, known: list[_AtomTimes]) -> bool:
        """Tell whether there may be models that differ visibly from those known."""
        first, last = middle
        outside: set[str] = set()

        def at(atom: int, time: int) -> str:
            if atom not in self.derived:
                return TRUE if self.is_given(atom, time) else FALSE
            if not self.is_possible(atom, time):
                return FALSE
            text = f"s({atom},{time})"
            if not first <= time <= last:
                outside.add(text)
            return text

        text = ClingoEncoding(at, first - self.reach - 1, last + self.reach + 1, 0, 0)
        for time in range(first, last + 1):
            for rule in self.component.rules:
                if rule.head < 0:
                    text.add_rule(rule, time, "")
                elif self.is_possible(rule.head, time):
                    text.add_rule(rule, time, at(rule.head, time))
            text.lines += [f"{at(atom, time)}." for atom in self.component.derived if self.is_given(atom, time)]
        text.lines += self._encode_question(at, middle)
        text.lines += self._exclude(at, known)
        text.lines += [f"{{ {name} }}." for name in sorted(outside)]
        return next(self._solve_text(text.lines, ["--models=1"]), None) is not None

    def _encode_question(self, at: At, times: FoldedTimeline | Pair) -> list[str]:
        """Return lines that leave only the models in question.

        `times` is a folded timeline, or a range outside of which nothing is known: there the question stays open.
        """
        if self.question is None:
            return []
        atom = next(n for n, a in zip(self.component.derived, self.atoms, strict=False) if a == self.question.atom)
        lo, hi = self.question.interval
        if isinstance(times, FoldedTimeline):
            points, is_open = times.fold_range(lo, hi), False
        else:
            points = list(range(max(lo, times[0]), min(hi, times[1]) + 1))
            is_open = lo < times[0] or hi > times[1]
        texts = [at(atom, time) for time in points]
        if not self.question.fails:
            return [f":- not {text}." if text not in (TRUE, FALSE) else ":- ." for text in texts if text != TRUE]
        lines = [f"fails :- not {text}." if text != FALSE else "fails." for text in texts if text != TRUE]
        if is_open:
            lines.append("{ fails }.")
        return [*lines, ":- not fails."]

    def _exclude(self, at: At, known: list[_AtomTimes]) -> list[str]:
        """Return constraints that exclude every known appearance."""
        lines = []
        for appearance in known:
            body = []
            for i in self.visible:
                for time in range(self.lo, self.hi + 1):
                    text = at(self.component.derived[i], time)
                    if text != FALSE:
                        body.append(text if (self.component.derived[i], time) in appearance else f"not {text}")
            lines.append(f":- {', '.join(body)}.")
        return lines

    def _find_least_cost(self, lines: list[str], costs: Mapping[str, int]) -> int:
        """Return what the cheapest stable models of a clingo program, which has one, cost."""
        solver = create_control(["--models=0", "--opt-mode=opt"])
        add_costs(solver, add_ground_rules(solver, lines), costs)
        least = 0
        with solver.solve(yield_=True) as handle:
            for model in handle:  # each one is cheaper than the one before
                self.limit.count_windows(1)
                self.limit.report_progress()
                (least,) = model.cost
        return least

    def _solve_text(
        self, lines: list[str], options: list[str], costs: Mapping[str, int] | None = None
    ) -> Iterator[_AtomTimes]:
        """Yield the stable models of a clingo program that the options ask for."""
        solver = create_control(options)
        atoms = add_ground_rules(solver, lines)
        add_costs(solver, atoms, costs or {})
        timed = [(_parse_timed_atom(name), atom) for name, atom in atoms.items() if name[0] == "s"]
        with solver.solve(yield_=True) as handle:
            for model in handle:
                self.limit.count_windows(1)
                self.limit.report_progress()
                yield frozenset([pair for pair, atom in timed if model.is_true(atom)])

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


def _parse_timed_atom(name: str) -> tuple[int, int]:
    """Return the atom and the time of `s(atom,time)`."""
    atom, time = name[2:-1].split(",")
    return int(atom), int(time)


def _require_equal(one: str, other: str) -> list[str]:
    """Return constraints that make two texts equivalent."""
    if one == other:
        return []
    sides = ((one, other), (other, one))
    return [
        ":- " + ", ".join(([] if a == TRUE else [a]) + ([] if b == FALSE else [f"not {b}"])) + "."
        for a, b in sides
        if a != FALSE and b != TRUE
    ]
