"""The tables of a store, and the compiled code that searches and changes them.

Everything is an array of numbers. Hash tables are open addressing with linear probing; entries of an index that share
a key are a linked list; free blocks of the interval pool are linked through their first word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidelog.engine.agenda import Agenda
from tidelog.jit import Array as Array
from tidelog.jit import Number as Number
from tidelog.jit import allocating_kernel, inlined_kernel, kernel, read_by_rows, tick
from tidelog.timeline.grid import POS_INF, STANDING_END

#: Columns of an atom: its predicate, and where its arguments and intervals are.
PRED, ARGS, START, LENGTH, CAPACITY = range(5)

#: Counters of a store. NEWS counts new pieces of intervals, HELD the intervals of all atoms, ENDLESS those of them that
#: never end; NEXT_DUE is where the first of the deferred records begins, and RECURSION_NEWS counts new pieces of
#: recursions through time. From FREE on: the heads of the free lists of interval blocks of 1, 2, 4, ... intervals.
N_ATOMS, N_ARGS, N_IV, N_ENTRIES, N_KEYS, CLIPPED_LO, CLIPPED_HI, TAKEN, NEWS, HELD, ENDLESS = range(11)
NEXT_DUE, RECURSION_NEWS, FREE = range(11, 14)
META_SIZE = FREE + 40

#: Columns of a predicate: arity, transient (never stored), first index in the list, number of indexes, number of
#: atoms, the last position at which any of its facts has held, the agenda's purposes it is watched for (bits), and
#: whether new pieces of its intervals are logged. Then whether its facts may stand, the position up to which those that
#: stand are known to hold, and that up to which they are evaluated now.
ARITY, TRANSIENT, INDEXES, N_INDEXES, SIZE, LATEST, WATCHED, LOGGED, MAY_STAND, KNOWN_TO, AIM, PRED_SIZE = range(12)


#: A derived record may name its atom: the upper half of its first word is the number of the atom plus one.
NAMED = 1 << 32
#: For each atom, the last round in which a record named it, and the place of that record in the queue of that round.
#: The first row has this round, and atoms are in the rows behind.
ROUND, PLACE = range(2)
#: For each atom, where the atoms begin among `links` that a generated join derives from it, how many they are, and the
#: number of atoms plus one that the joined predicate had. The first row has the end of `links`.
LINKS, N_LINKS, LINKED_SIZE = range(3)
#: How many records are looked at ahead.
AHEAD = 16


@read_by_rows("scratch")
class Tables(NamedTuple):
    """The arrays of a store, as compiled code takes them.

    The first row of `log` holds the number of pieces that are logged; the others an atom and the ends of a piece each.
    `queued` says for each atom whether a derived record in the queue names it. `linked` and `links` hold the atoms that
    generated joins derive from an atom and facts that always hold. `resumed` says whether a record was inserted before
    a queue was full, and with what result: the number of pieces, the atom, and the ends of the interval around them.
    `ahead` is room for `look_ahead`.
    """

    preds: Array
    index_list: Array
    index_table: Array
    atoms: Array
    args: Array
    table: Array
    entries: Array
    keys: Array
    iv: Array
    meta: Array
    ranks: Array
    scratch: Array
    pieces: Array
    agenda: Agenda
    log: Array
    queued: Array
    linked: Array
    links: Array
    resumed: Array
    ahead: Array


@inlined_kernel
def _mix(h: Number, value: int) -> Number:
    h = np.uint64((h ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15))
    return h ^ (h >> np.uint64(29))


@inlined_kernel
def hash_atom(pred: int, values: Array, offset: int, arity: int) -> Number:
    """Return the hash of an atom."""
    h = _mix(np.uint64(0x51), pred)
    for i in range(arity):
        h = _mix(h, values[offset + i])
    return h


@inlined_kernel
def find_atom(pred: int, values: Array, offset: int, arity: int, atoms: Array, args: Array, table: Array) -> Number:
    """Return the slot of an atom in the hash table; it contains the atom, or -1 where the atom would go."""
    mask = table.shape[0] - 1
    slot = np.int64(hash_atom(pred, values, offset, arity) & np.uint64(mask))
    while True:
        atom = table[slot]
        if atom < 0:
            return slot
        if atoms[atom, PRED] == pred:
            at = atoms[atom, ARGS]
            same = True
            for i in range(arity):
                if args[at + i] != values[offset + i]:
                    same = False
                    break
            if same:
                return slot
        slot = (slot + 1) & mask


@kernel
def look_ahead(
    queue: Array,
    position: int,
    end: int,
    preds: Array,
    atoms: Array,
    args: Array,
    table: Array,
    iv: Array,
    meta: Array,
    ahead: Array,
) -> Number:
    """Read what is stored for the next records of a queue; return the position after them.

    Nothing comes of it but that all of it is in the processor's cache when the records are taken. Each loop does one
    step for all records, so the processor reads many places of the memory at a time instead of one after the other.
    There must be atoms.
    """
    mask = np.uint64(table.shape[0] - 1)
    count = 0
    while count < AHEAD and position < end:
        pred = queue[position]
        if pred < 0:
            position += 4
            continue
        atom = (pred >> 32) - 1
        pred &= NAMED - 1
        if not preds[pred, TRANSIENT]:
            ahead[count, 0] = np.int64(hash_atom(pred, queue, position + 3, preds[pred, ARITY]) & mask)
            if atom >= 0:
                ahead[count, 0] = -1 - atom
            count += 1
        position += 3 + preds[pred, ARITY]
    for i in range(count):
        ahead[i, 0] = max(table[ahead[i, 0]], 0) if ahead[i, 0] >= 0 else -1 - ahead[i, 0]
    for i in range(count):
        atom = ahead[i, 0]
        length = atoms[atom, LENGTH]
        ahead[i, 0] = min(atoms[atom, ARGS], args.shape[0] - 1)
        ahead[i, 1] = atoms[atom, START] + max(length - 1, 0)
    for i in range(count):
        ahead[i, 0] = args[ahead[i, 0]] + iv[ahead[i, 1], 1]
    return position


@inlined_kernel
def begin_round(queued: Array) -> None:
    """Begin a round: no record of earlier rounds is in the queue any more."""
    queued[0, ROUND] += 1


@inlined_kernel
def find_key(
    index: int, values: Array, count: int, index_table: Array, atoms: Array, args: Array, entries: Array, keys: Array
) -> Number:
    """Return the slot of a key of an index; it contains the first entry, or -1 where the key would go."""
    mask = keys.shape[0] - 1
    h = _mix(np.uint64(0x1F), index)
    for i in range(count):
        h = _mix(h, values[i])
    slot = np.int64(h & np.uint64(mask))
    while True:
        entry = keys[slot, 1]
        if entry < 0:
            return slot
        if keys[slot, 0] == index:
            at = atoms[entries[entry, 0], ARGS]
            same = True
            for i in range(count):
                if args[at + index_table[index, 1 + i]] != values[i]:
                    same = False
                    break
            if same:
                return slot
        slot = (slot + 1) & mask


@inlined_kernel
def index_atom(
    atom: int,
    index: int,
    index_table: Array,
    atoms: Array,
    args: Array,
    entries: Array,
    keys: Array,
    meta: Array,
    values: Array,
) -> None:
    """Add an atom to an index."""
    count = index_table[index, 0]
    at = atoms[atom, ARGS]
    for i in range(count):
        values[i] = args[at + index_table[index, 1 + i]]
    slot = find_key(index, values, count, index_table, atoms, args, entries, keys)
    entry = meta[N_ENTRIES]
    meta[N_ENTRIES] += 1
    if keys[slot, 1] < 0:
        meta[N_KEYS] += 1
    entries[entry, 0] = atom
    entries[entry, 1] = keys[slot, 1]
    keys[slot, 0] = index
    keys[slot, 1] = entry


@inlined_kernel
def first_after(iv: Array, start: int, length: int, at: int) -> Number:
    """Return the first interval of a list whose right end is at or after `at`."""
    # Streams arrive in time order and ask for recent intervals, which are at the end of the list.
    if length == 0 or iv[start + length - 1, 1] < at:
        return length
    lo, hi = 0, length - 1
    while lo < hi:
        mid = (lo + hi) >> 1
        if iv[start + mid, 1] < at:
            lo = mid + 1
        else:
            hi = mid
    return lo


@inlined_kernel
def _block(meta: Array, iv: Array, capacity: int, rank: int) -> Number:
    """Return a free block of intervals, or -1 where the pool is full."""
    start = meta[FREE + rank]
    if start >= 0:
        meta[FREE + rank] = iv[start, 0]
        return start
    start = meta[N_IV]
    if start + capacity > iv.shape[0]:
        return -1
    meta[N_IV] += capacity
    return start


@inlined_kernel
def insert(atom: int, lo: int, hi: int, atoms: Array, iv: Array, meta: Array, pieces: Array) -> tuple[int, int, int]:
    """Add [lo,hi] to an atom; return the number of new pieces (in `pieces`) and the maximal interval around them.

    Return -1 where the pool of intervals is full; nothing has changed then.
    """
    start, length, capacity = atoms[atom, START], atoms[atom, LENGTH], atoms[atom, CAPACITY]
    first = first_after(iv, start, length, lo - 1)
    last = first
    merged_lo, merged_hi = lo, hi
    n, at = 0, lo
    while last < length and iv[start + last, 0] <= hi + 1:
        known_lo, known_hi = iv[start + last, 0], iv[start + last, 1]
        if at < known_lo:
            pieces[n, 0], pieces[n, 1] = at, min(known_lo - 1, hi)
            n += 1
        at = max(at, known_hi + 1)
        merged_lo, merged_hi = min(merged_lo, known_lo), max(merged_hi, known_hi)
        last += 1
    if at <= hi:
        pieces[n, 0], pieces[n, 1] = at, hi
        n += 1
    if n == 0:
        return 0, merged_lo, merged_hi
    grown = length - (last - first) + 1
    endless = 1 if hi == POS_INF and (length == 0 or iv[start + length - 1, 1] != POS_INF) else 0
    # Moving intervals is work, too: it counts towards the allowance of a search.
    meta[TAKEN] += (length - last) >> 6
    if grown > capacity:
        rank = 0
        while (1 << rank) < capacity:
            rank += 1
        new = _block(meta, iv, max(1, capacity * 2), rank + 1 if capacity else 0)
        if new < 0:
            return -1, merged_lo, merged_hi
        for i in range(first):
            iv[new + i, 0], iv[new + i, 1] = iv[start + i, 0], iv[start + i, 1]
        for i in range(last, length):
            iv[new + i + grown - length, 0] = iv[start + i, 0]
            iv[new + i + grown - length, 1] = iv[start + i, 1]
        if capacity:
            iv[start, 0] = meta[FREE + rank]
            meta[FREE + rank] = start
        atoms[atom, START], atoms[atom, CAPACITY] = new, max(1, capacity * 2)
        start = new
    elif grown > length:
        for i in range(length - 1, last - 1, -1):
            iv[start + i + 1, 0], iv[start + i + 1, 1] = iv[start + i, 0], iv[start + i, 1]
    elif grown < length:
        for i in range(last, length):
            iv[start + i + grown - length, 0] = iv[start + i, 0]
            iv[start + i + grown - length, 1] = iv[start + i, 1]
    iv[start + first, 0], iv[start + first, 1] = merged_lo, merged_hi
    atoms[atom, LENGTH] = grown
    meta[HELD] += grown - length
    meta[ENDLESS] += endless
    return n, merged_lo, merged_hi


@allocating_kernel
def index_all(
    pred: int, index: int, index_table: Array, atoms: Array, args: Array, entries: Array, keys: Array, meta: Array
) -> None:
    """Add every atom of a predicate to a new index."""
    values = np.zeros(index_table.shape[1], np.int64)
    for atom in range(meta[N_ATOMS]):
        if atoms[atom, PRED] == pred:
            index_atom(atom, index, index_table, atoms, args, entries, keys, meta, values)


@kernel
def enter_atoms(first: int, last: int, atoms: Array, args: Array, preds: Array, table: Array) -> None:
    """Enter atoms that are not there yet into a table with room for them."""
    mask = table.shape[0] - 1
    for atom in range(first, last):
        tick()
        pred = atoms[atom, PRED]
        slot = np.int64(hash_atom(pred, args, atoms[atom, ARGS], preds[pred, ARITY]) & np.uint64(mask))
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = atom


@allocating_kernel
def rehash_keys(old: Array, atoms: Array, args: Array, entries: Array, index_table: Array, keys: Array) -> None:
    """Fill a larger table with the keys of all indexes."""
    values = np.zeros(index_table.shape[1], np.int64)
    for slot in range(old.shape[0]):
        entry = old[slot, 1]
        if entry >= 0:
            index = old[slot, 0]
            count = index_table[index, 0]
            at = atoms[entries[entry, 0], ARGS]
            for i in range(count):
                values[i] = args[at + index_table[index, 1 + i]]
            new = find_key(index, values, count, index_table, atoms, args, entries, keys)
            keys[new, 0], keys[new, 1] = index, entry


@kernel
def pack(pred: int, columns: Array, lo: Array, hi: Array, first: int, last: int, queue: Array, at: int) -> Number:
    """Write rows of a relation as records into a queue with room for them; return the new end."""
    arity = columns.shape[0]
    for row in range(first, last):
        queue[at], queue[at + 1], queue[at + 2] = pred, lo[row], hi[row]
        for i in range(arity):
            queue[at + 3 + i] = columns[i, row]
        at += 3 + arity
    return at


@kernel
def after_records(queue: Array, first: int, end: int, count: int, preds: Array) -> Number:
    """Return the position after `count` records of a queue."""
    while first < end and count > 0:
        first += 3 + preds[queue[first] & (NAMED - 1), ARITY]
        count -= 1
    return first


@allocating_kernel
def find_atoms(pred: int, atoms: Array, n_atoms: int) -> Array:
    """Return the atoms of a predicate."""
    count = 0
    for atom in range(n_atoms):
        count += atoms[atom, PRED] == pred
    found = np.empty(count, np.int64)
    at = 0
    for atom in range(n_atoms):
        if atoms[atom, PRED] == pred:
            found[at] = atom
            at += 1
    return found


@kernel
def end_standing_intervals(atoms: Array, n_atoms: int, preds: Array, iv: Array) -> None:
    """Let the intervals that stand end where they are known to hold."""
    for atom in range(n_atoms):
        last = atoms[atom, START] + atoms[atom, LENGTH] - 1
        if atoms[atom, LENGTH] and iv[last, 1] == STANDING_END:
            iv[last, 1] = preds[atoms[atom, PRED], KNOWN_TO]


@kernel
def unpack(
    found: Array, preds: Array, atoms: Array, args: Array, iv: Array, columns: Array, lo: Array, hi: Array
) -> None:
    """Write the intervals of some atoms as rows; those that stand end where they are known to hold."""
    row = 0
    for atom in found:
        for i in range(atoms[atom, START], atoms[atom, START] + atoms[atom, LENGTH]):
            for k in range(columns.shape[0]):
                columns[k, row] = args[atoms[atom, ARGS] + k]
            lo[row], hi[row] = iv[i, 0], iv[i, 1]
            if iv[i, 1] == STANDING_END:
                hi[row] = preds[atoms[atom, PRED], KNOWN_TO]
            row += 1


def double_queue(queue: Array) -> Array:
    """Return a queue with the same words and twice the room."""
    larger = np.empty(2 * len(queue) + 64, np.int64)
    larger[: len(queue)] = queue
    return larger
