"""Save and restore what can still be corrected, beside the oldest checkpoint, which is saved as an evaluation is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tidelog.data.relation import finer
from tidelog.engine.fact_store import Rows
from tidelog.engine.stream_kernel import CLOSED, NOW
from tidelog.streaming.answer_segments import TimedRows
from tidelog.streaming.assertion_ledger import AssertionLedger
from tidelog.streaming.checkpoints import Checkpoint
from tidelog.streaming.marks import mark_evaluation

if TYPE_CHECKING:
    from tidelog.streaming.corrections import Corrections


def dump_corrections(corrections: Corrections) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return everything but the oldest checkpoint, as JSON values and arrays."""
    evaluation = corrections.evaluation
    rows, arrays = corrections.ledger.state()
    denominator, given = corrections.answers.state(evaluation.task.arity, evaluation.grid.dense)
    meta = {
        "length": str(corrections.length),
        "denominator": evaluation.grid.denominator,
        "epoch": corrections.checkpoints[0].epoch,
        "now": int(evaluation.at[NOW]),
        "over": bool(evaluation.at[CLOSED] >= evaluation.at[NOW]),
        "stops": [[checkpoint.now, checkpoint.over] for checkpoint in corrections.checkpoints[1:]],
        "first_clock": corrections.first_clock,
        "first_start": corrections.first_start,
        "ledger": rows,
        "given": denominator,
        "unmatched": corrections.unmatched_before,
        "violations": sorted(corrections.violations),
    }
    return meta, arrays | given


def restore_corrections(
    corrections: Corrections, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], ids: Any, changed: bool
) -> None:
    """Take over a saved state; the evaluation is that of its oldest checkpoint.

    With changed rules, the next step reports how the answers that can still be corrected differ.
    """
    evaluation = corrections.evaluation
    factor = evaluation.grid.denominator // meta["denominator"]
    corrections.ledger = AssertionLedger.restore(meta["ledger"], arrays, ids)
    corrections.ledger.refine(factor)
    corrections.first_clock = finer(meta["first_clock"], factor)
    corrections.first_start = finer(meta["first_start"], factor)
    corrections.unmatched_before, corrections.violations = meta["unmatched"], set(meta["violations"])
    base = Checkpoint(mark_evaluation(evaluation, numbers=True), meta["epoch"])
    corrections.checkpoints, corrections.epoch = [base], base.epoch + 1
    stops = [*meta["stops"], [meta["now"], meta["over"]]]
    if stops[-1][0] > base.now:
        corrections.catch_up(base.epoch, [(finer(at, factor), is_over) for at, is_over in stops if at > base.now])
    args, times = arrays["given.args"], arrays["given.times"]
    if changed and len(args) == evaluation.task.arity:
        rows = Rows(args if ids is None else ids[args], times[0], times[1])
        corrections.answers.take_after(base.epoch)
        corrections.answers.put(corrections.epoch, TimedRows(rows, meta["given"]))
        corrections.is_outdated = True
