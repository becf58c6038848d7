"""Compiled parts of the ledger: a hash table over assertions, and chains of the rows that share an argument.

Slots hold the number of a row or -1; open addressing with linear probing, at most half of the slots in use. Rows are
never removed from a table: a multiplicity of zero stays until the table is rebuilt.
"""

from __future__ import annotations

from tidelog.jit import Array, Number, inlined_kernel, kernel, uint64


@inlined_kernel
def _mix(h: Number, value: Number) -> Number:
    h = uint64((h ^ uint64(value)) * uint64(0x9E3779B97F4A7C15))
    return h ^ (h >> uint64(29))


@inlined_kernel
def _hash(args: Array, lo: Array, hi: Array, row: int) -> Number:
    h = _mix(_mix(uint64(0x51), lo[row]), hi[row])
    for place in range(args.shape[0]):
        h = _mix(h, args[place, row])
    return h


@kernel
def count_rows(
    slots: Array,
    args: Array,
    lo: Array,
    hi: Array,
    counts: Array,
    size: int,
    new_args: Array,
    new_lo: Array,
    new_hi: Array,
    by: Array,
    rows: Array,
) -> Number:
    """Add `by[i]` to the multiplicity of the i-th given assertion, appending those that are new; return the new size.

    `rows[i]` becomes the number of its row. The columns must have room for all given assertions.
    """
    mask = uint64(len(slots) - 1)
    arity = args.shape[0]
    for i in range(len(new_lo)):
        slot = _hash(new_args, new_lo, new_hi, i) & mask
        while True:
            row = slots[slot]
            if row < 0:
                row = size
                size += 1
                slots[slot] = row
                lo[row] = new_lo[i]
                hi[row] = new_hi[i]
                counts[row] = 0
                for place in range(arity):
                    args[place, row] = new_args[place, i]
                break
            if lo[row] == new_lo[i] and hi[row] == new_hi[i]:
                place = 0
                while place < arity and args[place, row] == new_args[place, i]:
                    place += 1
                if place == arity:
                    break
            slot = (slot + uint64(1)) & mask
        counts[row] += by[i]
        rows[i] = row
    return size


@kernel
def fill_slots(slots: Array, args: Array, lo: Array, hi: Array, size: int) -> None:
    """Enter all rows, which are distinct, into empty slots."""
    mask = uint64(len(slots) - 1)
    for row in range(size):
        slot = _hash(args, lo, hi, row) & mask
        while slots[slot] >= 0:
            slot = (slot + uint64(1)) & mask
        slots[slot] = row


@kernel
def chain_rows(first: Array, following: Array, column: Array, start: int, end: int) -> None:
    """Put the rows from `start` to `end` into chains: `first` by constant, then `following` by row; -1 ends a chain."""
    for row in range(start, end):
        following[row] = first[column[row]]
        first[column[row]] = row


@kernel
def gather_chains(first: Array, following: Array, counts: Array, keys: Array, rows: Array) -> Number:
    """Write the rows of some constants that stand into `rows` while there is room; return how many there are."""
    found = 0
    for key in keys:
        row = first[key] if key < len(first) else -1
        while row >= 0:
            if counts[row] > 0:
                if found < len(rows):
                    rows[found] = row
                found += 1
            row = following[row]
    return found
