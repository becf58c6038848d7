"""`stable_models`: the stable models of a program and its data."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, islice
from typing import TYPE_CHECKING

from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.time_like import TimeLike, to_time
from tidelog.stable.atom_history import AtomHistory, build_history_from_data, build_history_from_trace
from tidelog.stable.clingo_control import create_control
from tidelog.stable.grounding import GroundAtom
from tidelog.stable.problem import Problem, prepare_problem, require_finite_range, require_integer_timeline
from tidelog.stable.search_limits import MOST_WINDOWS, Progress, SearchLimit
from tidelog.stable.solver_choice import SolvedComponent, Solver, find_conflict, name_atoms, solve_with_first
from tidelog.stable.stable_model import StableModel
from tidelog.stable.weights import Weights, WeightsLike, scale_weights
from tidelog.stable.window_paths import Trace
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from tidelog.data.data_frames import DataLike
    from tidelog.language.program import Program


def stable_models(
    program: Program,
    data: DataLike,
    *,
    models: int = 1,
    between: tuple[TimeLike, TimeLike] | None = None,
    timeline: TimelineName | None = None,
    progress: Progress | None = None,
    most: int = MOST_WINDOWS,
    weights: WeightsLike | None = None,
) -> StableModels:
    """Find up to `models` stable models over the integer timeline, or all of them for `models=0`.

    Models count as different if they differ on LO..HI, which is `between`, or the range of the data by default. Raises
    `Undecided` if the search visits more than `most` windows.

    With `weights`, such as `{"Late": 5, "Fare(_,W)": "W"}`, only models of least cost count: a fact costs its weight at
    every time of LO..HI at which it holds, and a model the sum. Each model then has a `cost`.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("P :- not Q. Q :- not P.")
    >>> found = tl.stable_models(program, tl.Dataset(), models=0, between=(0, 1))
    >>> [[str(fact.predicate) + "@" + str(fact.interval) for fact in model.facts] for model in found]
    [['P@[0,1]'], ['P@0', 'Q@1'], ['P@1', 'Q@0'], ['Q@[0,1]']]
    """
    require_integer_timeline(timeline)
    create_control()  # fail early if clingo is missing
    problem = prepare_problem(program, data)
    weigh = None if weights is None else Weights.parse(weights, _find_arities(problem))
    lo, hi = problem.range() if between is None else require_finite_range(*(to_time(end) for end in between))
    return StableModels(problem, lo, hi, models, SearchLimit(most, progress), weigh)


class StableModels:
    """The stable models found: iterate to compute them one by one. `satisfiable` says whether there is one.

    If there is none, `conflict` has the atoms, as text, of a part of the program that has none.
    """

    def __init__(
        self, problem: Problem, lo: int, hi: int, models: int, limit: SearchLimit, weights: Weights | None = None
    ) -> None:
        self.lo, self.hi = lo, hi
        self._problem, self._number, self._weights = problem, models, weights

        def ask(solver: Solver) -> tuple[SolvedComponent | None, list[_ComponentModels]]:
            components = list(solver.solve(lo, hi))
            conflict = find_conflict(components)
            if weights is None or conflict is not None:
                return conflict, [_ComponentModels(component, component.traces()) for component in components]
            optimal = self._find_optimal(components)
            # The first model of each component is found here, where another solver can be tried if there are too many.
            return None, [_ComponentModels(component, chain([next(ways)], ways)) for component, ways in optimal]

        conflict, self._components = solve_with_first(problem, limit, ask)
        self.satisfiable = conflict is None
        self.conflict = () if conflict is None else name_atoms(conflict, problem)

    def __iter__(self) -> Iterator[StableModel]:
        return islice(self._all(), self._number or None)

    def _all(self) -> Iterator[StableModel]:
        """Yield all models, as combinations of models of the components."""
        if not self.satisfiable:
            return
        given: dict[GroundAtom, AtomHistory] = {
            atom: build_history_from_data(pairs)
            for atom, pairs in self._problem.facts.items()
            if not is_hidden(atom[0])
        }
        for combination in _combine(self._components):
            histories = dict(given)
            for component_histories in combination:
                histories.update(component_histories)
            symbols, dates = self._problem.data.symbols, self._problem.data.dates
            yield StableModel(histories, symbols, dates, self.lo, self.hi, self._compute_cost(histories))

    def _find_optimal(self, components: list[SolvedComponent]) -> list[tuple[SolvedComponent, Iterator[Trace]]]:
        """Return the components, each with its models of least cost."""
        atoms = {component.atoms[i] for component in components for i in component.visible}
        weights = scale_weights({atom: self._weigh(atom) for atom in atoms})
        found: list[tuple[SolvedComponent, Iterator[Trace]]] = []
        for component in components:
            mine = {i: weights[component.atoms[i]] for i in component.visible if component.atoms[i] in weights}
            found.append((component, component.optimal_traces(mine) if mine else component.traces()))
        return found

    def _weigh(self, atom: GroundAtom) -> Fraction:
        symbols = self._problem.data.symbols
        assert self._weights is not None
        return self._weights.of(atom[0], [symbols.value(a) for a in atom[1]])

    def _compute_cost(self, histories: dict[GroundAtom, AtomHistory]) -> Fraction | None:
        """Return what a model costs on LO..HI; None without weights."""
        if self._weights is None:
            return None
        cost = Fraction(0)
        for atom, history in histories.items():
            weight = self._weigh(atom)
            if weight:
                cost += weight * sum(last - first + 1 for first, last in history.within(self.lo, self.hi))
        return cost


def _find_arities(problem: Problem) -> dict[str, int]:
    """Return the predicates of rules and data that a weight may be given for, with their arities."""
    known = dict(problem.data.relations.keys()) | dict(problem.program.predicates)
    return {name: arity for name, arity in known.items() if not is_hidden(name)}


class _ComponentModels:
    """The models of one component, each computed when it is first asked for."""

    def __init__(self, component: SolvedComponent, traces: Iterator[Trace]) -> None:
        self._component = component
        self._traces = traces
        self._known: list[dict[GroundAtom, AtomHistory]] = []

    def get(self, number: int) -> dict[GroundAtom, AtomHistory] | None:
        """Return the histories of the visible atoms in a model; None where there are fewer models."""
        component = self._component
        while len(self._known) <= number:
            trace = next(self._traces, None)
            if trace is None:
                return None
            self._known.append(
                {
                    component.atoms[i]: build_history_from_trace(trace, i, component.offsets[i], component.mirrored)
                    for i in component.visible
                }
            )
        return self._known[number]


def _combine(components: list[_ComponentModels]) -> Iterator[list[dict[GroundAtom, AtomHistory]]]:
    """Yield every combination of one model per component, varying the last component fastest."""
    numbers = [0] * len(components)
    while True:
        models = [component.get(number) for component, number in zip(components, numbers, strict=True)]
        combination = [model for model in models if model is not None]
        assert len(combination) == len(components), "every satisfiable component has a model"
        yield combination
        position = len(components) - 1
        while position >= 0:
            numbers[position] += 1
            if components[position].get(numbers[position]) is not None:
                break
            numbers[position] = 0
            position -= 1
        else:
            return
