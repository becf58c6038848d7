"""How large the arrays of a store are made, so that they seldom have to grow."""

from __future__ import annotations

import numpy as np

from tidelog.engine.agenda import HEAPS, Agenda
from tidelog.engine.store_tables import Array

#: Arrays with fewer rows than the first are quadrupled when they are full, since every time that one is full a call of
#: compiled code is interrupted. Those with more rows than the second are tripled, and others grow by half.
_SMALL, _LARGE = 1 << 10, 1 << 14
#: Rows for which an array keeps room although few are left: a stream whose steps have some thousand facts, which are
#: forgotten at once, fills it again in the next step.
_KEPT = 1 << 12


def leave_room(count: int, before: int) -> int:
    """Return for how many rows an array needs room that has `count` of the rows it had before.

    What is held often grows to what it was again: then the array need not grow in many steps.
    """
    return 64 + max(count, min(8 * count + _KEPT, before))


def enlarge(array: Array, rows: int) -> Array:
    """Return the array, or a larger copy of it with room for this many rows."""
    if rows <= len(array):
        return array
    # Large arrays are copied rarely: pages that are not touched yet take no memory.
    factor = 4 if len(array) < _SMALL else 3 if len(array) > _LARGE else 1.5
    larger = np.empty((max(rows, int(len(array) * factor)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def copy_used(array: Array, rows: int) -> Array:
    """Return an array with the same room and a copy of the first rows."""
    made = np.empty(array.shape, array.dtype)  # pages that are not touched cost nothing
    made[:rows] = array[:rows]
    return made


def copy_agenda(agenda: Agenda, atoms: int) -> Agenda:
    """Return a copy of an agenda for this many atoms, with the same room."""
    listed, scheduled = int(agenda.lengths[:HEAPS].max()), int(agenda.lengths[HEAPS:].max())
    return Agenda(
        agenda.flags.copy(),  # zero for atoms to come
        copy_used(agenda.first, atoms),
        copy_used(agenda.lists, listed),
        copy_used(agenda.times, scheduled),
        copy_used(agenda.atoms, scheduled),
        agenda.lengths.copy(),
    )
