"""One step of a proof: a fact with the rule and the facts that it follows from, or the note that it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tidelog.language.syntax import Aggregate, Fact, Rule, Value
from tidelog.timeline.interval import Interval


@dataclass(frozen=True, slots=True)
class CountedRow:
    """A row that an aggregate takes into account: its local variables, the times at which it holds, and its facts.

    The text is empty where the row is one fact.
    """

    text: str
    binding: Mapping[str, Value]
    when: Interval
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class AggregateValue:
    """An aggregate for one group: its least and greatest value in some times (None for no value), and its rows.

    `rows` are those that count at some of these times, but for the `hidden` ones, which are too many. Of `last` and
    `first` they are the rows that give the value, of a duration those that hold within the window.
    """

    aggregate: Aggregate
    binding: Mapping[str, Value]
    least: Value | None
    greatest: Value | None
    rows: tuple[CountedRow, ...] = ()
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in the body of a rule that holds throughout `when`, and the facts that make it hold.

    `kind` is `fact` (one atom), `operator` (a formula over facts), `absent` (a negated formula), `comparison`,
    `computed` (an assignment or test with computed values) or `aggregate` (with its `value`).
    """

    kind: str
    text: str
    when: Interval
    facts: tuple[Fact, ...] = ()
    value: AggregateValue | None = None


@dataclass(frozen=True, slots=True)
class ProofStep:
    """Why a fact holds throughout its interval.

    `kind` is one of

    - `given`: the fact is in the data, in the file `source` if that is known.
    - `derived`: it follows by `rule` under `binding`, applied throughout `when`, from `conditions`.
    - `pieces`: its interval falls into `parts`, each with a step of its own.
    - `repeats`: it is far from the data and holds because `parts` do. Beyond `anchor` everything repeats every
      `every`, or does not change at all if that is None.
    - `continues`: it is derived, but from more facts than can be shown: a very long chain, or infinitely many facts.
    """

    fact: Fact
    kind: str
    rule: Rule | None = None
    binding: Mapping[str, Value] = field(default_factory=dict)
    when: Interval | None = None
    conditions: tuple[Condition, ...] = ()
    parts: tuple[Fact, ...] = ()
    source: str | None = None
    every: Fraction | None = None
    anchor: Fraction | None = None

    @property
    def premises(self) -> tuple[Fact, ...]:
        """The facts that this step rests on, each once."""
        facts = (fact for condition in self.conditions for fact in condition.facts)
        return tuple(dict.fromkeys((*self.parts, *facts)))

    @property
    def line(self) -> int | None:
        """The line of the rule in its file."""
        return self.rule.place.line if self.rule is not None and self.rule.place is not None else None
