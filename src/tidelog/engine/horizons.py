"""How far in time a batch evaluation has to go for a question about a span."""

from __future__ import annotations

from tidelog.compiler.bound_memory import find_rows_window
from tidelog.compiler.flat_rules import FlatLiteral, Op, Pair
from tidelog.engine.batch_problem import Problem
from tidelog.engine.repetition_search import find_span
from tidelog.engine.shift_recursion import find_shift_recursion
from tidelog.timeline.grid import NEG_INF, POS_INF


def choose_sweep(problem: Problem, until: Pair | None) -> Pair | None:
    """Choose the horizon for programs that propagate in one direction only, if the question bounds that direction."""
    if until is None:
        return None
    compiled = problem.compiled
    ranges = [r for rule in compiled.rules for r in (rule.range, *(_signed_range(b) for b in rule.body))]
    ranges += [find_rows_window(step, compiled.grid) for step in compiled.aggregations]
    if until[1] != POS_INF and all(lo >= 0 for lo, _ in ranges):
        return NEG_INF, until[1]
    if until[0] != NEG_INF and all(hi <= 0 for _, hi in ranges):
        return until[0], POS_INF
    return None


def _signed_range(literal: FlatLiteral) -> Pair:
    lo, hi = literal.range
    return (-hi, -lo) if literal.op is Op.UNTIL else (lo, hi)


def is_near(problem: Problem, sweep: Pair) -> bool:
    """Return whether the data reaches about as far as the question, so that sweeping there is no detour."""
    span = find_span(problem.given.values())
    reach = 64 * max((part.reach for part in problem.compiled.components), default=1)
    return (sweep[1] == POS_INF or sweep[1] <= span[1] + reach) and (sweep[0] == NEG_INF or sweep[0] >= span[0] - reach)


def has_long_shifts(problem: Problem) -> bool:
    """Return whether a recursion is decided by arithmetic, which is faster than a sweep over all that it derives."""
    return any(find_shift_recursion(part, problem.compiled.grid.tick) for part in problem.compiled.components)
