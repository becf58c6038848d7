"""Stable models of a program and data, and what holds in some and in all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from tidelog.analysis.queries import known_predicates, require_known
from tidelog.language.facts import parse_fact
from tidelog.language.syntax import Fact
from tidelog.reasoning import Answer, AnyTime, Undecided, time_of
from tidelog.stable.courses import Course, of_data, of_trace
from tidelog.stable.forward import Forward, Part, Question
from tidelog.stable.grounding import Ground
from tidelog.stable.limits import MOST_WINDOWS, Limit
from tidelog.stable.models import StableModel
from tidelog.stable.normal import directed
from tidelog.stable.problem import Problem, pair_of, prepared, refuse_endless, refuse_rationals, stretch
from tidelog.stable.search import Search, SearchPart
from tidelog.stable.solver import control
from tidelog.stable.walk import Trace

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.language.program import Program

Progress = Callable[[str], None]
T = TypeVar("T")


def stable_models(
    program: Program,
    data: Dataset,
    *,
    models: int = 1,
    between: tuple[AnyTime, AnyTime] | None = None,
    timeline: str | None = None,
    progress: Progress | None = None,
    most: int = MOST_WINDOWS,
) -> StableModels:
    """The stable models over the integer timeline that differ on LO..HI (`between`, the data's range unless given): up
    to so many, or all of them for `models=0`.

    Raises `Undecided` where the search, which looks at no more than `most` windows, does not come to an end.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("P :- not Q. Q :- not P.")
    >>> found = tl.stable_models(program, tl.Dataset(), models=0, between=(0, 1))
    >>> [[str(fact.predicate) + "@" + str(fact.interval) for fact in model.facts] for model in found]
    [['P@[0,1]'], ['P@0', 'Q@1'], ['P@1', 'Q@0'], ['Q@[0,1]']]
    """
    refuse_rationals(timeline)
    control()
    problem = prepared(program, data)
    lo, hi = problem.range() if between is None else stretch(*(time_of(end) for end in between))
    return StableModels(problem, lo, hi, models, Limit(most, progress))


def stable_entails(
    program: Program,
    data: Dataset,
    fact: str | Fact,
    *,
    mode: str = "cautious",
    timeline: str | None = None,
    progress: Progress | None = None,
    most: int = MOST_WINDOWS,
) -> Answer:
    """Whether a fact holds, at every point of its interval, in some stable model (`mode="brave"`) or in all of them
    (`mode="cautious"`).

    >>> import tidelog as tl
    >>> program = tl.Program.parse("P :- not Q. Q :- not P.")
    >>> tl.stable_entails(program, tl.Dataset(), "P@[0,inf)", mode="brave")
    <Answer.YES: 'yes'>
    >>> tl.stable_entails(program, tl.Dataset(), "P@[0,inf)", mode="cautious")
    <Answer.NO: 'no'>
    """
    if mode not in ("brave", "cautious"):
        raise ValueError(f"mode is brave or cautious, not {mode!r}")
    refuse_rationals(timeline)
    control()
    if isinstance(fact, str):
        temporal = program.temporal.temporal if program.temporal else frozenset()
        fact, _ = parse_fact(fact, "<fact>", temporal=temporal)
    require_known([fact.predicate], known_predicates(program, (predicate for predicate, _ in data.relations)))
    problem = prepared(program, data, fact)
    limit = Limit(most, progress)
    try:
        return _answer(problem, fact, mode == "brave", limit)
    except Undecided:
        return Answer.UNKNOWN


def _answer(problem: Problem, fact: Fact, brave: bool, limit: Limit) -> Answer:
    atom = fact.predicate, tuple(problem.data.symbols.intern(value) for value in fact.args)
    pair = pair_of(fact.interval)

    def ask(method: Forward | Search) -> bool:
        def some_model(question: Question | None) -> bool:
            return _all_satisfiable(method.parts(0, 0, question))

        if pair is not None and method.grounding.derived(atom):
            return some_model(Question(atom, pair, fails=not brave)) is brave
        # No rule derives the atom: it holds in all models where the data has it, and nowhere else.
        holds = pair is None or any(lo <= pair[0] and pair[1] <= hi for lo, hi in problem.facts.get(atom, ()))
        return holds and some_model(None) if brave else holds or not some_model(None)

    return Answer.YES if _decided(problem, limit, ask) else Answer.NO


def _methods(problem: Problem, limit: Limit) -> Iterator[Forward | Search]:
    """How models are found: along the direction in which the rules propagate, if there is one; if there is none, or too
    much to look at, by the search for models that repeat."""
    program = directed(problem.rules)
    refuse_endless(problem, mirrored=program is not None and program.mirrored)
    if program is not None:
        yield Forward(problem, program, limit)
    yield Search(problem, limit.again())


def _decided(problem: Problem, limit: Limit, ask: Callable[[Forward | Search], T]) -> T:
    """The answer of the first method that has one."""
    undecided = None
    for method in _methods(problem, limit):
        try:
            return ask(method)
        except Undecided as reason:
            undecided = undecided or reason
    assert undecided is not None
    raise undecided


def _all_satisfiable(parts: Iterable[Part | SearchPart]) -> bool:
    """Whether every part has a model. One that has none decides it, whatever is not known of others."""
    undecided = None
    for part in parts:
        try:
            if not part.satisfiable():
                return False
        except Undecided as problem:
            undecided = problem
    if undecided is not None:
        raise undecided
    return True


class StableModels:
    """The stable models found, lazily: iterate for them. `satisfiable` says whether there is one."""

    def __init__(self, problem: Problem, lo: int, hi: int, models: int, limit: Limit) -> None:
        self.lo, self.hi = lo, hi
        self._problem, self._number = problem, models

        def ask(method: Forward | Search) -> tuple[bool, list[_Kept]]:
            parts: list[Part | SearchPart] = [*method.parts(lo, hi)]
            return _all_satisfiable(parts), [_Kept(part) for part in parts]

        self.satisfiable, self._parts = _decided(problem, limit, ask)

    def __iter__(self) -> Iterator[StableModel]:
        return islice(self._all(), self._number or None)

    def _all(self) -> Iterator[StableModel]:
        if not self.satisfiable:
            return
        given: dict[Ground, Course] = {
            atom: of_data(pairs) for atom, pairs in self._problem.facts.items() if not atom[0].startswith("$")
        }
        for choice in _products(self._parts):
            found = dict(given)
            for some in choice:
                found.update(some)
            yield StableModel(found, self._problem.data.symbols, self._problem.data.dates, self.lo, self.hi)


class _Kept:
    """The courses of a part's models, made when they are first asked for."""

    def __init__(self, part: Part | SearchPart) -> None:
        self._part = part
        self._more = part.traces()
        self._known: list[dict[Ground, Course]] = []

    def get(self, number: int) -> dict[Ground, Course] | None:
        while len(self._known) <= number:
            trace = next(self._more, None)
            if trace is None:
                return None
            self._known.append(_shown(self._part, trace))
        return self._known[number]


def _shown(part: Part | SearchPart, trace: Trace) -> dict[Ground, Course]:
    return {part.atoms[i]: of_trace(trace, i, part.offsets[i], part.mirrored) for i in part.visible}


def _products(parts: list[_Kept]) -> Iterator[list[dict[Ground, Course]]]:
    """Every choice of one model of each part, the last part's changing fastest."""
    numbers = [0] * len(parts)
    while True:
        choice = [part.get(number) for part, number in zip(parts, numbers, strict=True)]
        found = [some for some in choice if some is not None]
        assert len(found) == len(parts), "a part with a walk has a model"
        yield found
        place = len(parts) - 1
        while place >= 0:
            numbers[place] += 1
            if parts[place].get(numbers[place]) is not None:
                break
            numbers[place] = 0
            place -= 1
        else:
            return
