"""JSON Lines as an Arrow table, without losing a digit.

Arrow reads quickly but makes doubles of decimal numbers and dates of what looks like one, and wants one type a column.
What it would change is read again: dates as text, long decimal numbers and mixed columns by Python's own reader, which
also knows the place of every error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.syntax import Value

_LONG_NUMBER = re.compile(rb"[0-9][0-9.]{15}")
_DECIMAL = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")
_MOST_DIGITS = 300


@dataclass(frozen=True, eq=False)
class Cells:
    """A table as names and columns; a column is an Arrow array or a list of values, None where there is none."""

    names: Sequence[str]
    columns: Sequence[Any]
    rows: int


def exact_decimal(text: str) -> Fraction | None:
    """The value of a decimal number, also with an exponent; None for what is no number, or a monstrous one."""
    return Fraction(Decimal(text)) if _DECIMAL.fullmatch(text) and len(text) <= _MOST_DIGITS else None


def read_json_lines(data: bytes, path: str) -> Cells:
    """One row an object."""
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
            found = json.loads(line, parse_int=_number, parse_float=_number, parse_constant=_number)
            if not isinstance(found, dict):
                raise ValueError("this is not an object")
            for name in found:
                columns.setdefault(name, [None] * rows)
            for name, column in columns.items():
                column.append(_value(found.get(name)))
        except (ValueError, RecursionError) as error:
            column_number = error.pos + 1 if isinstance(error, json.JSONDecodeError) else 1
            message = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            place = Place(path, number, column_number, 1, line)
            law = "JSON Lines has one object a line, and its values are numbers or texts"
            raise TidelogError(Diagnostic("TL207", message, place, law)) from None
        rows += 1
    return Cells(list(columns), list(columns.values()), rows)


def _number(text: str) -> Fraction:
    value = exact_decimal(text)
    if value is None:
        raise ValueError(f"`{text[:40]}` is not a number that can be read")
    return value


def _value(cell: object) -> Value | None:
    if cell is None or isinstance(cell, str | Fraction):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    raise ValueError("a value in it is a list or an object")
