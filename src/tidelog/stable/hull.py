"""When an atom may hold at all: an interval that contains every time at which it could be derived without negation."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.stable.grounding import GroundLiteral, GroundRule
from tidelog.stable.normal import Kind
from tidelog.stable.problem import Pair
from tidelog.timeline.grid import NEG_INF, POS_INF

#: An end that moved so often is taken to move for ever.
_MOST_MOVES = 50

_ALWAYS = (NEG_INF, POS_INF)


def hulls(rules: Sequence[GroundRule], facts: dict[int, Pair]) -> dict[int, Pair]:
    """The hull of each atom that may hold, given those of the data."""
    found = dict(facts)
    moves: dict[tuple[int, int], int] = {}
    changed = True
    while changed:
        changed = False
        for rule in rules:
            if rule.head < 0:
                continue
            body = _body(rule, found)
            if body is None:
                continue
            old = found.get(rule.head)
            new = body if old is None else (min(old[0], body[0]), max(old[1], body[1]))
            if new == old:
                continue
            if old is not None:
                new = (
                    _moved(new[0], old[0], NEG_INF, moves, (rule.head, 0)),
                    _moved(new[1], old[1], POS_INF, moves, (rule.head, 1)),
                )
            found[rule.head] = new
            changed = True
    return found


def _moved(new: int, old: int, far: int, moves: dict[tuple[int, int], int], key: tuple[int, int]) -> int:
    if new == old:
        return new
    moves[key] = moves.get(key, 0) + 1
    return far if moves[key] > _MOST_MOVES else new


def _body(rule: GroundRule, found: dict[int, Pair]) -> Pair | None:
    lo, hi = _ALWAYS
    for literal in rule.body:
        if literal.negated:
            continue
        reach = _literal(literal, found)
        if reach is None:
            return None
        lo, hi = max(lo, reach[0]), min(hi, reach[1])
    return (lo, hi) if lo <= hi else None


def _literal(literal: GroundLiteral, found: dict[int, Pair]) -> Pair | None:
    atom = found.get(literal.atom)
    if atom is None or (literal.left >= 0 and literal.left not in found):
        return None
    near, far = literal.lo, literal.hi
    if literal.kind is Kind.UNTIL:
        near, far = -far, -near
    if literal.kind is not Kind.BOX:
        return _sum(atom[0], near), _sum(atom[1], far)
    lo = NEG_INF if atom[0] == NEG_INF else POS_INF if far == POS_INF else atom[0] + far
    hi = POS_INF if atom[1] == POS_INF else NEG_INF if near == NEG_INF else atom[1] + near
    return (lo, hi) if lo <= hi else None


def _sum(end: int, distance: int) -> int:
    """A left end and a nearest distance, or a right end and a farthest one: infinite if one of them is."""
    if end in (NEG_INF, POS_INF):
        return end
    return distance if distance in (NEG_INF, POS_INF) else end + distance
