"""The plan machine: one compiled function that runs any program from a table of plans.

State is a handful of flat arrays (see `store`), so that a new program needs no compilation. Work comes in a queue of
records `predicate, lo, hi, arguments...`. Taking a record inserts its interval into the atom's sorted, coalesced
list; each part that was not known before then drives the plans that its predicate triggers, each a nested-loop join
by index look-ups, and what they derive is appended to the queue of the next round. Since a part becomes visible only
when it is taken, every combination of facts is tried once, when its last member comes (semi-naive evaluation).

Interval ends are the grid's (`timeline.grid`); the operations there are compiled here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidelog.engine.agenda import LASTING, add, came
from tidelog.engine.tables import (
    ARGS,
    ARITY,
    CAPACITY,
    CLIPPED_HI,
    CLIPPED_LO,
    INDEXES,
    LATEST,
    LENGTH,
    N_ARGS,
    N_ATOMS,
    N_ENTRIES,
    N_INDEXES,
    N_KEYS,
    NEWS,
    NEXT_DUE,
    PRED,
    SIZE,
    START,
    TAKEN,
    TRANSIENT,
    WATCHED,
    Array,
    Number,
    Tables,
    find_atom,
    find_key,
    first_after,
    index_atom,
    insert,
)
from tidelog.timeline import grid
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.kernels import allocating_kernel, inlined

# Kinds of levels in a plan, and the words of a level (SAME: an earlier level that is about the same atom, or -1); keys,
# bindings, checks and comparisons follow. A level that is GIVEN is an atom that comes with the record: it binds
# variables and says nothing of time.
LOOKUP, NEGATION, LEFT_OPERAND, RIGHT_OPERAND, GIVEN = range(5)
KIND, PREDICATE, OP, R_LO, R_HI, INDEX, SAME, N_KEY, N_BIND, N_CHECK, N_COMPARE, LEVEL_SIZE = range(12)

# The words of a plan (KEEPER: the level whose atom is noted where the body holds at the end of the times that were
# asked for, or -1); the sources of the head's arguments and the offsets of the levels follow. WORK counts what the plan
# has done so far: how often it was driven, and the levels and atoms that it has gone through.
N_LEVELS, HEAD, H_LO, H_HI, CUT, KEEPER, N_HEAD, WORK, PLAN_SIZE = range(9)

# What happens at the horizon: bits of CUT. Infinite intervals are cut at its left or right end, too (finite ones always
# are); or, on a stream, nothing is cut, and what lies wholly beyond it may be deferred.
CUT_LEFT, CUT_RIGHT, STREAM, DEFER = 1, 2, 4, 8

HOLDS, DIAMOND, BOX, SINCE, UNTIL = range(5)

# Why the machine came back: all done, an array is full, more records were taken than allowed, or whole plans have been
# evaluated and derive much (so many words of the following queue), which then goes on by batches.
DONE, GROW, TIRED, EVALUATED = range(4)
MUCH = 1 << 14


class Code(NamedTuple):
    """Plans: `plans[p]` is where plan p begins in `words`; triggers by predicate, and with how many levels each begins
    as the one before it does; `width` is how many registers, levels and arguments there are at most."""

    plans: Array
    words: Array
    trigger_start: Array
    trigger_list: Array
    shared: Array
    width: int


add_left = inlined(grid.add_left)
add_right = inlined(grid.add_right)
erode_left = inlined(grid.erode_left)
erode_right = inlined(grid.erode_right)
since = inlined(grid.since)


@inlined
def value(op: int, lo: int, hi: int, r_lo: int, r_hi: int, dense: bool) -> tuple[int, int]:
    """The times at which an operator over an atom that holds on [lo,hi] is true because of it; empty if lo > hi."""
    if op == DIAMOND:
        return add_left(lo, r_lo, dense), add_right(hi, r_hi, dense)
    if op == BOX:
        return erode_left(lo, r_hi, dense), erode_right(hi, r_lo, dense)
    return lo, hi


@inlined
def _source(source: int, registers: Array) -> int:
    """An argument: a register, or a constant written as a negative number."""
    return registers[source] if source >= 0 else -1 - source


@inlined
def _bound(code: Array, at: int, atom: int, atoms: Array, args: Array, registers: Array, ranks: Array) -> bool:
    """Binds and checks an atom's arguments against a level, and tries the comparisons that can be tried then."""
    base = atoms[atom, ARGS]
    word = at + LEVEL_SIZE + code[at + N_KEY]
    for _ in range(code[at + N_BIND]):
        registers[code[word + 1]] = args[base + code[word]]
        word += 2
    for _ in range(code[at + N_CHECK]):
        if args[base + code[word]] != _source(code[word + 1], registers):
            return False
        word += 2
    for _ in range(code[at + N_COMPARE]):
        left = ranks[_source(code[word + 1], registers)]
        right = ranks[_source(code[word + 2], registers)]
        op = code[word]
        if op == 0:
            fine = left < right
        elif op == 1:
            fine = left <= right
        elif op == 2:
            fine = left == right
        elif op == 3:
            fine = left != right
        elif op == 4:
            fine = left > right
        else:
            fine = left >= right
        if not fine:
            return False
        word += 3
    return True


