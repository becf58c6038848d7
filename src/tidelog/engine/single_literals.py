"""Evaluate rules whose body is one positive literal, over whole columns.

Such a rule copies rows: it selects some, puts their arguments into other places, and moves or stretches their
intervals. So it needs no store. What all rules of a predicate give is sorted and coalesced at once, which takes a
fraction of the time of inserting row by row. Hierarchies of classes consist of such rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op
from tidelog.engine.batch_problem import Problem
from tidelog.engine.fact_store import Int64s, Store
from tidelog.engine.join_kernels import add_left, add_right, clip, value
from tidelog.engine.maximal_intervals import coalesce
from tidelog.jit import Array, kernel, tick
from tidelog.language.comparisons import OPERATORS
from tidelog.language.hidden_predicates import is_violation
from tidelog.language.syntax import Value, Variable
from tidelog.numeric.rows import Int32s, Rows


def has_single_literal(rule: FlatRule) -> bool:
    """Return whether the body of a rule is one positive literal, read at one atom's intervals.

    Violated constraints are left out: some of them are shown, in the order in which the plan machine finds them.
    """
    if len(rule.body) != 1 or rule.body[0].negated or is_violation(rule.predicate):
        return False
    return rule.body[0].op in (Op.HOLDS, Op.DIAMOND, Op.BOX)


def evaluate_single_literals(
    problem: Problem, store: Store, rules: Sequence[FlatRule], read: Callable[[FlatLiteral], Rows]
) -> dict[str, Rows]:
    """Return the maximal intervals of the heads of rules, given or derived from the rows that `read` gives.

    If something is cut at the horizon of the store, that is noted there.
    """
    found = {}
    for name in {rule.predicate: None for rule in rules}:
        derived = [_derive(problem, store, rule, read(rule.body[0])) for rule in rules if rule.predicate == name]
        found[name] = coalesce(Rows.concatenate([problem.facts_of(name), *derived], problem.compiled.arities[name]))
    return found


def _derive(problem: Problem, store: Store, rule: FlatRule, rows: Rows) -> Rows:
    """Return what a rule derives from the rows of its literal."""
    literal, constant_of = rule.body[0], problem.symbols.intern
    rows, columns = _select(rule, rows, constant_of, store.ranks)
    if rule.args == literal.args:
        args = rows.args
    else:
        args = np.empty((len(rule.args), len(rows)), np.int32)
        for place, term in enumerate(rule.args):
            args[place] = columns[term] if isinstance(term, Variable) else constant_of(term.value)
    if literal.op is Op.HOLDS and rule.range == (0, 0):
        return Rows(args, rows.lo, rows.hi)
    lo, hi = rows.lo.copy(), rows.hi.copy()
    _move(int(literal.op), *literal.range, *rule.range, store.dense, *store.horizon, lo, hi, store.meta)
    keep = lo <= hi
    moved = Rows(args, lo, hi)
    return moved if keep.all() else moved.where(keep)


def _select(
    rule: FlatRule, rows: Rows, constant_of: Callable[[Value], int], ranks: Int64s
) -> tuple[Rows, dict[Variable, Int32s]]:
    """Return the rows that fit the literal and the comparisons of a rule, and the column of each variable."""
    columns: dict[Variable, Int32s] = {}
    conditions = []
    for term, column in zip(rule.body[0].args, rows.args, strict=True):
        if isinstance(term, Variable) and term not in columns:
            columns[term] = column
        else:
            conditions.append(column == (columns[term] if isinstance(term, Variable) else constant_of(term.value)))
    for comparison in rule.comparisons:
        left, right = (
            ranks[columns[term] if isinstance(term, Variable) else constant_of(term.value)]
            for term in (comparison.left, comparison.right)
        )
        conditions.append(np.asarray(OPERATORS[comparison.op](left, right)))
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
    """Replace each interval by that at which the head holds because of it; one that ends before it begins is empty."""
    for row in range(los.shape[0]):
        tick()
        lo, hi = value(op, los[row], his[row], r_lo, r_hi, dense)
        if lo <= hi:
            lo, hi = add_left(lo, h_lo, dense), add_right(hi, h_hi, dense)
            lo, hi = clip(lo, hi, meta, horizon_lo, horizon_hi, 0)
        los[row], his[row] = lo, hi
