"""The steps of the plan machine: bind arguments, open levels, and compute when operators hold over time.

All are compiled into `plan_machine.run`, which calls them. The words of plans are described in `compiler.opcodes`.
"""

from __future__ import annotations

from tidelog.compiler.opcodes import (
    BOX,
    CUT_LEFT,
    CUT_RIGHT,
    DIAMOND,
    HEAD,
    HOLDS,
    INDEX,
    KIND,
    LEFT_OPERAND,
    LEVEL_SIZE,
    N_BIND,
    N_CHECK,
    N_COMPARE,
    N_HEAD,
    N_KEY,
    OP,
    PLAN_SIZE,
    PREDICATE,
    R_HI,
    R_LO,
    RIGHT_OPERAND,
    SAME,
    SINCE,
    UNTIL,
)
from tidelog.engine.agenda import clear_schedule
from tidelog.engine.store_tables import (
    ARGS,
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
    NAMED,
    PLACE,
    PRED,
    ROUND,
    SIZE,
    START,
    TAKEN,
    TRANSIENT,
    WATCHED,
    Array,
    Number,
    Tables,
    begin_round,
    find_atom,
    find_key,
    first_after,
    index_atom,
)
from tidelog.jit import inlined_kernel
from tidelog.timeline import grid
from tidelog.timeline.grid import NEG_INF, POS_INF, STANDING_END

#: Why `plan_machine.run` returns: all done; an array is full; more records were taken than allowed; whole plans have
#: been evaluated and derived more than MUCH words of the next queue, which the caller then works off in batches; or the
#: next queue, or that for later, is full.
DONE, GROW, TIRED, EVALUATED, NO_ROOM, NO_ROOM_LATER = range(6)

add_left = inlined_kernel(grid.add_left)
add_right = inlined_kernel(grid.add_right)
erode_left = inlined_kernel(grid.erode_left)
erode_right = inlined_kernel(grid.erode_right)
since = inlined_kernel(grid.since)


@inlined_kernel
def value(op: int, lo: int, hi: int, r_lo: int, r_hi: int, dense: bool) -> tuple[int, int]:
    """Return the times at which an operator is true because its atom holds on [lo,hi]; none if the first is later."""
    if op == DIAMOND:
        return add_left(lo, r_lo, dense), add_right(hi, r_hi, dense)
    if op == BOX:
        return erode_left(lo, r_hi, dense), erode_right(hi, r_lo, dense)
    return lo, hi


@inlined_kernel
def argument(source: int, registers: Array) -> int:
    """Return an argument: the content of a register, or a constant that is written as a negative number."""
    return registers[source] if source >= 0 else -1 - source


@inlined_kernel
def compare(op: int, left: int, right: int) -> bool:
    if op == 0:
        return left < right
    if op == 1:
        return left <= right
    if op == 2:
        return left == right
    if op == 3:
        return left != right
    if op == 4:
        return left > right
    return left >= right


@inlined_kernel
def bind(words: Array, at: int, atom: int, atoms: Array, args: Array, registers: Array, ranks: Array) -> bool:
    """Bind and check an atom's arguments against a level, and try the comparisons that are bound then."""
    base = atoms[atom, ARGS]
    word = at + LEVEL_SIZE + words[at + N_KEY]
    for _ in range(words[at + N_BIND]):
        registers[words[word + 1]] = args[base + words[word]]
        word += 2
    for _ in range(words[at + N_CHECK]):
        if args[base + words[word]] != argument(words[word + 1], registers):
            return False
        word += 2
    for _ in range(words[at + N_COMPARE]):
        left = ranks[argument(words[word + 1], registers)]
        right = ranks[argument(words[word + 2], registers)]
        if not compare(words[word], left, right):
            return False
        word += 3
    return True


@inlined_kernel
def clip(lo: int, hi: int, meta: Array, horizon_lo: int, horizon_hi: int, cut: int) -> tuple[int, int]:
    """Cut finite ends that lie beyond the horizon (with `cut`, infinite ones too), and note that something was cut."""
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


@inlined_kernel
def can_reach(words: Array, at: int, position: int, preds: Array, dense: bool) -> bool:
    """Return whether a level's operator, over any atom of its predicate so far, can hold at or after a position."""
    latest = preds[words[at + PREDICATE], LATEST]
    if words[at + OP] == DIAMOND:
        latest = add_right(latest, words[at + R_HI], dense)
    elif words[at + OP] == BOX:
        latest = erode_right(latest, words[at + R_LO], dense)
    return bool(latest >= position)


