"""The compiled part of the fact scanner: from the bytes of whole lines to rows of numbers.

Room for everything that a stretch of text can hold is made beforehand (`scanner`); nothing here checks for it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidelog.data.columns import Ids, Times
from tidelog.data.numerals import DATE, MINUS_INF, NOT_UNDERSTOOD, PLUS_INF, Bytes, byte, read_time
from tidelog.data.symbols import (
    NAME_KIND,
    RATIONAL,
    SymbolTable,
    bare_kind,
    checked_slot,
    first_slot,
    groups_of,
    intern_rational,
    intern_words,
    second_word,
    with_group,
)
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.kernels import inlined, int64, kernel, uint64

# What a byte is. Bytes of UTF-8 sequences are NAME, like letters: a name may hold any script.
_NAME, _OTHER, _SPACE, _NEWLINE, _MARK, _CONTROL = 0, 1, 2, 3, 4, 5


#: Spaces that are not ASCII, and the first bytes of their UTF-8 forms.
_WIDE_SPACES = re.compile("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_WIDE_SPACE_BYTES = [0xC2, 0xE1, 0xE2, 0xE3]


def byte_classes(text: str) -> Bytes:
    """The class of every byte. Where the text has wide spaces, all characters like them are left to the slow reader."""
    classes = np.full(256, _OTHER, np.uint8)
    classes[:33] = _CONTROL
    classes[127] = _CONTROL
    classes[128:] = _NAME
    for c in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:":
        classes[c] = _NAME
    classes[list(b" \t\r")] = _SPACE
    classes[10] = _NEWLINE
    classes[list(b',()@"%#')] = _MARK
    if not text.isascii() and _WIDE_SPACES.search(text):
        classes[_WIDE_SPACE_BYTES] = _CONTROL
    return classes


_NL, _QUOTE, _HASH, _PERCENT, _OPEN, _CLOSE = 10, 34, 35, 37, 40, 41
_COMMA, _DOT, _AT, _SQUARE, _BACKSLASH, _SQUARE_CLOSE = 44, 46, 64, 91, 92, 93


class Rows(NamedTuple):
    """What a batch of blocks gives, in the order of the text. `counts`: rows, arguments, fractional ends, hard lines,
    known relations, whether there were dates, how many arguments there were before the present block, and lines."""

    relation: Ids
    lo: Times
    hi: Times
    line: npt.NDArray[np.int64]  # where the fact begins
    args: Ids  # of all rows, one after the other
    first: npt.NDArray[np.int64]  # the words of every argument of the present block,
    second: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]  # where it begins,
    size: npt.NDArray[np.int64]  # its length and kind, 0 if its id is known,
    known: Ids  # and its id + 1 as far as that is found at once
    fraction: npt.NDArray[np.int64]  # 2 * row, + 1 for the right end: an end between two whole numbers
    numerator: npt.NDArray[np.int64]
    denominator: npt.NDArray[np.int64]
    hard: npt.NDArray[np.int64]  # where lines for the slow reader begin
    counts: npt.NDArray[np.int64]


ROWS, ARGS, FRACTIONS, HARD, RELATIONS, DATES, ARGS_BEFORE, LINES = 0, 1, 2, 3, 4, 5, 6, 7


class Predicates(NamedTuple):
    """The relations found so far: those of a predicate (an id of `names`) form a chain over their arities."""

    names: SymbolTable
    first: Ids  # relation + 1 by name
    next: Ids  # relation + 1 by relation
    name: Ids  # by relation
    arity: Ids  # by relation


def empty_rows(size: int) -> Rows:
    """Room for so many rows, and for as many arguments."""

    def longs(size: int) -> npt.NDArray[np.int64]:
        return np.empty(size, np.int64)

    return Rows(
        relation=np.empty(size, np.int32),
        lo=longs(size),
        hi=longs(size),
        line=longs(size),
        args=np.empty(size, np.int32),
        first=longs(size),
        second=longs(size),
        start=longs(size),
        size=longs(size),
        known=np.empty(size, np.int32),
        fraction=longs(2 * size),
        numerator=longs(2 * size),
        denominator=longs(2 * size),
        hard=longs(size),
        counts=np.zeros(8, np.int64),
    )


@inlined
def _skip(data: Bytes, i: int, end: int, classes: Bytes) -> int:
    while i < end and classes[byte(data, i)] == _SPACE:
        i += 1
    return i


@inlined
def _token(data: Bytes, start: int, end: int, classes: Bytes, widest: int) -> tuple[int, int, int]:
    """The end of a token of bytes of class `widest` at most, and its `groups_of`."""
    i = start
    h = 0
    last = 0
    while i < end:
        c = byte(data, i)
        if classes[c] > widest:
            break
        last = (last << 8) | c
        i += 1
        if (i - start) & 7 == 0:
            h = with_group(h, last, i - start)
            last = 0
    return i, h, last


@inlined
def _relation(predicates: Predicates, rows: Rows, name: int, arity: int) -> int:
    relation = int64(predicates.first[name]) - 1
    while relation >= 0 and predicates.arity[relation] != arity:
        relation = int64(predicates.next[relation]) - 1
    if relation < 0:
        relation = int64(rows.counts[RELATIONS])
        rows.counts[RELATIONS] = relation + 1
        predicates.name[relation] = name
        predicates.arity[relation] = arity
        predicates.next[relation] = predicates.first[name]
        predicates.first[name] = relation + 1
    return relation


@inlined
def _args(
    data: Bytes, i: int, end: int, classes: Bytes, symbols: SymbolTable, rows: Rows, count: int
) -> tuple[int, int]:
    """Arguments up to the closing bracket: (position after it, number of arguments in all), or (-1, _)."""
    while True:
        i = _skip(data, i, end, classes)
        start = i
        if i < end and byte(data, i) == _QUOTE:
            start += 1
            i += 1
            while i < end and byte(data, i) != _QUOTE and byte(data, i) != _BACKSLASH and byte(data, i) != _NL:
                i += 1
            if i == end or byte(data, i) != _QUOTE:
                return -1, count
            h, last = groups_of(data, start, i)
            kind = NAME_KIND
            length = i - start
            i += 1
        else:
            i, h, last = _token(data, i, end, classes, _OTHER)
            if i == start:
                return -1, count
            kind = bare_kind(data, start, i)
            length = i - start
        if kind < 0:
            return -1, count
        at = uint64(count - rows.counts[ARGS_BEFORE])
        if kind == RATIONAL:
            rows.args[count] = intern_rational(symbols, data, start, i)
            rows.first[at] = 0
            rows.second[at] = 0
            rows.size[at] = 0
        else:
            rows.first[at] = h
            rows.second[at] = second_word(h, last, length, kind)
            rows.start[at] = start
            rows.size[at] = (length << 8) | kind
        count += 1
        i = _skip(data, i, end, classes)
        if i == end:
            return -1, count
        if byte(data, i) == _CLOSE:
            return i + 1, count
        if byte(data, i) != _COMMA:
            return -1, count
        i += 1


@inlined
def _intern_args(data: Bytes, symbols: SymbolTable, rows: Rows) -> None:
    """Give ids to the arguments of the block. All in one go and step by step, without branches that depend on what the
    table holds: then the processor looks up many at a time instead of waiting for memory at each."""
    before = rows.counts[ARGS_BEFORE]
    count = rows.counts[ARGS] - before
    for k in range(count):
        rows.known[k] = first_slot(symbols, rows.first[k], rows.second[k])
    for k in range(count):
        rows.known[k] = checked_slot(symbols, rows.known[k], rows.first[k], rows.second[k])
    for k in range(count):
        size = rows.size[k]
        if size:
            known = int64(rows.known[k])
            if known == 0:
                start = rows.start[k]
                known = 1 + intern_words(
                    symbols, data, start, start + (size >> 8), size & 255, rows.first[k], rows.second[k]
                )
            rows.args[before + k] = known - 1


@inlined
def _end(rows: Rows, which: int, numerator: int, denominator: int, what: int) -> int:
    """Twice the whole number of an end of a fact; an end between two whole numbers is kept aside."""
    if what == DATE:
        rows.counts[DATES] = 1
    if denominator == 1:
        return 2 * numerator
    at = rows.counts[FRACTIONS]
    rows.fraction[at] = which
    rows.numerator[at] = numerator
    rows.denominator[at] = denominator
    rows.counts[FRACTIONS] = at + 1
    return 0


@inlined
def _interval(data: Bytes, i: int, end: int, classes: Bytes, rows: Rows, row: int) -> int:
    """A time point or an interval: the position after it, or -1. Writes the row's `lo` and `hi`."""
    i = _skip(data, i, end, classes)
    if i == end or (byte(data, i) != _SQUARE and byte(data, i) != _OPEN):
        i, numerator, denominator, what = read_time(data, i, end)
        if what in (NOT_UNDERSTOOD, PLUS_INF, MINUS_INF):
            return -1
        whole = _end(rows, 2 * row, numerator, denominator, what)
        if denominator != 1:
            _end(rows, 2 * row + 1, numerator, denominator, what)
        rows.lo[row] = whole
        rows.hi[row] = whole
        return i
    open_lo = 1 if byte(data, i) == _OPEN else 0
    i, numerator, denominator, what = read_time(data, _skip(data, i + 1, end, classes), end)
    if what in (NOT_UNDERSTOOD, PLUS_INF) or (what == MINUS_INF and not open_lo):
        return -1
    i = _skip(data, i, end, classes)
    if i == end or byte(data, i) != _COMMA:
        return -1
    lo = NEG_INF if what == MINUS_INF else _end(rows, 2 * row, numerator, denominator, what) + open_lo
    i, numerator, denominator, what = read_time(data, _skip(data, i + 1, end, classes), end)
    i = _skip(data, i, end, classes)
    if i == end or (byte(data, i) != _SQUARE_CLOSE and byte(data, i) != _CLOSE):
        return -1
    open_hi = 1 if byte(data, i) == _CLOSE else 0
    if what in (NOT_UNDERSTOOD, MINUS_INF) or (what == PLUS_INF and not open_hi):
        return -1
    rows.lo[row] = lo
    rows.hi[row] = POS_INF if what == PLUS_INF else _end(rows, 2 * row + 1, numerator, denominator, what) - open_hi
    return i + 1


