"""Agenda of atoms to re-evaluate: those that changed, and those due to change at a known time.

An atom is scheduled for one of two purposes. `RULES`: a rule with negation is evaluated again for an atom of its body
once the atom's intervals change, or time reaches a point where what the rule reads of them begins or ends. `ANSWERS`:
the intervals of the query are reported once they have ended. Each purpose has a list of atoms to look at, each once,
and a heap of times at which others join it. Only the first time of an atom counts, so that frequent changes cost no
memory. `LASTING` has the atoms with which a body still holds where it was last evaluated.

Facts that stand (see `compiler.standing_facts`) are on no list while nothing changes. `REMADE` has the atoms to derive
again from all rules of their predicates, in this evaluation or the next, and `AGAIN` those that have to be in the
evaluation after this one, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidelog.jit import Array, Number, inlined_kernel, kernel, tick
from tidelog.timeline.grid import NEG_INF, POS_INF

#: The lists; the first two are purposes with times of their own.
RULES, ANSWERS, LASTING, REMADE, AGAIN = range(5)
#: The position in `lengths` from which on the lengths of the heaps stand, behind those of the lists.
HEAPS = 5
_SEEN = 32
#: Once more than one in `_MANY` of the times in a heap were due, it is searched as a whole for the rest.
_MANY = 8
#: Among the purposes that a predicate is watched for: it belongs to a recursion through time, whose news are counted.
RECURSION = 64
_PURPOSES = (1 << RULES) | (1 << ANSWERS)


class Agenda(NamedTuple):
    """By atom: the lists it is in, as bits, and its first time for each purpose. Then the lists, the heaps (times and
    atoms), and the lengths of all of them."""

    flags: Array
    first: Array
    lists: Array
    times: Array
    atoms: Array
    lengths: Array


def empty() -> Agenda:
    """Make an agenda for no atoms."""
    return Agenda(
        np.zeros(0, np.int8),
        np.zeros((0, 2), np.int64),
        np.zeros((0, HEAPS), np.int32),
        np.zeros((0, 2), np.int64),
        np.zeros((0, 2), np.int32),
        np.zeros(HEAPS + 2, np.int64),
    )


def ensure_room(agenda: Agenda, atoms: int) -> Agenda:
    """Return an agenda with room for this many atoms, and for a current and an outdated time of each in the heaps."""
    if atoms <= len(agenda.flags):
        return agenda

    def enlarge(array: Array, rows: int) -> Array:
        made = np.zeros((rows, *array.shape[1:]), array.dtype)
        made[: len(array)] = array
        return made

    return Agenda(
        enlarge(agenda.flags, atoms),
        enlarge(agenda.first, atoms),
        enlarge(agenda.lists, atoms),
        enlarge(agenda.times, 2 * atoms),
        enlarge(agenda.atoms, 2 * atoms),
        agenda.lengths,
    )


def schedule_all(agenda: Agenda, watched: Array) -> None:
    """Schedule all atoms now, for the purposes that their predicates are watched for."""
    agenda.flags[: len(watched)] = watched & _PURPOSES
    agenda.first[: len(watched)] = POS_INF
    agenda.lengths[:] = 0
    for matter in (RULES, ANSWERS):
        atoms = np.flatnonzero(watched & (1 << matter))
        agenda.lists[: len(atoms), matter] = atoms
        agenda.lengths[matter] = len(atoms)
        if len(atoms):  # and their time is now
            agenda.first[atoms[0], matter] = agenda.times[0, matter] = NEG_INF
            agenda.atoms[0, matter], agenda.lengths[HEAPS + matter] = atoms[0], 1


@inlined_kernel
def add(atom: int, which: int, agenda: Agenda) -> None:
    """Put an atom on a list, unless it is there."""
    if not agenda.flags[atom] & (1 << which):
        agenda.flags[atom] |= 1 << which
        agenda.lists[agenda.lengths[which], which] = atom
        agenda.lengths[which] += 1


@inlined_kernel
def clear_schedule(atom: int, agenda: Agenda) -> None:
    """Begin with an atom that is new: it is on no list, and at no time."""
    agenda.flags[atom] = 0
    agenda.first[atom, RULES] = agenda.first[atom, ANSWERS] = POS_INF


@inlined_kernel
def note_change(atom: int, fresh: bool, watched: int, agenda: Agenda) -> None:
    """Schedule an atom of a watched predicate that has changed, perhaps from nothing."""
    if fresh:
        clear_schedule(atom, agenda)
    if watched & (1 << RULES):
        add(atom, RULES, agenda)
    if watched & (1 << ANSWERS):
        add(atom, ANSWERS, agenda)


@inlined_kernel
def move_list(of: int, to: int, agenda: Agenda) -> None:
    """Move all atoms of a list to another."""
    for place in range(agenda.lengths[of]):
        atom = agenda.lists[place, of]
        agenda.flags[atom] &= ~(1 << of)
        add(atom, to, agenda)
    agenda.lengths[of] = 0


@inlined_kernel
def clear_list(of: int, agenda: Agenda) -> None:
    """Take all atoms off a list."""
    for place in range(agenda.lengths[of]):
        agenda.flags[agenda.lists[place, of]] &= ~(1 << of)
    agenda.lengths[of] = 0


@inlined_kernel
def next_time(matter: int, agenda: Agenda) -> Number:
    """Return the first time in a heap, or POS_INF."""
    return agenda.times[0, matter] if agenda.lengths[HEAPS + matter] else POS_INF


@inlined_kernel
def _put(at: int, t: int, atom: int, matter: int, agenda: Agenda) -> None:
    """Put a time into a heap of `at` times that has room for it."""
    times, atoms = agenda.times, agenda.atoms
    while at > 0 and times[(at - 1) >> 1, matter] > t:
        times[at, matter], atoms[at, matter] = times[(at - 1) >> 1, matter], atoms[(at - 1) >> 1, matter]
        at = (at - 1) >> 1
    times[at, matter], atoms[at, matter] = t, atom


@kernel
def schedule(t: int, atom: int, matter: int, agenda: Agenda) -> None:
    """Schedule an atom for time t, unless it is scheduled earlier."""
    if t >= agenda.first[atom, matter]:
        return
    agenda.first[atom, matter] = t
    lengths = agenda.lengths
    if lengths[HEAPS + matter] == len(agenda.times):
        _drop_outdated(matter, agenda)
    _put(lengths[HEAPS + matter], t, atom, matter, agenda)
    lengths[HEAPS + matter] += 1


@kernel
def _drop_outdated(matter: int, agenda: Agenda) -> None:
    """Drop outdated times, so that the heap has at most one for each atom."""
    times, atoms, flags = agenda.times, agenda.atoms, agenda.flags
    kept = 0
    for i in range(agenda.lengths[HEAPS + matter]):
        t, atom = times[i, matter], atoms[i, matter]
        if agenda.first[atom, matter] == t and not flags[atom] & _SEEN:
            flags[atom] |= _SEEN
            _put(kept, t, atom, matter, agenda)
            kept += 1
    agenda.lengths[HEAPS + matter] = kept
    for i in range(kept):
        flags[atoms[i, matter]] &= ~_SEEN


@kernel
def advance_to(now: int, matter: int, agenda: Agenda) -> None:
    """Advance to time `now`: move the atoms scheduled by then onto the list."""
    times, atoms, lengths = agenda.times, agenda.atoms, agenda.lengths
    moved = 0
    while lengths[HEAPS + matter] and times[0, matter] <= now:
        if _MANY * moved > lengths[HEAPS + matter]:
            _move_all(now, matter, agenda)
            return
        moved += 1
        t, atom = times[0, matter], atoms[0, matter]
        lengths[HEAPS + matter] -= 1
        size = lengths[HEAPS + matter]
        last, its = times[size, matter], atoms[size, matter]
        at = 0
        while 2 * at + 1 < size:
            child = 2 * at + 1
            if child + 1 < size and times[child + 1, matter] < times[child, matter]:
                child += 1
            if times[child, matter] >= last:
                break
            times[at, matter], atoms[at, matter] = times[child, matter], atoms[child, matter]
            at = child
        times[at, matter], atoms[at, matter] = last, its
        if agenda.first[atom, matter] == t:
            agenda.first[atom, matter] = POS_INF
            add(atom, matter, agenda)


@kernel
def _move_all(now: int, matter: int, agenda: Agenda) -> None:
    """Do what `advance_to` does in one pass over the heap, which costs less where many of its atoms are due."""
    times, atoms, lengths = agenda.times, agenda.atoms, agenda.lengths
    kept = 0
    for i in range(lengths[HEAPS + matter]):
        tick()
        t, atom = times[i, matter], atoms[i, matter]
        if t > now:
            _put(kept, t, atom, matter, agenda)
            kept += 1
        elif agenda.first[atom, matter] == t:
            agenda.first[atom, matter] = POS_INF
            add(atom, matter, agenda)
    lengths[HEAPS + matter] = kept
