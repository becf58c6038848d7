"""The dictionary of constants: every distinct constant is one int32.

A constant is kept as bytes in one pool, not as a Python object, so that millions of them stay light: a kind byte
(number or name) and its canonical text. `1`, `1.0` and `01` share the canonical text `1`; `abc` and `"abc"` share
`abc`. A hash table finds constants again; `symbol_kernels` has the arrays and the compiled code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tidelog.data.constant_order import compute_ranks
from tidelog.data.number_scanner import Bytes
from tidelog.data.symbol_kernels import (
    LONGEST_NUMBER,
    NAME_KIND,
    NUMBER_KIND,
    SymbolTable,
    copy_texts,
    fill_slots,
    intern_one,
    intern_pool,
    intern_slices,
    merge_tables,
    write_words,
)
from tidelog.language.syntax import Value

Element = TypeVar("Element", bound=np.generic)


class Symbols:
    """An append-only dictionary of constants.

    >>> symbols = Symbols()
    >>> symbols.intern("abc"), symbols.intern(Fraction(1, 2)), symbols.intern("abc")
    (0, 1, 0)
    >>> symbols.value(1), "abc" in symbols, "ab" in symbols
    (Fraction(1, 2), True, False)
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
        self._ordered: SymbolTable | None = None

    def __len__(self) -> int:
        return int(self._table.counts[0])

    def __contains__(self, value: object) -> bool:
        """Return whether a constant is in the dictionary, without adding it."""
        kind = NAME_KIND if isinstance(value, str) else NUMBER_KIND
        text = bytes([kind]) + str(value).encode()
        pool, offsets = self.texts()
        data, at = pool.tobytes(), -1
        while (at := data.find(text, at + 1)) >= 0:
            id = int(np.searchsorted(offsets, at))
            if offsets[id] == at and offsets[id + 1] == at + len(text):
                return True
        return False

    def intern(self, value: Value) -> int:
        """Return the id of a constant; a new constant gets the next free one."""
        kind = NAME_KIND if isinstance(value, str) else NUMBER_KIND
        data = np.frombuffer(str(value).encode(), np.uint8)
        return int(intern_one(self.reserve(1, len(data)), data, kind))

    def value(self, id: int) -> Value:
        """Return the constant with an id."""
        start, end = self._table.offsets[id : id + 2]
        text = self._table.pool[start + 1 : end].tobytes().decode()
        return text if self._table.pool[start] == NAME_KIND else Fraction(text)

    def format(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the texts of some constants, without quotes."""
        pool, offsets = self.texts()
        data, ends = pool.tobytes(), offsets.tolist()
        if data.isascii():
            text = data.decode("ascii")
            yield from (text[ends[id] + 1 : ends[id + 1]] for id in ids)
        else:
            yield from (data[ends[id] + 1 : ends[id + 1]].decode() for id in ids)

    def copy(self) -> Symbols:
        """Return an independent dictionary with the same constants and ids."""
        other = Symbols()
        other._table = SymbolTable._make(column.copy() for column in self._table)
        return other

    def merge(self, other: Symbols, which: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.int32]:
        """Intern the constants of another dictionary, all or those in `which`; return the new id of each old id."""
        ids = np.empty(len(other), np.int32)
        which = np.arange(len(other)) if which is None else which
        offsets = other._table.offsets
        size = int((offsets[which + 1] - offsets[which]).sum())
        merge_tables(self.reserve(len(which), size), other._table, which, ids)
        return ids

    def texts(self) -> tuple[Bytes, npt.NDArray[np.int64]]:
        """Return the kind bytes and texts of all constants in one array, and where each begins (and the last one ends).

        The arrays are views of this dictionary: copy them to keep them.
        """
        count = len(self)
        return self._table.pool[: self._table.offsets[count]], self._table.offsets[: count + 1]

    def adopt_texts(self, pool: Bytes, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32] | None:
        """Intern the constants of another dictionary's `texts`; return their new ids, or None if all ids stay the same.

        Where the texts begin with those of this dictionary, as when a saved state is loaded, their arrays are adopted
        as a whole.
        """
        other = Symbols()
        count = len(offsets) - 1
        words = np.empty(2 * count + 2, np.int64)
        slots = np.zeros(1 << (2 * count + 2).bit_length(), np.int32)
        other._table = SymbolTable(slots, words, offsets, pool, np.array([count]))
        mine, starts = self.texts()
        if np.array_equal(offsets[: len(starts)], starts) and np.array_equal(pool[: len(mine)], mine):
            write_words(other._table)
            fill_slots(other._table)
            self._table = other._table
            return None
        return self.merge(other)

    def texts_of(self, ids: npt.NDArray[np.int32]) -> tuple[Bytes, npt.NDArray[np.int64]]:
        """Return a copy of the texts of some constants, in the form of `texts`."""
        lengths = self._table.offsets[ids + 1] - self._table.offsets[ids]
        offsets = np.zeros(len(ids) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        pool = np.empty(int(offsets[-1]), np.uint8)
        copy_texts(self._table, ids, offsets, pool)
        return pool, offsets

    def intern_encoded(self, pool: Bytes, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Intern constants in the form of `texts`, each with its kind byte; return their ids."""
        ids = np.empty(len(offsets) - 1, np.int32)
        intern_pool(self.reserve(len(ids), len(pool)), offsets, pool, ids)
        return ids

    def intern_texts(self, data: Bytes, offsets: npt.NDArray[np.int64], kind: int) -> npt.NDArray[np.int32]:
        """Intern consecutive texts without kind bytes; return their ids. See `intern_slices` for `kind`."""
        ids = np.empty(len(offsets) - 1, np.int32)
        size = int(offsets[-1] - offsets[0]) + LONGEST_NUMBER * len(ids)
        intern_slices(self.reserve(len(ids), size), data, offsets, kind, ids)
        return ids

    def reserve(self, more: int, size: int) -> SymbolTable:
        """Return the arrays, with room for `more` new constants whose texts have `size` bytes in total."""
        table = self._table
        count = len(self) + more + 1
        needed = int(table.offsets[len(self)]) + size + more + 4 * LONGEST_NUMBER
        if count >= len(table.offsets):
            table = table._replace(
                words=grow_array(table.words, 2 * count + 2), offsets=grow_array(table.offsets, count + 1)
            )
        if needed > len(table.pool):
            table = table._replace(pool=grow_array(table.pool, needed))
        if 2 * count > len(table.slots):
            table = table._replace(slots=np.zeros(1 << (2 * count - 1).bit_length(), np.int32))
            fill_slots(table)
        self._table = table
        return table

    def ranks(self) -> npt.NDArray[np.int64]:
        """Return the rank of every id in the order of constants: numbers by value, then names by code points."""
        if len(self._ranks) != len(self):
            self._ranks, self._ordered = compute_ranks(self._table), None
        return self._ranks

    def ordered(self) -> SymbolTable:
        """Return a table of the texts by rank: rows that are sorted by constants read it from front to back.

        It finds no constant by its text.
        """
        ranks = self.ranks()
        if self._ordered is None:
            ids = np.empty(len(ranks), np.int32)
            ids[ranks] = np.arange(len(ranks), dtype=np.int32)
            pool, offsets = self.texts_of(ids)
            none = self._table.slots[:0], self._table.words[:0]
            self._ordered = SymbolTable(*none, offsets, pool, self._table.counts)
        return self._ordered


def grow_array(array: npt.NDArray[Element], size: int) -> npt.NDArray[Element]:
    """Copy an array into one of at least `size` elements, and at least twice as long."""
    larger = np.empty(max(size, len(array) * 2), array.dtype)
    larger[: len(array)] = array
    return larger
