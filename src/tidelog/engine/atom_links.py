"""What runs of a store's plans note about its atoms, by their numbers: records in a queue, and atoms that follow.

None of it says more than the facts do, so it is made anew where atoms get other numbers, and is no part of a state.
"""

from __future__ import annotations

import numpy as np

from tidelog.engine.store_tables import ROUND, Array

#: How many links there is room for per atom.
_LINKS = 8


class AtomLinks:
    """The tables `queued`, `linked` and `links` of `store_tables.Tables`, for one array of atoms."""

    def __init__(self) -> None:
        self._atoms: Array | None = None

    def fit(self, atoms: Array) -> tuple[Array, Array, Array]:
        """Return the tables for an array of atoms: empty ones if they were for another array."""
        if atoms is not self._atoms:
            rows = len(atoms) + 1
            # Pages that are not touched take no memory: only recursive joins write here.
            self._queued, self._linked = np.zeros((rows, 2), np.int64), np.zeros((rows, 3), np.int32)
            self._links = np.zeros(_LINKS * rows, np.int32)
            self._queued[0, ROUND] = 1  # no record of this round is in the queue
            self._atoms = atoms
        return self._queued, self._linked, self._links

    def forget(self) -> None:
        """Empty the tables: facts that always held may have been removed."""
        self._atoms = None

    def __reduce__(self) -> tuple[type[AtomLinks], tuple[()]]:
        """Leave the tables behind when a store is copied or sent to another process."""
        return AtomLinks, ()
