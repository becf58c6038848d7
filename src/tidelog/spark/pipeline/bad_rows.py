"""Separate the rows of sources that cannot be read from those that can, so that none disappears.

Spark fills the columns of such a row with nulls, and the first condition of a query drops it. Here its text is kept in
a column of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

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
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: The formats in which Spark notes rows that it cannot read.
CHECKED_FORMATS = ("json", "csv")
_BINARY_FILE = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"


def add_bad_row_column(schema: StructType) -> StructType:
    """Add the column in which Spark keeps the text of rows that it cannot read."""
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*schema.fields, StructField(BAD_ROW, StringType())])


def select_good_rows(frame: DataFrame) -> DataFrame:
    """Return the rows that could be read.

    The last condition is always true. It needs all columns: Spark would otherwise read only those that a query uses,
    and accept a row although its other columns are bad.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if BAD_ROW not in frame.columns:
        return frame
    columns = [F.col(f"`{name}`") for name in frame.columns if name != BAD_ROW]
    always = F.hash(F.to_json(F.struct(*columns))).cast("bigint") + F.spark_partition_id() > -(1 << 40)
    return frame.where(F.col(BAD_ROW).isNull()).where(always).drop(BAD_ROW)


def select_bad_rows(frame: DataFrame, source: Source) -> DataFrame | None:
    """Return the rows that could not be read, as JSON in a column `row`; None if the source has no such rows."""
    from pyspark.sql import functions as F  # noqa: N812

    if BAD_ROW not in frame.columns:
        return None
    if source.table is not None:
        return frame.where(F.col(BAD_ROW).isNotNull()).select(F.col(BAD_ROW).alias("row"))
    if source.format == "kafka":
        own = F.struct("kafka.topic", "kafka.partition", "kafka.offset")
        return frame.withColumn(FILE, own).mapInArrow(_describe_records, "row string")
    return frame.withColumn(FILE, F.col("_metadata.file_path")).mapInArrow(_describe_rows, "row string")


def _describe_rows(batches: Iterator[Any]) -> Iterator[Any]:
    """Describe the rows of files that Spark could not read. It does not know their lines."""
    return _describe(batches, "row", lambda file: (file, None))


def _describe_records(batches: Iterator[Any]) -> Iterator[Any]:
    """Describe the records of topics that Spark could not read; offsets take the place of lines."""
    return _describe(batches, "record", lambda own: (f"{own['topic']}[{own['partition']}]", own["offset"]))


def _describe(batches: Iterator[Any], noun: str, locate: Callable[[Any], tuple[str, int | None]]) -> Iterator[Any]:
    """Yield a JSON object for every row that Spark could not read; `locate` finds its file and line."""
    import pyarrow as pa

    for batch in batches:
        rows: list[str] = []
        for text, origin in zip(batch[BAD_ROW].to_pylist(), batch[FILE].to_pylist(), strict=True):
            if text is not None:
                file, line = locate(origin)
                reason = f"the {noun} cannot be read with the schema of the source"
                bad = {"file": file, "line": line, "reason": reason, "row": text}
                rows.append(json.dumps(bad, ensure_ascii=False))
        yield pa.RecordBatch.from_arrays([pa.array(rows, pa.string())], ["row"])


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
