"""Run the SQL of a pipeline over its sources, and check that the rows can be facts.

Everything is checked against the schemas of the sources before any query starts: missing columns, types that no fact
can have, numbers of arguments. All errors are reported at once, each with its line in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.analysis.value_columns import ValueColumn, ValueType
from tidelog.data.bad_rows import MOST_ERRORS
from tidelog.data.deletions import OPERATIONS
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.wording import plural, suggest
from tidelog.spark.job.failures import shorten_spark_message
from tidelog.spark.pipeline.bad_rows import mark_rows, select_bad_rows, select_good_rows
from tidelog.spark.pipeline.change_envelope import unwrap_rows
from tidelog.spark.pipeline.correction_keys import find_words
from tidelog.spark.pipeline.pipeline_config import OPERATION, FactQuery, Pipeline, Source
from tidelog.spark.pipeline.pipeline_file import error_position
from tidelog.spark.pipeline.sources import attach_clock, open_source, to_timestamp
from tidelog.spark.pipeline.sql import add_column, is_query, locate_error
from tidelog.spark.worker.fact_packer import describe_bad_row

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import DataType, StructField

_TIMES = ("time", "start", "end", "closed")
_TIME_LAW = "a fact has a column `time`, or `start` and `end` (and `closed`), or is background"


@dataclass(frozen=True)
class _TimeColumns:
    """The time columns of a fact by role (`time`, `start`, `end`, `closed`), and the unit of numbers among them.

    `op` is the column that says whether a row inserts or deletes a fact.
    """

    roles: dict[str, str]
    unit: str | None
    op: str | None = None


@dataclass(frozen=True)
class SourceRows:
    """The rows of all sources: DataFrames of facts by predicate, with their arguments in order, then their time; and
    rows that cannot be read, as JSON in a column `row`, one DataFrame per source that has such rows."""

    facts: dict[str, DataFrame]
    bad: list[DataFrame]


def read_sources(spark: SparkSession, pipeline: Pipeline, *, history: bool = False, once: bool = True) -> SourceRows:
    """Open all sources, and run the SQL of facts; with `history`, those with a history, and only over that.

    Facts and rows that cannot be read come from one DataFrame per source, which is then read once. If not `once`, they
    come from two, as the checkpoints of earlier versions have them. Rows of static sources of a stream that cannot be
    read are looked for now: if there are any, raise TL206, because nothing could set them aside.
    """
    errors: list[Diagnostic] = []
    sources: dict[str, Source] = {}
    bad_rows: list[tuple[Source, DataFrame]] = []
    read = pipeline.history_sources if history else pipeline.sources
    unreadable = {source.name.lower() for source in pipeline.sources} - {source.name.lower() for source in read}
    for source in read:
        try:
            rows, bad = _open_rows(spark, pipeline, source, once)
            rows.createOrReplaceTempView(source.name)
            sources[source.name] = source
        except TidelogError as problem:
            errors += problem.diagnostics
            unreadable.add(source.name.lower())
            continue
        if bad is not None:
            bad_rows.append((source, bad))
    frames: dict[str, DataFrame] = {}
    for fact in pipeline.facts:
        if find_words(fact.sql) & unreadable:
            continue  # report an error of a source once, not for every query that reads it
        try:
            frame = _read_fact_frame(spark, fact, sources)
        except TidelogError as problem:
            errors += problem.diagnostics
            continue
        errors += _find_argument_errors(frame, fact, pipeline)
        frames[fact.predicate] = frame
    errors += _find_mixed_times(frames, pipeline)
    if errors:
        raise TidelogError(sorted(errors, key=error_position))
    found: list[DataFrame] = []
    for source, bad in bad_rows:
        if pipeline.streaming and not source.stream and not history:
            require_no_bad_rows(bad.limit(MOST_ERRORS).collect(), source)
        else:
            found.append(bad)
    return SourceRows(frames, found)


def _open_rows(
    spark: SparkSession, pipeline: Pipeline, source: Source, once: bool
) -> tuple[DataFrame, DataFrame | None]:
    """Open a source; return the rows that SQL sees, attached to the clock, and the rows that cannot be read."""
    folder = Path(pipeline.file).absolute().parent
    moves_clock = source.name in _find_clock_sources(pipeline)
    opened = mark_rows(open_source(spark, source, folder), source)
    if source.envelope:  # its times are inside the envelope
        rows = unwrap_rows(select_good_rows(opened), source)
        rows = attach_clock(rows, source) if moves_clock else rows
    else:
        opened = attach_clock(opened, source) if moves_clock else opened
        rows = select_good_rows(opened)
    again = opened if once else mark_rows(open_source(spark, source, folder), source)
    return rows, select_bad_rows(again, source)


def describe_frames(frames: Mapping[str, DataFrame], pipeline: Pipeline) -> Iterator[ValueColumn]:
    """Describe the arguments of facts by the types of their columns: whether they are numbers or text."""
    from pyspark.sql.types import NumericType

    for fact in pipeline.facts:
        if fact.predicate in frames:
            for position, field in enumerate(_find_arguments(frames[fact.predicate], fact)):
                type: ValueType = "number" if isinstance(field.dataType, NumericType) else "text"
                yield ValueColumn(fact.predicate, position, type, f"the SQL of {fact.predicate}", field.name)


def _find_arguments(frame: DataFrame, fact: FactQuery) -> list[StructField]:
    others = () if fact.background else _TIMES if fact.op is None else (*_TIMES, OPERATION)
    return [field for field in frame.schema.fields if field.name not in others]


def require_no_bad_rows(rows: Sequence[Row], source: Source) -> None:
    """Raise TL206 if a static source has rows that cannot be read."""
    if rows:
        problems = (describe_bad_row(json.loads(row["row"])) for row in rows)
        help = "correct the file: the rows of a static source cannot be set aside"
        raise TidelogError(replace(problem, place=source.place, help=help) for problem in problems)


def find_clocked_predicates(pipeline: Pipeline) -> frozenset[str]:
    """Find the predicates with facts from sources whose rows all move the clock."""
    moving = {name.lower() for name in _find_clock_sources(pipeline)}
    return frozenset(fact.predicate for fact in pipeline.facts if find_words(fact.sql) & moving)


def _find_clock_sources(pipeline: Pipeline) -> set[str]:
    """Find the sources whose rows all move the clock. Deletions do not, so rows that may delete move it as facts."""
    words = set[str]().union(*(find_words(fact.sql) for fact in pipeline.facts if fact.op is not None))
    return {source.name for source in pipeline.sources if source.moves_clock and source.name.lower() not in words}


def _read_fact_frame(spark: SparkSession, fact: FactQuery, sources: dict[str, Source]) -> DataFrame:
    """Run the SQL of a fact, name its time columns, and convert them to timestamps if they have a unit."""
    fact = _select_operation(spark, fact)
    frame, time = _run_sql(spark, fact, sources)
    by_name = {name.lower(): name for name in frame.columns}
    if fact.background:
        return frame
    given = {"time": fact.time or time, "start": fact.start, "end": fact.end, "closed": fact.closed}
    if not any(given.values()):
        given = {role: role if role in by_name else None for role in _TIMES}
    unknown = [name for name in (*given.values(), fact.op) if name and name.lower() not in by_name]
    if unknown:
        raise TidelogError(_missing_column(name, fact, frame.columns) for name in unknown)
    roles = {role: by_name[name.lower()] for role, name in given.items() if name}
    unit = fact.unit or next((s.unit for s in sources.values() if time and s.time == time), None)
    op = None if fact.op is None else by_name[fact.op.lower()]
    return _select_times(frame, fact, _TimeColumns(roles, unit, op))


def _select_operation(spark: SparkSession, fact: FactQuery) -> FactQuery:
    """Return a fact whose SQL selects the column `op`, if it can."""
    from pyspark.errors import PySparkException

    if fact.op is None or not is_query(fact.sql):
        return fact
    try:
        if fact.op.lower() in {name.lower() for name in spark.sql(fact.sql).columns}:
            return fact
        wider = add_column(fact.sql, fact.op)
        if wider is not None:
            spark.sql(wider)
        return replace(fact, sql=wider or fact.sql)
    except PySparkException:
        return fact  # the error is reported where the SQL is run, or because the column is missing


def _run_sql(spark: SparkSession, fact: FactQuery, sources: dict[str, Source]) -> tuple[DataFrame, str | None]:
    """Run the SQL; also return the time column that its source names, if the SQL selects none."""
    from pyspark.errors import PySparkException

    if not is_query(fact.sql):
        raise TidelogError(Diagnostic("TL807", "this is not a query", fact.place, help="write SELECT ... FROM ..."))
    try:
        frame = spark.sql(fact.sql)
        names = {name.lower() for name in frame.columns}
        wanted = fact.time
        if (
            fact.background
            or fact.start
            or (wanted and wanted.lower() in names)
            or (not wanted and names & set(_TIMES))
        ):
            return frame, None
        wanted = wanted or _find_source_time(fact.sql, sources)
        if wanted is None or wanted.lower() in names:
            return frame, wanted
        return _select_with_time(spark, fact, wanted) or frame, wanted
    except PySparkException as problem:
        raise TidelogError(_sql_error(problem, fact, sources)) from None


def _select_with_time(spark: SparkSession, fact: FactQuery, column: str) -> DataFrame | None:
    """Select the same rows with their time column, which the SQL itself does not select."""
    from pyspark.errors import PySparkException

    wider = add_column(fact.sql, column)
    if wider is None:
        return None
    try:
        return spark.sql(wider)
    except PySparkException as problem:
        message = f"the time of {fact.predicate} cannot be selected: {shorten_spark_message(problem)}"
        raise TidelogError(Diagnostic("TL807", message, fact.place)) from None


def _find_source_time(sql: str, sources: dict[str, Source]) -> str | None:
    """Return the time column that the sources of a query name, if they agree."""
    words = find_words(sql)
    times = {source.time for name, source in sources.items() if name.lower() in words and source.time}
    return times.pop() if len(times) == 1 else None


def _select_times(frame: DataFrame, fact: FactQuery, columns: _TimeColumns) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    if not columns.roles:
        help = "name the column in the file (time = ...), select one AS time, or set background = true"
        raise TidelogError(Diagnostic("TL205", f"no column of {fact.predicate} is a time", fact.place, _TIME_LAW, help))
    if len({"start", "end"} & columns.roles.keys()) == 1 or ("time" in columns.roles and len(columns.roles) > 1):
        message = f"the times of {fact.predicate} are {' and '.join(f'`{role}`' for role in columns.roles)}"
        raise TidelogError(Diagnostic("TL205", message, fact.place, _TIME_LAW))
    types = {field.name: field.dataType for field in frame.schema.fields}
    errors = list(_find_type_errors(fact, columns, types))
    if errors:
        raise TidelogError(errors)
    others = (*columns.roles.values(), columns.op)
    arguments = [F.col(f"`{name}`") for name in frame.columns if name not in others]
    times = [
        to_timestamp(F.col(f"`{name}`"), types[name], None if role == "closed" else columns.unit).alias(role)
        for role, name in columns.roles.items()
    ]
    operation = [] if columns.op is None else [F.col(f"`{columns.op}`").alias(OPERATION)]
    return frame.select(*arguments, *times, *operation)


def _find_type_errors(fact: FactQuery, columns: _TimeColumns, types: dict[str, DataType]) -> Iterator[Diagnostic]:
    from pyspark.sql.types import DateType, NumericType, StringType, TimestampNTZType, TimestampType

    if columns.op is not None and not isinstance(types[columns.op], StringType):
        message = f"the column `{columns.op}` of {fact.predicate} is {types[columns.op].simpleString()}"
        law = f"`op` is one of {', '.join(OPERATIONS)}"
        yield Diagnostic("TL805", message, fact.place, law, help=f"write CAST({columns.op} AS STRING), or CASE WHEN")
    for role, name in columns.roles.items():
        type = types[name]
        shown = type.simpleString()
        if role == "closed":
            if not isinstance(type, StringType):
                law = "`closed` is one of both, left, right, neither"
                yield Diagnostic("TL805", f"the column `{name}` of {fact.predicate} is {shown}", fact.place, law)
        elif isinstance(type, DateType | TimestampType | TimestampNTZType):
            if columns.unit:
                message = f"the column `{name}` of {fact.predicate} is {shown}, and cannot have a unit"
                yield Diagnostic("TL805", message, fact.place, help="leave `unit` out: it is for numbers")
        elif not isinstance(type, NumericType):
            yield Diagnostic(
                "TL805",
                f"the column `{name}` of {fact.predicate} is {shown}, which is not a time",
                fact.place,
                law="times are numbers, timestamps or dates",
                help=f"write CAST({name} AS TIMESTAMP)" if isinstance(type, StringType) else None,
            )


def _find_argument_errors(frame: DataFrame, fact: FactQuery, pipeline: Pipeline) -> Iterator[Diagnostic]:
    """Yield errors: types that no argument can have, a wrong number of arguments, a streaming background."""
    from pyspark.sql.types import AtomicType, BinaryType

    arguments = _find_arguments(frame, fact)
    for field in arguments:
        if not isinstance(field.dataType, AtomicType) or isinstance(field.dataType, BinaryType):
            message = f"the column `{field.name}` of {fact.predicate} is {field.dataType.simpleString()}"
            law = "arguments are texts, numbers, dates, timestamps, true or false"
            yield Diagnostic("TL805", message, fact.place, law, help="select the parts that are, or CAST it AS STRING")
    arity = pipeline.program.predicates.get(fact.predicate)
    if arity is not None and arity != len(arguments):
        names = f" ({', '.join(field.name for field in arguments)})" if arguments else ""
        message = f"{fact.predicate} has {plural(arity, 'argument')} in the rules, and {len(arguments)} here{names}"
        help = "every column that is not a time is an argument"
        op = next((field.name for field in arguments if field.name.lower() == OPERATION), None)
        if op is not None and arity == len(arguments) - 1:
            help += f'; if `{op}` says which rows delete a fact, write op = "{op}" in [facts.{fact.predicate}]'
        yield Diagnostic("TL102", message, fact.place, help=help)
    if fact.background and frame.isStreaming:
        message = f"{fact.predicate} is background, but its source is a stream"
        yield Diagnostic("TL805", message, fact.place, help="set static = true in its source")


def _find_mixed_times(frames: dict[str, DataFrame], pipeline: Pipeline) -> Iterator[Diagnostic]:
    """Yield errors if some times are numbers and others timestamps: a job has one clock."""
    from pyspark.sql.types import NumericType

    first: tuple[str, bool] | None = None
    for fact in pipeline.facts:
        frame = frames.get(fact.predicate)
        column = None if frame is None else next((c for c in ("time", "start") if c in frame.columns), None)
        if frame is None or column is None or fact.background:
            continue
        numbers = isinstance(frame.schema[column].dataType, NumericType)
        if first is None:
            first = fact.predicate, numbers
        elif numbers != first[1]:
            kinds = ("numbers", "timestamps") if numbers else ("timestamps", "numbers")
            message = f"the times of {fact.predicate} are {kinds[0]}, those of {first[0]} {kinds[1]}"
            help = "set the `unit` of the numbers to make them timestamps"
            yield Diagnostic("TL805", message, fact.place, help=help)


def _missing_column(name: str, fact: FactQuery, columns: list[str]) -> Diagnostic:
    close = suggest(name, columns)
    help = f"did you mean {close}?" if close else f"it selects {', '.join(columns)}"
    return Diagnostic("TL205", f"the SQL of {fact.predicate} selects no column `{name}`", fact.place, help=help)


def _sql_error(problem: PySparkException, fact: FactQuery, sources: dict[str, Source]) -> Diagnostic:
    place = locate_error(fact.place, fact.sql, problem)
    if problem.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return Diagnostic("TL807", shorten_spark_message(problem), place)
    name = (problem.getMessageParameters() or {}).get("relationName", "").strip("`")
    close = suggest(name, sources)
    help = f"did you mean {close}?" if close else f"the sources are {', '.join(sources)}"
    return Diagnostic("TL807", f"there is no source `{name}`", place, help=help)
