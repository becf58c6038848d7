"""Read what can be read: tables and fact text with bad rows, each of which is found and named.

The fast readers take all rows at once and say only that some are bad. Then the rows are taken apart here, the bad ones
are removed, and the rest is read again.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidelog.data.arrow_columns import keep_rows
from tidelog.data.bad_rows import BadRow, BadRows, RowErrors, set_aside
from tidelog.data.fact_scanner import scan_facts
from tidelog.data.json_lines import describe_broken_json, refuse_repeated_keys
from tidelog.data.relation import EMPTY, Columns, combine, shift_order
from tidelog.data.symbol_table import Symbols
from tidelog.data.table_cells import Cells, check_header
from tidelog.errors import TidelogError
from tidelog.language.wording import plural

if TYPE_CHECKING:
    from tidelog.data.table_reader import TableFormat

#: Bytes of fact text that are read again at once, after a bad line was found.
_BLOCK = 1 << 16
_LAWS = {
    "csv": "every row of a table has one value per column",
    "tsv": "every row of a table has one value per column",
    "jsonl": "JSON Lines has one object per line, all with the same keys, and its values are numbers or text",
}
_NOT_UTF8 = "this row is not UTF-8 text"
_DELIMITERS = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True)
class Row:
    """The bytes of a row, with its line end, and the number of its first line."""

    line: int
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace").rstrip("\r\n")


@dataclass(frozen=True)
class TableText:
    """A table as text, or a part of one: `header` is the first line of CSV; `line` is the number of the first row.

    `formats` say how it is read, once for each predicate.
    """

    formats: Sequence[TableFormat]
    header: bytes = b""
    line: int = 1

    @property
    def path(self) -> str:
        return self.formats[0].path

    @property
    def form(self) -> str:
        form = self.formats[0].form
        return "jsonl" if form == "json" else form

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns that need a value in every row, if a schema says it."""
        tables = [format.schema for format in self.formats if format.schema]
        if not tables:
            return None
        return frozenset(
            column.name for table in tables for column in table.columns if column.name not in (table.closed, table.op)
        )


def build_parts(cells: Cells, formats: Sequence[TableFormat], symbols: Symbols, row: int) -> Columns:
    """Build the facts of all predicates of a table.

    With several, background facts come first, and the other facts of each row have neighbouring positions.
    """
    from tidelog.data.table_reader import build_columns

    parts = [build_columns(cells, format, symbols, row) for format in formats]
    if len(parts) == 1:
        return parts[0]
    timed = [part.dates or part.numbers for part in parts]
    numbered: list[Columns] = []
    for k, part in enumerate(parts):
        step, before = (sum(timed), sum(timed[:k])) if timed[k] else (1, timed[:k].count(False) * cells.rows)
        first = before + (timed.count(False) * cells.rows if timed[k] else 0)
        relations = {
            key: replace(
                relation, order=(np.arange(len(relation)) if (o := relation.order) is None else o) * step + first
            )
            for key, relation in part.relations.items()
        }
        numbered.append(replace(part, relations=relations))
    return combine(symbols, numbered)


def read_table_text(
    table: TableText, body: bytes, symbols: Symbols, bad_rows: BadRows | None, rows: list[Row] | None = None
) -> Columns:
    """Read the rows of a table; set bad rows aside, or raise an error that names them with their lines.

    `rows` are the rows of `body`, if they are known.
    """
    try:
        body.decode()
        return _build(table, body, symbols)
    except (TidelogError, UnicodeDecodeError) as error:
        rows = _split_rows(table, body) if rows is None else rows
        if not rows and isinstance(error, TidelogError):
            raise
    bad, rows = _remove_misshapen(table, rows)
    while True:
        try:
            columns = _build(table, b"".join(row.data for row in rows), symbols) if rows else EMPTY
            break
        except RowErrors as found:
            code, law = found.diagnostics[0].code, found.diagnostics[0].law
            bad += [
                BadRow(table.path, rows[i].line, reason, rows[i].text, code, law) for i, reason in found.rows.items()
            ]
            rows = [row for i, row in enumerate(rows) if i not in found.rows]
    set_aside(bad, bad_rows)
    return columns


