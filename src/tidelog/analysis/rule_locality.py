"""Decide whether a rule can be evaluated bucket by bucket.

Facts are spread over buckets. A predicate is either *hashed* on one argument (a fact is in the bucket of that constant,
and nowhere else) or *copied* (every bucket has all its facts). A rule is *local* if evaluating it in every bucket, on
the facts of that bucket, gives every bucket exactly its share of the head. Take `Hot(X) :- Temp(X, V), High(V)`: it is
local if Temp and Hot are hashed on X and High is copied. The conditions are:

- All hashed body atoms have the same term at their hashed positions: the rule's *key*, here X. `X = Y` in the body
  makes two terms the same. In the bucket of the key's value, every body atom is then as true as over all facts. That
  includes negated atoms, and atoms in left operands of Since and Until.
- A hashed head has the key at its hashed position. Other buckets than the key's must derive nothing, so the body must
  be false where its hashed atoms hold nowhere: it is *guarded* by a positive hashed atom that it needs. For example,
  `Down(X) :- Node(X), not Beat(X)` needs Node hashed on X: with Node copied, every bucket but one would find no Beat(X)
  and conclude Down(X). If other rules need Node copied, its incoming facts can be sent a second time, hashed and under
  another name (an *alias*), for this rule to read. If the key is a constant c, the guard is the hidden fact `$here(c)`,
  which holds in the bucket of c only.
- A copied head needs a body without hashed atoms, so that every bucket derives all of it.
- Atoms in the braces of an aggregate count like all others. Their key is one of the group variables, so that a bucket
  has all rows of its groups. The same local name in two pairs of braces is two variables. An aggregate that has no
  value without rows needs its rows, which may then guard the rule.
- A part of an aggregate (`split_rules`) has the label of its bucket in the head, in place of the key. Its key is that
  of the body in the braces: any variable there will do, since each row is then in one bucket.
- A constraint (head Bottom) is violated if it is violated in some bucket. It needs a guard only if a hashed atom is
  negated: a positive atom that is missing in a bucket cannot make the body true there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

from tidelog.language.aggregate_checks import body_aggregates
from tidelog.language.bindings import has_value_without_rows, literal_variables, outer_variables
from tidelog.language.hidden_predicates import BUCKET, hidden_name
from tidelog.language.rule_heads import head_atom
from tidelog.language.substitution import substitute_literal
from tidelog.language.syntax import (
    Aggregate,
    Atom,
    Binary,
    BodyLiteral,
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
    Variable,
)
from tidelog.language.validation import body_atoms
from tidelog.timeline.interval import Interval

#: The hashed argument of each predicate, from 0; None where it is copied.
Key = Mapping[str, int | None]

#: Names of variables that are local to a pair of braces begin with this in shapes.
_LOCAL = "$local"


@dataclass(frozen=True)
class RuleShape:
    """The parts of a rule that decide where it can be evaluated; `head` is None for a constraint."""

    number: int
    rule: Rule
    head: Atom | None
    positive: tuple[Atom, ...]
    negated: tuple[Atom, ...]
    #: Each term that comparisons make equal to others, with one term for all of them: a constant if there is one.
    equal: Mapping[Term, Term]
    #: The formulas without which the body is false.
    needed: tuple[Formula, ...] = ()
    #: Whether it is a rule for the part of a bucket, with the label of the bucket as first argument of the head.
    part: bool = False

    @property
    def body(self) -> tuple[Atom, ...]:
        """All body atoms, the positive ones first."""
        return self.positive + self.negated

    @cached_property
    def predicates(self) -> frozenset[str]:
        """The predicates of head and body."""
        return frozenset(atom.predicate for atom in (*self.body, *([self.head] if self.head else [])))

    def term(self, atom: Atom, position: int) -> Term:
        """Return the term at a position; equal terms give the same one."""
        term = atom.args[position]
        return self.equal.get(term, term)

    def positions(self, predicate: str, key: Term) -> frozenset[int]:
        """Return the positions at which every body atom of a predicate has the key."""
        return frozenset.intersection(
            *(
                frozenset(i for i in range(len(atom.args)) if self.term(atom, i) == key)
                for atom in self.body
                if atom.predicate == predicate
            )
        )


def describe_rule(number: int, rule: Rule) -> RuleShape:
    """Collect the parts of a rule that locality depends on; `number` is its position in the program."""
    part = _find_part(rule)
    body = rule.body if part is None else part.body[1:]
    atoms = list(_scoped_atoms(body, rule))
    return RuleShape(
        number,
        rule,
        head_atom(rule),
        tuple(atom for atom, negated in atoms if not negated),
        tuple(atom for atom, negated in atoms if negated),
        find_equal_terms(body),
        tuple(_needed_formulas(rule) if part is None else _positive_formulas(body)),
        part is not None,
    )


def find_equal_terms(body: Iterable[BodyLiteral]) -> dict[Term, Term]:
    """Return, for each term of an equation, the term that stands for all terms equal to it."""
    groups: list[set[Term]] = []
    for literal in body:
        if isinstance(literal, Comparison) and literal.op == "=":
            group = {literal.left, literal.right}
            apart = [other for other in groups if not other & group]
            groups = [*apart, group.union(*(other for other in groups if other & group))]
    representative: dict[Term, Term] = {}
    for group in groups:
        first = min(group, key=lambda term: (not isinstance(term, Constant), str(term)))
        representative |= dict.fromkeys(group, first)
    return representative


def _find_part(rule: Rule) -> Aggregate | None:
    """Return the aggregate of a rule for the part of a bucket; None for other rules."""
    aggregates = body_aggregates(rule.body)
    return next((found for found in aggregates if any(a.predicate == BUCKET for a, _ in body_atoms(found.body))), None)


def _scoped_atoms(body: Iterable[BodyLiteral], rule: Rule) -> Iterator[tuple[Atom, bool]]:
    """Yield the atoms of a body, each with whether a negation or an aggregate reads it.

    Variables that are local to a pair of braces have names of their own.
    """
    for literal in body:
        if isinstance(literal, Literal):
            yield from body_atoms((literal,))
    outer = outer_variables(rule)
    for number, aggregate in enumerate(body_aggregates(body)):
        inside = {variable for literal in aggregate.body for variable in literal_variables(literal)}
        local = {v: Variable(f"{_LOCAL}{number}.{v.name}", anonymous=True) for v in inside if v not in outer}
        for literal in aggregate.body:
            yield from ((atom, True) for atom, _ in body_atoms((substitute_literal(literal, local),)))


def is_local_variable(term: Term) -> bool:
    """Return whether a term of a shape is a variable inside braces only, which cannot be a key."""
    return isinstance(term, Variable) and term.name.startswith(_LOCAL)


def _needed_formulas(rule: Rule) -> Iterator[Formula]:
    """Yield the positive formulas that a rule needs: its own, and those of aggregates that have no value without."""
    yield from _positive_formulas(rule.body)
    for aggregate in body_aggregates(rule.body):
        if not has_value_without_rows(aggregate, rule):
            yield from _positive_formulas(aggregate.body)


def _positive_formulas(body: Iterable[BodyLiteral]) -> Iterator[Formula]:
    return (literal.formula for literal in body if isinstance(literal, Literal) and not literal.negated)


@dataclass(frozen=True)
class Guard:
    """The condition that keeps a rule from deriving anything outside the bucket of its key.

    One of: a hashed atom of the rule (all fields at their defaults); the copied atom `atom`, whose facts are sent
    hashed on `position` as well; `$here` of the constant key `constant`.
    """

    atom: Atom | None = None
    position: int = 0
    constant: Constant | None = None


def find_key_terms(shape: RuleShape, key: Key) -> set[Term]:
    """Return the terms at the hashed positions of body and head; the rule has a key if there is only one."""
    atoms = shape.body if shape.head is None or shape.part else (*shape.body, shape.head)
    hashed = ((atom, key[atom.predicate]) for atom in atoms)
    return {shape.term(atom, position) for atom, position in hashed if position is not None}


def is_local(shape: RuleShape, key: Key, own: Collection[str]) -> bool:
    """Return whether every bucket derives exactly its share of the head, given the guard that `find_guard` returns.

    `own` are the predicates that rules of the stage derive.
    """
    terms = find_key_terms(shape, key)
    if shape.head is not None and key[shape.head.predicate] is None:
        return not terms
    if shape.part and (not terms or shape.head is None or key[shape.head.predicate] != 0):
        return False
    if any(is_local_variable(term) for term in terms):
        return False
    return len(terms) <= 1 and (not needs_guard(shape, key) or find_guard(shape, key, own) is not None)


def needs_guard(shape: RuleShape, key: Key) -> bool:
    """Return whether a rule could derive too much in buckets other than its key's."""
    if shape.head is not None:
        return key[shape.head.predicate] is not None
    return any(key[atom.predicate] is not None for atom in shape.negated)


def find_guard(shape: RuleShape, key: Key, own: Collection[str]) -> Guard | None:
    """Find the guard of a rule that needs one and has a key; None if there is none."""
    (term,) = find_key_terms(shape, key)
    needed = [part for formula in shape.needed for part in needed_atoms(formula)]
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


def alias_name(predicate: str, position: int) -> str:
    """Return the hidden name under which facts of a copied predicate are sent hashed on an argument."""
    return hidden_name(f"{predicate}/{position + 1}")


def needed_atoms(formula: Formula) -> Iterator[Atom | Bottom]:
    """Yield the atoms that a formula needs: if one of them holds at no time, neither does the formula, on either
    timeline."""
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
    """Return whether a range may have no integer point, such as (0,1): a box over an empty range is true."""
    return not range.lo_closed and not range.hi_closed and range.hi - range.lo <= 1