@inlined
def _fact(
    data: Bytes, i: int, end: int, classes: Bytes, symbols: SymbolTable, predicates: Predicates, rows: Rows
) -> int:
    """One fact: the position after it, or -1."""
    row = rows.counts[ROWS]
    start = i
    i, h, last = _token(data, i, end, classes, _NAME)
    if i == start or 48 <= byte(data, start) <= 58:
        return -1
    second = second_word(h, last, i - start, NAME_KIND)
    name = intern_words(predicates.names, data, start, i, NAME_KIND, h, second)
    i = _skip(data, i, end, classes)
    first = rows.counts[ARGS]
    after_args = first
    if i < end and byte(data, i) == _OPEN:
        i, after_args = _args(data, i + 1, end, classes, symbols, rows, first)
        if i < 0:
            return -1
        i = _skip(data, i, end, classes)
    if i < end and byte(data, i) == _AT:
        i = _interval(data, i + 1, end, classes, rows, row)
        if i < 0:
            return -1
        i = _skip(data, i, end, classes)
    else:
        rows.lo[row] = NEG_INF
        rows.hi[row] = POS_INF
    if i < end and byte(data, i) == _DOT:
        i = _skip(data, i + 1, end, classes)
    if i < end and byte(data, i) != _NL and byte(data, i) != _PERCENT and byte(data, i) != _HASH:
        return -1
    rows.relation[row] = _relation(predicates, rows, name, after_args - first)
    rows.line[row] = start
    rows.counts[ARGS] = after_args
    rows.counts[ROWS] = row + 1
    return i


