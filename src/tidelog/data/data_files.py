"""Data files: fact text, and tables of one predicate each.

The suffix decides how a file is read: `.csv`, `.tsv`, `.jsonl` (`.ndjson`), `.json` and `.parquet` are tables, and the
text forms may be compressed (`.gz`). Any other file is fact text; `-` is fact text from standard input, and `-.csv` is
a table from it. A table's predicate is its file name without suffix (`Signal.csv`), unless the path names another:
`Signal=measurements.csv`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from tidelog.data.bad_rows import BadRows
from tidelog.data.dataset import Dataset
from tidelog.data.relation import EMPTY, Columns, Key, combine, move_time_arguments, shift_order
from tidelog.data.statistics import describe_columns
from tidelog.data.symbol_table import Symbols
from tidelog.data.time_units import TimeUnits
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.file_errors import check_utf8, is_standard_input, open_input, read_input

if TYPE_CHECKING:
    from tidelog.analysis.value_columns import ValueColumn
    from tidelog.data.schema import Schema
    from tidelog.data.table_cells import Cells
    from tidelog.data.table_reader import TableFormat

#: Bytes of text that are read at once.
CHUNK = 1 << 20

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WITH_PREDICATE = re.compile(r"([^=/\\]+)=(.+)", re.DOTALL)
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
_TABLES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def load_paths(
    paths: Iterable[str | Path],
    temporal: frozenset[Key] = frozenset(),
    *,
    ordered: bool = False,
    schema: Schema | None = None,
    bad_rows: BadRows | None = None,
) -> Dataset:
    """Load the facts of all files into one dataset.

    `temporal` names the predicates of `Dataset.with_time_arguments`. With `ordered`, facts know their positions.
    `schema` says what the columns of tables mean. Rows that cannot be read go to `bad_rows`, if given.
    """
    symbols = Symbols()
    parts: list[Columns] = []
    count = 0
    units = TimeUnits()
    columns: list[ValueColumn] = []
    for path in paths:
        if not isinstance(path, str | Path):
            problem = f"a path is text, and this is an object of type {type(path).__name__}"
            help = 'read dataframes with tl.Dataset.from_arrow({"Reading": frame})'
            raise TidelogError(Diagnostic("TL207", problem, help=help))
        part = _load(parse_path(str(path)), symbols, ordered, schema, bad_rows)
        units.add(symbols, part, name_source(str(path)))
        columns += describe_columns(symbols, part, name_source(str(path)))
        if ordered:
            part = shift_order(part, count)
            count += sum(len(relation) for relation in part.relations.values())
        parts.append(move_time_arguments(symbols, part, temporal))
    return Dataset(symbols, combine(symbols, parts) if parts else EMPTY, tuple(columns))


def load_in_chunks(
    path: str, bad_rows: BadRows | None = None, schema: Schema | None = None
) -> Iterator[tuple[Dataset, int]]:
    """Load a table chunk by chunk, each with the number of its last line (or row); facts know their positions.

    JSON comes in one chunk, because only all lines together show which columns there are, unless a schema says it.
    """
    source = parse_path(path)
    if source.form == "jsonl" and schema and _has_schema(source, schema):
        yield from _load_json_chunks(source, schema, bad_rows)
        return
    if source.form in ("jsonl", "json") or (source.form == "parquet" and source.path.lower().endswith(".gz")):
        data = load_paths([path], ordered=True, schema=schema, bad_rows=bad_rows)
        yield data, len(data)
    elif source.form == "parquet":
        yield from _load_parquet_chunks(source, schema, bad_rows)
    else:
        yield from _load_csv_chunks(source, schema, bad_rows)


def is_fact_text(path: str) -> bool:
    """Return whether a path names fact text rather than a table."""
    return parse_path(path).form is None


def strip_predicate(path: str) -> str:
    """Return the path of a file, without the predicate that may stand in front of it."""
    return parse_path(path).path


def find_table_predicates(path: str, schema: Schema | None = None) -> list[str]:
    """Return the predicates of a table: those that a schema finds in it, or the one that its path names.

    Fact text, and a path whose name cannot be a predicate, have none.
    """
    source = parse_path(path)
    try:
        return [] if source.form is None else [format.predicate for format in choose_formats(source, schema)]
    except TidelogError:
        return []


@dataclass(frozen=True)
class Source:
    """A path as the user wrote it, taken apart; `suffix` is empty unless it is that of a table."""

    predicate: str | None
    path: str
    suffix: str

    @property
    def form(self) -> str | None:
        """`csv`, `tsv`, `jsonl`, `json` or `parquet`; None for fact text."""
        return _TABLES.get(self.suffix.lower())

    def require_predicate(self) -> str:
        """Return the predicate of a table; raise TL207 if the file's name cannot be one."""
        name = PurePath(self.path).name
        if name.lower().endswith(".gz"):
            name = name[:-3]
        predicate = self.predicate or name[: -len(self.suffix)]
        if not is_predicate(predicate):
            raise TidelogError(
                Diagnostic(
                    "TL207",
                    f"`{predicate}` cannot be the predicate of {self.path}",
                    law="a table's predicate is its file name without suffix, unless the path names another",
                    help=f"put the predicate in front: Signal={self.path}",
                )
            )
        return predicate


