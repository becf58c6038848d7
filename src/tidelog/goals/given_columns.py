"""Sets of constants, and the given facts that have such constants in their columns.

A set of constants is a sorted array of their numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tidelog.numeric.rows import Rows

#: A sorted set of constants.
Constants = NDArray[np.int32]
#: The numbers of rows.
Places = NDArray[np.int64]

NOTHING: Constants = np.empty(0, np.int32)
#: So few constants are compared with a column one by one.
_FEW = 4
#: A column that is scanned this often gets an index: sorting it takes about as long as this many scans.
_SCANS = 24


def join_sets(one: Constants, other: Constants) -> Constants:
    """Return the union of two sets."""
    if not len(one) or not len(other):
        return one if len(one) else other
    return np.union1d(one, other)


def contains(one: Constants, constant: int) -> bool:
    """Return whether a set has a constant."""
    place = int(np.searchsorted(one, constant))
    return place < len(one) and int(one[place]) == constant


class GivenColumns:
    """Looks up given facts by constants; `work` counts the rows that were looked at."""

    def __init__(self, given: Mapping[str, Rows], constants: int) -> None:
        self._given = given
        self._marks = np.zeros(constants, bool)
        self._scans: Counter[tuple[str, int]] = Counter()
        self._orders: dict[tuple[str, int], tuple[Places, Constants]] = {}
        self.work = 0

    def size(self, name: str) -> int:
        """Return how many facts of a predicate are given."""
        return len(self._given[name]) if name in self._given else 0

    def select(self, name: str, wanted: Mapping[int, Constants]) -> Places:
        """Return the rows that have one of the wanted constants at each of the positions."""
        rows = self._given[name]
        first = min(wanted, key=lambda position: len(wanted[position]))
        places = self._find(name, first, wanted[first])
        for position, constants in wanted.items():
            if position != first:
                places = places[self.is_among(rows.args[position, places], constants)]
        self.work += len(places) * len(wanted)
        return places

    def column(self, name: str, position: int, places: Places) -> Constants:
        """Return the constants at a position of some rows."""
        return self.collect(self._given[name].args[position, places])

    def collect(self, column: NDArray[np.int32]) -> Constants:
        """Return the constants of a column as a set."""
        if len(column) < len(self._marks) // 16:
            return np.unique(column)
        self._marks[column] = True
        found: Constants = np.flatnonzero(self._marks).astype(np.int32)
        self._marks[found] = False
        return found

    def is_among(self, column: NDArray[np.int32], constants: Constants) -> NDArray[np.bool_]:
        """Return a mask of the rows of a column that have one of the constants."""
        if len(constants) <= _FEW:
            found = np.zeros(len(column), bool)
            for constant in constants:
                found |= column == constant
            return found
        self._marks[constants] = True
        found = self._marks[column]
        self._marks[constants] = False
        return found

    def is_subset(self, one: Constants, other: Constants) -> bool:
        """Return whether all constants of one set are in the other."""
        return len(one) <= len(other) and bool(self.is_among(one, other).all())

    def intersect(self, one: Constants, other: Constants) -> Constants:
        """Return what two sets have in common."""
        one, other = (one, other) if len(one) <= len(other) else (other, one)
        self.work += len(one)
        return one[self.is_among(one, other)] if len(one) * 32 > len(other) else one[_find_sorted(one, other)]

    def subtract(self, one: Constants, other: Constants) -> Constants:
        """Return the constants of one set that the other has not."""
        self.work += len(one)
        return one[~(self.is_among(one, other) if len(one) * 32 > len(other) else _find_sorted(one, other))]

    def _find(self, name: str, position: int, constants: Constants) -> Places:
        """Return the rows that have one of the constants at a position: with a scan or, later, an index."""
        key = name, position
        column = self._given[name].args[position]
        if key not in self._orders:
            self._scans[key] += 1
            if self._scans[key] <= _SCANS:
                self.work += len(column)
                return np.flatnonzero(self.is_among(column, constants))
            self.work += _SCANS * len(column)
            order = np.argsort(column, kind="stable")
            self._orders[key] = order, column[order]
        order, column = self._orders[key]
        starts, ends = np.searchsorted(column, constants, "left"), np.searchsorted(column, constants, "right")
        lengths = ends - starts
        steps = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        found: Places = order[np.repeat(starts, lengths) + steps]
        return found


def _find_sorted(one: Constants, other: Constants) -> NDArray[np.bool_]:
    """Return a mask of the constants of a small set that are in a large one."""
    places = np.minimum(np.searchsorted(other, one), max(len(other) - 1, 0))
    found: NDArray[np.bool_] = other[places] == one if len(other) else np.zeros(len(one), bool)
    return found
