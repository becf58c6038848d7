"""Rows of data files that cannot be read: with their place and the reason, kept aside or reported.

Lines are counted as an editor counts them, also in CSV files with line ends within quotes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO

from tidelog.errors import Diagnostic, Place, TidelogError

#: Bad rows that are reported at once.
MOST_ERRORS = 20
#: Characters of a bad row that an error shows.
_SHOWN = 400


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be read. `line` is the line on which it begins, or the number of the row in Parquet."""

    source: str
    line: int
    reason: str
    text: str
    code: str = "TL206"
    law: str | None = None
    column: int = 1

    def to_diagnostic(self) -> Diagnostic:
        """Describe the row as an error."""
        shown = self.text.split("\n")[0][:_SHOWN]
        length = max(1, len(shown)) if self.column == 1 else 1
        place = Place(self.source, self.line, self.column, length, shown)
        return Diagnostic(self.code, self.reason, place, self.law)


class RowErrors(TidelogError):
    """Errors in rows of a table; `rows` has the reason for each of them by its number, from 0."""

    def __init__(self, diagnostics: Iterable[Diagnostic], rows: Mapping[int, str]) -> None:
        super().__init__(diagnostics)
        self.rows = dict(rows)


@dataclass
class BadRows:
    """Rows that were set aside: written to `file` as JSON Lines, and counted by source."""

    file: IO[str]
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many rows were set aside."""
        return sum(self.counts.values())

    def add(self, row: BadRow) -> None:
        """Write a row to the file."""
        record = {"file": row.source, "line": row.line, "reason": row.reason, "row": row.text}
        self.file.write(json.dumps(record, ensure_ascii=False) + "\n")
        self.file.flush()
        self.counts[row.source] = self.counts.get(row.source, 0) + 1


def set_aside(found: Iterable[BadRow], bad_rows: BadRows | None) -> None:
    """Set bad rows aside; without a place for them, raise an error that lists the first ones."""
    rows = sorted(found, key=lambda row: row.line)
    if bad_rows is None and rows:
        raise TidelogError(row.to_diagnostic() for row in rows[:MOST_ERRORS])
    for row in rows:
        assert bad_rows is not None
        bad_rows.add(row)
