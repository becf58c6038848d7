"""A pipeline file: where facts come from, the rules and the query, and where the answers go.

Reading it needs no Spark. Everything that is wrong with the file, the rules and their names is found here, at once;
what needs the schemas of the sources is found in `sources.py`, before any query starts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tidelog.engine.steps import AT_SIZE
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.codes import suggest
from tidelog.language.program import Program, read_text
from tidelog.spark.awaited_keys import obstacles, read_awaiting
from tidelog.spark.plan import Awaiting
from tidelog.spark.reading import Table
from tidelog.spark.toml import read_toml
from tidelog.streaming.alerts import Alerting, alerting
from tidelog.timeline.interval import Time

#: How a column of numbers counts time since 1970: microseconds a unit, as Spark's timestamps are microseconds.
UNITS = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}

#: Formats of files, which need a path; where a stream is given no schema, it is that of the files that are there.
FILES = ("avro", "csv", "json", "orc", "parquet", "text", "xml")

#: Keys that only one of the modes has.
_STREAM = ("checkpoint", "changed_rules", "trigger", "delay", "heartbeat", "until", "at", "memory")
_BATCH = ("between",)
#: Keys of streams that say in a batch what is still awaited at its end.
_OF_AWAITED = ("delay", "until")

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PYTHON = re.compile(r"[\w.]+:\w+")


@dataclass(frozen=True)
class Source:
    """A table or a stream that SQL can name. `time` is the column that facts take their time from."""

    name: str
    format: str
    path: str | None
    schema: str | None
    options: Mapping[str, str]
    stream: bool
    python: str | None
    time: str | None
    unit: str | None
    #: Where the same rows of the past are.
    history: str | None
    place: Place | None

    @property
    def is_folder(self) -> bool:
        """Whether it streams the files of one folder, which has to be there."""
        return self.stream and self.format in FILES and self.path is not None and not set("*?[{") & set(self.path)

    @property
    def moves_clock(self) -> bool:
        """Whether all its rows move the clock of the stream, facts or not."""
        return self.stream and self.time is not None


@dataclass(frozen=True)
class FactQuery:
    """How rows become the facts of one predicate: the columns that are no time are its arguments, in order."""

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


@dataclass(frozen=True)
class Sink:
    """Where answers, or late facts, are written."""

    format: str
    path: str | None
    options: Mapping[str, str]
    python: str | None
    overwrite: bool
    place: Place | None
    #: What is told of the answers, if not all.
    alerts: Alerting | None = None


@dataclass(frozen=True)
class Pipeline:
    """A pipeline file that was read and found sound, as far as one can tell without Spark."""

    file: str
    name: str
    mode: str
    program: Program
    query: str
    timeline: str | None
    memory: str | None
    at: str | None
    delay: Fraction
    heartbeat: Fraction | None
    between: tuple[Time, Time] | None
    until: Time | None
    buckets: int | None
    background: tuple[str, ...]
    checkpoint: str | None
    #: Whether the rules may be others than those that made the checkpoint.
    changed_rules: bool
    trigger: Fraction | str | None
    sources: tuple[Source, ...]
    facts: tuple[FactQuery, ...]
    answers: Sink
    late: Sink | None
    aside: Sink | None
    #: Where changes of what is awaited are written, and how it is said.
    awaited: Sink | None
    awaiting: Awaiting
    metrics: str | None
    master: str | None
    log: str | None
    settings: Mapping[str, str]

    @property
    def streaming(self) -> bool:
        return self.mode == "stream"

    @property
    def delays(self) -> dict[str | None, Fraction]:
        """How late facts may come: of predicates with a delay of their own, and under None of all others."""
        delays: dict[str | None, Fraction] = {None: self.delay}
        return delays | {fact.predicate: fact.delay for fact in self.facts if fact.delay is not None}

    @property
    def past(self) -> tuple[Source, ...]:
        """The sources as they are read for history: once, from where it is; without streams that have none."""
        known = (replace(s, path=s.history, stream=False) if s.history else s for s in self.sources)
        return tuple(source for source in known if not source.stream)

    @property
    def has_history(self) -> bool:
        return any(source.history for source in self.sources)


def load_pipeline(path: str | Path) -> Pipeline:
    """Read a pipeline file; raises a `TidelogError` with everything that is wrong with it."""
    file = str(path)
    values, places = read_toml(read_text(file), file)
    errors: list[Diagnostic] = []
    pipeline = _Reading(Path(file).absolute().parent, errors).pipeline(file, Table(values, places, errors))
    if errors:
        raise TidelogError(sorted(errors, key=position))
    return pipeline


def position(error: Diagnostic) -> tuple[int, int]:
    """Where an error is, to put several in order."""
    return (error.place.line, error.place.column) if error.place else (0, 0)


class _Reading:
    """One file being read; paths in it start from its own folder."""

    def __init__(self, folder: Path, errors: list[Diagnostic]) -> None:
        self.folder, self.errors = folder, errors

    def pipeline(self, file: str, top: Table) -> Pipeline:
        mode = top.choice("mode", ("stream", "batch")) or "stream"
        name = top.text("name") or Path(file).stem
        rules = top.required("rules")
        program = self._program(rules, top)
        query = top.required("query")
        sources = self._sources(top.table("sources", required=True), mode == "stream")
        facts = self._facts(top.table("facts", required=True))
        sinks = top.table("sinks", required=True)
        at = self._output(top)
        answering = sinks.table("answers", required=True)
        alerts = _alerts(answering, program.predicates.get(query), at, mode)
        answers = replace(self._sink(answering, mode), alerts=alerts)
        late = self._sink(sinks.table("late"), mode) if "late" in sinks.values else None
        aside = self._sink(sinks.table("aside"), mode) if "aside" in sinks.values else None
        awaited = self._sink(sinks.table("awaited"), mode) if "awaited" in sinks.values else None
        awaiting = read_awaiting(top.table("awaited"), awaited is not None)
        metrics = self._metrics(sinks)
        sinks.finish()
        spark = top.table("spark")
        pipeline = Pipeline(
            file,
            name,
            mode,
            program,
            query,
            timeline=top.choice("timeline", ("rational", "integer")),
            memory=top.choice("memory", ("generic", "bounded")),
            at=at,
            delay=top.duration("delay") or Fraction(0),
            heartbeat=top.duration("heartbeat"),
            between=_between(top),
            until=top.time("until"),
            buckets=top.number("buckets", 1),
            background=self._background(top),
            checkpoint=self._located(top.text("checkpoint", required=mode == "stream")),
            changed_rules=top.flag("changed_rules"),
            trigger=_trigger(top),
            sources=sources,
            facts=facts,
            answers=answers,
            late=late,
            aside=aside,
            awaited=awaited,
            awaiting=awaiting,
            metrics=metrics,
            master=spark.text("master"),
            log=self._located(spark.text("log")),
            settings=spark.options("settings"),
        )
        spark.finish()
        top.finish()
        for key in _STREAM if mode == "batch" else _BATCH:
            if key in top.values and not (awaited and key in _OF_AWAITED):
                top.refuse("TL805", f'`{key}` is not for mode = "{mode}"', key)
        if program.rules:
            self._check_names(pipeline, top)
        if awaited and not self.errors:
            self.errors += obstacles(program, query, awaiting, pipeline.timeline, pipeline.delays, awaited.place)
        return pipeline

    def _program(self, rules: str, top: Table) -> Program:
        nothing = Program((), "rational")
        if not rules:
            return nothing
        path = self.folder / rules
        if not path.is_file():
            help = "paths start from the folder of the pipeline file" if not Path(rules).is_absolute() else None
            top.refuse("TL010", f"there is no file {rules}", "rules", help=help)
            return nothing
        try:
            return Program.load(path)
        except TidelogError as problem:
            self.errors.extend(problem.diagnostics)
            return nothing

    def _check_names(self, pipeline: Pipeline, top: Table) -> None:
        """Facts and the query must be of predicates that the rules have."""
        known = pipeline.program.predicates
        for fact in pipeline.facts:
            if fact.predicate not in known and fact.predicate != pipeline.query:
                message = f"the rules have no predicate {fact.predicate}"
                self.errors.append(Diagnostic("TL808", message, fact.place, help=_did_you_mean(fact.predicate, known)))
        given = {fact.predicate for fact in pipeline.facts}
        if pipeline.query and pipeline.query not in known.keys() | given:
            message = f"the query predicate {pipeline.query} occurs neither in the rules nor in the facts"
            top.refuse("TL302", message, "query", help=_did_you_mean(pipeline.query, known))

    def _output(self, top: Table) -> str | None:
        """`intervals`, which is usual, or points: `input`, `every:10s`."""
        from tidelog.streaming.times import OutputTimes

        at = top.text("at")
        if at is None or at == "intervals":
            return None
        if at != "input" and not at.startswith("every:"):
            top.refuse("TL805", f"`at` cannot be `{at}`", "at", law="`at` is intervals, input, or every:10s")
            return None
        try:
            OutputTimes(at, np.zeros(AT_SIZE, np.int64), 1)
        except TidelogError as problem:
            top.refuse("TL805", problem.diagnostics[0].message, "at", help=problem.diagnostics[0].help)
        return at

    def _background(self, top: Table) -> tuple[str, ...]:
        found: list[str] = []
        for given in top.texts("background"):
            predicate, equals, path = given.rpartition("=")
            if not (self.folder / path).is_file():
                top.refuse("TL010", f"there is no file {path}", "background")
            found.append(f"{predicate}{equals}{self.folder / path}")
        return tuple(found)

    def _sources(self, table: Table, streaming: bool) -> tuple[Source, ...]:
        found = (self._source(name, part, streaming, table) for name, part in table.tables())
        return tuple(source for source in found if source)

    def _source(self, name: str, table: Table | str, streaming: bool, parent: Table) -> Source | None:
        if isinstance(table, str):
            help = f'write [sources.{name}] with format = "parquet" and path = "{table}"'
            parent.refuse("TL805", f"`{name}` must be a table", name, help=help)
            return None
        if not _IDENTIFIER.fullmatch(name):
            table.refuse("TL805", f"`{name}` cannot be the name of a source", law="SQL names it: letters, digits and _")
        source = Source(
            name,
            format=table.required("format"),
            path=self._located(table.text("path")),
            schema=table.text("schema"),
            options=table.options("options"),
            stream=streaming and not table.flag("static"),
            python=_python(table),
            time=table.text("time"),
            unit=_unit(table),
            history=self._located(table.text("history")),
            place=table.place(),
        )
        table.finish()
        if source.history and not source.stream:
            table.refuse("TL805", "only a stream has a history", "history", help="read it as a source of its own")
        return source

    def _facts(self, table: Table) -> tuple[FactQuery, ...]:
        return tuple(self._fact(name, part, table) for name, part in table.tables())

    def _fact(self, predicate: str, table: Table | str, parent: Table) -> FactQuery:
        if isinstance(table, str):
            place = parent.place(predicate)
            return FactQuery(predicate, table, None, None, None, None, None, None, False, place)
        fact = FactQuery(
            predicate,
            sql=table.required("sql"),
            time=table.text("time"),
            start=table.text("start"),
            end=table.text("end"),
            closed=table.text("closed"),
            unit=_unit(table),
            delay=table.duration("delay"),
            background=table.flag("background"),
            place=table.place("sql") or table.place(),
        )
        if fact.time and (fact.start or fact.end or fact.closed):
            table.refuse("TL805", "a fact has a `time`, or a `start` and an `end`, but not both", "time")
        elif bool(fact.start) != bool(fact.end):
            given, missing = ("start", "end") if fact.start else ("end", "start")
            table.refuse("TL804", f"there is a `{given}` but no `{missing}`", given)
        if fact.background and (fact.time or fact.start or fact.delay):
            table.refuse("TL805", "background facts hold at all times, and have no time of their own", "background")
        table.finish()
        return fact

    def _sink(self, table: Table, mode: str) -> Sink:
        form = table.text("format", required=bool(table.values)) or ""
        sink = Sink(
            form,
            path=self._located(table.text("path")),
            options=table.options("options"),
            python=_python(table),
            overwrite=table.flag("overwrite"),
            place=table.place(),
        )
        table.finish()
        if form == "kafka" and "topic" not in sink.options:
            table.refuse("TL804", "a Kafka sink needs the option `topic`", "format")
        if form in FILES and sink.path is None:
            table.refuse("TL804", f"files of {form} need a `path`", "format")
        if form == "text" and table.path[-1] == "answers":
            table.refuse(
                "TL805", "answers have several columns, and text files one", "format", help="choose json or csv"
            )
        if form in ("text", "csv") and table.path[-1] == "awaited":
            message = f"what is awaited has columns that are lists, and files of {form} have none"
            table.refuse("TL805", message, "format", help="choose json or parquet")
        if sink.overwrite and mode == "stream":
            table.refuse("TL805", "a stream adds to what is there", "overwrite", help="leave it out")
        return sink

    def _metrics(self, sinks: Table) -> str | None:
        if "metrics" not in sinks.values:
            return None
        table = sinks.table("metrics")
        table.choice("format", ("jsonl",))
        path = self._located(table.required("path"))
        table.finish()
        return path

    def _located(self, path: str | None) -> str | None:
        """A path from the folder of the pipeline file; addresses like s3://... stay what they are."""
        if not path or "://" in path:
            return path
        return str(self.folder / path)


