"""A pipeline at work: checked, started, watched, stopped.

One query feeds all sinks: every batch of packed rows is kept while answers, late facts, rows set aside and figures are
taken from it. What is written, and when, is `sinks`' to say; this says when a job begins and ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark import failures
from tidelog.spark.metrics import Listener, Where, described, figures, in_short, observed, watermark
from tidelog.spark.pipeline import Pipeline, Sink
from tidelog.spark.reasoning import Tagged, tagged
from tidelog.spark.record import Record, agreed, kept_record, laid_out, record_of, write_record
from tidelog.spark.session import CLOCK, STATE, query_settings
from tidelog.spark.sinks import Output
from tidelog.spark.sources import clocked, fact_frames, register
from tidelog.spark.storage import Storage
from tidelog.spark.watching import tell
from tidelog.timeline.interval import Time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tidelog.page.board import Board

#: The folder of a checkpoint with the state of its history, and the number of the batch with the answers of it.
_HISTORY = "history"
_BEFORE = -1
#: Seconds that the end of a run waits for what Spark has to report of its last batches.
_REPORTS = 10.0
#: What Spark says where a Python process has not started in time, and for how long a query is then started again.
_TOO_BUSY = "failed to connect back"
_AGAIN = 300.0
#: Seconds between looks at whether the folders of sources are still there.
_LOOK_AFTER = 10.0


@dataclass
class Progress:
    """How far a run has come; figures are of this run, not of the checkpoint's whole life."""

    batch: int = -1
    facts: int = 0
    answers: int = 0
    late: int = 0
    aside: int = 0
    held: int = 0
    silenced: int = 0
    watermark: str | None = None
    #: The same as a number, to compare.
    at: Time | None = None
    #: What could not be kept of a state of other rules.
    notes: dict[str, None] = field(default_factory=dict)
    #: The engines that the first batch made from their state (`buckets`, `bytes`, `seconds` of the slowest), if it did;
    #: and how many seconds after the start it was done.
    restored: Mapping[str, Any] | None = None
    first_seconds: float | None = None


@dataclass(frozen=True)
class Ready:
    """A pipeline that was checked against its sources, its checkpoint and its sinks, and can start."""

    spark: SparkSession
    pipeline: Pipeline
    frames: Mapping[str, DataFrame]
    #: Of the history of the sources.
    past: Mapping[str, DataFrame]
    background: Dataset | None
    buckets: int
    #: What identifies the output of this job: the checkpoint, for streams.
    record: Record

    def job(self, *, until: Time | None = None, initial: DataFrame | None = None) -> Tagged:
        """The job; with `until`, time goes on until all up to then is answered, whatever may have been late."""
        if not self.pipeline.streaming:
            p = self.pipeline
            awaiting: dict[str, Any] = {"delay": p.delays, "until": p.until} if p.awaited else {}
            return self._tagged(self.frames, between=p.between, **awaiting)
        end = None if until is None else until + max(self.pipeline.delays.values())
        return self._tagged(
            self.frames,
            **self._streams(),
            heartbeat=self.pipeline.heartbeat,
            until=end,
            initial=initial,
            changed_rules=self.record.changed,
            clocked=clocked(self.pipeline),
        )

    def backfill(self) -> Tagged:
        """The job over the history of the sources."""
        return self._tagged(self.past, **self._streams(), backfill=True)

    def _tagged(self, frames: Mapping[str, DataFrame], **options: Any) -> Tagged:
        p = self.pipeline
        return tagged(
            self.spark,
            p.program,
            p.query,
            frames,
            background=self.background,
            buckets=self.buckets,
            timeline=p.timeline,
            set_aside=p.aside is not None,
            awaiting=p.awaiting if p.awaited else None,
            **options,
        )

    def _streams(self) -> dict[str, Any]:
        p = self.pipeline
        return {"delay": p.delays, "at": p.at, "memory": p.memory, "alerts": p.answers.alerts}

    def output(self, sink: Sink) -> Output:
        return Output(self.spark, sink, self.pipeline.query, self.record.id)

    def in_words(self) -> list[str]:
        """The plan."""
        with query_settings(self.spark, STATE):
            return self.job().in_words()


def ready(spark: SparkSession, pipeline: Pipeline) -> Ready:
    """Check all that can be checked before the job starts."""
    past = fact_frames(spark, pipeline, past=True) if pipeline.has_history else {}
    frames = fact_frames(spark, pipeline)
    background = Dataset.load(*pipeline.background) if pipeline.background else None
    kept = kept_record(spark, pipeline) if pipeline.streaming else None
    buckets = pipeline.buckets or (kept.buckets if kept else spark.sparkContext.defaultParallelism)
    record = record_of(pipeline, buckets)
    if kept:
        record = agreed(kept, record, pipeline)
    for sink in (pipeline.answers, pipeline.late, pipeline.aside, pipeline.awaited):
        if sink and sink.python:
            register(spark, sink.python, Path(pipeline.file).absolute().parent, sink.place)
    return Ready(spark, pipeline, frames, past, background, buckets, record)


