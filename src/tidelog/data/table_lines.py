"""Read a table line by line, while it is still being written: CSV, and JSON Lines with a schema.

Every line is a row of its own, so that nothing depends on how many lines have arrived: unlike in a file that is read
as a whole, a line end within quotes ends a row of CSV.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidelog.data.bad_rows import BadRow, BadRows, set_aside
from tidelog.data.data_files import Source, build_chunk, choose_formats
from tidelog.data.dataset import Dataset
from tidelog.data.relation import EMPTY
from tidelog.data.row_recovery import Row, TableText, read_table_text
from tidelog.data.symbol_table import Symbols
from tidelog.data.table_reader import TableFormat
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.file_errors import check_utf8

if TYPE_CHECKING:
    from tidelog.data.schema import Schema, TableSchema

#: The forms of tables whose lines are rows.
LINE_FORMS = ("csv", "tsv", "jsonl")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TableLines:
    """A table of lines. `header` is the first line of CSV, once it was read; empty for JSON Lines."""

    def __init__(self, source: Source, schema: Schema | None) -> None:
        self._formats = [replace(format, is_part=True) for format in choose_formats(source, schema)]
        self._path = self._formats[0].path
        self._has_header = source.form in ("csv", "tsv")
        self.header: bytes | None = None if self._has_header else b""
        _require_declared_columns(self._formats)

    def read(self, text: bytes, line: int, bad_rows: BadRows | None) -> Dataset:
        """Read whole lines, the first of which has this number; set bad ones aside, or raise an error with all."""
        if line == 1:
            text = text.removeprefix(_BYTE_ORDER_MARK)
        if line == 1 and self._has_header:
            header, newline, text = text.partition(b"\n")
            check_utf8(header, self._path)
            self.header = header + newline
            line = 2
        bad: list[BadRow] = []
        if self._has_header:
            text, bad = self._remove_open_quotes(text, line)
            if bad_rows is None:
                set_aside(bad, None)
        symbols, columns = Symbols(), EMPTY
        if text.strip():
            columns = read_table_text(TableText(self._formats, self.header or b"", line), text, symbols, bad_rows)
        set_aside(bad, bad_rows)
        return build_chunk(symbols, columns, self._path)

    def _remove_open_quotes(self, text: bytes, line: int) -> tuple[bytes, list[BadRow]]:
        """Leave a blank line for every line of CSV in which a quotation mark is not closed."""
        if b'"' not in text:
            return text, []
        lines = text.split(b"\n")
        bad: list[BadRow] = []
        for i, row in enumerate(lines):
            if row.count(b'"') % 2:
                shown = row.decode(errors="replace").rstrip("\r")
                reason = "a quotation mark is not closed on its line"
                bad.append(BadRow(self._path, line + i, reason, shown, "TL207", "in a live table, every line is a row"))
                lines[i] = b""
        return b"\n".join(lines), bad


class TableRecords:
    """JSON records that carry their own numbers, such as those of a topic, with the schemas of their predicates."""

    def __init__(self, name: str, tables: Sequence[TableSchema], takes_changes: bool = False) -> None:
        self.name = name
        self._formats = [
            TableFormat("jsonl", table.predicate, name, table, is_part=True, takes_changes=takes_changes)
            for table in tables
        ]

    def read(self, records: Sequence[Row], bad_rows: BadRows | None) -> Dataset:
        """Read records; set bad ones aside, or raise an error with all. Numbers take the place of lines."""
        symbols, columns = Symbols(), EMPTY
        if records:
            body = b"".join(record.data for record in records)
            columns = read_table_text(TableText(self._formats), body, symbols, bad_rows, list(records))
        return build_chunk(symbols, columns, self.name)


def _require_declared_columns(formats: list[TableFormat]) -> None:
    """Refuse JSON Lines without a schema: their columns would depend on which lines have arrived."""
    if formats[0].form == "jsonl" and not all(format.schema for format in formats):
        path, predicate = formats[0].path, formats[0].predicate
        raise TidelogError(
            Diagnostic(
                "TL207",
                f"live JSON needs a schema, and there is none for {predicate} ({path})",
                law="the first lines do not show which keys the later ones will have",
                help=f"declare [schema.{predicate}] in tidelog.toml next to the rules; `tidelog infer` prints one",
            )
        )
