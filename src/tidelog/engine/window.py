"""What a stream does to a store: read off what has ended, forget what nobody looks back at, find what comes next."""

from __future__ import annotations

import numpy as np

from tidelog.engine.tables import ARGS, ARITY, LENGTH, N_ATOMS, PRED, START, Array
from tidelog.timeline.grid import POS_INF
from tidelog.timeline.kernels import allocating_kernel, kernel


@kernel
def forget(atoms: Array, iv: Array, meta: Array, limits: Array) -> tuple[int, int, int]:
    """Drops the intervals that end before their predicate's limit.

    Returns how many are left that end some day, how many that do not, and how many atoms have none.
    """
    finite, endless, empty = 0, 0, 0
    for atom in range(meta[N_ATOMS]):
        length = atoms[atom, LENGTH]
        if length == 0:
            empty += 1
            continue
        limit, start = limits[atoms[atom, PRED]], atoms[atom, START]
        gone = 0
        while gone < length and iv[start + gone, 1] < limit:
            gone += 1
        if gone:
            for i in range(gone, length):
                iv[start + i - gone, 0], iv[start + i - gone, 1] = iv[start + i, 0], iv[start + i, 1]
            length -= gone
            atoms[atom, LENGTH] = length
            if length == 0:
                empty += 1
                continue
        if iv[start + length - 1, 1] == POS_INF:
            endless += 1
            finite += length - 1
        else:
            finite += length
    return finite, endless, empty


@allocating_kernel
def ended(
    pred: int, since: int, until: int, arity: int, atoms: Array, args: Array, iv: Array, meta: Array
) -> tuple[Array, Array, Array, int]:
    """The intervals of a predicate that end at or after `since` and before `until`, and when the next one may end."""
    count, following = 0, POS_INF
    for atom in range(meta[N_ATOMS]):
        if atoms[atom, PRED] == pred:
            for i in range(atoms[atom, START], atoms[atom, START] + atoms[atom, LENGTH]):
                if iv[i, 1] >= until:
                    following = min(following, iv[i, 1])
                elif iv[i, 1] >= since:
                    count += 1
    columns = np.empty((arity, count), np.int32)
    lo, hi = np.empty(count, np.int64), np.empty(count, np.int64)
    row = 0
    if count:
        for atom in range(meta[N_ATOMS]):
            if atoms[atom, PRED] == pred:
                for i in range(atoms[atom, START], atoms[atom, START] + atoms[atom, LENGTH]):
                    if since <= iv[i, 1] < until:
                        for k in range(arity):
                            columns[k, row] = args[atoms[atom, ARGS] + k]
                        lo[row], hi[row] = iv[i, 0], iv[i, 1]
                        row += 1
    return columns, lo, hi, following


@allocating_kernel
def holding(pred: int, at: int, arity: int, atoms: Array, args: Array, iv: Array, meta: Array) -> Array:
    """The arguments of a predicate's atoms that hold at a position."""
    found = np.empty((arity, 16), np.int32)
    count = 0
    for atom in range(meta[N_ATOMS]):
        if atoms[atom, PRED] == pred:
            for i in range(atoms[atom, START], atoms[atom, START] + atoms[atom, LENGTH]):
                if iv[i, 0] <= at <= iv[i, 1]:
                    if count == found.shape[1]:
                        larger = np.empty((arity, 2 * count), np.int32)
                        larger[:, :count] = found
                        found = larger
                    for k in range(arity):
                        found[k, count] = args[atoms[atom, ARGS] + k]
                    count += 1
                    break
    return found[:, :count].copy()


@kernel
def next_change(after: int, cut: int, persisting: Array, atoms: Array, iv: Array, meta: Array) -> int:
    """The first position after the given one at which some interval begins or has ended.

    Intervals of persisting predicates that end at `cut` were only evaluated up to there, and are not over.
    """
    found = POS_INF
    for atom in range(meta[N_ATOMS]):
        for i in range(atoms[atom, START], atoms[atom, START] + atoms[atom, LENGTH]):
            if iv[i, 0] > after:
                found = min(found, iv[i, 0])
            elif after <= iv[i, 1] < POS_INF and not (iv[i, 1] == cut and persisting[atoms[atom, PRED]]):
                found = min(found, iv[i, 1] + 1)
    return found


@kernel
def due(later: Array, end: int, horizon: int, preds: Array, queue: Array) -> tuple[int, int, int]:
    """Moves the deferred records that begin by the horizon into a queue with room for all.

    Returns how far the queue and the deferred records then reach, and when the next of these begins.
    """
    taken, kept, at, first = 0, 0, 0, POS_INF
    while at < end:
        width = 3 + preds[later[at], ARITY]
        if later[at + 1] <= horizon:
            for i in range(width):
                queue[taken + i] = later[at + i]
            taken += width
        else:
            first = min(first, later[at + 1])
            for i in range(width):
                later[kept + i] = later[at + i]
            kept += width
        at += width
    return taken, kept, first


@kernel
def arranged(
    relation: Array,
    row: Array,
    numbers: Array,
    arities: Array,
    starts: Array,
    args: Array,
    lo: Array,
    hi: Array,
    queue: Array,
    offsets: Array,
) -> None:
    """Rows of several relations as records, one after the other; `offsets` is where each begins, and where they end.

    A relation's number is its predicate's, or -1 where no rule reads it; `starts` is where its arguments stand.
    """
    at = 0
    for i in range(len(relation)):
        offsets[i] = at
        pred = numbers[relation[i]]
        if pred < 0 or lo[i] > hi[i]:
            continue
        queue[at], queue[at + 1], queue[at + 2] = pred, lo[i], hi[i]
        arity = arities[relation[i]]
        begin = starts[relation[i]] + row[i] * arity
        for k in range(arity):
            queue[at + 3 + k] = args[begin + k]
        at += 3 + arity
    offsets[len(relation)] = at
