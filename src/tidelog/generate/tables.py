"""Generated facts as tables, one predicate a file, written piece by piece so that memory stays small."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

#: Facts that are held at a time.
PIECE = 50_000

Cells = dict[str, str | int]

_FACT = re.compile(r"(\w+)\(([^()]*)\)(?:@(?:([\[(])(-?\d+),(-?\d+)([\])])|(-?\d+)))?")
_CLOSED = {"[]": "both", "[)": "left", "(]": "right", "()": "neither"}


def write_tables(facts: Iterable[str], folder: Path, form: str, temporal: bool) -> dict[str, int]:
    """Write facts into a folder, as `csv`, `jsonl` or `parquet`; returns how many there are of each predicate.

    With `temporal`, the last argument is the time.
    """
    written: dict[str, int] = {}
    lines = iter(facts)
    with ExitStack() as files:
        tables: dict[str, _Table] = {}
        while piece := list(islice(lines, PIECE)):
            rows: dict[str, list[Cells]] = {}
            for predicate, cells in (_cells(line, temporal) for line in piece):
                rows.setdefault(predicate, []).append(cells)
            for predicate, some in rows.items():
                if predicate not in tables:
                    tables[predicate] = files.enter_context(_Table(folder / f"{predicate}.{form}", form))
                tables[predicate].write(some)
                written[predicate] = written.get(predicate, 0) + len(some)
    return written


def _cells(line: str, temporal: bool) -> tuple[str, Cells]:
    """The predicate and the cells of a fact, as a generator writes it."""
    found = _FACT.fullmatch(line)
    assert found, f"{line} is not what a generator writes"
    predicate, args, left, lo, hi, right, point = found.groups()
    values = args.split(",")
    times: Cells = {}
    if temporal:
        times = {"time": int(values.pop())}
    elif point is not None:
        times = {"time": int(point)}
    elif left is not None:
        times = {"start": int(lo), "end": int(hi), "closed": _CLOSED[left + right]}
    return predicate, {**{f"arg{i}": value for i, value in enumerate(values, 1)}, **times}


class _Table:
    """A file that rows are added to."""

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


def pieces(lines: Iterable[str]) -> Iterator[str]:
    """Lines as larger pieces of text, each with the ends of its lines."""
    rest = iter(lines)
    while piece := list(islice(rest, PIECE)):
        yield "\n".join(piece) + "\n"
