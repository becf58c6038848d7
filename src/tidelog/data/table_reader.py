"""Tables of one predicate each, read column by column: CSV, JSON Lines, Parquet, dataframes, Spark's Arrow batches.

A column `time` says when a fact holds; or `start` and `end` do, with `closed` (`both`, `left`, `right`, `neither`)
unless both ends are closed. Without any of these columns, the facts are background knowledge. Every other column is an
argument, in the order of the file (`op` is none where corrections are taken: it tells which rows are deleted). Times
are numbers, dates or timestamps (UTC unless they have an offset). A schema may say otherwise (`tidelog.data.schema`).

Numbers are read exactly: `0.1` in CSV or JSON is one tenth, and a float of Parquet is the shortest decimal number that
represents it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tidelog.data.arrow_calls import cast_column
from tidelog.data.arrow_columns import (
    TickColumns,
    UnsupportedType,
    decode_column,
    find_nulls,
    find_value_type,
    intern_column,
    read_ticks,
)
from tidelog.data.bad_rows import MOST_ERRORS, RowErrors
from tidelog.data.column_types import (
    compute_local_offsets,
    convert_values,
    has_leading_zeros,
    has_numbers,
    read_long_number,
    to_number,
    to_text,
    trim_numbers,
)
from tidelog.data.deletions import OPERATIONS, find_op_column, mark_deletions, read_operations
from tidelog.data.json_lines import exact_decimal
from tidelog.data.number_scanner import DATE, LOCAL, MINUS_INF, NOT_UNDERSTOOD, NUMBER, PLUS_INF, ZONED, Bytes
from tidelog.data.relation import EMPTY, Columns, Ids, Relation, Times, timestamp_overflow, to_common_step
from tidelog.data.schema import UNITS, ColumnType, TableSchema
from tidelog.data.symbol_kernels import AS_WRITTEN, NAME_KIND
from tidelog.data.symbol_table import Symbols
from tidelog.data.table_cells import Cells
from tidelog.data.time_columns import (
    TIME_COLUMNS,
    TimeColumn,
    TimeKinds,
    intern_times,
    is_text,
    scan_times,
    text_buffers,
    to_time_column,
)
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import parse_time
from tidelog.language.syntax import Value
from tidelog.language.time_text import find_zones
from tidelog.language.wording import suggest
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.interval import CLOSED_ENDS

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
#: The problem of some rows of a column, or a function that tells it for each row.
Problem = str | Callable[[int], str]


@dataclass
class TableFormat:
    """How a table is read: its form (csv, tsv, jsonl, parquet or arrow) and the schema, if there is one.

    `text_columns` and `number_columns` are the columns without a schema that earlier parts of the same file decided.
    `is_part` says that JSON Lines are part of a longer input: a key that none of them has is a value that is missing.
    """

    form: str
    predicate: str
    path: str
    schema: TableSchema | None = None
    text_columns: set[str] = field(default_factory=set)
    number_columns: set[str] = field(default_factory=set)
    is_part: bool = False
    #: Whether a column `op` says if a row is inserted or deleted, also if the schema does not name it.
    takes_changes: bool = False


def build_columns(cells: Cells, format: TableFormat, symbols: Symbols, row: int) -> Columns:
    """Build the facts of cells that begin behind `row` rows of their table."""
    if not cells.names and not cells.rows:
        return EMPTY
    return _Table(cells, format, row).build_columns(format.predicate, symbols)


def read_arrow_columns(
    names: list[str], columns: list[Any], rows: int, predicate: str, source: str, symbols: Symbols
) -> Columns:
    """Build the facts of Arrow columns, as Spark hands them over."""
    return build_columns(Cells(names, columns, rows), TableFormat("parquet", predicate, source), symbols, 0)


class _Table:
    """The cells of a table, with the role of each column: an argument, a time, or the `closed` word."""

    def __init__(self, cells: Cells, format: TableFormat, row: int) -> None:
        self.cells, self.format, self.path, self.schema = cells, format, format.path, format.schema
        self.first_row, self.help = row, "correct the cell, or leave the row out" if format.form == "arrow" else None
        # A cell `1` is a number in CSV; in other forms columns have types.
        self.untyped = format.form in ("csv", "tsv")
        self.names = [name.strip() for name in cells.names]
        self.op = find_op_column(self.names, self.schema.op if self.schema else None, format.takes_changes)
        if self.schema is None:
            self.types: dict[int, ColumnType] = {}
            self.role = {name.lower(): i for i, name in enumerate(self.names) if name.lower() in TIME_COLUMNS}
            self.arguments = [i for i in range(len(self.names)) if self._is_argument(i)]
            self._check_columns()
        else:
            place = self._place_columns(self.schema)
            self.types = {place[column.name]: column.type for column in self.schema.columns}
            roles = {role: getattr(self.schema, role) for role in TIME_COLUMNS}
            self.role = {role: place[name] for role, name in roles.items() if name in place}
            self.arguments = [i for column in self.schema.arguments if (i := place[column.name]) != self.op]

    def _place_columns(self, schema: TableSchema) -> dict[str, int]:
        """Find the columns of the schema in the table; raise TL205 if one is missing."""
        missing = [column.name for column in schema.columns if column.name not in self.names]
        if missing and self.format.is_part:
            self.names += missing
            empty = [[None] * self.cells.rows for _ in missing]
            self.cells = replace(self.cells, columns=[*self.cells.columns, *empty])
        elif missing:
            close = suggest(missing[0], self.names)
            message = f"{self.path} has no column `{missing[0]}`; its columns are {', '.join(self.names)}"
            law = f"the schema of {schema.predicate} says which columns are read"
            help = f"did you mean {close}?" if close else f"correct `columns` of [schema.{schema.predicate}]"
            raise TidelogError(Diagnostic("TL205", message, law=law, help=help))
        twice = [column.name for column in schema.columns if self.names.count(column.name) > 1]
        if twice:
            raise self._duplicate_error(twice[0])
        return {column.name: self.names.index(column.name) for column in schema.columns}

    def _duplicate_error(self, name: str) -> TidelogError:
        message = f"{self.path} names two columns `{name}`; its columns are {', '.join(self.names)}"
        return TidelogError(Diagnostic("TL205", message, help="rename one of them"))

    def _check_columns(self) -> None:
        roles = self.role.keys()
        twice = [name for name in roles if [other.lower() for other in self.names].count(name) > 1]
        if twice:
            raise self._duplicate_error(self.names[self.role[twice[0]]])
        if not roles or roles == {"time"} or {"start", "end"} <= roles <= {"start", "end", "closed"}:
            return
        if "time" in roles:
            problem = f"both `time` and `{next(name for name in self.names if name.lower() in roles - {'time'})}`"
        else:
            missing = [f"`{name}`" for name in ("start", "end") if name not in roles]
            present = [f"`{name}`" for name in TIME_COLUMNS if name in roles]
            problem = f"{' and '.join(present)}, but no {' and no '.join(missing)}"
        message = f"{self.path} has a column {problem}; its columns are {', '.join(self.names)}"
        help = "rename the columns: one `time` for points in time, or `start` and `end` for intervals"
        raise TidelogError(Diagnostic("TL205", message, help=help))

    def build_columns(self, predicate: str, symbols: Symbols) -> Columns:
        rows = self.cells.rows
        block = np.empty((len(self.arguments), rows), np.int32)
        for i, ids in zip(self.arguments, block, strict=True):
            self._intern_column(i, symbols, ids)
        denominator, kinds, lo, hi = self._read_intervals(rows)
        key = (predicate, len(block))
        names = {key: tuple(self.names[i] for i in self.arguments)}
        known = [find_value_type(self.cells.columns[i], self.types.get(i)) for i in self.arguments]
        types = {} if self.untyped else {key: tuple(known)}
        zones = dict.fromkeys(sorted(kinds.zones), self.path)
        columns = Columns(
            denominator, kinds.dates, {key: Relation(*key, block, lo, hi)}, kinds.numbers, names, types, zones
        )
        return columns if self.op is None else mark_deletions(columns, self._read_operations(self.op))

    def _is_argument(self, i: int) -> bool:
        return i not in (*self.role.values(), self.op) and not _PANDAS_INDEX.fullmatch(self.names[i])

    def _read_operations(self, i: int) -> list[bool]:
        """Return which rows are deletions; an empty cell is an insertion."""
        column = self.cells.columns[i]
        given = column if isinstance(column, list) else column.to_pylist()
        deleted = read_operations(given)
        if len(bad := np.flatnonzero([one is None for one in deleted])):
            raise self._error(bad, i, lambda row: f"`{given[row]}` is not one of {', '.join(OPERATIONS)}")
        return list(map(bool, deleted))

    def _error(self, rows: npt.NDArray[np.int64], i: int, problem: Problem, law: str | None = None) -> RowErrors:
        """Build an error for some rows of a column, with a diagnostic for each of the first ones."""
        problems = {int(row): problem if isinstance(problem, str) else problem(int(row)) for row in rows}
        diagnostics = [
            Diagnostic("TL206", f"{self._describe_cell(row, i)}: {problems[row]}", law=law, help=self.help)
            for row in list(problems)[:MOST_ERRORS]
        ]
        return RowErrors(diagnostics, {row: f"column `{self.names[i]}`: {text}" for row, text in problems.items()})

    def _describe_cell(self, row: int, i: int) -> str:
        """Describe where a cell is; rows are counted from 1, without the header."""
        return f"{self.path}, row {self.first_row + row + 1}, column `{self.names[i]}`"

    def _require_column(self, i: int) -> Any:
        """Return a column, an Arrow array (perhaps chunked) or a list; raise TL206 if a cell is empty."""
        column = self.cells.columns[i]
        if isinstance(column, list):
            empty = np.flatnonzero([value is None for value in column])
        else:
            empty = find_nulls(column)
        if len(empty):
            raise self._error(empty, i, "there is no value", "every argument and every time of a fact has a value")
        return column

    def _unsupported_type_error(self, i: int, type: Any, use: str) -> TidelogError:
        problem = f"{self.path}: the column `{self.names[i]}` of type {type} cannot be {use}"
        return TidelogError(Diagnostic("TL207", problem, help="convert it to text or numbers first"))

    # Arguments

    def _intern_column(self, i: int, symbols: Symbols, ids: Ids) -> None:
        """Write the ids of the constants in a column."""
        column = self._require_column(i)
        kind = self.types.get(i)
        if kind == "time":
            intern_times(self._read_times(i), symbols, ids)
        elif isinstance(column, list):
            ids[:] = self._intern_values(i, column, symbols)
        elif self.untyped and kind is None:
            ids[:] = self._intern_cells(i, column, symbols)
        else:
            try:
                bad = intern_column(column, kind, symbols, ids)
            except UnsupportedType:
                raise self._unsupported_type_error(i, column.type, "an argument") from None
            if len(bad):
                raise self._not_a_number(bad, i, [column[int(row)].as_py() for row in bad])

    def _intern_cells(self, i: int, column: Any, symbols: Symbols) -> Ids:
        """Intern cells without types: one that looks like a number is one, unless its column holds identifiers."""
        data, offsets = text_buffers(column)
        if (data == ord(" ")).any():
            column = trim_numbers(column)
            data, offsets = text_buffers(column)
        ids = symbols.intern_texts(data, offsets, NAME_KIND if self._is_text_column(i, column) else AS_WRITTEN)
        for row in np.flatnonzero(ids < 0):  # numbers with too many digits for compiled code
            ids[row] = symbols.intern(read_long_number(data[offsets[row] : offsets[row + 1]].tobytes().decode()))
        return ids

    def _not_a_number(self, rows: npt.NDArray[np.int64], i: int, values: Sequence[Any]) -> RowErrors:
        """Build the error for values in a column of numbers that are no numbers."""
        law = f"the schema of {self.format.predicate} says that `{self.names[i]}` holds numbers"
        shown = {int(row): f"`{str(value)[:40]}` is not a number" for row, value in zip(rows, values, strict=True)}
        if any(isinstance(value, str) for value in values):
            return self._error(rows, i, shown.__getitem__, law)
        return self._error(rows, i, "this is not a number")

    def _intern_values(self, i: int, column: list[Value], symbols: Symbols) -> Ids:
        """Intern Python values, converted to the type of the schema if there is one."""
        values: list[Value | None] = list(column)
        if i in self.types:
            values = convert_values(column, to_text if self.types[i] == "text" else to_number)
            bad = np.flatnonzero([value is None for value in values])
            if len(bad):
                raise self._not_a_number(bad, i, [str(column[row]) for row in bad])
        known = {value: symbols.intern(value) for value in dict.fromkeys(values) if value is not None}
        return np.array([known[value] for value in values if value is not None], np.int32)

    def _is_text_column(self, i: int, column: Any) -> bool:
        """Return whether a column without a schema is text as a whole, because one of its values has a leading zero.

        Raises TL206 if earlier rows of the same file have been read as numbers.
        """
        name, format = self.names[i], self.format
        if name in format.text_columns:
            return True
        if not has_leading_zeros(column):
            if name not in format.number_columns and has_numbers(column):
                format.number_columns.add(name)
            return False
        if name in format.number_columns:
            texts = column.to_pylist()
            zeros = [row for row, text in enumerate(texts) if len(text) > 1 and text[0] == "0" and text.isdigit()]
            law = "a column with leading zeros is text, but its earlier rows have been read as numbers already:"
            law = f"{law} a schema declares its type (`tidelog infer {self.path}` prints one for --schema FILE)"
            raise self._error(np.array(zeros), i, lambda row: f"`{texts[row]}` has a leading zero", law)
        format.text_columns.add(name)
        return True

    # Times

    def _read_intervals(self, rows: int) -> tuple[int, TimeKinds, Times, Times]:
        """Return the denominator, the kinds of times, and the ends of all intervals."""
        if not rows or not self.role.keys() - {"closed"}:
            return 1, TimeKinds(), np.full(rows, NEG_INF), np.full(rows, POS_INF)
        ticks = self._read_ticks()
        if "time" in self.role:
            i = self.role["time"]
            if ticks is not None:
                return ticks.denominator, ticks.kinds, ticks.doubled[0], ticks.doubled[0]
            time = self._read_times(i)
            infinite = np.flatnonzero((time.kind == PLUS_INF) | (time.kind == MINUS_INF))
            if len(infinite):
                raise self._error(infinite, i, "infinity is not a time point")
            denominator, points = self._to_ticks([time], [i])
            return denominator, time.kinds, 2 * points[0], 2 * points[0]
        columns = [self.role["start"], self.role["end"]]
        open_lo, open_hi = self._read_open_ends(rows)
        if ticks is not None:
            lo, hi = ticks.doubled[0] + open_lo, ticks.doubled[1] - open_hi
            denominator, kinds, empty = ticks.denominator, ticks.kinds, np.flatnonzero(lo > hi)
        else:
            start, end = (self._read_times(i) for i in columns)
            denominator, ends = self._to_ticks([start, end], columns)
            lo = np.where(start.kind == MINUS_INF, NEG_INF, 2 * ends[0] + open_lo)
            hi = np.where(end.kind == PLUS_INF, POS_INF, 2 * ends[1] - open_hi)
            empty = np.flatnonzero((lo > hi) | (start.kind == PLUS_INF) | (end.kind == MINUS_INF))
            kinds = start.kinds | end.kinds
        if len(empty):
            raise self._error(empty, columns[0], "the interval is empty", "a fact holds at one time point at least")
        return denominator, kinds, lo, hi

    def _read_ticks(self) -> TickColumns | None:
        """Read times from the buffers of Arrow columns; None if their types need more."""
        columns = [self.role[role] for role in ("time", "start", "end") if role in self.role]
        arrays = [self._require_column(i) for i in columns]
        if any(isinstance(column, list) for column in arrays):
            return None
        ticks = read_ticks(arrays, self.schema)
        if ticks is not None and ticks.far is not None:
            number, row = ticks.far
            raise self._overflow_error(columns[number], row, ticks.denominator)
        return ticks

    def _read_open_ends(self, rows: int) -> tuple[Times, Times]:
        """Return 1 for each left end that is open, else 0; and the same for the right ends."""
        if "closed" not in self.role:
            if self.schema and self.schema.closed:
                closed_lo, closed_hi = CLOSED_ENDS[self.schema.closed]
                return np.full(rows, 1 - closed_lo, np.int64), np.full(rows, 1 - closed_hi, np.int64)
            return np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        i = self.role["closed"]
        column = self.cells.columns[i]
        given = column if isinstance(column, list) else decode_column(column).to_pylist()
        words = {word: str(word or "both").strip().lower() for word in dict.fromkeys(given)}
        wrong = [word for word in words if words[word] not in CLOSED_ENDS]
        if wrong:
            bad = np.flatnonzero([word in wrong for word in given])
            raise self._error(bad, i, lambda row: f"`{given[row]}` is not one of {', '.join(CLOSED_ENDS)}")
        open_ends = 1 - np.array([CLOSED_ENDS[words[word]] for word in given], np.int64).reshape(rows, 2)
        return open_ends[:, 0], open_ends[:, 1]

    def _overflow_error(self, i: int, row: int, denominator: int) -> RowErrors:
        error = timestamp_overflow(f"in {self._describe_cell(row, i)}, in ticks of 1/{denominator},")
        return RowErrors(error.diagnostics, {row: f"column `{self.names[i]}`: the timestamp does not fit into 63 bits"})

    def _to_ticks(self, times: list[TimeColumn], columns: list[int]) -> tuple[int, list[Times]]:
        """Convert all times to ticks of their common denominator."""
        numerator = np.concatenate([column.numerator for column in times])
        denominator, ticks, far = to_common_step(numerator, np.concatenate([column.denominator for column in times]))
        if far.any():
            column, row = divmod(int(np.argmax(far)), len(times[0].numerator))
            raise self._overflow_error(columns[column], row, denominator)
        return denominator, np.split(ticks, len(times))

    def _read_times(self, i: int) -> TimeColumn:
        """Read a column of times, in the unit and zone of the schema."""
        import pyarrow as pa

        column = self._require_column(i)
        is_list = isinstance(column, list)
        column = pa.array(map(str, column), pa.large_string()) if is_list else decode_column(column)
        times = self._read_plain_times(i, column)
        if self.schema and self.schema.zone:
            times = self._convert_local_times(i, times, self.schema)
        times = times.without_zones()
        if self.schema and self.schema.unit:
            numeric = times.kind == NUMBER
            denominator = np.where(numeric, times.denominator * UNITS[self.schema.unit], times.denominator)
            times = replace(times, denominator=denominator, kind=np.where(numeric, DATE, times.kind).astype(np.int8))
        return times

    def _convert_local_times(self, i: int, times: TimeColumn, schema: TableSchema) -> TimeColumn:
        """Convert dates without an offset from the zone of the schema to UTC."""
        assert schema.zone is not None
        rows = np.flatnonzero((times.kind == DATE) | (times.kind == LOCAL))
        seconds = times.numerator[rows] // times.denominator[rows]
        offsets, missing, twice = compute_local_offsets(seconds, schema.zone, schema.ambiguous)
        if len(missing):
            raise self._error(rows[missing], i, f"there is no such local time in {schema.zone}: clocks skip it")
        if len(twice):
            law = 'write ambiguous = "earlier" or "later" into the schema, or times with an offset into the data'
            raise self._error(rows[twice], i, f"this local time occurs twice in {schema.zone}", law)
        numerator = times.numerator.copy()
        numerator[rows] -= offsets * times.denominator[rows]
        return replace(times, numerator=numerator, kind=np.where(times.kind == LOCAL, ZONED, times.kind))

    def _read_plain_times(self, i: int, column: Any) -> TimeColumn:
        """Read a column of times as if there were no schema."""
        import pyarrow as pa
        from pyarrow import types

        type = column.type
        if is_text(type) or types.is_floating(type) or types.is_decimal(type) or types.is_uint64(type):
            return self._read_text_times(i, *text_buffers(cast_column(column, pa.large_string())))
        if types.is_integer(type):
            return to_time_column(cast_column(column, pa.int64()), 1, NUMBER)
        if types.is_timestamp(type):
            return to_time_column(cast_column(column, pa.int64()), UNITS[type.unit], ZONED if type.tz else LOCAL)
        if types.is_date(type):
            return to_time_column(cast_column(cast_column(column, pa.timestamp("s")), pa.int64()), 1, DATE)
        raise self._unsupported_type_error(i, type, "a time")

    def _read_text_times(self, i: int, data: Bytes, offsets: npt.NDArray[np.int64]) -> TimeColumn:
        rows = len(offsets) - 1
        times = TimeColumn(np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int8))
        scan_times(data, offsets, times.numerator, times.denominator, times.kind)
        problems: list[Diagnostic] = []
        reasons: dict[int, str] = {}
        for row in np.flatnonzero(times.kind == NOT_UNDERSTOOD):
            text = data[offsets[row] : offsets[row + 1]].tobytes().decode()
            try:
                exact = exact_decimal(text.strip())
                time, dated = (exact, False) if exact is not None else parse_time(text)
            except TidelogError as error:
                first = error.diagnostics[0]
                found = self._error(np.array([row]), i, first.message, first.law)
                problems += found.diagnostics if len(problems) < MOST_ERRORS else ()
                reasons |= found.rows
                continue
            zones = find_zones(text)
            times.kind[row] = NUMBER if not dated else ZONED if "zoned" in zones else LOCAL if zones else DATE
            if isinstance(time, float):
                times.kind[row] = PLUS_INF if time > 0 else MINUS_INF
                time = Fraction(0)
            if max(abs(time.numerator), time.denominator) >= POS_INF:
                far = timestamp_overflow(f"{text} in {self._describe_cell(int(row), i)}")
                problems += far.diagnostics
                reasons[int(row)] = f"column `{self.names[i]}`: the timestamp {text} does not fit into 63 bits"
                continue
            times.numerator[row], times.denominator[row] = time.numerator, time.denominator
        if problems:
            raise RowErrors(problems[:MOST_ERRORS], reasons)
        return times
