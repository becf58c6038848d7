"""Numbers among the constants, as arrays.

A constant is a text in the dictionary (`data.symbol_table`). Computing needs values: `Numbers` decodes each text once,
when it first sees it, and interns the results of computations, many at a time. It creates no Python object per number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidelog.data.symbol_kernels import LONGEST_NUMBER
from tidelog.data.symbol_table import Symbols, grow_array
from tidelog.numeric.number_kernels import LARGE as LARGE
from tidelog.numeric.number_kernels import (
    NOT_A_NUMBER,
    Constants,
    Interning,
    Scratch,
    decode_numbers,
    intern_rationals,
)
from tidelog.numeric.rows import Int32s, Int64s

_NONE, _FEW = np.empty(0, np.int64), np.empty(0, np.int32)
#: Numbers that are interned at once: the dictionary makes room for all of them, though most may be known.
_BLOCK = 1 << 14
#: Numbers that are looked up at once: enough to keep the memory busy, few enough for the innermost cache.
_TOGETHER = 128
#: For each denominator that many numbers share, the ids of up to this many multiples are remembered.
_REMEMBERED = 1 << 22
#: ... for this many denominators besides 1.
_DENOMINATORS = 3


class Numbers:
    """The values of all constants of a dictionary, which may grow.

    >>> symbols = Symbols()
    >>> numbers = Numbers(symbols)
    >>> ids = numbers.intern(np.array([6, -1]), np.array([4, 3]))
    >>> [str(symbols.value(id)) for id in ids]
    ['3/2', '-1/3']
    >>> numbers.numerators(ids).tolist(), numbers.denominators(ids).tolist()
    ([3, -1], [2, 3])
    >>> numbers.is_number(np.array([symbols.intern("abc"), ids[0]])).tolist()
    [False, True]
    """

    def __init__(self, symbols: Symbols) -> None:
        self.replace(symbols)

    def replace(self, symbols: Symbols) -> None:
        """Change to another dictionary, such as one without the constants that a stream has forgotten."""
        self.symbols = symbols
        self._numerators, self._denominators = np.empty(64, np.int64), np.empty(64, np.int64)
        self._known = 0
        self._large = 0
        self._interned = 0
        self._remembered = {1: _FEW}
        words = [np.empty(_TOGETHER, np.int64) for _ in range(4)]
        self._scratch = Scratch(
            np.empty(_TOGETHER * LONGEST_NUMBER, np.uint8), np.empty(_TOGETHER + 1, np.int64), *words
        )

    def constants(self) -> Constants:
        """Return the current values of all constants, for compiled code."""
        pool, offsets = self.symbols.texts()
        count = len(offsets) - 1
        if count > self._known:
            if count > len(self._numerators):
                self._numerators = grow_array(self._numerators, count)
                self._denominators = grow_array(self._denominators, count)
            self._large += int(decode_numbers(pool, offsets, self._known, self._numerators, self._denominators))
            self._known = count
        ranks = np.asarray(self.symbols.ranks(), np.int64) if self._large else _NONE
        return Constants(self._numerators[:count], self._denominators[:count], pool, offsets, ranks)

    def numerators(self, ids: Int32s) -> Int64s:
        """Return the numerators of constants; 0 for those that are no number or a LARGE one."""
        found: Int64s = self.constants().numerators[ids]
        return found

    def denominators(self, ids: Int32s) -> Int64s:
        """Return the denominators of constants: positive, or NOT_A_NUMBER, or LARGE for a number beyond 62 bits."""
        found: Int64s = self.constants().denominators[ids]
        return found

    def is_number(self, ids: Int32s) -> NDArray[np.bool_]:
        """Return which constants are numbers, LARGE ones included."""
        found: NDArray[np.bool_] = self.denominators(ids) != NOT_A_NUMBER
        return found

    def intern(self, numerators: Int64s, denominators: Int64s | int = 1) -> Int32s:
        """Return the ids of rationals, which need not be reduced; the denominators are positive."""
        ids = np.empty(len(numerators), np.int32)
        self.intern_into(ids, numerators, denominators)
        return ids

    def intern_into(self, ids: Int32s, numerators: Int64s, denominators: Int64s | int = 1) -> None:
        """Do what `intern` does, into an array."""
        self._interned += len(ids)
        numerators = np.ascontiguousarray(numerators)  # the layout that kernels are compiled for
        if isinstance(denominators, int):
            remembered = self._remember(denominators, int(numerators.max(initial=0)))
            request = Interning(numerators, _NONE, denominators, remembered, ids)
        else:
            request = Interning(numerators, np.ascontiguousarray(denominators), 0, _FEW, ids)
        for first in range(0, len(ids), _BLOCK):
            last = min(first + _BLOCK, len(ids))
            table = self.symbols.reserve(last - first, (last - first) * LONGEST_NUMBER)
            intern_rationals(table, request, first, last, self._scratch)

    def _remember(self, denominator: int, largest: int) -> Int32s:
        """Return the known ids of multiples of 1/denominator, with room for numerators up to `largest`."""
        known = self._remembered.get(denominator, _FEW)
        if largest >= len(known) < _REMEMBERED:
            # A table is never much larger than the work that it saves.
            size = min(_REMEMBERED, 2 * largest, 16 * self._interned) + (1 << 10)
            if size > len(known):
                if len(self._remembered) > _DENOMINATORS:
                    self._remembered = {1: self._remembered[1]}
                known = np.concatenate([known, np.full(size - len(known), -1, np.int32)])
                self._remembered[denominator] = known
        return known