def _build(table: TableText, body: bytes, symbols: Symbols) -> Columns:
    from tidelog.data.json_lines import read_table_cells

    return build_parts(read_table_cells(table.header + body, table.form, table.path), table.formats, symbols, 0)


def _split_rows(table: TableText, body: bytes) -> list[Row]:
    """Split a table into rows; blank lines are none.

    A quotation mark that is never closed ends with its line. So does one that is closed on a later line, if that would
    not be a row of the table: otherwise two stray marks would take all rows between them along.
    """
    lines = [line + b"\n" for line in body.split(b"\n")]
    rows: list[Row] = []
    at = 0
    while at < len(lines):
        end = at + 1
        if table.form != "jsonl" and lines[at].count(b'"') % 2:
            quotes = lines[at].count(b'"')
            while end < len(lines) and quotes % 2:
                quotes += lines[end].count(b'"')
                end += 1
            if quotes % 2 or (end > at + 1 and not _fits_header(table, b"".join(lines[at:end]))):
                end = at + 1
        data = b"".join(lines[at:end])
        if data.strip():
            rows.append(Row(table.line + at, data))
        at = end
    return rows


def _fits_header(table: TableText, row: bytes) -> bool:
    """Whether a row of CSV has as many cells as the header."""
    delimiter = _DELIMITERS[table.form]
    header, *rows = csv.reader((table.header + row).decode(errors="replace").splitlines(True), delimiter=delimiter)
    return len(rows) == 1 and len(rows[0]) == len(header)


def _remove_misshapen(table: TableText, rows: list[Row]) -> tuple[list[BadRow], list[Row]]:
    """Return the rows that do not have the shape of the others, and those that do."""
    reasons, columns = _check_objects(rows, table.columns) if table.form == "jsonl" else (_check_cells(table, rows), {})
    laws = {_NOT_UTF8: "tables are UTF-8 text: save this one as UTF-8"}
    bad = [
        BadRow(
            table.path,
            rows[i].line,
            reason,
            rows[i].text,
            "TL207",
            laws.get(reason, _LAWS[table.form]),
            columns.get(i, 1),
        )
        for i, reason in reasons.items()
    ]
    return bad, [row for i, row in enumerate(rows) if i not in reasons]


def _check_cells(table: TableText, rows: list[Row]) -> dict[int, str]:
    """Find the rows of CSV that are no text, have an open quotation mark, or not as many cells as the header."""
    delimiter = _DELIMITERS[table.form]
    header = next(csv.reader([table.header.decode(errors="replace")], delimiter=delimiter), [])
    check_header(header, delimiter, table.path)
    reasons: dict[int, str] = {}
    for i, row in enumerate(rows):
        try:
            text = row.data.decode()
        except UnicodeDecodeError:
            reasons[i] = _NOT_UTF8
            continue
        if text.count('"') % 2:
            reasons[i] = "a quotation mark is not closed"
            continue
        cells = next(csv.reader(text.splitlines(keepends=True), delimiter=delimiter), [])
        if len(cells) != len(header):
            count = plural(len(cells), "value")
            reasons[i] = f"this row has {count}, but the table has {plural(len(header), 'column')}"
    return reasons


