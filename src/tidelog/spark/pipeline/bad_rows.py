"""Separate the rows of sources that cannot be read from those that can, so that none disappears.

Spark fills the columns of such a row with nulls, and the first condition of a query drops it. Here its text is kept in
a column of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.spark.pipeline.pipeline_config import Source
from tidelog.spark.worker.declared_rows import (
    BAD_ROW,
    FILE,
    LINE,
    DeclaredTable,
    make_cell_reader,
    make_file_reader,
    make_record_reader,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: The formats in which Spark notes rows that it cannot read.
CHECKED_FORMATS = ("json", "csv")
_BINARY_FILE = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"


def add_bad_row_column(schema: StructType) -> StructType:
    """Add the column in which Spark keeps the text of rows that it cannot read."""
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*schema.fields, StructField(BAD_ROW, StringType())])


def mark_rows(frame: DataFrame, source: Source) -> DataFrame:
    """Return the rows of a source, all of whose columns are read, with a column that says where a row is from.

    The condition is always true, and needs all columns: Spark would otherwise read only those that a query uses, and
    accept a row although its other columns are bad.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if BAD_ROW not in frame.columns:
        return frame
    columns = [F.col(f"`{name}`") for name in frame.columns if name != BAD_ROW]
    if source.table is None:
        kafka = F.struct("kafka.topic", "kafka.partition", "kafka.offset")
        frame = frame.withColumn(FILE, kafka if source.format == "kafka" else F.col("_metadata.file_path"))
    return frame.where(F.hash(F.to_json(F.struct(*columns))).cast("bigint") + F.spark_partition_id() > -(1 << 40))


def select_good_rows(frame: DataFrame) -> DataFrame:
    """Return the marked rows that could be read."""
    from pyspark.sql import functions as F  # noqa: N812

    return frame.where(F.col(BAD_ROW).isNull()).drop(BAD_ROW, FILE) if BAD_ROW in frame.columns else frame


def select_bad_rows(frame: DataFrame, source: Source) -> DataFrame | None:
    """Return the marked rows that could not be read, as JSON in a column `row`; None if the source has no such rows."""
    from pyspark.sql import functions as F  # noqa: N812

    if BAD_ROW not in frame.columns:
        return None
    bad = frame.where(F.col(BAD_ROW).isNotNull())
    if source.table is not None:
        return bad.select(F.col(BAD_ROW).alias("row"))
    return bad.select(_describe_record() if source.format == "kafka" else _describe_row())


def _describe_row() -> Column:
    """Describe a row of a file that Spark could not read, as JSON. Spark does not know its line."""
    from pyspark.sql import functions as F  # noqa: N812

    return _to_json(F.col(FILE), F.lit(None).cast("bigint"), "row")


def _describe_record() -> Column:
    """Describe a record of a topic that Spark could not read, as JSON; its offset takes the place of the line."""
    from pyspark.sql import functions as F  # noqa: N812

    topic = F.concat(F.col(f"{FILE}.topic"), F.lit("["), F.col(f"{FILE}.partition").cast("string"), F.lit("]"))
    return _to_json(topic, F.col(f"{FILE}.offset"), "record")


def _to_json(file: Column, line: Column, noun: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    reason = F.lit(f"the {noun} cannot be read with the schema of the source")
    row = F.struct(file.alias("file"), line.alias("line"), reason.alias("reason"), F.col(BAD_ROW).alias("row"))
    return F.to_json(row, {"ignoreNullFields": "false"}).alias("row")


def open_declared_source(spark: SparkSession, source: Source) -> DataFrame:
    """Open a source whose columns are declared: typed columns, and `BAD_ROW` for rows that could not be read."""
    from pyspark.sql import functions as F  # noqa: N812

    assert source.table is not None
    declared = DeclaredTable(source.table, source.format, source.dates)
    reader = (spark.readStream if source.stream else spark.read).options(**source.options)
    fields = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in declared.columns)
    columns = f"{fields}, {BAD_ROW} string"
    if source.format == "kafka":
        records = reader.format("kafka").load()
        name = F.concat(F.col("topic"), F.lit("["), F.col("partition").cast("string"), F.lit("]"))
        placed = records.select(name.alias(FILE), F.col("offset").alias(LINE), "value")
        return placed.mapInArrow(make_record_reader(declared), columns)
    if source.format == "parquet":
        if source.stream:
            reader = reader.schema(spark.read.options(**source.options).parquet(str(source.path)).schema)
        rows = reader.format("parquet").load(source.path)
        named = {name.lower(): name for name in rows.columns}
        kept = [
            F.col(f"`{named[c.name.lower()]}`").alias(c.name) for c in source.table.columns if c.name.lower() in named
        ]
        metadata = (F.col("_metadata.file_path").alias(FILE), F.col("_metadata.row_index").alias(LINE))
        return rows.select(*kept, *metadata).mapInArrow(make_cell_reader(declared), columns)
    files = reader.format("binaryFile").schema(_BINARY_FILE).load(source.path).select("path", "content")
    return files.mapInArrow(make_file_reader(declared), columns)
