"""How far the answers of a query are known: the bound, the intervals open there, and the pieces certain up to it."""

from __future__ import annotations

from tidelog.engine.fact_store import Rows
from tidelog.engine.stream_kernel import FRONTIER
from tidelog.streaming.answers import Answers
from tidelog.streaming.query_evaluation import Evaluation
from tidelog.timeline.grid import NEG_INF, Grid
from tidelog.timeline.interval import INF, Bound


def compute_complete_bound(evaluation: Evaluation) -> Bound:
    """Return the bound up to which all answers are known."""
    return compute_bound_at(evaluation.grid, evaluation.complete)


def compute_bound_at(grid: Grid, at: int) -> Bound:
    """Return a position of a grid as a bound."""
    if at <= NEG_INF:
        return -INF, False
    if grid.dense and at & 1:
        return grid.to_time(at + 1), False
    return grid.to_time(at), True


def find_holding(evaluation: Evaluation, at: int, since: int = NEG_INF - 1) -> Rows:
    """Return the intervals of the query that hold at a position and began after another."""
    rows = evaluation.calendar.clip(evaluation.store.rows(evaluation.task.query))
    return rows.where((rows.lo <= at) & (rows.hi >= at) & (rows.lo > since))


def find_open_intervals(evaluation: Evaluation, after: Bound | None) -> tuple[Answers, Bound]:
    """Find the intervals that began after a bound, if given, and are not known to end; return also the bound."""
    grid, since = evaluation.grid, NEG_INF - 1
    if after is not None and not isinstance(after[0], float):
        ticks = int(after[0] * grid.denominator) * grid.tick
        since = ticks if after[1] else ticks - 1
    rows = find_holding(evaluation, evaluation.complete, since)
    columns = evaluation.answers(rows)
    # Where evaluation was deferred, nothing begins or ends.
    frontier = int(evaluation.at[FRONTIER])
    if frontier <= NEG_INF:
        return Answers(0, columns, 0, columns.symbols), (-INF, False)
    known = frontier - evaluation.task.ahead
    included = grid.dense and not known & 1
    return Answers(len(rows), columns, 0, columns.symbols), (grid.to_time(known if included else known + 1), included)


def find_certain_pieces(evaluation: Evaluation, ended: Rows, reported: int) -> Rows:
    """Clip the intervals that ended or still hold to the span after the position `reported` that is certain now."""
    until = evaluation.complete
    holding = find_holding(evaluation, until)
    # Pieces that end at the last position of the previous step were reported then.
    rows = Rows.concatenate([ended.where(ended.hi < until), holding], len(holding.args))
    return rows.clip(reported if reported == NEG_INF else reported + 1, until)