def _check_objects(rows: list[Row], columns_read: frozenset[str] | None) -> tuple[dict[int, str], dict[int, int]]:
    """Find the rows of JSON Lines that are no objects, or have other keys than most; and where JSON is broken."""
    columns: dict[int, int] = {}
    reasons: dict[int, str] = {}
    keys: dict[int, frozenset[str]] = {}
    for i, row in enumerate(rows):
        try:
            value = json.loads(row.data, object_pairs_hook=refuse_repeated_keys)
        except json.JSONDecodeError as error:
            reasons[i], columns[i] = describe_broken_json(error), min(error.pos, len(row.text)) + 1
            continue
        except (UnicodeDecodeError, RecursionError):
            reasons[i] = _NOT_UTF8
            continue
        except ValueError as error:  # a key that occurs twice
            reasons[i] = str(error)
            continue
        if not isinstance(value, dict):
            reasons[i] = "this is not an object"
            continue
        given = {key: cell for key, cell in value.items() if columns_read is None or key in columns_read}
        if any(isinstance(cell, list | dict) for cell in given.values()):
            reasons[i] = "one of its values is a list or an object"
        else:
            keys[i] = frozenset(key for key, cell in given.items() if cell is not None) - {"closed", "op"}
    if keys:
        usual = Counter(keys.values()).most_common(1)[0][0] if columns_read is None else columns_read
        reasons |= {i: _describe_keys(own, usual) for i, own in keys.items() if own != usual}
    return reasons, columns


def _describe_keys(own: frozenset[str], usual: frozenset[str]) -> str:
    parts = []
    if missing := sorted(usual - own):
        parts.append(f"there is no value for {' and '.join(f'`{name}`' for name in missing)}")
    if more := sorted(own - usual):
        parts.append(f"most rows have no {' and no '.join(f'`{name}`' for name in more)}")
    return ", and ".join(parts)


def read_parquet_cells(
    cells: Cells, path: str, build: Callable[[Cells], Columns], row: int, bad_rows: BadRows | None
) -> Columns:
    """Build the facts of cells that begin behind `row` rows; set bad rows aside if there is a place for them."""
    numbers = np.arange(cells.rows)
    bad: list[BadRow] = []
    while True:
        try:
            columns = build(cells)
            break
        except RowErrors as error:
            if bad_rows is None:
                raise
            for i, reason in error.rows.items():
                values = {name: column[i].as_py() for name, column in zip(cells.names, cells.columns, strict=True)}
                bad.append(BadRow(path, row + int(numbers[i]) + 1, reason, json.dumps(values, default=str)))
            kept = np.ones(cells.rows, np.bool_)
            kept[list(error.rows)] = False
            numbers = numbers[kept]
            columns_left = [keep_rows(column, kept) for column in cells.columns]
            cells = replace(cells, columns=columns_left, rows=len(numbers))
    set_aside(bad, bad_rows)
    return columns


def scan_good_lines(text: bytes, symbols: Symbols, source: str, line: int, bad_rows: BadRows) -> Columns:
    """Read the facts of whole lines, with their positions; set lines aside that are no facts."""
    try:
        return scan_facts(text, symbols, source, ordered=True, line=line)
    except TidelogError:
        lines = text.split(b"\n")
    parts: list[Columns] = []
    count = at = 0
    while at < len(lines):
        end, size = at, 0
        while end < len(lines) and size < _BLOCK:
            size += len(lines[end]) + 1
            end += 1
        part = _scan_block(lines[at:end], symbols, source, line + at, bad_rows)
        parts.append(shift_order(part, count))
        count += sum(len(relation) for relation in part.relations.values())
        at = end
    return combine(symbols, parts)


def _scan_block(lines: list[bytes], symbols: Symbols, source: str, line: int, bad_rows: BadRows) -> Columns:
    """Read lines again and again, each time without those that were bad."""
    lines = list(lines)
    bad: dict[int, BadRow] = {}
    while True:
        try:
            columns = scan_facts(b"\n".join(lines), symbols, source, ordered=True, line=line)
            break
        except TidelogError as error:
            if not all(found.place for found in error.diagnostics):
                raise
            for found in error.diagnostics:
                assert found.place is not None
                i = found.place.line - line
                text = lines[i].decode(errors="replace")
                bad.setdefault(i, BadRow(source, found.place.line, found.message, text, found.code, found.law))
            for i in bad:
                lines[i] = b""
    set_aside(bad.values(), bad_rows)
    return columns
