"""The order of constants: numbers by value, then names by code points (the order of their UTF-8 bytes)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

import numpy as np
import numpy.typing as npt

from tidelog.data.number_scanner import NOT_UNDERSTOOD, read_number
from tidelog.data.symbol_kernels import NUMBER_KIND, SymbolTable
from tidelog.jit import kernel
from tidelog.timeline.grid import LIMIT

Longs = npt.NDArray[np.int64]

#: With fewer rows than this, the functions of numpy that `sort_rows` calls take longer than sorting does.
_FEWEST_ROWS = 512


def compute_ranks(table: SymbolTable) -> Longs:
    """Return the rank of every id in the order of constants."""
    count = int(table.counts[0])
    is_number = table.pool[table.offsets[:count]] == NUMBER_KIND
    order = np.concatenate(
        [_sort_numbers(table, np.flatnonzero(is_number)), _sort_names(table, np.flatnonzero(~is_number))]
    )
    result = np.empty(count, np.int64)
    result[order] = np.arange(count)
    return result


def sort_rows(keys: Sequence[Longs]) -> Longs:
    """Return what `np.lexsort` returns; where all keys of a row fit into one number, these are sorted at once.

    >>> sort_rows([np.array([1, 0, 2]), np.array([5, 7, 5])]).tolist()
    [0, 2, 1]
    """
    packed, width = np.zeros(len(keys[0]), np.int64), 1
    if len(packed) < _FEWEST_ROWS:
        return np.lexsort(keys)
    for key in keys:
        least, most = int(key.min()), int(key.max())
        if width * (most - least + 1) >= LIMIT:
            return np.lexsort(keys)
        packed += (key - least) * width
        width *= most - least + 1
    order = np.argsort(packed)
    ascending = packed[order]
    # Equal rows keep their order, which only the slower sort promises.
    return order if (ascending[1:] > ascending[:-1]).all() else np.argsort(packed, kind="stable")


def sort_facts(args: npt.NDArray[np.int32], lo: Longs, ranks: Longs) -> Longs:
    """Return the order of facts by their arguments and then by time; `lo` are the beginnings of their intervals.

    Most often the facts of an atom follow each other, ordered by time: then only the atoms are sorted.

    >>> args, ranks = np.array([[1, 1, 0]], np.int32), np.array([5, 7])
    >>> sort_facts(args, np.array([0, 3, 2]), ranks).tolist()
    [2, 0, 1]
    """
    rows = len(lo)
    if len(args) and rows >= _FEWEST_ROWS:
        begins = np.ones(rows, np.bool_)
        begins[1:] = (args[:, 1:] != args[:, :-1]).any(axis=0)
        first = np.flatnonzero(begins)
        if 2 * len(first) < rows and (begins[1:] | (lo[1:] > lo[:-1])).all():
            order = sort_rows([ranks[column[first]] for column in args[::-1]])
            atoms = args[:, first[order]]
            if (atoms[:, 1:] != atoms[:, :-1]).any(axis=0).all():
                count = np.diff(first, append=rows)[order]
                return np.repeat(first[order] - (np.cumsum(count) - count), count) + np.arange(rows)
    return sort_rows([lo, *(ranks[column] for column in args[::-1])])


def _sort_numbers(table: SymbolTable, ids: Longs) -> Longs:
    """Sort the ids of numbers by value: on a common denominator where that fits, else by exact comparison."""
    numerator, denominator = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
    _read_numbers(table, ids, numerator, denominator)
    # Not `np.unique`, which imports `numpy.ma`: small tasks would notice.
    step = lcm(*set(denominator[denominator != 1].tolist()))
    if step and np.abs(numerator).max(initial=0) < LIMIT // step:
        return ids[np.argsort(numerator * (step // denominator))]
    texts = {int(id): table.pool[table.offsets[id] + 1 : table.offsets[id + 1]].tobytes().decode() for id in ids}
    return np.array(sorted(texts, key=lambda id: Fraction(texts[id])), np.int64)


def _sort_names(table: SymbolTable, ids: Longs) -> Longs:
    """Sort the ids of names, 8 bytes at a time.

    Names that are equal so far form a group, and only groups of more than one name are sorted further. What all names
    begin with is not looked at.
    """
    order = ids.copy()
    open_from, open_to = np.array([0]), np.array([len(ids)])
    depth = int(_find_common_length(table, ids))
    while len(open_from):
        size = open_to - open_from
        group = np.repeat(np.arange(len(size)), size)
        at = np.arange(len(group)) + np.repeat(open_from - (np.cumsum(size) - size), size)
        key, rest = np.empty(len(at), np.uint64), np.empty(len(at), np.int64)
        _read_keys(table, order[at], depth, key, rest)
        # A name that ends here sorts before longer ones: `rest` tells `a` from `a` followed by a zero byte.
        sort = np.argsort(key) if len(size) == 1 else np.lexsort((rest, key, group))
        if len(size) == 1 and (key[sort[1:]] == key[sort[:-1]]).any():
            sort = np.lexsort((rest, key))
        order[at] = order[at][sort]
        key, rest = key[sort], rest[sort]
        same = (group[1:] == group[:-1]) & (key[1:] == key[:-1]) & (rest[1:] == rest[:-1]) & (rest[1:] == 8)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
        open_from, open_to = at[edges[::2]], at[edges[1::2]] + 1
        depth += 8
    return order


@kernel
def _read_numbers(table: SymbolTable, ids: Longs, numerator: Longs, denominator: Longs) -> None:
    """Write the values of numbers; a number that does not fit gets the denominator 0."""
    for i in range(len(ids)):
        start, end = table.offsets[ids[i]] + 1, table.offsets[ids[i] + 1]
        _, numerator[i], denominator[i], kind = read_number(table.pool, start, end)
        if kind == NOT_UNDERSTOOD:
            denominator[i] = 0


@kernel
def _find_common_length(table: SymbolTable, ids: Longs) -> int:
    """Return how many bytes all names have in common at their beginning."""
    if len(ids) == 0:
        return 0
    begin = table.offsets[ids[0]] + 1
    common: int = table.offsets[ids[0] + 1] - begin
    for i in range(1, len(ids)):
        start = table.offsets[ids[i]] + 1
        common = min(common, table.offsets[ids[i] + 1] - start)
        for j in range(common):
            if table.pool[start + j] != table.pool[begin + j]:
                common = j
                break
    return common


@kernel
def _read_keys(table: SymbolTable, ids: Longs, depth: int, key: npt.NDArray[np.uint64], rest: Longs) -> None:
    """Write 8 bytes of every name from `depth` on as one number, and how many bytes are left there (at most 8)."""
    for i in range(len(ids)):
        start = table.offsets[ids[i]] + 1 + depth
        length = min(table.offsets[ids[i] + 1] - start, 8)
        bits = np.uint64(0)
        for j in range(8):
            bits = np.uint64(bits << np.uint64(8))
            if j < length:
                bits |= np.uint64(table.pool[start + j])
        key[i] = bits
        rest[i] = length
