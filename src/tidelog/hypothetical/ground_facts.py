"""The data types of facts inside a session: plain tuples whose whole numbers are `int`."""

from __future__ import annotations

from fractions import Fraction

from tidelog.language.syntax import Value

#: A constant as Python and JSON have it: a whole number is an `int`, which equals the fraction and is faster.
Scalar = Value | int
#: The arguments of a fact, all of them known.
GroundArgs = tuple[Scalar, ...]
#: A fact: its predicate, its arguments without the time, and its time (0 for rigid facts).
GroundFact = tuple[str, GroundArgs, int]
#: A fact that has not arrived. None stands for an argument or a time that is still open.
AwaitedFact = tuple[str, tuple[Scalar | None, ...], int | None]


def to_scalar(value: Value) -> Scalar:
    """Convert a constant of the language; whole numbers become `int`."""
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def to_value(scalar: Scalar) -> Value:
    """Convert a scalar back into a constant of the language."""
    return Fraction(scalar) if isinstance(scalar, int) else scalar
