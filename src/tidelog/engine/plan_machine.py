"""The plan machine: one compiled function, `run`, that evaluates any program from a table of plans.

State is a handful of flat arrays (see `fact_store`), so a new program needs no compilation. Work arrives in a queue of
records `predicate, lo, hi, arguments...`. Taking a record inserts its interval into the atom's sorted, coalesced list.
Each piece of it that was not known before drives the plans that its predicate triggers: nested-loop joins by index
look-ups. The facts that they derive are appended to the queue of the next round. Since a piece becomes visible only
when it is taken, every combination of facts is tried once, when its last member arrives (semi-naive evaluation).

A join keeps one cursor per level (literal): the atom and interval it is at, and the times `[lows, highs]` at which all
literals before it hold. The words of plans are described in `compiler.opcodes`. Interval ends are grid positions; the
operations on them come from `timeline.grid` and are compiled here.
"""

from __future__ import annotations

from tidelog.compiler.opcodes import (
    AWAITED,
    CUT,
    DEFER,
    DIAMOND,
    H_HI,
    H_LO,
    HEAD,
    KEEPER,
    KIND,
    LEAD,
    LOOKUP,
    MERGE,
    N_HEAD,
    N_LEVELS,
    NEGATION,
    OP,
    PLAN,
    PLAN_SIZE,
    R_HI,
    R_LO,
    RIGHT_OPERAND,
    SHARED,
    SINCE,
    STANDS,
    STREAM,
    WORK,
    Code,
)
from tidelog.engine.agenda import LASTING, RECURSION, add, note_change
from tidelog.engine.join_kernels import (
    DONE,
    EVALUATED,
    GROW,
    NO_ROOM,
    NO_ROOM_LATER,
    TIRED,
    add_left,
    add_right,
    argument,
    bind,
    can_reach,
    clip,
    driver_times,
    first_interval,
    is_full,
    log_pieces,
    merge_diamonds,
    merge_record,
    next_gap,
    open_level,
    operand_times,
    return_record,
    store_atom,
    value,
    write_atom,
    write_head,
)
from tidelog.engine.standing_kernels import begin_standing, end_begun_standing, end_standing, standing_times
from tidelog.engine.store_tables import (
    AIM,
    ARITY,
    LATEST,
    LENGTH,
    LOGGED,
    MAY_STAND,
    N_ATOMS,
    NAMED,
    NEWS,
    NEXT_DUE,
    RECURSION_NEWS,
    START,
    TAKEN,
    TRANSIENT,
    WATCHED,
    Array,
    Number,
    Tables,
    begin_round,
    find_atom,
    insert,
    look_ahead,
)
from tidelog.jit import kernel, tick
from tidelog.timeline.grid import NEG_INF, POS_INF, STANDING_END

#: Words of the next queue that whole plans may derive before the machine returns.
MUCH = 1 << 14
#: Up to this many atoms stay in the processor's nearest caches, and are not looked at ahead.
FEW_ATOMS = 1 << 14


