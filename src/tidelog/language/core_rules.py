"""The core form of rules with numbers: ordinary rules over hidden predicates, calculations and aggregations.

`desugar` translates programs to it. Data only. A program without numbers is its own core form.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.language.syntax import AggregateFunction, Atom, Constant, Expression, Rule, Variable
from tidelog.timeline.interval import Interval

#: An operation with two operands: the first or, where it is undefined, the second.
OR_ELSE = "or else"


@dataclass(frozen=True, slots=True)
class Assign:
    """A step of a calculation: the variable gets the value of the expression."""

    variable: Variable
    expression: Expression


@dataclass(frozen=True, slots=True)
class Test:
    """A step of a calculation: the row goes on only where the comparison or test of text holds."""

    #: This is no test case, whatever its name suggests to pytest.
    __test__ = False

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Calculation:
    """Each row of `input` for which all steps succeed gives a row of `head`, at the same times.

    `origin` is the number of the user's rule.
    """

    head: Atom
    input: Atom
    steps: tuple[Assign | Test, ...]
    origin: int


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The rows of `input`, grouped by the columns `group`, give the rows of `head`: a group and its value.

    The arguments of the head are, in the order of `output`, the group and then the value, if there is one.

    Without a function, the head holds where a group has a row (or, with a range, an occurrence in the window). With
    `compared`, an operator and a constant or variable, the head has no value: it holds where the comparison does. A
    variable is then one of the group.
    """

    head: Atom
    input: Atom
    function: AggregateFunction | None
    group: tuple[int, ...]
    values: tuple[int, ...]
    range: Interval | None
    distinct: bool
    compared: tuple[str, Constant | Variable] | None
    output: tuple[int, ...]
    origin: int

    def __hash__(self) -> int:
        # Aggregations are keys of dictionaries in every step of a stream.
        return hash((self.head.predicate, self.input.predicate, self.origin))


def compares_with_value(step: Aggregation) -> bool:
    """Return whether an aggregation compares a duration with a value from the data."""
    return step.compared is not None and isinstance(step.compared[1], Variable)


@dataclass(frozen=True, slots=True)
class CoreProgram:
    """Rules with the numbers of the user's rules that they come from, and the numeric steps between them."""

    rules: tuple[Rule, ...]
    origins: tuple[int, ...]
    calculations: tuple[Calculation, ...] = ()
    aggregations: tuple[Aggregation, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether there are calculations or aggregations."""
        return bool(self.calculations or self.aggregations)
