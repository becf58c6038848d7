"""The syntax tree of DatalogMTL and of temporal Datalog: frozen data, nothing else.

Functions elsewhere work on it: `parser` builds it, `printer` prints it, `tidelog.analysis` analyses it. Places do not
take part in equality, so a program that is printed and read again equals the original.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from tidelog.errors import Place
from tidelog.timeline.interval import Interval

#: A constant's value: a name (`abc` and `"abc"` are one) or a number (`1` and `1.0` are one).
Value = str | Fraction


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable. Each anonymous `_` has a name of its own, `_1`, `_2`, ..., and is printed as `_` again."""

    name: str
    anonymous: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """A name or a number."""

    value: Value


Term = Variable | Constant


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate and its arguments."""

    predicate: str
    args: tuple[Term, ...] = ()
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Top:
    """The formula that is true at all times."""

    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Bottom:
    """The formula that is never true; as a head, it makes a rule a constraint."""

    place: Place | None = field(default=None, compare=False, repr=False)


class UnaryOp(Enum):
    """An operator with one operand, by its name in rules."""

    DIAMOND_MINUS = "Diamondminus"
    BOX_MINUS = "Boxminus"
    DIAMOND_PLUS = "Diamondplus"
    BOX_PLUS = "Boxplus"


class BinaryOp(Enum):
    """An operator with two operands, by its name in rules."""

    SINCE = "Since"
    UNTIL = "Until"


@dataclass(frozen=True, slots=True)
class Unary:
    """`op[range] arg`, where the range is a non-empty interval of non-negative numbers."""

    op: UnaryOp
    range: Interval
    arg: Formula
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """`left op[range] right`."""

    op: BinaryOp
    range: Interval
    left: Formula
    right: Formula
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Group(Atom):
    """Literals in brackets, or joined by `or`: all of them hold or, with `alternatives`, at least one.

    It takes the place of an atom, and its arguments are its variables. As written it has no predicate. In the rules
    of a program `groups` has given it a hidden one, whose rules say when the group holds.
    """

    literals: tuple[BodyLiteral, ...] = ()
    alternatives: bool = False


Formula = Atom | Top | Bottom | Unary | Binary


@dataclass(frozen=True, slots=True)
class Literal:
    """A body literal: a formula, or its negation."""

    formula: Formula
    negated: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`, where the operator is one of < <= = != > >=."""

    op: str
    left: Term
    right: Term
    place: Place | None = field(default=None, compare=False, repr=False)


class AggregateFunction(Enum):
    """A function over the rows in a pair of braces, by its name in rules."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    LAST = "last"
    FIRST = "first"
    DURATION = "duration"
    START = "start"


@dataclass(frozen=True, slots=True)
class Operation:
    """A function or an arithmetic operator with its operands; `-` with one operand is a change of sign."""

    name: str
    args: tuple[Expression, ...]
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`function[range]{ distinct values : body }`; without a range, over the rows that hold now."""

    function: AggregateFunction
    values: tuple[Expression, ...]
    body: tuple[BodyLiteral, ...]
    range: Interval | None = None
    distinct: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)


Expression = Variable | Constant | Operation | Aggregate


@dataclass(frozen=True, slots=True)
class Condition:
    """`left op right` between expressions, where one of them is more than a term or the operator is a test of text.

    Tests of text have their name as operator: `starts_with`, or `not starts_with`. With `in_head`, the left side is a
    variable that stands for the expression on the right, which the user wrote as an argument of the head.
    """

    op: str
    left: Expression
    right: Expression
    in_head: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)


BodyLiteral = Literal | Comparison | Condition


@dataclass(frozen=True, slots=True)
class Rule:
    """`head :- body.`, where the head is an atom, Top or Bottom, possibly under boxes; `text` is as written.

    As written, a head may also be a group of several such heads.
    """

    head: Formula
    body: tuple[BodyLiteral, ...] = ()
    text: str = field(default="", compare=False, repr=False)
    place: Place | None = field(default=None, compare=False, repr=False)


# Temporal Datalog


@dataclass(frozen=True, slots=True)
class TimeTerm:
    """A time argument: `T`, `T+k` or `T-k` (a variable and an offset), or a natural number (no variable)."""

    variable: str | None
    offset: int


@dataclass(frozen=True, slots=True)
class TemporalAtom:
    """An atom of temporal Datalog. `args` excludes the time argument, and `time` is None for rigid predicates."""

    predicate: str
    args: tuple[Term, ...]
    time: TimeTerm | None
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TemporalLiteral:
    """A body literal of temporal Datalog: an atom, or its negation."""

    atom: TemporalAtom
    negated: bool = False


@dataclass(frozen=True, slots=True)
class TemporalRule:
    """A rule of temporal Datalog. Without a head it is a constraint, without body and variables a fact."""

    head: TemporalAtom | None
    body: tuple[TemporalLiteral | Comparison, ...] = ()
    text: str = field(default="", compare=False, repr=False)
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TemporalProgram:
    """A `.tdl` file: its rules, its facts, and its temporal and rigid predicates, with their arities without time."""

    rules: tuple[TemporalRule, ...]
    facts: tuple[TemporalRule, ...]
    temporal: frozenset[tuple[str, int]]
    rigid: frozenset[tuple[str, int]]
    #: The predicates that a directive declares rigid.
    declared_rigid: frozenset[tuple[str, int]] = field(default=frozenset(), compare=False, repr=False)


# Facts


@dataclass(frozen=True, slots=True)
class Fact:
    """A ground atom and the interval in which it holds; a background fact holds at all times."""

    predicate: str
    args: tuple[Value, ...]
    interval: Interval
