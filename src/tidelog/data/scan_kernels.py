"""The compiled part of the fact scanner: from the bytes of whole lines to rows of numbers.

`fact_scanner` reserves room for everything that a block of text can hold; nothing here checks for it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidelog.data.number_scanner import (
    LOCAL,
    MINUS_INF,
    NOT_UNDERSTOOD,
    NUMBER,
    PLUS_INF,
    ZONED,
    Bytes,
    byte,
    load,
    load_backwards,
    read_time,
)
from tidelog.data.relation import Ids, Times
from tidelog.data.symbol_kernels import (
    NAME_KIND,
    RATIONAL,
    SymbolTable,
    add_group,
    bare_kind,
    check_slot,
    first_word,
    intern_rational,
    intern_words,
    read_slot,
    second_word,
)
from tidelog.jit import inlined_kernel, int64, interpret_as, kernel, tick, uint64
from tidelog.timeline.grid import NEG_INF, POS_INF

# The classes of bytes. Bytes of UTF-8 sequences are NAME, like letters: names may be in any script.
_NAME, _OTHER, _SPACE, _NEWLINE, _MARK, _CONTROL = 0, 1, 2, 3, 4, 5


#: Spaces that are not ASCII, and the first bytes of their UTF-8 forms.
_WIDE_SPACES = re.compile("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_WIDE_SPACE_BYTES = [0xC2, 0xE1, 0xE2, 0xE3]


def byte_classes(text: str) -> Bytes:
    """Return the class of every byte. If the text has spaces beyond ASCII, lines with such characters go to the slow
    reader."""
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


#: Numbers of 8 equal bytes, and the greatest number.
_ONES, _DIGITS, _AT_SIGNS = 0x0101010101010101, 0x3030303030303030, 0x4040404040404040
_COMMAS, _COLONS, _DELETES = 0x2C2C2C2C2C2C2C2C, 0x3A3A3A3A3A3A3A3A, 0x7F7F7F7F7F7F7F7F
_POSITIVE = (1 << 63) - 1


class Rows(NamedTuple):
    """The rows of a batch of blocks, in the order of the text; the constants below say what `counts` counts."""

    relation: Ids
    lo: Times
    hi: Times
    line: npt.NDArray[np.int64]  # where the fact begins
    args: Ids  # of all rows, one after the other
    # For every argument of the present block:
    first: npt.NDArray[np.int64]  # its first word
    second: npt.NDArray[np.int64]  # its second word
    start: npt.NDArray[np.int64]  # where it begins
    size: npt.NDArray[np.int64]  # its length and kind, or 0 if its id is already in `args`
    known: Ids  # its id + 1 if the first slot has it, else 0
    # For every end that is not a whole number:
    fraction: npt.NDArray[np.int64]  # 2 * row, + 1 for the right end
    numerator: npt.NDArray[np.int64]
    denominator: npt.NDArray[np.int64]
    unread: npt.NDArray[np.int64]  # where the lines for the slow reader begin
    counts: npt.NDArray[np.int64]


#: What `Rows.counts` counts: rows, arguments, fractional ends, lines for the slow reader, relations, the kinds of
#: times (the sum of 1 for dates, 2 for numbers, 4 for LOCAL and 8 for ZONED ones), arguments before the present block,
#: and lines.
ROWS, ARGS, FRACTIONS, UNREAD, RELATIONS, DATES, ARGS_BEFORE, LINES = 0, 1, 2, 3, 4, 5, 6, 7


class Predicates(NamedTuple):
    """The relations found so far. Those of one predicate (an id of `names`) form a linked list over their arities.

    Arguments of names from `n_read` on are checked, but not kept.
    """

    names: SymbolTable
    n_read: int
    first: Ids  # relation + 1 by name
    next: Ids  # relation + 1 by relation
    name: Ids  # by relation
    arity: Ids  # by relation
    size: Ids  # by relation: its rows in the present batch
    longer: Ids  # by relation: those of them that are not points


def empty_rows(size: int) -> Rows:
    """Allocate room for `size` rows, and for as many arguments."""

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
        unread=longs(size),
        counts=np.zeros(8, np.int64),
    )


@inlined_kernel
def _skip_spaces(data: Bytes, i: int, end: int, classes: Bytes) -> int:
    while i < end and classes[byte(data, i)] == _SPACE:
        i += 1
    return i


@interpret_as(lambda data, start: (start, 0, 0))
@inlined_kernel
def _read_words(data: Bytes, start: int) -> tuple[int, int, int]:
    """Do what `_read_token` does, 8 bytes at a time, up to a byte that may end the token or to the end of the data.

    Interpreted, reading byte by byte is faster.
    """
    i, h = start, 0
    while i + 8 <= len(data):
        word = load_backwards(data, i)
        marked = word ^ _AT_SIGNS
        # A bit for each byte that is less than a digit, an @, or beyond ~; those behind the first may be wrong.
        ends = ((word - _DIGITS) & ~word | (marked - _ONES) & ~marked | (word + _ONES) | word) >> 7 & _ONES
        group = load(data, i)
        if ends:
            size = int64((((ends & -ends) - 1) & _ONES) * _ONES) >> 56
            return i + size, h, (group >> 1 & _POSITIVE) >> (63 - 8 * size)
        i += 8
        h = add_group(h, group, i - start)
    return i, h, 0


@inlined_kernel
def _skip_token(data: Bytes, start: int, end: int, classes: Bytes) -> int:
    """Return where an argument without quotes ends."""
    i, _, _ = _read_words(data, start)
    while i < end and classes[byte(data, i)] <= _OTHER:
        i += 1
    return i


@inlined_kernel
def _read_token(data: Bytes, start: int, end: int, classes: Bytes, widest: int) -> tuple[int, int, int]:
    """Read a token of bytes of class `widest` at most; return its end, and what `first_word` returns for it."""
    i, h, last = _read_words(data, start)
    if i < end and classes[byte(data, i)] > widest:
        return i, h, last
    i -= (i - start) & 7
    last = 0
    while i < end:
        c = byte(data, i)
        if classes[c] > widest:
            break
        last = (last << 8) | c
        i += 1
        if (i - start) & 7 == 0:
            h = add_group(h, last, i - start)
            last = 0
    return i, h, last


@inlined_kernel
def _find_relation(predicates: Predicates, rows: Rows, name: int, arity: int) -> int:
    """Return the number of the relation of a predicate and an arity; add it if it is new."""
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


@inlined_kernel
def _find_quote(data: Bytes, i: int, end: int) -> int:
    """Return where a text in quotes ends; -1 if only the slow reader can tell."""
    while i < end and byte(data, i) != _QUOTE and byte(data, i) != _BACKSLASH and byte(data, i) != _NL:
        i += 1
    return i if i < end and byte(data, i) == _QUOTE else -1


@inlined_kernel
def _read_args(
    data: Bytes, i: int, end: int, classes: Bytes, symbols: SymbolTable, rows: Rows, count: int
) -> tuple[int, int]:
    """Read arguments up to the closing bracket; return the position after it (-1 on failure) and the new `count`."""
    while True:
        i = _skip_spaces(data, i, end, classes)
        start = i
        if i < end and byte(data, i) == _QUOTE:
            start += 1
            i = _find_quote(data, start, end)
            if i < 0:
                return -1, count
            h, last = first_word(data, start, i)
            kind = NAME_KIND
            length = i - start
            i += 1
        else:
            i, h, last = _read_token(data, i, end, classes, _OTHER)
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
        i = _skip_spaces(data, i, end, classes)
        if i == end:
            return -1, count
        if byte(data, i) == _CLOSE:
            return i + 1, count
        if byte(data, i) != _COMMA:
            return -1, count
        i += 1


@inlined_kernel
def _find_less(word: int, than: int) -> int:
    """Return a number with a 1 in each byte of ASCII that is less than that of `than`; bytes beyond ASCII may have any
    result."""
    return ~((word | ~_DELETES) - than) >> 7 & _ONES


@inlined_kernel
def _find_equal(word: int, to: int) -> int:
    """Return a number with a 1 in each byte of ASCII that is the same as in `to`; see `_find_less`."""
    return ~(((word ^ to) & _DELETES) + _DELETES) >> 7 & _ONES


@inlined_kernel
def _count_ones(bits: int) -> int:
    """Count the bytes that are 1, if all others are 0."""
    return int64(bits * _ONES) >> 56


@interpret_as(lambda data, start: (-1, 0))
@inlined_kernel
def _skip_names(data: Bytes, start: int) -> tuple[int, int]:
    """Do what `_check_args` does, 8 bytes at a time, if all arguments are names without quotes, spaces and signs.

    Return -1 for others, and for the last bytes of the data; interpreted, leave all of them to `_check_args`.
    """
    i, count, begins = start, 1, 1
    while i + 8 <= len(data):
        word = load_backwards(data, i)
        commas = _find_equal(word, _COMMAS) & ~(word >> 7)
        begins |= commas << 8
        wrong = begins & _find_less(word, _COLONS)
        others = _find_less(word, _DIGITS) ^ commas | _find_equal(word, _AT_SIGNS) | _find_equal(word, _DELETES)
        ends = others | word >> 7 & _ONES
        if ends:
            first = ends & -ends
            i += _count_ones((first - 1) & _ONES)
            if wrong & (2 * first - 1) or byte(data, i) != _CLOSE:
                return -1, 0
            return i + 1, count + _count_ones(commas & (first - 1))
        if wrong:
            return -1, 0
        count += _count_ones(commas)
        begins = commas >> 56
        i += 8
    return -1, 0


@inlined_kernel
def _check_args(data: Bytes, i: int, end: int, classes: Bytes) -> tuple[int, int]:
    """Do what `_read_args` does, for arguments that are not kept; return how many there are instead of a new count."""
    after, count = _skip_names(data, i)
    if after >= 0:
        return after, count
    while True:
        i = _skip_spaces(data, i, end, classes)
        start = i
        if i < end and byte(data, i) == _QUOTE:
            i = _find_quote(data, i + 1, end) + 1
            if i == 0:
                return -1, count
        else:
            i = _skip_token(data, i, end, classes)
            if i == start or bare_kind(data, start, i) < 0:
                return -1, count
        count += 1
        i = _skip_spaces(data, i, end, classes)
        if i == end:
            return -1, count
        if byte(data, i) == _CLOSE:
            return i + 1, count
        if byte(data, i) != _COMMA:
            return -1, count
        i += 1


@inlined_kernel
def _intern_args(data: Bytes, symbols: SymbolTable, rows: Rows) -> None:
    """Give ids to the arguments of the block.

    Each loop does one step for all arguments, without branches that depend on what the table holds: so the processor
    looks up many at a time instead of waiting for memory at each.
    """
    before = rows.counts[ARGS_BEFORE]
    count = rows.counts[ARGS] - before
    for k in range(count):
        rows.known[k] = read_slot(symbols, rows.first[k], rows.second[k])
    for k in range(count):
        rows.known[k] = check_slot(symbols, rows.known[k], rows.first[k], rows.second[k])
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


@inlined_kernel
def _store_end(rows: Rows, which: int, numerator: int, denominator: int, kind: int) -> int:
    """Return the grid position of a whole end. An end that is not whole goes to `rows.fraction`, with position 0."""
    rows.counts[DATES] |= 2 if kind == NUMBER else 5 if kind == LOCAL else 9 if kind == ZONED else 1
    if denominator == 1:
        return 2 * numerator
    at = rows.counts[FRACTIONS]
    rows.fraction[at] = which
    rows.numerator[at] = numerator
    rows.denominator[at] = denominator
    rows.counts[FRACTIONS] = at + 1
    return 0


@inlined_kernel
def _read_interval(data: Bytes, i: int, end: int, classes: Bytes, rows: Rows, row: int) -> int:
    """Read a time point or an interval into the row's `lo` and `hi`; return the position after it, or -1."""
    i = _skip_spaces(data, i, end, classes)
    if i == end or (byte(data, i) != _SQUARE and byte(data, i) != _OPEN):
        i, numerator, denominator, kind = read_time(data, i, end)
        if kind in (NOT_UNDERSTOOD, PLUS_INF, MINUS_INF):
            return -1
        whole = _store_end(rows, 2 * row, numerator, denominator, kind)
        if denominator != 1:
            _store_end(rows, 2 * row + 1, numerator, denominator, kind)
        rows.lo[row] = whole
        rows.hi[row] = whole
        return i
    open_lo = 1 if byte(data, i) == _OPEN else 0
    i, numerator, denominator, kind = read_time(data, _skip_spaces(data, i + 1, end, classes), end)
    if kind in (NOT_UNDERSTOOD, PLUS_INF) or (kind == MINUS_INF and not open_lo):
        return -1
    i = _skip_spaces(data, i, end, classes)
    if i == end or byte(data, i) != _COMMA:
        return -1
    lo = NEG_INF if kind == MINUS_INF else _store_end(rows, 2 * row, numerator, denominator, kind) + open_lo
    whole = denominator == 1
    i, numerator, denominator, kind = read_time(data, _skip_spaces(data, i + 1, end, classes), end)
    i = _skip_spaces(data, i, end, classes)
    if i == end or (byte(data, i) != _SQUARE_CLOSE and byte(data, i) != _CLOSE):
        return -1
    open_hi = 1 if byte(data, i) == _CLOSE else 0
    if kind in (NOT_UNDERSTOOD, MINUS_INF) or (kind == PLUS_INF and not open_hi):
        return -1
    hi = POS_INF if kind == PLUS_INF else _store_end(rows, 2 * row + 1, numerator, denominator, kind) - open_hi
    rows.lo[row], rows.hi[row] = lo, hi
    return -1 if whole and denominator == 1 and lo > hi else i + 1


