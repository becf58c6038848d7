"""Read a pipeline file: where facts come from, the rules and the query, and where the answers go.

Reading it needs no Spark. All errors in the file, the rules and their names are reported here, at once. Errors that
need the schemas of the sources are found in `fact_queries`, before any query starts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from tidelog.compiler.compiled_program import Memory
from tidelog.data.schema import Schema, find_schema_file, load_schema
from tidelog.engine.stream_kernel import AT_SIZE
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import Program, read_text
from tidelog.language.toml_places import read_toml
from tidelog.language.toml_tables import TomlTable
from tidelog.language.wording import suggest
from tidelog.spark.job.options import ONE_MODEL_HELP, ONE_MODEL_LAW, UNSTABLE_OPTIONS
from tidelog.spark.pipeline.awaited_table import find_awaited_errors, read_awaiting
from tidelog.spark.pipeline.correction_keys import add_envelope_operations, check_corrections
from tidelog.spark.pipeline.declared_columns import find_declared_facts, is_declared, read_declared_columns
from tidelog.spark.pipeline.pipeline_config import FILE_FORMATS, UNITS, FactQuery, Pipeline, Sink, Source
from tidelog.spark.pipeline.pipeline_warnings import find_pipeline_warnings
from tidelog.spark.plan.job_plan import StableMode
from tidelog.streaming.alerts import AlertOptions, parse_alert_options
from tidelog.timeline.interval import Time, TimelineName

#: Keys of only one mode.
_STREAM_KEYS = ("checkpoint", "changed_rules", "trigger", "delay", "corrections", "heartbeat", "until", "at", "memory")
_BATCH_KEYS = ("between",)
#: Keys of streams that batch jobs with [sinks.awaited] have, too.
_BATCH_AWAITED = ("delay", "until")

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PYTHON = re.compile(r"[\w.]+:\w+")


def load_pipeline(path: str | Path, strict: bool | None = None) -> Pipeline:
    """Read a pipeline file; raise a `TidelogError` with all its errors. `strict` takes precedence over the file."""
    file = str(path)
    values, places = read_toml(read_text(file), file)
    errors: list[Diagnostic] = []
    pipeline = _PipelineReader(Path(file).absolute().parent, errors, strict).read_pipeline(
        file, TomlTable(values, places, errors)
    )
    if errors:
        raise TidelogError(sorted(errors, key=error_position))
    return pipeline


def error_position(error: Diagnostic) -> tuple[int, int]:
    """Return the line and column of an error, to sort by."""
    return (error.place.line, error.place.column) if error.place else (0, 0)


class _PipelineReader:
    """Reads one file; paths in it start from its own folder."""

    def __init__(self, folder: Path, errors: list[Diagnostic], strict: bool | None = None) -> None:
        self.folder, self.errors, self.strict = folder, errors, strict

    def read_pipeline(self, file: str, top: TomlTable) -> Pipeline:
        mode = top.choice("mode", ("stream", "batch")) or "stream"
        name = top.text("name") or Path(file).stem
        rules = top.required_text("rules")
        program = self._read_program(rules, top)
        query = top.required_text("query")
        schema = self._read_schema(rules)
        sources = self._read_sources(top.table("sources", required=True), mode == "stream", schema)
        declared = find_declared_facts(sources)
        facts = (*declared, *self._read_facts(top.table("facts", required=not declared)))
        facts = add_envelope_operations(facts, sources)
        sinks = top.table("sinks", required=True)
        at = self._read_output_times(top)
        answering = sinks.table("answers", required=True)
        program = self._settle_sorts(program, query, "awaited" in sinks.values)
        alerts = _read_alerts(answering, program.predicates.get(query), at, mode)
        answers = replace(self._read_sink(answering, mode), alerts=alerts)
        late = self._read_sink(sinks.table("late"), mode) if "late" in sinks.values else None
        aside = self._read_sink(sinks.table("aside"), mode) if "aside" in sinks.values else None
        awaited = self._read_sink(sinks.table("awaited"), mode) if "awaited" in sinks.values else None
        awaiting = read_awaiting(top.table("awaited"), awaited is not None)
        metrics = self._read_metrics(sinks)
        sinks.finish()
        spark = top.table("spark")
        pipeline = Pipeline(
            file,
            name,
            mode,
            program,
            query,
            timeline=cast("TimelineName | None", top.choice("timeline", ("rational", "integer"))),
            memory=cast("Memory | None", top.choice("memory", ("generic", "bounded"))),
            at=at,
            delay=top.duration("delay") or Fraction(0),
            corrections=top.duration("corrections"),
            heartbeat=top.duration("heartbeat"),
            between=_read_between(top),
            stable=cast("StableMode | None", top.choice("stable", get_args(StableMode))),
            until=top.time("until"),
            buckets=top.number("buckets", 1),
            background=self._read_background(top),
            checkpoint=self._resolve(top.text("checkpoint", required=mode == "stream")),
            changed_rules=top.flag("changed_rules"),
            trigger=_read_trigger(top),
            sources=sources,
            facts=facts,
            answers=answers,
            late=late,
            aside=aside,
            awaited=awaited,
            awaiting=awaiting,
            metrics=metrics,
            master=spark.text("master"),
            log=self._resolve(spark.text("log")),
            settings=spark.options("settings"),
            schema=schema,
            strict=top.optional_flag("strict"),
        )
        pipeline = pipeline if self.strict is None else replace(pipeline, strict=self.strict)
        spark.finish()
        top.finish()
        for key in _STREAM_KEYS if mode == "batch" else _BATCH_KEYS:
            if key in top.values and not (awaited and key in _BATCH_AWAITED):
                top.refuse("TL805", f'`{key}` is not for mode = "{mode}"', key)
        check_corrections(pipeline, top)
        _check_stable(pipeline, top)
        if program.rules:
            self._check_names(pipeline, top)
            if not self.errors:
                found = find_pipeline_warnings(pipeline)
                self.errors += (warning for warning in found if warning.severity == "error")
                pipeline = replace(pipeline, warnings=tuple(w for w in found if w.severity == "warning"))
        if awaited and not self.errors:
            self.errors += find_awaited_errors(
                program, query, awaiting, pipeline.timeline, pipeline.delays, awaited.place
            )
        return pipeline

    def _read_program(self, rules: str, top: TomlTable) -> Program:
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

    def _settle_sorts(self, program: Program, query: str, awaited: bool) -> Program:
        """Make the query a temporal predicate if answers are awaited; report a program without times."""
        try:
            program = program.with_temporal_query(query) if awaited else program
            program.require_times()
        except TidelogError as problem:
            self.errors.extend(problem.diagnostics)
        return program

    def _check_names(self, pipeline: Pipeline, top: TomlTable) -> None:
        """Check that the rules have the predicates of the facts and of the query."""
        known = pipeline.program.predicates
        for fact in pipeline.facts:
            if fact.predicate not in known and fact.predicate != pipeline.query:
                message = f"the rules have no predicate {fact.predicate}"
                self.errors.append(Diagnostic("TL808", message, fact.place, help=_did_you_mean(fact.predicate, known)))
        given = {fact.predicate for fact in pipeline.facts}
        if pipeline.query and pipeline.query not in known.keys() | given:
            message = f"the query predicate {pipeline.query} occurs neither in the rules nor in the facts"
            top.refuse("TL302", message, "query", help=_did_you_mean(pipeline.query, known))

    def _read_output_times(self, top: TomlTable) -> str | None:
        """Read `at`: `intervals`, the default, or points: `input`, `every:10s`, `every:10s+3s`, `file:times.txt`."""
        from tidelog.streaming.output_time_text import find_times_file
        from tidelog.streaming.output_times import OutputTimes

        at = top.text("at")
        if at is None or at == "intervals":
            return None
        path = find_times_file(at)
        if at != "input" and not at.startswith("every:") and not path:
            law = "`at` is intervals, input, every:10s (with an offset: every:10s+3s), or file:times.txt"
            top.refuse("TL805", f"`at` cannot be `{at}`", "at", law=law)
            return None
        at = f"file:{self._resolve(path)}" if path else at
        try:
            OutputTimes(at, np.zeros(AT_SIZE, np.int64), 1)
        except TidelogError as problem:
            self.errors += [found for found in problem.diagnostics if found.place]
            for found in problem.diagnostics:
                if not found.place:
                    top.refuse("TL805", found.message, "at", help=found.help)
        return at

    def _read_background(self, top: TomlTable) -> tuple[str, ...]:
        found: list[str] = []
        for given in top.texts("background"):
            predicate, equals, path = given.rpartition("=")
            if not (self.folder / path).is_file():
                top.refuse("TL010", f"there is no file {path}", "background")
            found.append(f"{predicate}{equals}{self.folder / path}")
        return tuple(found)

    def _read_schema(self, rules: str) -> Schema | None:
        """Read the schema file next to the rules, if there is one."""
        path = find_schema_file(str(self.folder / rules)) if rules else None
        try:
            return load_schema(path) if path else None
        except TidelogError as problem:
            self.errors.extend(problem.diagnostics)
            return None

    def _read_sources(self, table: TomlTable, streaming: bool, schema: Schema | None) -> tuple[Source, ...]:
        found = (self._read_source(name, part, streaming, table, schema) for name, part in table.tables())
        return tuple(source for source in found if source)

    def _read_source(
        self, name: str, table: TomlTable | str, streaming: bool, parent: TomlTable, schema: Schema | None
    ) -> Source | None:
        if isinstance(table, str):
            help = f'write [sources.{name}] with format = "parquet" and path = "{table}"'
            parent.refuse("TL805", f"`{name}` must be a table", name, help=help)
            return None
        if not _IDENTIFIER.fullmatch(name):
            table.refuse("TL805", f"`{name}` cannot be the name of a source", law="names in SQL: letters, digits, _")
        source = Source(
            name,
            format=table.required_text("format"),
            path=self._resolve(table.text("path")),
            schema=table.text("schema"),
            options=table.options("options"),
            stream=streaming and not table.flag("static"),
            python=_read_python_class(table),
            time=table.text("time"),
            unit=None if is_declared(table) else _read_unit(table),
            history=self._resolve(table.text("history")),
            place=table.place(),
            envelope=table.choice("envelope", ("debezium",)),
        )
        if source.envelope and is_declared(table):
            help = "leave `columns` and `predicate` out, and write SQL in [facts]"
            table.refuse("TL805", "the columns of a row in an envelope cannot be declared", "envelope", help=help)
        if source.history and not source.stream:
            table.refuse("TL805", "only a stream has a history", "history", help="read it as a separate source")
        return read_declared_columns(source, table, schema)

    def _read_facts(self, table: TomlTable) -> tuple[FactQuery, ...]:
        return tuple(self._read_fact(name, part, table) for name, part in table.tables())

    def _read_fact(self, predicate: str, table: TomlTable | str, parent: TomlTable) -> FactQuery:
        if isinstance(table, str):
            place = parent.place(predicate)
            return FactQuery(predicate, table, None, None, None, None, None, None, False, place)
        fact = FactQuery(
            predicate,
            sql=table.required_text("sql"),
            time=table.text("time"),
            start=table.text("start"),
            end=table.text("end"),
            closed=table.text("closed"),
            unit=_read_unit(table),
            delay=table.duration("delay"),
            background=table.flag("background"),
            place=table.place("sql") or table.place(),
            op=table.text("op"),
        )
        if fact.time and (fact.start or fact.end or fact.closed):
            table.refuse("TL805", "a fact has a `time`, or a `start` and an `end`, but not both", "time")
        elif bool(fact.start) != bool(fact.end):
            given, missing = ("start", "end") if fact.start else ("end", "start")
            table.refuse("TL804", f"there is a `{given}` but no `{missing}`", given)
        if fact.background and (fact.time or fact.start or fact.delay):
            table.refuse("TL805", "background facts hold at all times, and have no time of their own", "background")
        if fact.background and fact.op:
            help = "leave the rows out that were deleted"
            table.refuse("TL805", "background facts hold at all times, and cannot be deleted", "op", help=help)
        if fact.op and fact.op in (fact.time, fact.start, fact.end, fact.closed):
            table.refuse("TL805", f"`{fact.op}` is a time, and cannot say which rows are deleted", "op")
        table.finish()
        return fact

    def _read_sink(self, table: TomlTable, mode: str) -> Sink:
        form = table.text("format", required=bool(table.values)) or ""
        sink = Sink(
            form,
            path=self._resolve(table.text("path")),
            options=table.options("options"),
            python=_read_python_class(table),
            overwrite=table.flag("overwrite"),
            place=table.place(),
        )
        table.finish()
        if form == "kafka" and "topic" not in sink.options:
            table.refuse("TL804", "a Kafka sink needs the option `topic`", "format")
        if form in FILE_FORMATS and sink.path is None:
            table.refuse("TL804", f"files of {form} need a `path`", "format")
        if form == "text" and table.path[-1] == "answers":
            table.refuse(
                "TL805", "answers have several columns, and text files have one", "format", help="choose json or csv"
            )
        if form in ("text", "csv") and table.path[-1] == "awaited":
            message = f"[sinks.awaited] has columns that are lists, which files of {form} cannot hold"
            table.refuse("TL805", message, "format", help="choose json or parquet")
        if sink.overwrite and mode == "stream":
            table.refuse("TL805", "a stream only adds to its sink", "overwrite", help="leave it out")
        return sink

    def _read_metrics(self, sinks: TomlTable) -> str | None:
        if "metrics" not in sinks.values:
            return None
        table = sinks.table("metrics")
        table.choice("format", ("jsonl",))
        path = self._resolve(table.required_text("path"))
        table.finish()
        return path

    def _resolve(self, path: str | None) -> str | None:
        """Resolve a path from the folder of the pipeline file; addresses like s3://... stay as they are."""
        if not path or "://" in path:
            return path
        return str(self.folder / path)


