"""Read the text form of column types in this process.

PySpark sends such a text to Spark to be read, even over Spark Connect. Functions of declarative pipelines may not ask
Spark anything, so a job gives it types instead of text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

#: The types that columns may have, in the words of Spark's SQL; decimals and arrays have parameters.
_TYPES = {
    **dict.fromkeys(("tinyint", "byte"), "ByteType"),
    **dict.fromkeys(("smallint", "short"), "ShortType"),
    **dict.fromkeys(("int", "integer"), "IntegerType"),
    **dict.fromkeys(("bigint", "long"), "LongType"),
    **dict.fromkeys(("float", "real"), "FloatType"),
    "double": "DoubleType",
    "string": "StringType",
    "binary": "BinaryType",
    "boolean": "BooleanType",
    "date": "DateType",
    **dict.fromkeys(("timestamp", "timestamp_ltz"), "TimestampType"),
    "timestamp_ntz": "TimestampNTZType",
}
_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+))\s*:?\s+([a-zA-Z_]\w*(?:<\w+>|\([\d\s,]*\))?)\s*(?:,|$)")
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,(\d+))?\))?")
_ARRAY = re.compile(r"array<(\w+)>")


def read_struct_type(text: str) -> StructType:
    """Read `name TYPE, ...`; raise ValueError with the part that cannot be read."""
    from pyspark.sql.types import StructField, StructType

    fields: list[StructField] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _COLUMN.match(text, at)
        kind = _read_type(re.sub(r"\s", "", found[3].lower())) if found else None
        if found is None or kind is None:
            raise ValueError(text[at:].strip())
        name = found[1].replace("``", "`") if found[1] else found[2]
        fields.append(StructField(name, kind))
        at = found.end()
    return StructType(fields)


def declare_columns(frame: DataFrame, columns: str | StructType) -> DataFrame:
    """Tell PySpark the columns of a DataFrame, which it would otherwise ask Spark for; return the DataFrame.

    Over Spark Connect, a DataFrame remembers its columns once they are known. (`DataFrame.to` sets them as well, but
    Spark has to analyse it.) In other sessions they are always known.
    """
    if getattr(type(frame), "__module__", "").startswith("pyspark.sql.connect."):
        known: Any = frame
        known._cached_schema = read_struct_type(columns) if isinstance(columns, str) else columns
    return frame


def _read_type(text: str) -> DataType | None:
    from pyspark.sql import types

    if text in _TYPES:
        made: DataType = getattr(types, _TYPES[text])()
        return made
    if decimal := _DECIMAL.fullmatch(text):
        return types.DecimalType(*(int(digits) for digits in decimal.groups() if digits))
    if array := _ARRAY.fullmatch(text):
        element = _read_type(array[1])
        return None if element is None else types.ArrayType(element)
    return None
