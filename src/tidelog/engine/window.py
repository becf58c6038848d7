"""What a stream does to a store: read off what has ended, forget what nobody looks back at, find what comes next."""

from __future__ import annotations

from typing import NamedTuple

from tidelog.engine.agenda import ANSWERS, LASTING, RULES, add, expect
from tidelog.engine.machine import value
from tidelog.engine.tables import (
    ARGS,
    ARITY,
    CAPACITY,
    ENDLESS,
    HELD,
    LENGTH,
    N_ATOMS,
    PRED,
    START,
    Array,
    Number,
    Tables,
    find_key,
)
from tidelog.timeline.grid import POS_INF
from tidelog.timeline.kernels import kernel


class Found(NamedTuple):
    """Answers one after the other: their arguments, `arity` for each, and their intervals."""

    args: Array
    lo: Array
    hi: Array


@kernel
def forget(atoms: Array, iv: Array, meta: Array, base: int, retention: Array) -> Number:
    """Drops what ended longer ago, from a position on, than its predicate is kept. Returns how many atoms are empty."""
    empty = 0
    for atom in range(meta[N_ATOMS]):
        length = atoms[atom, LENGTH]
        if length == 0:
            empty += 1
            continue
        limit, start = base - retention[atoms[atom, PRED]], atoms[atom, START]
        gone = 0
        while gone < length and iv[start + gone, 1] < limit:
            gone += 1
        if gone:
            if iv[start + gone - 1, 1] == POS_INF:
                meta[ENDLESS] -= 1
            for i in range(gone, length):
                iv[start + i - gone, 0], iv[start + i - gone, 1] = iv[start + i, 0], iv[start + i, 1]
            meta[HELD] -= gone
            atoms[atom, LENGTH] = length - gone
            if gone == length:
                empty += 1
    return empty


@kernel
def first_entry(index: int, tables: Tables) -> Number:
    """The first entry of an index that lists all atoms of a predicate, or -1."""
    return tables.keys[
        find_key(
            index,
            tables.scratch[1],
            0,
            tables.index_table[index, 1:],
            tables.atoms,
            tables.args,
            tables.entries,
            tables.keys,
        ),
        1,
    ]


@kernel
def count_ended(since: int, until: int, tables: Tables) -> Number:
    """How many intervals of the answers to look at end at or after `since` and before `until`."""
    atoms, iv, agenda = tables.atoms, tables.iv, tables.agenda
    count = 0
    for place in range(agenda.lengths[ANSWERS]):
        atom = agenda.lists[place, ANSWERS]
        start = atoms[atom, START]
        i = start + atoms[atom, LENGTH] - 1
        while i >= start and iv[i, 1] >= since:
            if iv[i, 1] < until:
                count += 1
            i -= 1
    return count


@kernel
def write_ended(
    since: int, until: int, ahead: int, open_end: int, arity: int, tables: Tables, found: Found, row: int
) -> Number:
    """Writes the intervals that `count_ended` counts; returns where they end.

    Answers that end later are looked at again when the frontier has passed their end by `ahead`; those that end at
    `open_end`, since they were evaluated no further, when there is more.
    """
    atoms, iv, agenda = tables.atoms, tables.iv, tables.agenda
    kept = 0
    for place in range(agenda.lengths[ANSWERS]):
        atom = agenda.lists[place, ANSWERS]
        start = atoms[atom, START]
        i = start + atoms[atom, LENGTH] - 1
        again = False
        while i >= start and iv[i, 1] >= since:
            if iv[i, 1] < until:
                for k in range(arity):
                    found.args[row * arity + k] = tables.args[atoms[atom, ARGS] + k]
                found.lo[row], found.hi[row] = iv[i, 0], iv[i, 1]
                row += 1
            elif iv[i, 1] == open_end:
                again = True
            elif iv[i, 1] != POS_INF:
                expect(iv[i, 1] + ahead + 1, atom, ANSWERS, agenda)
            i -= 1
        if again:
            agenda.lists[kept, ANSWERS] = atom
            kept += 1
        else:
            agenda.flags[atom] &= ~(1 << ANSWERS)
    agenda.lengths[ANSWERS] = kept
    return row


@kernel
def write_holding(entry: int, at: int, when: int, arity: int, tables: Tables, found: Found, row: int) -> Number:
    """Writes the listed atoms that hold at a position, as answers at the time `when`; returns where they end."""
    atoms, iv = tables.atoms, tables.iv
    while entry >= 0:
        atom = tables.entries[entry, 0]
        start = atoms[atom, START]
        i = start + atoms[atom, LENGTH] - 1
        while i >= start and iv[i, 0] > at:
            i -= 1
        if i >= start and iv[i, 1] >= at:
            for k in range(arity):
                found.args[row * arity + k] = tables.args[atoms[atom, ARGS] + k]
            found.lo[row], found.hi[row] = when, when
            row += 1
        entry = tables.entries[entry, 1]
    return row


