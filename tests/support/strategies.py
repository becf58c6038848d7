"""Hypothesis strategies for the whole language: every feature of it joins here.

Programs are syntax trees, safe and stratified by construction: a body is drawn first, and heads, negated literals and
comparisons take their variables from those that it binds; predicates stand in levels, a body's positive atoms are at
most at the head's level, its negated ones below it. `Features` chooses a part of the language.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count

from hypothesis import strategies as st

from tidelog.language.groups import expand_groups
from tidelog.language.parser import build_group
from tidelog.language.rule_checks import diagnose_rules
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
    Expression,
    Fact,
    Formula,
    Group,
    Literal,
    Operation,
    Rule,
    Term,
    Top,
    Unary,
    UnaryOp,
    Value,
    Variable,
)
from tidelog.timeline.interval import INF, Interval, TimelineName

PREDICATES = ("A", "B", "C", "D", "x:E")
#: A lower-case name, a number, a name that rules must quote, a string that looks like a number.
CONSTANTS: tuple[Value, ...] = ("a", Fraction(1), "Up", "1")
VARIABLES = ("X", "Y", "Z")
COMPARISONS = ("<", "<=", "=", "!=", ">", ">=")


@dataclass(frozen=True)
class Features:
    """A part of the language."""

    #: Operators that look to the past, boxes in heads that reach to the future.
    forward: bool = True
    #: The mirror image; both together are the whole language, Top and Bottom in bodies included.
    backward: bool = False
    #: Ranges that reach to infinity.
    unbounded: bool = False
    recursive: bool = True
    negation: bool = False
    integer: bool = False
    constraints: bool = False
    #: Denominators of times in the program and in the data.
    denominators: tuple[int, ...] = (1, 2)
    depth: int = 3
    #: Conjunctions and alternatives in bodies and under operators.
    groups: bool = False
    #: Whether data may begin at -inf or end at inf.
    endless_data: bool = True

    @property
    def timeline(self) -> TimelineName:
        return "integer" if self.integer else "rational"

    @property
    def both(self) -> bool:
        return self.forward and self.backward


FORWARD = Features()
BACKWARD = Features(forward=False, backward=True)
BOTH = Features(backward=True)


@dataclass(frozen=True)
class Case:
    """A program with data."""

    rules: tuple[Rule, ...]
    facts: tuple[Fact, ...]
    features: Features


# Times


@st.composite
def times(draw: st.DrawFn, lo: int, hi: int, denominators: Sequence[int] = (1,)) -> Fraction:
    """Rationals from lo to hi, integers first."""
    denominator = draw(st.sampled_from(denominators))
    return Fraction(draw(st.integers(lo * denominator, hi * denominator)), denominator)


@st.composite
def ranges(
    draw: st.DrawFn,
    largest: int = 4,
    *,
    denominators: Sequence[int] = (1,),
    unbounded: bool = False,
    integer: bool = False,
) -> Interval:
    """Ranges of operators: punctual or not, with all brackets. Over the integers each holds an integer."""
    lo = draw(times(0, largest, denominators))
    kind = draw(st.sampled_from(("closed", "point", "brackets", "brackets") + (("inf",) if unbounded else ())))
    if kind == "point":
        return Interval.point(lo)
    if kind == "inf":
        return Interval(lo, INF, draw(st.booleans()), False)
    hi = draw(times(0, largest, denominators))
    lo, hi = min(lo, hi), max(lo, hi)
    if kind == "closed" or lo == hi:
        return Interval(lo, hi)
    lo_closed, hi_closed = draw(st.booleans()), draw(st.booleans())
    if integer and hi - lo == 1 and not lo_closed and not hi_closed:
        lo_closed = True
    return Interval(lo, hi, lo_closed, hi_closed)


@st.composite
def intervals(draw: st.DrawFn, features: Features) -> Interval:
    """When a fact holds. Over the integers each interval holds an integer."""
    kinds = ("point", "interval") * 3 + (("always", "from", "until") if features.endless_data else ())
    kind = draw(st.sampled_from(kinds))
    lo = draw(times(0, 8, features.denominators))
    if kind == "point":
        return Interval.point(lo)
    if kind == "always":
        return Interval.always()
    if kind == "from":
        return Interval(lo, INF, draw(st.booleans()), False)
    if kind == "until":
        return Interval(-INF, lo, False, draw(st.booleans()))
    length = draw(st.integers(1, 4))
    lo_closed, hi_closed = draw(st.booleans()), draw(st.booleans())
    return Interval(lo, lo + length, lo_closed or (features.integer and length == 1), hi_closed)


# Formulas


@dataclass(frozen=True)
class Vocabulary:
    """What a formula may mention: predicates with their arities, and terms."""

    predicates: tuple[tuple[str, int], ...]
    terms: tuple[Term | None, ...]  # None asks for an anonymous variable
    #: Predicates that groups may negate.
    denied: tuple[tuple[str, int], ...] = ()


@st.composite
def atoms(draw: st.DrawFn, words: Vocabulary) -> Atom:
    name, arity = draw(st.sampled_from(words.predicates))
    args: list[Term] = []
    for _ in range(arity):
        term = draw(st.sampled_from(words.terms))
        args.append(Variable("_", anonymous=True) if term is None else term)
    return Atom(name, tuple(args))


@st.composite
def formulas(draw: st.DrawFn, words: Vocabulary, features: Features, depth: int) -> Formula:
    kinds = ["atom"]
    if depth > 0:
        kinds += ["unary", "unary", "binary"]
    if features.both and depth < features.depth:
        kinds += ["constant"]
    if features.groups and depth > 0:
        kinds += ["group", "group"]
    kind = draw(st.sampled_from(kinds))
    if kind == "group":
        return draw(groups(words, features, depth - 1))
    if kind == "atom" and words.predicates:
        return draw(atoms(words))
    if kind in ("atom", "constant"):
        return Top() if draw(st.booleans()) else Bottom()
    range_ = draw(program_ranges(features))
    if kind == "unary":
        past, future = (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS), (UnaryOp.DIAMOND_PLUS, UnaryOp.BOX_PLUS)
        ops = past * features.forward + future * features.backward
        return Unary(draw(st.sampled_from(ops)), range_, draw(formulas(words, features, depth - 1)))
    binary = (BinaryOp.SINCE,) * features.forward + (BinaryOp.UNTIL,) * features.backward
    left, right = draw(formulas(words, features, depth - 1)), draw(formulas(words, features, depth - 1))
    return Binary(draw(st.sampled_from(binary)), range_, left, right)


@st.composite
def groups(draw: st.DrawFn, words: Vocabulary, features: Features, depth: int) -> Formula:
    """Literals in brackets; negated ones and comparisons take variables that the others bind, if there are any."""
    inner = [Literal(draw(formulas(words, features, depth))) for _ in range(draw(st.sampled_from((1, 2, 2, 3))))]
    literals: list[BodyLiteral] = list(inner)
    bound = [Variable(name) for literal in inner for name in sorted(bound_variables(literal.formula))]
    terms: tuple[Term, ...] = (*bound, *(term for term in words.terms if isinstance(term, Constant)))
    if words.denied and terms and draw(st.integers(0, 2)) == 0:
        negative = Vocabulary(words.denied, terms)
        literals.append(Literal(draw(formulas(negative, features, min(depth, 1))), negated=True))
    if bound and draw(st.integers(0, 5)) == 0:
        literals.append(
            Comparison(draw(st.sampled_from(COMPARISONS)), draw(st.sampled_from(terms)), draw(st.sampled_from(terms)))
        )
    if len(literals) == 1:
        return inner[0].formula
    return build_group(literals, None, alternatives=draw(st.booleans()))


def depths(deepest: int) -> st.SearchStrategy[int]:
    """Mostly shallow: what is deep seldom holds."""
    return st.sampled_from([depth for depth in range(deepest + 1) for _ in range(deepest + 1 - depth)])


def program_ranges(features: Features) -> st.SearchStrategy[Interval]:
    return ranges(3, denominators=features.denominators, unbounded=features.unbounded, integer=features.integer)


def bound_variables(formula: Formula) -> set[str]:
    """The variables that an operand other than the left one of Since or Until mentions by name."""
    match formula:
        case Group(literals=literals, alternatives=alternatives):
            sets = [
                bound_variables(literal.formula) if isinstance(literal, Literal) and not literal.negated else set()
                for literal in literals
            ]
            return set.intersection(*sets) if alternatives else set.union(*sets)
        case Atom(_, args):
            return {term.name for term in args if isinstance(term, Variable) and not term.anonymous}
        case Unary(_, _, arg):
            return bound_variables(arg)
        case Binary(_, _, _, right):
            return bound_variables(right)
    return set()


def bound_by_literal(formula: Formula, features: Features) -> set[str]:
    """The variables that a literal binds: also those of a left operand that holds at some time."""
    found = bound_variables(formula)
    if features.groups and isinstance(formula, Binary) and is_apart(formula.range, features.integer):
        found |= bound_variables(formula.left)
    return found


def is_apart(range_: Interval, integer: bool) -> bool:
    """Whether there is a time strictly between now and every time of a range."""
    return range_.lo > integer or (range_.lo == integer and not range_.lo_closed)


# Programs


@st.composite
def heads(draw: st.DrawFn, name: str, arity: int, terms: Sequence[Term], features: Features) -> Formula:
    head: Formula = Atom(name, tuple(draw(st.sampled_from(terms)) for _ in range(arity)))
    if features.constraints and draw(st.integers(0, 19)) == 19:
        head = Bottom() if draw(st.integers(0, 3)) else Top()
    ops = (UnaryOp.BOX_PLUS,) * features.forward + (UnaryOp.BOX_MINUS,) * features.backward
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        bounded = replace(features, unbounded=features.unbounded and draw(st.integers(0, 3)) == 0)
        head = Unary(draw(st.sampled_from(ops)), draw(program_ranges(bounded)), head)
    return head


@st.composite
def rules(
    draw: st.DrawFn,
    levels: Sequence[Sequence[tuple[str, int]]],
    level: int,
    constants: Sequence[Value],
    features: Features,
) -> Rule:
    """A rule for a predicate of the given level."""
    name, arity = draw(st.sampled_from(levels[level]))
    usable = [predicate for lower in levels[: level + features.recursive] for predicate in lower]
    lower = tuple(predicate for lower in levels[:level] for predicate in lower)
    fixed = tuple(Constant(value) for value in constants)
    variables = tuple(Variable(v) for v in VARIABLES)
    words = Vocabulary(tuple(usable), variables + variables + fixed + (None,), lower if features.negation else ())
    only_negation = features.negation and bool(lower) and draw(st.integers(0, 7)) == 0
    number = 0 if only_negation else draw(st.sampled_from((1, 1, 2, 3)))
    body: list[BodyLiteral] = [
        Literal(draw(formulas(words, features, draw(depths(features.depth))))) for _ in range(number)
    ]
    names = sorted(
        {v for literal in body if isinstance(literal, Literal) for v in bound_by_literal(literal.formula, features)}
    )
    terms: tuple[Term, ...] = tuple(Variable(v) for v in names) * 2 + fixed
    if features.negation and lower and (only_negation or draw(st.booleans())):
        negative = Vocabulary(lower, terms)
        body.append(Literal(draw(formulas(negative, features, draw(st.integers(0, 2)))), negated=True))
    if names and draw(st.integers(0, 3)) == 0:
        left, right = draw(st.sampled_from(terms)), draw(st.sampled_from(terms))
        body.append(Comparison(draw(st.sampled_from(COMPARISONS)), left, right))
    body = draw(st.permutations(body))
    found = numbered(Rule(draw(heads(name, arity, terms, features)), tuple(body)))
    if features.groups and diagnose_rules(expand_groups([found])):
        # Some alternative leaves a variable unbound.
        return draw(rules(levels, level, constants, replace(features, groups=False)))
    return found


@st.composite
def cycles(draw: st.DrawFn, levels: Sequence[Sequence[tuple[str, int]]], level: int, features: Features) -> list[Rule]:
    """Rules that hand facts of one predicate to another and back, moved in time; sometimes under a condition.

    Rules that are drawn freely are seldom recursive in a way that runs for ever, so these are drawn on purpose.
    """
    name, arity = draw(st.sampled_from(levels[level]))
    partners = [predicate for predicate in levels[level] if predicate[1] == arity]
    way = [name, draw(st.sampled_from(partners))[0]] if draw(st.booleans()) else [name]
    args = tuple(Variable(v) for v in VARIABLES[:arity])
    found = []
    for source, target in zip(way, way[1:] + way[:1], strict=True):
        body, head = Atom(source, args), Atom(target, args)
        lo = draw(times(1, 4, features.denominators))
        wider = draw(st.sampled_from((0, 0, 0, 1)))
        range_ = Interval(lo, lo + wider)
        past = features.forward and (not features.backward or draw(st.booleans()))
        kind = draw(st.sampled_from(("diamond", "diamond", "box", "head", "operand")))
        moved: Formula = body
        if kind == "head":
            found_head: Formula = Unary(UnaryOp.BOX_PLUS if past else UnaryOp.BOX_MINUS, range_, head)
        else:
            found_head = head
            match kind:
                case "diamond":
                    moved = Unary(UnaryOp.DIAMOND_MINUS if past else UnaryOp.DIAMOND_PLUS, range_, body)
                case "box":
                    moved = Unary(UnaryOp.BOX_MINUS if past else UnaryOp.BOX_PLUS, range_, body)
                case _:
                    other = draw(st.sampled_from([p for group in levels[: level + 1] for p in group]))
                    left = Atom(other[0], tuple(Variable("W") for _ in range(other[1])))
                    moved = Binary(BinaryOp.SINCE if past else BinaryOp.UNTIL, range_, left, body)
        literals = [Literal(moved)]
        if draw(st.integers(0, 3)) == 3:
            other = draw(st.sampled_from(levels[0]))
            negated = features.negation and draw(st.booleans()) and (not other[1] or bool(args))
            terms = tuple(args[0] if negated else Variable("V") for _ in range(other[1]))
            literals.append(Literal(Atom(other[0], terms), negated=negated))
        found.append(Rule(found_head, tuple(literals)))
    return found


def numbered(rule: Rule) -> Rule:
    """The rule with its anonymous variables named _1, _2, ... in the order in which they stand."""
    numbers = count(1)

    def rename(formula: Formula) -> Formula:
        match formula:
            case Group():
                literals = tuple(map(rename_literal, formula.literals))
                return build_group(literals, None, formula.alternatives)
            case Atom():
                return replace(formula, args=tuple(map(rename_term, formula.args)))
            case Unary():
                return replace(formula, arg=rename(formula.arg))
            case Binary():
                left = rename(formula.left)
                return replace(formula, left=left, right=rename(formula.right))
        return formula

    def rename_term(term: Term) -> Term:
        if isinstance(term, Variable) and term.anonymous:
            return Variable(f"_{next(numbers)}", anonymous=True)
        return term

    def rename_in(expression: Expression) -> Expression:
        match expression:
            case Operation():
                return replace(expression, args=tuple(map(rename_in, expression.args)))
            case Aggregate():
                values = tuple(map(rename_in, expression.values))
                return replace(expression, values=values, body=tuple(map(rename_literal, expression.body)))
        return rename_term(expression)

    def rename_literal(literal: BodyLiteral) -> BodyLiteral:
        match literal:
            case Literal():
                return replace(literal, formula=rename(literal.formula))
            case Condition():
                left = rename_in(literal.left)
                return replace(literal, left=left, right=rename_in(literal.right))
        return literal

    head = rename(rule.head)
    return replace(rule, head=head, body=tuple(map(rename_literal, rule.body)))


@st.composite
def cases(draw: st.DrawFn, features: Features = FORWARD) -> Case:
    """A program and a small dataset for it."""
    arities = draw(st.lists(st.sampled_from((0, 0, 1, 1, 2)), min_size=2, max_size=5))
    predicates = list(zip(PREDICATES, arities, strict=False))
    if features.recursive:
        # The first predicate is given, the others stand in one or two levels above it.
        split = draw(st.integers(1, len(predicates) - 1))
        levels = [group for group in (predicates[:1], predicates[1:split], predicates[split:]) if group]
    else:
        levels = [[predicate] for predicate in predicates]
    constants = draw(st.lists(st.sampled_from(CONSTANTS), min_size=1, max_size=2, unique=True))
    number = draw(st.integers(1, 6 if len(predicates) > 2 else 3))
    drawn = [draw(rules(levels, draw(st.integers(1, len(levels) - 1)), constants, features)) for _ in range(number)]
    turning: list[Rule] = []
    for _ in range(draw(st.sampled_from((0, 1, 1, 2))) if features.recursive else 0):
        turning += draw(cycles(levels, draw(st.integers(1, len(levels) - 1)), features))
    # Facts go where rules can make something of them.
    arity = dict(predicates)
    read = [atom for rule in turning for literal in rule.body for atom in atoms_read(literal)]
    fertile = [(name, arity[name]) for name in dict.fromkeys(read)] * 3
    return Case(tuple(drawn[:5] + turning), draw(datasets(predicates + fertile, constants, features)), features)


def atoms_read(literal: BodyLiteral) -> list[str]:
    """The predicates of a literal."""
    if not isinstance(literal, Literal):
        return []
    found, todo = [], [literal.formula]
    while todo:
        match todo.pop():
            case Group(literals=literals):
                found += [name for inner in literals for name in atoms_read(inner)]
            case Atom(name):
                found.append(name)
            case Unary(_, _, arg):
                todo.append(arg)
            case Binary(_, _, left, right):
                todo += [left, right]
    return found


@st.composite
def datasets(
    draw: st.DrawFn, predicates: Sequence[tuple[str, int]], constants: Sequence[Value], features: Features
) -> tuple[Fact, ...]:
    facts = []
    for _ in range(draw(st.integers(1, 8))):
        name, arity = draw(st.sampled_from(predicates))
        args = tuple(draw(st.sampled_from(constants)) for _ in range(arity))
        facts.append(Fact(name, args, draw(intervals(features))))
    return tuple(facts)
