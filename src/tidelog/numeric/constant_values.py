"""The values of constants as columns: numbers as numerators and denominators, everything else by its id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidelog.data.symbol_table import Symbols
from tidelog.language.syntax import Value
from tidelog.numeric.numbers import Numbers
from tidelog.numeric.rows import Int32s, Int64s

BoolArray = NDArray[np.bool_]

#: Values of constants that are kept as Python objects.
_MAX_KNOWN = 100_000


@dataclass(frozen=True, slots=True)
class Column:
    """One value per row: `numbers[0]` over `numbers[1]`, as the kernels have it; ids are -1 until they are needed."""

    ids: Int32s
    numbers: Int64s

    def where(self, keep: BoolArray) -> Column:
        return Column(self.ids[keep], self.numbers[:, keep])


@dataclass
class ResultCache:
    """Results of a function by the ids of its operands, for one dictionary of constants."""

    symbols: Symbols | None = None
    results: dict[tuple[int, ...], int] = field(default_factory=dict)

    def use(self, symbols: Symbols, more: int, most: int) -> dict[tuple[int, ...], int]:
        """Return the results, with room for more; forget those with other ids, and all if they become too many."""
        if symbols is not self.symbols or len(self.results) + more > most:
            self.symbols = symbols
            self.results.clear()
        return self.results


class ConstantValues:
    """The values of a dictionary's constants, as columns and as Python objects."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self._known: dict[int, Value] = {}
        self._symbols = numbers.symbols

    @property
    def symbols(self) -> Symbols:
        return self.numbers.symbols

    def read(self, ids: Int32s) -> Column:
        """Return the column of some constants."""
        constants = self.numbers.constants()
        numbers = np.empty((2, len(ids)), np.int64)
        # With this mode, which also skips a test of every id, numpy writes straight to `out`.
        np.take(constants.numerators, ids, out=numbers[0], mode="clip")
        np.take(constants.denominators, ids, out=numbers[1], mode="clip")
        return Column(ids, numbers)

    def intern(self, column: Column) -> Int32s:
        """Return the ids of a column's values, none of which is undefined."""
        missing = column.ids < 0
        if not missing.any():
            return column.ids
        every = bool(missing.all())
        above, below = column.numbers if every else column.numbers[:, missing]
        shared = int(below[0])
        found = self.numbers.intern(above, shared if (below == shared).all() else below)
        if every:
            return found
        ids = column.ids.copy()
        ids[missing] = found
        return ids

    def value(self, id: int) -> Value:
        """Return the constant with an id."""
        if self._symbols is not self.symbols or len(self._known) >= _MAX_KNOWN:
            self._symbols = self.symbols
            self._known.clear()
        found = self._known.get(id)
        if found is None:
            found = self._known[id] = self.symbols.value(id)
        return found

    def intern_values(self, values: Sequence[Value]) -> Int32s:
        """Return the ids of constants."""
        return np.array([self.symbols.intern(value) for value in values], np.int32)

    def repeat(self, value: Value, count: int) -> Column:
        """Return a column of one constant."""
        one = self.read(self.intern_values([value]))
        return Column(np.repeat(one.ids, count), np.repeat(one.numbers, count, axis=1))