def parse_path(text: str) -> Source:
    """Take a path apart, as the user wrote it."""
    match = _WITH_PREDICATE.fullmatch(text)
    predicate, path = (match[1].strip(), match[2]) if match and not Path(text).exists() else (None, text)
    suffixes = PurePath(path).suffixes
    if suffixes and suffixes[-1].lower() == ".gz":
        suffixes.pop()
    is_table = bool(suffixes) and suffixes[-1].lower() in _TABLES
    return Source(predicate, path, suffixes[-1] if is_table else "")


def is_predicate(name: str) -> bool:
    """Return whether a name can be a predicate."""
    from tidelog.language.fact_text import parse_fact

    try:
        fact, _ = parse_fact(name)
    except TidelogError:
        return False
    return fact.predicate == name


def name_source(path: str) -> str:
    """Return the name of a file for messages."""
    plain = strip_predicate(path)
    return "<stdin>" if is_standard_input(plain) else plain


def suggest_predicate(path: str) -> str:
    """Return the predicate of a table, or one like its file name: `SilentDevices` for `silent-devices.csv`."""
    source = parse_path(path)
    try:
        return source.require_predicate()
    except TidelogError:
        stem = PurePath(source.path).name.partition(".")[0]
        words = re.findall(r"[^\W_]+", stem)
        return "".join(word[:1].upper() + word[1:] for word in words) or "Table"


def read_cells_of(path: str) -> tuple[Cells, str]:
    """Read the cells of a table, and return them with the path of its file; raise TL207 for fact text."""
    from tidelog.data.json_lines import read_table_cells

    source = parse_path(path)
    if source.form is None:
        require_fact_text(source)
        law = f"tables end with {', '.join(_TABLES)}; other files are fact text, which needs no schema"
        raise TidelogError(Diagnostic("TL207", f"{source.path} is not a table", law=law))
    data = read_input(source.path)
    if source.form != "parquet":
        data = data.removeprefix(_BYTE_ORDER_MARK)
        check_utf8(data, source.path)
    form = "jsonl" if source.form == "json" else source.form
    if source.form == "json" and data.lstrip()[:1] == b"[":
        from tidelog.data.json_lines import split_json_array

        data = b"".join(item for _, item in split_json_array(data, source.path))
    return read_table_cells(data, form, source.path), source.path


def choose_formats(source: Source, schema: Schema | None) -> list[TableFormat]:
    """Choose how a table is read: once for each predicate that the schema finds in it, or once by its name."""
    from tidelog.data.table_reader import TableFormat

    form, name = source.form or "csv", name_source(source.path)
    tables = schema.find_tables(source.path, source.predicate) if schema else []
    changes = schema is not None and schema.takes_changes
    if not tables:
        predicate = source.require_predicate()
        table = schema.tables.get(predicate) if schema else None
        return [TableFormat(form, predicate, name, table, takes_changes=changes)]
    return [TableFormat(form, table.predicate, name, table, takes_changes=changes) for table in tables]


def _has_schema(source: Source, schema: Schema) -> bool:
    return all(format.schema for format in choose_formats(source, schema))


def _load(source: Source, symbols: Symbols, ordered: bool, schema: Schema | None, bad_rows: BadRows | None) -> Columns:
    if source.form is None:
        return _load_text(source, symbols, ordered, bad_rows)
    formats = choose_formats(source, schema)
    return read_table_bytes(read_input(source.path), formats, symbols, bad_rows)


def read_table_bytes(
    data: bytes, formats: Sequence[TableFormat], symbols: Symbols, bad_rows: BadRows | None
) -> Columns:
    """Read the facts of a whole table, once for each of its formats, which differ only in predicate and schema."""
    from tidelog.data.row_recovery import Row, TableText, build_parts, read_parquet_cells, read_table_text

    path, form = formats[0].path, formats[0].form
    if form == "parquet":
        from tidelog.data.table_cells import read_cells

        cells = read_cells(data, form, path)
        return read_parquet_cells(cells, path, lambda cells: build_parts(cells, formats, symbols, 0), 0, bad_rows)
    data = data.removeprefix(_BYTE_ORDER_MARK)
    if form in ("csv", "tsv"):
        header, newline, body = data.partition(b"\n")
        check_utf8(header, path)
        return read_table_text(TableText(formats, header + newline, 2), body, symbols, bad_rows)
    if form == "json" and data.lstrip()[:1] == b"[":
        from tidelog.data.json_lines import split_json_array

        check_utf8(data, path)
        rows = [Row(line, item) for line, item in split_json_array(data, path)]
        return read_table_text(TableText(formats), b"".join(row.data for row in rows), symbols, bad_rows, rows)
    return read_table_text(TableText(formats), data, symbols, bad_rows)


