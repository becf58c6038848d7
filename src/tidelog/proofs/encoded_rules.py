"""Rules as proofs read them: as the user wrote them, with constants as numbers and ranges on the grid.

Unlike in the engine's normal form, nothing is renamed or split, and conditions with numbers stay as they are. Future
operators become past ones with negative ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from tidelog.language.aggregate_checks import find_aggregates
from tidelog.language.bindings import (
    atom_variables,
    bound_outside,
    expression_variables,
    group_variables,
    literal_variables,
    needs_row,
)
from tidelog.language.syntax import (
    Aggregate,
    Atom,
    Binary,
    BinaryOp,
    BodyLiteral,
    Bottom,
    Comparison,
    Condition,
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
from tidelog.language.time_arguments import NO_TIMES, TimeTerms
from tidelog.timeline.grid import Grid, add_left, add_pairs, add_right, negate
from tidelog.timeline.time_sets import Pair

#: A variable's name, or the number of a constant.
Argument = str | int
Intern = Callable[[Value], int]


@dataclass(frozen=True, slots=True)
class EncodedAtom:
    """An atom whose arguments are names of variables or numbers of constants."""

    predicate: str
    args: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class TruthConstant:
    """Top or Bottom, or an operator over an empty range."""

    value: bool


@dataclass(frozen=True, slots=True)
class Diamond:
    """A formula that holds at some time of a range."""

    by: Pair
    arg: EncodedFormula


@dataclass(frozen=True, slots=True)
class Box:
    """A formula that holds at every time of a range."""

    by: Pair
    arg: EncodedFormula


@dataclass(frozen=True, slots=True)
class SinceOrUntil:
    """Since, or Until if `mirrored`; the range of Until is a distance into the future."""

    by: Pair
    left: EncodedFormula
    right: EncodedFormula
    mirrored: bool


EncodedFormula = EncodedAtom | TruthConstant | Diamond | Box | SinceOrUntil


@dataclass(frozen=True, slots=True)
class EncodedLiteral:
    """A literal of a body with its encoded formula, the variables that a fact must bind, and all its variables."""

    source: Literal
    formula: EncodedFormula
    binders: frozenset[str]
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """The literals of a body: atoms and formulas, negated ones, comparisons of bound terms, and other conditions."""

    positive: tuple[EncodedLiteral, ...]
    negative: tuple[EncodedLiteral, ...]
    comparisons: tuple[Comparison, ...]
    conditions: tuple[EncodedCondition, ...]


@dataclass(frozen=True, slots=True)
class EncodedAggregate:
    """An aggregate with its group variables, its range and its body."""

    source: Aggregate
    group: tuple[str, ...]
    #: The variables that tell rows apart: all that the braces bind.
    columns: tuple[str, ...]
    #: Whether only groups with a row exist, since the braces bind a group variable that nothing else binds.
    needs_row: bool
    #: None for an aggregate at a point in time; an empty pair for a range without a point of the integer timeline.
    range: Pair | None
    body: EncodedBody


@dataclass(frozen=True, slots=True)
class EncodedCondition:
    """A comparison, test or assignment of expressions."""

    source: Condition | Comparison
    aggregates: tuple[EncodedAggregate, ...]
    #: Variables that must be bound before, except for one that an assignment computes.
    needed: frozenset[str]
    #: Variables that are bound afterwards.
    variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class EncodedRule:
    """A rule that can derive facts: its head holds at the times of its body plus `shift`."""

    number: int
    source: Rule
    head: EncodedAtom
    shift: Pair
    body: EncodedBody
    #: The variables and aggregates that are written as dates.
    dates: TimeTerms = NO_TIMES

    @property
    def positive(self) -> tuple[EncodedLiteral, ...]:
        """The formulas of the body."""
        return self.body.positive

    @property
    def negative(self) -> tuple[EncodedLiteral, ...]:
        """The negated formulas of the body."""
        return self.body.negative


def encode_rule(number: int, rule: Rule, grid: Grid, intern: Intern, dates: TimeTerms = NO_TIMES) -> EncodedRule | None:
    """Encode a rule; None for constraints, and for heads over an empty range."""
    head, shift = rule.head, (0, 0)
    while isinstance(head, Unary):
        pair = grid.to_pair(head.range)
        if pair is None:
            return None
        shift = add_pairs(shift, pair if head.op is UnaryOp.BOX_PLUS else negate(pair), grid.dense)
        head = head.arg
    if not isinstance(head, Atom):
        return None
    body = _encode_body(rule.body, rule, grid, intern)
    return EncodedRule(number, rule, _encode_atom(head, intern), shift, body, dates)


def _encode_body(body: Iterable[BodyLiteral], rule: Rule, grid: Grid, intern: Intern) -> EncodedBody:
    """Encode the body of a rule, or of an aggregate in it."""
    body = tuple(body)
    bound = atom_variables(body)
    literals = [_encode_literal(literal, grid, intern) for literal in body if isinstance(literal, Literal)]
    comparisons, conditions = [], []
    for literal in body:
        if isinstance(literal, Comparison) and all(variable in bound for variable in literal_variables(literal)):
            comparisons.append(literal)
        elif not isinstance(literal, Literal):
            conditions.append(_encode_condition(literal, rule, grid, intern))
    return EncodedBody(
        tuple(literal for literal in literals if not literal.source.negated),
        tuple(literal for literal in literals if literal.source.negated),
        tuple(comparisons),
        tuple(conditions),
    )


def _encode_condition(condition: Condition | Comparison, rule: Rule, grid: Grid, intern: Intern) -> EncodedCondition:
    sides = (condition.left, condition.right)
    found = dict.fromkeys(aggregate for side in sides for aggregate in find_aggregates(side))
    aggregates = tuple(_encode_aggregate(aggregate, rule, grid, intern) for aggregate in found)
    outside = {variable.name for side in sides for variable in expression_variables(side, braces=False)}
    groups = {name for aggregate in aggregates for name in aggregate.group}
    bound = [{variable.name for variable in find_bound(aggregate.source.body)} for aggregate in aggregates]
    given = {variable.name for variable in bound_outside(rule)}
    # What one pair of braces binds, another one may need from outside.
    missing = {name for a, inside in zip(aggregates, bound, strict=True) for name in a.group if name not in inside}
    own = {name for inside in bound for name in inside & groups} - (missing & given)
    return EncodedCondition(condition, aggregates, frozenset((outside | groups) - own), frozenset(outside | groups))


def _encode_aggregate(aggregate: Aggregate, rule: Rule, grid: Grid, intern: Intern) -> EncodedAggregate:
    group = group_variables(aggregate, rule)
    body = _encode_body(aggregate.body, rule, grid, intern)
    return EncodedAggregate(
        aggregate,
        tuple(variable.name for variable in group),
        tuple(sorted({variable.name for variable in (*group, *find_bound(aggregate.body))})),
        needs_row(aggregate, rule),
        None if aggregate.range is None else grid.to_pair(aggregate.range) or (0, -1),
        body,
    )


def find_bound(body: Iterable[BodyLiteral]) -> dict[Variable, None]:
    """Return the variables of a body without aggregates that its atoms bind, or that are computed from them."""
    return bound_outside(Rule(Top(), tuple(body)))


def _encode_literal(literal: Literal, grid: Grid, intern: Intern) -> EncodedLiteral:
    formula = _encode_formula(literal.formula, grid, intern)
    binders = frozenset(
        name for atom, _ in find_atom_windows(formula, (0, 0), True, left=False) for name in variable_names(atom)
    )
    return EncodedLiteral(literal, formula, binders, tuple(dict.fromkeys(_formula_variables(literal.formula))))


def _encode_formula(formula: Formula, grid: Grid, intern: Intern) -> EncodedFormula:
    """Encode a formula; operators over an empty range become truth constants."""
    match formula:
        case Atom():
            return _encode_atom(formula, intern)
        case Top() | Bottom():
            return TruthConstant(isinstance(formula, Top))
        case Unary():
            pair = grid.to_pair(formula.range)
            some = formula.op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS)
            if pair is None:
                return TruthConstant(not some)
            if formula.op in (UnaryOp.DIAMOND_PLUS, UnaryOp.BOX_PLUS):
                pair = negate(pair)
            arg = _encode_formula(formula.arg, grid, intern)
            return Diamond(pair, arg) if some else Box(pair, arg)
        case Binary():
            pair = grid.to_pair(formula.range)
            if pair is None:
                return TruthConstant(False)
            left, right = (_encode_formula(operand, grid, intern) for operand in (formula.left, formula.right))
            return SinceOrUntil(pair, left, right, formula.op is BinaryOp.UNTIL)
        case _:
            assert_never(formula)


def _encode_atom(atom: Atom, intern: Intern) -> EncodedAtom:
    return EncodedAtom(atom.predicate, tuple(_encode_term(term, intern) for term in atom.args))


def _encode_term(term: Term, intern: Intern) -> Argument:
    return intern(term.value) if isinstance(term, Constant) else term.name


def variable_names(atom: EncodedAtom) -> Iterator[str]:
    """Yield the names of an atom's variables."""
    return (arg for arg in atom.args if isinstance(arg, str))


