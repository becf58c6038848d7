"""The sources of a pipeline as DataFrames, and the facts that its SQL makes of them.

Everything is analysed against the schemas of the sources before any query starts: columns that are not there, types
that no fact can have, numbers of arguments. Whatever is wrong is said at once, each with its line in the file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.codes import suggest
from tidelog.spark.pipeline import FILES, UNITS, FactQuery, Pipeline, Source, position
from tidelog.spark.rows import SHIFT_MS
from tidelog.spark.sql import is_query, said, selecting, within

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_TIMES = ("time", "start", "end", "closed")
#: A column that SQL does not see: it is dropped again.
_CLOCK = "__tidelog_clock"
_TIME_LAW = "a fact has a column `time`, or `start` and `end` (and `closed`), or is background"


@dataclass(frozen=True)
class _Columns:
    """The columns of a fact that are times, by what they are; the unit that numbers among them count."""

    roles: dict[str, str]
    unit: str | None


def fact_frames(spark: SparkSession, pipeline: Pipeline, *, past: bool = False) -> dict[str, DataFrame]:
    """For every predicate a DataFrame with its arguments in order, then its time.

    With `past` they are of the history of the sources, and predicates that have none are left out.
    """
    errors: list[Diagnostic] = []
    sources: dict[str, Source] = {}
    read = pipeline.past if past else pipeline.sources
    unreadable = {source.name.lower() for source in pipeline.sources} - {source.name.lower() for source in read}
    for source in read:
        try:
            frame = opened(spark, source, Path(pipeline.file).absolute().parent)
            (_clocked(frame, source) if source.moves_clock else frame).createOrReplaceTempView(source.name)
            sources[source.name] = source
        except TidelogError as problem:
            errors += problem.diagnostics
            unreadable.add(source.name.lower())
    frames: dict[str, DataFrame] = {}
    for fact in pipeline.facts:
        if _words(fact.sql) & unreadable:
            continue  # what is wrong with a source is said once, and not again for every query that reads it
        try:
            frame = _facts(spark, fact, sources)
        except TidelogError as problem:
            errors += problem.diagnostics
            continue
        errors += _refused(frame, fact, pipeline)
        frames[fact.predicate] = frame
    errors += _mixed(frames, pipeline)
    if errors:
        raise TidelogError(sorted(errors, key=position))
    return frames


def clocked(pipeline: Pipeline) -> frozenset[str]:
    """The predicates of facts from sources whose rows move the clock, all of them."""
    moving = {source.name.lower() for source in pipeline.sources if source.moves_clock}
    return frozenset(fact.predicate for fact in pipeline.facts if _words(fact.sql) & moving)


def register(spark: SparkSession, python: str, folder: Path, place: Place | None) -> None:
    """Make a data source in Python known, `module:Class`; modules beside the pipeline file travel to the workers."""
    from pyspark import cloudpickle

    module_name, _, class_name = python.partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = import_module(module_name)
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(folder):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        spark.dataSource.register(getattr(module, class_name))
    except (ImportError, AttributeError, TypeError) as problem:
        raise TidelogError(Diagnostic("TL806", f"cannot use {python}: {problem}", place)) from None


def opened(spark: SparkSession, source: Source, folder: Path) -> DataFrame:
    """A source as a DataFrame, streaming or not."""
    from pyspark.errors import PySparkException

    if source.python:
        register(spark, source.python, folder, source.place)
    try:
        if source.format == "kafka" and source.schema:
            return _json_of_kafka(opened(spark, replace(source, schema=None), folder), source.schema)
        reader = (spark.readStream if source.stream else spark.read).format(source.format).options(**source.options)
        if source.schema:
            reader = reader.schema(source.schema)
        elif source.stream and source.format in FILES:
            reader = reader.schema(_schema_of_files(spark, source))
        return reader.load(source.path) if source.path else reader.load()
    except PySparkException as problem:
        message = f"the source `{source.name}` cannot be read: {said(problem)}"
        raise TidelogError(Diagnostic("TL806", message, source.place, help=_way_out(source, problem))) from None


def _clocked(frame: DataFrame, source: Source) -> DataFrame:
    """The rows of a stream, all of which move Spark's clock as they are read, whatever SQL leaves out of them.

    Spark would filter rows before it looks at their times if it could. But it moves no condition to before one that
    depends on where it is evaluated, although this one is always true (as `rand() >= 0` is, which it knows).
    """
    from pyspark.sql import functions as F  # noqa: N812

    name = next((name for name in frame.columns if source.time and name.lower() == source.time.lower()), None)
    if name is None:
        return frame  # which is said where a fact needs it
    kind = frame.schema[name].dataType
    moment = on_spark_clock(_as_time(F.col(f"`{name}`"), kind, source.unit), kind if source.unit is None else None)
    timed = frame.withColumn(_CLOCK, moment).withWatermark(_CLOCK, "0 seconds")
    return timed.where(F.spark_partition_id() >= 0).drop(_CLOCK)


def on_spark_clock(time: Column, kind: DataType | None) -> Column:
    """A time, of a type or (None) a timestamp, as Spark's clock shows it; empty where it is none."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import DateType, NumericType, TimestampNTZType

    if isinstance(kind, DateType):
        milliseconds = F.unix_date(time).cast("bigint") * 86_400_000
    elif isinstance(kind, TimestampNTZType):
        milliseconds = F.timestamp_diff("MILLISECOND", F.lit("1970-01-01").cast("timestamp_ntz"), time)
    elif isinstance(kind, NumericType):
        # Numbers that are no times are refused where they are facts.
        sound = F.abs(time) < SHIFT_MS // 1000
        milliseconds = F.floor(F.when(sound, time).cast("decimal(38,9)") * 1000).cast("bigint")
    else:
        milliseconds = F.unix_millis(time)
    return F.timestamp_millis(milliseconds + SHIFT_MS)


