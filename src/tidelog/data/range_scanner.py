"""Read a large file of fact text in several threads, each with a range of its lines and a dictionary of its own.

The dictionaries are merged in the order of the ranges, so that constants get the numbers that a single thread would
give them. An error is left to a single thread, which knows the numbers of lines.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tidelog.data.fact_scanner import scan_chunks
from tidelog.data.relation import Columns, combine, shift_order
from tidelog.data.symbol_table import Symbols
from tidelog.errors import TidelogError
from tidelog.language.file_errors import is_standard_input
from tidelog.local_threads import count_threads, run_in_threads

#: Files with fewer bytes than this are read by a single thread.
FEWEST_BYTES = 1 << 22
#: Bytes that are read at once.
_CHUNK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def scan_in_ranges(path: str, symbols: Symbols, source: str, *, ordered: bool = False) -> Columns | None:
    """Read the facts of a file as `scan_chunks` does; return None where a single thread has to read it."""
    ranges = _find_ranges(path, count_threads())
    if len(ranges) < 2:
        return None
    tables = [symbols, *(Symbols() for _ in ranges[1:])]
    try:
        parts = run_in_threads(
            [
                partial(scan_chunks, _read_range(path, *some), table, source, ordered=ordered)
                for some, table in zip(ranges, tables, strict=True)
            ]
        )
    except TidelogError:
        return None
    merged, count = [], 0
    for table, part in zip(tables, parts, strict=True):
        merged.append(shift_order(part if table is symbols else _renumber(symbols, table, part), count))
        count += sum(len(relation) for relation in part.relations.values())
    return combine(symbols, merged)


def _find_ranges(path: str, count: int) -> list[tuple[int, int]]:
    """Divide a file into ranges of whole lines of about the same size; none if it is small, packed or no file."""
    if count < 2 or is_standard_input(path) or path.lower().endswith(".gz"):
        return []
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size < FEWEST_BYTES:
            return []
        begins = [0]
        with open(path, "rb") as file:
            for number in range(1, count):
                file.seek(status.st_size * number // count)
                file.readline()
                begins.append(file.tell())
    except OSError:
        return []
    ends = [*begins[1:], status.st_size]
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]


def _read_range(path: str, begin: int, end: int) -> Iterator[bytes]:
    """Read the lines of a range in chunks."""
    with open(path, "rb") as file:
        file.seek(begin)
        while begin < end:
            chunk = file.read(min(_CHUNK, end - begin))
            if not chunk:
                return
            if not chunk.endswith(b"\n"):
                chunk += file.readline()
            yield chunk if begin else chunk.removeprefix(_BYTE_ORDER_MARK)
            begin += len(chunk)


def _renumber(symbols: Symbols, own: Symbols, part: Columns) -> Columns:
    """Return facts with the constants of another dictionary, which takes in those that it does not know."""
    ids = symbols.merge(own)
    return replace(part, relations={key: replace(r, args=ids[r.args]) for key, r in part.relations.items()})
