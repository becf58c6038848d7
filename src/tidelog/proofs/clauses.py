"""Rules as proofs read them: as the user wrote them, with constants as numbers and ranges on the grid.

Unlike the engine's normal form nothing is renamed or split here. Future operators are past ones with negative ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import assert_never

from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
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
    Value,
    Variable,
)
from tidelog.proofs.sets import Pair
from tidelog.timeline.grid import Grid, add_left, add_right, added, negated

#: A variable's name, or the number of a constant.
Argument = str | int
Intern = Callable[[Value], int]


@dataclass(frozen=True, slots=True)
class Leaf:
    predicate: str
    args: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Plain:
    """Top or Bottom, or an operator over no time at all."""

    value: bool


@dataclass(frozen=True, slots=True)
class Some:
    """A diamond."""

    by: Pair
    arg: Reading


@dataclass(frozen=True, slots=True)
class Every:
    """A box."""

    by: Pair
    arg: Reading


@dataclass(frozen=True, slots=True)
class Joined:
    """Since; or Until (`mirrored`), whose range is the distance into the future."""

    by: Pair
    left: Reading
    right: Reading
    mirrored: bool


Reading = Leaf | Plain | Some | Every | Joined


@dataclass(frozen=True, slots=True)
class Part:
    """A literal of a body with its reading, and the variables that some fact binds and all that it has."""

    literal: Literal
    reading: Reading
    binders: frozenset[str]
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clause:
    """A rule that can derive facts: `head` holds at the body's times plus `shift`."""

    number: int
    rule: Rule
    head: Leaf
    shift: Pair
    positive: tuple[Part, ...]
    negative: tuple[Part, ...]
    comparisons: tuple[Comparison, ...]


def compiled(number: int, rule: Rule, grid: Grid, intern: Intern) -> Clause | None:
    """A rule on a grid; None for constraints and for heads that say nothing."""
    head, shift = rule.head, (0, 0)
    while isinstance(head, Unary):
        pair = grid.pair(head.range)
        if pair is None:
            return None
        shift = added(shift, pair if head.op is UnaryOp.BOX_PLUS else negated(pair), grid.dense)
        head = head.arg
    if not isinstance(head, Atom):
        return None
    parts = [_part(literal, grid, intern) for literal in rule.body if isinstance(literal, Literal)]
    return Clause(
        number,
        rule,
        _leaf(head, intern),
        shift,
        tuple(part for part in parts if not part.literal.negated),
        tuple(part for part in parts if part.literal.negated),
        tuple(literal for literal in rule.body if isinstance(literal, Comparison)),
    )


def _part(literal: Literal, grid: Grid, intern: Intern) -> Part:
    reading = _reading(literal.formula, grid, intern)
    binders = frozenset(name for leaf, _ in leaves(reading, (0, 0), True, left=False) for name in names(leaf))
    return Part(literal, reading, binders, tuple(dict.fromkeys(_variables(literal.formula))))


def _reading(formula: Formula, grid: Grid, intern: Intern) -> Reading:
    match formula:
        case Atom():
            return _leaf(formula, intern)
        case Top() | Bottom():
            return Plain(isinstance(formula, Top))
        case Unary():
            pair = grid.pair(formula.range)
            some = formula.op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS)
            if pair is None:
                return Plain(not some)
            if formula.op in (UnaryOp.DIAMOND_PLUS, UnaryOp.BOX_PLUS):
                pair = negated(pair)
            arg = _reading(formula.arg, grid, intern)
            return Some(pair, arg) if some else Every(pair, arg)
        case Binary():
            pair = grid.pair(formula.range)
            if pair is None:
                return Plain(False)
            left, right = (_reading(part, grid, intern) for part in (formula.left, formula.right))
            return Joined(pair, left, right, formula.op is BinaryOp.UNTIL)
        case _:
            assert_never(formula)


def _leaf(atom: Atom, intern: Intern) -> Leaf:
    return Leaf(atom.predicate, tuple(_argument(term, intern) for term in atom.args))


def _argument(term: Term, intern: Intern) -> Argument:
    return intern(term.value) if isinstance(term, Constant) else term.name


def names(leaf: Leaf) -> Iterator[str]:
    return (arg for arg in leaf.args if isinstance(arg, str))


def _variables(formula: Formula) -> Iterator[str]:
    match formula:
        case Atom():
            yield from (term.name for term in formula.args if isinstance(term, Variable))
        case Unary():
            yield from _variables(formula.arg)
        case Binary():
            yield from _variables(formula.left)
            yield from _variables(formula.right)


def leaves(reading: Reading, window: Pair, dense: bool, *, left: bool = True) -> Iterator[tuple[Leaf, Pair]]:
    """The atoms that a reading looks at from a window of time, each with where; those of left operands if wanted."""
    match reading:
        case Leaf():
            yield reading, window
        case Some(by, arg) | Every(by, arg):
            yield from leaves(arg, added_to(window, negated(by), dense), dense, left=left)
        case Joined(by, a, b, is_until):
            back = by if is_until else negated(by)
            far = added_to(window, back, dense)
            yield from leaves(b, far, dense, left=left)
            if left:
                yield from leaves(a, (min(far[0], window[0]), max(far[1], window[1])), dense)


def added_to(window: Pair, by: Pair, dense: bool) -> Pair:
    """A window moved by a range; unlike sums of ranges it may leave the bounds of the grid, where nothing is."""
    return add_left(window[0], by[0], dense), add_right(window[1], by[1], dense)
