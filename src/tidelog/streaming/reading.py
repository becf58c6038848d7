"""Fact text of any length, read in pieces: what there is of a pipe, a block of a file. Memory does not grow with it.

A piece is whole lines, so that pieces are facts and errors know their place. Nothing depends on where pieces end.
"""

from __future__ import annotations

import gzip
import os
import select
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter
from typing import IO, Protocol

import numpy as np
import numpy.typing as npt

from tidelog.data.columns import Columns, Relation
from tidelog.data.dataset import Dataset
from tidelog.data.files import check_utf8, is_text, load_in_pieces
from tidelog.data.scanner import scan
from tidelog.data.symbols import Symbols
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.opening import unreadable
from tidelog.timeline.grid import NEG_INF, POS_INF

#: A block of a file has so many bytes, at least and at most. Blocks grow while their facts take less time than QUICK,
#: and shrink when they take longer than SLOW, so that one can stop between them.
LEAST, MOST = 1 << 16, 1 << 22
QUICK, SLOW = 0.1, 0.5
_BOM = b"\xef\xbb\xbf"


class Stop(Protocol):
    """A wish to stop: `asked` once there is one, and a file descriptor that becomes readable then."""

    asked: bool
    wake: int


@dataclass(frozen=True)
class Piece:
    """Facts that know their positions, the number of the last line that was read for them, and what is wrong with the
    next line, if anything is: then this is the last piece."""

    data: Dataset
    line: int
    error: TidelogError | None = None


def is_live(path: str) -> bool:
    """Whether a source gives its lines as they come: standard input, a pipe, a terminal."""
    if path == "-":
        return True
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def pieces(path: str, stop: Stop | None = None) -> Iterator[Piece]:
    """The facts of a source in the order in which they arrive.

    The last line of a source need not end. If a stop is wished for, the line that is being read is left out.
    """
    if not is_text(path):
        row = 0
        for data in load_in_pieces(path):
            row += len(data)
            yield Piece(data, row)
            if stop and stop.asked:
                return
        return
    source = "<stdin>" if path == "-" else path
    line = 1
    for text in _whole_lines(path, stop):
        lines = text.count(b"\n") + (not text.endswith(b"\n"))
        data, error = _scanned(text, source, line)
        line += lines
        yield Piece(
            data, error.diagnostics[0].place.line - 1 if error and error.diagnostics[0].place else line - 1, error
        )
        if error:
            return


def _scanned(text: bytes, source: str, line: int) -> tuple[Dataset, TidelogError | None]:
    """The facts of whole lines: all, or those before the first bad line, and what is wrong with that one."""
    error: TidelogError | None = None
    while True:
        symbols = Symbols()
        try:
            check_utf8(text, source, line)
            return Dataset(symbols, scan(text, symbols, source, ordered=True, line=line)), error
        except TidelogError as found:
            if not all(d.place for d in found.diagnostics):
                raise
            first = min(d.place.line for d in found.diagnostics if d.place)
            error = TidelogError(d for d in found.diagnostics if d.place and d.place.line == first)
            text = b"\n".join(text.split(b"\n", first - line)[:-1])


