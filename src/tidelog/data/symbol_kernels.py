"""The compiled part of the dictionary of constants: the arrays of a table, and how a text becomes an id.

Compiled readers intern constants here without leaving compiled code; `symbol_table.Symbols` makes room beforehand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidelog.data.number_scanner import (
    MAX_DIGITS,
    NOT_UNDERSTOOD,
    Bytes,
    byte,
    is_digit,
    load_backwards,
    read_number,
    write_rational,
)
from tidelog.jit import inlined_kernel, int64, kernel, tick, uint64

#: The kind byte in front of every constant's text. Numbers sort before names.
NUMBER_KIND, NAME_KIND = 110, 115
#: Two more kinds of input: a number whose text is not canonical (`bare_kind` finds it), and text whose kind is still to
#: be found out (`intern_slices` takes it).
RATIONAL, AS_WRITTEN = 0, 1

#: The most bytes that the canonical text of a number read by compiled code takes: two numbers of 19 digits, `-`, `/`.
LONGEST_NUMBER = 40

#: Longer texts than this do not fit into their words.
LONGEST_SHORT = 15
_LONG = -(1 << 63)
_PLUS, _MINUS, _ZERO = 43, 45, 48


class SymbolTable(NamedTuple):
    """The arrays that kernels read and write.

    Every constant has two words of 64 bits. The words of a short constant hold its kind and its text, so that equal
    words mean equal constants. The words of a long constant are hashes, and the second one is negative.
    """

    slots: npt.NDArray[np.int32]  # open-addressing hash table over the words: id + 1, or 0 for a free slot
    words: npt.NDArray[np.int64]  # two per id
    offsets: npt.NDArray[np.int64]  # where each constant begins in `pool`, and where the last one ends
    pool: Bytes  # kind byte and canonical text of every constant
    counts: npt.NDArray[np.int64]  # one number: how many constants there are


@inlined_kernel
def _mix(h: int, word: int) -> int:
    h = int64((h ^ word) * -7046029254386353131)
    return h ^ (h >> 29)


@inlined_kernel
def _hash(first: int, second: int) -> int:
    """Hash two words. The first is mixed by itself, so that neighbours like `object12|7` and `object13|6` differ."""
    return _mix(_mix(0, first), second)


@inlined_kernel
def add_group(h: int, group: int, length: int) -> int:
    """Extend the first word of a text, now `length` bytes long, by its last 8 bytes; one group is stored as it is."""
    return int64(group) if length == 8 else _mix(h, int64(group))


@inlined_kernel
def second_word(h: int, last: int, length: int, kind: int) -> int:
    """Build the second word: the bytes after the last full group of 8, with kind and length in front of them."""
    if length > LONGEST_SHORT:
        return _mix(_mix(h, last), kind) | _LONG
    mark = (1 if kind == NUMBER_KIND else 2) + (4 if length >= 8 else 0)
    return (mark << (8 * (length & 7))) | last


@inlined_kernel
def first_word(data: Bytes, start: int, end: int) -> tuple[int, int]:
    """Build the first word of a text; also return the bytes after its last full group of 8."""
    h = 0
    last = 0
    for i in range(start, end):
        last = (last << 8) | byte(data, i)
        if (i - start) & 7 == 7:
            h = add_group(h, last, i - start + 1)
            last = 0
    return h, last


@inlined_kernel
def intern_words(table: SymbolTable, data: Bytes, start: int, end: int, kind: int, first: int, second: int) -> int:
    """Return the id of the constant whose canonical text is `data[start:end]`; add the constant if it is new.

    The table must have room for one more constant.
    """
    mask = len(table.slots) - 1
    at = _hash(first, second) & mask
    while table.slots[uint64(at)] != 0:
        known = int64(table.slots[uint64(at)]) - 1
        if (
            table.words[uint64(2 * known)] == first
            and table.words[uint64(2 * known + 1)] == second
            and (second > 0 or _is_same(table, known, data, start, end, kind))
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


@inlined_kernel
def read_slot(table: SymbolTable, first: int, second: int) -> int:
    """Read the first slot of a constant: 0, or an id + 1, which may belong to another constant."""
    return int64(table.slots[uint64(_hash(first, second) & (len(table.slots) - 1))])


@inlined_kernel
def check_slot(table: SymbolTable, known: int, first: int, second: int) -> int:
    """Return `known`, the content of a slot, if it is the short constant with these words, else 0."""
    at = uint64(2 * max(int64(known) - 1, 0))
    same = (table.words[at] == first) & (table.words[at + uint64(1)] == second) & (second > 0)
    return known if same else 0


@inlined_kernel
def _is_same(table: SymbolTable, known: int, data: Bytes, start: int, end: int, kind: int) -> bool:
    """Return whether a long constant has this text and kind; it is compared 8 bytes at a time, the last ones twice."""
    offset, size = table.offsets[known], end - start
    if table.offsets[known + 1] - offset != size + 1 or table.pool[offset] != kind:
        return False
    at = 0
    while at < size - 8 and load_backwards(table.pool, offset + 1 + at) == load_backwards(data, start + at):
        at += 8
    return at >= size - 8 and load_backwards(table.pool, offset + size - 7) == load_backwards(data, end - 8)


@inlined_kernel
def intern_bytes(table: SymbolTable, data: Bytes, start: int, end: int, kind: int) -> int:
    """Do what `intern_words` does, for a text whose words are not known yet."""
    h, last = first_word(data, start, end)
    return intern_words(table, data, start, end, kind, h, second_word(h, last, end - start, kind))


@inlined_kernel
def bare_kind(data: Bytes, start: int, end: int) -> int:
    """Classify an argument without quotes: a number whose text is canonical (NUMBER_KIND), any other number (RATIONAL),
    a name (NAME_KIND), or -1 for a number that is too long for compiled code."""
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


@inlined_kernel
def intern_rational(table: SymbolTable, data: Bytes, start: int, end: int) -> int:
    """Return the id of a number. Its canonical text is written behind the pool's end, where there must be room."""
    _, numerator, denominator, _ = read_number(data, start, end)
    text = table.offsets[table.counts[0]] + LONGEST_NUMBER + 1
    after = write_rational(table.pool, text, numerator, denominator)
    return intern_bytes(table, table.pool, text, after, NUMBER_KIND)


