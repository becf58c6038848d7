"""Hash tables over tuples of constants: dense numbers for groups, and the ends of rows that may continue.

Open addressing with linear probing. Slots hold the number of a tuple or -1; the tuples are the rows of `keys`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidelog.jit import Array, Number, inlined_kernel, kernel, uint64


class TupleTable(NamedTuple):
    """Distinct tuples of constants, numbered from 0 on. At most half of the slots are in use."""

    slots: Array
    keys: Array


def make_table(width: int, capacity: int) -> TupleTable:
    """Make an empty table; the capacity is a power of two."""
    return TupleTable(np.full(2 * capacity, -1, np.int32), np.empty((capacity, width), np.int32))


def rebuild_table(keys: Array, capacity: int) -> TupleTable:
    """Make a table that numbers the rows of `keys`, with room for at least `capacity` tuples."""
    capacity = 1 << (max(capacity, len(keys), 2) - 1).bit_length()
    table = make_table(keys.shape[1], capacity)
    table.keys[: len(keys)] = keys
    enter_all(table, len(keys))
    return table


def grow_rows(array: Array, rows: int) -> Array:
    """Copy an array into one with this many rows."""
    larger = np.empty((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@inlined_kernel
def _mix(h: Number, value: int) -> Number:
    h = uint64((h ^ uint64(value)) * uint64(0x9E3779B97F4A7C15))
    return h ^ (h >> uint64(29))


@inlined_kernel
def find_tuple(table: TupleTable, args: Array, row: int, columns: Array) -> Number:
    """Return the slot of the tuple in some columns of a row; it holds its number, or -1 where it would go."""
    mask = uint64(len(table.slots) - 1)
    width = len(columns)
    h = uint64(0x51)
    for i in range(width):
        h = _mix(h, args[columns[i], row])
    slot = h & mask
    while True:
        number = table.slots[slot]
        if number < 0:
            return slot
        i = 0
        while i < width and table.keys[number, i] == args[columns[i], row]:
            i += 1
        if i == width:
            return slot
        slot = (slot + uint64(1)) & mask


@inlined_kernel
def add_tuple(table: TupleTable, slot: int, number: int, args: Array, row: int, columns: Array) -> None:
    """Enter a new tuple with the next number at the slot that `find_tuple` returned."""
    table.slots[slot] = number
    for i in range(len(columns)):
        table.keys[number, i] = args[columns[i], row]


@kernel
def enter_all(table: TupleTable, count: int) -> None:
    """Enter the first `count` tuples of `keys` into empty slots."""
    mask = uint64(len(table.slots) - 1)
    for number in range(count):
        h = uint64(0x51)
        for i in range(table.keys.shape[1]):
            h = _mix(h, table.keys[number, i])
        slot = h & mask
        while table.slots[slot] >= 0:
            slot = (slot + uint64(1)) & mask
        table.slots[slot] = number


@inlined_kernel
def drop_ended(table: TupleTable, ends: Array, count: int, before: int) -> Number:
    """Remove the rows that end before a position; return how many are left."""
    kept = 0
    for number in range(count):
        if ends[number] >= before:
            if kept < number:
                ends[kept] = ends[number]
                for i in range(table.keys.shape[1]):
                    table.keys[kept, i] = table.keys[number, i]
            kept += 1
    for slot in range(len(table.slots)):
        table.slots[slot] = -1
    enter_all(table, kept)
    return kept


@kernel
def prune(table: TupleTable, ends: Array, count: int, before: int) -> Number:
    """Do what `drop_ended` does, when called from Python."""
    return drop_ended(table, ends, count, before)
