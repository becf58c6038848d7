"""Compute how many facts a stream reasoner holds at most: the memory bounds of the literature, for one query.

The bounds are those of the generic and of the bounded-memory algorithm for stream reasoning in DatalogMTL (theorems 12
and 15 of the paper with that title). Both count the predicates and rules of the program's normal form, where no
operator is nested or stands beside another literal:

- generic: `(4 ((t + step)/g + 1)^2 + 1) P n^A`, where t is the largest end of a range, g the greatest common divisor of
  the stream's times, the ends of ranges and the step, P the number of predicates, A their largest arity, and n the
  number of objects. It grows with the density of the stream, 1/g.
- bounded: `9 (2 (t/r + 2) R^((t + step)/k))^2 P n^A`, where r is the length of the shortest range, k the least end of a
  range that is not 0, and R the number of rules. No property of the stream but its objects is in it.

They apply to forward-propagating programs without Since, negation and constraints. On the integers the brackets of
ranges are closed first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import count
from math import floor, gcd, lcm, log10
from typing import Any

from tidelog.analysis.fragments import range_on_timeline, subformulas
from tidelog.language.program import Program
from tidelog.language.syntax import (
    Atom,
    Binary,
    Bottom,
    Comparison,
    Condition,
    Constant,
    Formula,
    Literal,
    Rule,
    Top,
    Unary,
    UnaryOp,
    Value,
)
from tidelog.language.validation import rule_atoms
from tidelog.timeline.interval import INF, Interval, Time, TimelineName, format_time

#: A bound with more digits than this is given by its logarithm.
MAX_DIGITS = 30


@dataclass(frozen=True)
class StreamProfile:
    """Known properties of a stream: the number of its objects, the common divisor of its times, and the step."""

    objects: int | None = None
    every: Fraction | None = None
    step: Fraction = Fraction(1)


@dataclass(frozen=True)
class NormalFormSize:
    """The size of a program in normal form.

    `window` is the largest end of a range, `shortest` the length of the shortest range, and `least` the least end that
    is not 0. The last two are infinite if there is no range.
    """

    rules: int
    predicates: int
    arity: int
    ends: frozenset[Fraction]
    shortest: Time

    @property
    def window(self) -> Fraction:
        return max(self.ends, default=Fraction(0))

    @property
    def least(self) -> Time:
        return min((end for end in self.ends if end > 0), default=INF)


@dataclass(frozen=True)
class Bound:
    """A bound as a formula, and as a number if all its variables are known; or the reason why there is none."""

    formula: str | None = None
    facts: int | None = None
    log10: float | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"formula": self.formula, "facts": self.facts, "log10": self.log10, "reason": self.reason}

    def __str__(self) -> str:
        if self.formula is None:
            return f"no bound: {self.reason}"
        if self.facts is not None:
            return f"at most {self.facts:,} facts = {self.formula}"
        about = f"about 10^{self.log10:.0f} facts = " if self.log10 is not None else ""
        return f"at most {about}{self.formula}"


@dataclass(frozen=True)
class MemoryBounds:
    """Both bounds of a query, and the properties that they are computed from."""

    stream: StreamProfile
    form: NormalFormSize
    generic: Bound
    bounded: Bound
    #: Bounds for what tidelog itself holds, which is less; `tidelog.streaming.capacity` computes them.
    held_generic: Bound | None = None
    held_bounded: Bound | None = None

    def to_json(self) -> dict[str, Any]:
        form, stream = self.form, self.stream
        return {
            "objects": stream.objects,
            "every": None if stream.every is None else str(stream.every),
            "step": str(stream.step),
            "rules": form.rules,
            "predicates": form.predicates,
            "arity": form.arity,
            "window": str(form.window),
            "shortest": format_time(form.shortest),
            "least": format_time(form.least),
            "generic": self.generic.to_json(),
            "bounded": self.bounded.to_json(),
            "held_generic": self.held_generic.to_json() if self.held_generic else None,
            "held_bounded": self.held_bounded.to_json() if self.held_bounded else None,
        }

    def lines(self) -> list[str]:
        """Return the lines that `tidelog check` prints."""
        unknown = []
        if self.stream.objects is None:
            unknown.append("n objects")
        if self.stream.every is None:
            unknown.append("times and ranges in multiples of g")
        given = f"for a step of {self.stream.step}" + "".join(f", {each}" for each in unknown)
        held = [("generic", self.held_generic), ("bounded", self.held_bounded)]
        return [
            *(f"{name}  {bound}" for name, bound in held if bound),
            f"theorem 12 (generic)  {self.generic}",
            f"theorem 15 (bounded)  {self.bounded}",
            given,
        ]


def compute_memory_bounds(program: Program, timeline: TimelineName, stream: StreamProfile, arity: int) -> MemoryBounds:
    """Compute the bounds for a program, pruned to the rules that its query needs; `arity` is that of the query."""
    form = measure_normal_form(program, timeline)
    if form.rules == 0:
        form = replace(form, predicates=1, arity=arity)
    reason = _find_obstacle(program)
    if reason:
        none = Bound(reason=reason)
        return MemoryBounds(stream, form, none, none)
    bounded = _compute_bounded(form, stream) if form.shortest > 0 else Bound(reason="a range is a single point")
    return MemoryBounds(stream, form, _compute_generic(form, stream), bounded)


def measure_normal_form(program: Program, timeline: TimelineName) -> NormalFormSize:
    """Compute the size of the normal form, without building it.

    A box in the head takes one more predicate and rule. So does each operator in a body, except the outermost one of a
    body that is a single literal.

    >>> rules = "Flag(X, Z) :- Monit(X, Z), Boxminus[0,4] Diamondminus[0,2] Signal(Z)."
    >>> form = measure_normal_form(Program.parse(rules), "rational")
    >>> form.rules, form.predicates, form.arity, form.window, form.shortest
    (3, 5, 2, Fraction(4, 1), Fraction(2, 1))
    """
    fresh = 0
    ranges: list[Interval] = []
    for rule in program.rules:
        parts = [part.formula for part in rule.body if isinstance(part, Literal)]
        inner = [node for part in parts for node in subformulas(part) if isinstance(node, Unary | Binary)]
        fresh += len(inner) - (len(parts) == 1 and bool(inner))
        written = _head_range(rule, timeline)
        if written is not None:
            fresh += 1
            ranges.append(written)
        spans = [range_on_timeline(node.range, timeline) for node in inner]
        ranges += [each for each in spans if each is not None]
    ends = frozenset(Fraction(end) for each in ranges for end in (each.lo, each.hi) if end != INF)
    shortest = min((each.hi - each.lo for each in ranges), default=INF)
    # Hidden predicates of a translation are included: their facts are held like others.
    arities = {atom.predicate: len(atom.args) for rule in program.rules for atom in rule_atoms(rule)}
    arity = max(arities.values(), default=0)
    return NormalFormSize(len(program.rules) + fresh, len(arities) + fresh, arity, ends, shortest)


def find_program_constants(program: Program) -> set[Value]:
    """Return the constants that occur in the rules and facts of a program."""
    terms = {term for rule in program.rules for atom in rule_atoms(rule) for term in atom.args}
    return {t.value for t in terms if isinstance(t, Constant)} | {arg for fact in program.facts for arg in fact.args}


def _head_range(rule: Rule, timeline: TimelineName) -> Interval | None:
    """Return the sum of the ranges of the head's boxes; None if there is no box."""
    total: Interval | None = None
    for node in subformulas(rule.head):
        span = range_on_timeline(node.range, timeline) if isinstance(node, Unary) else None
        if span is not None:
            total = span if total is None else Interval(total.lo + span.lo, total.hi + span.hi)
    return total


