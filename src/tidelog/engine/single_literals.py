"""Evaluate whole rules whose body is one positive literal, atom by atom.

What such a rule derives from an atom belongs to one atom of the head. So that one is looked up once, and all intervals
go into its list at once, where the plan machine would write a record for each into a queue, and look each of them up
when it takes it. Hierarchies of classes consist of such rules.
"""

from __future__ import annotations

import numpy as np

from tidelog.compiler.flat_rules import FlatRule, Op
from tidelog.compiler.opcodes import (
    CUT,
    H_HI,
    H_LO,
    HEAD,
    N_HEAD,
    OP,
    PLAN_SIZE,
    R_HI,
    R_LO,
    Code,
)
from tidelog.engine.fact_store import Store
from tidelog.engine.join_kernels import (
    add_left,
    add_right,
    argument,
    bind,
    clip,
    is_full,
    open_level,
    store_atom,
    value,
    write_atom,
)
from tidelog.engine.plan_machine import FEW_ATOMS
from tidelog.engine.store_tables import (
    AHEAD,
    ARGS,
    LATEST,
    LENGTH,
    N_ATOMS,
    NEWS,
    START,
    TAKEN,
    Array,
    Number,
    Tables,
    find_atom,
    hash_atom,
    insert,
)
from tidelog.jit import inlined_kernel, kernel, tick


def has_single_literal(rule: FlatRule) -> bool:
    """Return whether the body of a rule is one positive literal, read at one atom's intervals."""
    return len(rule.body) == 1 and not rule.body[0].negated and rule.body[0].op in (Op.HOLDS, Op.DIAMOND, Op.BOX)


def evaluate_single_literal(store: Store, code: Code, plan: int) -> None:
    """Evaluate the plan of a whole rule with a single literal; new facts of its head must drive no other plan."""
    resumed = False
    while not _derive(code, store.tables(code), plan, *store.horizon, store.dense, resumed):
        store.grow()
        resumed = True


@inlined_kernel
def _look_ahead(words: Array, plan: int, at: int, tables: Tables) -> None:
    """Read what is stored for the heads of the next atoms, as `store_tables.look_ahead` does for records."""
    atoms, args, table, entries, iv, ahead = (
        tables.atoms,
        tables.args,
        tables.table,
        tables.entries,
        tables.iv,
        tables.ahead,
    )
    registers, values, source, entry = tables.scratch[0], tables.scratch[1], tables.scratch[2][0], tables.scratch[3][0]
    mask, arity = np.uint64(table.shape[0] - 1), words[plan + N_HEAD]
    count = 0
    while count < AHEAD and source >= 0:
        bind(words, at, source, atoms, args, registers, tables.ranks)
        for i in range(arity):
            values[i] = argument(words[plan + PLAN_SIZE + i], registers)
        ahead[count, 0] = np.int64(hash_atom(words[plan + HEAD], values, 0, arity) & mask)
        count += 1
        source = entries[entry, 0] if entry >= 0 else -1
        entry = entries[entry, 1] if entry >= 0 else -1
    for i in range(count):
        ahead[i, 0] = max(table[ahead[i, 0]], 0)
    for i in range(count):
        atom = ahead[i, 0]
        ahead[i, 0] = min(atoms[atom, ARGS], args.shape[0] - 1)
        ahead[i, 1] = atoms[atom, START] + max(atoms[atom, LENGTH] - 1, 0)
    for i in range(count):
        ahead[i, 0] = args[ahead[i, 0]] + iv[ahead[i, 1], 1]


@kernel
def _derive(
    code: Code, tables: Tables, number: int, horizon_lo: int, horizon_hi: int, dense: bool, resumed: bool
) -> bool:
    """Derive the head from each atom of the body; return False where an array is full.

    The cursor of the plan's only level says which atom comes next. A call that resumes derives again what the one
    before derived from that atom, which changes nothing.
    """
    words, plan = code.words, code.plans[number]
    index_list, index_table, preds = tables.index_list, tables.index_table, tables.preds
    atoms, args, table, entries, keys = tables.atoms, tables.args, tables.table, tables.entries, tables.keys
    iv, meta, pieces = tables.iv, tables.meta, tables.pieces
    registers, values, at_atom, at_entry = tables.scratch[0], tables.scratch[1], tables.scratch[2], tables.scratch[3]
    head, arity, cut = words[plan + HEAD], words[plan + N_HEAD], words[plan + CUT]
    at = words[plan + PLAN_SIZE + arity]
    op, r_lo, r_hi = words[at + OP], words[at + R_LO], words[at + R_HI]
    if not resumed:
        open_level(words, at, 0, index_table, atoms, args, table, entries, keys, registers, values, at_atom, at_entry)
    turns = 0
    while at_atom[0] >= 0:
        tick()
        source = at_atom[0]
        if turns % AHEAD == 0 and meta[N_ATOMS] > FEW_ATOMS:
            _look_ahead(words, plan, at, tables)
        turns += 1
        if atoms[source, LENGTH] and bind(words, at, source, atoms, args, registers, tables.ranks):
            for i in range(arity):
                values[i] = argument(words[plan + PLAN_SIZE + i], registers)
            slot = find_atom(head, values, 0, arity, atoms, args, table)
            atom: Number = table[slot]
            fresh = bool(atom < 0)
            if fresh:
                if is_full(head, arity, meta, preds, atoms, args, table, entries, keys):
                    return False
                atom = meta[N_ATOMS]
                write_atom(atom, head, arity, values, -3, atoms, args, meta)
            start = atoms[source, START]
            for i in range(start, start + atoms[source, LENGTH]):
                tick()
                lo, hi = value(op, iv[i, 0], iv[i, 1], r_lo, r_hi, dense)
                if lo > hi:
                    continue
                lo, hi = add_left(lo, words[plan + H_LO], dense), add_right(hi, words[plan + H_HI], dense)
                lo, hi = clip(lo, hi, meta, horizon_lo, horizon_hi, cut)
                if lo > hi:
                    continue
                if atoms[atom, LENGTH] + 1 > pieces.shape[0]:
                    return False
                n_pieces, _, _ = insert(atom, lo, hi, atoms, iv, meta, pieces)
                if n_pieces < 0:
                    return False
                if fresh:
                    fresh = False
                    store_atom(
                        atom,
                        slot,
                        head,
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
                meta[NEWS] += n_pieces
                meta[TAKEN] += 1
                preds[head, LATEST] = max(preds[head, LATEST], hi)
        entry = at_entry[0]
        at_atom[0] = entries[entry, 0] if entry >= 0 else -1
        at_entry[0] = entries[entry, 1] if entry >= 0 else -1
    return True
