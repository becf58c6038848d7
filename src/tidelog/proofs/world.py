"""The model that proofs speak of: what holds, what is given, and the rules, all on one grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from tidelog.analysis.components import components, needed
from tidelog.engine.extent import Extent, Tail
from tidelog.engine.fixpoint import Unsettled, solve
from tidelog.language.program import Program
from tidelog.language.safety import rule_atoms
from tidelog.proofs.clauses import Clause, Leaf, Part, Reading, Some, added_to, compiled, leaves, names
from tidelog.proofs.evaluation import Ground, ground
from tidelog.proofs.facts import Ids, Table
from tidelog.proofs.instances import Model, matched
from tidelog.proofs.sets import Pair, Times, difference, within
from tidelog.proofs.wording import CLOCK, Wording, is_hidden
from tidelog.reasoning import prepared, refuse_violations, undecided
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, Grid, negated
from tidelog.timeline.interval import Interval

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset

#: How far beyond the last change of a model proofs go step by step, in multiples of the rules' reach.
MARGIN = 4


@dataclass(frozen=True)
class World:
    """Extents of all predicates that matter, and the model in the `core`: the stretch of time in which proofs go step
    by step. Before the first of the `changes` and after the last one everything repeats."""

    grid: Grid
    wording: Wording
    extents: Mapping[str, Extent]
    model: Model
    facts: Mapping[str, Table]
    clauses: Mapping[str, Sequence[Clause]]
    #: The predicates of recursive components, each with those of its component.
    recursive: Mapping[str, frozenset[str]]
    changes: Pair
    core: Pair
    #: How far from the core such proofs may go to find what they rest on.
    reachable: Pair
    #: Whether something comes again and again for ever, so that the model beyond the core cannot be written down.
    repeating: bool
    #: After which time everything comes again, before the first of the changes and after the last.
    periods: Pair
    #: Whether the rules are temporal Datalog.
    temporal: bool

    def given(self, predicate: str, ids: Ids) -> Times:
        """When an atom is given."""
        table = self.facts.get(predicate)
        return table.times(ids) if table else []

    def missing(self, atom: Ground, pair: Pair) -> Times:
        """The part of a stretch in which an atom does not hold."""
        return difference([pair], self.holding(atom, pair))

    def holding(self, atom: Ground, pair: Pair) -> Times:
        """The part of a stretch in which an atom holds."""
        extent = self.extents.get(atom[0])
        if extent is None or not difference([pair], [self.core]):
            return within(self.model.times(*atom), pair)
        lo, hi = pair
        # What holds throughout a period of a tail holds for ever, so longer questions are questions about all time.
        if extent.right and hi - max(lo, extent.right.at) >= extent.right.every:
            hi = POS_INF
        if extent.left and min(hi, extent.left.at) - lo >= extent.left.every:
            lo = NEG_INF
        return within(Table(extent.within(lo, hi).rows).times(atom[1]), pair)

    def near(self, moment: Pair) -> Pair:
        """A moment of the core at which the same holds: outside of it everything repeats."""
        before, after = self.periods
        (at, _), (first, last) = moment, self.changes
        if at > self.core[1]:
            at = last + 1 + (at - last - 1) % after
        elif at < self.core[0]:
            at = first - 1 - (first - 1 - at) % before
        return at, at


def world_of(
    program: Program, data: Dataset, query: Sequence[str] | None, timeline: str | None, denominator: int
) -> World:
    """The world of a program and its data; with a query, of what its predicates depend on. Its times are multiples of
    `1/denominator`, or finer."""
    fine = Interval.point(Fraction(1, denominator)) if denominator > 1 else None
    setting = prepared(program, data, _names(program, data, query), timeline, fine)
    try:
        extents = solve(setting.problem)
    except Unsettled as unsettled:
        raise undecided(unsettled) from None
    refuse_violations(setting, extents)
    grid, symbols = setting.grid, setting.data.symbols
    found = [compiled(number, rule, grid, symbols.intern) for number, rule in enumerate(program.rules)]
    clauses: dict[str, list[Clause]] = {}
    for clause in found:
        if clause is not None:
            clauses.setdefault(clause.head.predicate, []).append(clause)
    changes = _changes(extents)
    reach = max((_reach(clause, grid.dense) for clause in found if clause is not None), default=0) + grid.tick
    before, after = (_common(extent.left for extent in extents.values()), _common(e.right for e in extents.values()))
    core = changes[0] - 2 * before - MARGIN * reach, changes[1] + 2 * after + MARGIN * reach
    reachable = core[0] - before - 4 * MARGIN * reach, core[1] + after + 4 * MARGIN * reach
    seen = reachable[0] - 2 * before - reach, reachable[1] + 2 * after + reach
    wording = Wording(grid, symbols)
    return World(
        grid,
        wording,
        extents,
        Model({name: Table(extent.over(*seen)) for name, extent in extents.items()}, wording.value, grid.dense),
        {name: Table(rows) for name, rows in setting.problem.given.items()},
        clauses,
        {
            name: frozenset(component.predicates)
            for component in components(program.rules)
            if component.recursive
            for name in component.predicates
        },
        changes,
        core,
        reachable,
        any(extent.left or extent.right for extent in extents.values()),
        (before or grid.tick, after or grid.tick),
        program.temporal is not None,
    )


def seen_through(world: World, part: Part, binding: dict[str, int], when: Pair) -> tuple[Ground, Pair] | None:
    """The atom that a literal is about, if it is about one at some time of a window, and that window.

    An auxiliary atom of temporal Datalog about one atom at one time is looked through.
    """
    reading = part.reading
    if isinstance(reading, Some):
        when, reading = added_to(when, negated(reading.by), world.grid.dense), reading.arg
    if not isinstance(reading, Leaf) or any(name not in binding for name in names(reading)):
        return None
    atom = ground(reading, binding)
    for clause in world.clauses.get(atom[0], ()) if is_hidden(atom[0]) else ():
        inner = matched(clause.head, atom[1], {})
        plain = [part for part in clause.positive if not is_clock(part.reading)]
        clocks = [part.reading for part in clause.positive if is_clock(part.reading)]
        if inner is None or len(plain) != 1 or clause.negative:
            return None
        for clock in clocks:
            assert isinstance(clock, Leaf)
            number = world.wording.value(ground(clock, inner)[1][0])
            assert isinstance(number, Fraction)
            when = int(number), int(number)
        return seen_through(world, plain[0], inner, when)
    return atom, when


def is_clock(reading: Reading) -> bool:
    return isinstance(reading, Leaf) and reading.predicate == CLOCK


def absence(world: World, part: Part, binding: dict[str, int], when: Pair) -> tuple[str, Interval]:
    """What does not hold if a negated literal does, and throughout which time."""
    seen = seen_through(world, part, binding, when)
    if seen is None:
        return f"not {world.wording.formula(part.literal.formula, binding)}", world.grid.interval(*when)
    return f"no {world.wording.atom(seen[0])}", world.grid.interval(*seen[1])


def _names(program: Program, data: Dataset, query: Sequence[str] | None) -> tuple[str, ...]:
    """The predicates that proofs may speak of."""
    rules = program.rules
    if query is not None:
        rules = tuple(rules[number] for number in needed(rules, query))
    used = {atom.predicate for rule in rules for atom in rule_atoms(rule)}
    if query is None:
        used |= {name for name, _ in data.relations} | {fact.predicate for fact in program.facts}
    return tuple(sorted(used.union(query or ())))


def _common(tails: Iterable[Tail | None]) -> int:
    """A common period of tails; 0 where nothing repeats. One that is out of proportion is left out."""
    periods = [tail.every for tail in tails if tail]
    if not periods:
        return 0
    common = lcm(*periods)
    return common if common <= 64 * max(periods) else max(periods)


def _changes(extents: Mapping[str, Extent]) -> Pair:
    """The first and the last time at which something changes, or from which on it repeats."""
    found = [0]
    for extent in extents.values():
        for ends in (extent.rows.lo, extent.rows.hi):
            finite = ends[(ends > NEG_INF) & (ends < POS_INF)]
            found += [int(finite.min()), int(finite.max())] if len(finite) else []
    return min(found), max(found)


def _reach(clause: Clause, dense: bool) -> int:
    """How far apart a rule's head and the facts that it reads can be, leaving infinite ranges out."""
    windows = [
        window for part in clause.positive + clause.negative for _, window in leaves(part.reading, (0, 0), dense)
    ]
    finite = [abs(end) for window in (*windows, clause.shift) for end in window if abs(end) < LIMIT]
    return 2 * max(finite, default=0)
