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
from tidelog.proofs.clauses import Clause, compiled, leaves
from tidelog.proofs.evaluation import Ground
from tidelog.proofs.facts import Ids, Table
from tidelog.proofs.instances import Model
from tidelog.proofs.sets import Pair, Times, difference
from tidelog.proofs.wording import Wording
from tidelog.reasoning import prepared, refuse_violations, undecided
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, Grid
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
    #: Whether something comes again and again for ever, so that the model beyond the core cannot be written down.
    repeating: bool

    def given(self, predicate: str, ids: Ids) -> Times:
        """When an atom is given."""
        table = self.facts.get(predicate)
        return table.times(ids) if table else []

    def missing(self, atom: Ground, pair: Pair) -> Times:
        """The part of a stretch in which an atom does not hold."""
        extent = self.extents.get(atom[0])
        if extent is None or not difference([pair], [self.core]):
            return difference([pair], self.model.times(*atom))
        lo, hi = pair
        # What holds throughout a period of a tail holds for ever, so longer questions are questions about all time.
        if extent.right and hi - max(lo, extent.right.at) >= extent.right.every:
            hi = POS_INF
        if extent.left and min(hi, extent.left.at) - lo >= extent.left.every:
            lo = NEG_INF
        return difference([pair], Table(extent.within(lo, hi).rows).times(atom[1]))


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
    seen = core[0] - 2 * before - reach, core[1] + 2 * after + reach
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
        any(extent.left or extent.right for extent in extents.values()),
    )


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
