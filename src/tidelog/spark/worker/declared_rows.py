"""Read the tables of sources whose columns a pipeline declares, with the readers of all other commands.

Rows that cannot be read keep their file, line and reason, in the column `BAD_ROW`, whose other columns are empty.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from tidelog.data.bad_rows import BadRows
from tidelog.data.data_files import read_table_bytes
from tidelog.data.deletions import is_deletion
from tidelog.data.relation import Columns, Relation
from tidelog.data.row_recovery import Row, build_parts, read_parquet_cells
from tidelog.data.schema import TableSchema
from tidelog.data.symbol_table import Symbols
from tidelog.data.table_cells import Cells
from tidelog.data.table_lines import TableRecords
from tidelog.data.table_reader import TableFormat
from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.worker.answer_columns import times_to_arrow
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.interval import CLOSED_ENDS

#: The column of rows that cannot be read: JSON with file, line, reason and the row itself.
BAD_ROW = "__tidelog_bad"
#: Columns that say where a row is from.
FILE, LINE = "__tidelog_file", "__tidelog_line"
_ROWS = 100_000


@dataclass(frozen=True)
class DeclaredTable:
    """The columns of a source, its format, and whether its times are dates."""

    table: TableSchema
    form: str
    dates: bool

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The names and Spark types of the columns that SQL sees."""
        time = "timestamp" if self.dates else "double"
        found = [(c.name, "double" if c.type == "number" else "string") for c in self.table.arguments]
        found += [(name, time) for name in (self.table.time, self.table.start, self.table.end) if name]
        found += [(self.closed_column, "string")] if self.table.start else []
        return [*found, (self.table.op, "string")] if self.table.op else found

    @property
    def closed_column(self) -> str:
        """The column that says which ends of an interval belong to it."""
        return self.table.closed if self.table.closed and self.table.closed not in CLOSED_ENDS else "closed"


