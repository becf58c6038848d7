"""Prepare a pipeline: check it against its sources, its checkpoint and its sinks, and build its job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.data.dataset import Dataset
from tidelog.spark.job.build import build_job
from tidelog.spark.job.connect import count_cores
from tidelog.spark.job.options import JobOptions
from tidelog.spark.job.output import JobOutput
from tidelog.spark.job.session import STATE_STORE_SETTINGS, query_settings
from tidelog.spark.pipeline.checkpoint_record import CheckpointRecord, build_record, read_record, reconcile_records
from tidelog.spark.pipeline.fact_queries import SourceRows, describe_frames, find_clocked_predicates, read_sources
from tidelog.spark.pipeline.pipeline_config import Pipeline, Sink
from tidelog.spark.pipeline.pipeline_warnings import check_facts
from tidelog.spark.pipeline.sinks import SinkWriter
from tidelog.spark.pipeline.sources import register_python_source
from tidelog.timeline.interval import Time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class PreparedPipeline:
    """A pipeline that was checked against its sources, its checkpoint and its sinks, and can start."""

    spark: SparkSession
    pipeline: Pipeline
    sources: SourceRows
    #: The history of the sources.
    history: SourceRows
    background: Dataset | None
    buckets: int
    #: Identifies the output of this job; for streams, by the checkpoint.
    record: CheckpointRecord

    @property
    def partition_settings(self) -> dict[str, str]:
        """Spark settings for as many partitions as buckets: a task works on at least one bucket."""
        return {"spark.sql.shuffle.partitions": str(self.buckets)}

    def build_job(
        self, *, until: Time | None = None, drain: bool = False, initial: DataFrame | None = None
    ) -> JobOutput:
        """Build the job. It answers up to `until`; with `drain`, its clock goes there at once, late facts or not."""
        p, options = self.pipeline, self._options()
        if not p.streaming:
            options = replace(options, between=p.between, stable=p.stable)
            if p.awaited:
                options = replace(options, delay=p.delays, until=p.until)
            return build_job(self.spark, p.program, p.query, self.sources.facts, options)
        options = replace(
            self._stream_options(),
            heartbeat=p.heartbeat,
            until=until + max(p.delays.values()) if until is not None and drain else None,
            answer_until=until,
            initial=initial,
            changed_rules=self.record.changed,
            clocked=find_clocked_predicates(p),
        )
        return build_job(self.spark, p.program, p.query, self.sources.facts, options)

    def build_backfill(self) -> JobOutput:
        """Build the job over the history of the sources."""
        options = replace(self._stream_options(), backfill=True, bad_rows=self.history.bad)
        return build_job(self.spark, self.pipeline.program, self.pipeline.query, self.history.facts, options)

    def open_sink(self, sink: Sink) -> SinkWriter:
        return SinkWriter(self.spark, sink, self.pipeline.query, self.record.id)

    def describe(self) -> list[str]:
        """Describe in sentences how the work is split."""
        with query_settings(self.spark, STATE_STORE_SETTINGS):
            return self.build_job().describe()

    def _options(self) -> JobOptions:
        p = self.pipeline
        return JobOptions(
            background=self.background,
            buckets=self.buckets,
            timeline=p.timeline,
            set_aside=p.aside is not None,
            bad_rows=self.sources.bad,
            read_once=self.record.sources_read_once,
            names=p.schema.column_names(p.query) if p.schema else None,
            awaiting=p.awaiting if p.awaited else None,
        )

    def _stream_options(self) -> JobOptions:
        p = self.pipeline
        options = replace(self._options(), delay=p.delays, corrections=p.corrections, at=p.at, memory=p.memory)
        return replace(options, alerts=p.answers.alerts, stable=p.stable)


def prepare_pipeline(spark: SparkSession, pipeline: Pipeline) -> PreparedPipeline:
    """Check everything that can be checked before the job starts; raise all errors."""
    existing = read_record(spark, pipeline) if pipeline.streaming else None
    history = read_sources(spark, pipeline, history=True) if pipeline.has_history else SourceRows({}, [])
    sources = read_sources(spark, pipeline, once=existing is None or existing.sources_read_once)
    background = Dataset.load(*pipeline.background, schema=pipeline.schema) if pipeline.background else None
    found = check_facts(pipeline, background, describe_frames(sources.facts, pipeline))
    pipeline = replace(pipeline, warnings=(*pipeline.warnings, *found))
    buckets = pipeline.buckets or (existing.buckets if existing else count_cores(spark))
    record = build_record(pipeline, buckets)
    if existing:
        record = reconcile_records(existing, record, pipeline)
    for sink in (pipeline.answers, pipeline.late, pipeline.aside, pipeline.awaited):
        if sink and sink.python:
            register_python_source(spark, sink.python, Path(pipeline.file).absolute().parent, sink.place)
    return PreparedPipeline(spark, pipeline, sources, history, background, buckets, record)