@kernel
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
) -> tuple[int, bool, int, int, int, int]:
    """Work the queue off, round by round.

    Return why it stopped, whether the queue and the next one have changed places, and the positions: of the next record
    and of the ends of the queue, the next one and `later`. No array is made here, nor returned: counting references to
    the queues, in every turn of the inner loops, took a third of the time.

    A record whose predicate is `-1 - p` asks for plan p to be evaluated at the times of the record: as a whole or, if
    an atom follows (otherwise -1), for that atom. Facts that a deferring plan derives beyond the horizon go into the
    queue `later`.
    """
    plans, words = code.plans, code.words
    trigger_start, triggers = code.trigger_start, code.triggers
    preds, index_list, index_table = tables.preds, tables.index_list, tables.index_table
    atoms, args, table, entries, keys = tables.atoms, tables.args, tables.table, tables.entries, tables.keys
    iv, meta, ranks, pieces, agenda = tables.iv, tables.meta, tables.ranks, tables.pieces, tables.agenda
    log, queued, resumed = tables.log, tables.queued, tables.resumed
    turned, looked_at = False, position
    if following_end == 0:
        begin_round(queued)
    registers, values, at_atom = tables.scratch[0], tables.scratch[1], tables.scratch[2]
    at_entry, at_interval, lows, highs = tables.scratch[3], tables.scratch[4], tables.scratch[5], tables.scratch[6]
    while True:
        # Take a record; at the end of a round, go on with the facts that it derived.
        if position >= end:
            if following_end == 0:
                return DONE, turned, position, end, following_end, later_end
            if queue[0] < 0 and following_end > MUCH:
                return EVALUATED, turned, position, end, following_end, later_end
            queue, following, turned = following, queue, not turned
            position, end, following_end, looked_at = 0, following_end, 0, 0
            begin_round(queued)
        if meta[TAKEN] >= allowance:
            return TIRED, turned, position, end, following_end, later_end
        tick()
        if position >= looked_at and meta[N_ATOMS] > FEW_ATOMS:
            looked_at = look_ahead(queue, position, end, preds, atoms, args, table, iv, meta, tables.ahead)
        record, first_following, first_later = position, following_end, later_end
        pred, lo, hi = queue[position], queue[position + 1], queue[position + 2]
        merged_lo, merged_hi = lo, hi
        atom: Number = 0
        n_pieces, n_triggers, first_trigger = 1, 1, 0
        if pred >= 0:
            named = (pred >> 32) - 1
            pred &= NAMED - 1
            arity = preds[pred, ARITY]
            first_trigger = trigger_start[pred]
            n_triggers = trigger_start[pred + 1] - first_trigger
            n_atoms = meta[N_ATOMS]
            if resumed[0]:
                # It was inserted before a queue was full.
                resumed[0] = 0
                n_pieces, atom, merged_lo, merged_hi = resumed[1], resumed[2], resumed[3], resumed[4]
            elif is_full(pred, arity, meta, preds, atoms, args, table, entries, keys):
                return GROW, turned, position, end, following_end, later_end
            elif preds[pred, TRANSIENT]:
                # The row behind the last atom lends its place, so that levels read every atom in one way.
                atom = n_atoms
                write_atom(atom, pred, arity, queue, position, atoms, args, meta)
                pieces[0, 0], pieces[0, 1] = lo, hi
            else:
                atom, slot = named, -1
                if atom < 0:
                    slot = find_atom(pred, queue, position + 3, arity, atoms, args, table)
                    atom = table[slot]
                if atom < 0:
                    atom = n_atoms
                    write_atom(atom, pred, arity, queue, position, atoms, args, meta)
                if atoms[atom, LENGTH] + 1 > pieces.shape[0]:
                    return GROW, turned, position, end, following_end, later_end
                stands = False
                if preds[pred, MAY_STAND]:
                    # The end of a fact that stands is where it is evaluated now. Another that reaches farther ends it.
                    stands = hi == STANDING_END
                    if stands:
                        hi = preds[pred, AIM]
                    elif hi > preds[pred, AIM] and atom < n_atoms:
                        end_standing(atom, preds, atoms, iv, agenda)
                        end_begun_standing(atom, preds, atoms, iv, agenda)
                if preds[pred, LOGGED] and log[0, 0] + atoms[atom, LENGTH] + 2 > log.shape[0]:
                    return GROW, turned, position, end, following_end, later_end
                n_pieces, merged_lo, merged_hi = insert(atom, lo, hi, atoms, iv, meta, pieces)
                if n_pieces < 0:
                    return GROW, turned, position, end, following_end, later_end
                if atom == n_atoms:
                    store_atom(
                        atom,
                        slot,
                        pred,
                        arity,
                        meta,
                        preds,
                        index_list,
                        index_table,
                        atoms,
                        args,
                        table,
                        entries,
                        keys,
                        values,
                    )
                if preds[pred, LOGGED]:
                    log_pieces(atom, n_pieces, pieces, log)
                meta[NEWS] += n_pieces
                if preds[pred, WATCHED] and n_pieces:
                    note_change(atom, atom == n_atoms, preds[pred, WATCHED], agenda)
                    if preds[pred, WATCHED] & RECURSION:
                        meta[RECURSION_NEWS] += n_pieces
                preds[pred, LATEST] = max(preds[pred, LATEST], hi)
                if stands:
                    begin_standing(atom, lo, preds, atoms, iv, agenda)
            position += 3 + arity
        else:
            atom = queue[position + 3]
            pieces[0, 0], pieces[0, 1] = lo, hi
            position += 4
        meta[TAKEN] += 1

        for piece in range(n_pieces):
            new_lo, new_hi = pieces[piece, 0], pieces[piece, 1]
            # How many levels of the previous plan could be satisfied. If fewer than this plan shares with it, this plan
            # fails at the same level.
            reached: Number = 0
            for trigger in range(n_triggers):
                if pred >= 0:
                    place = first_trigger + trigger
                    if reached < triggers[place, SHARED]:
                        continue
                    plan = triggers[place, PLAN]
                    words[plan + WORK] += 1
                    # Most new facts of a stream wait for others that arrive later.
                    awaited = triggers[place, AWAITED]
                    if awaited >= 0 and preds[awaited, LATEST] < new_lo + triggers[place, LEAD] and new_lo != NEG_INF:
                        reached = 1
                        continue
                else:
                    plan = plans[-1 - pred]
                    words[plan + WORK] += 1
                n_levels = words[plan + N_LEVELS]
                offsets = plan + PLAN_SIZE + words[plan + N_HEAD]
                floor, reached = 0, 0
                lows[0], highs[0] = new_lo, new_hi

                # The driver: the literal of the new piece, or the atom that is given.
                if pred >= 0:
                    at = words[offsets]
                    lows[1], highs[1] = driver_times(words, at, new_lo, new_hi, merged_lo, merged_hi, dense)
                    if lows[1] > highs[1]:
                        continue
                    reached = 1
                    if n_levels > 1:
                        # Do not even look up what cannot hold yet.
                        second = words[offsets + 1]
                        if words[second + KIND] == LOOKUP and not can_reach(words, second, lows[1], preds, dense):
                            continue
                    if not bind(words, at, atom, atoms, args, registers, ranks):
                        reached = 0
                        continue
                    floor = 1
                    at_atom[0] = atom
                elif atom >= 0:
                    if not bind(words, words[offsets], atom, atoms, args, registers, ranks):
                        continue
                    lows[1], highs[1] = new_lo, new_hi
                    floor = 1
                    at_atom[0] = atom

                # The join: go down a level where one is satisfied, and back up where it has no more to offer.
                level, entering = floor, True
                turns: Number = 0
                while level >= floor:
                    tick()
                    turns += 1
                    reached = max(reached, level)
                    if level == n_levels:
                        if pred < 0 and highs[level] == new_hi and words[plan + KEEPER] >= 0:
                            add(at_atom[words[plan + KEEPER]], LASTING, agenda)
                        lo = add_left(lows[level], words[plan + H_LO], dense)
                        hi = add_right(highs[level], words[plan + H_HI], dense)
                        if words[plan + STANDS]:
                            lo, hi = standing_times(
                                words,
                                plan,
                                lo,
                                hi,
                                new_lo,
                                new_hi,
                                preds,
                                atoms,
                                args,
                                table,
                                iv,
                                registers,
                                values,
                                agenda,
                            )
                        cut, size = words[plan + CUT], 3 + words[plan + N_HEAD]
                        if not cut & STREAM:
                            lo, hi = clip(lo, hi, meta, horizon_lo, horizon_hi, cut)
                        if cut & DEFER and lo > horizon_hi:
                            if later_end + size > later.shape[0]:
                                return_record(pred, n_pieces, atom, merged_lo, merged_hi, preds, meta, queued, resumed)
                                return NO_ROOM_LATER, turned, record, end, first_following, first_later
                            meta[NEXT_DUE] = min(meta[NEXT_DUE], lo)
                            later_end = write_head(words, plan, lo, hi, registers, later, later_end)
                        elif lo <= hi:
                            written: Number = -NO_ROOM
                            if cut & MERGE:
                                for i in range(words[plan + N_HEAD]):
                                    values[i] = argument(words[plan + PLAN_SIZE + i], registers)
                                head, n_head = words[plan + HEAD], words[plan + N_HEAD]
                                written = merge_record(head, n_head, lo, hi, following, following_end, tables)
                            elif following_end + size <= following.shape[0]:
                                written = write_head(words, plan, lo, hi, registers, following, following_end)
                            if written < 0:
                                return_record(pred, n_pieces, atom, merged_lo, merged_hi, preds, meta, queued, resumed)
                                return -written, turned, record, end, first_following, first_later
                            following_end = written
                        level -= 1
                        entering = False
                        continue

                    at = words[offsets + level]
                    kind, op = words[at + KIND], words[at + OP]
                    r_lo, r_hi = words[at + R_LO], words[at + R_HI]
                    now_lo, now_hi = lows[level], highs[level]
                    if entering:
                        open_level(
                            words,
                            at,
                            level,
                            index_table,
                            atoms,
                            args,
                            table,
                            entries,
                            keys,
                            registers,
                            values,
                            at_atom,
                            at_entry,
                        )
                        at_interval[level] = -1

                    if kind == NEGATION:
                        found = at_atom[level]
                        length = atoms[found, LENGTH] if found >= 0 else 0
                        start = atoms[found, START] if found >= 0 else 0
                        i = at_interval[level] + 1
                        if i == 0 and not bind(words, at, max(found, 0), atoms, args, registers, ranks):
                            i = length + 1
                        i, lo, hi = next_gap(words, at, i, start, length, iv, now_lo, now_hi, dense)
                        entering = i <= length
                        if entering:
                            at_interval[level] = i
                            lows[level + 1], highs[level + 1] = lo, hi
                            level += 1
                        else:
                            level -= 1
                        continue

                    entering = False
                    while at_atom[level] >= 0:
                        tick()
                        turns += 1
                        found = at_atom[level]
                        length, start = atoms[found, LENGTH], atoms[found, START]
                        i = at_interval[level]
                        if i < 0:
                            i = length
                            if bind(words, at, found, atoms, args, registers, ranks):
                                i = first_interval(words, at, iv, start, length, now_lo, new_lo)
                        elif kind == RIGHT_OPERAND and op == SINCE and r_hi == POS_INF:
                            # The earliest right operand gives all that later ones give.
                            i = length
                        elif kind == LOOKUP and highs[level + 1] == now_hi:
                            # Later intervals add nothing to one that reaches the end.
                            i = length
                        else:
                            # Bindings of deeper levels never touch this level's registers, so they still stand.
                            i += 1
                        while i < length:
                            tick()
                            known_lo, known_hi = iv[start + i, 0], iv[start + i, 1]
                            if kind == LOOKUP:
                                lo, hi = value(op, known_lo, known_hi, r_lo, r_hi, dense)
                                if lo > now_hi:
                                    i = length
                                    break
                                if op == DIAMOND:
                                    i, hi = merge_diamonds(iv, start, length, i, hi, r_lo, r_hi, now_hi, dense)
                                lo, hi = max(lo, now_lo), min(hi, now_hi)
                            else:
                                if known_lo - 1 > now_hi:
                                    i = length
                                    break
                                lo, hi = operand_times(
                                    words, at, known_lo, known_hi, now_lo, now_hi, new_lo, new_hi, dense
                                )
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