@inlined_kernel
def driver_times(
    words: Array, at: int, new_lo: int, new_hi: int, merged_lo: int, merged_hi: int, dense: bool
) -> tuple[int, int]:
    """Return the times at which a new piece [new_lo,new_hi] of the maximal interval around it makes a level true."""
    op, r_lo, r_hi = words[at + OP], words[at + R_LO], words[at + R_HI]
    if op == BOX:
        start, stop = value(BOX, merged_lo, merged_hi, r_lo, r_hi, dense)
        return max(start, add_left(new_lo, r_lo, dense)), min(stop, add_right(new_hi, r_hi, dense))
    if op in (SINCE, UNTIL):
        return merged_lo, merged_hi
    return value(op, new_lo, new_hi, r_lo, r_hi, dense)


@inlined_kernel
def open_level(
    words: Array,
    at: int,
    level: int,
    index_table: Array,
    atoms: Array,
    args: Array,
    table: Array,
    entries: Array,
    keys: Array,
    registers: Array,
    values: Array,
    at_atom: Array,
    at_entry: Array,
) -> None:
    """Put a level's cursor on its first atom: that of an earlier level, the one known atom, or an index's first."""
    n_key, index, same = words[at + N_KEY], words[at + INDEX], words[at + SAME]
    at_entry[level] = -1
    if same >= 0:
        at_atom[level] = at_atom[same]
        return
    for i in range(n_key):
        values[i] = argument(words[at + LEVEL_SIZE + i], registers)
    if index < 0:
        at_atom[level] = table[find_atom(words[at + PREDICATE], values, 0, n_key, atoms, args, table)]
        return
    slot = find_key(index, values, n_key, index_table, atoms, args, entries, keys)
    entry = keys[slot, 1]
    at_atom[level] = -1
    if entry >= 0:
        at_entry[level], at_atom[level] = entries[entry, 1], entries[entry, 0]


@inlined_kernel
def next_gap(
    words: Array, at: int, i: int, start: int, length: int, iv: Array, now_lo: int, now_hi: int, dense: bool
) -> tuple[int, int, int]:
    """Return the next gap between the values of a negated literal, from gap i on; i > length where there is none.

    Gap i ends where value i begins. Ends grow from value to value, so where a box is empty (it ends before it begins)
    the gaps at its sides overlap and cover it. The first gap is searched for, since an atom may have many intervals.
    """
    op, r_lo, r_hi = words[at + OP], words[at + R_LO], words[at + R_HI]
    gap_lo, gap_hi = now_lo, now_hi
    if i == 0:
        last = length
        while i < last:
            middle = (i + last) >> 1
            begin, _ = value(op, iv[start + middle, 0], iv[start + middle, 1], r_lo, r_hi, dense)
            if begin <= now_lo:
                i = middle + 1
            else:
                last = middle
    while i <= length:
        gap_lo, gap_hi = now_lo, now_hi
        if i > 0:
            _, stop = value(op, iv[start + i - 1, 0], iv[start + i - 1, 1], r_lo, r_hi, dense)
            gap_lo = max(gap_lo, stop + 1)
            if gap_lo > now_hi:
                i = length + 1
                break
        if i < length:
            begin, _ = value(op, iv[start + i, 0], iv[start + i, 1], r_lo, r_hi, dense)
            gap_hi = min(gap_hi, begin - 1)
        if gap_lo <= gap_hi:
            break
        i += 1
    return i, gap_lo, gap_hi


@inlined_kernel
def first_interval(words: Array, at: int, iv: Array, start: int, length: int, now_lo: int, new_lo: int) -> Number:
    """Return the first interval of an atom that can matter to a level at or after `now_lo`."""
    kind, op, r_lo, r_hi = words[at + KIND], words[at + OP], words[at + R_LO], words[at + R_HI]
    if op == HOLDS:
        return first_after(iv, start, length, now_lo)
    if op == DIAMOND:
        if now_lo == NEG_INF or r_hi == POS_INF:
            return 0
        return first_after(iv, start, length, now_lo - r_hi - 1)
    if op == BOX:
        if now_lo == NEG_INF or r_lo == NEG_INF:
            return 0
        return first_after(iv, start, length, now_lo - r_lo - 1)
    if kind == RIGHT_OPERAND and op == SINCE and r_hi != POS_INF:
        return first_after(iv, start, length, max(now_lo, new_lo - r_hi) - 2)
    return first_after(iv, start, length, now_lo - 1)