def _find_obstacle(program: Program) -> str | None:
    """Return why the theorems do not apply to a program; None if they do."""
    for rule in program.rules:
        for node in subformulas(rule.head):
            if isinstance(node, Top | Bottom) or (isinstance(node, Unary) and node.op is not UnaryOp.BOX_PLUS):
                return f"the literature has none for `{_name_operator(node)}` in heads"
        for part in rule.body:
            if isinstance(part, Comparison):
                continue
            if isinstance(part, Condition):
                return "the literature has none for arithmetic and aggregates"
            if part.negated:
                return "the literature has none for `not`"
            for node in subformulas(part.formula):
                past = (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS)
                if not isinstance(node, Atom) and not (isinstance(node, Unary) and node.op in past):
                    return f"the literature has none for `{_name_operator(node)}` in bodies"
    return None


def _name_operator(node: Formula) -> str:
    return node.op.value if isinstance(node, Unary | Binary) else type(node).__name__


def _compute_generic(form: NormalFormSize, stream: StreamProfile) -> Bound:
    atoms = f"{form.predicates} * {_format_power(stream.objects, form.arity)}"
    if stream.every is None:
        return Bound(f"(4 * (({form.window} + {stream.step}) / g + 1)^2 + 1) * {atoms}")
    divisor = greatest_common_divisor([stream.every, stream.step, *form.ends])
    formula = f"(4 * (({form.window} + {stream.step}) / {_format_factor(divisor)} + 1)^2 + 1) * {atoms}"
    if stream.objects is None:
        return Bound(formula)
    points = (form.window + stream.step) / divisor + 1
    return _to_bound(formula, int(4 * points**2 + 1) * form.predicates * stream.objects**form.arity)


