"""What a schema, or a look at all values, says about a column: text that looks like numbers, local times, units."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tidelog.data.arrow_calls import match_texts, trim_texts
from tidelog.data.json_lines import exact_decimal
from tidelog.language.fact_text import format_value
from tidelog.language.syntax import Value
from tidelog.language.time_text import read_number

_LEADING_ZERO = r"^0[0-9]+$"
_NUMBER = r"^[-+]?[0-9]+([./][0-9]+)?$"
_PADDED_NUMBER = r"^\s*[-+]?[0-9]+([./][0-9]+)?\s*$"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def has_leading_zeros(column: Any) -> bool:
    """Return whether a text column has a number with a leading zero, such as `007`: then it holds identifiers."""
    return bool(match_texts(column, _LEADING_ZERO).true_count)


def has_numbers(column: Any) -> bool:
    """Return whether a text column has a value that is read as a number."""
    return bool(match_texts(column, _NUMBER).true_count)


def trim_numbers(column: Any) -> Any:
    """Remove the spaces around numbers in a text column: after a comma, ` 5` is the number 5. Other text keeps them."""
    return trim_texts(column, match_texts(column, _PADDED_NUMBER))


def read_long_number(text: str) -> Fraction | str:
    """Read a number that is too long for compiled code; a text that is not a number is a name."""
    number = re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+|/0*[1-9][0-9]*)?", text)
    return Fraction(text) if number and len(text) <= 300 else text


def to_text(value: Value) -> str:
    """Convert a constant to text: `1001` for the number 1001."""
    return value if isinstance(value, str) else format_value(value)


def to_number(value: Value) -> Fraction | None:
    """Convert a constant to a number; None if it is not one."""
    if isinstance(value, Fraction):
        return value
    text = value.strip()
    exact = exact_decimal(text)
    return exact if exact is not None else read_number(text)


def convert_values(values: Sequence[Value], convert: Callable[[Value], Value | None]) -> list[Value | None]:
    """Convert the values of a column, each distinct one once."""
    known = {value: convert(value) for value in dict.fromkeys(values)}
    return [known[value] for value in values]


def compute_local_offsets(
    seconds: npt.NDArray[np.int64], zone: str, ambiguous: str | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Compute the offset from UTC, in seconds, of local times in seconds since 1970-01-01 on the local clock.

    Returns also the rows of local times that do not exist, because clocks are set forward, and of those that occur
    twice, because clocks are set back, unless `ambiguous` says which one is meant.
    """
    minutes, row = np.unique(seconds // 60, return_inverse=True)
    found = [_local_offset(int(minute), zone, ambiguous) for minute in minutes]
    offsets = np.array([offset for offset, _ in found], np.int64)[row]
    problem = np.array([problem for _, problem in found], np.int8)[row]
    return offsets, np.flatnonzero(problem == _MISSING), np.flatnonzero(problem == _TWICE)


_FINE, _MISSING, _TWICE = 0, 1, 2


def _local_offset(minute: int, zone: str, ambiguous: str | None) -> tuple[int, int]:
    from zoneinfo import ZoneInfo

    place = ZoneInfo(zone)
    try:
        local = (_EPOCH + timedelta(minutes=minute)).replace(tzinfo=place)
        first, second = (local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    except OverflowError:
        return 0, _FINE
    if first == second:
        return int(first.total_seconds()), _FINE
    if first < second:
        return int(first.total_seconds()), _MISSING
    chosen = second if ambiguous == "later" else first
    return int(chosen.total_seconds()), _FINE if ambiguous else _TWICE
