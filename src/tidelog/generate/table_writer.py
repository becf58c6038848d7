"""Generated facts as tables, one file per predicate, written in chunks so that memory stays small."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

from tidelog.timeline.interval import Interval

#: The number of facts in memory at a time.
CHUNK = 50_000

Cells = dict[str, str | int]

_FACT = re.compile(r"(\w+)\(([^()]*)\)(?:@(?:([\[(])(-?\d+),(-?\d+)([\])])|(-?\d+)))?")


def write_tables(facts: Iterable[str], folder: Path, form: str, temporal: bool) -> dict[str, int]:
    """Write facts into a folder, as `csv`, `jsonl` or `parquet`; return the number of facts of each predicate.

    With `temporal`, the last argument is the time.
    """
    written: dict[str, int] = {}
    lines = iter(facts)
    with ExitStack() as files:
        tables: dict[str, _Table] = {}
        while chunk := list(islice(lines, CHUNK)):
            rows: dict[str, list[Cells]] = {}
            for predicate, cells in (_parse_line(line, temporal) for line in chunk):
                rows.setdefault(predicate, []).append(cells)
            for predicate, new_rows in rows.items():
                if predicate not in tables:
                    tables[predicate] = files.enter_context(_Table(folder / f"{predicate}.{form}", form))
                tables[predicate].write(new_rows)
                written[predicate] = written.get(predicate, 0) + len(new_rows)
    return written


def _parse_line(line: str, temporal: bool) -> tuple[str, Cells]:
    """Parse a fact in the form that generators write; return its predicate and its cells."""
    match = _FACT.fullmatch(line)
    assert match, f"{line} is not in the form of generated facts"
    predicate, args, left, lo, hi, right, point = match.groups()
    values = args.split(",")
    times: Cells = {}
    if temporal:
        times = {"time": int(values.pop())}
    elif point is not None:
        times = {"time": int(point)}
    elif left is not None:
        closed = Interval(Fraction(lo), Fraction(hi), left == "[", right == "]").closed
        times = {"start": int(lo), "end": int(hi), "closed": closed}
    return predicate, {**{f"arg{i}": value for i, value in enumerate(values, 1)}, **times}


class _Table:
    """A table file that rows are appended to."""

    def __init__(self, path: Path, form: str) -> None:
        self._path, self._form = path, form
        self._file = None if form == "parquet" else path.open("w", encoding="utf-8", newline="")
        self._parquet: Any = None
        self._header = False

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, *problem: object) -> None:
        for file in (self._file, self._parquet):
            if file is not None:
                file.close()

    def write(self, rows: list[Cells]) -> None:
        match self._form:
            case "csv":
                assert self._file is not None
                writer = csv.DictWriter(self._file, list(rows[0]), lineterminator="\n")
                if not self._header:
                    writer.writeheader()
                self._header = True
                writer.writerows(rows)
            case "jsonl":
                assert self._file is not None
                self._file.writelines(json.dumps(row) + "\n" for row in rows)
            case _:
                self._write_parquet(rows)

    def _write_parquet(self, rows: list[Cells]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.Table.from_pylist(rows)
        if self._parquet is None:
            self._parquet = parquet.ParquetWriter(self._path, table.schema)
        self._parquet.write_table(table)


def join_lines(lines: Iterable[str]) -> Iterator[str]:
    """Join lines to larger texts of whole lines, to write them with fewer calls."""
    rest = iter(lines)
    while chunk := list(islice(rest, CHUNK)):
        yield "\n".join(chunk) + "\n"
