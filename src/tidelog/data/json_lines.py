"""JSON Lines as an Arrow table, without losing a digit.

Arrow is fast, but turns decimal numbers into doubles and text that looks like a date into dates, and requires one type
per column. Where that would change a value, the data is read again: dates as text; long decimal numbers and mixed
columns by Python's own reader, which also knows the place of every error.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tidelog.data.bad_rows import RowErrors
from tidelog.data.table_cells import Cells, read_cells
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.syntax import Value

_LONG_NUMBER = re.compile(rb"[0-9][0-9.]{15}")
_DECIMAL = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")
_MOST_DIGITS = 300
#: How a line of fact text begins.
_FACT_TEXT = re.compile(r"\s*[^\W\d][\w:.]*\s*[(@]")


def exact_decimal(text: str) -> Fraction | None:
    """Read a decimal number, also with an exponent; None if the text is not a number, or has too many digits."""
    return Fraction(Decimal(text)) if _DECIMAL.fullmatch(text) and len(text) <= _MOST_DIGITS else None


def refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object of JSON; raise ValueError if a key occurs twice. For `object_pairs_hook`.

    >>> json.loads('{"a": 1, "a": 2}', object_pairs_hook=refuse_repeated_keys)
    Traceback (most recent call last):
    ValueError: the key "a" occurs twice
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'the key "{repeated}" occurs twice')
    return found


def read_table_cells(data: bytes, form: str, path: str) -> Cells:
    """Read the cells of a table of any form, before any of them has a meaning."""
    return read_json_lines(data, path) if form == "jsonl" else read_cells(data, form, path)


def read_json_lines(data: bytes, path: str) -> Cells:
    """Read JSON Lines: one object per line, one row per object."""
    import pyarrow as pa
    from pyarrow import json as arrow_json
    from pyarrow import types

    if not data.strip():
        return Cells((), (), 0)
    options = arrow_json.ReadOptions(use_threads=False)
    try:
        table = arrow_json.read_json(pa.BufferReader(data), options)
        names, kinds = table.column_names, table.schema.types
        dates = [(name, pa.string()) for name, kind in zip(names, kinds, strict=True) if types.is_timestamp(kind)]
        if dates:
            parse = arrow_json.ParseOptions(explicit_schema=pa.schema(dates))
            table = arrow_json.read_json(pa.BufferReader(data), options, parse).select(names)
    except pa.ArrowException:
        return _read_exactly(data, path)
    if any(types.is_floating(kind) for kind in kinds) and _LONG_NUMBER.search(data):
        return _read_exactly(data, path)
    return Cells(names, [column.combine_chunks() for column in table.columns], table.num_rows)


def _read_exactly(data: bytes, path: str) -> Cells:
    columns: dict[str, list[Value | None]] = {}
    rows = 0
    for number, line in enumerate(data.decode().split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = _DECODER.decode(line)
            if not isinstance(row, dict):
                raise ValueError("this is not an object")
            for name in row:
                columns.setdefault(name, [None] * rows)
            for name, column in columns.items():
                column.append(_read_value(row.get(name)))
        except (ValueError, RecursionError) as error:
            column_number = error.pos + 1 if isinstance(error, json.JSONDecodeError) else 1
            message = describe_broken_json(error) if isinstance(error, json.JSONDecodeError) else str(error)
            place = Place(path, number, column_number, 1, line)
            law = "JSON Lines has one object per line, and its values are numbers or text"
            raise RowErrors([Diagnostic("TL207", message, place, law)], {rows: message}) from None
        rows += 1
    return Cells(list(columns), list(columns.values()), rows)


def describe_broken_json(error: json.JSONDecodeError) -> str:
    """Say in words why a line is no JSON: it may be fact text."""
    if _FACT_TEXT.match(error.doc):
        return "this is fact text, not JSON: give the file a name that ends with .facts"
    return f"this is not JSON: {error.msg[:1].lower()}{error.msg[1:]}"


def split_json_array(data: bytes, path: str) -> list[tuple[int, bytes]]:
    """Split a JSON array into its items, each on one line of its own, with the number of the line where it begins.

    >>> split_json_array(b'[{"a": 1},\\n {"a":\\n 2}]', "A.json")
    [(1, b'{"a": 1}\\n'), (2, b'{"a":  2}\\n')]
    """
    text = data.decode()
    decoder = json.JSONDecoder()
    items: list[tuple[int, bytes]] = []
    line, counted = 1, 0
    at = _skip_space(text, text.index("[") + 1)
    try:
        while at < len(text) and (text[at] != "]" or items):
            line, counted = line + text.count("\n", counted, at), at
            _, end = decoder.raw_decode(text, at)
            items.append((line, text[at:end].replace("\r", " ").replace("\n", " ").encode() + b"\n"))
            at = _skip_space(text, end)
            if text[at : at + 1] == "]":
                break
            if text[at : at + 1] != ",":
                raise json.JSONDecodeError("there is no comma between two items, or no ] at the end", text, at)
            at = _skip_space(text, at + 1)
        if text[at + 1 :].strip():
            raise json.JSONDecodeError("there is more text after the array", text, _skip_space(text, at + 1))
    except (json.JSONDecodeError, RecursionError) as error:
        where = error.pos if isinstance(error, json.JSONDecodeError) else at
        begin = text.rfind("\n", 0, where) + 1
        shown = text[begin:].split("\n", 1)[0]
        place = Place(path, text.count("\n", 0, where) + 1, where - begin + 1, 1, shown)
        message = error.msg if isinstance(error, json.JSONDecodeError) else "this is nested too deeply"
        law = "a JSON file is an array of objects, or has one object per line"
        raise TidelogError(Diagnostic("TL207", message, place, law)) from None
    return items


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _read_number(text: str) -> Fraction:
    value = exact_decimal(text)
    if value is None:
        raise ValueError(f"`{text[:40]}` is not a number that can be read")
    return value


_DECODER = json.JSONDecoder(
    parse_int=_read_number,
    parse_float=_read_number,
    parse_constant=_read_number,
    object_pairs_hook=refuse_repeated_keys,
)


def _read_value(cell: object) -> Value | None:
    if cell is None or isinstance(cell, str | Fraction):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return None  # a list or an object, which is no value of a fact
