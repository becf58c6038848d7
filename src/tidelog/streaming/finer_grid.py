"""Take steps of a stream, on a finer grid from where a duration is compared with a value between two ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.data.relation import finer, refine_pairs
from tidelog.engine import retention
from tidelog.engine.fact_store import Int64s
from tidelog.engine.store_tables import ARITY
from tidelog.engine.stream_kernel import END, FOLLOWING_END, PHASE, POSITION, STOP, WORK, Todo
from tidelog.errors import Diagnostic, Inconsistent, TidelogError
from tidelog.numeric.refinement import FinerGridNeeded

if TYPE_CHECKING:
    from tidelog.streaming.query_evaluation import Evaluation


def take_steps(
    evaluation: Evaluation, todo: Todo, first: int, stop: int
) -> tuple[retention.Found, Int64s, int, Inconsistent | None]:
    """Take steps as `Stepper.take` does, and refine the grid if aggregations need that."""
    while True:
        try:
            return evaluation.stepper.take(
                evaluation.engine, evaluation.task, evaluation.at, evaluation.output, todo, first, stop, evaluation
            )
        except FinerGridNeeded as needed:
            if evaluation.fixed_grid:
                raise _grid_error(evaluation, needed) from None
            assert stop == first + 1, "with numbers, one step is taken at a time"
            _refine_within_step(evaluation, needed.denominator)


def refine_todo(todo: Todo, evaluation: Evaluation, denominator: int) -> Todo:
    """Return steps, which are on the grid of a denominator, on the grid of an evaluation."""
    factor = evaluation.grid.denominator // denominator
    if factor == 1:
        return todo
    records = todo.records.copy()
    at = 0
    while at < todo.record_ends[-1]:
        lo, hi = slice(at + 1, at + 2), slice(at + 2, at + 3)
        records[lo], records[hi] = refine_pairs(records[lo], records[hi], factor)
        at += 3 + int(evaluation.store.preds[records[at], ARITY])
    clocks, lasts = refine_pairs(todo.clocks, todo.lasts, factor)
    return todo._replace(clocks=clocks, lasts=lasts, records=records, times=todo.times * factor)


def _refine_within_step(evaluation: Evaluation, denominator: int) -> None:
    """Refine the grid while a step evaluates: its facts are there, and what is complete is evaluated again."""
    before = evaluation.grid.denominator
    evaluation.refine(denominator)
    at = evaluation.at
    at[STOP] = finer(int(at[STOP]), evaluation.grid.denominator // before)
    at[POSITION], at[END], at[FOLLOWING_END], at[PHASE] = 0, 0, 0, WORK


def _grid_error(evaluation: Evaluation, needed: FinerGridNeeded) -> TidelogError:
    assert needed.origin is not None
    rule = evaluation.form.source.rules[needed.origin]
    message = f"`{rule.text}` compares a duration with a computed value that has the denominator {needed.denominator}"
    return TidelogError(Diagnostic("TL314", message, rule.place))