def require_fact_text(source: Source) -> None:
    """Refuse a spreadsheet, which is no text, and a predicate in front of fact text, which names its own."""
    stem, dot, suffix = source.path.rpartition(".")
    if dot + suffix.lower() in _SPREADSHEETS:
        problem = f"{source.path} is a spreadsheet, which tidelog does not read"
        raise TidelogError(Diagnostic("TL207", problem, help=f"save the sheet as CSV: {stem}.csv"))
    if source.predicate is not None:
        raise TidelogError(
            Diagnostic(
                "TL207",
                f"{source.path} is not a table, so {source.predicate} cannot be its predicate",
                law=f"tables end with {', '.join(_TABLES)}; other files are fact text, which names its predicates",
                help=f"write the path alone: {source.path}",
            )
        )


def _load_text(source: Source, symbols: Symbols, ordered: bool, bad_rows: BadRows | None) -> Columns:
    from tidelog.data.fact_scanner import scan_chunks

    require_fact_text(source)
    path = source.path
    name = name_source(path)
    if bad_rows is None:
        from tidelog.data.range_scanner import scan_in_ranges

        divided = scan_in_ranges(path, symbols, name, ordered=ordered)
        return scan_chunks(_read_lines(path), symbols, name, ordered=ordered) if divided is None else divided
    from tidelog.data.row_recovery import scan_good_lines

    parts, line, count = [EMPTY], 1, 0
    for chunk in _read_lines(path):
        part = shift_order(scan_good_lines(chunk, symbols, name, line, bad_rows), count)
        count += sum(len(relation) for relation in part.relations.values())
        line += chunk.count(b"\n")
        parts.append(part)
    return combine(symbols, parts)


def _read_lines(path: str) -> Iterator[bytes]:
    """Read a text in chunks of whole lines, so that a large file is never in memory as a whole."""
    with open_input(path) as file:
        chunk = file.read(CHUNK).removeprefix(_BYTE_ORDER_MARK)
        while chunk:
            yield chunk if chunk.endswith(b"\n") else chunk + file.readline()
            chunk = file.read(CHUNK)


def _load_parquet_chunks(
    source: Source, schema: Schema | None, bad_rows: BadRows | None
) -> Iterator[tuple[Dataset, int]]:
    from tidelog.data.row_recovery import build_parts, read_parquet_cells
    from tidelog.data.table_cells import read_parquet_batches

    formats, row = choose_formats(source, schema), 0
    with open_input(source.path) as file:
        for cells in read_parquet_batches(file, source.path):
            symbols = Symbols()
            build = partial(build_parts, formats=formats, symbols=symbols, row=row)
            columns = read_parquet_cells(cells, source.path, build, row, bad_rows)
            row += cells.rows
            yield build_chunk(symbols, columns, source.path), row


def _load_csv_chunks(source: Source, schema: Schema | None, bad_rows: BadRows | None) -> Iterator[tuple[Dataset, int]]:
    from tidelog.data.row_recovery import TableText, read_table_text

    formats, line = choose_formats(source, schema), 2
    for header, body in _read_csv_rows(source.path):
        check_utf8(header, source.path)
        symbols = Symbols()
        columns = read_table_text(TableText(formats, header, line), body, symbols, bad_rows)
        line += body.count(b"\n")
        yield build_chunk(symbols, columns, source.path), line - body.endswith(b"\n")


def _load_json_chunks(source: Source, schema: Schema, bad_rows: BadRows | None) -> Iterator[tuple[Dataset, int]]:
    from tidelog.data.table_lines import TableLines

    table, line = TableLines(source, schema), 1
    for text in _read_lines(source.path):
        yield table.read(text, line, bad_rows), line + text.count(b"\n") - text.endswith(b"\n")
        line += text.count(b"\n")


def build_chunk(symbols: Symbols, columns: Columns, path: str) -> Dataset:
    """Build the dataset of a part of a table; facts know their positions in it."""
    return Dataset(symbols, shift_order(columns, 0), tuple(describe_columns(symbols, columns, path)))


def _read_csv_rows(path: str) -> Iterator[tuple[bytes, bytes]]:
    """Read a CSV file in chunks of whole rows, each with the header line.

    A line end within quotes does not end a row; before one that does, the number of quotes is even.
    """
    with open_input(path) as file:
        header = file.readline().removeprefix(_BYTE_ORDER_MARK)
        rest, begun = b"", False
        while block := file.read(CHUNK):
            rest += block
            end = rest.rfind(b"\n") + 1
            while end and rest.count(b'"', 0, end) % 2:
                end = rest.rfind(b"\n", 0, end - 1) + 1
            if end:
                yield header, rest[:end]
                rest, begun = rest[end:], True
        if rest or not begun:
            yield header, rest
