"""Bring whole relations into a store: faster than record by record for a predicate that has no facts there yet."""

from __future__ import annotations

import numpy as np

from tidelog.engine.array_room import enlarge
from tidelog.engine.fact_store import Store
from tidelog.engine.store_tables import (
    ARGS,
    CAPACITY,
    ENDLESS,
    HELD,
    LATEST,
    LENGTH,
    N_ARGS,
    N_ATOMS,
    N_INDEXES,
    N_IV,
    NEWS,
    PRED,
    SIZE,
    START,
    TAKEN,
    Array,
    Number,
    enter_atoms,
)
from tidelog.jit import kernel, tick
from tidelog.numeric.rows import Rows
from tidelog.timeline.grid import POS_INF


def reserve(store: Store, rows: int) -> None:
    """Make room in a new store for a problem with this many facts: pages that are not touched yet take no memory."""
    store.atoms, store.args = enlarge(store.atoms, 2 * rows), enlarge(store.args, 4 * rows)
    store.iv = enlarge(store.iv, 4 * rows)


def load(store: Store, pred: int, rows: Rows) -> None:
    """Insert maximal intervals that are sorted by arguments and time; nothing is derived from them."""
    if store.preds[pred, SIZE] or store.preds[pred, N_INDEXES]:
        store.insert(pred, rows)
        return
    columns = np.ascontiguousarray(rows.args, np.int32)
    count, room = map(int, _measure(columns, rows.lo))
    store.make_room(atoms=count, args=count * len(columns), iv=room)
    first = int(store.meta[N_ATOMS])
    _append(pred, columns, rows.lo, rows.hi, store.preds, store.atoms, store.args, store.iv, store.meta)
    enter_atoms(first, first + count, store.atoms, store.args, store.preds, store.table)


@kernel
def _measure(columns: Array, lo: Array) -> tuple[Number, Number]:
    """Return the number of atoms of rows that are sorted by arguments, and the room that their intervals need."""
    n_atoms, room, size = 0, 0, 0
    for row in range(lo.shape[0]):
        tick()
        same = row > 0
        for k in range(columns.shape[0]):
            same = same and columns[k, row] == columns[k, row - 1]
        n_atoms, size = n_atoms + (not same), size + 1 if same else 1
        # Room doubles where an interval is one more than a power of two.
        if size == 1:
            room += 1
        elif (size - 1) & (size - 2) == 0:
            room += size - 1
    return n_atoms, room


@kernel
def _append(
    pred: int, columns: Array, lo: Array, hi: Array, preds: Array, atoms: Array, args: Array, iv: Array, meta: Array
) -> None:
    """Write the atoms of a predicate that has none yet, from maximal intervals that are sorted by arguments and time.

    There must be room for them. They are not entered into any hash table.
    """
    arity, rows = columns.shape[0], lo.shape[0]
    row = 0
    while row < rows:
        tick()
        atom, n_args, start = meta[N_ATOMS], meta[N_ARGS], meta[N_IV]
        for k in range(arity):
            args[n_args + k] = columns[k, row]
        length, capacity, same = 0, 1, True
        while same:
            iv[start + length, 0], iv[start + length, 1] = lo[row], hi[row]
            preds[pred, LATEST] = max(preds[pred, LATEST], hi[row])
            length, row = length + 1, row + 1
            same = row < rows
            for k in range(arity):
                same = same and columns[k, row] == args[n_args + k]
        while capacity < length:
            capacity *= 2
        atoms[atom, PRED], atoms[atom, ARGS] = pred, n_args
        atoms[atom, START], atoms[atom, LENGTH], atoms[atom, CAPACITY] = start, length, capacity
        meta[N_ATOMS] += 1
        meta[N_ARGS] += arity
        meta[N_IV] += capacity
        meta[HELD] += length
        meta[ENDLESS] += iv[start + length - 1, 1] == POS_INF
        meta[NEWS] += length
        meta[TAKEN] += length
        preds[pred, SIZE] += 1
