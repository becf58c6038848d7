"""Hypothetical answers in a batch job: all facts of a bucket at once, then the answers that are still possible."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.data.dataset import Dataset
from tidelog.spark.awaiting.awaited_bucket import AwaitedBucket
from tidelog.spark.plan.job_plan import JobPlan
from tidelog.spark.worker.batch_worker import Worker, make_state_rows, run_per_bucket
from tidelog.spark.worker.packed_rows import FACTS, Row
from tidelog.timeline.interval import Time


def make_awaiter(job: JobPlan, background: tuple[bytes, ...], until: Time, *, saved: bool) -> Worker:
    """Make a function for `mapInArrow` that gives the hypothetical answers once all facts have arrived.

    The clock is then at `until`. If `saved`, it also gives the state of the buckets.
    """
    plan = job.awaited
    assert plan is not None

    def evaluate(bucket: int, rows: list[Row], known: Dataset) -> Iterator[list[Row]]:
        engine = AwaitedBucket.new(job, plan, bucket, known)
        yield engine.process_history([row.payload for row in rows if row.kind == FACTS], until)
        if saved:
            yield from make_state_rows(engine.save())

    return run_per_bucket(job, plan.number, background, evaluate)