@inlined_kernel
def _read_fact(
    data: Bytes, i: int, end: int, classes: Bytes, symbols: SymbolTable, predicates: Predicates, rows: Rows
) -> int:
    """Read one fact; return the position after it, or -1."""
    row = rows.counts[ROWS]
    start = i
    i, h, last = _read_token(data, i, end, classes, _NAME)
    if i == start or 48 <= byte(data, start) <= 58:
        return -1
    second = second_word(h, last, i - start, NAME_KIND)
    name = intern_words(predicates.names, data, start, i, NAME_KIND, h, second)
    i = _skip_spaces(data, i, end, classes)
    first = rows.counts[ARGS]
    after_args, arity = first, 0
    if i < end and byte(data, i) == _OPEN:
        if name < predicates.n_read:
            i, after_args = _read_args(data, i + 1, end, classes, symbols, rows, first)
            arity = after_args - first
        else:
            i, arity = _check_args(data, i + 1, end, classes)
        if i < 0:
            return -1
        i = _skip_spaces(data, i, end, classes)
    if i < end and byte(data, i) == _AT:
        i = _read_interval(data, i + 1, end, classes, rows, row)
        if i < 0:
            return -1
        i = _skip_spaces(data, i, end, classes)
    else:
        rows.lo[row] = NEG_INF
        rows.hi[row] = POS_INF
    if i < end and byte(data, i) == _DOT:
        i = _skip_spaces(data, i + 1, end, classes)
    if i < end and byte(data, i) != _NL and byte(data, i) != _PERCENT and byte(data, i) != _HASH:
        return -1
    relation = _find_relation(predicates, rows, name, arity)
    predicates.size[relation] += 1
    predicates.longer[relation] += rows.lo[row] != rows.hi[row]
    rows.relation[row] = relation
    rows.line[row] = start
    rows.counts[ARGS] = after_args
    rows.counts[ROWS] = row + 1
    return i


