"""Read a stream of any length in pieces: the bytes available in a pipe, or a block of a file, in constant memory.

A piece consists of whole lines, so that pieces are facts and errors know their place. Nothing depends on where pieces
end.
"""

from __future__ import annotations

import gzip
import os
import select
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter
from typing import IO, Protocol

import numpy as np
import numpy.typing as npt

from tidelog.data.bad_rows import BadRows
from tidelog.data.data_files import is_fact_text, load_in_chunks, strip_predicate
from tidelog.data.dataset import Dataset
from tidelog.data.relation import Columns, Relation
from tidelog.data.schema import Schema
from tidelog.errors import TidelogError
from tidelog.language.file_errors import is_standard_input, open_input
from tidelog.local_threads import iterate_ahead, map_ahead
from tidelog.streaming.line_decoder import LineDecoder, is_line_form
from tidelog.timeline.grid import NEG_INF, POS_INF

#: The least and the most bytes of a block of a file. Blocks grow while their facts take less than FAST_SECONDS, and
#: shrink when they take longer than SLOW_SECONDS, so that a stream can stop between them soon.
MIN_BLOCK, MAX_BLOCK = 1 << 16, 1 << 22
FAST_SECONDS, SLOW_SECONDS = 0.1, 0.5
#: Files with at least this many bytes are decoded by other threads, some blocks ahead of the reasoner.
LONG_FILE = 1 << 20
_BOM = b"\xef\xbb\xbf"


class StopSignal(Protocol):
    """A request to stop: whether it was `requested`, and a file descriptor that becomes readable at that moment."""

    requested: bool
    wake_fd: int


@dataclass(frozen=True)
class StreamPiece:
    """Facts with their positions, the number of the last line read, and the error in the next line, if there is one.

    A piece with an error is the last one. `input` is the number of the input that was read; its line is -1 if nothing
    was read. `note` is something that the user should know. `idle` says that nothing has come for a while.
    """

    data: Dataset
    line: int
    error: TidelogError | None = None
    input: int = 0
    note: str = ""
    idle: bool = False


def is_live(path: str) -> bool:
    """Return whether a source gives its lines as they arrive: standard input, a pipe, a terminal."""
    if is_standard_input(path):
        return True
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def read_pieces(
    path: str, stop: StopSignal | None = None, bad_rows: BadRows | None = None, schema: Schema | None = None
) -> Iterator[StreamPiece]:
    """Yield the facts of a source in order of arrival. Lines that cannot be read go to `bad_rows`, if given.

    `schema` says what the columns of tables mean.

    The last line of a source need not be terminated. After a request to stop, the line that is being read is left out.
    """
    # A bad row must not be set aside before the reasoner has come that far.
    ahead = bad_rows is None and _is_long(strip_predicate(path))
    if not is_fact_text(path) and not (is_live(strip_predicate(path)) and is_line_form(path)):
        pieces = _read_table_pieces(path, stop, bad_rows, schema)
        yield from iterate_ahead(pieces) if ahead else pieces
        return
    decoder = LineDecoder(path, schema, bad_rows)

    def decode(numbered: tuple[bytes, int, int]) -> StreamPiece:
        text, first, last = numbered
        data, error = decoder.decode(text, first)
        place = error.diagnostics[0].place if error else None
        return StreamPiece(data, place.line - 1 if place else last, error)

    texts = _number_lines(_whole_lines(strip_predicate(path), stop))
    for piece in (
        map_ahead(decode, texts) if bad_rows is None and _is_long(strip_predicate(path)) else map(decode, texts)
    ):
        yield piece
        if piece.error:
            return


def _number_lines(texts: Iterator[bytes]) -> Iterator[tuple[bytes, int, int]]:
    """Yield texts of whole lines, each with the numbers of its first and last line."""
    line = 1
    for text in texts:
        lines = text.count(b"\n") + (not text.endswith(b"\n"))
        yield text, line, line + lines - 1
        line += lines


def _is_long(path: str) -> bool:
    """Return whether a source is a file that is long enough for its blocks to be read by several threads."""
    try:
        return not is_live(path) and os.stat(path).st_size >= LONG_FILE
    except OSError:
        return False


