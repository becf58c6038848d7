"""Print facts as text or JSON Lines, by compiled code.

Facts are sorted by arguments, then time. A row is `P(a,b)@[0,3)`, or `P(a)@7` for a single point, or a JSON object with
the same atom and ends. Times are numbers or, on request, ISO 8601 dates where a date gives the time exactly.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, Protocol, get_args

import numpy as np
import numpy.typing as npt

from tidelog.data.constant_order import sort_facts, sort_rows
from tidelog.data.number_scanner import NUMBER, Bytes, gcd, is_digit, read_number, write_decimal, write_rational
from tidelog.data.packed_rows import Columns, sort_columns
from tidelog.data.symbol_kernels import NUMBER_KIND, SymbolTable
from tidelog.data.symbol_table import Symbols
from tidelog.jit import inlined_kernel, kernel, tick
from tidelog.language.fact_text import FactFormat, LineFormat
from tidelog.local_threads import count_threads, run_in_threads
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid

#: Bytes that are written at once: they stay in the processor's cache.
_CHUNK = 1 << 20
#: More rows than this are printed by several threads.
_FEWEST_ROWS = 1 << 16
#: Rows are printed from texts that are sorted like them if there are at most this many constants for each.
_CONSTANTS_PER_ROW = 4
#: Room for everything in a row but the atom: two dates with 18 decimals, and the JSON around them.
_ROOM_FOR_TIMES = 200
#: Room for a constant besides its characters: a decimal may be longer than its fraction, and has up to 18 digits.
_ROOM_FOR_DIGITS = 48

_QUOTE, _OPEN, _CLOSE, _COMMA, _MINUS, _DOT, _COLON, _AT = 34, 40, 41, 44, 45, 46, 58, 64
_SQUARE, _BACKSLASH, _SQUARE_CLOSE, _NEWLINE, _SLASH, _SPACE, _BRACE_CLOSE = 91, 92, 93, 10, 47, 32, 125
_FIRST_DAY, _LAST_DAY = -719162, 2932896  # 0001-01-01 and 9999-12-31, counted from 1970-01-01

# The JSON between the parts of an object.
_START, _END, _CLOSED = (
    np.frombuffer(text, np.uint8) for text in (b'", "start": "', b'", "end": "', b'", "closed": "')
)
_NEITHER, _RIGHT, _LEFT, _BOTH = (np.frombuffer(text, np.uint8) for text in (b"neither", b"right", b"left", b"both"))


_UNICODE = np.frombuffer(b"\\u00", np.uint8)


class FactRows(Protocol):
    """Rows of one predicate: one row of `args` per argument, and closed pairs `lo`, `hi` on a grid."""

    @property
    def args(self) -> npt.NDArray[np.int32]: ...
    @property
    def lo(self) -> npt.NDArray[np.int64]: ...
    @property
    def hi(self) -> npt.NDArray[np.int64]: ...


#: Numbers with more characters than this are not read by compiled code.
_MOST_DIGITS = 18


class _Style(NamedTuple):
    """How kernels print: the time step of `1/denominator`; `dense` for the rational timeline, whose grid is doubled.

    The bits of `dated` say which arguments are times that print as dates.
    """

    denominator: int
    dense: bool
    iso: bool
    jsonl: bool
    dated: int


class _Words(NamedTuple):
    """The texts of every row: its beginning and, in JSON, what comes between the times and the arguments."""

    name: bytes
    after: bytes


def check_format(format: str) -> None:
    """Raise a ValueError for a format that facts cannot be printed in."""
    if format not in get_args(FactFormat):
        raise ValueError(f"facts are printed as {' or '.join(get_args(FactFormat))}, not as {format!r}")


def render_rows(
    symbols: Symbols,
    predicate: str,
    rows: FactRows,
    grid: Grid,
    *,
    iso: bool = False,
    format: LineFormat = "text",
    by_end: bool = False,
    times: Sequence[int] = (),
) -> bytes:
    """Print the rows of one predicate, one per line, sorted by arguments and time; intervals are not coalesced.

    With `by_end`, the rows are sorted by their ends first. The arguments at the positions `times` print as the ends of
    intervals do.

    >>> from tidelog.data.relation import Relation
    >>> symbols = Symbols()
    >>> args = np.array([[symbols.intern("b"), symbols.intern("a")]], np.int32)
    >>> rows = Relation("P", 1, args, np.array([0, 14]), np.array([5, 14]))
    >>> print(render_rows(symbols, "P", rows, Grid(dense=True)).decode(), end="")
    P(a)@7
    P(b)@[0,3)
    """
    if format not in get_args(LineFormat):
        raise ValueError(f"rows are printed as {' or '.join(get_args(LineFormat))}, not as {format!r}")
    columns = Columns(*map(np.ascontiguousarray, (rows.args, rows.lo, rows.hi)))
    jsonl = format == "jsonl"
    style = _Style(grid.denominator, grid.dense, iso, jsonl, sum(1 << k for k in times) if iso else 0)
    quoted = json.dumps(predicate, ensure_ascii=False)
    name = ('{"fact": ' + quoted[:-1] if jsonl else predicate).encode()
    words = _Words(name, f'", "predicate": {quoted}, "args": ['.encode())
    if by_end or len(symbols) > _CONSTANTS_PER_ROW * len(columns.lo) or not len(columns.args):
        return _write(symbols.reserve(0, 0), _sort(columns, symbols, by_end), words, style)
    ranked = columns._replace(args=symbols.ranks()[columns.args].astype(np.int32))
    threads = count_threads() if len(columns.lo) >= _FEWEST_ROWS else 1
    parts = [ranked] if threads == 1 else _divide(ranked, threads)
    table = symbols.ordered()
    return b"".join(run_in_threads([partial(_sort_and_write, table, part, words, style) for part in parts]))


def _sort(columns: Columns, symbols: Symbols, by_end: bool) -> Columns:
    """Sort rows by arguments and beginning, or by their ends first."""
    args, lo, hi = columns
    ranks = symbols.ranks() if len(args) else np.zeros(0, np.int64)
    if by_end:
        order = sort_rows([lo, *(ranks[column] for column in args[::-1]), hi])
    else:
        order = sort_facts(args, lo, ranks)
    return Columns(np.ascontiguousarray(args[:, order]), lo[order], hi[order])


def _divide(columns: Columns, count: int) -> list[Columns]:
    """Divide rows into parts of about the same size, by the first argument."""
    first = columns.args[0]
    sample = np.sort(first[:: max(1, len(first) // 4096)])
    bounds = sample[[len(sample) * k // count for k in range(1, count)]]
    part = np.searchsorted(bounds, first, "right")
    own = [part == number for number in range(count)]
    return [Columns(np.ascontiguousarray(columns.args[:, mask]), columns.lo[mask], columns.hi[mask]) for mask in own]


def _sort_and_write(table: SymbolTable, columns: Columns, words: _Words, style: _Style) -> bytes:
    """Sort and print rows whose arguments are ranks; the table has the texts by rank."""
    found = sort_columns(columns)
    same = found.lo[1:] == found.lo[:-1]
    for column in found.args:
        same &= column[1:] == column[:-1]
    if same.any():
        # Those that differ in their ends alone keep their order.
        order = np.lexsort([columns.lo, *columns.args[::-1]])
        found = Columns(np.ascontiguousarray(columns.args[:, order]), columns.lo[order], columns.hi[order])
    return _write(table, found, words, style)


def _write(table: SymbolTable, columns: Columns, words: _Words, style: _Style) -> bytes:
    """Print rows in their order."""
    args, lo, hi = columns
    name, after = np.frombuffer(words.name, np.uint8), np.frombuffer(words.after, np.uint8)
    room = len(name) + len(after) + _ROOM_FOR_TIMES + 3 * _ROOM_FOR_DIGITS * len(args)
    out = np.empty(min(_CHUNK, len(lo) * room), np.uint8)
    chunks = []
    row = 0
    while row < len(lo):
        size, next_row = _write_rows(out, name, after, table, args, lo, hi, row, style)
        if next_row == row:
            out = np.empty(2 * len(out), np.uint8)
        chunks.append(out[:size].tobytes())
        row = int(next_row)
    return b"".join(chunks)


@kernel
def _write_rows(
    out: Bytes,
    name: Bytes,
    after: Bytes,
    table: SymbolTable,
    args: npt.NDArray[np.int32],
    lo: npt.NDArray[np.int64],
    hi: npt.NDArray[np.int64],
    first: int,
    style: _Style,
) -> tuple[int, int]:
    """Write rows from the first one on while there is room; return how many bytes they take, and the row after them.

    In JSON, `after` comes between the times and the arguments.
    """
    at, atom, atom_end, room = 0, 0, 0, 0
    for i in range(first, len(lo)):
        tick()
        same = i > first
        for k in range(len(args)):
            same = same and args[k, i] == args[k, i - 1]
        if not same:
            # An escaped character is 2 bytes, in JSON up to 6, and written twice.
            room = len(name) + len(after) + _ROOM_FOR_TIMES
            for k in range(len(args)):
                size = table.offsets[args[k, i] + 1] - table.offsets[args[k, i]]
                room += size * (12 if style.jsonl else 2) + _ROOM_FOR_DIGITS
        if at + room > len(out):
            return at, i
        if same:
            for j in range(atom_end - atom):
                out[at + j] = out[atom + j]
            atom, atom_end = at, at + atom_end - atom
            at = atom_end
        else:
            atom = at
            at = _write_bytes(out, at, name)
            for k in range(len(args)):
                out[at] = _COMMA if k else _OPEN
                at += 1
                before = at
                if style.dated >> k & 1:
                    at = _write_as_date(out, at, table, args[k, i])
                if at == before:
                    at = _write_constant(out, at, table, args[k, i], style.jsonl)
            if len(args):
                out[at] = _CLOSE
                at += 1
            atom_end = at
        open_lo = lo[i] == NEG_INF or (style.dense and lo[i] & 1 == 1)
        open_hi = hi[i] == POS_INF or (style.dense and hi[i] & 1 == 1)
        if style.jsonl:
            at = _write_end(out, _write_bytes(out, at, _START), lo[i], style)
            at = _write_end(out, _write_bytes(out, at, _END), hi[i] + (style.dense and open_hi), style)
            at = _write_bytes(out, at, _CLOSED)
            if open_lo:
                at = _write_bytes(out, at, _NEITHER if open_hi else _RIGHT)
            else:
                at = _write_bytes(out, at, _LEFT if open_hi else _BOTH)
            at = _write_bytes(out, at, after)
            for k in range(len(args)):
                if k:
                    out[at] = _COMMA
                    out[at + 1] = _SPACE
                    at += 2
                before = at
                if style.dated >> k & 1:
                    out[at] = _QUOTE
                    at = _write_as_date(out, at + 1, table, args[k, i])
                if at > before + 1:
                    out[at] = _QUOTE
                    at += 1
                else:
                    at = _write_json_value(out, before, table, args[k, i])
            out[at] = _SQUARE_CLOSE
            out[at + 1] = _BRACE_CLOSE
            out[at + 2] = _NEWLINE
            at += 3
            continue
        out[at] = _AT
        at += 1
        if lo[i] == hi[i] and not open_lo:
            at = _write_end(out, at, lo[i], style)
        else:
            out[at] = _OPEN if open_lo else _SQUARE
            at = _write_end(out, at + 1, lo[i], style)
            out[at] = _COMMA
            at = _write_end(out, at + 1, hi[i] + (style.dense and open_hi), style)
            out[at] = _CLOSE if open_hi else _SQUARE_CLOSE
            at += 1
        out[at] = _NEWLINE
        at += 1
    return at, len(lo)


@inlined_kernel
def _write_bytes(out: Bytes, at: int, text: Bytes) -> int:
    for j in range(len(text)):
        out[at + j] = text[j]
    return at + len(text)


@inlined_kernel
def _is_bare(table: SymbolTable, start: int, end: int) -> bool:
    """Return whether a name needs no quotes: letters, digits and `_`, and no digit first."""
    if start == end or is_digit(table.pool[start]):
        return False
    for j in range(start, end):
        c = table.pool[j]
        if not (97 <= c <= 122 or 65 <= c <= 90 or is_digit(c) or c == 95):
            return False
    return True


@inlined_kernel
def _write_constant(out: Bytes, at: int, table: SymbolTable, id: int, jsonl: bool) -> int:
    start, end = table.offsets[id] + 1, table.offsets[id + 1]
    if table.pool[start - 1] == NUMBER_KIND:
        return _write_number(out, at, table, start, end)
    if _is_bare(table, start, end):
        for j in range(start, end):
            out[at] = table.pool[j]
            at += 1
        return at
    at = _write_char(out, at, _QUOTE, jsonl)
    for j in range(start, end):
        c = table.pool[j]
        escaped = c
        if c == 10:
            escaped = 110
        elif c == 13:
            escaped = 114
        elif c == 9:
            escaped = 116
        if escaped != c or c in (_QUOTE, _BACKSLASH):
            at = _write_char(out, at, _BACKSLASH, jsonl)
        at = _write_char(out, at, escaped, jsonl)
    return _write_char(out, at, _QUOTE, jsonl)


@inlined_kernel
def _write_number(out: Bytes, at: int, table: SymbolTable, start: int, end: int) -> int:
    """Write a number as an integer, a finite decimal, or else a reduced fraction."""
    _, numerator, denominator, kind = read_number(table.pool, start, end)
    if kind == NUMBER and denominator != 1:
        after = write_decimal(out, at, numerator, denominator)
        if after > at:
            return after
    for j in range(start, end):
        out[at] = table.pool[j]
        at += 1
    return at


@inlined_kernel
def _write_json_value(out: Bytes, at: int, table: SymbolTable, id: int) -> int:
    """Write a constant as a JSON value: texts and fractions are strings, other numbers are numbers."""
    start, end = table.offsets[id] + 1, table.offsets[id + 1]
    bare = table.pool[start - 1] == NUMBER_KIND
    for j in range(start, end):
        bare = bare and table.pool[j] != _SLASH
    if not bare:
        out[at] = _QUOTE
        at += 1
    if table.pool[start - 1] == NUMBER_KIND:
        at = _write_number(out, at, table, start, end)
    else:
        for j in range(start, end):
            at = _write_char(out, at, table.pool[j], True)
    if not bare:
        out[at] = _QUOTE
        at += 1
    return at


@inlined_kernel
def _write_char(out: Bytes, at: int, c: int, jsonl: bool) -> int:
    """Write a character of a constant; in a JSON string, escape quotes, backslashes and control characters."""
    if jsonl and c < 32:
        at = _write_bytes(out, at, _UNICODE)
        out[at] = 48 + c // 16
        out[at + 1] = (48 if c % 16 < 10 else 87) + c % 16
        return at + 2
    if jsonl and c in (_QUOTE, _BACKSLASH):
        out[at] = _BACKSLASH
        at += 1
    out[at] = c
    return at + 1


@inlined_kernel
def _write_end(out: Bytes, at: int, end: int, style: _Style) -> int:
    """Write an end of an interval. An open right end comes as the time itself, not as the gap before it."""
    if end <= NEG_INF or end >= POS_INF:
        if end < 0:
            out[at] = _MINUS
            at += 1
        out[at] = 105
        out[at + 1] = 110
        out[at + 2] = 102
        return at + 3
    ticks = end >> 1 if style.dense else end
    if style.iso:
        after = _write_date(out, at, ticks, style.denominator)
        if after > at:
            return after
    return write_rational(out, at, ticks, style.denominator)


@inlined_kernel
def _write_as_date(out: Bytes, at: int, table: SymbolTable, id: int) -> int:
    """Write a number as a date-time; write nothing for a name, or if no date-time gives it exactly."""
    start, end = table.offsets[id] + 1, table.offsets[id + 1]
    if table.pool[start - 1] != NUMBER_KIND or end - start > _MOST_DIGITS:
        return at
    top, bottom, slash = 0, 0, False
    for j in range(start, end):
        c = table.pool[j]
        if c == _SLASH:
            slash = True
        elif c != _MINUS and slash:
            bottom = bottom * 10 + c - 48
        elif c != _MINUS:
            top = top * 10 + c - 48
    return _write_date(out, at, -top if table.pool[start] == _MINUS else top, bottom if slash else 1)


@inlined_kernel
def _write_padded(out: Bytes, at: int, value: int, digits: int, mark: int) -> int:
    """Write a number with leading zeros, and a mark after it."""
    for j in range(at + digits - 1, at - 1, -1):
        out[j] = 48 + value % 10
        value //= 10
    out[at + digits] = mark
    return at + digits + 1


@inlined_kernel
def _write_date(out: Bytes, at: int, ticks: int, denominator: int) -> int:
    """Write a date-time in UTC; write nothing if no date-time gives the time exactly."""
    common = gcd(ticks, denominator)
    ticks //= common
    denominator //= common
    seconds = ticks // denominator
    days = seconds // 86400
    if days < _FIRST_DAY or days > _LAST_DAY:
        return at
    decimals = 0
    scale = denominator
    while scale % 10 == 0:
        scale //= 10
        decimals += 1
    factor = 5 if scale % 2 == 0 else 2
    fraction = ticks - seconds * denominator
    while decimals < 18 and scale % (7 - factor) == 0:
        scale //= 7 - factor
        fraction *= factor
        decimals += 1
    if scale != 1:
        return at
    # The calendar is counted in years that begin in March, in eras of 400 years.
    shifted = days + 719468
    era = shifted // 146097
    day_of_era = shifted - era * 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    at = _write_padded(out, at, year, 4, _MINUS)
    at = _write_padded(out, at, month, 2, _MINUS)
    at = _write_padded(out, at, day, 2, 84)
    clock = seconds - days * 86400
    at = _write_padded(out, at, clock // 3600, 2, _COLON)
    at = _write_padded(out, at, clock // 60 % 60, 2, _COLON)
    at = _write_padded(out, at, clock % 60, 2, _DOT if decimals else 90)
    if decimals:
        at = _write_padded(out, at, fraction, decimals, 90)
    return at
