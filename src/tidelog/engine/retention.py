"""Kernels for the store of a stream: report intervals that have ended, forget old ones, schedule changes."""

from __future__ import annotations

from typing import NamedTuple

from tidelog.engine.agenda import (
    AGAIN,
    ANSWERS,
    LASTING,
    RECURSION,
    REMADE,
    RULES,
    add,
    clear_list,
    move_list,
    schedule,
)
from tidelog.engine.join_kernels import value
from tidelog.engine.store_tables import (
    ARGS,
    ARITY,
    CAPACITY,
    ENDLESS,
    HELD,
    LATEST,
    LENGTH,
    N_ATOMS,
    PRED,
    SIZE,
    START,
    WATCHED,
    Array,
    Number,
    Tables,
    find_key,
)
from tidelog.jit import inlined_kernel, kernel, tick
from tidelog.timeline.grid import POS_INF, STANDING_END


class Found(NamedTuple):
    """Answers one after the other: their arguments, `arity` for each, and their intervals."""

    args: Array
    lo: Array
    hi: Array


@kernel
def forget(atoms: Array, iv: Array, meta: Array, base: int, retention: Array) -> Number:
    """Drop intervals that ended longer before `base` than their predicate is kept. Return how many atoms are empty."""
    empty = 0
    for atom in range(meta[N_ATOMS]):
        tick()
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
    """Return the first entry of an index that lists all atoms of a predicate, or -1."""
    return tables.keys[
        find_key(
            index,
            tables.meta,
            0,
            tables.index_table,
            tables.atoms,
            tables.args,
            tables.entries,
            tables.keys,
        ),
        1,
    ]