@inlined_kernel
def merge_diamonds(
    iv: Array, start: int, length: int, i: int, hi: int, r_lo: int, r_hi: int, now_hi: int, dense: bool
) -> tuple[int, int]:
    """Join the values of `Diamondminus` over interval i and over those after it while they overlap or touch.

    Return the last interval that was joined, and where the joined value ends; values beyond `now_hi` do not matter. An
    interval that stands is not joined: those that have ended give all that follows from them, and may be forgotten.
    """
    while hi < now_hi and i + 1 < length and add_left(iv[start + i + 1, 0], r_lo, dense) <= hi + 1:
        if iv[start + i + 1, 1] == STANDING_END:
            break
        i += 1
        hi = add_right(iv[start + i, 1], r_hi, dense)
    return i, hi


@inlined_kernel
def operand_times(
    words: Array, at: int, known_lo: int, known_hi: int, now_lo: int, now_hi: int, new_lo: int, new_hi: int, dense: bool
) -> tuple[int, int]:
    """Return the times at which Since or Until holds for a known interval of one operand and the times of the other."""
    kind, r_lo, r_hi = words[at + KIND], words[at + R_LO], words[at + R_HI]
    if kind == LEFT_OPERAND:
        a_lo, a_hi, b_lo, b_hi = known_lo, known_hi, now_lo, now_hi
    else:
        a_lo, a_hi, b_lo, b_hi = now_lo, now_hi, known_lo, known_hi
    if words[at + OP] == SINCE:
        lo, hi = since(a_lo, a_hi, b_lo, b_hi, r_lo, r_hi, dense)
        if kind == RIGHT_OPERAND:
            lo = max(lo, new_lo - 1)
        return lo, hi
    mirrored_lo, mirrored_hi = since(-a_hi, -a_lo, -b_hi, -b_lo, r_lo, r_hi, dense)
    lo, hi = -mirrored_hi, -mirrored_lo
    if kind == RIGHT_OPERAND:
        hi = min(hi, new_hi + 1)
    return lo, hi


@inlined_kernel
def write_head(words: Array, plan: int, lo: int, hi: int, registers: Array, queue: Array, end: int) -> Number:
    """Append a derived record to a queue that has room for it; return the new end."""
    n_head = words[plan + N_HEAD]
    queue[end], queue[end + 1], queue[end + 2] = words[plan + HEAD], lo, hi
    for i in range(n_head):
        queue[end + 3 + i] = argument(words[plan + PLAN_SIZE + i], registers)
    return end + 3 + n_head


@inlined_kernel
def merge_record(head: int, n_head: int, lo: int, hi: int, queue: Array, end: int, tables: Tables) -> Number:
    """Append a derived record to a queue, for the atom whose arguments are in the second row of `scratch`.

    The atom is looked up only here, and made if there is none; its number is left behind them. Return what `merge_into`
    returns, or -GROW where there is no room for the atom.
    """
    values = tables.scratch[1]
    slot = find_atom(head, values, 0, n_head, tables.atoms, tables.args, tables.table)
    atom: Number = tables.table[slot]
    if atom < 0:
        if is_full(
            head,
            n_head,
            tables.meta,
            tables.preds,
            tables.atoms,
            tables.args,
            tables.table,
            tables.entries,
            tables.keys,
        ):
            return -GROW
        atom = tables.meta[N_ATOMS]
        _make_atom(atom, slot, head, n_head, tables)
    values[n_head] = atom
    return merge_into(atom, head, n_head, lo, hi, queue, end, tables)


@inlined_kernel
def merge_into(atom: int, head: int, n_head: int, lo: int, hi: int, queue: Array, end: int, tables: Tables) -> Number:
    """Append a derived record that names its atom to a queue; return the new end, or -NO_ROOM.

    The same fact may follow in many ways. So nothing is appended where the store knows it, or where it touches a record
    of its atom in the queue, which it becomes part of.
    """
    atoms, iv, queued = tables.atoms, tables.iv, tables.queued
    # How far a fact that stands holds is known only when it is taken.
    if hi != STANDING_END:
        if queued[1 + atom, ROUND] == queued[0, ROUND]:
            at = queued[1 + atom, PLACE]
            if lo <= queue[at + 2] + 1 and hi >= queue[at + 1] - 1 and queue[at + 2] != STANDING_END:
                queue[at + 1], queue[at + 2] = min(lo, queue[at + 1]), max(hi, queue[at + 2])
                return end
        start, length = atoms[atom, START], atoms[atom, LENGTH]
        i = first_after(iv, start, length, lo)
        if i < length and iv[start + i, 0] <= lo and hi <= iv[start + i, 1] and iv[start + i, 1] != STANDING_END:
            return end
    if end + 3 + n_head > queue.shape[0]:
        return -NO_ROOM
    queue[end], queue[end + 1], queue[end + 2] = head + NAMED * (atom + 1), lo, hi
    for i in range(n_head):
        queue[end + 3 + i] = tables.args[atoms[atom, ARGS] + i]
    queued[1 + atom, ROUND], queued[1 + atom, PLACE] = queued[0, ROUND], end
    return end + 3 + n_head