def make_file_reader(declared: DeclaredTable) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function for `mapInArrow` that reads whole files: their paths and bytes."""

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for path, content in zip(batch["path"].to_pylist(), batch["content"].to_pylist(), strict=True):
                data = gzip.decompress(content) if path.lower().endswith(".gz") else content
                table = TableFormat(declared.form, declared.table.predicate, _show_path(path), declared.table)
                symbols, bad = Symbols(), BadRows(io.StringIO())
                yield from _to_batches(declared, symbols, read_table_bytes(data, [table], symbols, bad), _lines(bad))

    return read


def make_record_reader(declared: DeclaredTable) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function for `mapInArrow` that reads records of topics: where they are from, and their bytes."""

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            files, lines, values = (batch[name].to_pylist() for name in (FILE, LINE, "value"))
            for name in dict.fromkeys(files):
                bad = BadRows(io.StringIO())
                own = [i for i, file in enumerate(files) if file == name]
                empty = [
                    json.dumps({"file": name, "line": lines[i], "reason": "the record has no value", "row": ""})
                    for i in own
                    if values[i] is None
                ]
                rows = [
                    Row(lines[i], values[i].replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")
                    for i in own
                    if values[i] is not None
                ]
                data = TableRecords(name, [declared.table]).read(rows, bad)
                yield from _to_batches(declared, data.symbols, data.as_columns(), [*empty, *_lines(bad)])

    return read


def make_cell_reader(declared: DeclaredTable) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function for `mapInArrow` that reads rows that Spark has read from Parquet files."""

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            files, lines = batch[FILE].to_pylist(), batch[LINE].to_pylist()
            names = [name for name in batch.schema.names if name not in (FILE, LINE)]
            cells = Cells(names, [batch[name] for name in names], batch.num_rows)
            table = TableFormat("parquet", declared.table.predicate, declared.table.predicate, declared.table)
            symbols, bad = Symbols(), BadRows(io.StringIO())
            build = partial(build_parts, formats=[table], symbols=symbols, row=0)
            columns = read_parquet_cells(cells, table.path, build, 0, bad)
            placed = []
            for line in _lines(bad):
                row = json.loads(line)
                at = row["line"] - 1
                placed.append(json.dumps({**row, "file": _show_path(files[at]), "line": lines[at] + 1}))
            yield from _to_batches(declared, symbols, columns, placed)

    return read


def _lines(bad: BadRows) -> list[str]:
    assert isinstance(bad.file, io.StringIO)
    return bad.file.getvalue().splitlines()


def _show_path(path: str) -> str:
    """Show a local path as the user wrote it, and other addresses as they are."""
    return unquote(path.removeprefix("file://").removeprefix("file:")) if path.startswith("file:") else path


def _to_batches(declared: DeclaredTable, symbols: Symbols, columns: Columns, bad: list[str]) -> Iterator[Any]:
    """Yield facts as typed columns, then the rows that could not be read."""
    import pyarrow as pa

    kinds = {"string": pa.string(), "double": pa.float64(), "timestamp": pa.timestamp("us", tz="UTC")}
    names = [name for name, _ in declared.columns]
    for relation in columns.relations.values():
        if len(relation):
            arrays = _to_arrays(declared, symbols, columns, relation)
            if declared.table.op:
                arrays.append(pa.array(["delete" if is_deletion(relation.predicate) else "insert"] * len(relation)))
            arrays.append(pa.nulls(len(relation), pa.string()))
            whole = pa.RecordBatch.from_arrays(arrays, [*names, BAD_ROW])
            yield from (whole.slice(at, _ROWS) for at in range(0, len(relation), _ROWS))
    if bad:
        arrays = [pa.nulls(len(bad), kinds[kind]) for _, kind in declared.columns]
        yield pa.RecordBatch.from_arrays([*arrays, pa.array(bad, pa.string())], [*names, BAD_ROW])


def _to_arrays(declared: DeclaredTable, symbols: Symbols, columns: Columns, relation: Relation) -> list[Any]:
    import pyarrow as pa

    arrays = []
    for column, ids in zip(declared.table.arguments, relation.args, strict=True):
        used, places = np.unique(ids, return_inverse=True)
        values = [symbols.value(int(id)) for id in used]
        if column.type == "number":
            constants = pa.array([_to_double(value, column.name) for value in values], pa.float64())
        else:
            constants = pa.array([str(value) for value in values], pa.string())
        arrays.append(constants.take(pa.array(places)))
    if not (declared.table.time or declared.table.start):
        return arrays
    if declared.dates != columns.dates or (columns.dates and columns.numbers):
        kinds = ("numbers", "dates") if declared.dates else ("dates", "numbers")
        message = f"the times of {declared.table.predicate} are {kinds[0]}, but the pipeline expects {kinds[1]}"
        help = (
            'set the `unit` of the numbers, or times = "numbers"' if declared.dates else 'leave times = "numbers" out'
        )
        raise TidelogError(Diagnostic("TL209", message, help=help))
    kind = "timestamp" if declared.dates else "double"
    lo, hi = relation.lo, relation.hi
    endless_lo, endless_hi = lo == NEG_INF, hi == POS_INF
    _require_microseconds(declared, columns.denominator, np.concatenate([lo[~endless_lo] >> 1, hi[~endless_hi] >> 1]))
    arrays.append(times_to_arrow(lo >> 1, endless_lo, columns.denominator, kind))
    if declared.table.start:
        arrays.append(times_to_arrow((hi + 1) >> 1, endless_hi, columns.denominator, kind))
        open_lo, open_hi = endless_lo | (lo & 1 == 1), endless_hi | (hi & 1 == 1)
        arrays.append(pa.array(list(CLOSED_ENDS), pa.string()).take(pa.array(open_hi + 2 * open_lo)))
    return arrays


def _to_double(value: Any, name: str) -> float:
    """Convert a number to the type that Spark gets; refuse one that it would change."""
    number = float(value)
    if Fraction(repr(number)) != value:
        message = f"the number {value} in the column `{name}` has more digits than Spark's type DOUBLE"
        raise TidelogError(Diagnostic("TL206", message, help='declare the column as "text"'))
    return number


def _require_microseconds(declared: DeclaredTable, denominator: int, ticks: npt.NDArray[np.int64]) -> None:
    """Refuse times that Spark's timestamps would change."""
    if declared.dates and 1_000_000 % denominator and bool(np.any(ticks * 1_000_000 % denominator)):
        message = f"some times of {declared.table.predicate} are finer than a microsecond, as which Spark keeps them"
        raise TidelogError(Diagnostic("TL204", message, help="round them before"))
