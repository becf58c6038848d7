"""Whether a rule can be evaluated bucket by bucket.

Facts are spread over buckets: a predicate is *hashed* on one argument (a fact lives in the bucket of that constant, and
nowhere else) or *copied* (every bucket has all its facts). A rule is local if evaluating it in every bucket, on what
the bucket has, gives every bucket exactly its share of the head:

- All hashed body atoms carry the same term at their hashed positions: the rule's *key*. `X = Y` in the body makes two
  terms the same. Where the key's value belongs to the bucket, every body atom is then as true as in the whole; so are
  negated atoms, and those in left operands of Since and Until.
- A hashed head carries the key at its hashed position. In buckets other than the key's nothing may be derived, so the
  body must be false where its hashed atoms hold nowhere: it is *guarded* by a positive hashed atom that it cannot do
  without. (`Down(X) :- Node(X), not Beat(X)` needs Node hashed on X, too: with Node copied, every bucket but one would
  take X for down.) Where the key is a constant c, the guard `$here(c)` can be added to any rule.
- A copied head needs a body without hashed atoms.
- A constraint (head Bottom) is violated in the whole if it is in some bucket. It needs a guard only if a hashed atom is
  negated: what is positive and missing elsewhere makes the body no truer there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

from tidelog.analysis.components import dependencies, head_atom
from tidelog.language.syntax import (
    Atom,
    Binary,
    Bottom,
    Comparison,
    Constant,
    Formula,
    Literal,
    Rule,
    Term,
    Top,
    Unary,
    UnaryOp,
)
from tidelog.timeline.interval import Interval

#: The hashed argument of each predicate, from 0; None where it is copied.
Key = Mapping[str, int | None]


@dataclass(frozen=True)
class Shape:
    """What of a rule decides where it can be evaluated; `head` is None for a constraint."""

    number: int
    rule: Rule
    head: Atom | None
    positive: tuple[Atom, ...]
    negated: tuple[Atom, ...]
    #: Terms that comparisons make equal, each with the one that stands for all of them: a constant if there is one.
    equal: Mapping[Term, Term]

    @property
    def body(self) -> tuple[Atom, ...]:
        return self.positive + self.negated

    @cached_property
    def predicates(self) -> frozenset[str]:
        return frozenset(atom.predicate for atom in (*self.body, *([self.head] if self.head else [])))

    def term(self, atom: Atom, position: int) -> Term:
        """The term at a position, up to equality."""
        term = atom.args[position]
        return self.equal.get(term, term)

    def positions(self, predicate: str, key: Term) -> frozenset[int]:
        """The positions at which every body atom of a predicate carries the key."""
        return frozenset.intersection(
            *(
                frozenset(i for i in range(len(atom.args)) if self.term(atom, i) == key)
                for atom in self.body
                if atom.predicate == predicate
            )
        )


def shape(number: int, rule: Rule) -> Shape:
    atoms = list(dependencies(rule))
    return Shape(
        number,
        rule,
        head_atom(rule),
        tuple(atom for atom, negated in atoms if not negated),
        tuple(atom for atom, negated in atoms if negated),
        _equal(rule),
    )


def _equal(rule: Rule) -> dict[Term, Term]:
    groups: list[set[Term]] = []
    for literal in rule.body:
        if isinstance(literal, Comparison) and literal.op == "=":
            group = {literal.left, literal.right}
            apart = [other for other in groups if not other & group]
            groups = [*apart, group.union(*(other for other in groups if other & group))]
    found: dict[Term, Term] = {}
    for group in groups:
        first = min(group, key=lambda term: (not isinstance(term, Constant), str(term)))
        found |= dict.fromkeys(group, first)
    return found


def key_terms(shape: Shape, key: Key) -> set[Term]:
    """The terms at the hashed positions of the body."""
    hashed = ((atom, key[atom.predicate]) for atom in shape.body)
    return {shape.term(atom, position) for atom, position in hashed if position is not None}


def is_local(shape: Shape, key: Key) -> bool:
    """Whether every bucket derives exactly its share of the head, perhaps with the guard that `missing_guard` names."""
    terms = key_terms(shape, key)
    if len(terms) > 1:
        return False
    if shape.head is None:
        needs_guard = any(key[atom.predicate] is not None for atom in shape.negated)
    else:
        position = key[shape.head.predicate]
        if position is None:
            return not terms
        terms |= {shape.term(shape.head, position)}
        if len(terms) > 1:
            return False
        needs_guard = True
    return not needs_guard or _guarded(shape, key) or isinstance(next(iter(terms)), Constant)


def missing_guard(shape: Shape, key: Key) -> Constant | None:
    """The constant c of a local rule whose body needs `$here(c)`, to be false in other buckets than that of c."""
    position = None if shape.head is None else key[shape.head.predicate]
    terms = key_terms(shape, key)
    if shape.head is not None and position is not None:
        terms |= {shape.term(shape.head, position)}
    elif not any(key[atom.predicate] is not None for atom in shape.negated):
        return None
    (term,) = terms
    return term if isinstance(term, Constant) and not _guarded(shape, key) else None


def _guarded(shape: Shape, key: Key) -> bool:
    """Whether the body is false, on either timeline, where the hashed atoms hold nowhere."""

    def hashed(atom: Atom) -> bool:
        return key[atom.predicate] is not None

    return any(_false(literal.formula, hashed) for literal in _positive(shape.rule))


def _positive(rule: Rule) -> Iterator[Literal]:
    return (literal for literal in rule.body if isinstance(literal, Literal) and not literal.negated)


def _false(formula: Formula, missing: Callable[[Atom], bool]) -> bool:
    """Whether a formula holds at no time if the missing atoms hold at none, whatever the others do."""
    match formula:
        case Atom():
            return missing(formula)
        case Top():
            return False
        case Bottom():
            return True
        case Unary(op, range, arg):
            box = op in (UnaryOp.BOX_MINUS, UnaryOp.BOX_PLUS)
            return _false(arg, missing) and not (box and _may_be_empty(range))
        case Binary(_, _, _, right):
            return _false(right, missing)
        case _:
            assert_never(formula)


def _may_be_empty(range: Interval) -> bool:
    """Whether a range has no point on the integers, such as (0,1): a box over nothing is true."""
    return not range.lo_closed and not range.hi_closed and range.hi - range.lo <= 1
