"""Tables, one predicate each, read column by column: CSV, JSON Lines and Parquet through pyarrow.

A column `time` holds when a fact holds; or `start` and `end` do and, unless both ends are closed, `closed` (`both`,
`left`, `right`, `neither`); with none of these the facts are background knowledge. Every other column is an argument,
in the order of the file. Times are numbers, dates or timestamps (UTC unless they say otherwise).

Text stays text until it is read exactly: `0.1` in CSV or JSON is one tenth, and a float of Parquet is the shortest
decimal number that stands for it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tidelog.data.columns import EMPTY, Columns, Ids, Relation, Times, leaves_63_bits, on_common_step
from tidelog.data.json_lines import Cells, exact_decimal, read_json_lines
from tidelog.data.numerals import DATE, MINUS_INF, NOT_UNDERSTOOD, NUMBER, PLUS_INF, Bytes, read_time
from tidelog.data.symbols import AS_WRITTEN, NAME_KIND, NUMBER_KIND, Symbols
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.facts import format_iso, parse_time
from tidelog.language.syntax import Value
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.kernels import kernel

_MOST_ERRORS = 20

#: Rows of a Parquet file that are read at once.
PIECE = 1 << 16
_TIME_COLUMNS = ("time", "start", "end", "closed")
_LAW = "the columns of a table are its arguments and `time`, or `start` and `end` (and `closed`), or no time at all"
_CLOSED = {"both": (0, 0), "left": (0, 1), "right": (1, 0), "neither": (1, 1)}
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_NO_ROWS = np.zeros(0, np.int64)
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True, eq=False)
class _Ends:
    """One column of times: fractions (not reduced), what each was, and whether there were dates."""

    numerator: Times
    denominator: Times
    what: npt.NDArray[np.int8]

    @property
    def dates(self) -> bool:
        return bool((self.what == DATE).any())


def read_table(data: bytes, form: str, predicate: str, path: str, symbols: Symbols, row: int = 0) -> Columns:
    """The facts of one table, or of a piece of one behind so many rows; `form` is csv, tsv, jsonl or parquet."""
    return facts_of(_read(data, form, path), form, predicate, path, symbols, row)


def facts_of(cells: Cells, form: str, predicate: str, path: str, symbols: Symbols, row: int) -> Columns:
    """The facts of cells that stand behind so many rows of their table."""
    if not cells.names and not cells.rows:
        return EMPTY
    return _Table(cells, form, path, row).columns(predicate, symbols)


def read_batches(source: BinaryIO, path: str) -> Iterator[Cells]:
    """A Parquet file in pieces."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(source) as file:
            for batch in file.iter_batches(PIECE, use_threads=False):
                yield Cells(batch.schema.names, batch.columns, batch.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, "parquet", error) from None


def _unreadable(path: str, form: str, error: Exception) -> TidelogError:
    reason = str(error).strip().split("\n")[0]
    help = "the file is damaged, or was not written to its end" if form == "parquet" else None
    return TidelogError(Diagnostic("TL207", f"cannot read {path}: {reason}", help=help))


def from_arrow(
    names: list[str], columns: list[Any], rows: int, predicate: str, source: str, symbols: Symbols
) -> Columns:
    """The facts of Arrow columns."""
    return facts_of(Cells(names, columns, rows), "parquet", predicate, source, symbols, 0)


def _read(data: bytes, form: str, path: str) -> Cells:
    import pyarrow as pa

    try:
        if form == "parquet":
            from pyarrow import parquet

            table = parquet.read_table(pa.BufferReader(data), use_threads=False)
        elif form == "jsonl":
            return read_json_lines(data, path)
        else:
            table = _read_csv(data, "\t" if form == "tsv" else ",", path)
        return Cells(table.column_names, [column.combine_chunks() for column in table.columns], table.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, form, error) from None


