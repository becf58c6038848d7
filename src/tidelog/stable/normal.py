"""Rules with plain heads, and the direction in which they propagate.

What `analysis.flatten` gives still has ranges on heads. Here a rule derives its head at one time point, and each
literal reads one atom at distances into the past (negative ones are in the future): `Diamond` over a range, `Box` over
a range, or `Since`. A head over a range gets a name: `Boxplus[a,b] P :- body` is `H :- body` and `P :-
Diamondminus[a,b] H`.

A program is forward-propagating if nothing depends on its own future. Shifting head and body of a rule together
changes nothing; more generally, every predicate may be kept at a time of its own, `offset` later than its facts hold.
Offsets under which no rule looks ahead are a system of difference constraints: they exist if no cycle of rules looks
ahead in sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from tidelog.analysis.flatten import VIOLATION, FlatLiteral, FlatRule, Op
from tidelog.language.syntax import Comparison, Term, Variable
from tidelog.timeline.grid import NEG_INF, POS_INF, added, negated

#: Until over a longer range is not written out step by step.
LONGEST_UNTIL = 1000


class Kind(Enum):
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

    `left` is the left operand of Since and Until; there the range is that of the operator, and the right operand alone
    is never enough (other rules say where it is).
    """

    kind: Kind
    atom: NormalAtom
    lo: int
    hi: int
    negated: bool = False
    left: NormalAtom | None = None


@dataclass(frozen=True, slots=True)
class NormalRule:
    """A rule with a plain head (None: a constraint). `binders` are atoms that only bind variables."""

    head: NormalAtom | None
    body: tuple[NormalLiteral, ...]
    comparisons: tuple[Comparison, ...]
    binders: tuple[NormalAtom, ...]
    origin: int
    #: The variables whose values are told where a constraint is violated.
    told: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Directed:
    """Forward-propagating rules: at internal time u a predicate has what holds at time u - offset; `mirrored` if time
    runs backwards in them."""

    rules: tuple[NormalRule, ...]
    offsets: dict[str, int]
    mirrored: bool


def directed(flat: tuple[FlatRule, ...]) -> Directed | None:
    """The program as a forward-propagating one, with time reversed if need be; None where it is neither."""
    for mirror in (False, True):
        rules = normal(reversed_rules(flat) if mirror else flat)
        offsets = _offsets(rules)
        if offsets is not None:
            return Directed(tuple(_shifted(rules, offsets)), offsets, mirror)
    return None


def reversed_rules(flat: Iterable[FlatRule]) -> tuple[FlatRule, ...]:
    """The rules with time reversed."""
    turned = {Op.SINCE: Op.UNTIL, Op.UNTIL: Op.SINCE}

    def literal(old: FlatLiteral) -> FlatLiteral:
        if old.op in turned:
            return replace(old, op=turned[old.op])
        return replace(old, range=negated(old.range))

    return tuple(
        replace(rule, range=negated(rule.range), body=tuple(literal(part) for part in rule.body)) for rule in flat
    )


def normal(flat: Iterable[FlatRule]) -> list[NormalRule]:
    """Rules with plain heads; Until over a bounded range is written out."""
    found: list[NormalRule] = []
    names = 0
    for rule in flat:
        head = None if rule.predicate.startswith(VIOLATION) else NormalAtom(rule.predicate, rule.args)
        for body, binders in _bodies(rule):
            lo, hi = rule.range
            told = rule.args if head is None else ()
            if lo == hi:
                found.append(NormalRule(head, _moved(body, lo), rule.comparisons, binders, rule.origin, told))
            elif len(body) == 1 and body[0].kind is Kind.DIAMOND and not body[0].negated and not rule.comparisons:
                wide = added(rule.range, (body[0].lo, body[0].hi), dense=False)
                spread = replace(body[0], lo=wide[0], hi=wide[1])
                found.append(NormalRule(head, (spread,), (), binders, rule.origin))
            else:
                assert head is not None
                names += 1
                variables = tuple(dict.fromkeys(term for term in rule.args if isinstance(term, Variable)))
                named = NormalAtom(f"$h{names}", variables)
                found.append(NormalRule(named, body, rule.comparisons, binders, rule.origin))
                found.append(NormalRule(head, (NormalLiteral(Kind.DIAMOND, named, lo, hi),), (), (), rule.origin))
    return found


_Body = tuple[NormalLiteral, ...]


