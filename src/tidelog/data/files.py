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
from collections.abc import Iterable
from pathlib import Path, PurePath

from tidelog.data.columns import EMPTY, Columns, Key, combined, timed
from tidelog.data.dataset import Dataset
from tidelog.data.symbols import Symbols
from tidelog.language.errors import Diagnostic, Place, TidelogError

_NAMED = re.compile(r"([^=/\\]+)=(.+)", re.DOTALL)
_TABLES = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}


def load_paths(paths: Iterable[str | Path], temporal: frozenset[Key] = frozenset()) -> Dataset:
    """The facts of all the files. For `temporal` see `Dataset.timed`."""
    symbols = Symbols()
    parts = [timed(symbols, _load(str(path), symbols), temporal) for path in paths]
    return Dataset(symbols, combined(symbols, parts) if parts else EMPTY)


def _load(given: str, symbols: Symbols) -> Columns:
    named = _NAMED.fullmatch(given)
    predicate, path = (named[1].strip(), named[2]) if named and not Path(given).exists() else (None, given)
    suffixes = PurePath(path).suffixes
    if suffixes and suffixes[-1].lower() == ".gz":
        suffixes.pop()
    form = _TABLES.get(suffixes[-1].lower()) if suffixes else None
    if form is None:
        return _load_text(path, predicate, symbols)
    from tidelog.data.tables import read_table

    data = read_bytes(path)
    if form != "parquet":
        data = data.removeprefix(b"\xef\xbb\xbf")
        check_utf8(data, path)
    name = predicate or PurePath(path).name.removesuffix(".gz")
    if predicate is None:
        name = name[: -len(suffixes[-1])]
    return read_table(data, form, _checked_predicate(name, path), path, symbols)


def _load_text(path: str, predicate: str | None, symbols: Symbols) -> Columns:
    from tidelog.data.scanner import scan

    if predicate is not None:
        raise TidelogError(
            Diagnostic(
                "TL207",
                f"{path} is not a table, so {predicate} cannot be its predicate",
                law=f"tables end with {', '.join(_TABLES)}; other files are fact text, which names its predicates",
                help=f"write the path alone: {path}",
            )
        )
    data = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    check_utf8(data, path)
    return scan(data, symbols, path if path != "-" else "<stdin>")


def read_bytes(path: str) -> bytes:
    """All of a file, or of standard input for `-`; a file that ends with .gz is unpacked."""
    try:
        if path == "-":
            return sys.stdin.buffer.read()
        data = Path(path).read_bytes()
        return gzip.decompress(data) if path.lower().endswith(".gz") else data
    except IsADirectoryError:
        help = f"name the files in it, for example {path.rstrip('/')}/*"
        raise TidelogError(Diagnostic("TL010", f"cannot read {path}: it is a directory", help=help)) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        help = "the file is damaged, or was not written to its end"
        raise TidelogError(Diagnostic("TL010", f"cannot unpack {path}: {error}", help=help)) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TidelogError(Diagnostic("TL010", f"cannot read {path}: {reason}")) from None


def check_utf8(data: bytes, path: str) -> None:
    """Refuse bytes that are not UTF-8, with the place of the first that is not."""
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[start : error.start].decode()) + 1
        place = Place(path, data.count(b"\n", 0, start) + 1, column)
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
