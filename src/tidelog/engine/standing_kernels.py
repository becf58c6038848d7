"""Facts that stand: where they begin to, and where they end because something that they follow from has changed.

See `compiler.standing_facts`. An interval that stands ends at STANDING_END until then. All kernels are compiled into
`plan_machine.run`.
"""

from __future__ import annotations

from tidelog.compiler.opcodes import HEAD, N_HEAD, PLAN_SIZE, PUSHES, STANDS, VISITS
from tidelog.engine.agenda import AGAIN, REMADE, Agenda, add, note_change
from tidelog.engine.join_kernels import argument
from tidelog.engine.store_tables import AIM, KNOWN_TO, LENGTH, PRED, START, WATCHED, Array, Number, find_atom
from tidelog.jit import inlined_kernel
from tidelog.timeline.grid import NEG_INF, POS_INF, STANDING_END


@inlined_kernel
def standing_times(
    words: Array,
    plan: int,
    lo: int,
    hi: int,
    new_lo: int,
    new_hi: int,
    preds: Array,
    atoms: Array,
    args: Array,
    table: Array,
    iv: Array,
    registers: Array,
    values: Array,
    agenda: Agenda,
) -> tuple[int, int]:
    """Return the times of a fact that may stand, from those of a body in [new_lo,new_hi]; none if the first is later.

    The end is STANDING_END where the body still holds at the end of its times. A body that has held before, for an atom
    that has changed, may have been why the fact stood: it ends where it is known to hold, and is derived again.
    """
    how, head = words[plan + STANDS], words[plan + HEAD]
    if how & VISITS and lo == new_lo and lo != NEG_INF:
        n_head = words[plan + N_HEAD]
        for i in range(n_head):
            values[i] = argument(words[plan + PLAN_SIZE + i], registers)
        atom: Number = table[find_atom(head, values, 0, n_head, atoms, args, table)]
        if atom >= 0:
            end_standing(atom, preds, atoms, iv, agenda)
        lo += 1
    if how & PUSHES:
        if STANDING_END <= hi < POS_INF:
            # What it will give later is given when its time has come.
            hi = STANDING_END if lo <= preds[head, AIM] else lo - 1
    elif hi == new_hi and lo <= hi:
        hi = STANDING_END
    return lo, hi


@inlined_kernel
def end_standing(atom: int, preds: Array, atoms: Array, iv: Array, agenda: Agenda) -> None:
    """Let a fact that stands end where it is known to hold, to be derived again."""
    last, pred = atoms[atom, START] + atoms[atom, LENGTH] - 1, atoms[atom, PRED]
    if atoms[atom, LENGTH] and iv[last, 1] == STANDING_END and iv[last, 0] <= preds[pred, KNOWN_TO]:
        iv[last, 1] = preds[pred, KNOWN_TO]
        note_change(atom, False, preds[pred, WATCHED], agenda)
        add(atom, REMADE, agenda)


@inlined_kernel
def end_begun_standing(atom: int, preds: Array, atoms: Array, iv: Array, agenda: Agenda) -> None:
    """Let a fact that has begun to stand in this evaluation end where it is evaluated now, to be derived again."""
    last = atoms[atom, START] + atoms[atom, LENGTH] - 1
    if atoms[atom, LENGTH] and iv[last, 1] == STANDING_END:
        iv[last, 1] = preds[atoms[atom, PRED], AIM]
        add(atom, AGAIN, agenda)


@inlined_kernel
def begin_standing(atom: int, lo: int, preds: Array, atoms: Array, iv: Array, agenda: Agenda) -> None:
    """Let a fact stand that holds where it is evaluated now, as a record says that begins at `lo`.

    If it holds later anyway, or held beyond what was known before for another reason, derive it again each time: that
    reason may be forgotten by now, so the fact could not be derived again if something else ended it here.
    """
    last = atoms[atom, START] + atoms[atom, LENGTH] - 1
    known = preds[atoms[atom, PRED], KNOWN_TO]
    if iv[last, 1] == preds[atoms[atom, PRED], AIM] and (lo <= known + 1 or iv[last, 0] > known):
        iv[last, 1] = STANDING_END
    elif iv[last, 1] != STANDING_END:
        add(atom, AGAIN, agenda)