@kernel
def look_ahead(frontier: int, starts: Array, readers: Array, persisting: Array, dense: bool, tables: Tables) -> None:
    """Rules have been evaluated up to the frontier: says when which atoms are to be looked at again.

    `readers` tell how rules read a predicate, from `starts` on: operator, range, and how long the rule waits. What
    lasts is looked at in the next evaluation; so is what a negation derived up to the frontier, since it may go on.
    """
    atoms, iv, agenda = tables.atoms, tables.iv, tables.agenda
    for place in range(agenda.lengths[RULES]):
        atom = agenda.lists[place, RULES]
        agenda.flags[atom] &= ~(1 << RULES)
        pred, start = atoms[atom, PRED], atoms[atom, START]
        for reader in range(starts[pred], starts[pred + 1]):
            op, r_lo, r_hi, wait = readers[reader]
            last = frontier - wait
            for i in range(start + atoms[atom, LENGTH] - 1, start - 1, -1):
                lo, hi = value(op, iv[i, 0], iv[i, 1], r_lo, r_hi, dense)
                if lo > last:
                    expect(lo + wait, atom, RULES, agenda)
                if hi >= last and hi != POS_INF:
                    if persisting[pred] and iv[i, 1] == frontier:
                        add(atom, LASTING, agenda)
                    else:
                        expect(hi + 1 + wait, atom, RULES, agenda)
                if lo <= last and hi < last:
                    break
    agenda.lengths[RULES] = 0
    for place in range(agenda.lengths[LASTING]):
        atom = agenda.lists[place, LASTING]
        agenda.flags[atom] &= ~(1 << LASTING)
        add(atom, RULES, agenda)
    agenda.lengths[LASTING] = 0


@kernel
def due(later: Array, end: int, horizon: int, preds: Array, queue: Array) -> tuple[Number, Number, Number]:
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
def mark_waiting(later: Array, end: int, preds: Array, used: Array) -> None:
    """Marks the constants of deferred records."""
    at = 0
    while at < end:
        arity = preds[later[at], ARITY]
        for i in range(at + 3, at + 3 + arity):
            used[later[i]] = True
        at += 3 + arity


@kernel
def renumber_waiting(later: Array, end: int, preds: Array, ids: Array) -> None:
    """Gives the constants of deferred records other numbers."""
    at = 0
    while at < end:
        arity = preds[later[at], ARITY]
        for i in range(at + 3, at + 3 + arity):
            later[i] = ids[later[i]]
        at += 3 + arity


@kernel
def clear(pred: int, atoms: Array, iv: Array, meta: Array) -> None:
    """Drops all intervals of a predicate."""
    for atom in range(meta[N_ATOMS]):
        length = atoms[atom, LENGTH]
        if atoms[atom, PRED] == pred and length:
            meta[HELD] -= length
            if iv[atoms[atom, START] + length - 1, 1] == POS_INF:
                meta[ENDLESS] -= 1
            atoms[atom, LENGTH] = 0


@kernel
def measure(atoms: Array, iv: Array, meta: Array, preds: Array) -> tuple[Number, Number, Number]:
    """How many atoms hold somewhere, how many arguments they have, and how much room their intervals take."""
    count, n_args, room = 0, 0, 0
    for atom in range(meta[N_ATOMS]):
        if atoms[atom, LENGTH]:
            count += 1
            n_args += preds[atoms[atom, PRED], ARITY]
            size = 1
            while size < atoms[atom, LENGTH]:
                size *= 2
            room += size
    return count, n_args, room


@kernel
def move(
    atoms: Array, args: Array, iv: Array, meta: Array, preds: Array, new_atoms: Array, new_args: Array, new_iv: Array
) -> None:
    """Moves the atoms that hold somewhere into arrays that have room for them, as `measure` tells."""
    count, n_args, room = 0, 0, 0
    for atom in range(meta[N_ATOMS]):
        length = atoms[atom, LENGTH]
        if length == 0:
            continue
        size = 1
        while size < length:
            size *= 2
        new_atoms[count, PRED], new_atoms[count, LENGTH], new_atoms[count, CAPACITY] = atoms[atom, PRED], length, size
        new_atoms[count, ARGS], new_atoms[count, START] = n_args, room
        arity = preds[atoms[atom, PRED], ARITY]
        for k in range(arity):
            new_args[n_args + k] = args[atoms[atom, ARGS] + k]
        start = atoms[atom, START]
        for i in range(length):
            new_iv[room + i, 0], new_iv[room + i, 1] = iv[start + i, 0], iv[start + i, 1]
        count, n_args, room = count + 1, n_args + arity, room + size
