"""Fact text, read by a compiled scanner: one pass over the bytes, constants straight into the dictionary.

The scanner understands what nearly all lines look like. A line that it does not understand goes to the slow and
complete reader, `language.facts.parse_fact`, which accepts it or says what is wrong with it and where.

The text goes through in blocks of whole lines. A block's length bounds how many facts, arguments and new constants it
can hold, so that room for all of them is made beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tidelog.data.columns import (
    EMPTY,
    Columns,
    Ids,
    Key,
    Relation,
    Times,
    combined,
    from_facts,
    grid_pair,
    leaves_63_bits,
    on_common_step,
    own_denominator,
    refined,
    too_large,
)
from tidelog.data.numerals import Bytes
from tidelog.data.scan_kernels import (
    ARGS,
    DATES,
    FRACTIONS,
    HARD,
    LINES,
    RELATIONS,
    ROWS,
    Predicates,
    Rows,
    byte_classes,
    empty_rows,
    scan_lines,
    scatter,
    scatter_order,
)
from tidelog.data.symbols import Symbols
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.syntax import Fact

BLOCK = 1 << 16
#: Rows are sorted into relations when there are so many of them.
BATCH = 1 << 15
MOST_ERRORS = 20


def _blocks(data: bytes) -> Iterator[tuple[int, int]]:
    """Stretches of whole lines of about `BLOCK` bytes."""
    start = 0
    while start < len(data):
        end = len(data)
        if start + BLOCK < end:
            end = data.rfind(b"\n", start, start + BLOCK) + 1 or data.find(b"\n", start + BLOCK) + 1 or end
        yield start, end
        start = end


class _Scan:
    """One text on its way through the scanner."""

    def __init__(self, symbols: Symbols, source: str, ordered: bool, line: int) -> None:
        self.symbols, self.source = symbols, source
        self.data = b""  # the present piece, and how long all those before it were
        self.before = 0
        self.names = Symbols()
        self.chain: list[Ids] = [np.zeros(0, np.int32)] * 4
        self.rows = empty_rows(0)
        self.parts: list[Columns] = []
        self.facts: list[Fact] = []
        self.dates = False
        self.errors: list[Diagnostic] = []
        self.first_line = line
        self.counted = (0, line)  # a position and the number of its line
        self.order = _Order() if ordered else None

    def run(self, pieces: Iterable[bytes]) -> Columns:
        for piece in pieces:
            self._take(piece)
            if len(self.errors) >= MOST_ERRORS:
                break
        if self.errors:
            raise TidelogError(sorted(self.errors[:MOST_ERRORS], key=_line))
        if self.facts:
            self.parts.append(from_facts(self.symbols, self.facts, self.dates))
            if self.order:
                self.parts = self.order.merged(self.parts, self.facts)
        return combined(self.symbols, self.parts) if self.parts else EMPTY

    def _take(self, data: bytes) -> None:
        """The facts of a piece of whole lines."""
        self.before += len(self.data)
        self.first_line += int(self.rows.counts[LINES])
        self.rows.counts[LINES] = 0
        self.data, self.counted = data, (0, self.first_line)
        classes = self._classes()
        view = np.frombuffer(data, np.uint8)
        for start, end in _blocks(data):
            most = (end - start) // 2 + 1  # a fact takes two bytes at least, and so does an argument
            self._make_room(most)
            known = len(self.names)
            predicates = Predicates(self.names.table(most, end - start), *self.chain)
            # The reduced fraction of a decimal number is at most twice as long as the number.
            symbols = self.symbols.table(most, 2 * (end - start))
            scan_lines(view, start, end, classes, symbols, predicates, self.rows)
            self._check_names(known)
            for at in self.rows.hard[: self.rows.counts[HARD]]:
                self._read_slowly(int(at))
            self.rows.counts[HARD] = 0
            if self.rows.counts[ROWS] > BATCH:
                self._flush()
            if len(self.errors) >= MOST_ERRORS:
                break
        self._flush()

    def _classes(self) -> Bytes:
        if self.data.isascii():
            return byte_classes("")
        from tidelog.data.files import check_utf8

        check_utf8(self.data, self.source, self.first_line)
        return byte_classes(self.data.decode())

    def _make_room(self, most: int) -> None:
        if max(self.rows.counts[[ROWS, ARGS]]) + most > len(self.rows.lo):
            self._flush()
            if most > len(self.rows.lo):
                # A text of a single block has no more rows to come; small texts come often, from streams.
                more = 2 * BATCH if len(self.data) > BLOCK else 0
                self.rows = empty_rows(most + more)._replace(counts=self.rows.counts)
        known = max(len(self.names), int(self.rows.counts[RELATIONS])) + most
        if known > len(self.chain[0]):
            self.chain = [
                np.concatenate([column, np.zeros(2 * known - len(column), np.int32)]) for column in self.chain
            ]

    def _check_names(self, known: int) -> None:
        """Have the slow reader look at each new predicate once; where it minds, it says so of the facts themselves."""
        from tidelog.language.facts import parse_fact

        for name in range(known, len(self.names)):
            try:
                parse_fact(str(self.names.value(name)))
            except TidelogError:
                relation = self.rows.relation[: self.rows.counts[ROWS]]
                for row in np.flatnonzero(self.chain[2][relation] == name)[:MOST_ERRORS]:
                    self._read_slowly(int(self.rows.line[row]))

    def _read_slowly(self, at: int) -> None:
        from tidelog.language.facts import parse_fact

        text, line = self._text(at)
        if text.lstrip()[:1] in ("", "%", "#"):  # behind spaces that are not ASCII
            return
        try:
            fact, dates = parse_fact(text, self.source, line)
            grid_pair(fact, own_denominator(fact))
        except TidelogError as error:
            place = Place(self.source, line, text.find("@") + 2, 1, text)
            self.errors += [replace(e, place=e.place or place) for e in error.diagnostics]
            return
        self.facts.append(fact)
        if self.order:
            self.order.slow.append(self.before + at)
        self.dates |= dates

    def _text(self, at: int) -> tuple[str, int]:
        """The line of a position, and its number. Lines are counted on from where they were counted last."""
        start = self.data.rfind(b"\n", 0, at) + 1
        end = self.data.find(b"\n", at)
        before, line = self.counted if self.counted[0] <= start else (0, self.first_line)
        self.counted = (start, line + self.data.count(b"\n", before, start))
        return self.data[start : end if end >= 0 else len(self.data)].decode().rstrip("\r"), self.counted[1]

    def _flush(self) -> None:
        """Make columns of the rows so far."""
        rows = self.rows
        count = int(rows.counts[ROWS])
        denominator, lo, hi = self._times(rows.lo[:count], rows.hi[:count])
        for row in np.flatnonzero(lo > hi)[:MOST_ERRORS]:
            self._read_slowly(int(rows.line[row]))
        if not count or self.errors:
            rows.counts[[ROWS, ARGS, FRACTIONS]] = 0
            return
        relations = int(rows.counts[RELATIONS])
        names, arity = self.chain[2][:relations], self.chain[3][:relations]
        size = np.bincount(rows.relation[:count], minlength=relations)
        stop = np.cumsum(size)
        arg_stop = np.cumsum(size * arity)
        sorted_lo, sorted_hi = np.empty(count, np.int64), np.empty(count, np.int64)
        args = np.empty(int(rows.counts[ARGS]), np.int32)
        scatter(
            rows._replace(lo=lo, hi=hi), stop - size, arg_stop - size * arity, size, arity, sorted_lo, sorted_hi, args
        )
        order = self.order.of(rows, stop - size, self.before) if self.order else None
        found: dict[Key, Relation] = {}
        for r in np.flatnonzero(size):
            key = str(self.names.value(int(names[r]))), int(arity[r])
            block = args[arg_stop[r] - size[r] * arity[r] : arg_stop[r]].reshape(key[1], size[r])
            some = slice(stop[r] - size[r], stop[r])
            when = None if order is None else order[some]
            found[key] = Relation(*key, block, sorted_lo[some], sorted_hi[some], when)
        self.parts.append(Columns(denominator, bool(rows.counts[DATES]), found))
        rows.counts[[ROWS, ARGS, FRACTIONS]] = 0

    def _times(self, lo: Times, hi: Times) -> tuple[int, Times, Times]:
        """The rows' times on their common step."""
        rows = self.rows
        count = int(rows.counts[FRACTIONS])
        if not count:
            return 1, lo, hi
        which, numerator, parts = rows.fraction[:count], rows.numerator[:count], rows.denominator[:count]
        denominator, ticks, far = on_common_step(numerator, parts)
        rows_far = which[far] // 2 if far.any() else np.flatnonzero(too_large(lo, hi, denominator))
        if len(rows_far):
            self._leaves(rows_far[:MOST_ERRORS], denominator)
            return 1, lo, hi
        lo, hi = refined(lo, hi, denominator)
        left = which % 2 == 0
        lo[which[left] // 2] += 2 * ticks[left]
        hi[which[~left] // 2] += 2 * ticks[~left]
        return denominator, lo, hi

    def _leaves(self, rows: npt.NDArray[np.int64], denominator: int) -> None:
        for row in rows:
            text, line = self._text(int(self.rows.line[row]))
            column = text.find("@") + 2
            time = text[column - 1 :].strip()
            place = Place(self.source, line, column, len(time), text)
            self.errors += leaves_63_bits(f"{time}, in ticks of 1/{denominator},", place).diagnostics


class _Order:
    """Where facts stand in the text. Rows come in its order; what the slow reader reads is put between them at the end,
    by where it and they begin."""

    def __init__(self) -> None:
        self.count = 0
        self.begins: list[Times] = []
        self.slow: list[int] = []

    def of(self, rows: Rows, at: Times, before: int) -> Times:
        """The positions of a batch of rows among all rows, sorted by relation: those of r from `at[r]` on. Their piece
        begins `before` bytes after the text."""
        count = int(rows.counts[ROWS])
        order = np.empty(count, np.int64)
        scatter_order(rows.relation, count, self.count, at, order)
        self.begins.append(rows.line[:count] + before)
        self.count += count
        return order

    def merged(self, parts: list[Columns], facts: list[Fact]) -> list[Columns]:
        """The parts with positions among all facts; the last part is that of `facts`, which were read slowly."""
        begins = np.concatenate([*self.begins, np.zeros(0, np.int64)])
        slow = np.array(self.slow, np.int64)
        of_row = np.arange(self.count) + np.searchsorted(np.sort(slow), begins)
        of_slow = np.searchsorted(begins, slow) + np.argsort(np.argsort(slow))
        of_key: dict[Key, list[int]] = {}
        for fact, position in zip(facts, of_slow, strict=True):
            of_key.setdefault((fact.predicate, len(fact.args)), []).append(int(position))
        quick = [
            replace(part, relations={key: replace(r, order=of_row[r.order]) for key, r in part.relations.items()})
            for part in parts[:-1]
        ]
        last = {key: replace(r, order=np.array(of_key[key], np.int64)) for key, r in parts[-1].relations.items()}
        return [*quick, replace(parts[-1], relations=last)]


def scan(text: str | bytes, symbols: Symbols, source: str, *, ordered: bool = False, line: int = 1) -> Columns:
    """The facts of a text, in UTF-8 if it is bytes. Constants go into `symbols`.

    With `ordered`, relations know the position of each fact. `line` is the number of the text's first line.

    Raises a TidelogError that holds every bad line, up to a number that one still reads.
    """
    data = text.encode() if isinstance(text, str) else text
    return scan_pieces([data] if data else [], symbols, source, ordered=ordered, line=line)


def scan_pieces(
    pieces: Iterable[bytes], symbols: Symbols, source: str, *, ordered: bool = False, line: int = 1
) -> Columns:
    """`scan` for a text that comes in pieces of whole lines."""
    return _Scan(symbols, source, ordered, line).run(pieces)


def _line(error: Diagnostic) -> int:
    return error.place.line if error.place else 0
