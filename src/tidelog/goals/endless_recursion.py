"""Whether a program can derive facts that repeat for ever from its given facts, judged without evaluating it.

Only a recursion that moves through time can go on for ever. It ends with its inputs where something in each turn holds
for a bounded time only, such as `B` in `A(X) :- Diamondminus[5,5] A(X), B(X)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.compiler.bound_memory import read_range
from tidelog.compiler.compiled_program import RuleComponent
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op
from tidelog.engine.batch_problem import Problem
from tidelog.numeric.rows import Rows
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF

#: Whether the facts of a predicate are known to have a first time, and a last one.
_Bounded = tuple[bool, bool]


def may_repeat(problem: Problem) -> bool:
    """Return whether facts may repeat for ever; False is certain."""
    moving = [part for part in problem.compiled.components if part.recursive and _moves(part)]
    if not moving:
        return False
    bounded = _find_bounded(problem)
    return any(not all(bounded[name]) for part in moving for name in part.predicates)


def _moves(part: RuleComponent) -> bool:
    """Return whether a recursion reads itself at other times."""
    if part.slice or part.calculations or part.aggregations:
        return True
    return any(
        literal.predicate in part.predicates and (read_range(rule, literal) != (0, 0) or rule.range != (0, 0))
        for rule in part.rules
        for literal in rule.body
    )


def _find_bounded(problem: Problem) -> dict[str, _Bounded]:
    """Return at which ends the facts of each predicate are bounded in time."""
    clauses: dict[str, list[FlatRule]] = {}
    for rule in problem.compiled.rules:
        clauses.setdefault(rule.predicate, []).append(rule)
    # Aggregates hold without rows, too, and beyond the times of their rows.
    computed = {step.head.predicate for step in problem.compiled.steps}
    given = {name: _are_bounded(problem.facts_of(name)) for name in problem.compiled.arities}
    found = {name: (False, False) if name in clauses or name in computed else ends for name, ends in given.items()}
    while True:
        before = dict(found)
        for name, rules in clauses.items():
            if name not in computed:
                ends = [given[name], *(_bound_head(rule, found) for rule in rules)]
                found[name] = all(left for left, _ in ends), all(right for _, right in ends)
        if found == before:
            return found


def _are_bounded(rows: Rows) -> _Bounded:
    return bool((rows.lo > NEG_INF).all()), bool((rows.hi < POS_INF).all())


def _bound_head(rule: FlatRule, bounded: dict[str, _Bounded]) -> _Bounded:
    """Return at which ends what a rule derives is bounded: where one of its conditions is."""
    body = list(_bound_body(rule, bounded))
    left = rule.range[0] > -LIMIT and any(left for left, _ in body)
    return left, rule.range[1] < LIMIT and any(right for _, right in body)


def _bound_body(rule: FlatRule, bounded: dict[str, _Bounded]) -> Iterator[_Bounded]:
    for literal in rule.body:
        if not literal.negated:
            left, right = bounded[literal.predicate]
            lo, hi = _find_distances(rule, literal)
            yield left and lo > -LIMIT, right and hi < LIMIT


def _find_distances(rule: FlatRule, literal: FlatLiteral) -> tuple[int, int]:
    """Return how far after a fact a condition that reads it may hold."""
    if literal.op is Op.BOX:
        # It reads all of its range, so the end that lies nearest is as good as the other.
        near = min(literal.range, key=abs)
        return near, near
    return read_range(rule, literal)
