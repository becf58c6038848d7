"""Parts of a store: the facts of some keys, to evaluate them apart and to put them back.

`positions` says by which argument each predicate is keyed, as a number, or -1 where it is shared by all keys (see
`compiler.key_arguments`). `wanted` says of every constant whether it is one of the keys. A part has the facts of the
keys and all shared ones; it puts back the former only.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from tidelog.engine import agenda, store_tables
from tidelog.engine.atom_links import AtomLinks
from tidelog.engine.fact_store import Int64s, Store, make_empty_code
from tidelog.engine.store_tables import (
    ARGS,
    ARITY,
    CAPACITY,
    ENDLESS,
    HELD,
    KNOWN_TO,
    LENGTH,
    N_ARGS,
    N_ATOMS,
    N_IV,
    NEXT_DUE,
    PRED,
    SIZE,
    START,
    Array,
    Number,
)
from tidelog.jit import inlined_kernel, kernel
from tidelog.timeline.grid import NEG_INF, POS_INF, STANDING_END

Bools = NDArray[np.bool_]


def take_part(store: Store, positions: Int64s, wanted: Bools, room: int) -> Store:
    """Return a store with the facts of some keys and all shared ones, and room for this many more.

    Facts that stand end where they are known.
    """
    part = copy(store)
    part.links = AtomLinks()
    part.preds, part.meta = store.preds.copy(), store.meta.copy()
    n_atoms = int(store.meta[N_ATOMS])
    found = np.empty(n_atoms, np.int32)
    count, n_args, n_iv = _find_part(store.atoms, store.args, n_atoms, store.preds, positions, wanted, found)
    # Atoms have many intervals, or they are those of keys that are mostly known.
    more, widest = min(room, 3 * count + 512) + 64, int(store.preds[:, ARITY].max(initial=1))
    part.atoms = np.zeros((count + more, store.atoms.shape[1]), np.int32)
    part.args, part.iv = np.zeros(n_args + widest * more, np.int32), np.zeros((n_iv + 2 * room + 64, 2), np.int64)
    _copy_atoms(found, count, store.preds, store.atoms, store.args, store.iv, part.meta, part.atoms, part.args, part.iv)
    part.meta[store_tables.FREE :] = -1
    part.preds[:, SIZE] = np.bincount(part.atoms[:count, PRED], minlength=len(part.preds))
    part.later = np.empty(store.later_end + 64, np.int64)
    part.later_end = int(_copy_waiting(store.later, store.later_end, part.preds, positions, wanted, True, part.later))
    part.meta[NEXT_DUE] = NEG_INF if part.later_end else POS_INF
    part.log = np.zeros((1, 3), np.int64)
    part.agenda = agenda.empty()
    part.rebuild_tables()
    return part


def replace_part(store: Store, part: Store, positions: Int64s, wanted: Bools) -> None:
    """Replace the facts of some keys by those of a part. They are looked at in the next evaluation."""
    n_atoms = int(part.meta[N_ATOMS])
    found = np.empty(n_atoms, np.int32)
    keyed = np.where(positions < 0, NOTHING_KEYED, positions)
    count, _, room = _find_part(part.atoms, part.args, n_atoms, part.preds, keyed, wanted, found)
    _clear_part(store.atoms, store.args, store.iv, store.meta, keyed, wanted)
    store.links.forget()
    widest = 3 + int(store.preds[:, ARITY].max(initial=0))
    queue = np.empty(room * widest + 1, np.int64)
    end = int(_pack_atoms(found, count, part.preds, part.atoms, part.args, part.iv, queue))
    store.work(make_empty_code(len(store.preds)), queue, end)
    store.log[0, 0] = 0
    if not store.later_end and not part.later_end:
        return
    waiting = np.empty(store.later_end + part.later_end + 64, np.int64)
    kept = int(_copy_waiting(store.later, store.later_end, store.preds, keyed, ~wanted, True, waiting))
    more = int(_copy_waiting(part.later, part.later_end, store.preds, keyed, wanted, False, waiting[kept:]))
    store.later, store.later_end = waiting, kept + more
    if store.later_end:
        store.meta[NEXT_DUE] = NEG_INF


#: Among positions: nothing of this predicate is wanted.
NOTHING_KEYED = -2


@inlined_kernel
def _is_wanted(position: int, values: Array, at: int, wanted: Array) -> bool:
    """Return whether an atom, whose arguments begin at a place, belongs to a part."""
    if position < 0:
        return bool(position == -1)
    return bool(wanted[values[at + position]])


@kernel
def _find_part(
    atoms: Array, args: Array, n_atoms: int, preds: Array, positions: Array, wanted: Array, found: Array
) -> tuple[Number, Number, Number]:
    """Write the atoms of a part that hold somewhere; return their number, that of their arguments, and their room."""
    count, n_args, room = 0, 0, 0
    for atom in range(n_atoms):
        length, pred = atoms[atom, LENGTH], atoms[atom, PRED]
        if length and _is_wanted(positions[pred], args, atoms[atom, ARGS], wanted):
            found[count] = atom
            count += 1
            n_args += preds[pred, ARITY]
            size = 1
            while size < length:
                size *= 2
            room += size
    return count, n_args, room


@kernel
def _copy_atoms(
    found: Array,
    count: int,
    preds: Array,
    atoms: Array,
    args: Array,
    iv: Array,
    meta: Array,
    new_atoms: Array,
    new_args: Array,
    new_iv: Array,
) -> None:
    """Copy atoms with their intervals into new arrays, and count them in `meta`."""
    n_args, room = 0, 0
    meta[HELD], meta[ENDLESS] = 0, 0
    for place in range(count):
        atom = found[place]
        pred, length, start = atoms[atom, PRED], atoms[atom, LENGTH], atoms[atom, START]
        size = 1
        while size < length:
            size *= 2
        new_atoms[place, PRED], new_atoms[place, LENGTH], new_atoms[place, CAPACITY] = pred, length, size
        new_atoms[place, ARGS], new_atoms[place, START] = n_args, room
        for k in range(preds[pred, ARITY]):
            new_args[n_args + k] = args[atoms[atom, ARGS] + k]
        for i in range(length):
            new_iv[room + i, 0], new_iv[room + i, 1] = iv[start + i, 0], iv[start + i, 1]
            if iv[start + i, 1] == STANDING_END:
                new_iv[room + i, 1] = preds[pred, KNOWN_TO]
        meta[HELD] += length
        meta[ENDLESS] += iv[start + length - 1, 1] == POS_INF
        n_args, room = n_args + preds[pred, ARITY], room + size
    meta[N_ATOMS], meta[N_ARGS], meta[N_IV] = count, n_args, room


@kernel
def _clear_part(atoms: Array, args: Array, iv: Array, meta: Array, positions: Array, wanted: Array) -> None:
    """Let the atoms of a part hold nowhere."""
    for atom in range(meta[N_ATOMS]):
        length = atoms[atom, LENGTH]
        if length and _is_wanted(positions[atoms[atom, PRED]], args, atoms[atom, ARGS], wanted):
            meta[HELD] -= length
            if iv[atoms[atom, START] + length - 1, 1] == POS_INF:
                meta[ENDLESS] -= 1
            atoms[atom, LENGTH] = 0


@kernel
def _pack_atoms(found: Array, count: int, preds: Array, atoms: Array, args: Array, iv: Array, queue: Array) -> Number:
    """Write the intervals of atoms as records into a queue with room for them; return where they end."""
    end = 0
    for place in range(count):
        atom = found[place]
        pred = atoms[atom, PRED]
        for i in range(atoms[atom, START], atoms[atom, START] + atoms[atom, LENGTH]):
            queue[end], queue[end + 1], queue[end + 2] = pred, iv[i, 0], iv[i, 1]
            if iv[i, 1] == STANDING_END:
                queue[end + 2] = preds[pred, KNOWN_TO]
            for k in range(preds[pred, ARITY]):
                queue[end + 3 + k] = args[atoms[atom, ARGS] + k]
            end += 3 + preds[pred, ARITY]
    return end


@kernel
def _copy_waiting(
    later: Array, end: int, preds: Array, positions: Array, wanted: Array, shared: bool, target: Array
) -> Number:
    """Copy the deferred records of keys, and with `shared` those of shared predicates; return where they end."""
    at, kept = 0, 0
    while at < end:
        width = 3 + preds[later[at], ARITY]
        position = positions[later[at]]
        if shared if position < 0 else wanted[later[at + 3 + position]]:
            for i in range(width):
                target[kept + i] = later[at + i]
            kept += width
        at += width
    return kept
