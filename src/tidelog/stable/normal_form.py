"""Rules with plain heads, and the direction in which they propagate.

Flat rules (`compiler.flatten`) still have ranges on heads. Here a rule derives its head at one time point, and each
literal reads one atom at distances into the past (negative distances are in the future): `Diamond` over a range, `Box`
over a range, or `Since`. A head over a range gets a hidden name: `Boxplus[a,b] P :- body` becomes `H :- body` and
`P :- Diamondminus[a,b] H`.

A program is forward-propagating if nothing depends on its own future. Shifting the head and the body of a rule
together changes nothing. More generally, every predicate may be stored at times of its own, `offset` later than its
facts hold. Offsets under which no rule looks ahead solve a system of difference constraints: they exist if no cycle of
rules looks ahead in sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op
from tidelog.language.hidden_predicates import hidden_name, is_hidden, is_violation
from tidelog.language.syntax import Comparison, Term, Variable
from tidelog.timeline.grid import NEG_INF, POS_INF, add_pairs, negate

#: Until over a longer range is not expanded into one rule per distance.
LONGEST_UNTIL = 1000


class OperatorKind(Enum):
    DIAMOND = "diamond"
    BOX = "box"
    SINCE = "since"
    UNTIL = "until"


@dataclass(frozen=True, slots=True)
class NormalAtom:
    predicate: str
    args: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class NormalLiteral:
    """An atom under one operator with a range of distances into the past.

    `left` is the left operand of Since and Until. For these the range is that of the operator, without the distances at
    which the right operand alone is enough: other rules cover those.
    """

    kind: OperatorKind
    atom: NormalAtom
    lo: int
    hi: int
    negated: bool = False
    left: NormalAtom | None = None


@dataclass(frozen=True, slots=True)
class NormalRule:
    """A rule with a plain head (None for a constraint). `binders` are atoms that only bind variables."""

    head: NormalAtom | None
    body: tuple[NormalLiteral, ...]
    comparisons: tuple[Comparison, ...]
    binders: tuple[NormalAtom, ...]
    origin: int
    #: The variables whose values are reported where a constraint is violated.
    reported: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class ForwardProgram:
    """Forward-propagating rules over internal times.

    At internal time u a predicate has the facts that hold at time u - offset. `mirrored` if time runs backwards.
    """

    rules: tuple[NormalRule, ...]
    offsets: dict[str, int]
    mirrored: bool


def orient_forward(flat: tuple[FlatRule, ...]) -> ForwardProgram | None:
    """Turn a program into a forward-propagating one, with time reversed if needed; None where neither works."""
    for mirror in (False, True):
        rules = normalise(reverse_time(flat) if mirror else flat)
        offsets = _find_offsets(rules)
        if offsets is not None:
            return ForwardProgram(tuple(_shift_rules(rules, offsets)), offsets, mirror)
    return None


def reverse_time(flat: Iterable[FlatRule]) -> tuple[FlatRule, ...]:
    """Return the rules with time reversed."""
    reversed_op = {Op.SINCE: Op.UNTIL, Op.UNTIL: Op.SINCE}

    def reverse(literal: FlatLiteral) -> FlatLiteral:
        if literal.op in reversed_op:
            return replace(literal, op=reversed_op[literal.op])
        return replace(literal, range=negate(literal.range))

    return tuple(
        replace(rule, range=negate(rule.range), body=tuple(reverse(literal) for literal in rule.body)) for rule in flat
    )


def normalise(flat: Iterable[FlatRule]) -> list[NormalRule]:
    """Return rules with plain heads; Until over a bounded range is expanded."""
    normal: list[NormalRule] = []
    names = 0
    for rule in flat:
        head = None if is_violation(rule.predicate) else NormalAtom(rule.predicate, rule.args)
        for body, binders in _bodies(rule):
            lo, hi = rule.range
            reported = rule.args if head is None else ()
            if lo == hi:
                normal.append(NormalRule(head, _shift_body(body, lo), rule.comparisons, binders, rule.origin, reported))
            elif (
                len(body) == 1 and body[0].kind is OperatorKind.DIAMOND and not body[0].negated and not rule.comparisons
            ):
                wide = add_pairs(rule.range, (body[0].lo, body[0].hi), dense=False)
                widened = replace(body[0], lo=wide[0], hi=wide[1])
                normal.append(NormalRule(head, (widened,), (), binders, rule.origin))
            else:
                assert head is not None
                names += 1
                variables = tuple(dict.fromkeys(term for term in rule.args if isinstance(term, Variable)))
                named = NormalAtom(hidden_name(f"h{names}"), variables)
                normal.append(NormalRule(named, body, rule.comparisons, binders, rule.origin))
                normal.append(
                    NormalRule(head, (NormalLiteral(OperatorKind.DIAMOND, named, lo, hi),), (), (), rule.origin)
                )
    return normal


_Body = tuple[NormalLiteral, ...]


def _bodies(rule: FlatRule) -> list[tuple[_Body, tuple[NormalAtom, ...]]]:
    """Return the body, or several where Until is expanded, each with the atoms that only bind variables."""
    last = rule.body[-1] if rule.body else None
    if last is not None and last.op in (Op.SINCE, Op.UNTIL):
        right, left = (NormalAtom(part.predicate, part.args) for part in rule.body)
        lo, hi = max(last.range[0], 1), last.range[1]
        if last.op is Op.SINCE or hi - lo > LONGEST_UNTIL:
            kind = OperatorKind.SINCE if last.op is Op.SINCE else OperatorKind.UNTIL
            return [((NormalLiteral(kind, right, lo, hi, left=left),), ())]
        return [(_expand_until(left, right, distance), (left,)) for distance in range(lo, hi + 1)]
    if len(rule.body) == 2 and is_hidden(rule.predicate) and rule.predicate[1:].isdigit():
        # A named subformula of two literals is Since without its left operand, over the values that the left operand
        # may have. The second literal asks whether the left operand ever holds, only to bind its variables, and
        # grounding knows these values.
        binder = NormalAtom(rule.body[1].predicate, rule.body[1].args)
        return [((_normalise_literal(rule.body[0]),), (binder,))]
    return [(tuple(_normalise_literal(literal) for literal in rule.body), ())]


def _expand_until(left: NormalAtom, right: NormalAtom, distance: int) -> _Body:
    reached = NormalLiteral(OperatorKind.DIAMOND, right, -distance, -distance)
    if distance == 1:
        return (reached,)
    return (reached, NormalLiteral(OperatorKind.BOX, left, 1 - distance, -1))


def _normalise_literal(old: FlatLiteral) -> NormalLiteral:
    kind = OperatorKind.BOX if old.op is Op.BOX else OperatorKind.DIAMOND
    return NormalLiteral(kind, NormalAtom(old.predicate, old.args), *old.range, negated=old.negated)


def _shift_body(body: _Body, distance: int) -> _Body:
    """Return the literals as seen from `distance` later."""
    if distance == 0:
        return body
    return tuple(_shift_literal(literal, distance) for literal in body)


def _shift_literal(literal: NormalLiteral, distance: int) -> NormalLiteral:
    return replace(literal, lo=shift_end(literal.lo, distance), hi=shift_end(literal.hi, distance))


def shift_end(end: int, distance: int) -> int:
    """Add a distance to an end that may be infinite."""
    return end if end in (NEG_INF, POS_INF) else end + distance


def _find_offsets(rules: list[NormalRule]) -> dict[str, int] | None:
    """Find offsets under which no rule looks ahead (Bellman-Ford); None where there are none.

    The user's predicates are stored no later than they hold, and at their own time where possible. Hidden names of
    subformulas may be later.
    """
    edges: dict[tuple[str, str], int] = {}
    ahead = 0
    names: dict[str, None] = {}
    for rule in rules:
        for literal in rule.body:
            if literal.kind is OperatorKind.UNTIL or literal.lo == NEG_INF:
                return None
            # The operands of Since are shifted to the time of the head.
            nearest = 0 if literal.kind is OperatorKind.SINCE else literal.lo
            ahead += max(0, -nearest)
            for atom in (literal.atom, literal.left):
                if atom is None:
                    continue
                names[atom.predicate] = None
                if rule.head is not None:
                    key = rule.head.predicate, atom.predicate
                    edges[key] = min(edges.get(key, nearest), nearest)
        if rule.head is not None:
            names[rule.head.predicate] = None
    offsets = {name: ahead if is_hidden(name) else 0 for name in names}
    for _ in range(len(offsets) + 2):
        changed = False
        for (head, read), nearest in edges.items():
            if offsets[head] + nearest < offsets[read]:
                offsets[read] = offsets[head] + nearest
                changed = True
        if not changed:
            return _lower_offsets(offsets, edges)
    return None


def _lower_offsets(offsets: dict[str, int], edges: dict[tuple[str, str], int]) -> dict[str, int]:
    """Lower the offsets of hidden names that are later than necessary."""
    changed = True
    while changed:
        changed = False
        for name, offset in offsets.items():
            if offset > 0:
                needed = max((offsets[read] - near for (head, read), near in edges.items() if head == name), default=0)
                if max(needed, 0) < offset:
                    offsets[name] = max(needed, 0)
                    changed = True
    return offsets


def _shift_rules(rules: list[NormalRule], offsets: dict[str, int]) -> Iterable[NormalRule]:
    """Yield the rules at internal times.

    Operands of Since whose offset differs from that of the head get shifted copies, which are added to `offsets`.
    """
    copies: dict[NormalAtom, NormalAtom] = {}
    for rule in rules:
        if rule.head is not None:
            at = offsets[rule.head.predicate]
        else:
            at = max((offsets[literal.atom.predicate] - literal.lo for literal in rule.body), default=0)
        body = []
        for literal in rule.body:
            if literal.kind is OperatorKind.SINCE:
                assert literal.left is not None
                operands = []
                for operand in (literal.atom, literal.left):
                    distance = at - offsets[operand.predicate]
                    if distance:
                        copy = copies.get(operand)
                        if copy is None or offsets[copy.predicate] != at:
                            copy = copies[operand] = NormalAtom(hidden_name(f"c{len(offsets)}"), operand.args)
                            offsets[copy.predicate] = at
                            source = NormalLiteral(OperatorKind.DIAMOND, operand, distance, distance)
                            yield NormalRule(copy, (source,), (), (), rule.origin)
                        operand = copy
                    operands.append(operand)
                body.append(replace(literal, atom=operands[0], left=operands[1]))
                continue
            body.append(_shift_literal(literal, at - offsets[literal.atom.predicate]))
        yield replace(rule, body=tuple(body))
