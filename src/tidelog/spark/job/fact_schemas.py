"""The columns of fact DataFrames: as Spark reports them, or as the caller declares them.

Spark analyses a DataFrame to report its columns. The functions of a declarative pipeline may not ask for that, because
the tables that they read need not exist yet; there, the caller declares the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.wording import suggest
from tidelog.spark.job.options import JobOptions, SchemaLike
from tidelog.spark.job.struct_types import read_struct_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NO_ANALYSIS = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"


@dataclass(frozen=True)
class FactFrame:
    """A fact DataFrame with its columns as (name, Spark type), and whether it is streaming."""

    frame: DataFrame
    fields: tuple[tuple[str, str], ...]
    streaming: bool
    #: Whether the caller declared the columns; otherwise Spark reported them.
    declared: bool = False


def describe_fact_frames(facts: Mapping[str, DataFrame], options: JobOptions) -> dict[str, FactFrame]:
    """Find the columns of all fact DataFrames; ask Spark only about those that no schema declares."""
    schemas = options.schemas or {}
    for name in schemas:
        if name not in facts:
            close = suggest(name, facts)
            help = f"did you mean {close}?" if close else f"there are facts of {', '.join(facts)}"
            raise TidelogError(Diagnostic("TL302", f"{name} has a schema, but no facts", help=help))
    return {name: _describe(name, frame, schemas.get(name)) for name, frame in facts.items()}


def _describe(name: str, frame: DataFrame, schema: SchemaLike | None) -> FactFrame:
    from pyspark.errors import PySparkException

    declared = None if schema is None else tuple(_read_schema(name, schema))
    try:
        if declared is not None:
            return FactFrame(frame, declared, frame.isStreaming, declared=True)
        fields = tuple((field.name, field.dataType.simpleString()) for field in frame.schema.fields)
        return FactFrame(frame, fields, frame.isStreaming)
    except PySparkException as problem:
        if problem.getCondition() != _NO_ANALYSIS:
            raise
    if declared is not None:
        # No stream: the operators of a streaming job cannot be built without analysis, and Spark refuses those of a
        # batch job over a stream.
        return FactFrame(frame, declared, streaming=False, declared=True)
    help = f'declare them: schemas={{"{name}": "turbine STRING, time TIMESTAMP"}}, with your columns'
    raise TidelogError(Diagnostic("TL813", f"Spark may not be asked for the columns of {name} here", help=help))


def _read_schema(predicate: str, schema: SchemaLike) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, str):
        schema = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema.fields)
    try:
        fields = read_struct_type(schema).fields
    except ValueError as rest:
        message = f"the schema of {predicate} cannot be read from `{rest}` on"
        law = "a schema lists columns as `name TYPE`, with the types of Spark's SQL"
        raise TidelogError(Diagnostic("TL805", message, law=law)) from None
    yield from ((field.name, field.dataType.simpleString()) for field in fields)
