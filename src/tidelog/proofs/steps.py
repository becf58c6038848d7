"""One step of a proof: a fact, and the rule and the facts that it follows from, or that it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tidelog.language.syntax import Fact, Rule, Value
from tidelog.timeline.interval import Interval


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a rule's body that holds throughout `when`, and the facts that make it hold.

    `kind` is `fact` (one atom), `operator` (a formula over facts), `absent` (a negated formula) or `comparison`.
    """

    kind: str
    text: str
    when: Interval
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """Why a fact holds throughout its interval.

    `kind` is one of
    `given` (it is in the data, in the file `source` if that is known),
    `derived` (by `rule` under `binding`, applied throughout `when`, from `conditions`),
    `pieces` (its interval falls into `parts`, each with a step of its own),
    `repeats` (far from the data: it holds as `parts` do, since what holds beyond `anchor` comes again every `every`;
    where that is None, nothing changes out there),
    `continues` (derived, but from more facts than can be shown: a very long chain, or facts without end).
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
