"""Open the sources of a pipeline as DataFrames, batch or streaming, and attach them to the clock of the job."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.spark.job.failures import shorten_spark_message
from tidelog.spark.pipeline.bad_rows import CHECKED_FORMATS, add_bad_row_column, open_declared_source
from tidelog.spark.pipeline.pipeline_config import FILE_FORMATS, UNITS, Source
from tidelog.spark.worker.declared_rows import BAD_ROW
from tidelog.spark.worker.packed_rows import CLOCK_SHIFT_MS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

#: A helper column, dropped before SQL sees it.
_CLOCK = "__tidelog_clock"


def register_python_source(spark: SparkSession, python: str, folder: Path, place: Place | None) -> None:
    """Register a data source in Python, `module:Class`; modules beside the pipeline file are sent to the workers."""
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


def open_source(spark: SparkSession, source: Source, folder: Path) -> DataFrame:
    """Open a source as a DataFrame, streaming or not. Rows that cannot be read have a text in the column `BAD_ROW`."""
    from pyspark.errors import PySparkException

    if source.python:
        register_python_source(spark, source.python, folder, source.place)
    try:
        if source.table is not None:
            return open_declared_source(spark, source)
        if source.format == "kafka" and source.schema:
            records = open_source(spark, replace(source, schema=None), folder)
            # A deletion is followed by a record without a value, for the compaction of its topic.
            records = records.where("value IS NOT NULL") if source.envelope else records
            return _parse_kafka_json(records, source.schema)
        reader = (spark.readStream if source.stream else spark.read).format(source.format).options(**source.options)
        checked = source.format in CHECKED_FORMATS and not _sets_mode(source)
        if checked:
            schema = _read_schema(source.schema) if source.schema else _infer_file_schema(spark, source)
            reader = reader.option("columnNameOfCorruptRecord", BAD_ROW).schema(add_bad_row_column(schema))
        elif source.schema:
            reader = reader.schema(source.schema)
        elif source.stream and source.format in FILE_FORMATS:
            reader = reader.schema(_infer_file_schema(spark, source))
        return reader.load(source.path) if source.path else reader.load()
    except PySparkException as problem:
        message = f"the source `{source.name}` cannot be read: {shorten_spark_message(problem)}"
        raise TidelogError(Diagnostic("TL806", message, source.place, help=_suggest_fix(source, problem))) from None


def _sets_mode(source: Source) -> bool:
    """Whether a source says itself what Spark does with rows that it cannot read."""
    return bool({name.lower() for name in source.options} & {"mode", "columnnameofcorruptrecord"})


def _read_schema(text: str) -> StructType:
    from pyspark.sql.types import StructType

    return cast("StructType", StructType.fromDDL(text))


def attach_clock(frame: DataFrame, source: Source) -> DataFrame:
    """Make all rows of a stream that could be read move Spark's clock, including those that SQL filters out.

    Spark would filter rows before it looks at their times if it could. But it moves no condition before one that
    depends on where it is evaluated. This one is always true (as is `rand() >= 0`, which Spark recognises).
    """
    from pyspark.sql import functions as F  # noqa: N812

    name = next((name for name in frame.columns if source.time and name.lower() == source.time.lower()), None)
    if name is None:
        return frame  # reported where a fact needs the column
    kind = frame.schema[name].dataType
    moment = to_spark_clock_column(
        to_timestamp(F.col(f"`{name}`"), kind, source.unit), kind if source.unit is None else None
    )
    if BAD_ROW in frame.columns:
        moment = F.when(F.col(BAD_ROW).isNull(), moment)
    timed = frame.withColumn(_CLOCK, moment).withWatermark(_CLOCK, "0 seconds")
    return timed.where(F.spark_partition_id() >= 0).drop(_CLOCK)


def to_spark_clock_column(time: Column, kind: DataType | None) -> Column:
    """Convert a time of a type (None: timestamp) to Spark's clock; null if it is not a time."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import DateType, NumericType, TimestampNTZType

    if isinstance(kind, DateType):
        milliseconds = F.unix_date(time).cast("bigint") * 86_400_000
    elif isinstance(kind, TimestampNTZType):
        milliseconds = F.timestamp_diff("MILLISECOND", F.lit("1970-01-01").cast("timestamp_ntz"), time)
    elif isinstance(kind, NumericType):
        # Numbers that are not times are refused where they become facts.
        sound = F.abs(time) < CLOCK_SHIFT_MS // 1000
        milliseconds = F.floor(F.when(sound, time).cast("decimal(38,9)") * 1000).cast("bigint")
    else:
        milliseconds = F.unix_millis(time)
    return F.timestamp_millis(milliseconds + CLOCK_SHIFT_MS)


def _infer_file_schema(spark: SparkSession, source: Source) -> StructType:
    reader = spark.read.format(source.format).options(**source.options)
    found = (reader.load(source.path) if source.path else reader.load()).schema
    return _without_bad_rows(found)


def _without_bad_rows(schema: StructType) -> StructType:
    """Leave out the column that Spark infers for rows that it cannot read."""
    from pyspark.sql.types import StructType

    return StructType([field for field in schema.fields if field.name != "_corrupt_record"])


def _parse_kafka_json(frame: DataFrame, schema: str) -> DataFrame:
    """Parse JSON records into columns, with the metadata of the record in a column `kafka`."""
    from pyspark.sql import functions as F  # noqa: N812

    text = F.col("value").cast("string")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD_ROW}
    value = F.from_json(text, add_bad_row_column(_read_schema(schema)), options).alias("json")
    own = F.struct("topic", "partition", "offset", "timestamp", "key").alias("kafka")
    columns = [f"json.{_quote(field.name)}" for field in _read_schema(schema).fields]
    empty = F.when(F.col("json").isNull(), F.lit(""))
    bad = F.coalesce(F.col(f"json.{BAD_ROW}"), empty).alias(BAD_ROW)
    return frame.select(value, own).select(*columns, "kafka", bad)


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _suggest_fix(source: Source, problem: Exception) -> str | None:
    what = str(problem)
    if "UNABLE_TO_INFER_SCHEMA" in what:
        return 'there are no files yet: set their columns, schema = "turbine STRING, at TIMESTAMP"'
    if source.format == "kafka" and "Failed to find" in what:
        import pyspark

        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
        return f'add its package: [spark] settings = {{ "spark.jars.packages" = "{package}" }}'
    if "DATA_SOURCE_NOT_FOUND" in what or "Failed to find" in what:
        return 'add its package: [spark] settings = { "spark.jars.packages" = "group:artifact:version" }'
    if "PATH_NOT_FOUND" in what and source.path and "://" not in source.path:
        return "paths start from the folder of the pipeline file"
    return None


def to_timestamp(column: Column, type: DataType, unit: str | None) -> Column:
    """Convert numbers of a unit since 1970 to timestamps; leave other columns as they are."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import IntegralType

    if unit is None:
        return column
    if isinstance(type, IntegralType):
        return F.timestamp_micros(column.cast("bigint") * UNITS[unit])
    return F.timestamp_micros((column.cast("decimal(38,9)") * UNITS[unit]).cast("bigint"))
