"""The plans that a run uses, as text: `tidelog check --plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.analysis.query_names import known_predicates, require_known_predicates
from tidelog.batch import choose_queries, prepare_run
from tidelog.compiler.choose_grid import find_grid
from tidelog.compiler.compiled_program import Memory
from tidelog.compiler.plan_text import format_plans
from tidelog.engine.fixpoint import executed_plans
from tidelog.language.program import Program
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset


def batch_plans(
    program: Program, query: str | None = None, *, data: Dataset | None = None, timeline: TimelineName | None = None
) -> str:
    """Evaluate a program over data (none unless given) and return the plans that were run, as text.

    >>> program = Program.parse("Boxplus[0,2] A(X) :- B(X), not Diamondminus[1,1] C(X).")
    >>> print(batch_plans(program))
    part 1: A
      Boxplus[0,2] A(X)
        new B(X)
        without Diamondminus[1,1] C(X)
    """
    from tidelog.data.dataset import Dataset

    data = data or Dataset()
    run = prepare_run(program, data, choose_queries(program, data, query), timeline=timeline)
    return format_plans(run.compiled, executed_plans(run.problem))


def stream_plans(
    program: Program, query: str, *, memory: Memory | None = None, timeline: TimelineName | None = None
) -> str:
    """Return the plans of a standing query at the beginning of its stream, as text.

    >>> print(stream_plans(Program.parse("A(X) :- B(X), Diamondminus[1,2] C(X)."), "A", memory="generic"))
    part 1: A
      A(X)
        new B(X)
        the Diamondminus[1,2] C(X)
      A(X)
        new Diamondminus[1,2] C(X)
        the B(X)
    """
    from tidelog.streaming.compiled_query import choose_memory, compile_query
    from tidelog.streaming.stream_plans import plan_stream

    require_known_predicates([query], known_predicates(program))
    grid = find_grid(program, timeline)
    compiled = compile_query(program, query, grid, choose_memory(program, query, grid, memory))
    return format_plans(compiled, plan_stream(compiled, lambda name: 0).plans)
