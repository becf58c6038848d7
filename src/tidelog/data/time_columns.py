"""Columns of tables as buffers of text, and as times before they are on a grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tidelog.data.arrow_calls import cast_column
from tidelog.data.number_scanner import DATE, LOCAL, NOT_UNDERSTOOD, NUMBER, ZONED, Bytes, read_time
from tidelog.data.relation import Ids, Times
from tidelog.data.symbol_table import Symbols
from tidelog.jit import kernel
from tidelog.language.fact_text import format_iso
from tidelog.language.time_text import Zone

#: Columns of a table without a schema that say when facts hold.
TIME_COLUMNS = ("time", "start", "end", "closed")


@dataclass(frozen=True)
class TimeKinds:
    """Whether some times are dates, whether some are numbers, and whether times of day have an offset from UTC."""

    dates: bool = False
    numbers: bool = False
    zones: frozenset[Zone] = frozenset()

    def __or__(self, other: TimeKinds) -> TimeKinds:
        return TimeKinds(self.dates or other.dates, self.numbers or other.numbers, self.zones | other.zones)


@dataclass(frozen=True, eq=False)
class TimeColumn:
    """A column of times: fractions (not reduced), and the kind of each: NUMBER, DATE or an infinity.

    `zones` says whether dates with a time of day have an offset from UTC.
    """

    numerator: Times
    denominator: Times
    kind: npt.NDArray[np.int8]
    zones: frozenset[Zone] = frozenset()

    @property
    def kinds(self) -> TimeKinds:
        return TimeKinds(bool((self.kind == DATE).any()), bool((self.kind == NUMBER).any()), self.zones)

    def without_zones(self) -> TimeColumn:
        """Return the column with DATE for all kinds of dates, and `zones` for the difference between them."""
        local, zoned = self.kind == LOCAL, self.kind == ZONED
        kinds: tuple[tuple[Zone, npt.NDArray[np.bool_]], ...] = (("local", local), ("zoned", zoned))
        found = {zone for zone, rows in kinds if rows.any()}
        return replace(self, kind=np.where(local | zoned, DATE, self.kind).astype(np.int8), zones=self.zones | found)


@kernel
def scan_times(
    data: Bytes, offsets: npt.NDArray[np.int64], numerator: Times, denominator: Times, kind: npt.NDArray[np.int8]
) -> None:
    """Read consecutive texts as times."""
    for i in range(len(offsets) - 1):
        after, numerator[i], denominator[i], kind[i] = read_time(data, offsets[i], offsets[i + 1])
        if after != offsets[i + 1]:
            kind[i] = NOT_UNDERSTOOD


def is_text(type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(type) or types.is_large_string(type) or types.is_string_view(type))


def text_buffers(column: Any) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """Return the bytes of a text column, and where each text begins (and the last one ends)."""
    import pyarrow as pa

    column = cast_column(column, pa.large_string())
    _, offsets, data = column.buffers()
    if not len(column):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    begin = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data if data is not None else b"", np.uint8), begin


def to_time_column(column: Any, denominator: int, kind: int) -> TimeColumn:
    numerator = column.to_numpy(zero_copy_only=False)
    return TimeColumn(numerator, np.full(len(numerator), denominator, np.int64), np.full(len(numerator), kind, np.int8))


def intern_times(times: TimeColumn, symbols: Symbols, ids: Ids) -> None:
    """Write the ids of times that are arguments: dates as text in UTC, numbers as numbers."""
    rows = zip(times.numerator.tolist(), times.denominator.tolist(), times.kind.tolist(), strict=True)
    known: dict[tuple[int, int, int], int] = {}
    for row, key in enumerate(rows):
        if key not in known:
            time = Fraction(key[0], key[1])
            known[key] = symbols.intern(format_iso(time) if key[2] == DATE else time)
        ids[row] = known[key]


def is_time_column(name: str) -> bool:
    """Return whether a column without a schema says when facts hold."""
    return name.strip().lower() in TIME_COLUMNS
