"""Fact text, read by a compiled scanner: one pass over the bytes, constants straight into the dictionary.

The scanner understands what nearly all lines look like. A line that it does not understand goes to the slow and
complete reader, `language.facts.parse_fact`, which accepts it or says what is wrong with it and where.

The text goes through in blocks of whole lines. A block's length bounds how many facts, arguments and new constants it
can hold, so that room for all of them is made beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    RELATIONS,
    ROWS,
    Predicates,
    byte_classes,
    empty_rows,
    scan_lines,
    scatter,
)
from tidelog.data.symbols import Symbols
from tidelog.language.errors import Diagnostic, Place, TidelogError
from tidelog.language.syntax import Fact

BLOCK = 1 << 16
#: Rows are sorted into relations when there are so many of them.
BATCH = 1 << 16
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

    def __init__(self, data: bytes, classes: Bytes, symbols: Symbols, source: str) -> None:
        self.data, self.classes, self.symbols, self.source = data, classes, symbols, source
        self.names = Symbols()
        self.chain: list[Ids] = [np.zeros(0, np.int32)] * 4
        self.rows = empty_rows(0)
        self.parts: list[Columns] = []
        self.facts: list[Fact] = []
        self.dates = False
        self.errors: list[Diagnostic] = []
        self.counted = (0, 1)  # a position and the number of its line

    def run(self) -> Columns:
        view = np.frombuffer(self.data, np.uint8)
        for start, end in _blocks(self.data):
            most = (end - start) // 2 + 1  # a fact takes two bytes at least, and so does an argument
            self._make_room(most)
            known = len(self.names)
            predicates = Predicates(self.names.table(most, end - start), *self.chain)
            # The reduced fraction of a decimal number is at most twice as long as the number.
            symbols = self.symbols.table(most, 2 * (end - start))
            scan_lines(view, start, end, self.classes, symbols, predicates, self.rows)
            self._check_names(known)
            for at in self.rows.hard[: self.rows.counts[HARD]]:
                self._read_slowly(int(at))
            self.rows.counts[HARD] = 0
            if self.rows.counts[ROWS] > BATCH:
                self._flush()
            if len(self.errors) >= MOST_ERRORS:
                break
        self._flush()
        if self.errors:
            raise TidelogError(sorted(self.errors[:MOST_ERRORS], key=_line))
        if self.facts:
            self.parts.append(from_facts(self.symbols, self.facts, self.dates))
        return combined(self.symbols, self.parts) if self.parts else EMPTY

    def _make_room(self, most: int) -> None:
        if max(self.rows.counts[[ROWS, ARGS]]) + most > len(self.rows.lo):
            self._flush()
            counts = self.rows.counts
            self.rows = empty_rows(most + BATCH)._replace(counts=counts)
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
        self.dates |= dates

    def _text(self, at: int) -> tuple[str, int]:
        """The line of a position, and its number. Lines are counted on from where they were counted last."""
        start = self.data.rfind(b"\n", 0, at) + 1
        end = self.data.find(b"\n", at)
        before, line = self.counted if self.counted[0] <= start else (0, 1)
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
        found: dict[Key, Relation] = {}
        for r in np.flatnonzero(size):
            key = str(self.names.value(int(names[r]))), int(arity[r])
            block = args[arg_stop[r] - size[r] * arity[r] : arg_stop[r]].reshape(key[1], size[r])
            some = slice(stop[r] - size[r], stop[r])
            found[key] = Relation(*key, block, sorted_lo[some], sorted_hi[some])
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


def scan(text: str | bytes, symbols: Symbols, source: str) -> Columns:
    """The facts of a text, in UTF-8 if it is bytes. Constants go into `symbols`.

    Raises a TidelogError that holds every bad line, up to a number that one still reads.
    """
    if isinstance(text, str):
        return _Scan(text.encode(), byte_classes(text), symbols, source).run()
    return _Scan(text, byte_classes("" if text.isascii() else text.decode()), symbols, source).run()


def _line(error: Diagnostic) -> int:
    return error.place.line if error.place else 0
