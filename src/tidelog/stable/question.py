"""A question about the stable models of a problem, as both solvers take it."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.compiler.flat_rules import Pair
from tidelog.stable.grounding import GroundAtom


@dataclass(frozen=True, slots=True)
class Question:
    """Restricts the models to those in which an atom holds throughout an interval.

    With `fails`, restricts them to those in which the atom fails somewhere in the interval.
    """

    atom: GroundAtom
    interval: Pair
    fails: bool