def _read_csv(data: bytes, delimiter: str, path: str) -> Any:
    """All columns as text: what they mean is ours to say, exactly."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    beginning = io.StringIO(data[: 1 << 16].decode(errors="replace"), newline="")
    header = next(csv.reader(beginning, delimiter=delimiter), [])
    for name in header:
        if not name.strip() or re.fullmatch(r"[-+]?[0-9./]+", name.strip()):
            problem = f"the first line of {path} must name the columns, but one of them is `{name.strip()}`"
            help = "put a line with the names of the columns first"
            raise TidelogError(Diagnostic("TL205", problem, law=_LAW, help=help))
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


class _Table:
    """Cells whose columns are arguments and times."""

    def __init__(self, cells: Cells, form: str, path: str, row: int) -> None:
        self.cells, self.path = cells, path
        self.first_row = row
        self.bare = form in ("csv", "tsv")  # there a cell `1` is a number; elsewhere columns have types
        self.names = [name.strip() for name in cells.names]
        self.role = {name.lower(): i for i, name in enumerate(self.names) if name.lower() in _TIME_COLUMNS}
        self._check_columns()

    def _check_columns(self) -> None:
        found = self.role.keys()
        if not found or found == {"time"} or {"start", "end"} <= found <= {"start", "end", "closed"}:
            return
        if "time" in found:
            problem = f"both `time` and `{next(name for name in self.names if name.lower() in found - {'time'})}`"
        else:
            missing = [f"`{name}`" for name in ("start", "end") if name not in found]
            present = [f"`{name}`" for name in _TIME_COLUMNS if name in found]
            problem = f"{' and '.join(present)}, but no {' and no '.join(missing)}"
        message = f"{self.path} has a column {problem}; its columns are {', '.join(self.names)}"
        help = "rename the columns: one `time` for points in time, or `start` and `end` for intervals"
        raise TidelogError(Diagnostic("TL205", message, law=_LAW, help=help))

    def columns(self, predicate: str, symbols: Symbols) -> Columns:
        args = [self._ids(i, symbols) for i in range(len(self.names)) if self._is_argument(i)]
        rows = self.cells.rows
        block = np.array(args, np.int32).reshape(len(args), rows)
        denominator, dates, lo, hi = self._intervals(rows)
        relation = Relation(predicate, len(args), block, lo, hi)
        return Columns(denominator, dates, {(predicate, len(args)): relation})

    def _is_argument(self, i: int) -> bool:
        return i not in self.role.values() and not _PANDAS_INDEX.fullmatch(self.names[i])

    def _error(self, rows: npt.NDArray[np.int64], i: int, what: str, law: str | None = None) -> TidelogError:
        """An error for each of some rows, counted from 1 without the header."""
        return TidelogError(
            Diagnostic(
                "TL206", f"{self.path}, row {self.first_row + row + 1}, column `{self.names[i]}`: {what}", law=law
            )
            for row in rows[:_MOST_ERRORS]
        )

    def _column(self, i: int) -> Any:
        """One column, an Arrow array or a list, without empty cells and without Arrow's own dictionaries."""
        from pyarrow import types

        column = self.cells.columns[i]
        if isinstance(column, list):
            empty = np.flatnonzero([value is None for value in column])
        else:
            empty = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)) if column.null_count else _NO_ROWS
        if len(empty):
            raise self._error(empty, i, "there is no value", "every argument and every time of a fact has a value")
        if not isinstance(column, list) and types.is_dictionary(column.type):
            return column.cast(column.type.value_type)
        return column

    def _unsupported(self, i: int, type: Any, use: str) -> TidelogError:
        problem = f"{self.path}: the column `{self.names[i]}` of type {type} cannot be {use}"
        return TidelogError(Diagnostic("TL207", problem, help="convert it to text or numbers first"))

    # Arguments

    def _ids(self, i: int, symbols: Symbols) -> Ids:
        from pyarrow import types

        column = self._column(i)
        if isinstance(column, list):
            known = {value: symbols.intern(value) for value in dict.fromkeys(column)}
            return np.array([known[value] for value in column], np.int32)
        type = column.type
        if _is_text(type):
            data, offsets = _text_buffers(column)
            ids = symbols.intern_texts(data, offsets, AS_WRITTEN if self.bare else NAME_KIND)
            for row in np.flatnonzero(ids < 0):  # numbers of so many digits that they go the long way
                ids[row] = symbols.intern(_long_number(data[offsets[row] : offsets[row + 1]].tobytes().decode()))
            return ids
        if types.is_nested(type):
            raise self._unsupported(i, type, "an argument")
        encoded = column.dictionary_encode()
        distinct = encoded.dictionary
        rows: Ids = encoded.indices.to_numpy(zero_copy_only=False)
        if types.is_integer(type):
            return symbols.intern_texts(*_text_buffers(distinct), NUMBER_KIND)[rows]
        values = self._values(i, distinct)
        bad = [k for k, value in enumerate(values) if value is None]
        if bad:
            raise self._error(np.flatnonzero(np.isin(rows, bad)), i, "this is not a number")
        return np.array([symbols.intern(value) for value in values if value is not None], np.int32)[rows]

    def _values(self, i: int, distinct: Any) -> list[Value | None]:
        """The constants of an Arrow array; None for a float that is no number."""
        import pyarrow as pa
        from pyarrow import types

        type = distinct.type
        if types.is_floating(type) or types.is_decimal(type):
            return [exact_decimal(text) for text in distinct.cast(pa.large_string()).to_pylist()]
        if types.is_boolean(type):
            return ["true" if value else "false" for value in distinct.to_pylist()]
        if types.is_timestamp(type):
            return [format_iso(Fraction(t, _TICKS[type.unit])) for t in distinct.cast(pa.int64()).to_pylist()]
        if types.is_date(type):
            return [day.isoformat() for day in distinct.cast(pa.date32()).to_pylist()]
        raise self._unsupported(i, type, "an argument")

    # Times

    def _intervals(self, rows: int) -> tuple[int, bool, Times, Times]:
        if not self.role:
            return 1, False, np.full(rows, NEG_INF), np.full(rows, POS_INF)
        if "time" in self.role:
            i = self.role["time"]
            time = self._ends(i)
            infinite = np.flatnonzero((time.what == PLUS_INF) | (time.what == MINUS_INF))
            if len(infinite):
                raise self._error(infinite, i, "infinity is not a time point")
            denominator, ticks = self._ticks([time], [i])
            return denominator, time.dates, 2 * ticks[0], 2 * ticks[0]
        columns = [self.role["start"], self.role["end"]]
        start, end = (self._ends(i) for i in columns)
        denominator, ticks = self._ticks([start, end], columns)
        open_lo, open_hi = self._open_ends(rows)
        lo = np.where(start.what == MINUS_INF, NEG_INF, 2 * ticks[0] + open_lo)
        hi = np.where(end.what == PLUS_INF, POS_INF, 2 * ticks[1] - open_hi)
        empty = np.flatnonzero((lo > hi) | (start.what == PLUS_INF) | (end.what == MINUS_INF))
        if len(empty):
            raise self._error(empty, columns[0], "the interval is empty", "a fact holds at one point of time at least")
        return denominator, start.dates or end.dates, lo, hi

    def _open_ends(self, rows: int) -> tuple[Times, Times]:
        """1 for each left end, and for each right end, that is open."""
        if "closed" not in self.role:
            return np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        i = self.role["closed"]
        column = self.cells.columns[i]
        given = column if isinstance(column, list) else column.to_pylist()
        words = {word: str(word or "both").strip().lower() for word in dict.fromkeys(given)}
        wrong = [word for word in words if words[word] not in _CLOSED]
        if wrong:
            bad = np.flatnonzero([word in wrong for word in given])
            raise self._error(bad, i, f"`{given[bad[0]]}` is none of {', '.join(_CLOSED)}")
        ends = np.array([_CLOSED[words[word]] for word in given], np.int64).reshape(rows, 2)
        return ends[:, 0], ends[:, 1]

    def _ticks(self, ends: list[_Ends], columns: list[int]) -> tuple[int, list[Times]]:
        """All times on their common step."""
        numerator = np.concatenate([end.numerator for end in ends])
        denominator, ticks, far = on_common_step(numerator, np.concatenate([end.denominator for end in ends]))
        if far.any():
            column, row = divmod(int(np.argmax(far)), len(ends[0].numerator))
            name = self.names[columns[column]]
            raise leaves_63_bits(
                f"in {self.path}, row {self.first_row + row + 1}, column `{name}`, in ticks of 1/{denominator},"
            )
        return denominator, np.split(ticks, len(ends))

    def _ends(self, i: int) -> _Ends:
        import pyarrow as pa
        from pyarrow import types

        column = self._column(i)
        if isinstance(column, list):
            column = pa.array([str(value) for value in column], pa.large_string())
        type = column.type
        if _is_text(type) or types.is_floating(type) or types.is_decimal(type) or types.is_uint64(type):
            return self._text_ends(i, *_text_buffers(column.cast(pa.large_string())))
        if types.is_integer(type):
            return _whole(column.cast(pa.int64()), 1, NUMBER)
        if types.is_timestamp(type):
            return _whole(column.cast(pa.int64()), _TICKS[type.unit], DATE)
        if types.is_date(type):
            return _whole(column.cast(pa.timestamp("s")).cast(pa.int64()), 1, DATE)
        raise self._unsupported(i, type, "a time")

    def _text_ends(self, i: int, data: Bytes, offsets: npt.NDArray[np.int64]) -> _Ends:
        rows = len(offsets) - 1
        ends = _Ends(np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int8))
        _read_times(data, offsets, ends.numerator, ends.denominator, ends.what)
        problems: list[Diagnostic] = []
        for row in np.flatnonzero(ends.what == NOT_UNDERSTOOD):
            text = data[offsets[row] : offsets[row + 1]].tobytes().decode()
            try:
                exact = exact_decimal(text.strip())
                time, dated = (exact, False) if exact is not None else parse_time(text)
            except TidelogError as error:
                found = error.diagnostics[0]
                problems += self._error(np.array([row]), i, found.message, found.law).diagnostics
                if len(problems) == _MOST_ERRORS:
                    break
                continue
            ends.what[row] = DATE if dated else NUMBER
            if isinstance(time, float):
                ends.what[row] = PLUS_INF if time > 0 else MINUS_INF
                time = Fraction(0)
            if max(abs(time.numerator), time.denominator) >= POS_INF:
                raise leaves_63_bits(f"{text} in {self.path}, row {self.first_row + row + 1}, column `{self.names[i]}`")
            ends.numerator[row], ends.denominator[row] = time.numerator, time.denominator
        if problems:
            raise TidelogError(problems)
        return ends


@kernel
def _read_times(
    data: Bytes, offsets: npt.NDArray[np.int64], numerator: Times, denominator: Times, what: npt.NDArray[np.int8]
) -> None:
    """Times that lie one after the other."""
    for i in range(len(offsets) - 1):
        after, numerator[i], denominator[i], what[i] = read_time(data, offsets[i], offsets[i + 1])
        if after != offsets[i + 1]:
            what[i] = NOT_UNDERSTOOD


def _is_text(type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(type) or types.is_large_string(type) or types.is_string_view(type))


def _text_buffers(column: Any) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """The bytes of a column of texts, and where each text begins (and the last one ends)."""
    import pyarrow as pa

    column = column.cast(pa.large_string())
    _, offsets, data = column.buffers()
    if not len(column):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    begin = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data if data is not None else b"", np.uint8), begin


def _whole(column: Any, denominator: int, what: int) -> _Ends:
    numerator = column.to_numpy(zero_copy_only=False)
    return _Ends(numerator, np.full(len(numerator), denominator, np.int64), np.full(len(numerator), what, np.int8))


def _long_number(text: str) -> Fraction | str:
    number = re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+|/0*[1-9][0-9]*)?", text)
    return Fraction(text) if number and len(text) <= 300 else text
