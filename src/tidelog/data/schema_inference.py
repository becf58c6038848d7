"""Infer a first schema from the values of tables, as TOML that loads again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tidelog.data.column_types import to_number, to_text
from tidelog.data.data_files import read_cells_of, suggest_predicate
from tidelog.data.schema import ColumnType
from tidelog.errors import TidelogError
from tidelog.language.syntax import Value
from tidelog.language.time_text import parse_time

#: Rows that are looked at.
MOST_ROWS = 100_000
_TIME_NAMES = re.compile(r"(.*_)?(time|timestamp|ts|at|date|datetime|when|epoch)(_?(ms|us|ns|s|utc))?", re.IGNORECASE)
_START_NAMES = re.compile(r"(.*_)?(start|begin|from|since|valid_from|started)(_.*)?", re.IGNORECASE)
_END_NAMES = re.compile(r"(.*_)?(end|stop|to|until|till|valid_to|ended|finish)(_.*)?", re.IGNORECASE)
#: The least size of numbers that are times since 1970 in each unit: those of the year 1973.
_UNITS = (("ns", 10**17), ("us", 10**14), ("ms", 10**11), ("s", 10**8))


@dataclass(frozen=True)
class _Guess:
    """A column with the type that its values suggest; `unit` is that of numbers that look like times since 1970."""

    name: str
    type: ColumnType
    unit: str | None = None
    note: str = ""


def infer_schema(paths: Sequence[str]) -> str:
    """Return the text of a schema file for tables; raise TL207 for a file that is not a table.

    A column that is text in one table is text in all, so that tables can be joined by it.
    """
    tables = [_guess_columns(path) for path in paths]
    text = {guess.name for _, guesses in tables for guess in guesses if guess.type == "text"}
    for _, guesses in tables:
        for i, guess in enumerate(guesses):
            if guess.name in text and guess.type == "number":
                guesses[i] = replace(guess, type="text", unit=None, note=f"`{guess.name}` is text in another table")
    sections = [
        _format_table(suggest_predicate(path), file, guesses)
        for path, (file, guesses) in zip(paths, tables, strict=True)
    ]
    return "\n".join(sections)


def _guess_columns(path: str) -> tuple[str, list[_Guess]]:
    """Return the file of a table, and a guess for each of its columns."""
    cells, file = read_cells_of(path)
    columns = zip(cells.names, cells.columns, strict=True)
    return file, [_guess_column(name.strip(), list(_values(column))) for name, column in columns]


def _format_table(predicate: str, file: str, guesses: list[_Guess]) -> str:
    roles = _choose_times(guesses)
    chosen = set(roles.values())
    unit = next((guess.unit for guess in guesses if guess.name in chosen and guess.unit), None)
    columns = [_settle(guess, guess.name in chosen) for guess in guesses]
    lines = [f"[schema.{_key(predicate)}]", f"file = {_quote(file)}"]
    lines += [f"# {column.note}" for column in columns if column.note]
    lines.append("columns = { " + ", ".join(f'{_key(c.name)} = "{c.type}"' for c in columns) + " }")
    lines += [f"{role} = {_quote(name)}" for role, name in roles.items()]
    if unit:
        lines.append(f'unit = "{unit}"')
    if not roles:
        lines.append("# no column looks like the time of a fact: these facts hold at all times")
    return "\n".join(lines) + "\n"


def _values(column: Any) -> Iterator[Value]:
    """Yield the values of a column as text or numbers, without missing ones."""
    import pyarrow as pa

    if isinstance(column, list):
        yield from (value for value in column[:MOST_ROWS] if value is not None)
        return
    part = column.slice(0, MOST_ROWS).drop_null()
    if pa.types.is_integer(part.type):
        yield from map(Fraction, part.to_pylist())
    elif pa.types.is_floating(part.type) or pa.types.is_decimal(part.type):
        texts = part.cast(pa.large_string()).to_pylist()
        yield from (number for text in texts if (number := to_number(text)) is not None)
    elif pa.types.is_timestamp(part.type) or pa.types.is_date(part.type):
        yield from ("2000-01-01" for _ in range(len(part)))
    elif not pa.types.is_nested(part.type):
        yield from part.cast(pa.large_string()).to_pylist()


def _guess_column(name: str, values: list[Value]) -> _Guess:
    if not values:
        return _Guess(name, "text", note=f"`{name}` has no values")
    distinct = list(dict.fromkeys(values))
    if all(isinstance(value, str) and _is_date(value) for value in distinct):
        return _Guess(name, "time")
    if any(isinstance(value, str) and re.fullmatch("0[0-9]+", value) for value in distinct):
        return _Guess(name, "text", note=f"`{name}` has leading zeros, so it is text")
    numbers = [to_number(value) for value in distinct]
    known = [number for number in numbers if number is not None]
    if len(known) < len(distinct):
        bad = next(to_text(value) for value, number in zip(distinct, numbers, strict=True) if number is None)
        mostly = len(known) * 10 > len(distinct) * 9
        note = f"`{name}` is text because of values like {_quote(bad[:30])}" if mostly else ""
        return _Guess(name, "text", note=note)
    return _Guess(name, "number", _guess_unit(known))


def _is_date(text: str) -> bool:
    try:
        return parse_time(text)[1]
    except TidelogError:
        return False


def _guess_unit(numbers: list[Fraction]) -> str | None:
    for unit, least in _UNITS:
        if all(least <= number < 100 * least for number in numbers):
            return unit
    return None


def _choose_times(guesses: list[_Guess]) -> dict[str, str]:
    """Choose the columns that say when a fact holds: dates, or numbers with the name of a time."""
    dates = [guess for guess in guesses if guess.type == "time"]
    epochs = [guess for guess in guesses if guess.unit in ("ms", "us", "ns")]
    named = [guess for guess in guesses if guess.type == "number" and _TIME_NAMES.fullmatch(guess.name)]
    ranged = [*dates, *(guess for guess in guesses if guess.type == "number")]
    start = next((guess for guess in ranged if _START_NAMES.fullmatch(guess.name)), None)
    end = next((guess for guess in ranged if _END_NAMES.fullmatch(guess.name)), None)
    if start and end and start.type == end.type:
        return {"start": start.name, "end": end.name}
    candidates = [*(d for d in dates if _TIME_NAMES.fullmatch(d.name)), *dates, *named, *epochs]
    exact = next((guess for guess in candidates if guess.name.lower() == "time"), None)
    best = exact or (candidates[0] if candidates else None)
    return {"time": best.name} if best else {}


def _settle(guess: _Guess, is_time: bool) -> _Guess:
    """Return the final type of a column: numbers are times only where they say when a fact holds."""
    return _Guess(guess.name, "time" if is_time else guess.type, guess.unit if is_time else None, guess.note)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quote(name)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
