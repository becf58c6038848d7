"""Fact text, read by a compiled scanner: one pass over the bytes, constants straight into the dictionary.

The scanner understands nearly all lines. A line that it does not understand goes to the slow, complete reader,
`language.fact_text.parse_fact`, which accepts it or says what is wrong with it and where.

A text comes in chunks of whole lines, which are scanned in blocks of whole lines. The lines and commas of a block
bound how many facts, arguments and new constants it can hold, so room for all of them is reserved beforehand.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial

import numpy as np
import numpy.typing as npt

from tidelog.data.number_scanner import Bytes
from tidelog.data.relation import (
    EMPTY,
    Columns,
    Ids,
    Key,
    Relation,
    Times,
    columns_from_facts,
    combine,
    denominator_of,
    find_overflows,
    refine_pairs,
    timestamp_overflow,
    to_common_step,
    to_grid_pair,
)
from tidelog.data.scan_kernels import (
    ARGS,
    DATES,
    FRACTIONS,
    LINES,
    RELATIONS,
    ROWS,
    UNREAD,
    Predicates,
    Rows,
    byte_classes,
    empty_rows,
    find_line,
    measure_block,
    scan_lines,
    scatter,
    scatter_order,
)
from tidelog.data.symbol_table import Symbols
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.file_errors import check_utf8
from tidelog.language.syntax import Fact
from tidelog.language.time_text import Zone, find_zones
from tidelog.timeline.interval import Interval

#: Bytes that are scanned in one call, about.
BLOCK = 1 << 16
#: Rows are sorted into relations as soon as there are more than this. Those of several batches have to be concatenated.
BATCH = 1 << 18
#: Bad lines that are reported at once.
MOST_ERRORS = 20

#: As many names as no text has.
_ALL = 1 << 31


@lru_cache(maxsize=4096)
def _is_predicate(name: str) -> bool:
    """Return whether the slow reader takes a name for a predicate."""
    from tidelog.language.fact_text import parse_fact

    try:
        parse_fact(name)
    except TidelogError:
        return False
    return True


#: Finds the UTF-8 form of a text in memory, where one of ASCII has it already.
_find_bytes = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyUnicode_AsUTF8AndSize", ctypes.pythonapi)
)


def _view_bytes(text: str | bytes) -> Bytes:
    """Return the bytes of a text in UTF-8, as an array that may be read as long as the text exists.

    Only a text that is not ASCII is copied.
    """
    if isinstance(text, bytes) or not text.isascii():
        return np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8)
    place = (ctypes.c_uint8 * len(text)).from_address(_find_bytes(text, None))
    view = np.frombuffer(memoryview(place), np.uint8)
    view.flags.writeable = False
    return view


class _Scan:
    """The state of scanning one text."""

    def __init__(self, symbols: Symbols, source: str, ordered: bool, line: int, reads: Collection[str] | None) -> None:
        self.symbols, self.source = symbols, source
        self.data: Bytes = np.zeros(0, np.uint8)  # the present chunk
        self.names = Symbols()
        #: Names from `n_read` on are those of predicates whose arguments are left unread.
        for name in reads or ():
            self.names.intern(name)
        self.n_read = _ALL if reads is None else len(self.names)
        self.checked = 0
        self.chain: list[Ids] = [np.zeros(0, np.int32)] * 6  # the arrays of `Predicates` after `names`
        self.rows = empty_rows(0)
        self.parts: list[Columns] = []
        self.facts: list[Fact] = []
        self.dates = False
        self.numbers = False
        self.zones: set[Zone] = set()
        self.errors: list[Diagnostic] = []
        self.first_line = line
        self.counted = (0, line)  # a position in `data`, and the number of its line
        self.order = _Order() if ordered else None
        self.unread = _Unread("", symbols, source)

    def run(self, chunks: Iterable[str | bytes]) -> Columns:
        for chunk in chunks:
            self._scan_chunk(chunk)
            if len(self.errors) >= MOST_ERRORS:
                break
        if self.errors:
            raise TidelogError(sorted(self.errors[:MOST_ERRORS], key=_line_of))
        if self.facts:
            slow = columns_from_facts(self.symbols, self.facts, self.dates)
            self.parts.append(replace(slow, numbers=self.numbers, zones=dict.fromkeys(self.zones, self.source)))
            if self.order:
                self.parts = self.order.merge(self.parts, self.facts)
        return combine(self.symbols, self.parts) if self.parts else EMPTY

    def _scan_chunk(self, text: str | bytes) -> None:
        """Scan the facts of a chunk of whole lines."""
        self.first_line += int(self.rows.counts[LINES])
        self.rows.counts[LINES] = 0
        classes = self._classify_bytes(text)
        data = self.data = _view_bytes(text)
        self.counted, self.unread = (0, self.first_line), _Unread(text, self.symbols, self.source)
        start = 0
        while start < len(data) and len(self.errors) < MOST_ERRORS:
            # A line holds one fact at most, and arguments are separated by commas.
            end, newlines, commas = measure_block(data, start, BLOCK)
            lines, args = newlines + 1, newlines + 1 + commas
            self._reserve(lines, args)
            predicates = Predicates(self.names.reserve(lines, end - start), self.n_read, *self.chain)
            # The reduced fraction of a decimal number is at most twice as long as the number.
            symbols = self.symbols.reserve(args, 2 * (end - start))
            scan_lines(data, start, end, classes, symbols, predicates, self.rows)
            self._check_names()
            for at in self.rows.unread[: self.rows.counts[UNREAD]]:
                self._read_slowly(int(at))
            self.rows.counts[UNREAD] = 0
            if self.rows.counts[ROWS] > BATCH:
                self._flush()
            start = end
        self._flush()

    def _classify_bytes(self, text: str | bytes) -> Bytes:
        if not text.isascii() and isinstance(text, bytes):
            check_utf8(text, self.source, self.first_line)
            return byte_classes(text.decode())
        return byte_classes("" if isinstance(text, bytes) else text)

    def _reserve(self, lines: int, most: int) -> None:
        """Make room for the facts of some lines, which have up to `most` arguments."""
        counts = self.rows.counts
        if max(int(counts[ROWS]), int(counts[ARGS])) + most > len(self.rows.lo):
            self._flush()
            if most > len(self.rows.lo):
                # After a text of a single block come no more rows; streams bring many such small texts.
                more = min(2 * BATCH, len(self.data) // 8) if len(self.data) > BLOCK else 0
                self.rows = empty_rows(most + more)._replace(counts=counts)
        known = max(len(self.names), int(counts[RELATIONS])) + lines
        if known > len(self.chain[0]):
            self.chain = [
                np.concatenate([column, np.zeros(2 * known - len(column), np.int32)]) for column in self.chain
            ]

    def _check_names(self) -> None:
        """Let the slow reader check each new predicate once. If it objects, let it report the facts with that name."""
        known, self.checked = self.checked, len(self.names)
        for name in range(known, self.checked):
            if not _is_predicate(str(self.names.value(name))):
                relation = self.rows.relation[: self.rows.counts[ROWS]]
                for row in np.flatnonzero(self.chain[2][relation] == name)[:MOST_ERRORS]:
                    self._read_slowly(int(self.rows.line[row]))

    def _read_slowly(self, at: int) -> None:
        from tidelog.language.fact_text import parse_fact

        text, line = self._read_line(at)
        if text.lstrip()[:1] in ("", "%", "#"):  # a blank line or comment, after spaces that are not ASCII
            return
        try:
            fact, dates = parse_fact(text, self.source, line, deletions=True)
            to_grid_pair(fact, denominator_of(fact))
        except TidelogError as error:
            place = Place(self.source, line, text.find("@") + 2, 1, text)
            self.errors += [replace(e, place=e.place or place) for e in error.diagnostics]
            return
        self.facts.append(fact)
        if self.order:
            self.order.note(self.rows, at)
        self.dates |= dates
        self.zones |= find_zones(text.rpartition("@")[2])
        self.numbers |= not dates and fact.interval != Interval.always()

    def _read_line(self, at: int) -> tuple[str, int]:
        """Return the line of a position, and its number.

        Lines are counted from the last position that was asked for.
        """
        counted, line = self.counted if self.counted[0] <= at else (0, self.first_line)
        start, end, lines = find_line(self.data, at, counted)
        self.counted = (start, line + lines)
        return self.data[start:end].tobytes().decode().rstrip("\r"), line + lines

    def _flush(self) -> None:
        """Sort the rows read so far into relations, and append them to `parts`."""
        rows = self.rows
        count = int(rows.counts[ROWS])
        denominator, lo, hi = self._to_common_step(rows.lo[:count], rows.hi[:count])
        if not count or self.errors:
            self._forget_rows()
            return
        relations = int(rows.counts[RELATIONS])
        names, arity = self.chain[2][:relations], self.chain[3][:relations]
        size = self.chain[4][:relations].astype(np.int64)
        stop = np.cumsum(size)
        stored = np.where(names < self.n_read, arity, 0).astype(np.int32)
        arg_stop = np.cumsum(size * stored)
        # Ends of points are the same array. Those that are not whole are not known yet where rows are counted.
        longer = size * ((self.chain[5][:relations] > 0) | (rows.counts[FRACTIONS] > 0))
        hi_stop = np.cumsum(longer)
        hi_at = np.where(longer, hi_stop - longer, -1)
        sorted_lo, sorted_hi = np.empty(count, np.int64), np.empty(int(longer.sum()), np.int64)
        args = np.empty(int(rows.counts[ARGS]), np.int32)
        scatter(
            rows._replace(lo=lo, hi=hi),
            stop - size,
            hi_at,
            arg_stop - size * stored,
            size,
            stored,
            sorted_lo,
            sorted_hi,
            args,
        )
        order = self.order.number_rows(rows, stop - size) if self.order else None
        relations_by_key: dict[Key, Relation] = {}
        for r in np.flatnonzero(size):
            key = str(self.names.value(int(names[r]))), int(arity[r])
            own = slice(stop[r] - size[r], stop[r])
            own_order = None if order is None else order[own]
            own_lo = sorted_lo[own]
            own_hi = sorted_hi[hi_stop[r] - size[r] : hi_stop[r]] if longer[r] else own_lo
            if stored[r] == arity[r]:
                block = args[arg_stop[r] - size[r] * arity[r] : arg_stop[r]].reshape(key[1], size[r])
                relations_by_key[key] = Relation(*key, block, own_lo, own_hi, own_order)
            else:
                relations_by_key[key] = Relation.unread(
                    *key, self.unread.reserve(key, int(size[r])), own_lo, own_hi, own_order
                )
        dates, numbers, local, zoned = (bool(rows.counts[DATES] & bit) for bit in (1, 2, 4, 8))
        zones: dict[Zone, str] = {"local": self.source} if local else {}
        zones |= {"zoned": self.source} if zoned else {}
        self.parts.append(Columns(denominator, dates, relations_by_key, numbers, zones=zones))
        self._forget_rows()

    def _forget_rows(self) -> None:
        self.rows.counts[[ROWS, ARGS, FRACTIONS]] = 0
        for column in self.chain[4:]:
            column[:] = 0

    def _to_common_step(self, lo: Times, hi: Times) -> tuple[int, Times, Times]:
        """Convert the rows' times to their common time step; return its denominator and the ends."""
        rows = self.rows
        count = int(rows.counts[FRACTIONS])
        if not count:
            return 1, lo, hi
        which, numerator, parts = rows.fraction[:count], rows.numerator[:count], rows.denominator[:count]
        denominator, ticks, far = to_common_step(numerator, parts)
        rows_far = which[far] // 2 if far.any() else np.flatnonzero(find_overflows(lo, hi, denominator))
        if len(rows_far):
            self._report_overflows(rows_far[:MOST_ERRORS], denominator)
            return 1, lo, hi
        lo, hi = refine_pairs(lo, hi, denominator)
        left = which % 2 == 0
        lo[which[left] // 2] += 2 * ticks[left]
        hi[which[~left] // 2] += 2 * ticks[~left]
        for row in np.flatnonzero(lo > hi)[:MOST_ERRORS]:
            self._read_slowly(int(rows.line[row]))
        return denominator, lo, hi

    def _report_overflows(self, rows: npt.NDArray[np.int64], denominator: int) -> None:
        for row in rows:
            text, line = self._read_line(int(self.rows.line[row]))
            column = text.find("@") + 2
            time = text[column - 1 :].strip()
            place = Place(self.source, line, column, len(time), text)
            self.errors += timestamp_overflow(f"{time}, in ticks of 1/{denominator},", place).diagnostics


@dataclass
class _Unread:
    """A chunk of text with arguments that are left unread, and how many facts of each relation were found in it."""

    text: str | bytes
    symbols: Symbols
    source: str
    counts: dict[Key, int] = field(default_factory=dict)

    def reserve(self, key: Key, count: int) -> Callable[[], Ids]:
        """Return a function that reads the arguments of the next facts of a relation."""
        first = self.counts.get(key, 0)
        self.counts[key] = first + count
        return partial(self._read, key, first, first + count)

    def _read(self, key: Key, first: int, stop: int) -> Ids:
        # Facts that only the slow reader understands come behind all others.
        return self._relations[key].args[:, first:stop]

    @cached_property
    def _relations(self) -> dict[Key, Relation]:
        return scan_facts(self.text, self.symbols, self.source).relations


class _Order:
    """The positions of facts in the text.

    Rows come in the order of the text. Each fact of the slow reader knows how many rows precede it, and is put between
    them at the end.
    """

    def __init__(self) -> None:
        self.count = 0
        self.slow: list[int] = []

    def number_rows(self, rows: Rows, at: Times) -> Times:
        """Return the positions of a batch of rows among all rows, sorted by relation: those of r begin at `at[r]`."""
        count = int(rows.counts[ROWS])
        order = np.empty(count, np.int64)
        scatter_order(rows.relation, count, self.count, at, order)
        self.count += count
        return order

    def note(self, rows: Rows, at: int) -> None:
        """Note a fact of the slow reader that begins at a position of the present chunk, behind all noted before."""
        self.slow.append(self.count + int(np.searchsorted(rows.line[: rows.counts[ROWS]], at)))

    def merge(self, parts: list[Columns], facts: list[Fact]) -> list[Columns]:
        """Return the parts with positions among all facts; the last part holds `facts`, which the slow reader read."""
        slow, rows = np.array(self.slow, np.int64), np.arange(self.count)
        of_row = rows + np.searchsorted(slow, rows, side="right")
        of_slow = slow + np.arange(len(slow))
        of_key: dict[Key, list[int]] = {}
        for fact, position in zip(facts, of_slow, strict=True):
            of_key.setdefault((fact.predicate, len(fact.args)), []).append(int(position))
        quick = [
            replace(part, relations={key: r.with_order(of_row[r.order]) for key, r in part.relations.items()})
            for part in parts[:-1]
        ]
        last = {key: replace(r, order=np.array(of_key[key], np.int64)) for key, r in parts[-1].relations.items()}
        return [*quick, replace(parts[-1], relations=last)]


def scan_facts(
    text: str | bytes,
    symbols: Symbols,
    source: str,
    *,
    ordered: bool = False,
    line: int = 1,
    reads: Collection[str] | None = None,
) -> Columns:
    """Read the facts of a text, in UTF-8 if it is bytes. Constants go into `symbols`.

    With `ordered`, relations know the position of each fact. `line` is the number of the text's first line. Arguments
    of predicates that are not in `reads`, if given, are read when something asks for them.

    Raises a TidelogError that lists the bad lines, up to `MOST_ERRORS`.
    """
    return _Scan(symbols, source, ordered, line, reads).run([text] if text else [])


def scan_chunks(
    chunks: Iterable[bytes], symbols: Symbols, source: str, *, ordered: bool = False, line: int = 1
) -> Columns:
    """Do what `scan_facts` does, for a text that comes in chunks of whole lines."""
    return _Scan(symbols, source, ordered, line, None).run(chunks)


def _line_of(error: Diagnostic) -> int:
    return error.place.line if error.place else 0
