"""The compiled part of reading Arrow columns: texts, integers and times, straight from the buffers of a table.

The kernels that intern constants stop where the dictionary has no room for one more, and return the row at which to
go on: making room for as many constants as there are rows would spread a small dictionary over much memory. Values
that were seen a short while ago are found in a small cache, without a search in the dictionary.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidelog.data.number_scanner import Bytes, write_rational
from tidelog.data.relation import Ids, Times
from tidelog.data.symbol_kernels import LONGEST_NUMBER, NAME_KIND, SymbolTable, intern_bytes
from tidelog.jit import Array, inlined_kernel, int64, kernel, tick, uint64

#: Texts up to this length are part of their view; others are in a buffer.
LONGEST_INLINE = 12
#: Entries of a cache that are looked at for one value.
PROBES = 4
#: Words of an entry, the last of which is free: an entry is half a line of the processor's cache.
ENTRY = 4
_MIX, _MIX_MORE = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93


@inlined_kernel
def _has_room(table: SymbolTable, length: int) -> bool:
    """Return whether there is room for one more constant of this length."""
    count = int64(table.counts[0])
    return (
        count + 2 < len(table.offsets)
        and 2 * (count + 2) < len(table.slots)
        and table.offsets[count] + length + 4 * LONGEST_NUMBER < len(table.pool)
    )


@inlined_kernel
def _first_place(shift: int, first: int, second: int) -> int:
    """Return where to look for a value in a cache of `2 ** (64 - shift)` entries, and some more at its end."""
    mixed = uint64((uint64(first) ^ uint64(uint64(second) * uint64(_MIX))) * uint64(_MIX_MORE))
    return uint64(ENTRY) * (mixed >> uint64(shift))


@inlined_kernel
def _is_entry(cache: npt.NDArray[np.int64], place: int, first: int, second: int) -> bool:
    """Return whether a value is at a place of a cache; a free entry is -1, which no value is with its second word."""
    differs: int = (cache[place] ^ first) | (cache[place + uint64(1)] ^ second)
    return differs == 0


@inlined_kernel
def _find_entry(cache: npt.NDArray[np.int64], begin: int, first: int, second: int) -> int:
    """Return the place of a value in a cache, or where to put it: at a free entry, or at the first one."""
    place = uint64(begin)
    for _ in range(PROBES):
        if _is_entry(cache, place, first, second) or cache[place + uint64(2)] < 0:
            return place
        place += uint64(ENTRY)
    return uint64(begin)


@kernel
def _intern_text(table: SymbolTable, data: Bytes, start: int, end: int) -> int:
    """Return the id of a text, or -1 if there is no room for it. It is called rarely, and not being inlined keeps the
    loop of its caller small."""
    return intern_bytes(table, data, start, end, NAME_KIND) if _has_room(table, end - start) else -1


@kernel
def intern_short_views(
    table: SymbolTable,
    views: npt.NDArray[np.int64],
    bytes_of_views: Bytes,
    row: int,
    cache: npt.NDArray[np.int64],
    shift: int,
    ids: Ids,
) -> int:
    """Write the ids of texts that are part of their views; return the row at which to go on.

    Arrow's view of a text has two words: its length and the text, or else its length, its first four bytes, and the
    number and the place of the buffer that holds it. The rows of such long texts get the id -1.
    """
    count = len(views) // 2
    for i in range(row, count):
        tick()
        at = uint64(i)
        first, second = views[uint64(2) * at], views[uint64(2) * at + uint64(1)]
        length = first & 0x7FFFFFFF
        if length > LONGEST_INLINE:
            ids[at] = -1
            continue
        place = _first_place(shift, first, second)
        if not _is_entry(cache, place, first, second):
            place = _find_entry(cache, place, first, second)
        if _is_entry(cache, place, first, second):
            ids[at] = cache[place + uint64(2)]
            continue
        start = 16 * i + 4
        found = _intern_text(table, bytes_of_views, start, start + length)
        if found < 0:
            return i
        cache[place], cache[place + uint64(1)], cache[place + uint64(2)] = first, second, found
        ids[i] = found
    return count


@kernel
def intern_long_views(
    table: SymbolTable, views: npt.NDArray[np.int64], data: Bytes, number: int, row: int, end: int, ids: Ids
) -> int:
    """Write the ids of texts in `data`, the buffer with a number, that views refer to; return where to go on."""
    for i in range(row, end):
        tick()
        at = uint64(i)
        length, second = views[uint64(2) * at] & 0x7FFFFFFF, views[uint64(2) * at + uint64(1)]
        if length > LONGEST_INLINE and second & 0x7FFFFFFF == number:
            if not _has_room(table, length):
                return i
            start = second >> 32
            ids[at] = intern_bytes(table, data, start, start + length, NAME_KIND)
    return end


@kernel
def find_buffer_rows(views: npt.NDArray[np.int64], first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> None:
    """Find the first and the last row whose text is in each buffer."""
    for i in range(len(views) // 2):
        tick()
        if views[2 * i] & 0x7FFFFFFF > LONGEST_INLINE:
            number = views[2 * i + 1] & 0x7FFFFFFF
            first[number] = min(first[number], i)
            last[number] = max(last[number], i)


@kernel
def intern_spans(table: SymbolTable, data: Bytes, offsets: npt.NDArray[np.int64], row: int, ids: Ids) -> int:
    """Write the ids of consecutive texts from a row on; return the row at which to go on."""
    count = len(offsets) - 1
    for i in range(row, count):
        tick()
        start, end = offsets[i], offsets[i + 1]
        if not _has_room(table, end - start):
            return i
        ids[i] = intern_bytes(table, data, start, end, NAME_KIND)
    return count


@kernel
def _intern_integer(table: SymbolTable, value: int, kind: int) -> int:
    """Return the id of an integer, or -1 if there is no room for it. Its text is written behind the pool's end."""
    if not _has_room(table, LONGEST_NUMBER):
        return -1
    start = table.offsets[table.counts[0]] + LONGEST_NUMBER + 1
    after = write_rational(table.pool, start, value, 1)
    return intern_bytes(table, table.pool, start, after, kind)


