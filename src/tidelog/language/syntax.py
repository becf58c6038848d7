"""The syntax tree of DatalogMTL and of temporal Datalog: frozen data, nothing else.

What is done to it are functions elsewhere: `parser` makes it, `printer` prints it, `analysis` reasons about it.
Places never take part in equality, so that a printed and re-read program equals the original.
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
    """A variable. Each anonymous `_` gets a name of its own: `_1`, `_2`, ... (printed as `_` again)."""

    name: str
    anonymous: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    value: Value


Term = Variable | Constant


@dataclass(frozen=True, slots=True)
class Atom:
    predicate: str
    args: tuple[Term, ...] = ()
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Top:
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Bottom:
    place: Place | None = field(default=None, compare=False, repr=False)


class UnaryOp(Enum):
    DIAMOND_MINUS = "Diamondminus"
    BOX_MINUS = "Boxminus"
    DIAMOND_PLUS = "Diamondplus"
    BOX_PLUS = "Boxplus"


class BinaryOp(Enum):
    SINCE = "Since"
    UNTIL = "Until"


@dataclass(frozen=True, slots=True)
class Unary:
    """`op[range] arg`; the range is a non-empty interval of non-negative numbers."""

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


Formula = Atom | Top | Bottom | Unary | Binary


@dataclass(frozen=True, slots=True)
class Literal:
    """A body literal: a formula, or its negation."""

    formula: Formula
    negated: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right` with op one of < <= = != > >=."""

    op: str
    left: Term
    right: Term
    place: Place | None = field(default=None, compare=False, repr=False)


BodyLiteral = Literal | Comparison


@dataclass(frozen=True, slots=True)
class Rule:
    """`head :- body.`; the head is an atom, Top or Bottom under boxes. `text` is the rule as the user wrote it."""

    head: Formula
    body: tuple[BodyLiteral, ...] = ()
    text: str = field(default="", compare=False, repr=False)
    place: Place | None = field(default=None, compare=False, repr=False)


# Temporal Datalog


@dataclass(frozen=True, slots=True)
class TimeTerm:
    """`T`, `T+k`, `T-k` (a variable and an offset) or a natural number (no variable)."""

    variable: str | None
    offset: int


@dataclass(frozen=True, slots=True)
class TemporalAtom:
    """An atom of temporal Datalog: `args` without the time argument; `time` is None for rigid predicates."""

    predicate: str
    args: tuple[Term, ...]
    time: TimeTerm | None
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TemporalLiteral:
    atom: TemporalAtom
    negated: bool = False


@dataclass(frozen=True, slots=True)
class TemporalRule:
    """A rule of temporal Datalog; a rule without a body and without variables is a fact.
    A head of None is a constraint (`Bottom :- ...`)."""

    head: TemporalAtom | None
    body: tuple[TemporalLiteral | Comparison, ...] = ()
    text: str = field(default="", compare=False, repr=False)
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TemporalProgram:
    """A `.tdl` file: its rules, its facts, and its predicates, each with the arity without time: temporal or rigid."""

    rules: tuple[TemporalRule, ...]
    facts: tuple[TemporalRule, ...]
    temporal: frozenset[tuple[str, int]]
    rigid: frozenset[tuple[str, int]]


# Facts


@dataclass(frozen=True, slots=True)
class Fact:
    """A ground atom and when it holds; background facts hold always."""

    predicate: str
    args: tuple[Value, ...]
    interval: Interval