@kernel
def scan_lines(
    data: Bytes, i: int, end: int, classes: Bytes, symbols: SymbolTable, predicates: Predicates, rows: Rows
) -> None:
    """Read the facts of whole lines. Lines that are not understood go to `rows.unread`."""
    rows.counts[ARGS_BEFORE] = rows.counts[ARGS]
    while i < end:
        tick()
        i = _skip_spaces(data, i, end, classes)
        if i == end:
            break
        c = byte(data, i)
        if c != _NL and c != _PERCENT and c != _HASH:
            fractions = rows.counts[FRACTIONS]
            after = _read_fact(data, i, end, classes, symbols, predicates, rows)
            if after < 0:
                rows.counts[FRACTIONS] = fractions
                rows.unread[rows.counts[UNREAD]] = i
                rows.counts[UNREAD] += 1
            else:
                i = after
        while i < end and byte(data, i) != _NL:
            i += 1
        i += 1
        rows.counts[LINES] += 1
    _intern_args(data, symbols, rows)


@kernel
def measure_block(data: Bytes, start: int, size: int) -> tuple[int, int, int]:
    """Measure a block of whole lines of about `size` bytes: return its end, its newlines, and its commas."""
    end = min(start + size, len(data))
    lines, commas = 0, 0
    for i in range(start, end):
        lines += byte(data, i) == _NL
        commas += byte(data, i) == _COMMA
    while end < len(data) and byte(data, end - 1) != _NL:
        lines += byte(data, end) == _NL
        commas += byte(data, end) == _COMMA
        end += 1
    return end, lines, commas