def _read_table_pieces(
    path: str, stop: StopSignal | None, bad_rows: BadRows | None, schema: Schema | None
) -> Iterator[StreamPiece]:
    """Yield the facts of a table; an error comes after the chunks before it."""
    line = 0
    try:
        for data, line in load_in_chunks(path, bad_rows, schema):
            yield StreamPiece(data, line)
            if stop and stop.requested:
                return
    except TidelogError as error:
        yield StreamPiece(Dataset(), line, error)


def _whole_lines(path: str, stop: StopSignal | None) -> Iterator[bytes]:
    """Yield the text of a source in blocks of whole lines."""
    rest: list[bytes] = []
    size = MIN_BLOCK
    first = True
    with open_input(path, buffering=0) as file:
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
            size = _next_block_size(size, took)
    if rest and not (stop and stop.requested):
        yield b"".join(rest)


def _next_block_size(size: int, seconds: float) -> int:
    if seconds < FAST_SECONDS:
        return min(2 * size, MAX_BLOCK)
    return max(size // 2, MIN_BLOCK) if seconds > SLOW_SECONDS else size


def _read(file: IO[bytes] | gzip.GzipFile, size: int, stop: StopSignal | None) -> bytes:
    """Read the available bytes, up to `size`; nothing at the end, or after a request to stop."""
    if isinstance(file, gzip.GzipFile):
        return b"" if stop and stop.requested else file.read(size)
    try:
        number = file.fileno()
    except OSError:  # standard input that is no file of the system
        return file.read(size)
    if stop:
        select.select([number, stop.wake_fd], [], [])
        if stop.requested:
            return b""
    return os.read(number, size)


# Parts of a piece


def split_background(data: Dataset) -> tuple[Dataset, Dataset]:
    """Split off the background facts that come before any fact with a time.

    >>> before, after = split_background(Dataset.parse("Node(a)\\nBeat(a)@1\\nNode(b)", ordered=True))
    >>> len(before), len(after)
    (1, 2)
    """
    timed = {key: (r.lo != NEG_INF) | (r.hi != POS_INF) for key, r in data.relations.items()}
    firsts = [int(order_of(r)[timed[key]].min()) for key, r in data.relations.items() if timed[key].any()]
    first = min(firsts, default=len(data))
    if not first:
        return Dataset(data.symbols), data
    early = {key: order_of(r) < first for key, r in data.relations.items()}
    return select_rows(data, early), select_rows(data, {key: ~mask for key, mask in early.items()})


def cut_after(data: Dataset, until: Fraction, patience: Fraction) -> tuple[Dataset, bool]:
    """Cut a dataset before the first fact that begins more than `patience` after `until`; tell whether it was cut.

    Facts that arrive after such a fact are too late in any case.

    >>> data, over = cut_after(Dataset.parse("A@1\\nA@6\\nA@2\\nA@9\\nA@3", ordered=True), Fraction(5), Fraction(2))
    >>> [str(fact.interval) for fact in data], over
    (['1', '6', '2'], True)
    """
    end = _last_position_by(until + patience, data.denominator)
    over = [order_of(r)[r.lo > end] for r in data.relations.values()]
    first = min((int(some.min()) for some in over if len(some)), default=len(data))
    if first == len(data):
        return data, False
    return select_rows(data, {key: order_of(r) < first for key, r in data.relations.items()}), True


def _last_position_by(t: Fraction, denominator: int) -> int:
    """Return the last position on the doubled grid at which a fact begins at t or before."""
    ticks = t * denominator
    return 2 * (ticks.numerator // ticks.denominator) + (ticks.denominator > 1)


def order_of(relation: Relation) -> npt.NDArray[np.int64]:
    """Return the positions of the facts of a relation that knows them."""
    assert relation.order is not None
    return relation.order


def select_rows(data: Dataset, kept: dict[tuple[str, int], npt.NDArray[np.bool_]]) -> Dataset:
    """Select rows, and number their positions 0, 1, 2, ... again."""
    relations = {
        key: replace(r, args=r.args[:, kept[key]], lo=r.lo[kept[key]], hi=r.hi[kept[key]], order=order_of(r)[kept[key]])
        for key, r in data.relations.items()
        if kept[key].any()
    }
    places = np.sort(np.concatenate([np.zeros(0, np.int64), *(order_of(r) for r in relations.values())]))
    numbered = {key: replace(r, order=np.searchsorted(places, order_of(r))) for key, r in relations.items()}
    return Dataset(data.symbols, Columns(data.denominator, data.dates, numbered))