@kernel
def intern_near_integers(
    table: SymbolTable, values: Array, least: int, known: npt.NDArray[np.int32], kind: int, row: int, ids: Ids
) -> int:
    """Write the ids of integers from a row on; `known` has the id of each from `least` on, or -1.

    Return the row at which to go on, or -1 minus a row whose integer is beyond those that `known` has.
    """
    room = uint64(len(known))
    for i in range(row, len(values)):
        tick()
        at = uint64(i)
        value = int64(values[at])
        place = uint64(value - least)
        if place >= room:
            return -1 - i
        if known[place] < 0:
            known[place] = _intern_integer(table, value, kind)
            if known[place] < 0:
                return i
        ids[at] = known[place]
    return len(values)


@kernel
def intern_far_integers(
    table: SymbolTable, values: Array, cache: npt.NDArray[np.int64], shift: int, kind: int, row: int, ids: Ids
) -> int:
    """Write the ids of integers of any size from a row on, with a cache instead of a list of all that may occur."""
    for i in range(row, len(values)):
        tick()
        at = uint64(i)
        value = int64(values[at])
        place = _first_place(shift, value, 0)
        if not _is_entry(cache, place, value, 0):
            place = _find_entry(cache, place, value, 0)
        if not _is_entry(cache, place, value, 0):
            found = _intern_integer(table, value, kind)
            if found < 0:
                return i
            cache[place], cache[place + uint64(1)], cache[place + uint64(2)] = value, 0, found
        ids[at] = cache[place + uint64(2)]
    return len(values)


@kernel
def mark_used(indices: Array, used: npt.NDArray[np.bool_]) -> None:
    """Mark the entries of a dictionary that occur."""
    for i in range(len(indices)):
        tick()
        used[uint64(indices[i])] = True


@kernel
def translate(indices: Array, ids_of: Ids, ids: Ids) -> None:
    """Write the id of each entry of a dictionary that occurs in a column."""
    for i in range(len(indices)):
        tick()
        ids[i] = ids_of[uint64(indices[i])]


@kernel
def double_quotients(values: Times, divisor: int, limit: int, doubled: Times) -> int:
    """Write twice the quotient of each value and a divisor. Return -1, or the first row whose quotient is beyond the
    limit, or -2 minus the first row whose value is not a multiple of the divisor.

    A quotient is guessed in floating point, and computed exactly where the guess is wrong. Often the time of a row is
    that of the row before.
    """
    inverse = 1.0 / divisor
    last, twice = 0, 0
    for i in range(len(values)):
        tick()
        value = values[i]
        if value == last:
            doubled[i] = twice
            continue
        quotient = value
        if divisor != 1:
            quotient = int(value * inverse + 0.5)
            if quotient * divisor != value:
                quotient = value // divisor
                if quotient * divisor != value:
                    return -2 - i
        if quotient >= limit or quotient <= -limit:
            return i
        last, twice = value, 2 * quotient
        doubled[i] = twice
    return -1
