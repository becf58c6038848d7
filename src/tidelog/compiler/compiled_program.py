"""A compiled program, and the run that it is compiled for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from tidelog.compiler.flat_rules import FlatRule, Op
from tidelog.language.core_rules import Aggregation, Calculation
from tidelog.language.hidden_predicates import is_violation
from tidelog.language.program import Program
from tidelog.language.syntax import Rule
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from tidelog.compiler.late_rows import LateRows

#: The engines: everything that holds for all time, a standing query over a stream, stable models.
EngineName = Literal["batch", "stream", "stable"]

#: How a stream keeps facts: as many as arrive, or a number that does not depend on the density of the stream.
Memory = Literal["generic", "bounded"]


@dataclass(frozen=True)
class Target:
    """The run that a program is compiled for.

    `denominator` is the common denominator of all times in the data and the question; `arities` are the predicates of
    data and question. `rules` replaces the program's rules where some of them follow from others and can be left out.
    `standing` says whether facts of a stream may stand (see `standing_facts`).
    """

    engine: EngineName
    queries: tuple[str, ...] = ()
    timeline: TimelineName | None = None
    denominator: int = 1
    arities: Mapping[str, int] = field(default_factory=dict)
    bounded_memory: bool = False
    rules: tuple[Rule, ...] | None = None
    standing: bool = True


@dataclass(frozen=True, slots=True)
class RuleComponent:
    """A component of the predicate graph with its rules, the predicates below that they read, and how far they reach.

    `reach` is the largest distance between the head and the body of a rule, leaving infinite ranges out. A recursion
    through time has `parts`, in the order in which they are evaluated at one time: everything that they read of each
    other against that order lies at least `slice` back.
    """

    predicates: tuple[str, ...]
    recursive: bool
    rules: tuple[FlatRule, ...]
    inputs: tuple[str, ...]
    reach: int
    calculations: tuple[Calculation, ...] = ()
    aggregations: tuple[Aggregation, ...] = ()
    slice: int = 0
    parts: tuple[RuleComponent, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """What one component evaluates once the times before are complete: rules for the agenda, by position, and
    aggregations."""

    rules: tuple[int, ...]
    aggregations: tuple[Aggregation, ...]


@dataclass(frozen=True, slots=True)
class StreamBounds:
    """Grid distances by predicate: how long its facts stay incomplete, and how long they are kept.

    `waits` is how long each rule that the agenda evaluates waits, by its position among the rules: those with negation,
    and those of or over the predicates in `standing`, whose facts hold until something changes.
    """

    delay: Mapping[str, int]
    retention: Mapping[str, int]
    waits: Mapping[int, int]
    standing: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class CompiledProgram:
    """A program as engines take it. Each pass fills in its part; `str` prints it, one rule per line.

    It is equal to nothing but itself, so that what follows from it can be kept by it.
    """

    source: Program
    target: Target
    grid: Grid = field(default_factory=lambda: Grid(dense=True))
    rules: tuple[FlatRule, ...] = ()
    calculations: tuple[Calculation, ...] = ()
    aggregations: tuple[Aggregation, ...] = ()
    arities: Mapping[str, int] = field(default_factory=dict)
    components: tuple[RuleComponent, ...] = ()
    bounds: StreamBounds = field(default_factory=lambda: StreamBounds({}, {}, {}))

    def __str__(self) -> str:
        from tidelog.compiler.plan_text import format_rules

        return format_rules(self)

    @property
    def query(self) -> str:
        """The predicate that a standing query is about."""
        return self.target.queries[0]

    @property
    def names(self) -> tuple[str, ...]:
        """All predicates; the engine knows a predicate by its position here."""
        return tuple(self.arities)

    @cached_property
    def recursive(self) -> frozenset[str]:
        """The predicates that depend on themselves."""
        return frozenset(name for part in self.components if part.recursive for name in part.predicates)

    @cached_property
    def waiting(self) -> tuple[WaitingGroup, ...]:
        """The rules for the agenda (with negation, or about facts that stand) and the aggregations, lowest first."""
        position = {id(rule): number for number, rule in enumerate(self.rules)}
        groups = []
        for part in (part for component in self.components for part in (component.parts or (component,))):
            rules = (position[id(rule)] for rule in part.rules)
            group = tuple(number for number in rules if number in self.bounds.waits)
            if group or part.aggregations:
                groups.append(WaitingGroup(group, part.aggregations))
        return tuple(groups)

    @property
    def slice(self) -> int:
        """How far at most evaluation may go forward at once, because of a recursion through time; 0 without one."""
        return min((component.slice for component in self.components if component.slice), default=0)

    @property
    def steps(self) -> tuple[Calculation | Aggregation, ...]:
        """The calculations and aggregations."""
        found: list[Calculation | Aggregation] = [*self.calculations, *self.aggregations]
        return tuple(found)

    @cached_property
    def numeric_edges(self) -> tuple[tuple[str, str], ...]:
        """The predicates that calculations and aggregations derive, each with the one that it is derived from."""
        return tuple((step.head.predicate, step.input.predicate) for step in self.steps)

    @cached_property
    def late_rows(self) -> Mapping[Aggregation, LateRows]:
        """The aggregations whose rows may become known late."""
        from tidelog.compiler.late_rows import find_late_rows

        return find_late_rows(self.rules, self.calculations, self.aggregations)

    @property
    def numeric(self) -> bool:
        """Whether there are calculations or aggregations."""
        return bool(self.calculations or self.aggregations)

    @cached_property
    def persisting(self) -> frozenset[str]:
        """The predicates that depend on a negation or an aggregate.

        Their facts grow with the frontier while nothing changes.
        """
        found = {self.rules[position].predicate for group in self.waiting for position in group.rules}
        found |= {aggregation.head.predicate for aggregation in self.aggregations}
        edges = [*((r.predicate, b.predicate) for r in self.rules for b in r.body), *self.numeric_edges]
        while more := {head for head, below in edges if below in found} - found:
            found |= more
        return frozenset(found)

    @property
    def longest_wait(self) -> int:
        """How far ahead of a position, on the grid, the query and the constraints have to know to be complete there."""
        return max(delay for name, delay in self.bounds.delay.items() if name == self.query or is_violation(name))

    @cached_property
    def transient(self) -> tuple[str, ...]:
        """The predicates that pass through: each fact drives its rules when it arrives, and no rule looks it up.

        On every cycle of a recursion one predicate is kept: otherwise facts that are not new would go round for ever.
        """
        kept = {self.query, *(name for name in self.arities if is_violation(name))}
        kept |= {name for edge in self.numeric_edges for name in edge}
        for place, rule in enumerate(self.rules):
            for literal in rule.body:
                if (
                    place in self.bounds.waits
                    or len(rule.body) > 1
                    or literal.negated
                    or literal.op not in (Op.HOLDS, Op.DIAMOND)
                ):
                    kept.add(literal.predicate)
        kept |= self._cycles(set(self.recursive) - kept)
        return tuple(name for name in self.arities if name not in kept)

    def _cycles(self, among: set[str]) -> set[str]:
        """Return the predicates on cycles within a set, or between two of them."""
        edges = {(b.predicate, r.predicate) for r in self.rules for b in r.body}
        while True:
            edges = {(one, other) for one, other in edges if one in among and other in among}
            inner = {one for one, _ in edges} & {other for _, other in edges}
            if inner == among:
                return among
            among = inner
