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
  take X for down.) Where such an atom is copied, since other rules need it so, facts of it that come in can be sent a
  second time, hashed and under another name, and the rule reads these. Where the key is a constant c, the guard is
  `$here(c)`, which holds in the bucket of c alone.
- A copied head needs a body without hashed atoms.
- A constraint (head Bottom) is violated in the whole if it is in some bucket. It needs a guard only if a hashed atom is
  negated: what is positive and missing elsewhere makes the body no truer there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
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


@dataclass(frozen=True)
class Guard:
    """What keeps a rule from deriving anything in other buckets than its key's: a hashed atom that it has (`atom` is
    None), its copied atom `atom` if facts of it come hashed on `position` as well, or `$here` of the constant key."""

    atom: Atom | None = None
    position: int = 0
    constant: Constant | None = None


def rule_terms(shape: Shape, key: Key) -> set[Term]:
    """The terms at the hashed positions of body and head: the rule's key, if they are one."""
    hashed = ((atom, key[atom.predicate]) for atom in (*shape.body, *([shape.head] if shape.head else [])))
    return {shape.term(atom, position) for atom, position in hashed if position is not None}


def is_local(shape: Shape, key: Key, own: Collection[str]) -> bool:
    """Whether every bucket derives exactly its share of the head, with the guard that `guard` names. `own` are the
    predicates that rules of the stage derive."""
    terms = rule_terms(shape, key)
    if shape.head is not None and key[shape.head.predicate] is None:
        return not terms
    return len(terms) <= 1 and (not needs_guard(shape, key) or guard(shape, key, own) is not None)


def needs_guard(shape: Shape, key: Key) -> bool:
    if shape.head is not None:
        return key[shape.head.predicate] is not None
    return any(key[atom.predicate] is not None for atom in shape.negated)


def guard(shape: Shape, key: Key, own: Collection[str]) -> Guard | None:
    """The guard of a rule that needs one and has one key; None if there is none."""
    (term,) = rule_terms(shape, key)
    needed = [part for literal in _positive(shape.rule) for part in needed_atoms(literal.formula)]
    if any(isinstance(part, Bottom) or key[part.predicate] is not None for part in needed):
        return Guard()
    if isinstance(term, Constant):
        return Guard(constant=term)
    for atom in needed:
        if isinstance(atom, Atom) and atom.predicate not in own:
            for position in range(len(atom.args)):
                if shape.term(atom, position) == term:
                    return Guard(atom, position)
    return None


def alias(predicate: str, position: int) -> str:
    """The name, which no user can write, under which facts of a copied predicate come hashed on an argument."""
    return f"${predicate}/{position + 1}"


def _positive(rule: Rule) -> Iterator[Literal]:
    return (literal for literal in rule.body if isinstance(literal, Literal) and not literal.negated)


def needed_atoms(formula: Formula) -> Iterator[Atom | Bottom]:
    """Those atoms that a formula cannot do without: if one of them holds at no time, neither does the formula, on
    either timeline."""
    match formula:
        case Atom() | Bottom():
            yield formula
        case Top():
            return
        case Unary(op, range, arg):
            if op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS) or not _may_be_empty(range):
                yield from needed_atoms(arg)
        case Binary(_, _, _, right):
            yield from needed_atoms(right)
        case _:
            assert_never(formula)


def _may_be_empty(range: Interval) -> bool:
    """Whether a range has no point on the integers, such as (0,1): a box over nothing is true."""
    return not range.lo_closed and not range.hi_closed and range.hi - range.lo <= 1
