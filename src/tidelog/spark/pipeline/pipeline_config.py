"""A pipeline as data: its sources, fact queries, sinks and options, as `pipeline_file` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from tidelog.compiler.compiled_program import Memory
from tidelog.data.schema import Schema, TableSchema
from tidelog.errors import Diagnostic, Place
from tidelog.language.program import Program
from tidelog.spark.plan.job_plan import Awaiting, StableMode
from tidelog.streaming.alerts import AlertOptions
from tidelog.timeline.interval import Time, TimelineName

#: Units of numbers that count time since 1970, in microseconds, the unit of Spark's timestamps.
UNITS = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}

#: The column that says whether a row inserts or deletes, in the fact DataFrames of a pipeline.
OPERATION = "op"

#: File formats, which need a path. A stream without a schema has that of the existing files.
FILE_FORMATS = ("avro", "csv", "json", "orc", "parquet", "text", "xml")


@dataclass(frozen=True)
class Source:
    """A table or stream that SQL can name. `time` is the column that facts take their time from."""

    name: str
    format: str
    path: str | None
    schema: str | None
    options: Mapping[str, str]
    stream: bool
    python: str | None
    time: str | None
    unit: str | None
    #: The path of the same rows in the past.
    history: str | None
    place: Place | None
    #: What its columns mean, if the pipeline declares it: its rows are then read as all other commands read tables.
    table: TableSchema | None = None
    #: Whether its times are dates; plain numbers otherwise.
    dates: bool = True
    #: How its rows are wrapped, if they are: `debezium` has the row before and after a change.
    envelope: str | None = None

    @property
    def is_folder(self) -> bool:
        """Whether it streams the files of one folder, which has to exist."""
        return (
            self.stream and self.format in FILE_FORMATS and self.path is not None and not set("*?[{") & set(self.path)
        )

    @property
    def moves_clock(self) -> bool:
        """Whether all its rows move the clock of the stream, facts or not."""
        return self.stream and self.time is not None


@dataclass(frozen=True)
class FactQuery:
    """How rows become the facts of one predicate: the columns that are not times are its arguments, in order."""

    predicate: str
    sql: str
    time: str | None
    start: str | None
    end: str | None
    closed: str | None
    unit: str | None
    delay: Fraction | None
    background: bool
    place: Place | None
    #: The column that says whether a row inserts or deletes a fact.
    op: str | None = None


@dataclass(frozen=True)
class Sink:
    """Where answers, late facts or other rows are written."""

    format: str
    path: str | None
    options: Mapping[str, str]
    python: str | None
    overwrite: bool
    place: Place | None
    #: Which answers are reported, if not all.
    alerts: AlertOptions | None = None


@dataclass(frozen=True)
class Pipeline:
    """A pipeline file that was read and checked, as far as that is possible without Spark."""

    file: str
    name: str
    mode: str
    program: Program
    query: str
    timeline: TimelineName | None
    memory: Memory | None
    at: str | None
    delay: Fraction
    heartbeat: Fraction | None
    between: tuple[Time, Time] | None
    #: Whether to reason over stable models, and which facts of them are answers.
    stable: StableMode | None
    until: Time | None
    buckets: int | None
    background: tuple[str, ...]
    checkpoint: str | None
    #: Whether the rules may differ from those that made the checkpoint.
    changed_rules: bool
    trigger: Fraction | str | None
    sources: tuple[Source, ...]
    facts: tuple[FactQuery, ...]
    answers: Sink
    late: Sink | None
    aside: Sink | None
    #: Where changes of hypothetical answers are written, and their options.
    awaited: Sink | None
    awaiting: Awaiting
    metrics: str | None
    master: str | None
    log: str | None
    settings: Mapping[str, str]
    #: For how long late facts and deletions are taken, if answers are corrected.
    corrections: Fraction | None = None
    #: What the columns of tables mean: the file next to the rules.
    schema: Schema | None = None
    #: Whether warnings are errors: all (True), none (False), or those about predicates (None).
    strict: bool | None = None
    #: The warnings that are not refused.
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def streaming(self) -> bool:
        return self.mode == "stream"

    @property
    def delays(self) -> dict[str | None, Fraction]:
        """How late facts may arrive: per predicate with a delay of its own, and under None for all others."""
        delays: dict[str | None, Fraction] = {None: self.delay}
        return delays | {fact.predicate: fact.delay for fact in self.facts if fact.delay is not None}

    @property
    def history_sources(self) -> tuple[Source, ...]:
        """The sources as they are read for the history: once, from its path; without streams that have none."""
        known = (replace(s, path=s.history, stream=False) if s.history else s for s in self.sources)
        return tuple(source for source in known if not source.stream)

    @property
    def has_history(self) -> bool:
        return any(source.history for source in self.sources)
