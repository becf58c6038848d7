"""Late facts on Spark: separate facts that arrive later than the delay allows, and count them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import ceil

from tidelog.compiler.prepare_facts import to_timeline
from tidelog.compiler.validate import choose_timeline
from tidelog.data import wire_format
from tidelog.data.deletions import strip_mark
from tidelog.language.hidden_predicates import TIMES
from tidelog.spark.plan.job_plan import JobPlan
from tidelog.spark.worker.history_slices import select_facts
from tidelog.spark.worker.packed_rows import LATE, OUTPUT_STAGE, STATS, Row
from tidelog.timeline.interval import Time


def split_late_facts(
    job: JobPlan, stage: int, bucket: int, facts: Sequence[bytes], clock: Time
) -> tuple[list[bytes], list[Row]]:
    """Return the facts that are not later than delay or corrections allow, and rows for late facts and their number.

    A late fact that goes to several buckets is reported by one of them.
    """
    if isinstance(clock, float):
        return list(facts), []
    dense = choose_timeline(job.program, job.stages[0].timeline) == "rational"
    kept: list[bytes] = []
    rows: list[Row] = []
    for payload in facts:
        head = wire_format.read_header(payload)
        predicate = strip_mark(head.predicate)
        earliest = clock - job.delay(predicate)
        bound = ceil(2 * earliest * head.denominator) if dense else ceil(earliest)
        if job.corrections is not None:
            # The time of an interval is its start, open or not, as in `streaming.corrections`.
            bound = 2 * ceil(earliest * head.denominator) if dense else ceil(earliest)
        if head.least >= (bound if dense else 2 * bound):
            kept.append(payload)
            continue
        piece = wire_format.unpack(payload)
        if job.corrections is None:
            late = to_timeline(piece.lo, piece.hi, dense)[0] < bound
        else:
            late = (piece.lo >> 1) * (2 if dense else 1) < bound
        if not late.any():
            kept.append(payload)
            continue
        if not late.all():
            kept.append(select_facts(piece, ~late))
        if piece.predicate == TIMES:
            continue
        first = job.routes[job.sources[predicate]][0]
        if (first.stage, first.name) == (stage, predicate) and (first.key is not None or not bucket):
            rows.append(Row(bucket, OUTPUT_STAGE, LATE, select_facts(piece, late)))
            rows.append(Row(bucket, OUTPUT_STAGE, STATS, json.dumps({"late": int(late.sum())}).encode()))
    return kept, rows
