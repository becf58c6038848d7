"""Choose how to find stable models, and fall back to another method where the first one gives up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from tidelog.errors import Undecided
from tidelog.language.fact_text import format_atom
from tidelog.language.hidden_predicates import is_hidden
from tidelog.stable.forward_solver import ForwardSolver
from tidelog.stable.grounding import GroundAtom, Grounding
from tidelog.stable.normal_form import orient_forward
from tidelog.stable.problem import Problem
from tidelog.stable.question import Question
from tidelog.stable.search_limits import SearchLimit
from tidelog.stable.two_way_solver import TwoWaySolver
from tidelog.stable.window_paths import Trace

Answer = TypeVar("Answer")


class SolvedComponent(Protocol):
    """A component of a ground program and its models."""

    @property
    def atoms(self) -> Sequence[GroundAtom]:
        """The atoms, in the order of their bits in slices."""

    @property
    def offsets(self) -> Sequence[int]:
        """How much later than it holds each atom is stored in a trace."""

    @property
    def visible(self) -> Sequence[int]:
        """The positions of the atoms to show."""

    @property
    def mirrored(self) -> bool:
        """Whether time runs backwards in traces."""

    def is_satisfiable(self) -> bool:
        """Tell whether there is a model; may raise `Undecided`."""

    def traces(self) -> Iterator[Trace]:
        """Yield one model for each way in which the visible atoms can hold on LO..HI; may raise `Undecided`."""

    def optimal_traces(self, weights: Mapping[int, int]) -> Iterator[Trace]:
        """Yield those of least cost among the traces, where there are any; may raise `Undecided`.

        `weights` are the costs of visible atoms, by position, for each time of LO..HI at which they hold."""

    def consequences(self, brave: bool) -> Iterator[tuple[int, int, int]]:
        """Yield spans of times that cover LO..HI, each with the visible atoms that hold in some or in all models.

        Called only where there is a model; may raise `Undecided`."""


class Solver(Protocol):
    """A method of finding the stable models of a problem."""

    grounding: Grounding

    def solve(self, lo: int, hi: int, question: Question | None = None) -> Iterator[SolvedComponent]:
        """Yield the components of the ground program, to be shown on LO..HI, with only the models in question."""


def solve_with_first(problem: Problem, limit: SearchLimit, ask: Callable[[Solver], Answer]) -> Answer:
    """Return the answer of the first solver that does not raise `Undecided`."""
    undecided = None
    for solver in build_solvers(problem, limit):
        try:
            return ask(solver)
        except Undecided as reason:
            undecided = undecided or reason
    assert undecided is not None
    raise undecided


def build_solvers(problem: Problem, limit: SearchLimit) -> Iterator[Solver]:
    """Yield the solvers to try, in order.

    The first follows the direction in which the rules propagate, if there is one, as long as there are few choices:
    each time point lists all of its slices. With more choices, components whose atoms hold only in a finite range are
    one clingo program each. If there are others, the first solver goes on up to its limit. Where there is no direction,
    or that limit is reached, the last one searches for models that repeat at both ends.
    """
    program = orient_forward(problem.rules)
    if program is not None:
        yield ForwardSolver(problem, program, limit.restart_with_few_choices())
        yield TwoWaySolver(problem, limit.restart(), bounded_only=True)
        yield ForwardSolver(problem, program, limit)
    yield TwoWaySolver(problem, limit.restart())


def find_conflict(components: Iterable[SolvedComponent]) -> SolvedComponent | None:
    """Return a component without a model; None if every component has one.

    One without a model settles the question, even if nothing is known about others.
    """
    undecided = None
    for component in components:
        try:
            if not component.is_satisfiable():
                return component
        except Undecided as problem:
            undecided = problem
    if undecided is not None:
        raise undecided
    return None


def name_atoms(component: SolvedComponent, problem: Problem) -> tuple[str, ...]:
    """Return the atoms that a component derives or, if it derives none, those that it reads, as sorted text."""
    shown = [component.atoms[i] for i in component.visible] or component.atoms
    values = problem.data.symbols.value
    return tuple(sorted(format_atom(name, [*map(values, args)]) for name, args in shown if not is_hidden(name)))