def _alerts(table: Table, arity: int | None, at: str | None, mode: str) -> Alerting | None:
    """Starts and ends, what is the same alert, and for how long there is silence after one."""
    options: dict[str, Any] = {
        "changes": table.flag("changes"),
        "dedupe": table.duration("dedupe"),
        "cooldown": table.duration("cooldown"),
        "per": table.numbers("per"),
    }
    asked = next((name for name in options if name in table.values), None)
    if asked is not None and mode == "batch":
        table.refuse("TL805", f'`{asked}` is not for mode = "batch"', asked)
        return None
    try:
        return alerting(**options, arity=arity, points=at is not None)
    except TidelogError as problem:
        for found in problem.diagnostics:
            table.refuse(found.code, found.message, asked or "", found.law, found.help)
        return None


def _between(top: Table) -> tuple[Time, Time] | None:
    """A batch job's stretch of time, both ends included."""
    times = top.times("between")
    if not times:
        return None
    if len(times) != 2 or times[0] > times[1]:
        top.refuse("TL805", "`between` must be two times, the earlier one first", "between")
        return None
    return times[0], times[1]


def _trigger(top: Table) -> Fraction | str | None:
    if top.values.get("trigger") == "available-now":
        return top.text("trigger")
    return top.duration("trigger")


def _unit(table: Table) -> str | None:
    return table.choice("unit", tuple(UNITS))


def _python(table: Table) -> str | None:
    """`module:Class`, a data source in Python."""
    value = table.text("python")
    if value is not None and not _PYTHON.fullmatch(value):
        table.refuse("TL805", f"`{value}` is not module:Class", "python")
    return value


def _did_you_mean(name: str, known: Mapping[str, int]) -> str:
    close = suggest(name, known)
    return f"did you mean {close}?" if close else f"the predicates of the rules are {', '.join(sorted(known))}"