@inlined_kernel
def _make_atom(atom: int, slot: int, pred: int, arity: int, tables: Tables) -> None:
    """Make an atom part of the store, without intervals; its arguments are in the second row of `scratch`."""
    values = tables.scratch[1]
    write_atom(atom, pred, arity, values, -3, tables.atoms, tables.args, tables.meta)
    store_atom(
        atom,
        slot,
        pred,
        arity,
        tables.meta,
        tables.preds,
        tables.index_list,
        tables.index_table,
        tables.atoms,
        tables.args,
        tables.table,
        tables.entries,
        tables.keys,
        values,
    )
    if tables.preds[pred, WATCHED]:
        clear_schedule(atom, tables.agenda)


@inlined_kernel
def holds_always(atom: int, atoms: Array, iv: Array) -> bool:
    """Return whether an atom holds from the beginning of time and for ever."""
    start = atoms[atom, START]
    return bool(atoms[atom, LENGTH] == 1 and iv[start, 0] == NEG_INF and iv[start, 1] == POS_INF)


@inlined_kernel
def add_link(target: int, links: Array, end: int) -> Number:
    """Write a link if there is room for it; return where it ends, or would end."""
    if end < links.shape[0]:
        links[end] = target
    return end + 1


@inlined_kernel
def return_record(
    pred: int,
    n_pieces: int,
    atom: int,
    merged_lo: int,
    merged_hi: int,
    preds: Array,
    meta: Array,
    queued: Array,
    resumed: Array,
) -> None:
    """Return a record to the queue, to be taken again with the pieces that it gave when it was inserted."""
    meta[TAKEN] -= 1
    # What it derived is derived again.
    begin_round(queued)
    if pred >= 0 and not preds[pred, TRANSIENT]:
        resumed[0], resumed[1], resumed[2], resumed[3], resumed[4] = 1, n_pieces, atom, merged_lo, merged_hi


@inlined_kernel
def is_full(
    pred: int,
    arity: int,
    meta: Array,
    preds: Array,
    atoms: Array,
    args: Array,
    table: Array,
    entries: Array,
    keys: Array,
) -> bool:
    """Return whether the store may lack room for one more atom of a predicate."""
    n_atoms = meta[N_ATOMS]
    if n_atoms + 2 > atoms.shape[0] or meta[N_ARGS] + arity > args.shape[0]:
        return True
    n_indexes = preds[pred, N_INDEXES]
    return bool(
        4 * (n_atoms + 1) > 3 * table.shape[0]
        or meta[N_ENTRIES] + n_indexes > entries.shape[0]
        or 2 * (meta[N_KEYS] + n_indexes) > keys.shape[0]
    )


@inlined_kernel
def write_atom(
    atom: int, pred: int, arity: int, queue: Array, position: int, atoms: Array, args: Array, meta: Array
) -> None:
    """Write a record's atom, without intervals, into the row behind the last atom."""
    n_args = meta[N_ARGS]
    atoms[atom, PRED], atoms[atom, ARGS] = pred, n_args
    atoms[atom, START], atoms[atom, LENGTH], atoms[atom, CAPACITY] = 0, 0, 0
    for i in range(arity):
        args[n_args + i] = queue[position + 3 + i]


@inlined_kernel
def log_pieces(atom: int, count: int, pieces: Array, log: Array) -> None:
    """Log the new pieces of an atom's intervals, for the steps that compute with them."""
    for i in range(count):
        log[0, 0] += 1
        at = log[0, 0]
        log[at, 0], log[at, 1], log[at, 2] = atom, pieces[i, 0], pieces[i, 1]


@inlined_kernel
def store_atom(
    atom: int,
    slot: int,
    pred: int,
    arity: int,
    meta: Array,
    preds: Array,
    index_list: Array,
    index_table: Array,
    atoms: Array,
    args: Array,
    table: Array,
    entries: Array,
    keys: Array,
    values: Array,
) -> None:
    """Make the atom that `write_atom` wrote part of the store and of its indexes."""
    table[slot] = atom
    meta[N_ATOMS] += 1
    meta[N_ARGS] += arity
    preds[pred, SIZE] += 1
    for i in range(preds[pred, N_INDEXES]):
        index = index_list[preds[pred, INDEXES] + i]
        index_atom(atom, index, index_table, atoms, args, entries, keys, meta, values)
