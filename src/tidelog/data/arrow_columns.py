"""Columns of Arrow tables as arguments and times of facts, read from their buffers without copying them.

A column is an Arrow array or a chunked array. Texts, integers, dictionaries and timestamps are read by kernels. Other
types have few distinct values as a rule: each of these is converted once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tidelog.data import arrow_kernels
from tidelog.data.arrow_calls import cast_column, match_texts
from tidelog.data.column_types import to_number, to_text
from tidelog.data.json_lines import exact_decimal
from tidelog.data.number_scanner import Bytes
from tidelog.data.relation import Ids, Times
from tidelog.data.schema import UNITS, ColumnType, TableSchema
from tidelog.data.symbol_kernels import AS_WRITTEN, NAME_KIND, NUMBER_KIND, SymbolTable
from tidelog.data.symbol_table import Symbols
from tidelog.data.time_columns import TimeKinds, is_text, text_buffers
from tidelog.language.fact_text import format_iso
from tidelog.language.syntax import Value
from tidelog.language.time_text import Zone
from tidelog.timeline.grid import LIMIT

#: Constants that a dictionary gets room for at first, and the bytes of their texts.
_FIRST_ROOM, _BYTES = 1 << 10, 32
#: Integers in a range that is no wider than this, or than the column is long, are looked up in a list.
_NEAR = 1 << 12
#: The most entries of a cache, as a power of two.
_CACHE_BITS = 16
#: Times of a column, or of each of its chunks, that are looked at first.
_SAMPLES = 64
#: Integers beyond this are read as text.
_MOST = 1 << 62
_EXPONENT = np.frombuffer(b"eEnNiI", np.uint8)


class UnsupportedType(Exception):
    """A column has a type whose values are neither texts, numbers nor dates."""


def chunks_of(column: Any) -> list[Any]:
    """Return the arrays of a column, each in one piece."""
    import pyarrow as pa

    return [part for part in column.chunks if len(part)] if isinstance(column, pa.ChunkedArray) else [column]


def decode_column(column: Any) -> Any:
    """Return a column as one array of plain values; it is copied only if it has several chunks or a dictionary."""
    import pyarrow as pa
    from pyarrow import types

    parts = [_decode_array(part) for part in chunks_of(column)]
    if len(parts) == 1:
        return parts[0]
    type = column.type.value_type if types.is_dictionary(column.type) else column.type
    return pa.concat_arrays(map(_widen_views, parts)) if parts else pa.array([], type)


def keep_rows(column: Any, kept: npt.NDArray[np.bool_]) -> Any:
    """Return the rows of a column where a mask is true."""
    from pyarrow import types

    type = column.type.value_type if types.is_dictionary(column.type) else column.type
    return (_widen_views(decode_column(column)) if types.is_string_view(type) else column).filter(kept)


def _decode_array(column: Any) -> Any:
    from pyarrow import types

    return _widen_views(column.dictionary).take(column.indices) if types.is_dictionary(column.type) else column


def find_nulls(column: Any) -> npt.NDArray[np.int64]:
    """Find the rows without a value, also those whose entry in the dictionary has none."""
    from pyarrow import types

    found: list[npt.NDArray[np.int64]] = []
    row = 0
    for part in chunks_of(column):
        if types.is_dictionary(part.type) and part.dictionary.null_count:
            valid = part.dictionary.is_valid().take(part.indices).fill_null(False)
            found.append(row + np.flatnonzero(~valid.to_numpy(zero_copy_only=False)))
        elif part.null_count:
            found.append(row + np.flatnonzero(part.is_null().to_numpy(zero_copy_only=False)))
        row += len(part)
    return np.concatenate(found) if found else np.zeros(0, np.int64)


# Arguments


def intern_column(column: Any, kind: ColumnType | None, symbols: Symbols, ids: Ids) -> npt.NDArray[np.int64]:
    """Write the ids of the constants in a column without nulls; return the rows whose value is not a number.

    `kind` is the type that a schema declares. Raises UnsupportedType for a type that holds no constants.
    """
    row = 0
    bad: list[npt.NDArray[np.int64]] = []
    for part in chunks_of(column):
        found = _intern_array(part, kind, symbols, ids[row : row + len(part)])
        bad.append(row + found)
        row += len(part)
    return np.concatenate(bad) if bad else np.zeros(0, np.int64)


_NO_ROWS = np.zeros(0, np.int64)


def find_value_type(column: Any, kind: ColumnType | None) -> Literal["text", "number"] | None:
    """Return what all constants of a column are, if its type or the schema says so."""
    from pyarrow import types

    if kind in ("text", "number"):
        return kind
    if isinstance(column, list) or kind is not None:
        return None
    type = column.type.value_type if types.is_dictionary(column.type) else column.type
    is_number = types.is_integer(type) or types.is_floating(type) or types.is_decimal(type)
    return "number" if is_number else "text" if is_text(type) else None


def _intern_array(column: Any, kind: ColumnType | None, symbols: Symbols, ids: Ids) -> npt.NDArray[np.int64]:
    from pyarrow import types

    type = column.type
    if not len(column):
        return _NO_ROWS
    if types.is_dictionary(type):
        return _intern_dictionary(column, kind, symbols, ids)
    if is_text(type) and kind != "number":
        _intern_texts(column, symbols, ids)
        return _NO_ROWS
    if types.is_integer(type) and _intern_integers(column, kind, symbols, ids):
        return _NO_ROWS
    if types.is_nested(type):
        raise UnsupportedType
    encoded = _widen_views(column).dictionary_encode()
    return _intern_dictionary(encoded, kind, symbols, ids, _intern_distinct)


def _intern_dictionary(
    column: Any,
    kind: ColumnType | None,
    symbols: Symbols,
    ids: Ids,
    intern: Callable[[Any, ColumnType | None, Symbols, Ids], npt.NDArray[np.int64]] = _intern_array,
) -> npt.NDArray[np.int64]:
    """Intern the entries of a dictionary that occur, each once."""
    # Indices are small, so that kernels need not be compiled for those without a sign.
    indices = _as_signed(_to_numpy(column.indices))
    entries = column.dictionary
    used = np.zeros(len(entries), np.bool_)
    arrow_kernels.mark_used(indices, used)
    places = np.flatnonzero(used)
    if len(places) < len(entries):
        entries = _widen_views(entries).take(places)
    distinct = np.empty(len(entries), np.int32)
    bad = intern(entries, kind, symbols, distinct)
    ids_of = np.full(len(used), -1, np.int32)
    ids_of[places] = distinct
    arrow_kernels.translate(indices, ids_of, ids)
    return np.flatnonzero(np.isin(indices, places[bad])) if len(bad) else _NO_ROWS


def _widen_views(column: Any) -> Any:
    """Convert views of texts to texts: Arrow has fewer functions for views."""
    import pyarrow as pa
    from pyarrow import types

    return cast_column(column, pa.large_string()) if types.is_string_view(column.type) else column


def _intern_in_steps(symbols: Symbols, row: int, end: int, run: Callable[[SymbolTable, int], int]) -> None:
    """Call a kernel from a row on until all rows are done, each time with more room in the dictionary."""
    more, longest = _FIRST_ROOM, _BYTES
    while row < end:
        before, row = row, run(symbols.reserve(more, more * longest), row)
        more = min(2 * max(more, len(symbols)), end - row + _FIRST_ROOM)
        longest = longest if row > before else 4 * longest


def _intern_texts(column: Any, symbols: Symbols, ids: Ids) -> None:
    from pyarrow import types

    if types.is_string_view(column.type):
        _intern_views(column, symbols, ids)
        return
    data, offsets = read_text(column)
    _intern_in_steps(
        symbols, 0, len(ids), lambda table, row: arrow_kernels.intern_spans(table, data, offsets, row, ids)
    )


def read_text(column: Any) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """Return the bytes of a column of type string or large_string, and where each text begins; nothing is copied but
    short offsets."""
    from pyarrow import types

    _, offsets, data = column.buffers()
    width = np.int64 if types.is_large_string(column.type) else np.int32
    begin = np.frombuffer(offsets, width)[column.offset : column.offset + len(column) + 1]
    texts = np.frombuffer(data if data is not None else b"", np.uint8)
    return _freeze(texts), _freeze(begin.astype(np.int64, copy=False))


def _intern_views(column: Any, symbols: Symbols, ids: Ids) -> None:
    _, views, *buffers = column.buffers()
    rows = len(column)
    raw = _freeze(np.frombuffer(views, np.uint8)[16 * column.offset : 16 * (column.offset + rows)])
    words = raw.view(np.int64)
    if not words.flags.aligned:
        words = _freeze(words.copy())
        raw = words.view(np.uint8)
    cache, shift = _new_cache(rows)

    def run_short(table: SymbolTable, row: int) -> int:
        return arrow_kernels.intern_short_views(table, words, raw, row, cache, shift, ids)

    _intern_in_steps(symbols, 0, rows, run_short)
    first, last = np.full(len(buffers), rows), np.full(len(buffers), -1)
    if buffers:
        arrow_kernels.find_buffer_rows(words, first, last)
    for number in np.flatnonzero(last >= 0).tolist():
        data, end = _freeze(np.frombuffer(buffers[number], np.uint8)), int(last[number]) + 1

        def run_long(table: SymbolTable, row: int, data: Bytes = data, number: int = number, end: int = end) -> int:
            return arrow_kernels.intern_long_views(table, words, data, number, row, end, ids)

        _intern_in_steps(symbols, int(first[number]), end, run_long)


def _new_cache(rows: int) -> tuple[npt.NDArray[np.int64], int]:
    """Return an empty cache for the values of a column, and the shift of its kernels."""
    bits = min(_CACHE_BITS, (rows + 16).bit_length())
    words = np.full(arrow_kernels.ENTRY * ((1 << bits) + arrow_kernels.PROBES + 1), -1, np.int64)
    # No entry lies in two lines of the processor's cache.
    return words[-(words.ctypes.data >> 3) % arrow_kernels.ENTRY :], 64 - bits


def _intern_integers(column: Any, kind: ColumnType | None, symbols: Symbols, ids: Ids) -> bool:
    """Write the ids of integers; return False if some are too large."""
    values = _to_numpy(column)
    form = NAME_KIND if kind == "text" else NUMBER_KIND
    sample = values[:: len(values) // _SAMPLES + 1]
    least, most = int(sample.min()) - _NEAR // 4, int(sample.max()) + _NEAR // 4
    small = most - least < _NEAR and least >= -_MOST and most <= _MOST
    # Most often a few values tell in which range all are: then these need not be searched for it.
    if small and _intern_near(values, least, most, form, symbols, ids):
        return True
    least, most = int(values.min()), int(values.max())
    if least < -_MOST or most > _MOST:
        return False
    if most - least < max(_NEAR, len(values)):
        return _intern_near(values, least, most, form, symbols, ids)
    wide, (cache, shift), run = _as_signed(values), _new_cache(len(ids)), arrow_kernels.intern_far_integers
    _intern_in_steps(symbols, 0, len(ids), lambda table, row: run(table, wide, cache, shift, form, row, ids))
    return True


def _intern_near(values: npt.NDArray[Any], least: int, most: int, form: int, symbols: Symbols, ids: Ids) -> bool:
    """Write the ids of integers in a range; return False if some are not in it."""
    values, known, inside = _as_signed(values), np.full(most - least + 1, -1, np.int32), True

    def run(table: SymbolTable, row: int) -> int:
        nonlocal inside
        reached = int(arrow_kernels.intern_near_integers(table, values, least, known, form, row, ids))
        inside = reached >= 0
        return reached if inside else len(ids)

    _intern_in_steps(symbols, 0, len(ids), run)
    return inside


def _as_signed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values.view(np.int64) if values.dtype == np.uint64 else values


def _intern_distinct(distinct: Any, kind: ColumnType | None, symbols: Symbols, ids: Ids) -> npt.NDArray[np.int64]:
    """Intern distinct values of any type, converted to the type of the schema."""
    from pyarrow import types

    type = distinct.type
    if types.is_integer(type):
        ids[:] = symbols.intern_texts(*text_buffers(distinct), NAME_KIND if kind == "text" else NUMBER_KIND)
        return _NO_ROWS
    if (types.is_floating(type) or types.is_decimal(type)) and kind != "text":
        return _intern_decimals(distinct, symbols, ids)
    values = _read_values(distinct)
    if kind is not None:
        convert = to_text if kind == "text" else to_number
        values = [None if value is None else convert(value) for value in values]
    bad = [row for row, value in enumerate(values) if value is None]
    ids[:] = [-1 if value is None else symbols.intern(value) for value in values]
    return np.array(bad, np.int64)


def _intern_decimals(distinct: Any, symbols: Symbols, ids: Ids) -> npt.NDArray[np.int64]:
    """Intern floats, each as the shortest decimal that represents it, or decimals; infinities are not numbers."""
    import pyarrow as pa

    texts = cast_column(distinct, pa.large_string())
    data, offsets = text_buffers(texts)
    ids[:] = symbols.intern_texts(data, offsets, AS_WRITTEN)
    again = ids < 0
    if np.isin(data[offsets[0] : offsets[-1]], _EXPONENT).any():
        # A text with an exponent, `nan` or `inf` has been read as a name.
        again |= match_texts(texts, "[eEnNiI]").to_numpy(zero_copy_only=False)
    bad: list[int] = []
    for row in np.flatnonzero(again):
        number = exact_decimal(texts[int(row)].as_py())
        if number is None:
            bad.append(int(row))
        else:
            ids[row] = symbols.intern(number)
    return np.array(bad, np.int64)


def _read_values(distinct: Any) -> list[Value | None]:
    """Convert an Arrow array to constants; None for a float that is not a number."""
    import pyarrow as pa
    from pyarrow import types

    type = distinct.type
    if types.is_floating(type) or types.is_decimal(type):
        return [exact_decimal(text) for text in cast_column(distinct, pa.large_string()).to_pylist()]
    if types.is_boolean(type):
        return ["true" if value else "false" for value in distinct.to_pylist()]
    if types.is_timestamp(type):
        return [format_iso(Fraction(t, UNITS[type.unit])) for t in cast_column(distinct, pa.int64()).to_pylist()]
    if types.is_date(type):
        return [day.isoformat() for day in cast_column(distinct, pa.date32()).to_pylist()]
    if is_text(type):
        return list(distinct.to_pylist())
    raise UnsupportedType


# Times


@dataclass(frozen=True, eq=False)
class TickColumns:
    """Columns of times as ticks of `1/denominator`, doubled, and their kinds.

    `far` is the number of a column and a row that does not fit on the grid, if there is one.
    """

    denominator: int
    kinds: TimeKinds
    doubled: list[Times]
    far: tuple[int, int] | None = None


def read_ticks(columns: Sequence[Any], schema: TableSchema | None) -> TickColumns | None:
    """Read columns of timestamps or of integers without nulls; None for other types, and for local times."""
    found = [_find_unit(column.type, schema) for column in columns]
    units = [unit for kind in found if kind is not None for unit in kind[:1]]
    dates = {kind[1] for kind in found if kind is not None}
    if len(units) < len(columns) or len(dates) > 1:
        return None
    kinds = TimeKinds(*((True, False) if dates.pop() else (False, True)), _find_zones(columns))
    parts = [[_to_int64(part) for part in chunks_of(column)] for column in columns]
    # A divisor of a few times is most often one of all; where it is not, begin again with a smaller one.
    divisors = [gcd(unit, *_sample(arrays)) for unit, arrays in zip(units, parts, strict=True)]
    while True:
        steps = [unit // divisor for unit, divisor in zip(units, divisors, strict=True)]
        denominator = lcm(*steps)
        doubled: list[Times] = []
        for arrays, step, divisor in zip(parts, steps, divisors, strict=True):
            ticks = _divide(arrays, divisor, denominator // step)
            if not isinstance(ticks, int):
                doubled.append(ticks)
                continue
            if ticks >= 0:
                return TickColumns(denominator, kinds, [], (len(doubled), ticks))
            value = int(np.concatenate(arrays)[-2 - ticks])
            divisors[len(doubled)] = gcd(divisor, value)
            break
        else:
            return TickColumns(denominator, kinds, doubled)


def _sample(arrays: Sequence[Times]) -> Iterator[int]:
    """Yield some values of a column."""
    for array in arrays[:_SAMPLES]:
        yield from array[:: len(array) // _SAMPLES + 1].tolist()


def _divide(arrays: Sequence[Times], divisor: int, factor: int) -> Times | int:
    """Return twice the quotients of a column and a divisor, times a factor, or what `double_quotients` returns."""
    doubled, row = np.empty(sum(map(len, arrays)), np.int64), 0
    for array in arrays:
        out = doubled[row : row + len(array)]
        found = int(arrow_kernels.double_quotients(array, divisor, LIMIT // 2 // factor, out))
        if found != -1:
            return found + row if found >= 0 else found - row
        row += len(array)
    return doubled if factor == 1 else doubled * factor


def _find_unit(type: Any, schema: TableSchema | None) -> tuple[int, bool] | None:
    """Return the ticks per second of a type of times, and whether they are dates; None for other types."""
    from pyarrow import types

    if types.is_timestamp(type) and (type.tz is not None or schema is None or schema.zone is None):
        return UNITS[type.unit], True
    if types.is_integer(type) and not types.is_uint64(type):
        unit = None if schema is None else schema.unit
        return (1, False) if unit is None else (UNITS[unit], True)
    return None


def _find_zones(columns: Sequence[Any]) -> frozenset[Zone]:
    """Find out which timestamps have a time zone."""
    from pyarrow import types

    stamps = [column.type for column in columns if types.is_timestamp(column.type)]
    return frozenset("local" if type.tz is None else "zoned" for type in stamps)


def _to_int64(column: Any) -> Times:
    import pyarrow as pa
    from pyarrow import types

    if types.is_timestamp(column.type):
        column = column.view(pa.int64())
    return _freeze(_to_numpy(column).astype(np.int64, copy=False))


def _to_numpy(column: Any) -> npt.NDArray[Any]:
    """Return a view of a column of integers without nulls; those of 8 and 16 bits become 32 bits wide."""
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=True)
    return _freeze(values.astype(np.int32) if values.dtype.itemsize < 4 else values)


def _freeze(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make an array read-only, as views of Arrow's buffers are: kernels are compiled for one kind of array only."""
    if array.flags.writeable:
        array.flags.writeable = False
    return array
