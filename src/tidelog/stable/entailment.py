"""`stable_entails`: whether a fact holds in some stable model, or in all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.analysis.query_names import known_predicates, require_known_predicates
from tidelog.data.data_frames import DataLike, to_dataset
from tidelog.errors import Undecided
from tidelog.language.syntax import Fact
from tidelog.model import Answer
from tidelog.stable.clingo_control import create_control
from tidelog.stable.problem import Problem, prepare_problem, require_integer_timeline, to_integer_pair
from tidelog.stable.question import Question
from tidelog.stable.search_limits import MOST_WINDOWS, Progress, SearchLimit
from tidelog.stable.solver_choice import Solver, find_conflict, solve_with_first
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from tidelog.language.program import Program


def stable_entails(
    program: Program,
    data: DataLike,
    fact: str | Fact,
    *,
    mode: str = "cautious",
    timeline: TimelineName | None = None,
    progress: Progress | None = None,
    most: int = MOST_WINDOWS,
) -> Answer:
    """Tell whether a fact holds, at every point of its interval, in some stable model or in all of them.

    `mode="brave"` asks about some model, `mode="cautious"` about all. The answer is `UNKNOWN` if the search visits more
    than `most` windows.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("P :- not Q. Q :- not P.")
    >>> tl.stable.stable_entails(program, tl.Dataset(), "P@[0,inf)", mode="brave")
    <Answer.YES: 'yes'>
    >>> tl.stable.stable_entails(program, tl.Dataset(), "P@[0,inf)", mode="cautious")
    <Answer.NO: 'no'>
    """
    if mode not in ("brave", "cautious"):
        raise ValueError(f"mode is brave or cautious, not {mode!r}")
    require_integer_timeline(timeline)
    create_control()  # fail early if clingo is missing
    fact = program.to_fact(fact)
    data = to_dataset(data)
    require_known_predicates(
        [fact.predicate], known_predicates(program, (predicate for predicate, _ in data.relations))
    )
    problem = prepare_problem(program, data, fact, query=fact.predicate)
    limit = SearchLimit(most, progress)
    try:
        return _answer(problem, fact, mode == "brave", limit)
    except Undecided:
        return Answer.UNKNOWN


def _answer(problem: Problem, fact: Fact, brave: bool, limit: SearchLimit) -> Answer:
    """Answer by asking whether there is a model in which the fact holds (brave) or fails (cautious)."""
    atom = fact.predicate, tuple(problem.data.symbols.intern(value) for value in fact.args)
    pair = to_integer_pair(fact.interval)

    def ask(solver: Solver) -> bool:
        def has_model(question: Question | None) -> bool:
            return find_conflict(solver.solve(0, 0, question)) is None

        if pair is not None and solver.grounding.is_derivable(atom):
            return has_model(Question(atom, pair, fails=not brave)) is brave
        # No rule derives the atom: in every model it holds where the data says so, and nowhere else.
        holds = pair is None or any(lo <= pair[0] and pair[1] <= hi for lo, hi in problem.facts.get(atom, ()))
        return holds and has_model(None) if brave else holds or not has_model(None)

    return Answer.YES if solve_with_first(problem, limit, ask) else Answer.NO
