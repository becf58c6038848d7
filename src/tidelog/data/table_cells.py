"""Tables as cells: CSV and Parquet as pyarrow reads them, before any cell has a meaning.

Text stays text here. What a cell means, exactly, is decided in `table_reader`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from tidelog.errors import Diagnostic, TidelogError

#: Rows of a Parquet file that are read at once.
CHUNK = 1 << 16
#: What the columns of a table may be.


@dataclass(frozen=True, eq=False)
class Cells:
    """A table as names and columns; a column is an Arrow array or a list of values, None for a missing value."""

    names: Sequence[str]
    columns: Sequence[Any]
    rows: int


def read_cells(data: bytes, form: str, path: str) -> Cells:
    """Read the bytes of a table; `form` is csv, tsv or parquet. For JSON Lines see `json_lines`."""
    import pyarrow as pa

    try:
        if form == "parquet":
            from pyarrow import parquet

            source = pa.BufferReader(data)
            dictionaries = _find_dictionaries(source)
            table = parquet.read_table(source, use_threads=False, read_dictionary=dictionaries)
            return Cells(table.column_names, table.columns, table.num_rows)
        table = _read_csv(data, "\t" if form == "tsv" else ",", path)
        return Cells(table.column_names, [column.combine_chunks() for column in table.columns], table.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, form, error) from None


def _find_dictionaries(source: Any) -> list[str]:
    """Find the columns of texts that a Parquet file holds as dictionaries: each of their texts is then read once."""
    from pyarrow import parquet, types

    file = parquet.ParquetFile(source)
    texts = {f.name for f in file.schema_arrow if types.is_string(f.type) or types.is_large_string(f.type)}
    if not texts or not file.metadata.num_row_groups:
        return []
    group = file.metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return [c.path_in_schema for c in columns if c.path_in_schema in texts and c.has_dictionary_page]


def _read_csv(data: bytes, delimiter: str, path: str) -> Any:
    """Read all columns as text: pyarrow would round decimal numbers and guess dates."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    start = io.StringIO(data[: 1 << 16].decode(errors="replace"), newline="")
    header = next(csv.reader(start, delimiter=delimiter), [])
    check_header(header, delimiter, path)
    return arrow_csv.read_csv(
        pa.BufferReader(data),
        read_options=arrow_csv.ReadOptions(use_threads=False),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in data),
        convert_options=arrow_csv.ConvertOptions(
            column_types={name: pa.large_string() for name in header},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def check_header(header: list[str], delimiter: str, path: str) -> None:
    """Raise TL205 if the first line of a table names no columns, or has another mark between them."""
    if len(header) == 1 and (mark := re.search("[;|,\t]", header[0])):
        shown = {"\t": "a tab"}.get(mark[0], f"`{mark[0]}`")
        problem = f"the first line of {path} names one column, with {shown} in its name: `{header[0].strip()}`"
        law = "columns are separated by commas in .csv, and by tabs in .tsv"
        form = "with tabs, or with commas as .csv" if delimiter == "\t" else "with commas, or with tabs as .tsv"
        raise TidelogError(Diagnostic("TL205", problem, law=law, help=f"save the table {form}"))
    for name in header:
        if not name.strip() or re.fullmatch(r"[-+]?[0-9./]+", name.strip()):
            problem = f"the first line of {path} must name the columns, but one of them is `{name.strip()}`"
            help = "put a line with the names of the columns first"
            raise TidelogError(Diagnostic("TL205", problem, help=help))


def read_parquet_batches(source: BinaryIO, path: str) -> Iterator[Cells]:
    """Read a Parquet file in batches of rows; one from a pipe is loaded as a whole, since its end is read first."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(source if source.seekable() else io.BytesIO(source.read())) as file:
            for batch in file.iter_batches(CHUNK, use_threads=False):
                yield Cells(batch.schema.names, batch.columns, batch.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, "parquet", error) from None


def _unreadable(path: str, form: str, error: Exception) -> TidelogError:
    reason = str(error).strip().split("\n")[0]
    help = "the file is damaged, or was not written to its end" if form == "parquet" else None
    if reason == "Empty CSV file":
        reason, help = "it is empty", "the first line of a table names its columns"
    return TidelogError(Diagnostic("TL207", f"cannot read {path}: {reason}", help=help))