def _compute_bounded(form: NormalFormSize, stream: StreamProfile) -> Bound:
    rules = max(1, form.rules)
    parts = Fraction(0) if form.shortest == INF else form.window / Fraction(form.shortest)
    turns = Fraction(0) if form.least == INF else (form.window + stream.step) / Fraction(form.least)
    atoms = f"{form.predicates} * {_format_power(stream.objects, form.arity)}"
    formula = f"9 * (2 * ({parts} + 2) * {rules}^{_format_factor(turns)})^2 * {atoms}"
    if stream.objects is None:
        return Bound(formula)
    digits = log10(36 * float(parts + 2) ** 2) + 2 * float(turns) * log10(rules)
    digits += log10(form.predicates) + form.arity * log10(max(1, stream.objects))
    if digits > MAX_DIGITS:
        return Bound(formula, None, round(digits, 1))
    factor = 36 * (parts + 2) ** 2 * form.predicates * stream.objects**form.arity
    return _to_bound(formula, _floor_of_power(factor, rules, 2 * turns))


def _floor_of_power(factor: Fraction, base: int, exponent: Fraction) -> int:
    """Return the whole part of `factor * base^exponent`, exactly: a number of facts is a whole number.

    >>> _floor_of_power(Fraction(1, 2), 10, Fraction(5, 2))
    158
    """
    root, times = _take_root(base)
    exponent = exponent * times if root > 1 else Fraction(1)
    if exponent.denominator == 1:
        return floor(factor * Fraction(root) ** exponent.numerator)
    # The power is irrational, so that enough digits tell which integers it is between.
    for digits in count(2 * MAX_DIGITS, MAX_DIGITS):
        with localcontext(prec=digits):
            power = Decimal(root) ** (Decimal(exponent.numerator) / exponent.denominator)
            error = power.scaleb(MAX_DIGITS // 2 - digits)
            low, high = (floor(factor * Fraction(end)) for end in (power - error, power + error))
        if low == high:
            return low
    raise AssertionError("unreachable")


def _take_root(base: int) -> tuple[int, int]:
    """Return a number that is no power of another, and the exponent that gives `base`; (1, 1) for 1."""
    for times in range(base.bit_length(), 1, -1):
        root = round(base ** (1 / times))
        if root**times == base:
            return root, times
    return base, 1


def _to_bound(formula: str, facts: int) -> Bound:
    return Bound(formula, facts, round(log10(facts), 1) if facts else None)


def _format_power(objects: int | None, arity: int) -> str:
    return f"{'n' if objects is None else objects}^{arity}"


def _format_factor(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else f"({number})"


def greatest_common_divisor(numbers: Iterable[Fraction]) -> Fraction:
    """Return the greatest rational that all numbers are multiples of; 0 if all are 0.

    >>> greatest_common_divisor([Fraction(1, 2), Fraction(3), Fraction(2, 3)])
    Fraction(1, 6)
    """
    numbers = list(numbers)
    scale = lcm(*(number.denominator for number in numbers))
    return Fraction(gcd(*(int(number * scale) for number in numbers)), scale)
