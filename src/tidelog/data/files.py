"""Data files: fact text, and tables of one predicate each.

The suffix says what a file is: `.csv`, `.tsv`, `.jsonl` (`.ndjson`), `.parquet`, with `.gz` behind the text forms if
one likes; anything else is fact text, and `-` is fact text from standard input. A table's predicate is its file's name
without suffix, `Signal.csv`, unless the path says otherwise: `Signal=measurements.csv`.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path, PurePath
from typing import BinaryIO, cast

from tidelog.data.columns import EMPTY, Columns, Key, after, combined, timed
from tidelog.data.dataset import Dataset
from tidelog.data.symbols import Symbols
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.opening import unreadable

#: Bytes of text that are read at once.
PIECE = 1 << 20

_NAMED = re.compile(r"([^=/\\]+)=(.+)", re.DOTALL)
_TABLES = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}


def load_paths(
    paths: Iterable[str | Path], temporal: frozenset[Key] = frozenset(), *, ordered: bool = False
) -> Dataset:
    """The facts of all the files. For `temporal` see `Dataset.timed`; with `ordered`, facts know their positions."""
    symbols = Symbols()
    parts: list[Columns] = []
    count = 0
    for path in paths:
        part = _load(str(path), symbols, ordered)
        if ordered:
            part = after(part, count)
            count += sum(len(relation) for relation in part.relations.values())
        parts.append(timed(symbols, part, temporal))
    return Dataset(symbols, combined(symbols, parts) if parts else EMPTY)


def is_text(given: str) -> bool:
    """Whether a path is that of fact text, and not of a table."""
    return not _parts(given)[2]


def path_of(given: str) -> str:
    """The path itself, without the predicate that it may name."""
    return _parts(given)[1]


def _parts(given: str) -> tuple[str | None, str, str]:
    """The predicate that a path names, the path itself, and its suffix if it is that of a table."""
    named = _NAMED.fullmatch(given)
    predicate, path = (named[1].strip(), named[2]) if named and not Path(given).exists() else (None, given)
    suffixes = PurePath(path).suffixes
    if suffixes and suffixes[-1].lower() == ".gz":
        suffixes.pop()
    table = bool(suffixes) and suffixes[-1].lower() in _TABLES
    return predicate, path, suffixes[-1] if table else ""


def _load(given: str, symbols: Symbols, ordered: bool) -> Columns:
    predicate, path, suffix = _parts(given)
    form = _TABLES.get(suffix.lower())
    if form is None:
        return _load_text(path, predicate, symbols, ordered)
    from tidelog.data.tables import read_table

    data = read_bytes(path)
    if form != "parquet":
        data = data.removeprefix(b"\xef\xbb\xbf")
        check_utf8(data, path)
    return read_table(data, form, _predicate_of(predicate, path, suffix), path, symbols)


def _predicate_of(given: str | None, path: str, suffix: str) -> str:
    """The predicate of a table: the one that was given, or the name of the file."""
    name = PurePath(path).name
    if name.lower().endswith(".gz"):
        name = name[:-3]
    return _checked_predicate(given or name[: -len(suffix)], path)


def load_in_pieces(given: str) -> Iterator[Dataset]:
    """The facts of a table, which know their positions, piece by piece. JSON Lines come as a whole: only all of them
    together tell which columns there are."""
    predicate, path, suffix = _parts(given)
    form = _TABLES[suffix.lower()]
    if form == "jsonl" or (form == "parquet" and path.lower().endswith(".gz")):
        yield load_paths([given], ordered=True)
        return
    from tidelog.data.tables import facts_of, read_batches, read_table

    name = _predicate_of(predicate, path, suffix)
    row = 0
    if form == "parquet":
        with _refusals(path), _opened(path) as file:
            for cells in read_batches(file, path):
                symbols = Symbols()
                part = after(facts_of(cells, form, name, path, symbols, row), 0)
                row += cells.rows
                yield Dataset(symbols, part)
        return
    line = 1
    for piece in _rows(path):
        check_utf8(piece, path, line)
        symbols = Symbols()
        part = after(read_table(piece, form, name, path, symbols, row), 0)
        row += sum(len(relation) for relation in part.relations.values())
        line += piece.count(b"\n") - (line > 1)
        yield Dataset(symbols, part)


def _rows(path: str) -> Iterator[bytes]:
    """A CSV file in pieces of whole rows, each behind the first line, which names the columns. A line end within quotes
    does not end a row; there are as many quotes before one that does as after."""
    with _refusals(path), _opened(path) as file:
        header = file.readline().removeprefix(b"\xef\xbb\xbf")
        rest, begun = b"", False
        while block := file.read(PIECE):
            rest += block
            end = rest.rfind(b"\n") + 1
            while end and rest.count(b'"', 0, end) % 2:
                end = rest.rfind(b"\n", 0, end - 1) + 1
            if end:
                yield header + rest[:end]
                rest, begun = rest[end:], True
        if rest or not begun:
            yield header + rest


def _load_text(path: str, predicate: str | None, symbols: Symbols, ordered: bool) -> Columns:
    from tidelog.data.scanner import scan_pieces

    if predicate is not None:
        raise TidelogError(
            Diagnostic(
                "TL207",
                f"{path} is not a table, so {predicate} cannot be its predicate",
                law=f"tables end with {', '.join(_TABLES)}; other files are fact text, which names its predicates",
                help=f"write the path alone: {path}",
            )
        )
    return scan_pieces(_pieces(path), symbols, path if path != "-" else "<stdin>", ordered=ordered)


def _pieces(path: str) -> Iterator[bytes]:
    """A text in pieces of whole lines, so that a large file is never in memory as a whole."""
    with _refusals(path), _opened(path) as file:
        piece = file.read(PIECE).removeprefix(b"\xef\xbb\xbf")
        while piece:
            yield piece if piece.endswith(b"\n") else piece + file.readline()
            piece = file.read(PIECE)


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    if path == "-":
        return nullcontext(sys.stdin.buffer)
    return cast(BinaryIO, gzip.open(path)) if path.lower().endswith(".gz") else Path(path).open("rb")


def read_bytes(path: str) -> bytes:
    """All of a file, or of standard input for `-`; a file that ends with .gz is unpacked."""
    with _refusals(path), _opened(path) as file:
        return file.read()


@contextmanager
def _refusals(path: str) -> Iterator[None]:
    """What can go wrong with a file, as errors that say so."""
    try:
        yield
    except IsADirectoryError:
        help = f"name the files in it, for example {path.rstrip('/')}/*"
        raise TidelogError(Diagnostic("TL010", f"cannot read {path}: it is a directory", help=help)) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        help = "the file is damaged, or was not written to its end"
        raise TidelogError(Diagnostic("TL010", f"cannot unpack {path}: {error}", help=help)) from None
    except (OSError, ValueError) as error:
        raise TidelogError(unreadable(path, error)) from None


def check_utf8(data: bytes, path: str, line: int = 1) -> None:
    """Refuse bytes that are not UTF-8, with the place of the first that is not. `line` is the number of the first."""
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[start : error.start].decode()) + 1
        place = Place(path, data.count(b"\n", 0, start) + line, column)
        raise TidelogError(Diagnostic("TL010", "this file is not UTF-8 text", place, help="save it as UTF-8")) from None


def _checked_predicate(name: str, path: str) -> str:
    from tidelog.language.facts import parse_fact

    try:
        fact, _ = parse_fact(name)
    except TidelogError:
        fact = None
    if fact is None or fact.predicate != name:
        raise TidelogError(
            Diagnostic(
                "TL207",
                f"`{name}` cannot be the predicate of {path}",
                law="a table's predicate is its file's name without suffix, unless the path says otherwise",
                help=f"put the predicate in front: Signal={path}",
            )
        )
    return name
