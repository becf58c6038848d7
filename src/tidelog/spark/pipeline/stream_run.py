"""Run a streaming pipeline: start it, watch it, restart it when Spark was too slow to, and stop it.

One query feeds all sinks: each batch of packed rows is cached while answers, late facts, rows set aside and figures are
taken from it, unless only figures and answers to print are. `sinks` decides what is written and how often; this module
decides when a job starts and ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from time import monotonic
from typing import TYPE_CHECKING, Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.job.failures import to_tidelog_error
from tidelog.spark.job.live_metrics import update_board
from tidelog.spark.job.metrics import (
    BucketAddress,
    MetricsListener,
    format_summary,
    format_watermark,
    job_description,
    observe_metrics,
    summarise_batch,
)
from tidelog.spark.job.output import JobOutput
from tidelog.spark.job.session import CLOCK_SETTINGS, STATE_STORE_SETTINGS, query_settings
from tidelog.spark.pipeline.checkpoint_record import add_layout, write_record
from tidelog.spark.pipeline.hadoop_files import HadoopFolder
from tidelog.spark.pipeline.pipeline_config import Sink
from tidelog.spark.pipeline.preparation import PreparedPipeline
from tidelog.spark.pipeline.progress import Progress
from tidelog.spark.pipeline.sinks import select_awaited
from tidelog.spark.worker.packed_rows import ANSWER, STATS
from tidelog.timeline.interval import Time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from tidelog.page.live_board import Board

#: The folder of a checkpoint with the state of its history, and the number of the batch with its answers.
_HISTORY = "history"
_HISTORY_BATCH = -1
#: Seconds to wait at the end of a run for Spark's reports on its last batches.
_REPORTS = 10.0
#: What Spark says when a Python process has not started in time, and for how many seconds a query is then restarted.
_TOO_BUSY = "failed to connect back"
_RETRY = 300.0
#: Seconds between checks that the folders of sources still exist.
_LOOK_AFTER = 10.0


@dataclass
class StreamRun:
    """A streaming job, started or not."""

    prepared: PreparedPipeline
    progress: Progress = field(default_factory=Progress)
    #: The board behind the live page and the metrics, if there is one.
    board: Board | None = None
    _query: StreamingQuery | None = None
    _listener: MetricsListener | None = None
    _figures: dict[int, dict[str, Any]] = field(default_factory=dict)
    _latest: dict[BucketAddress, Mapping[str, Any]] = field(default_factory=dict)
    _failure: BaseException | None = None
    _begin: Callable[[], StreamingQuery] | None = None
    #: The batch before which Spark was last too slow to start a process, and since when.
    _busy: tuple[int | None, float] = (None, 0.0)
    _checked_at: float = field(default_factory=monotonic)
    _started_at: float = field(default_factory=monotonic)

    def start(self, *, until: Time | None = None, drain: bool = False) -> None:
        """Start the query, which answers up to `until`; with `drain` it ends once it has read what is available now."""
        prepared, spark, p = self.prepared, self.prepared.spark, self.prepared.pipeline
        self._failure = None
        for sink in (p.answers, p.late, p.aside, p.awaited):
            if sink:
                prepared.open_sink(sink).prepare()
        if prepared.record.layout is None:
            write_record(spark, p, prepared.record)
        if p.metrics and self._listener is None:
            self._listener = MetricsListener(p.metrics, p.name, self._figures)
            spark.streams.addListener(self._listener)

        def begin() -> StreamingQuery:
            with query_settings(spark, {**STATE_STORE_SETTINGS, **CLOCK_SETTINGS, **prepared.partition_settings}):
                job = prepared.build_job(until=until, drain=drain, initial=self._history())
                write_record(spark, p, add_layout(prepared.record, job.plan.layout, p))
                writer = observe_metrics(job.frame).writeStream.queryName(p.name).outputMode("append")
                writer = writer.option("checkpointLocation", p.checkpoint or "").foreachBatch(
                    self._make_batch_writer(job)
                )
                if drain or p.trigger == "available-now":
                    writer = writer.trigger(availableNow=True)
                elif isinstance(p.trigger, Fraction):
                    writer = writer.trigger(processingTime=f"{int(p.trigger * 1000)} milliseconds")
                return writer.start()

        self._begin, self._failure = begin, None
        self._query = begin()

    def _history(self) -> DataFrame | None:
        """Return the state at the end of the history, if there is one: computed once, and kept in the checkpoint."""
        prepared, spark, p = self.prepared, self.prepared.spark, self.prepared.pipeline
        if not p.has_history:
            return None
        assert p.checkpoint is not None
        folder = HadoopFolder(spark, p.checkpoint)
        if not folder.exists(_HISTORY):
            job = prepared.build_backfill()
            frame = job.frame.persist()
            try:
                self.progress.answers += _write_history(prepared, job, frame, _HISTORY_BATCH)
                job.saved(frame).write.mode("overwrite").parquet(f"{p.checkpoint}/_{_HISTORY}")
            except Exception as problem:
                raise to_tidelog_error(problem, p.log) from None
            finally:
                frame.unpersist()
            folder.rename(f"_{_HISTORY}", _HISTORY)
        return spark.read.parquet(f"{p.checkpoint}/{_HISTORY}")

    @property
    def running(self) -> bool:
        """Whether the query is running; raises the error that it failed with.

        Spark allows a source in Python, such as our clock, ten seconds to start, which is too short on a very busy
        machine. No harm is done then, and the query is restarted; but not forever, unless it makes progress.
        """
        assert self._query is not None
        if self._query.isActive:
            self._check_sources()
            return True
        problem = self._failure or self._query.exception()
        if problem is None:
            return False
        batch, since = self._busy
        if batch != self.progress.batch:
            since = monotonic()
            self._busy = self.progress.batch, since
        if self._begin is None or _TOO_BUSY not in str(problem) or monotonic() > since + _RETRY:
            raise to_tidelog_error(problem, self.prepared.pipeline.log) from None
        self._failure = None
        self._query = self._begin()
        return True

    def _check_sources(self) -> None:
        """Raise TL806 if the folder of a source is gone: to Spark it would look like one without new files."""
        if monotonic() < self._checked_at + _LOOK_AFTER:
            return
        self._checked_at = monotonic()
        errors = [
            Diagnostic(
                "TL806",
                f"the source `{source.name}` is gone: {source.path} does not exist any more",
                source.place,
                help="restore it; the next run continues where this one stopped",
            )
            for source in self.prepared.pipeline.sources
            if source.is_folder and not HadoopFolder(self.prepared.spark, source.path or "").exists()
        ]
        if errors:
            self.stop()
            raise TidelogError(errors)

    @property
    def idle(self) -> bool:
        """Whether no batch is under way."""
        return self._query is not None and not self._query.status["isTriggerActive"]

    def wait(self, seconds: float) -> None:
        """Wait for the end of the query, at most this long; `running` says how it ended."""
        assert self._query is not None
        with suppress(Exception):
            self._query.awaitTermination(seconds)  # type: ignore[arg-type]

    def stop(self) -> None:
        """Stop the query; the next run repeats a batch that is not finished."""
        if self._query is not None:
            self._query.stop()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.finish(_REPORTS)
            self.prepared.spark.streams.removeListener(self._listener)

    def _make_batch_writer(self, job: JobOutput) -> Callable[[DataFrame, int], None]:
        def write(batch: DataFrame, number: int) -> None:
            if not self._reads_once:
                batch.persist()
            try:
                self._write(job, batch, number)
            except BaseException as problem:
                self._failure = problem
                raise
            finally:
                batch.unpersist()

        return write

    @property
    def _prints_answers(self) -> bool:
        return self.prepared.pipeline.answers.format == "console"

    @property
    def _reads_once(self) -> bool:
        """Whether all that is needed of a batch is read at once: its figures, and answers to print."""
        p = self.prepared.pipeline
        return self._prints_answers and not (p.late or p.aside or p.awaited or self.board)

    def _write(self, job: JobOutput, batch: DataFrame, number: int) -> None:
        prepared = self.prepared
        packed = job.collect(batch, STATS, *([ANSWER] if self._prints_answers else []))
        figures = summarise_batch(map(json.loads, packed[STATS]), self._latest, job.plan.program.rules)
        with job_description(prepared.spark, format_summary(number, figures)):
            if self._prints_answers:
                prepared.open_sink(prepared.pipeline.answers).print_packed(packed[ANSWER], job.columns)
            self._write_sinks(job, batch, number, figures)
        clock = figures["watermark"]
        dates = job.columns.time.startswith("timestamp")
        if self.board is not None:
            update_board(self.board, batch, figures, clock, job.columns)
        figures |= format_watermark(figures, dates)
        self._figures[number] = figures
        progress = self.progress
        if progress.first_seconds is None:
            progress.restored, progress.first_seconds = figures.get("restored"), monotonic() - self._started_at
        progress.batch = number
        progress.facts += figures["facts_in"]
        progress.answers += figures["answers"]
        progress.late += figures["late"]
        progress.unmatched = figures.get("unmatched", 0)
        progress.silenced += figures.get("silenced", 0)
        progress.aside += figures.get("aside", 0)
        progress.notes |= dict.fromkeys(figures.pop("notes"))
        progress.unit_warning = progress.unit_warning or next(iter(figures.pop("unit_warnings")), None)
        progress.held = sum(figures["held"].values())
        if clock is not None and clock not in ("inf", "-inf"):
            progress.watermark, progress.at = figures["watermark"], Fraction(clock)

    def _write_sinks(self, job: JobOutput, batch: DataFrame, number: int, figures: dict[str, Any]) -> None:
        """Write a batch to all sinks."""
        prepared, p = self.prepared, self.prepared.pipeline
        if not self._prints_answers:
            prepared.open_sink(p.answers).write(job.answers(batch), number, figures["answers"])
        if p.late:
            prepared.open_sink(p.late).write(job.late(batch), number, figures["late"])
        if p.aside:
            aside = job.set_aside(batch)
            figures["aside"] = aside.count()
            prepared.open_sink(p.aside).write(aside, number, figures["aside"])
        if p.awaited:
            figures["awaited"] = _write_awaited(prepared, job, p.awaited, batch, number)


def _write_history(prepared: PreparedPipeline, job: JobOutput, frame: DataFrame, batch: int) -> int:
    """Write the answers of a history as a batch before all others, and the rows set aside; return the answers."""
    p = prepared.pipeline
    answers = job.answers(frame).persist()
    try:
        rows = answers.count()
        prepared.open_sink(p.answers).write(answers, batch, rows)
    finally:
        answers.unpersist()
    if p.aside:
        aside = job.set_aside(frame)
        prepared.open_sink(p.aside).write(aside, batch, aside.count())
    if p.awaited:
        _write_awaited(prepared, job, p.awaited, frame, batch)
    return rows


def _write_awaited(prepared: PreparedPipeline, job: JobOutput, sink: Sink, frame: DataFrame, batch: int) -> int:
    """Write the changes of hypothetical answers; return their number."""
    awaited = select_awaited(job, sink, frame).persist()
    try:
        rows = awaited.count()
        prepared.open_sink(sink).write(awaited, batch, rows)
    finally:
        awaited.unpersist()
    return rows
