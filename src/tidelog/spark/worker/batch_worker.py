"""Batch jobs in the workers: all facts of a bucket in memory, evaluated as one model or replayed as one stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tidelog.batch import materialise
from tidelog.corrections.ledger import apply_deletions
from tidelog.data import wire_format
from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.time_like import TimeLike
from tidelog.spark.plan.job_plan import JobPlan
from tidelog.spark.worker.bucket import Bucket, BucketInput
from tidelog.spark.worker.bucket_program import (
    build_bucket_program,
    refuse_endless_calendar,
    select_background,
)
from tidelog.spark.worker.history_slices import split_by_time
from tidelog.spark.worker.packed_rows import (
    ANSWER,
    CLOCK,
    FACTS,
    OUTPUT_STAGE,
    STATE,
    Row,
    route_facts,
    rows_to_arrow,
    split_into_chunks,
)
from tidelog.streaming.state_format import unpack
from tidelog.timeline.interval import INF, Time, format_time, read_time

Between = tuple[TimeLike, TimeLike]
#: A function for `mapInArrow`.
Worker = Callable[[Iterator[Any]], Iterator[Any]]


def make_evaluator(job: JobPlan, stage: int, background: tuple[bytes, ...], between: Between | None) -> Worker:
    """Make a function for `mapInArrow` that computes the model of each bucket."""
    plan = job.stages[stage]

    def evaluate(bucket: int, rows: list[Row], known: Dataset) -> Iterator[list[Row]]:
        facts = (wire_format.unpack(row.payload) for row in rows if row.kind == FACTS)
        data = apply_deletions(wire_format.to_dataset(facts)) | select_background(plan, bucket, known)
        yield list(_evaluate_stage(job, stage, bucket, data, between if plan.is_last else None))

    return run_per_bucket(job, stage, background, evaluate)


def make_backfiller(job: JobPlan, stage: int, background: tuple[bytes, ...], until: Time) -> Worker:
    """Make a function for `mapInArrow` that replays the facts of each bucket in slices of time, and saves its state."""
    plan = job.stages[stage]

    def evaluate(bucket: int, rows: list[Row], known: Dataset) -> Iterator[list[Row]]:
        engine = Bucket.new(job, plan, bucket, known)
        facts = [row.payload for row in rows if row.kind == FACTS]
        end = BucketInput(until, [], [row.payload for row in rows if row.kind == CLOCK])
        last = min((read_time(json.loads(payload)[1]) for payload in end.clocks), default=-INF) if stage else until
        for begin, some in split_by_time(facts, last):
            send_clocks = begin > -INF and stage > 0
            clocks = [
                json.dumps([upstream, format_time(begin), False]).encode() for upstream in range(plan.upstream_buckets)
            ]
            yield engine.step(BucketInput(begin if stage == 0 else -INF, some, clocks if send_clocks else []))
        yield engine.step(end)
        yield from make_state_rows(engine.save())

    return run_per_bucket(job, stage, background, evaluate)


def make_state_rows(state: bytes) -> Iterator[list[Row]]:
    """Yield the state of a bucket in chunks."""
    meta, _ = unpack(state, "the state of a bucket")
    for number, chunk in enumerate(split_into_chunks(state)):
        address = json.dumps([meta["stage"], meta["t"], number]).encode()
        yield [Row(meta["bucket"], OUTPUT_STAGE, STATE, address + b"\n" + chunk)]


def run_per_bucket(
    job: JobPlan,
    stage: int,
    background: tuple[bytes, ...],
    evaluate: Callable[[int, list[Row], Dataset], Iterator[list[Row]]],
) -> Worker:
    """Collect the rows of each bucket of a stage and evaluate them; pass rows of other stages on."""
    keys = range(job.max_buckets)

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        own: dict[int, list[Row]] = {}
        for batch in batches:
            passing = []
            for row in zip(*(batch[name].to_pylist() for name in ("bucket", "stage", "kind", "payload")), strict=True):
                if row[1] == stage:
                    own.setdefault(row[0], []).append(Row(*row))
                else:
                    passing.append(Row(*row))
            if passing:
                yield rows_to_arrow(passing, keys)
        known = wire_format.to_dataset(map(wire_format.unpack, background))
        for bucket in sorted(own):
            for output in evaluate(bucket, own.pop(bucket), known):
                yield rows_to_arrow(output, keys)

    return work


def _evaluate_stage(job: JobPlan, stage: int, bucket: int, data: Dataset, between: Between | None) -> Iterator[Row]:
    plan = job.stages[stage]
    names = list(plan.stage.outputs)
    data.dates = data.dates or bool(job.program.calendars)  # which the driver has checked
    model = materialise(
        build_bucket_program(job, plan, bucket), data, query=names, between=between, timeline=plan.timeline
    )
    if model.cut:
        raise refuse_endless_calendar(model.cut)
    if model.repeats:
        raise TidelogError(
            Diagnostic(
                "TL304",
                f"answers repeat forever ({model.repeats[0].text()[2:]})",
                law="a DataFrame is finite",
                help="ask for a range of time: between=(LO, HI)",
            )
        )
    for relation, denominator in model.relations():
        if bucket and relation.predicate in plan.copied:
            continue
        if plan.is_last and relation.predicate == job.query:
            payload = wire_format.pack(model.symbols, denominator, data.dates, relation)
            yield Row(bucket, OUTPUT_STAGE, ANSWER, payload)
        yield from route_facts(model.symbols, denominator, data.dates, relation, plan.routes[relation.predicate])