@kernel
def find_line(data: Bytes, at: int, counted: int) -> tuple[int, int, int]:
    """Return where the line of a position begins and ends, and how many lines begin after `counted` up to it."""
    start, end, lines = at, at, 0
    while start > 0 and byte(data, start - 1) != _NL:
        start -= 1
    while end < len(data) and byte(data, end) != _NL:
        end += 1
    for i in range(counted, start):
        lines += byte(data, i) == _NL
    return start, end, lines


@kernel
def scatter_order(relation: Ids, count: int, first: int, at: Times, order: Times) -> None:
    """Write the positions of rows, counted from `first`, sorted by relation: those of r from `at[r]` on."""
    for row in range(count):
        r = relation[row]
        order[at[r]] = first + row
        at[r] += 1


@kernel
def scatter(
    rows: Rows, at: Times, hi_at: Times, arg_at: Times, size: Times, arity: Ids, lo: Times, hi: Times, args: Ids
) -> None:
    """Sort rows by relation: the left ends of r go to `at[r]` and on, its right ends to `hi_at[r]` unless that is
    negative, and its arguments, column by column, to `arg_at[r]`."""
    read = 0
    for row in range(rows.counts[ROWS]):
        r = rows.relation[row]
        lo[at[r]] = rows.lo[row]
        at[r] += 1
        if hi_at[r] >= 0:
            hi[hi_at[r]] = rows.hi[row]
            hi_at[r] += 1
        write = arg_at[r]
        for _ in range(arity[r]):
            args[write] = rows.args[read]
            write += size[r]
            read += 1
        arg_at[r] += 1
