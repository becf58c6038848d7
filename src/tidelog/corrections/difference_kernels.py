"""Compiled loops over sorted rows: merge those that touch, subtract those of another side."""

from __future__ import annotations

from tidelog.jit import Array, Number, inlined_kernel, kernel


@inlined_kernel
def _compare_atoms(args: Array, row: int, others: Array, other: int, columns: Array) -> Number:
    """Return a negative number if the atom of a row comes first, a positive one if it comes later, zero if equal."""
    for column in columns:
        if args[column, row] != others[column, other]:
            return -1 if args[column, row] < others[column, other] else 1
    return 0


@kernel
def subtract_rows(
    args: Array,
    lo: Array,
    hi: Array,
    other_args: Array,
    other_lo: Array,
    other_hi: Array,
    columns: Array,
    source: Array,
    found_lo: Array,
    found_hi: Array,
) -> Number:
    """Write the parts of rows that others do not cover, each with the number of its row; return how many there are.

    Both sides are sorted by the columns and by time, and the intervals of an atom do not meet.
    """
    count, first = 0, 0
    for row in range(len(lo)):
        while first < len(other_lo):
            order = _compare_atoms(other_args, first, args, row, columns)
            if order > 0 or (order == 0 and other_hi[first] >= lo[row]):
                break
            first += 1
        begin, other = lo[row], first
        while (
            other < len(other_lo)
            and other_lo[other] <= hi[row]
            and _compare_atoms(other_args, other, args, row, columns) == 0
        ):
            if other_lo[other] > begin:
                source[count], found_lo[count], found_hi[count] = row, begin, other_lo[other] - 1
                count += 1
            begin = other_hi[other] + 1
            other += 1
        if begin <= hi[row]:
            source[count], found_lo[count], found_hi[count] = row, begin, hi[row]
            count += 1
    return count


@kernel
def coalesce_rows(args: Array, lo: Array, hi: Array, columns: Array, source: Array) -> Number:
    """Merge rows of an atom that touch, in place; return how many are left, with the number of a row of each atom."""
    count = 0
    for row in range(len(lo)):
        last = count - 1
        if count and lo[row] <= hi[last] + 1 and _compare_atoms(args, row, args, source[last], columns) == 0:
            hi[last] = max(hi[last], hi[row])
        else:
            source[count], lo[count], hi[count] = row, lo[row], hi[row]
            count += 1
    return count
