"""The dictionary of constants: every distinct constant is one int32.

A constant is kept as bytes in one pool, not as a Python object, so that millions of them stay light: a kind byte
(number or name) and its canonical text. `1`, `1.0` and `01` share the canonical text `1`; `abc` and `"abc"` share
`abc`. A hash table of slots finds them again; compiled readers write into the same table without leaving compiled code.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tidelog.data.numerals import MAX_DIGITS, NOT_UNDERSTOOD, Bytes, byte, is_digit, read_number, write_rational
from tidelog.language.syntax import Value
from tidelog.timeline.kernels import inlined, int64, kernel, uint64

Element = TypeVar("Element", bound=np.generic)

#: The kind byte in front of every constant's text. Numbers sort before names.
NUMBER_KIND, NAME_KIND = 110, 115
#: What else may be said of a text that is to become a constant: see `bare_kind` and `intern_slices`.
RATIONAL, AS_WRITTEN = 0, 1

#: The most bytes that the canonical text of a number read by compiled code takes: two numbers of 19 digits, `-`, `/`.
LONGEST_NUMBER = 40


#: Longer texts than this do not fit into their words.
LONGEST_SHORT = 15
_LONG = -(1 << 63)
_PLUS, _MINUS, _ZERO = 43, 45, 48


class SymbolTable(NamedTuple):
    """The arrays that kernels read and write.

    Every constant has two words of 64 bits. Those of a short one hold its kind and its text, so that equal words are
    equal constants; of a long one they are hashes, the second of them negative.
    """

    slots: npt.NDArray[np.int32]  # a hash table by words: the id + 1, or 0
    words: npt.NDArray[np.int64]  # two by id
    offsets: npt.NDArray[np.int64]
    pool: Bytes
    counts: npt.NDArray[np.int64]  # how many constants


@inlined
def mixed(h: int, word: int) -> int:
    h = (h ^ word) * -7046029254386353131
    return h ^ (h >> 29)


@inlined
def _hash(first: int, second: int) -> int:
    """Neighbours like `object12|7` and `object13|6` must not meet, so the first word is mixed by itself."""
    return mixed(mixed(0, first), second)


@inlined
def with_group(h: int, group: int, length: int) -> int:
    """The first word of a text that has come to `length` bytes, its last 8 in `group`: one group stays as it is."""
    return group if length == 8 else mixed(h, group)


@inlined
def second_word(h: int, last: int, length: int, kind: int) -> int:
    """The second word: the bytes after the last full group of 8, and in front of them kind and length."""
    if length > LONGEST_SHORT:
        return mixed(mixed(h, last), kind) | _LONG
    mark = (1 if kind == NUMBER_KIND else 2) + (4 if length >= 8 else 0)
    return (mark << (8 * (length & 7))) | last


@inlined
def groups_of(data: Bytes, start: int, end: int) -> tuple[int, int]:
    """The first word of a text, and the bytes after its full groups of 8."""
    h = 0
    last = 0
    for i in range(start, end):
        last = (last << 8) | byte(data, i)
        if (i - start) & 7 == 7:
            h = with_group(h, last, i - start + 1)
            last = 0
    return h, last


@inlined
def intern_words(table: SymbolTable, data: Bytes, start: int, end: int, kind: int, first: int, second: int) -> int:
    """The id of the constant whose canonical text is `data[start:end]`, a new one if need be.

    The table must have room for one constant more.
    """
    mask = len(table.slots) - 1
    at = _hash(first, second) & mask
    while table.slots[uint64(at)] != 0:
        known = int64(table.slots[uint64(at)]) - 1
        if (
            table.words[uint64(2 * known)] == first
            and table.words[uint64(2 * known + 1)] == second
            and (second > 0 or _same(table, known, data, start, end, kind))
        ):
            return known
        at = (at + 1) & mask
    new = int64(table.counts[0])
    offset = table.offsets[new]
    table.pool[offset] = kind
    for j in range(end - start):
        table.pool[offset + 1 + j] = data[start + j]
    table.offsets[new + 1] = offset + 1 + end - start
    table.words[2 * new] = first
    table.words[2 * new + 1] = second
    table.slots[at] = new + 1
    table.counts[0] = new + 1
    return new


@inlined
def first_slot(table: SymbolTable, first: int, second: int) -> int:
    """What stands in the first slot for a constant: an id + 1, which may be that of another, or 0."""
    return int64(table.slots[uint64(_hash(first, second) & (len(table.slots) - 1))])


@inlined
def checked_slot(table: SymbolTable, known: int, first: int, second: int) -> int:
    """What a slot holds, if it is the short constant with these words, and 0 otherwise."""
    at = uint64(2 * max(int64(known) - 1, 0))
    same = (table.words[at] == first) & (table.words[at + uint64(1)] == second) & (second > 0)
    return known if same else 0


@inlined
def _same(table: SymbolTable, known: int, data: Bytes, start: int, end: int, kind: int) -> bool:
    offset = table.offsets[known]
    if table.offsets[known + 1] - offset != end - start + 1 or table.pool[offset] != kind:
        return False
    at = start
    while at < end and byte(table.pool, offset + 1 + at - start) == byte(data, at):
        at += 1
    return at == end


@inlined
def intern_bytes(table: SymbolTable, data: Bytes, start: int, end: int, kind: int) -> int:
    """`intern_words` for a text that has not been looked at yet."""
    h, last = groups_of(data, start, end)
    return intern_words(table, data, start, end, kind, h, second_word(h, last, end - start, kind))


@inlined
def bare_kind(data: Bytes, start: int, end: int) -> int:
    """What an argument without quotes is: a number whose text is canonical (NUMBER_KIND), another number (RATIONAL),
    a name, or -1 for a number that is too long for compiled code."""
    first = byte(data, start)
    signed = first in (_PLUS, _MINUS) and end > start + 1
    if not is_digit(byte(data, start + 1) if signed else first):
        return NAME_KIND
    natural = first > _ZERO and end - start <= MAX_DIGITS
    for i in range(start, end):
        natural = natural and is_digit(byte(data, i))
    if natural:
        return NUMBER_KIND
    after, _, _, what = read_number(data, start, end)
    if what == NOT_UNDERSTOOD:
        return -1
    return RATIONAL if after == end else NAME_KIND


@inlined
def intern_rational(table: SymbolTable, data: Bytes, start: int, end: int) -> int:
    """The id of a number; its canonical text is tried out behind the end of the pool, which must have room for it."""
    _, numerator, denominator, _ = read_number(data, start, end)
    text = table.offsets[table.counts[0]] + LONGEST_NUMBER + 1
    after = write_rational(table.pool, text, numerator, denominator)
    return intern_bytes(table, table.pool, text, after, NUMBER_KIND)


@kernel
def _intern_one(table: SymbolTable, data: Bytes, kind: int) -> int:
    return intern_bytes(table, data, 0, len(data), kind)


@kernel
def intern_slices(
    table: SymbolTable, data: Bytes, offsets: npt.NDArray[np.int64], kind: int, ids: npt.NDArray[np.int32]
) -> None:
    """The ids of many texts that lie one after the other, all of one kind or each AS_WRITTEN in fact text; -1 for a
    number that is too long."""
    for i in range(len(offsets) - 1):
        start, end = offsets[i], offsets[i + 1]
        what = kind
        if kind == AS_WRITTEN:
            what = bare_kind(data, start, end) if start < end else NAME_KIND
        if what == RATIONAL:
            ids[i] = intern_rational(table, data, start, end)
        elif what < 0:
            ids[i] = -1
        else:
            ids[i] = intern_bytes(table, data, start, end, what)


@kernel
def _merge(into: SymbolTable, other: SymbolTable, which: npt.NDArray[np.int64], ids: npt.NDArray[np.int32]) -> None:
    for i in which:
        start = other.offsets[i]
        ids[i] = intern_bytes(into, other.pool, start + 1, other.offsets[i + 1], other.pool[start])


@kernel
def _intern_all(into: SymbolTable, offsets: npt.NDArray[np.int64], pool: Bytes, ids: npt.NDArray[np.int32]) -> None:
    for i in range(len(ids)):
        ids[i] = intern_bytes(into, pool, offsets[i] + 1, offsets[i + 1], pool[offsets[i]])


@kernel
def _gather(table: SymbolTable, ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], pool: Bytes) -> None:
    for i in range(len(ids)):
        start = table.offsets[ids[i]]
        for j in range(offsets[i + 1] - offsets[i]):
            pool[offsets[i] + j] = table.pool[start + j]


@kernel
def _write_words(table: SymbolTable) -> None:
    for id in range(table.counts[0]):
        start, end = table.offsets[id] + 1, table.offsets[id + 1]
        h, last = groups_of(table.pool, start, end)
        table.words[2 * id] = h
        table.words[2 * id + 1] = second_word(h, last, end - start, table.pool[start - 1])


@kernel
def _fill_slots(table: SymbolTable) -> None:
    mask = len(table.slots) - 1
    for id in range(table.counts[0]):
        at = _hash(table.words[2 * id], table.words[2 * id + 1]) & mask
        while table.slots[at] != 0:
            at = (at + 1) & mask
        table.slots[at] = id + 1


class Symbols:
    """An append-only dictionary of constants.

    >>> symbols = Symbols()
    >>> symbols.intern("abc"), symbols.intern(Fraction(1, 2)), symbols.intern("abc")
    (0, 1, 0)
    >>> symbols.value(1)
    Fraction(1, 2)
    """

    def __init__(self) -> None:
        self._table = SymbolTable(
            np.zeros(64, np.int32),
            np.zeros(66, np.int64),
            np.zeros(33, np.int64),
            np.zeros(1024, np.uint8),
            np.zeros(1, np.int64),
        )
        self._ranks = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return int(self._table.counts[0])

    def intern(self, value: Value) -> int:
        """The id of a constant, given to it now if it is new."""
        kind = NAME_KIND if isinstance(value, str) else NUMBER_KIND
        data = np.frombuffer(str(value).encode(), np.uint8)
        return int(_intern_one(self.table(1, len(data)), data, kind))

    def value(self, id: int) -> Value:
        """The constant of an id."""
        start, end = self._table.offsets[id : id + 2]
        text = self._table.pool[start + 1 : end].tobytes().decode()
        return text if self._table.pool[start] == NAME_KIND else Fraction(text)

    def copy(self) -> Symbols:
        """The same constants with the same ids, free to grow apart."""
        other = Symbols()
        other._table = SymbolTable._make(column.copy() for column in self._table)
        return other

    def merge(self, other: Symbols, which: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.int32]:
        """Intern the constants of another dictionary, all or some; the new id of each of their ids there."""
        ids = np.empty(len(other), np.int32)
        which = np.arange(len(other)) if which is None else which
        offsets = other._table.offsets
        size = int((offsets[which + 1] - offsets[which]).sum())
        _merge(self.table(len(which), size), other._table, which, ids)
        return ids

    def texts(self) -> tuple[Bytes, npt.NDArray[np.int64]]:
        """The kinds and texts of all constants, one after the other, and where each begins (and the last one ends)."""
        count = len(self)
        return self._table.pool[: self._table.offsets[count]], self._table.offsets[: count + 1]

    def merge_texts(self, pool: Bytes, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32] | None:
        """Intern the constants that `texts` gave; the new id of each, or None where it is the old one."""
        other = Symbols()
        count = len(offsets) - 1
        words = np.empty(2 * count + 2, np.int64)
        slots = np.zeros(1 << (2 * count + 2).bit_length(), np.int32)
        other._table = SymbolTable(slots, words, offsets, pool, np.array([count]))
        mine, starts = self.texts()
        if np.array_equal(offsets[: len(starts)], starts) and np.array_equal(pool[: len(mine)], mine):
            _write_words(other._table)
            _fill_slots(other._table)
            self._table = other._table
            return None
        return self.merge(other)

    def some_texts(self, ids: npt.NDArray[np.int32]) -> tuple[Bytes, npt.NDArray[np.int64]]:
        """`texts` of some constants."""
        lengths = self._table.offsets[ids + 1] - self._table.offsets[ids]
        offsets = np.zeros(len(ids) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        pool = np.empty(int(offsets[-1]), np.uint8)
        _gather(self._table, ids, offsets, pool)
        return pool, offsets

    def intern_all(self, pool: Bytes, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Intern the constants that `some_texts` gave; the id of each."""
        ids = np.empty(len(offsets) - 1, np.int32)
        _intern_all(self.table(len(ids), len(pool)), offsets, pool, ids)
        return ids

    def intern_texts(self, data: Bytes, offsets: npt.NDArray[np.int64], kind: int) -> npt.NDArray[np.int32]:
        """The ids of texts that lie one after the other in `data`; see `intern_slices` for `kind`."""
        ids = np.empty(len(offsets) - 1, np.int32)
        size = int(offsets[-1] - offsets[0]) + LONGEST_NUMBER * len(ids)
        intern_slices(self.table(len(ids), size), data, offsets, kind, ids)
        return ids

    def table(self, more: int, size: int) -> SymbolTable:
        """The arrays, with room for so many constants more whose texts are `size` bytes long together."""
        table = self._table
        count = len(self) + more + 1
        needed = int(table.offsets[len(self)]) + size + more + 4 * LONGEST_NUMBER
        if count >= len(table.offsets):
            table = table._replace(words=_grown(table.words, 2 * count + 2), offsets=_grown(table.offsets, count + 1))
        if needed > len(table.pool):
            table = table._replace(pool=_grown(table.pool, needed))
        if 2 * count > len(table.slots):
            table = table._replace(slots=np.zeros(1 << (2 * count - 1).bit_length(), np.int32))
            _fill_slots(table)
        self._table = table
        return table

    def ranks(self) -> npt.NDArray[np.int64]:
        """The rank of every id in the order of constants: numbers by value, then names by code points."""
        if len(self._ranks) != len(self):
            from tidelog.data.order import ranks

            self._ranks = ranks(self._table)
        return self._ranks


def _grown(array: npt.NDArray[Element], size: int) -> npt.NDArray[Element]:
    grown = np.empty(max(size, len(array) * 2), array.dtype)
    grown[: len(array)] = array
    return grown
