"""The DataFrame of a job: packed facts, then one operator per stage, batch or streaming."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING
from uuid import uuid4

from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.awaiting.awaited_worker import make_awaiter
from tidelog.spark.job.options import JobOptions
from tidelog.spark.job.shared_scans import Input, share_scans
from tidelog.spark.job.struct_types import declare_columns, read_struct_type
from tidelog.spark.plan.bucket_keys import choose_bucket_keys
from tidelog.spark.plan.fact_columns import FactColumns
from tidelog.spark.plan.job_plan import AwaitedStagePlan, JobPlan, StagePlan
from tidelog.spark.worker import packed_rows
from tidelog.spark.worker.batch_worker import Worker, make_backfiller, make_evaluator
from tidelog.spark.worker.fact_packer import make_packer
from tidelog.spark.worker.stable_worker import make_stable_solver
from tidelog.timeline.interval import Time, read_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData, SparkSession


@dataclass(frozen=True)
class JobInput:
    """A planned job with the DataFrames of facts that it sends to buckets, and the packed background facts."""

    plan: JobPlan
    facts: Mapping[str, tuple[DataFrame, FactColumns]]
    background: tuple[bytes, ...]
    options: JobOptions


def build_streaming_frame(spark: SparkSession, job: JobInput) -> DataFrame:
    """Build the packed rows of a streaming job, with one stateful operator per stage."""
    from tidelog.spark.awaiting.awaited_operator import AwaitedProcessor
    from tidelog.spark.worker.stateful_operator import BucketProcessor

    row_type = read_struct_type(packed_rows.ROW_SCHEMA)
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    keys = choose_bucket_keys(job.plan.max_buckets, partitions)
    clocks = [_read_wake_clock(spark, job, keys)]
    others: list[DataFrame] = []
    # The checkpoint relies on the order of sources. Rows that cannot be read do not move the clock.
    facts = {True: list[Input](), False: list[Input]()}
    for name, given in job.facts.items():
        facts[name not in job.options.clocked].append(given)
    facts[False] += ((frame, None) for frame in job.options.bad_rows)
    for timed, frames in ((True, clocks), (False, others)):
        schema = read_struct_type(packed_rows.TIMED_ROW_SCHEMA if timed else packed_rows.ROW_SCHEMA)
        for scan in share_scans(facts[timed], once=job.options.read_once):
            pack = make_packer(job.plan, scan.selections, keys, timed=timed, set_aside=job.options.set_aside)
            frames.append(scan.frame.mapInArrow(pack, schema))
    # The clock is Spark's watermark, the largest time of all rows. The time column is dropped before the first stage,
    # so Spark cannot drop late rows by it: the reasoner decides what is late.
    packed = _union([_union(clocks).withWatermark("time", "0 seconds").drop("time"), *others])
    run = uuid4().hex
    for stage in job.plan.all_stages:
        kind = AwaitedProcessor if isinstance(stage, AwaitedStagePlan) else BucketProcessor
        processor = kind(run, job.plan, stage.number, keys, job.background)
        mode = "eventTime" if stage.number == 0 else "none"
        initial = job.options.initial
        saved = None if initial is None else _saved_buckets(spark, initial, stage.number, keys)
        grouped = declare_columns(packed, row_type).groupBy("bucket")
        packed = grouped.transformWithStateInPandas(processor, row_type, "append", mode, saved)
    return declare_columns(packed, row_type)


def build_batch_frame(spark: SparkSession, job: JobInput, last: Time) -> DataFrame:
    """Build the packed rows of a batch job, with one function per stage; `last` is the clock at the end."""
    plan, row_type = job.plan, read_struct_type(packed_rows.ROW_SCHEMA)
    keys = tuple(range(plan.max_buckets))
    wakes = [
        (bucket, stage.number, packed_rows.WAKE, b"") for stage in plan.all_stages for bucket in range(stage.buckets)
    ]
    frames = [spark.createDataFrame(wakes, row_type)]
    inputs = [*job.facts.values(), *((frame, None) for frame in job.options.bad_rows)]
    for scan in share_scans(inputs, once=job.options.read_once):
        pack = make_packer(plan, scan.selections, keys, timed=False, set_aside=job.options.set_aside)
        frames.append(scan.frame.mapInArrow(pack, row_type))
    packed = declare_columns(_union(frames), row_type)
    for stage in plan.all_stages:
        partitioned = packed.repartitionById(plan.max_buckets, packed.bucket)
        packed = partitioned.mapInArrow(_make_worker(job, stage, last), row_type)
    return packed


def read_saved_clock(initial: DataFrame) -> Time:
    """Read the clock of a saved state."""
    times = [row.t for row in initial.where("stage = 0").select("t").distinct().collect()]
    if len(times) == 1:
        return read_time(str(times[0]))
    problem = f"the initial state has {len(times)} clocks" if times else "the initial state is empty"
    raise TidelogError(Diagnostic("TL401", problem, help="pass the `saved()` rows of one backfill"))


def _read_wake_clock(spark: SparkSession, job: JobInput, keys: tuple[int, ...]) -> DataFrame:
    from tidelog.spark.job.wake_clock import ClockSource

    spark.dataSource.register(ClockSource)
    options = {"keys": ",".join(map(str, keys)), "woken": str(job.plan.stages[0].buckets)}
    for name, value in (("every", job.options.heartbeat), ("until", job.options.until)):
        if value is not None:
            options[name] = str(value)
    return spark.readStream.format(ClockSource.name()).options(**options).load()


def _make_worker(job: JobInput, stage: StagePlan | AwaitedStagePlan, last: Time) -> Worker:
    if isinstance(stage, AwaitedStagePlan):
        return make_awaiter(job.plan, job.background, last, saved=job.options.backfill)
    if job.options.backfill:
        return make_backfiller(job.plan, stage.number, job.background, last)
    if job.options.stable is not None:
        assert job.options.between is not None, "`require_stable_range` refuses others"
        return make_stable_solver(job.plan, stage.number, job.background, job.options.stable, job.options.between)
    return make_evaluator(job.plan, stage.number, job.background, job.options.between)


def _saved_buckets(spark: SparkSession, initial: DataFrame, stage: int, keys: tuple[int, ...]) -> GroupedData:
    """Select the saved buckets of a stage, under the keys that its operator uses."""
    own = initial.where(initial.stage == stage)
    known = spark.createDataFrame(list(enumerate(keys)), read_struct_type("place int, key int"))
    return own.join(known, own.bucket == known.place).selectExpr("key as bucket", "number", "chunk").groupBy("bucket")


def _union(frames: list[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), frames)