@inlined
def _clip(lo: int, hi: int, meta: Array, horizon_lo: int, horizon_hi: int, cut: int) -> tuple[int, int]:
    """Cuts finite ends that lie beyond the horizon (with `cut` infinite ones too), and notes that it did."""
    if hi > horizon_hi and (hi != POS_INF or cut & CUT_RIGHT):
        meta[CLIPPED_HI] = 1
        hi = horizon_hi
    if lo < horizon_lo and (lo != NEG_INF or cut & CUT_LEFT):
        meta[CLIPPED_LO] = 1
        lo = horizon_lo
    if lo > horizon_hi:
        meta[CLIPPED_HI] = 1
        hi = lo - 1
    elif hi < horizon_lo:
        meta[CLIPPED_LO] = 1
        hi = lo - 1
    return lo, hi


@inlined
def _reaches(pred: int, op: int, r_lo: int, r_hi: int, at: int, preds: Array, dense: bool) -> bool:
    """Whether an operator over any atom of a predicate can hold at or after a position, by what has come so far."""
    latest = preds[pred, LATEST]
    if op == DIAMOND:
        latest = add_right(latest, r_hi, dense)
    elif op == BOX:
        latest = erode_right(latest, r_lo, dense)
    return bool(latest >= at)


@allocating_kernel
def run(
    code: Code,
    tables: Tables,
    horizon_lo: int,
    horizon_hi: int,
    dense: bool,
    queue: Array,
    position: int,
    end: int,
    following: Array,
    following_end: int,
    later: Array,
    later_end: int,
    allowance: int,
) -> tuple[int, Array, int, int, Array, int, Array, int]:
    """Works the queue off, round by round. Returns why it stopped, and the two queues with where they stand.

    A record whose predicate is `-1 - p` asks for plan p to be evaluated at the times of the record, as a whole or, with
    the atom that follows (otherwise -1), for that atom. What a deferring plan derives beyond the horizon goes into the
    queue `later`.
    """
    plans, words, shared = code.plans, code.words, code.shared
    trigger_start, trigger_list = code.trigger_start, code.trigger_list
    preds, index_list, index_table = tables.preds, tables.index_list, tables.index_table
    atoms, args, table, entries, keys = tables.atoms, tables.args, tables.table, tables.entries, tables.keys
    iv, meta, ranks, pieces, agenda = tables.iv, tables.meta, tables.ranks, tables.pieces, tables.agenda
    registers, values, at_atom = tables.scratch[0], tables.scratch[1], tables.scratch[2]
    at_entry, at_interval, lows, highs = tables.scratch[3], tables.scratch[4], tables.scratch[5], tables.scratch[6]
    while True:
        if position >= end:
            if following_end == 0:
                return DONE, queue, position, end, following, following_end, later, later_end
            if queue[0] < 0 and following_end > MUCH:
                return EVALUATED, queue, position, end, following, following_end, later, later_end
            queue, following = following, queue
            position, end, following_end = 0, following_end, 0
        if meta[TAKEN] >= allowance:
            return TIRED, queue, position, end, following, following_end, later, later_end
        pred, lo, hi = queue[position], queue[position + 1], queue[position + 2]
        merged_lo, merged_hi = lo, hi
        atom: Number = 0
        n_pieces, n_triggers, first_trigger = 1, 1, 0
        pieces[0, 0], pieces[0, 1] = lo, hi
        if pred >= 0:
            arity = preds[pred, ARITY]
            first_trigger = trigger_start[pred]
            n_triggers = trigger_start[pred + 1] - first_trigger
            n_atoms = meta[N_ATOMS]
            if n_atoms + 2 > atoms.shape[0] or meta[N_ARGS] + arity > args.shape[0]:
                return GROW, queue, position, end, following, following_end, later, later_end
            if preds[pred, TRANSIENT]:
                # The row behind the last atom lends its place, so that levels read every atom in one way.
                atom = n_atoms
                atoms[atom, PRED], atoms[atom, ARGS] = pred, meta[N_ARGS]
                for i in range(arity):
                    args[meta[N_ARGS] + i] = queue[position + 3 + i]
            else:
                n_indexes = preds[pred, N_INDEXES]
                if (
                    4 * (n_atoms + 1) > 3 * table.shape[0]
                    or meta[N_ENTRIES] + n_indexes > entries.shape[0]
                    or 2 * (meta[N_KEYS] + n_indexes) > keys.shape[0]
                ):
                    return GROW, queue, position, end, following, following_end, later, later_end
                slot = find_atom(pred, queue, position + 3, arity, atoms, args, table)
                atom = table[slot]
                if atom < 0:
                    atom = n_atoms
                    atoms[atom, PRED], atoms[atom, ARGS] = pred, meta[N_ARGS]
                    atoms[atom, START], atoms[atom, LENGTH], atoms[atom, CAPACITY] = 0, 0, 0
                    for i in range(arity):
                        args[meta[N_ARGS] + i] = queue[position + 3 + i]
                if atoms[atom, LENGTH] + 1 > pieces.shape[0]:
                    return GROW, queue, position, end, following, following_end, later, later_end
                n_pieces, merged_lo, merged_hi = insert(atom, lo, hi, atoms, iv, meta, pieces)
                if n_pieces < 0:
                    return GROW, queue, position, end, following, following_end, later, later_end
                if atom == n_atoms:
                    table[slot] = atom
                    meta[N_ATOMS] += 1
                    meta[N_ARGS] += arity
                    preds[pred, SIZE] += 1
                    for i in range(n_indexes):
                        index = index_list[preds[pred, INDEXES] + i]
                        index_atom(atom, index, index_table, atoms, args, entries, keys, meta, values)
                meta[NEWS] += n_pieces
                if preds[pred, WATCHED] and n_pieces:
                    came(atom, atom == n_atoms, preds[pred, WATCHED], agenda)
                preds[pred, LATEST] = max(preds[pred, LATEST], hi)
            position += 3 + arity
        else:
            atom = queue[position + 3]
            position += 4
        meta[TAKEN] += 1

        for piece in range(n_pieces):
            # How many levels of the plan before could be satisfied: where fewer than are the same here, all is said.
            reached: Number = 0
            for trigger in range(n_triggers):
                if pred >= 0:
                    if reached < shared[first_trigger + trigger]:
                        continue
                    plan = plans[trigger_list[first_trigger + trigger]]
                else:
                    plan = plans[-1 - pred]
                words[plan + WORK] += 1
                n_levels = words[plan + N_LEVELS]
                n_head = words[plan + N_HEAD]
                offsets = plan + PLAN_SIZE + n_head
                new_lo, new_hi = pieces[piece, 0], pieces[piece, 1]
                floor, reached = 0, 0
                lows[0], highs[0] = new_lo, new_hi
                if pred >= 0:
                    at = words[offsets]
                    op, r_lo, r_hi = words[at + OP], words[at + R_LO], words[at + R_HI]
                    if op == BOX:
                        start, stop = value(BOX, merged_lo, merged_hi, r_lo, r_hi, dense)
                        lows[1] = max(start, add_left(new_lo, r_lo, dense))
                        highs[1] = min(stop, add_right(new_hi, r_hi, dense))
                    elif op in (SINCE, UNTIL):
                        lows[1], highs[1] = merged_lo, merged_hi
                    else:
                        lows[1], highs[1] = value(op, new_lo, new_hi, r_lo, r_hi, dense)
                    if lows[1] > highs[1]:
                        continue
                    reached = 1
                    if n_levels > 1:
                        # Most new facts of a stream wait for others that come later: not even looked up here.
                        second = words[offsets + 1]
                        if words[second + KIND] == LOOKUP and not _reaches(
                            words[second + PREDICATE],
                            words[second + OP],
                            words[second + R_LO],
                            words[second + R_HI],
                            lows[1],
                            preds,
                            dense,
                        ):
                            continue
                    if not _bound(words, at, atom, atoms, args, registers, ranks):
                        reached = 0
                        continue
                    floor = 1
                    at_atom[0] = atom
                elif atom >= 0:
                    if not _bound(words, words[offsets], atom, atoms, args, registers, ranks):
                        continue
                    lows[1], highs[1] = new_lo, new_hi
                    floor = 1
                    at_atom[0] = atom

                level, entering = floor, True
                turns: Number = 0
                while level >= floor:
                    turns += 1
                    reached = max(reached, level)
                    if level == n_levels:
                        if pred < 0 and highs[level] == new_hi and words[plan + KEEPER] >= 0:
                            add(at_atom[words[plan + KEEPER]], LASTING, agenda)
                        lo = add_left(lows[level], words[plan + H_LO], dense)
                        hi = add_right(highs[level], words[plan + H_HI], dense)
                        cut = words[plan + CUT]
                        if not cut & STREAM:
                            lo, hi = _clip(lo, hi, meta, horizon_lo, horizon_hi, cut)
                        if cut & DEFER and lo > horizon_hi:
                            if later_end + 3 + n_head > later.shape[0]:
                                larger = np.empty(2 * later.shape[0] + 64, np.int64)
                                larger[:later_end] = later[:later_end]
                                later = larger
                            meta[NEXT_DUE] = min(meta[NEXT_DUE], lo)
                            later[later_end] = words[plan + HEAD]
                            later[later_end + 1] = lo
                            later[later_end + 2] = hi
                            for i in range(n_head):
                                source = words[plan + PLAN_SIZE + i]
                                later[later_end + 3 + i] = _source(source, registers)
                            later_end += 3 + n_head
                        elif lo <= hi:
                            if following_end + 3 + n_head > following.shape[0]:
                                larger = np.empty(2 * following.shape[0] + 64, np.int64)
                                larger[:following_end] = following[:following_end]
                                following = larger
                            following[following_end] = words[plan + HEAD]
                            following[following_end + 1] = lo
                            following[following_end + 2] = hi
                            for i in range(n_head):
                                source = words[plan + PLAN_SIZE + i]
                                following[following_end + 3 + i] = _source(source, registers)
                            following_end += 3 + n_head
                        level -= 1
                        entering = False
                        continue

                    at = words[offsets + level]
                    kind, op, r_lo, r_hi = words[at + KIND], words[at + OP], words[at + R_LO], words[at + R_HI]
                    now_lo, now_hi = lows[level], highs[level]
                    if entering:
                        n_key = words[at + N_KEY]
                        index = words[at + INDEX]
                        if words[at + SAME] >= 0:
                            at_atom[level] = at_atom[words[at + SAME]]
                            at_entry[level] = -1
                        elif index < 0:
                            for i in range(n_key):
                                values[i] = _source(words[at + LEVEL_SIZE + i], registers)
                            slot = find_atom(words[at + PREDICATE], values, 0, n_key, atoms, args, table)
                            at_atom[level] = table[slot]
                            at_entry[level] = -1
                        else:
                            for i in range(n_key):
                                values[i] = _source(words[at + LEVEL_SIZE + i], registers)
                            slot = find_key(index, values, n_key, index_table[index, 1:], atoms, args, entries, keys)
                            entry = keys[slot, 1]
                            at_entry[level] = entries[entry, 1] if entry >= 0 else -1
                            at_atom[level] = entries[entry, 0] if entry >= 0 else -1
                        at_interval[level] = -1

                    if kind == NEGATION:
                        # The gaps between the values, one after the other: gap i ends where value i begins. Ends
                        # grow from value to value, so where a box is empty (it ends before it begins) the gaps at
                        # its sides overlap and cover it.
                        found = at_atom[level]
                        length = atoms[found, LENGTH] if found >= 0 else 0
                        start = atoms[found, START] if found >= 0 else 0
                        i = at_interval[level] + 1
                        if i == 0 and not _bound(words, at, max(found, 0), atoms, args, registers, ranks):
                            i = length + 1
                        entering = False
                        while i <= length:
                            gap_lo, gap_hi = now_lo, now_hi
                            if i > 0:
                                _, stop = value(op, iv[start + i - 1, 0], iv[start + i - 1, 1], r_lo, r_hi, dense)
                                gap_lo = max(gap_lo, stop + 1)
                            if i < length:
                                begin, _ = value(op, iv[start + i, 0], iv[start + i, 1], r_lo, r_hi, dense)
                                gap_hi = min(gap_hi, begin - 1)
                            if gap_lo <= gap_hi:
                                at_interval[level] = i
                                lows[level + 1], highs[level + 1] = gap_lo, gap_hi
                                level += 1
                                entering = True
                                break
                            i += 1
                        if not entering:
                            level -= 1
                        continue

                    entering = False
                    while at_atom[level] >= 0:
                        turns += 1
                        found = at_atom[level]
                        length, start = atoms[found, LENGTH], atoms[found, START]
                        i = at_interval[level]
                        if i < 0:
                            i = length
                            if _bound(words, at, found, atoms, args, registers, ranks):
                                if op == HOLDS:
                                    i = first_after(iv, start, length, now_lo)
                                elif op == DIAMOND:
                                    i = 0
                                    if now_lo != NEG_INF and r_hi != POS_INF:
                                        i = first_after(iv, start, length, now_lo - r_hi - 1)
                                elif op == BOX:
                                    i = 0
                                    if now_lo != NEG_INF and r_lo != NEG_INF:
                                        i = first_after(iv, start, length, now_lo - r_lo - 1)
                                elif kind == RIGHT_OPERAND and op == SINCE and r_hi != POS_INF:
                                    i = first_after(iv, start, length, max(now_lo, new_lo - r_hi) - 2)
                                else:
                                    i = first_after(iv, start, length, now_lo - 1)
                        elif kind == RIGHT_OPERAND and op == SINCE and r_hi == POS_INF:
                            # The earliest right operand gives all that later ones give.
                            i = length
                        else:
                            # Bindings of deeper levels never touch this level's registers, so they still stand.
                            i += 1
                        while i < length:
                            known_lo, known_hi = iv[start + i, 0], iv[start + i, 1]
                            if kind == LOOKUP:
                                lo, hi = value(op, known_lo, known_hi, r_lo, r_hi, dense)
                                if lo > now_hi:
                                    i = length
                                    break
                                lo, hi = max(lo, now_lo), min(hi, now_hi)
                            else:
                                if known_lo - 1 > now_hi:
                                    i = length
                                    break
                                if kind == LEFT_OPERAND:
                                    a_lo, a_hi, b_lo, b_hi = known_lo, known_hi, now_lo, now_hi
                                else:
                                    a_lo, a_hi, b_lo, b_hi = now_lo, now_hi, known_lo, known_hi
                                if op == SINCE:
                                    lo, hi = since(a_lo, a_hi, b_lo, b_hi, r_lo, r_hi, dense)
                                    if kind == RIGHT_OPERAND:
                                        lo = max(lo, new_lo - 1)
                                else:
                                    hi, lo = since(-a_hi, -a_lo, -b_hi, -b_lo, r_lo, r_hi, dense)
                                    lo, hi = -lo, -hi
                                    if kind == RIGHT_OPERAND:
                                        hi = min(hi, new_hi + 1)
                            if lo <= hi:
                                at_interval[level] = i
                                lows[level + 1], highs[level + 1] = lo, hi
                                level += 1
                                entering = True
                                break
                            i += 1
                        if entering:
                            break
                        entry = at_entry[level]
                        at_atom[level] = entries[entry, 0] if entry >= 0 else -1
                        at_entry[level] = entries[entry, 1] if entry >= 0 else -1
                        at_interval[level] = -1
                    if not entering:
                        level -= 1
                words[plan + WORK] += turns
