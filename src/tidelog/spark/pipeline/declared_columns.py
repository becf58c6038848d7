"""Read what a pipeline declares about the columns of a source: here, or in the schema file next to the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidelog.data.schema import Schema, TableSchema, read_column_schema
from tidelog.language.toml_tables import TomlTable
from tidelog.spark.pipeline.pipeline_config import FactQuery, Source
from tidelog.spark.worker.declared_rows import DeclaredTable

#: The formats of sources whose columns may be declared.
_FORMATS = ("csv", "json", "kafka", "parquet")


def is_declared(table: TomlTable) -> bool:
    """Whether a source says what its columns mean."""
    return "columns" in table.values or "predicate" in table.values


def read_declared_columns(source: Source, table: TomlTable, schema: Schema | None) -> Source:
    """Return a source with the meaning of its columns, if they are declared; mistakes are noted in `table`."""
    if not is_declared(table):
        table.finish()
        return source
    predicate = table.text("predicate")
    found = _find_columns(source, table, predicate, schema)
    dates = table.choice("times", ("dates", "numbers")) != "numbers"
    table.finish()
    if source.format not in _FORMATS:
        law = f"columns are declared for {', '.join(_FORMATS)}"
        table.refuse("TL805", f"the columns of {source.format} cannot be declared", "format", law)
    if source.schema:
        table.refuse("TL805", "a source has `columns`, or a `schema` of Spark, but not both", "schema")
    if found is None:
        return source
    if source.stream and predicate and not (found.time or found.start):
        help = "name the column with `time`, or set static = true for facts that always hold"
        table.refuse("TL805", f"no column of {predicate} is a time", help=help)
    return replace(source, table=found, time=found.time, unit=None, dates=dates)


def _find_columns(source: Source, table: TomlTable, predicate: str | None, schema: Schema | None) -> TableSchema | None:
    if "columns" in table.values:
        return read_column_schema(predicate or "", table)
    found = schema.tables.get(predicate or "") if schema else None
    if found is None:
        where = (
            f"{schema.source} has no [schema.{predicate}]" if schema else "there is no tidelog.toml next to the rules"
        )
        help = 'declare the columns here: columns = { order = "text", at = "time" }'
        table.refuse("TL804", f"the columns of {predicate} are not declared: {where}", "predicate", help=help)
    return found


def find_declared_facts(sources: Sequence[Source]) -> tuple[FactQuery, ...]:
    """Return the facts of sources that name their predicate, which need no SQL."""
    facts = []
    for source in sources:
        if source.table is None or not source.table.predicate:
            continue
        table = source.table
        columns = ", ".join(f"`{name.replace('`', '``')}`" for name, _ in _list_columns(source))
        facts.append(
            FactQuery(
                table.predicate,
                sql=f"SELECT {columns} FROM {source.name}",
                time=table.time,
                start=table.start,
                end=table.end,
                closed=DeclaredTable(table, source.format, source.dates).closed_column if table.start else None,
                unit=None,
                delay=None,
                background=not (table.time or table.start),
                place=source.place,
                op=table.op,
            )
        )
    return tuple(facts)


def _list_columns(source: Source) -> list[tuple[str, str]]:
    assert source.table is not None
    return DeclaredTable(source.table, source.format, source.dates).columns