@kernel
def intern_one(table: SymbolTable, data: Bytes, kind: int) -> int:
    """Do what `intern_bytes` does, when called from Python."""
    return intern_bytes(table, data, 0, len(data), kind)


@kernel
def intern_slices(
    table: SymbolTable, data: Bytes, offsets: npt.NDArray[np.int64], kind: int, ids: npt.NDArray[np.int32]
) -> None:
    """Write the ids of consecutive texts, all of one kind, or AS_WRITTEN as in fact text.

    A number that is too long for compiled code gets -1.
    """
    for i in range(len(offsets) - 1):
        tick()
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
def merge_tables(
    into: SymbolTable, other: SymbolTable, which: npt.NDArray[np.int64], ids: npt.NDArray[np.int32]
) -> None:
    """Intern the constants of another table that `which` lists; write their new ids at their old ids."""
    for i in which:
        start = other.offsets[i]
        ids[i] = intern_bytes(into, other.pool, start + 1, other.offsets[i + 1], other.pool[start])


@kernel
def intern_pool(into: SymbolTable, offsets: npt.NDArray[np.int64], pool: Bytes, ids: npt.NDArray[np.int32]) -> None:
    """Intern consecutive constants, each a kind byte and its text."""
    for i in range(len(ids)):
        ids[i] = intern_bytes(into, pool, offsets[i] + 1, offsets[i + 1], pool[offsets[i]])


@kernel
def copy_texts(table: SymbolTable, ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], pool: Bytes) -> None:
    """Copy the kind bytes and texts of some constants into `pool`, at `offsets`."""
    for i in range(len(ids)):
        start = table.offsets[ids[i]]
        for j in range(offsets[i + 1] - offsets[i]):
            pool[offsets[i] + j] = table.pool[start + j]


@kernel
def write_words(table: SymbolTable) -> None:
    """Compute the words of all constants anew."""
    for id in range(table.counts[0]):
        start, end = table.offsets[id] + 1, table.offsets[id + 1]
        h, last = first_word(table.pool, start, end)
        table.words[2 * id] = h
        table.words[2 * id + 1] = second_word(h, last, end - start, table.pool[start - 1])


@kernel
def fill_slots(table: SymbolTable) -> None:
    """Enter all constants into empty slots."""
    mask = len(table.slots) - 1
    for id in range(table.counts[0]):
        at = _hash(table.words[2 * id], table.words[2 * id + 1]) & mask
        while table.slots[at] != 0:
            at = (at + 1) & mask
        table.slots[at] = id + 1