@kernel
def scan_lines(
    data: Bytes, i: int, end: int, classes: Bytes, symbols: SymbolTable, predicates: Predicates, rows: Rows
) -> None:
    """The facts of whole lines."""
    rows.counts[ARGS_BEFORE] = rows.counts[ARGS]
    while i < end:
        i = _skip(data, i, end, classes)
        if i == end:
            break
        c = byte(data, i)
        if c != _NL and c != _PERCENT and c != _HASH:
            fractions = rows.counts[FRACTIONS]
            after = _fact(data, i, end, classes, symbols, predicates, rows)
            if after < 0:
                rows.counts[FRACTIONS] = fractions
                rows.hard[rows.counts[HARD]] = i
                rows.counts[HARD] += 1
            else:
                i = after
        while i < end and byte(data, i) != _NL:
            i += 1
        i += 1
        rows.counts[LINES] += 1
    _intern_args(data, symbols, rows)


@kernel
def scatter_order(relation: Ids, count: int, first: int, at: Times, order: Times) -> None:
    """The positions of rows, counted from `first`, sorted by relation: those of r go to `at[r]` and on."""
    for row in range(count):
        r = relation[row]
        order[at[r]] = first + row
        at[r] += 1


@kernel
def scatter(rows: Rows, at: Times, arg_at: Times, size: Times, arity: Ids, lo: Times, hi: Times, args: Ids) -> None:
    """Sort rows by relation: those of r go to `at[r]` and on, its arguments, by columns, to `arg_at[r]` and on."""
    read = 0
    for row in range(rows.counts[ROWS]):
        r = rows.relation[row]
        lo[at[r]] = rows.lo[row]
        hi[at[r]] = rows.hi[row]
        at[r] += 1
        write = arg_at[r]
        for _ in range(arity[r]):
            args[write] = rows.args[read]
            write += size[r]
            read += 1
        arg_at[r] += 1
