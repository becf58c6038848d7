"""Dataframes as facts: any object with `__arrow_c_stream__`, such as those of pandas, Polars, DuckDB, Ibis and pyarrow.

A frame holds the facts of one predicate, with the columns that `table_reader` describes. Its buffers are read where
they are. Frames are accepted wherever a dataset is: functions call `to_dataset` on what they are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tidelog.data.data_files import is_predicate
from tidelog.data.dataset import Dataset
from tidelog.data.relation import EMPTY, Columns, combine
from tidelog.data.row_recovery import read_parquet_cells
from tidelog.data.schema import Schema, load_schema
from tidelog.data.statistics import describe_columns
from tidelog.data.symbol_table import Symbols
from tidelog.data.table_cells import Cells
from tidelog.data.table_reader import TableFormat, build_columns
from tidelog.data.time_columns import is_time_column
from tidelog.data.time_units import TimeUnits
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.syntax import Fact

if TYPE_CHECKING:
    from tidelog.analysis.value_columns import ValueColumn
    from tidelog.data.bad_rows import BadRows


class ArrowStream(Protocol):
    """A table that hands out its columns through the Arrow PyCapsule interface, without copying them."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with a stream of record batches."""


#: Facts that are ready, or tables of facts by predicate.
DataLike = Dataset | Mapping[str, ArrowStream]
#: Facts for a session over a stream: also as text or as objects.
FactsLike = Iterable[str | Fact] | DataLike
#: A schema, or the path of a schema file.
SchemaLike = Schema | str | Path

_INDEX = re.compile(r"__index_level_\d+__")
_LAW = "a table is any object with `__arrow_c_stream__`: of pandas, Polars, DuckDB, Ibis, pyarrow and others"
_HELP = 'pass a dataset, or a table for each predicate: {"Reading": table}'


def to_schema(schema: SchemaLike | None) -> Schema | None:
    """Return a schema, loaded if it is a path."""
    if schema is None or isinstance(schema, Schema):
        return schema
    if not isinstance(schema, str | Path):
        problem = f"the schema is an object of type {type(schema).__name__}"
        raise TidelogError(Diagnostic("TL805", problem, help="pass the path of a schema file"))
    return load_schema(schema)


def to_dataset(data: DataLike, schema: SchemaLike | None = None) -> Dataset:
    """Return a dataset as it is, and tables by predicate as a dataset."""
    return data if isinstance(data, Dataset) else read_frames(data, schema)


def _suggest_reader(facts: object) -> str:
    """Say how an object that is neither a dataset nor tables by predicate can be passed as facts."""
    if isinstance(facts, str | Path):
        return "read fact text with tl.Dataset.parse(text), and files with tl.Dataset.load(path)"
    if isinstance(facts, list | tuple | set):
        return 'build a dataset: tl.Dataset.from_facts(["Reading(t1,90)@3"])'
    return _HELP


def find_column_names(data: Dataset, schema: SchemaLike | None = None) -> dict[str, tuple[str, ...]]:
    """Find the columns of the arguments of each predicate: those of a schema, or those of the table of its facts."""
    found: dict[str, dict[int, str]] = {}
    for column in data.sources:
        if column.column is not None:
            found.setdefault(column.predicate, {}).setdefault(column.position, column.column)
    names = {name: tuple(columns[i] for i in sorted(columns)) for name, columns in found.items()}
    known = to_schema(schema)
    declared = {} if known is None else {name: known.column_names(name) or () for name in known.tables}
    return names | declared


def read_frames(
    frames: Mapping[str, ArrowStream], schema: SchemaLike | None = None, bad_rows: BadRows | None = None
) -> Dataset:
    """Read the facts of all tables into one dataset; see `Dataset.from_arrow`."""
    if not isinstance(frames, Mapping):
        problem = f"the facts are an object of type {type(frames).__name__}"
        raise TidelogError(Diagnostic("TL207", problem, law=_LAW, help=_suggest_reader(frames)))
    known = to_schema(schema)
    symbols, units = Symbols(), TimeUnits()
    parts: list[Columns] = []
    columns: list[ValueColumn] = []
    for predicate, frame in frames.items():
        source = f"the table {predicate}"
        if not is_predicate(predicate):
            problem = f"`{predicate}` cannot be a predicate"
            raise TidelogError(Diagnostic("TL207", problem, help="give the table a name like Reading"))
        table = None if known is None else known.tables.get(predicate)
        format = TableFormat("arrow", predicate, source, table)
        build = partial(build_columns, format=format, symbols=symbols, row=0)
        part = read_parquet_cells(_read_cells(frame, source, table is None), source, build, 0, bad_rows)
        units.add(symbols, part, source)
        columns += describe_columns(symbols, part, source)
        parts.append(part)
    return Dataset(symbols, combine(symbols, parts) if parts else EMPTY, tuple(columns))


def _read_cells(frame: ArrowStream, source: str, find_time: bool) -> Cells:
    """Import the columns of a table; an index of timestamps that has no name is the time, if no column is."""
    import pyarrow as pa
    from pyarrow import types

    table = _import_table(frame, source)
    names = list(table.column_names)
    if find_time and not any(map(is_time_column, names)):
        for i, (name, type) in enumerate(zip(names, table.schema.types, strict=True)):
            if _INDEX.fullmatch(name) and types.is_timestamp(type):
                names[i] = "time"
                break
    columns = [column.chunk(0) if column.num_chunks == 1 else column for column in table.columns]
    assert isinstance(table, pa.Table)
    return Cells(names, columns, table.num_rows)


def _import_table(frame: Any, source: str) -> Any:
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if not hasattr(frame, "__arrow_c_stream__"):
        problem = f"{source} is an object of type {type(frame).__name__}, which is no table"
        help = "call its method `collect` first" if hasattr(frame, "collect") else None
        raise TidelogError(Diagnostic("TL207", problem, law=_LAW, help=help))
    try:
        return pa.RecordBatchReader.from_stream(frame).read_all()
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        reason = ", ".join(map(str, error.args)).strip().split("\n")[0]
        problem, help = f"cannot read {source}: {reason}", None
        if isinstance(error, pa.ArrowException) and "Conversion failed" in reason:
            help = "give the column values of one type, as with frame.astype(str)"
        raise TidelogError(Diagnostic("TL207", problem, law=_LAW, help=help)) from None