def _whole_lines(path: str, stop: Stop | None) -> Iterator[bytes]:
    """The text of a source, cut behind line ends only."""
    rest: list[bytes] = []
    size = LEAST
    first = True
    with _opened(path) as file:
        while chunk := _read(file, size, stop):
            if first:
                chunk, first = chunk.removeprefix(_BOM), False
            end = chunk.rfind(b"\n") + 1
            if not end:
                rest.append(chunk)
                continue
            text = b"".join([*rest, chunk[:end]])
            rest = [chunk[end:]] if end < len(chunk) else []
            began = perf_counter()
            yield text
            took = perf_counter() - began
            size = min(2 * size, MOST) if took < QUICK else max(size // 2, LEAST) if took > SLOW else size
    if rest and not (stop and stop.asked):
        yield b"".join(rest)


def _read(file: IO[bytes] | gzip.GzipFile, size: int, stop: Stop | None) -> bytes:
    """What there is, up to `size` bytes; nothing at the end, and if a stop is wished for."""
    if isinstance(file, gzip.GzipFile):
        return b"" if stop and stop.asked else file.read(size)
    try:
        number = file.fileno()
    except OSError:  # standard input that is no file of the system
        return file.read(size)
    if stop:
        select.select([number, stop.wake], [], [])
        if stop.asked:
            return b""
    return os.read(number, size)


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    try:
        if path == "-":
            yield sys.stdin.buffer
        elif path.lower().endswith(".gz"):
            with gzip.open(path) as packed:
                yield packed
        else:
            with open(path, "rb", buffering=0) as file:
                yield file
    except IsADirectoryError:
        help = "name one of the files in it"
        raise TidelogError(Diagnostic("TL010", f"cannot read {path}: it is a directory", help=help)) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        help = "the file is damaged, or was not written to its end"
        raise TidelogError(Diagnostic("TL010", f"cannot unpack {path}: {error}", help=help)) from None
    except (FileNotFoundError, PermissionError) as error:
        raise TidelogError(unreadable(path, error)) from None


# Parts of a piece


def background_first(data: Dataset) -> tuple[Dataset, Dataset]:
    """The background facts that come before any fact with a time, and all others.

    >>> before, after = background_first(Dataset.parse("Node(a)\\nBeat(a)@1\\nNode(b)", ordered=True))
    >>> len(before), len(after)
    (1, 2)
    """
    timed = {key: (r.lo != NEG_INF) | (r.hi != POS_INF) for key, r in data.relations.items()}
    firsts = [int(_order(r)[timed[key]].min()) for key, r in data.relations.items() if timed[key].any()]
    first = min(firsts, default=len(data))
    if not first:
        return Dataset(data.symbols), data
    early = {key: _order(r) < first for key, r in data.relations.items()}
    return _where(data, early), _where(data, {key: ~mask for key, mask in early.items()})


def up_to(data: Dataset, until: Fraction, patience: Fraction) -> tuple[Dataset, bool]:
    """The facts up to the first that begins later than `until` by more than `patience`: what comes after it is too late
    in any case. Also whether there was such a fact.

    >>> data, over = up_to(Dataset.parse("A@1\\nA@6\\nA@2\\nA@9\\nA@3", ordered=True), Fraction(5), Fraction(2))
    >>> [str(fact.interval) for fact in data], over
    (['1', '6', '2'], True)
    """
    end = _bound(until + patience, data.denominator)
    over = [_order(r)[r.lo > end] for r in data.relations.values()]
    first = min((int(some.min()) for some in over if len(some)), default=len(data))
    if first == len(data):
        return data, False
    return _where(data, {key: _order(r) < first for key, r in data.relations.items()}), True


def _bound(t: Fraction, denominator: int) -> int:
    """The last place on the doubled grid at which a fact begins at t or before."""
    ticks = t * denominator
    return 2 * (ticks.numerator // ticks.denominator) + (ticks.denominator > 1)


def _order(relation: Relation) -> npt.NDArray[np.int64]:
    assert relation.order is not None
    return relation.order


def _where(data: Dataset, kept: dict[tuple[str, int], npt.NDArray[np.bool_]]) -> Dataset:
    """The rows that are kept, with positions 0, 1, 2, ... again."""
    relations = {
        key: replace(r, args=r.args[:, kept[key]], lo=r.lo[kept[key]], hi=r.hi[kept[key]], order=_order(r)[kept[key]])
        for key, r in data.relations.items()
        if kept[key].any()
    }
    places = np.sort(np.concatenate([np.zeros(0, np.int64), *(_order(r) for r in relations.values())]))
    numbered = {key: replace(r, order=np.searchsorted(places, _order(r))) for key, r in relations.items()}
    return Dataset(data.symbols, Columns(data.denominator, data.dates, numbered))