def _schema_of_files(spark: SparkSession, source: Source) -> StructType:
    reader = spark.read.format(source.format).options(**source.options)
    return (reader.load(source.path) if source.path else reader.load()).schema


def _json_of_kafka(frame: DataFrame, schema: str) -> DataFrame:
    """The fields of records that are JSON, and the record's own in a column `kafka`."""
    from pyspark.sql import functions as F  # noqa: N812

    value = F.from_json(F.col("value").cast("string"), schema).alias("json")
    own = F.struct("topic", "partition", "offset", "timestamp", "key").alias("kafka")
    return frame.select(value, own).select("json.*", "kafka")


def _way_out(source: Source, problem: Exception) -> str | None:
    what = str(problem)
    if "UNABLE_TO_INFER_SCHEMA" in what:
        return 'there are no files yet: say what they will hold, schema = "turbine STRING, at TIMESTAMP"'
    if source.format == "kafka" and "Failed to find" in what:
        import pyspark

        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
        return f'the connector is a package: [spark] settings = {{ "spark.jars.packages" = "{package}" }}'
    if "DATA_SOURCE_NOT_FOUND" in what or "Failed to find" in what:
        return 'a connector comes as a package: [spark] settings = { "spark.jars.packages" = "group:artifact:version" }'
    if "PATH_NOT_FOUND" in what and source.path and "://" not in source.path:
        return "paths start from the folder of the pipeline file"
    return None


# Facts


def _facts(spark: SparkSession, fact: FactQuery, sources: dict[str, Source]) -> DataFrame:
    """What the SQL of a fact selects, with its times named and turned into what Spark has for them."""
    frame, time = _selected(spark, fact, sources)
    by_name = {name.lower(): name for name in frame.columns}
    if fact.background:
        return frame
    given = {"time": fact.time or time, "start": fact.start, "end": fact.end, "closed": fact.closed}
    if not any(given.values()):
        given = {role: role if role in by_name else None for role in _TIMES}
    unknown = [name for name in given.values() if name and name.lower() not in by_name]
    if unknown:
        raise TidelogError(_no_column(name, fact, frame.columns) for name in unknown)
    roles = {role: by_name[name.lower()] for role, name in given.items() if name}
    unit = fact.unit or next((s.unit for s in sources.values() if time and s.time == time), None)
    return _timed(frame, fact, _Columns(roles, unit))


def _selected(spark: SparkSession, fact: FactQuery, sources: dict[str, Source]) -> tuple[DataFrame, str | None]:
    """What the SQL selects; and the column that is time, where it does not select one but its source names it."""
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
        wanted = wanted or _time_of_sources(fact.sql, sources)
        if wanted is None or wanted.lower() in names:
            return frame, wanted
        return _widened(spark, fact, wanted) or frame, wanted
    except PySparkException as problem:
        raise TidelogError(_not_sql(problem, fact, sources)) from None


def _widened(spark: SparkSession, fact: FactQuery, column: str) -> DataFrame | None:
    """The same rows with the column that is their time, which the SQL itself does not select."""
    from pyspark.errors import PySparkException

    wider = selecting(fact.sql, column)
    if wider is None:
        return None
    try:
        return spark.sql(wider)
    except PySparkException as problem:
        message = f"the time of {fact.predicate} cannot be selected: {said(problem)}"
        raise TidelogError(Diagnostic("TL807", message, fact.place)) from None


def _time_of_sources(sql: str, sources: dict[str, Source]) -> str | None:
    """The time that the sources of a query name, if they agree."""
    words = _words(sql)
    times = {source.time for name, source in sources.items() if name.lower() in words and source.time}
    return times.pop() if len(times) == 1 else None


def _words(sql: str) -> set[str]:
    return set(re.findall(r"\w+", sql.lower()))


