"""Begin a recursion through time in a stream: evaluate up to the first change, and check that it is empty before."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidelog.engine import retention
from tidelog.engine.stream_kernel import EVALUATED, Todo
from tidelog.errors import Inconsistent, TidelogError
from tidelog.streaming.finer_grid import refine_todo, take_steps
from tidelog.streaming.step_layout import first_start
from tidelog.streaming.stepper import NOTHING, make_quiet_step
from tidelog.timeline.grid import NEG_INF, POS_INF

if TYPE_CHECKING:
    from tidelog.streaming.query_evaluation import Evaluation


class Beginning(NamedTuple):
    """A recursion through time up to the first change: answers, a violated constraint, and the steps that follow.

    The steps are on the grid of the evaluation, which may be a finer one by then.
    """

    todo: Todo
    found: retention.Found
    violated: Inconsistent | None


def begin_recursion(evaluation: Evaluation, todo: Todo) -> Beginning:
    """Evaluate a recursion through time up to the first change; raise if it holds there."""
    at, store = evaluation.at, evaluation.store
    if not evaluation.form.slice or at[EVALUATED] > NEG_INF:
        return Beginning(todo, retention.Found(NOTHING.astype(np.int32), NOTHING, NOTHING), None)
    from tidelog.engine.temporal_recursion import require_beginning

    known = [*store.deferred().values(), *map(store.rows, range(len(evaluation.form.names)))]
    # A fact that has always held may end first, and what follows from it would soon be forgotten.
    changes = [int(np.where(rows.lo > NEG_INF, rows.lo, rows.hi).min(initial=POS_INF)) for rows in known]
    before, first, denominator = make_quiet_step(), first_start(todo, store.preds), evaluation.grid.denominator
    before.clocks[:], before.over[:] = min(*changes, first, int(todo.clocks[0])) - 1, True
    found, _, _, violated = take_steps(evaluation, before, 0, 1)
    try:
        names = evaluation.form.names
        require_beginning(evaluation.form, lambda name: store.rows(names.index(name)))
    except TidelogError:
        at[EVALUATED] = NEG_INF  # so that later calls raise, too
        raise
    return Beginning(refine_todo(todo, evaluation, denominator), found, violated)
