"""Evaluate rules whose body is one positive literal, over whole columns.

Such a rule copies rows: it selects some, puts their arguments into other places, and moves or stretches their
intervals. So it needs no store. What all rules of a predicate give is sorted and coalesced at once, which takes a
fraction of the time of inserting row by row. Hierarchies of classes consist of such rules.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidelog.compiler.flat_rules import FlatRule, Op, Pair
from tidelog.engine.fact_store import Int64s
from tidelog.engine.join_kernels import add_left, add_right, clip, value
from tidelog.jit import Array, kernel, tick
from tidelog.language.comparisons import OPERATORS
from tidelog.language.hidden_predicates import is_violation
from tidelog.language.syntax import Term, Value, Variable
from tidelog.numeric.rows import Int32s, Rows


def has_single_literal(rule: FlatRule) -> bool:
    """Return whether the body of a rule is one positive literal, read at one atom's intervals.

    Violated constraints are left out: some of them are shown, in the order in which the plan machine finds them.
    """
    if len(rule.body) != 1 or rule.body[0].negated or is_violation(rule.predicate):
        return False
    return rule.body[0].op in (Op.HOLDS, Op.DIAMOND, Op.BOX)


def evaluate_single_literal(
    rule: FlatRule,
    rows: Rows,
    constant_of: Callable[[Value], int],
    ranks: Int64s,
    horizon: Pair,
    meta: Array,
    dense: bool,
) -> Rows:
    """Return what a rule with a single literal derives from the maximal intervals of its literal's atoms.

    For a literal without `Boxminus` or `Boxplus`, any intervals with the same times will do. `meta` is that of a store,
    where it is noted that something was cut at the horizon.
    """
    literal = rule.body[0]
    rows, columns = _select(rule, rows, constant_of, ranks)
    args = np.empty((len(rule.args), len(rows)), np.int32)
    if rule.args == literal.args:
        args = rows.args
    else:
        for place, term in enumerate(rule.args):
            args[place] = columns[term] if isinstance(term, Variable) else constant_of(term.value)
    if literal.op is Op.HOLDS and rule.range == (0, 0):
        return Rows(args, rows.lo, rows.hi)
    lo, hi = rows.lo.copy(), rows.hi.copy()
    _move(int(literal.op), *literal.range, *rule.range, dense, *horizon, lo, hi, meta)
    moved = Rows(args, lo, hi)
    keep = lo <= hi
    return moved if keep.all() else moved.where(keep)


def _select(
    rule: FlatRule, rows: Rows, constant_of: Callable[[Value], int], ranks: Int64s
) -> tuple[Rows, dict[Variable, Int32s]]:
    """Return the rows that fit the literal and the comparisons of a rule, and the column of each variable."""
    literal = rule.body[0]
    columns: dict[Variable, Int32s] = {}
    conditions = []
    for term, column in zip(literal.args, rows.args, strict=True):
        if isinstance(term, Variable) and term not in columns:
            columns[term] = column
        else:
            conditions.append(column == (columns[term] if isinstance(term, Variable) else constant_of(term.value)))

    def rank(term: Term) -> Int64s | np.int64:
        ranked: Int64s | np.int64 = ranks[columns[term] if isinstance(term, Variable) else constant_of(term.value)]
        return ranked

    for comparison in rule.comparisons:
        conditions.append(OPERATORS[comparison.op](rank(comparison.left), rank(comparison.right)))
    if not conditions:
        return rows, columns
    keep = np.logical_and.reduce(np.broadcast_arrays(np.ones(len(rows), np.bool_), *conditions))
    return rows.where(keep), {term: column[keep] for term, column in columns.items()}


@kernel
def _move(
    op: int,
    r_lo: int,
    r_hi: int,
    h_lo: int,
    h_hi: int,
    dense: bool,
    horizon_lo: int,
    horizon_hi: int,
    los: Array,
    his: Array,
    meta: Array,
) -> None:
    """Replace intervals by those at which the head holds because of each; it ends before it begins if there are none."""
    for row in range(los.shape[0]):
        tick()
        lo, hi = value(op, los[row], his[row], r_lo, r_hi, dense)
        if lo <= hi:
            lo, hi = add_left(lo, h_lo, dense), add_right(hi, h_hi, dense)
            lo, hi = clip(lo, hi, meta, horizon_lo, horizon_hi, 0)
        los[row], his[row] = lo, hi