def _timed(frame: DataFrame, fact: FactQuery, columns: _Columns) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    if not columns.roles:
        help = "name the column in the file (time = ...), select one AS time, or say background = true"
        raise TidelogError(Diagnostic("TL205", f"no column of {fact.predicate} is a time", fact.place, _TIME_LAW, help))
    if len({"start", "end"} & columns.roles.keys()) == 1 or ("time" in columns.roles and len(columns.roles) > 1):
        message = f"the times of {fact.predicate} are {' and '.join(f'`{role}`' for role in columns.roles)}"
        raise TidelogError(Diagnostic("TL205", message, fact.place, _TIME_LAW))
    types = {field.name: field.dataType for field in frame.schema.fields}
    errors = list(_time_types(fact, columns, types))
    if errors:
        raise TidelogError(errors)
    arguments = [F.col(f"`{name}`") for name in frame.columns if name not in columns.roles.values()]
    times = [
        _as_time(F.col(f"`{name}`"), types[name], None if role == "closed" else columns.unit).alias(role)
        for role, name in columns.roles.items()
    ]
    return frame.select(*arguments, *times)


def _as_time(column: Column, type: DataType, unit: str | None) -> Column:
    """Numbers of a unit since 1970 as timestamps; everything else as it is."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import IntegralType

    if unit is None:
        return column
    if isinstance(type, IntegralType):
        return F.timestamp_micros(column.cast("bigint") * UNITS[unit])
    return F.timestamp_micros((column.cast("decimal(38,9)") * UNITS[unit]).cast("bigint"))


def _time_types(fact: FactQuery, columns: _Columns, types: dict[str, DataType]) -> Iterator[Diagnostic]:
    from pyspark.sql.types import DateType, NumericType, StringType, TimestampNTZType, TimestampType

    for role, name in columns.roles.items():
        type = types[name]
        shown = type.simpleString()
        if role == "closed":
            if not isinstance(type, StringType):
                law = "`closed` is one of both, left, right, neither"
                yield Diagnostic("TL805", f"the column `{name}` of {fact.predicate} is {shown}", fact.place, law)
        elif isinstance(type, DateType | TimestampType | TimestampNTZType):
            if columns.unit:
                message = f"the column `{name}` of {fact.predicate} is {shown}, and has no unit"
                yield Diagnostic("TL805", message, fact.place, help="leave `unit` out: it is for numbers")
        elif not isinstance(type, NumericType):
            yield Diagnostic(
                "TL805",
                f"the column `{name}` of {fact.predicate} is {shown}, which is no time",
                fact.place,
                law="times are numbers, timestamps or dates",
                help=f"write CAST({name} AS TIMESTAMP)" if isinstance(type, StringType) else None,
            )


# What no fact can be


def _refused(frame: DataFrame, fact: FactQuery, pipeline: Pipeline) -> Iterator[Diagnostic]:
    """Types that no argument has, a number of arguments that is not the rules', streams where none can be."""
    from pyspark.sql.types import AtomicType, BinaryType

    arguments = [field for field in frame.schema.fields if field.name not in _TIMES or fact.background]
    for field in arguments:
        if not isinstance(field.dataType, AtomicType) or isinstance(field.dataType, BinaryType):
            message = f"the column `{field.name}` of {fact.predicate} is {field.dataType.simpleString()}"
            law = "arguments are texts, numbers, dates, timestamps, true or false"
            yield Diagnostic("TL805", message, fact.place, law, help="select the parts that are, or CAST it AS STRING")
    arity = pipeline.program.predicates.get(fact.predicate)
    if arity is not None and arity != len(arguments):
        names = f" ({', '.join(field.name for field in arguments)})" if arguments else ""
        message = f"{fact.predicate} has {_counted(arity)} in the rules, and {len(arguments)} here{names}"
        yield Diagnostic("TL102", message, fact.place, help="every column that is no time is an argument")
    if fact.background and frame.isStreaming:
        message = f"{fact.predicate} is background, and comes from a stream"
        yield Diagnostic("TL805", message, fact.place, help="say static = true in its source")


def _mixed(frames: dict[str, DataFrame], pipeline: Pipeline) -> Iterator[Diagnostic]:
    """Times are numbers everywhere, or timestamps everywhere: one clock."""
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
            help = "say in which `unit` the numbers count, and they become timestamps"
            yield Diagnostic("TL805", message, fact.place, help=help)


def _no_column(name: str, fact: FactQuery, columns: list[str]) -> Diagnostic:
    close = suggest(name, columns)
    help = f"did you mean {close}?" if close else f"it selects {', '.join(columns)}"
    return Diagnostic("TL205", f"the SQL of {fact.predicate} selects no column `{name}`", fact.place, help=help)


def _not_sql(problem: PySparkException, fact: FactQuery, sources: dict[str, Source]) -> Diagnostic:
    place = within(fact.place, fact.sql, problem)
    if problem.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return Diagnostic("TL807", said(problem), place)
    name = (problem.getMessageParameters() or {}).get("relationName", "").strip("`")
    close = suggest(name, sources)
    help = f"did you mean {close}?" if close else f"the sources are {', '.join(sources)}"
    return Diagnostic("TL807", f"there is no source `{name}`", place, help=help)


def _counted(number: int) -> str:
    return f"{number} argument" if number == 1 else f"{number} arguments"