def _formula_variables(formula: Formula) -> Iterator[str]:
    """Yield the names of variables in a formula, in order of occurrence."""
    match formula:
        case Atom():
            yield from (term.name for term in formula.args if isinstance(term, Variable))
        case Unary():
            yield from _formula_variables(formula.arg)
        case Binary():
            yield from _formula_variables(formula.left)
            yield from _formula_variables(formula.right)


def find_atom_windows(
    formula: EncodedFormula, window: Pair, dense: bool, *, left: bool = True
) -> Iterator[tuple[EncodedAtom, Pair]]:
    """Yield the atoms that a formula reads from a window of times, each with the window in which it is read.

    `left` includes the left operands of Since and Until.
    """
    match formula:
        case EncodedAtom():
            yield formula, window
        case Diamond(by, arg) | Box(by, arg):
            yield from find_atom_windows(arg, shift_range(window, negate(by), dense), dense, left=left)
        case SinceOrUntil(by, a, b, is_until):
            back = by if is_until else negate(by)
            far = shift_range(window, back, dense)
            yield from find_atom_windows(b, far, dense, left=left)
            if left:
                yield from find_atom_windows(a, (min(far[0], window[0]), max(far[1], window[1])), dense)


def find_body_windows(body: EncodedBody, window: Pair, dense: bool) -> Iterator[tuple[EncodedAtom, Pair]]:
    """Yield the atoms that a body reads from a window of times, each with the window in which it is read."""
    for literal in (*body.positive, *body.negative):
        yield from find_atom_windows(literal.formula, window, dense)
    for condition in body.conditions:
        for aggregate in condition.aggregates:
            range_ = (0, 0) if aggregate.range is None else aggregate.range
            yield from find_body_windows(aggregate.body, shift_range(window, negate(range_), dense), dense)


def shift_range(window: Pair, by: Pair, dense: bool) -> Pair:
    """Add a range to a window. Unlike a sum of ranges, the result may leave the bounds of the grid, where nothing
    holds."""
    return add_left(window[0], by[0], dense), add_right(window[1], by[1], dense)
