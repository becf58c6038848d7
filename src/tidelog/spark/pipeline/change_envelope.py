"""Rows of change data capture in the envelope of Debezium: `before`, `after` and `op`.

An envelope becomes rows of the table with a column `op`: an update deletes the row as it was, and inserts the new one.
What cannot be understood keeps its own word in `op`, and is set aside with other bad rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.pipeline.pipeline_config import OPERATION, Source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LAW = "an envelope has the columns `before` and `after`, which are rows of one table, and `op`, which is c, r, u or d"


def unwrap_rows(frame: DataFrame, source: Source) -> DataFrame:
    """Return the rows in envelopes, with a column `op`; an envelope that is empty has none."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType

    if "payload" in frame.columns and isinstance(frame.schema["payload"].dataType, StructType):
        frame = frame.select("payload.*", *(name for name in frame.columns if name not in ("payload", "schema")))
    missing = [name for name in ("before", "after", "op") if name not in frame.columns]
    if missing:
        raise _refuse(source, f"there is no column `{missing[0]}`")
    types = [frame.schema[name].dataType for name in ("before", "after")]
    table = next((type for type in types[::-1] if isinstance(type, StructType)), None)
    if table is None:
        raise _refuse(source, f"`after` is {types[1].simpleString()}, which is not a row")
    if any(isinstance(type, StructType) and type.simpleString() != table.simpleString() for type in types):
        raise _refuse(source, "`before` and `after` have different columns")
    if OPERATION in table.names:
        raise _refuse(source, f"the table has a column `{OPERATION}` of its own")
    before, after = (
        F.col(name) if isinstance(type, StructType) else F.lit(None).cast(table)
        for name, type in zip(("before", "after"), types, strict=True)
    )
    others = [f"`{name}`" for name in frame.columns if name == "kafka" and "kafka" not in table.names]
    each = frame.select(F.explode(_list_changes(before, after)).alias("change"), *others)
    return each.select("change.row.*", f"change.{OPERATION}", *others)


def _list_changes(before: Column, after: Column) -> Column:
    """Return a column with the operations and rows of each envelope."""
    from pyspark.sql import functions as F  # noqa: N812

    def change(op: Column, row: Column) -> Column:
        return F.struct(op.alias(OPERATION), row.alias("row"))

    inserted, deleted = change(F.lit("insert"), after), change(F.lit("delete"), before)
    word = F.lower(F.trim(F.col("op")))
    unknown = change(F.coalesce(F.col("op"), F.lit("?")), F.coalesce(after, before))
    return (
        F.when(word.isin("c", "r"), F.array(inserted))
        .when(word == "d", F.array(deleted))
        .when((word == "u") & before.isNotNull() & after.isNotNull(), F.array(deleted, inserted))
        .when(F.col("op").isNotNull() | before.isNotNull() | after.isNotNull(), F.array(unknown))
    )


def _refuse(source: Source, problem: str) -> TidelogError:
    message = f"the source `{source.name}` is not in the envelope of Debezium: {problem}"
    help = 'set its columns: schema = "before STRUCT<...>, after STRUCT<...>, op STRING"'
    return TidelogError(Diagnostic("TL806", message, source.place, _LAW, help))