def _bodies(rule: FlatRule) -> list[tuple[_Body, tuple[NormalAtom, ...]]]:
    """The body, or several where Until is written out, and the atoms that only bind."""
    last = rule.body[-1] if rule.body else None
    if last is not None and last.op in (Op.SINCE, Op.UNTIL):
        right, left = (NormalAtom(part.predicate, part.args) for part in rule.body)
        lo, hi = max(last.range[0], 1), last.range[1]
        if last.op is Op.SINCE or hi - lo > LONGEST_UNTIL:
            kind = Kind.SINCE if last.op is Op.SINCE else Kind.UNTIL
            return [((NormalLiteral(kind, right, lo, hi, left=left),), ())]
        return [(_until(left, right, distance), (left,)) for distance in range(lo, hi + 1)]
    if len(rule.body) == 2 and rule.predicate.startswith("$") and rule.predicate[1:].isdigit():
        # A subformula that was given a name, of two literals: Since without its left operand, over the values that
        # the left operand may have: the second literal asks whether it ever holds, for the sake of its variables.
        # Grounding knows the values.
        binder = NormalAtom(rule.body[1].predicate, rule.body[1].args)
        return [((_literal(rule.body[0]),), (binder,))]
    return [(tuple(_literal(part) for part in rule.body), ())]


def _until(left: NormalAtom, right: NormalAtom, distance: int) -> _Body:
    reached = NormalLiteral(Kind.DIAMOND, right, -distance, -distance)
    if distance == 1:
        return (reached,)
    return (reached, NormalLiteral(Kind.BOX, left, 1 - distance, -1))


def _literal(old: FlatLiteral) -> NormalLiteral:
    kind = Kind.BOX if old.op is Op.BOX else Kind.DIAMOND
    return NormalLiteral(kind, NormalAtom(old.predicate, old.args), *old.range, negated=old.negated)


def _moved(body: _Body, distance: int) -> _Body:
    """The literals as seen from so much later."""
    if distance == 0:
        return body
    return tuple(replace(part, lo=_plus(part.lo, distance), hi=_plus(part.hi, distance)) for part in body)


def _plus(end: int, distance: int) -> int:
    return end if end in (NEG_INF, POS_INF) else end + distance


def _offsets(rules: list[NormalRule]) -> dict[str, int] | None:
    """Offsets under which no rule looks ahead (Bellman-Ford); None where there are none.

    The user's predicates are kept no later than they hold, and at their own time if that can be; names of subformulas
    may be later.
    """
    edges: dict[tuple[str, str], int] = {}
    ahead = 0
    names: dict[str, None] = {}
    for rule in rules:
        for literal in rule.body:
            if literal.kind is Kind.UNTIL or literal.lo == NEG_INF:
                return None
            # The operands of Since are brought to the time of the head.
            nearest = 0 if literal.kind is Kind.SINCE else literal.lo
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
    offsets = {name: ahead if name.startswith("$") else 0 for name in names}
    for _ in range(len(offsets) + 2):
        changed = False
        for (head, read), nearest in edges.items():
            if offsets[head] + nearest < offsets[read]:
                offsets[read] = offsets[head] + nearest
                changed = True
        if not changed:
            return _lowered(offsets, edges)
    return None


def _lowered(offsets: dict[str, int], edges: dict[tuple[str, str], int]) -> dict[str, int]:
    """Names of subformulas that are later than need be, brought forward."""
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


def _shifted(rules: list[NormalRule], offsets: dict[str, int]) -> Iterable[NormalRule]:
    """The rules at internal times. New names, for operands of Since at other times, join the offsets."""
    copies: dict[NormalAtom, NormalAtom] = {}
    for rule in rules:
        if rule.head is not None:
            at = offsets[rule.head.predicate]
        else:
            at = max((offsets[part.atom.predicate] - part.lo for part in rule.body), default=0)
        body = []
        for part in rule.body:
            if part.kind is Kind.SINCE:
                assert part.left is not None
                operands = []
                for operand in (part.atom, part.left):
                    distance = at - offsets[operand.predicate]
                    if distance:
                        copy = copies.get(operand)
                        if copy is None or offsets[copy.predicate] != at:
                            copy = copies[operand] = NormalAtom(f"$c{len(offsets)}", operand.args)
                            offsets[copy.predicate] = at
                            source = NormalLiteral(Kind.DIAMOND, operand, distance, distance)
                            yield NormalRule(copy, (source,), (), (), rule.origin)
                        operand = copy
                    operands.append(operand)
                body.append(replace(part, atom=operands[0], left=operands[1]))
                continue
            distance = at - offsets[part.atom.predicate]
            body.append(replace(part, lo=_plus(part.lo, distance), hi=_plus(part.hi, distance)))
        yield replace(rule, body=tuple(body))