def run_batch(job: Ready) -> Progress:
    """All of a batch job: its answers appear when all of them are there."""
    p = job.pipeline
    progress = Progress()
    for sink in (p.answers, p.aside, p.awaited):
        if sink:
            job.output(sink).refuse_replacing()
    with query_settings(job.spark, _partitions(job)):
        work = job.job()
        frame = work.frame.persist()
        try:
            progress.answers = job.output(p.answers).write_once(work.answers(frame))
            if p.aside:
                progress.aside = job.output(p.aside).write_once(work.set_aside(frame))
            if p.awaited:
                job.output(p.awaited).write_once(_awaited(work, p.awaited, frame))
        except TidelogError:
            raise
        except Exception as problem:
            raise failures.in_words(problem, p.log) from None
        finally:
            frame.unpersist()
    return progress


@dataclass
class Stream:
    """A streaming job that has started."""

    ready: Ready
    progress: Progress = field(default_factory=Progress)
    #: Where a page of the running job looks.
    board: Board | None = None
    _query: StreamingQuery | None = None
    _listener: Listener | None = None
    _figures: dict[int, dict[str, Any]] = field(default_factory=dict)
    _latest: dict[Where, Mapping[str, Any]] = field(default_factory=dict)
    _failure: BaseException | None = None
    _begin: Callable[[], StreamingQuery] | None = None
    #: The batch before which Spark last had too little time, and since when.
    _busy: tuple[int | None, float] = (None, 0.0)
    _looked: float = field(default_factory=monotonic)
    _begun: float = field(default_factory=monotonic)

    def start(self, *, until: Time | None = None, drain: bool = False) -> None:
        """Start the query; with `drain` it ends when all that is there now has been read."""
        job, spark, p = self.ready, self.ready.spark, self.ready.pipeline
        self._failure = None
        for sink in (p.answers, p.late, p.aside, p.awaited):
            if sink:
                job.output(sink).prepare()
        if job.record.layout is None:
            write_record(spark, p, job.record)
        if p.metrics and self._listener is None:
            self._listener = Listener(p.metrics, p.name, self._figures)
            spark.streams.addListener(self._listener)

        def begin() -> StreamingQuery:
            with query_settings(spark, {**STATE, **CLOCK, **_partitions(job)}):
                work = job.job(until=until, initial=self._history())
                write_record(spark, p, laid_out(job.record, work.job.layout, p))
                writer = observed(work.frame).writeStream.queryName(p.name).outputMode("append")
                writer = writer.option("checkpointLocation", p.checkpoint or "").foreachBatch(self._each(work))
                if drain or p.trigger == "available-now":
                    writer = writer.trigger(availableNow=True)
                elif isinstance(p.trigger, Fraction):
                    writer = writer.trigger(processingTime=f"{int(p.trigger * 1000)} milliseconds")
                return writer.start()

        self._begin, self._failure = begin, None
        self._query = begin()

    def _history(self) -> DataFrame | None:
        """The state with which a stream begins that has a past: reasoned over once, kept in the checkpoint."""
        job, spark, p = self.ready, self.ready.spark, self.ready.pipeline
        if not p.has_history:
            return None
        assert p.checkpoint is not None
        folder = Storage(spark, p.checkpoint)
        if not folder.exists(_HISTORY):
            work = job.backfill()
            frame = work.frame.persist()
            try:
                self.progress.answers += _written(job, work, frame, _BEFORE)
                work.saved(frame).write.mode("overwrite").parquet(f"{p.checkpoint}/_{_HISTORY}")
            except Exception as problem:
                raise failures.in_words(problem, p.log) from None
            finally:
                frame.unpersist()
            folder.rename(f"_{_HISTORY}", _HISTORY)
        return spark.read.parquet(f"{p.checkpoint}/{_HISTORY}")

    @property
    def running(self) -> bool:
        """Whether the query is running; raises what it failed with.

        Spark gives a source in Python, as our clock is one, ten seconds to start, which is too few on a machine that is
        very busy. No harm is done then, and the query is started again; but not for ever, unless it gets on.
        """
        assert self._query is not None
        if self._query.isActive:
            self._look_after_sources()
            return True
        problem = self._failure or self._query.exception()
        if problem is None:
            return False
        batch, since = self._busy
        if batch != self.progress.batch:
            since = monotonic()
            self._busy = self.progress.batch, since
        if self._begin is None or _TOO_BUSY not in str(problem) or monotonic() > since + _AGAIN:
            raise failures.in_words(problem, self.ready.pipeline.log) from None
        self._failure = None
        self._query = self._begin()
        return True

    def _look_after_sources(self) -> None:
        """A folder of files that is gone would look to Spark like one in which nothing comes any more."""
        if monotonic() < self._looked + _LOOK_AFTER:
            return
        self._looked = monotonic()
        errors = [
            Diagnostic(
                "TL806",
                f"the source `{source.name}` is gone: there is no {source.path} any more",
                source.place,
                help="once it is back, the next run goes on where this one stopped",
            )
            for source in self.ready.pipeline.sources
            if source.is_folder and not Storage(self.ready.spark, source.path or "").exists()
        ]
        if errors:
            self.stop()
            raise TidelogError(errors)

    @property
    def idle(self) -> bool:
        """Whether no batch is under way."""
        return self._query is not None and not self._query.status["isTriggerActive"]

    def wait(self, seconds: float) -> None:
        """Wait for the end of the query, or so long; `running` says how it ended."""
        assert self._query is not None
        with suppress(Exception):
            self._query.awaitTermination(seconds)  # type: ignore[arg-type]

    def stop(self) -> None:
        """Stop the query; a batch that is not finished is done again by the next run."""
        if self._query is not None:
            self._query.stop()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.finish(_REPORTS)
            self.ready.spark.streams.removeListener(self._listener)

    def _each(self, work: Tagged) -> Callable[[DataFrame, int], None]:
        def write(batch: DataFrame, number: int) -> None:
            batch.persist()
            try:
                self._write(work, batch, number)
            except BaseException as problem:
                self._failure = problem
                raise
            finally:
                batch.unpersist()

        return write

    def _write(self, work: Tagged, batch: DataFrame, number: int) -> None:
        job = self.ready
        told = (json.loads(row[0]) for row in work.stats(batch).collect())
        found = figures(told, self._latest, work.job.program.rules)
        with described(job.spark, in_short(number, found)):
            self._give(work, batch, number, found)
        clock = found["watermark"]
        dates = work.columns.time.startswith("timestamp")
        if self.board is not None:
            tell(self.board, batch, found, clock, dates)
        found |= watermark(found, dates)
        self._figures[number] = found
        done = self.progress
        if done.first_seconds is None:
            done.restored, done.first_seconds = found.get("restored"), monotonic() - self._begun
        done.batch = number
        done.facts += found["facts_in"]
        done.answers += found["answers"]
        done.late += found["late"]
        done.silenced += found.get("silenced", 0)
        done.aside += found.get("aside", 0)
        done.notes |= dict.fromkeys(found.pop("notes"))
        done.held = sum(found["held"].values())
        if clock is not None and clock not in ("inf", "-inf"):
            done.watermark, done.at = found["watermark"], Fraction(clock)

    def _give(self, work: Tagged, batch: DataFrame, number: int, found: dict[str, Any]) -> None:
        """All that leaves by a batch, to the sinks."""
        job, p = self.ready, self.ready.pipeline
        job.output(p.answers).write(work.answers(batch), number, found["answers"])
        if p.late:
            job.output(p.late).write(work.late(batch), number, found["late"])
        if p.aside:
            aside = work.set_aside(batch)
            found["aside"] = aside.count()
            job.output(p.aside).write(aside, number, found["aside"])
        if p.awaited:
            found["awaited"] = _write_awaited(job, work, p.awaited, batch, number)


