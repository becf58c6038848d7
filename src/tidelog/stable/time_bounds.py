"""Bounds on when an atom may hold: an interval that contains every time at which it can be derived if negation is
ignored."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.compiler.flat_rules import Pair
from tidelog.stable.grounding import GroundLiteral, GroundRule
from tidelog.stable.normal_form import OperatorKind
from tidelog.timeline.grid import NEG_INF, POS_INF

#: A bound that has moved more often than this is taken to move for ever.
_MOST_MOVES = 50

_ALWAYS = (NEG_INF, POS_INF)


def compute_time_bounds(rules: Sequence[GroundRule], facts: dict[int, Pair]) -> dict[int, Pair]:
    """Return the bounds of each atom that may hold, given the bounds of the atoms in the data."""
    bounds = dict(facts)
    moves: dict[tuple[int, int], int] = {}
    changed = True
    while changed:
        changed = False
        for rule in rules:
            if rule.head < 0:
                continue
            body = _body_bounds(rule, bounds)
            if body is None:
                continue
            old = bounds.get(rule.head)
            new = body if old is None else (min(old[0], body[0]), max(old[1], body[1]))
            if new == old:
                continue
            if old is not None:
                new = (
                    _widen(new[0], old[0], NEG_INF, moves, (rule.head, 0)),
                    _widen(new[1], old[1], POS_INF, moves, (rule.head, 1)),
                )
            bounds[rule.head] = new
            changed = True
    return bounds


def _widen(new: int, old: int, infinite: int, moves: dict[tuple[int, int], int], key: tuple[int, int]) -> int:
    """Return the new bound, or infinity once the bound has moved too often."""
    if new == old:
        return new
    moves[key] = moves.get(key, 0) + 1
    return infinite if moves[key] > _MOST_MOVES else new


def _body_bounds(rule: GroundRule, bounds: dict[int, Pair]) -> Pair | None:
    """Return the bounds within which all positive literals of a body may hold; None where they cannot."""
    lo, hi = _ALWAYS
    for literal in rule.body:
        if literal.negated:
            continue
        literal_bounds = _literal_bounds(literal, bounds)
        if literal_bounds is None:
            return None
        lo, hi = max(lo, literal_bounds[0]), min(hi, literal_bounds[1])
    return (lo, hi) if lo <= hi else None


def _literal_bounds(literal: GroundLiteral, bounds: dict[int, Pair]) -> Pair | None:
    """Return the bounds within which a literal may hold; None where it cannot."""
    atom = bounds.get(literal.atom)
    if atom is None or (literal.left >= 0 and literal.left not in bounds):
        return None
    near, far = literal.lo, literal.hi
    if literal.kind is OperatorKind.UNTIL:
        near, far = -far, -near
    if literal.kind is not OperatorKind.BOX:
        return _add(atom[0], near), _add(atom[1], far)
    lo = NEG_INF if atom[0] == NEG_INF else POS_INF if far == POS_INF else atom[0] + far
    hi = POS_INF if atom[1] == POS_INF else NEG_INF if near == NEG_INF else atom[1] + near
    return (lo, hi) if lo <= hi else None


def _add(end: int, distance: int) -> int:
    """Add the nearest distance to a left end, or the farthest one to a right end; infinite if either is infinite."""
    if end in (NEG_INF, POS_INF):
        return end
    return distance if distance in (NEG_INF, POS_INF) else end + distance