@kernel
def count_ended(since: int, until: int, tables: Tables) -> Number:
    """Count the intervals of scheduled answers that end at or after `since` and before `until`."""
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
    """Write the intervals that `count_ended` counts; return where they end.

    Answers that end later are scheduled for when the frontier has passed their end by `ahead`. Those that end at
    `open_end`, up to which they have been evaluated, stay scheduled.
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
            elif iv[i, 1] < STANDING_END:
                schedule(iv[i, 1] + ahead + 1, atom, ANSWERS, agenda)
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
    """Write the listed atoms that hold at a position, as answers at the time `when`; return where they end."""
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
def schedule_changes(
    frontier: int, starts: Array, readers: Array, persisting: Array, dense: bool, tables: Tables
) -> None:
    """Schedule atoms after rules have been evaluated up to the frontier.

    `readers` says, from `starts` on, how rules read a predicate: operator, range, and how long the rule waits. Atoms
    that last are looked at in the next evaluation; so are those that a negation derived up to the frontier, which may
    go on.
    """
    atoms, iv, agenda = tables.atoms, tables.iv, tables.agenda
    for place in range(agenda.lengths[RULES]):
        atom = agenda.lists[place, RULES]
        agenda.flags[atom] &= ~(1 << RULES)
        pred, start = atoms[atom, PRED], atoms[atom, START]
        for reader in range(starts[pred], starts[pred + 1]):
            op, r_lo = readers[reader, 0], readers[reader, 1]
            r_hi, wait = readers[reader, 2], readers[reader, 3]
            last = frontier - wait
            for i in range(start + atoms[atom, LENGTH] - 1, start - 1, -1):
                end = iv[i, 1] if iv[i, 1] != STANDING_END else POS_INF
                lo, hi = value(op, iv[i, 0], end, r_lo, r_hi, dense)
                if lo > last:
                    schedule(lo + wait, atom, RULES, agenda)
                if hi >= last and hi != POS_INF:
                    if persisting[pred] and iv[i, 1] == frontier:
                        add(atom, LASTING, agenda)
                    else:
                        schedule(hi + 1 + wait, atom, RULES, agenda)
                if lo <= last and hi < last:
                    break
    agenda.lengths[RULES] = 0
    move_list(LASTING, RULES, agenda)
    clear_list(REMADE, agenda)
    move_list(AGAIN, REMADE, agenda)


@kernel
def recursion_may_go_on(tables: Tables) -> bool:
    """Return whether an atom of a recursion through time holds up to where rules were evaluated last.

    It is looked at in the next evaluation, and ends or goes on there. Such an atom need not be news: a rule that looks
    back by a fixed distance derives atoms ahead of the evaluation.
    """
    for place in range(tables.agenda.lengths[RULES]):
        atom = tables.agenda.lists[place, RULES]
        if tables.preds[tables.atoms[atom, PRED], WATCHED] & RECURSION:
            return True
    return False


@kernel
def move_due(later: Array, end: int, horizon: int, preds: Array, queue: Array) -> tuple[Number, Number, Number]:
    """Move the deferred records that begin by the horizon into a queue with room for all.

    Return the new ends of the queue and of the deferred records, and when the next of these begins.
    """
    taken, kept, at, first = 0, 0, 0, POS_INF
    while at < end:
        arity = preds[later[at], ARITY]
        if later[at + 1] <= horizon:
            _copy_record(later, at, arity, queue, taken)
            taken += 3 + arity
        else:
            first = min(first, later[at + 1])
            if kept < at:
                _copy_record(later, at, arity, later, kept)
            kept += 3 + arity
        at += 3 + arity
    return taken, kept, first


@inlined_kernel
def _copy_record(source: Array, at: int, arity: int, target: Array, to: int) -> None:
    """Copy a record. Most have few arguments, so their other words are not part of the loop."""
    target[to], target[to + 1], target[to + 2] = source[at], source[at + 1], source[at + 2]
    for i in range(3, 3 + arity):
        target[to + i] = source[at + i]


@kernel
def find_waiting(later: Array, end: int, preds: Array, places: Array) -> Number:
    """Write where the deferred records begin; return how many there are."""
    at, count = 0, 0
    while at < end:
        places[count] = at
        count += 1
        at += 3 + preds[later[at], ARITY]
    return count


@kernel
def mark_waiting(later: Array, end: int, preds: Array, used: Array) -> None:
    """Mark the constants of deferred records."""
    at = 0
    while at < end:
        arity = preds[later[at], ARITY]
        for i in range(at + 3, at + 3 + arity):
            used[later[i]] = True
        at += 3 + arity


@kernel
def renumber_waiting(later: Array, end: int, preds: Array, ids: Array) -> None:
    """Give the constants of deferred records new numbers."""
    at = 0
    while at < end:
        arity = preds[later[at], ARITY]
        for i in range(at + 3, at + 3 + arity):
            later[i] = ids[later[i]]
        at += 3 + arity


@kernel
def has_begun(pred: int, until: int, atoms: Array, iv: Array, meta: Array) -> bool:
    """Return whether an atom of a predicate holds at or before a position."""
    for atom in range(meta[N_ATOMS]):
        if atoms[atom, PRED] == pred and atoms[atom, LENGTH] and iv[atoms[atom, START], 0] <= until:
            return True
    return False


@kernel
def clear_begun(pred: int, until: int, atoms: Array, iv: Array, meta: Array) -> None:
    """Drop all intervals of those atoms of a predicate that hold at or before a position."""
    for atom in range(meta[N_ATOMS]):
        length = atoms[atom, LENGTH]
        if atoms[atom, PRED] == pred and length and iv[atoms[atom, START], 0] <= until:
            meta[HELD] -= length
            if iv[atoms[atom, START] + length - 1, 1] == POS_INF:
                meta[ENDLESS] -= 1
            atoms[atom, LENGTH] = 0


@kernel
def measure(atoms: Array, iv: Array, meta: Array, preds: Array) -> tuple[Number, Number, Number]:
    """Return how many atoms hold somewhere, how many arguments they have, and how much room their intervals take."""
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
    """Move the atoms that hold somewhere into new arrays that `measure` sized."""
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


@inlined_kernel
def begins_by(position: int, queue: Array, end: int, preds: Array) -> bool:
    """Return whether a record in the queue begins at a position or before."""
    i = 0
    while i < end:
        if queue[i + 1] <= position:
            return True
        i += 3 + preds[queue[i], ARITY]
    return False


@inlined_kernel
def matters_beyond(position: int, retention: Array, persisting: Array, preds: Array) -> bool:
    """Return whether rules may still read a fact that ends, or a range after its end, later than a position.

    Facts that end where they were evaluated last do not count.
    """
    found = False
    for pred in range(len(preds)):
        if persisting[pred]:
            continue
        if preds[pred, LATEST] < STANDING_END and retention[pred] < STANDING_END:
            found = found or position <= preds[pred, LATEST] + retention[pred]
        else:  # beside facts that never end, and among those that are read for ever, there may be others
            found = found or preds[pred, SIZE] > 0
    return found