def _written(job: Ready, work: Tagged, frame: DataFrame, batch: int) -> int:
    """The answers of a history, as a batch before all others; and the rows that were set aside."""
    p = job.pipeline
    answers = work.answers(frame).persist()
    try:
        rows = answers.count()
        job.output(p.answers).write(answers, batch, rows)
    finally:
        answers.unpersist()
    if p.aside:
        aside = work.set_aside(frame)
        job.output(p.aside).write(aside, batch, aside.count())
    if p.awaited:
        _write_awaited(job, work, p.awaited, frame, batch)
    return rows


def _write_awaited(job: Ready, work: Tagged, sink: Sink, frame: DataFrame, batch: int) -> int:
    """Changes of what is awaited; gives how many there were."""
    awaited = _awaited(work, sink, frame).persist()
    try:
        rows = awaited.count()
        job.output(sink).write(awaited, batch, rows)
    finally:
        awaited.unpersist()
    return rows


def _awaited(work: Tagged, sink: Sink, frame: DataFrame) -> DataFrame:
    return work.awaited_lines(frame) if sink.format == "console" else work.awaited(frame)


def _partitions(job: Ready) -> dict[str, str]:
    """As many partitions as buckets: a bucket is the least that a task can work on."""
    return {"spark.sql.shuffle.partitions": str(job.buckets)}