def _read_alerts(table: TomlTable, arity: int | None, at: str | None, mode: str) -> AlertOptions | None:
    """Read the alert options of a sink."""
    options: dict[str, Any] = {
        "changes": table.choice("changes", ("start",))
        if table.values.get("changes") == "start"
        else table.flag("changes"),
        "dedupe": table.duration("dedupe"),
        "cooldown": table.duration("cooldown"),
        "per": table.numbers("per"),
    }
    asked = next((name for name in options if name in table.values), None)
    if asked is not None and mode == "batch":
        table.refuse("TL805", f'`{asked}` is not for mode = "batch"', asked)
        return None
    try:
        return parse_alert_options(**options, arity=arity, points=at is not None)
    except TidelogError as problem:
        for found in problem.diagnostics:
            table.refuse(found.code, found.message, asked or "", found.law, found.help)
        return None


def _read_between(top: TomlTable) -> tuple[Time, Time] | None:
    """Read the range of time of a batch job, both ends included."""
    times = top.times("between")
    if not times:
        return None
    if len(times) != 2 or times[0] > times[1]:
        top.refuse("TL805", "`between` must be two times, the earlier one first", "between")
        return None
    return times[0], times[1]


def _check_stable(pipeline: Pipeline, top: TomlTable) -> None:
    """Refuse stable models without a range of time, or together with what they do not support."""
    if pipeline.stable is None:
        return
    if not pipeline.streaming and pipeline.between is None:
        top.refuse("TL804", "`stable` needs `between`, the first and the last time to answer for", "stable")
    if pipeline.streaming and pipeline.stable == "model":
        top.refuse("TL805", '`stable` cannot be "model" for mode = "stream"', "stable", ONE_MODEL_LAW, ONE_MODEL_HELP)
    others = {
        "[sinks.awaited]": ("awaiting", pipeline.awaited is not None),
        "the alerts of [sinks.answers]": ("alerts", pipeline.answers.alerts is not None),
        "`corrections`": ("corrections", pipeline.corrections is not None),
        "`at`": ("at", pipeline.at is not None),
        "`memory`": ("memory", pipeline.memory is not None),
        "`history`": ("initial", pipeline.has_history),
        "`changed_rules`": ("changed_rules", pipeline.changed_rules),
    }
    for shown, (option, given) in others.items():
        if given:
            message = f"`stable` and {shown} do not go together"
            top.refuse("TL805", message, "stable", UNSTABLE_OPTIONS[option], "leave one of them out")


def _read_trigger(top: TomlTable) -> Fraction | str | None:
    if top.values.get("trigger") == "available-now":
        return top.text("trigger")
    return top.duration("trigger")


def _read_unit(table: TomlTable) -> str | None:
    return table.choice("unit", tuple(UNITS))


def _read_python_class(table: TomlTable) -> str | None:
    """Read `module:Class`, a data source in Python."""
    value = table.text("python")
    if value is not None and not _PYTHON.fullmatch(value):
        table.refuse("TL805", f"`{value}` is not module:Class", "python")
    return value


def _did_you_mean(name: str, known: Mapping[str, int]) -> str:
    close = suggest(name, known)
    return f"did you mean {close}?" if close else f"the predicates of the rules are {', '.join(sorted(known))}"
