"""Evaluate one stage of a view: for all constants, or for those that a change touches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tidelog.analysis.key_stages import KeyStage
from tidelog.batch import BatchRun
from tidelog.compiler.compiled_program import CompiledProgram, Target
from tidelog.compiler.passes import compile_program
from tidelog.compiler.prepare_facts import to_timeline
from tidelog.corrections.difference import compare, refine_extent
from tidelog.corrections.ledger import Ledger, LedgerChange, LedgerTable
from tidelog.corrections.single_facts import SingleFacts, combines_no_facts
from tidelog.corrections.stored_extents import StoredExtents
from tidelog.corrections.time_shift import TimeShift, join_groups
from tidelog.data.dataset import Dataset
from tidelog.data.relation import refine_pairs
from tidelog.data.symbol_table import Symbols
from tidelog.engine.batch_problem import Problem
from tidelog.engine.extent import Extent
from tidelog.engine.fact_store import Rows
from tidelog.errors import TidelogError
from tidelog.goals.focused_problem import focus
from tidelog.language.queries import Query
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import TimelineName

Int64s = NDArray[np.int64]

#: Constants are evaluated apart from the others if they have at most this part of the facts.
_MOST_FACTS = 0.6


@dataclass(frozen=True)
class Scene:
    """What all stages of a view share: the assertions, the facts of the rule file, the grid and the time asked for."""

    ledger: Ledger
    fixed: Ledger
    grid: Grid
    timeline: TimelineName
    span: tuple[int, int] | None
    until: Fraction | None

    def gather(self, name: str, arity: int, position: int | None, keys: Int64s | None) -> Rows:
        """Return the facts of a predicate that stand, on the grid: all, or those with some constants at a position."""
        parts: list[Rows] = []
        for ledger in (self.ledger, self.fixed):
            table = ledger.tables.get((name, arity))
            if table is not None:
                found = table.standing() if keys is None or position is None else table.find(position, keys)
                if len(found):
                    parts.append(self._to_grid(ledger, table, found))
        return Rows.concatenate(parts, arity)

    def _to_grid(self, ledger: Ledger, table: LedgerTable, found: Int64s) -> Rows:
        lo, hi = table.lo[found], table.hi[found]
        if self.until is not None:
            ticks = self.until * ledger.denominator
            last = 2 * (ticks.numerator // ticks.denominator) + (ticks.denominator > 1)
            found, lo, hi = found[lo <= last], lo[lo <= last], hi[lo <= last]
        if self.grid.dense:
            factor = self.grid.denominator // ledger.denominator
            lo, hi = refine_pairs(lo, hi, factor) if factor > 1 else (lo, hi)
            return Rows(table.args[:, found], lo, hi)
        lo, hi = to_timeline(lo, hi, False)
        return Rows(table.args[:, found], lo, hi).where(lo <= hi)


@dataclass(frozen=True)
class StageResult:
    """New extents by query, sorted as they are stored; `keys` are the constants that they are about, None for all."""

    extents: Mapping[str, Extent]
    keys: Int64s | None
    compiled: CompiledProgram


class StageState:
    """A stage of a view, with the extents of its queries as they are now."""

    def __init__(self, plan: KeyStage) -> None:
        self.plan = plan
        self.stored: dict[str, StoredExtents] = {}
        self.compiled: CompiledProgram | None = None

    def reads(self, change: LedgerChange) -> bool:
        """Return whether a change concerns a predicate of the stage."""
        return any(name in self.plan.key for name, _ in change.changed)

    def find_keys(self, change: LedgerChange) -> Int64s | None:
        """Return the sorted constants that a change touches; None if it may concern all of them, or most."""
        found: list[NDArray[np.int32]] = []
        for (name, _), rows in change.changed.items():
            if name in self.plan.key:
                position = self.plan.key[name]
                if position is None:
                    return None
                found.append(rows.relation.args[position])
        if any(stored.is_two_sided() for stored in self.stored.values()):
            # How an atom that repeats at both ends is printed depends on all others of its component.
            return None
        return np.unique(np.concatenate(found)).astype(np.int64)

    def solve_all(self, scene: Scene) -> StageResult:
        """Compute the extents of the queries from all facts."""
        compiled = self._compile(scene)
        given = self._gather(compiled, scene, None)
        extents = self._solve(compiled, scene, given, scene.ledger.symbols)
        stored = {name: StoredExtents(compiled.arities[name], self.plan.key[name]) for name in extents}
        return StageResult({name: stored[name].sort(extent) for name, extent in extents.items()}, None, compiled)

    def solve_for(self, keys: Int64s, scene: Scene) -> StageResult | None:
        """Compute the extents of some constants from their facts; None if all should be computed instead."""
        compiled = self._compile(scene)
        given = self._gather(compiled, scene, keys)
        if not self._is_worthwhile(given, scene):
            return None
        try:
            moved = self._solve_in_own_time(compiled, scene, given, keys)
            extents = self._solve_apart(compiled, scene, given) if moved is None else moved
        except TidelogError:
            return None
        if any(extent.left and extent.right for extent in extents.values()):
            return None
        kept: dict[str, Extent] = {}
        for name, extent in extents.items():
            if self.plan.key[name] is not None:
                stored, base = self.stored[name], self.stored[name].chunks[0]
                if moved is not None and (extent.left, extent.right) == (base.left, base.right):
                    kept[name] = extent
                else:
                    kept[name] = stored.align(extent) if compiled is self.compiled else stored.sort(extent)
        return StageResult(kept, keys, compiled)

    def _solve_in_own_time(
        self, compiled: CompiledProgram, scene: Scene, given: Mapping[str, Rows], keys: Int64s
    ) -> dict[str, Extent] | None:
        """Solve a problem with the facts of each constant moved to time 0; None where that is not possible."""
        if scene.span is not None or compiled.numeric or not any(part.recursive for part in compiled.components):
            return None
        key, tick = self.plan.key, scene.grid.tick
        shift = TimeShift.of(keys, given, key, tick)
        if shift is None:
            return None
        reach = max(1, *(part.reach for part in compiled.components))
        single: SingleFacts | None = None
        if combines_no_facts(compiled, key):
            single = SingleFacts.of(given, key)
            of_facts = TimeShift.of(single.numbers, single.given, key, tick)
            if of_facts is not None and of_facts.estimate_cost(reach) < shift.estimate_cost(reach):
                shift, given = of_facts, single.given
            else:
                single = None
        found: dict[str, list[Extent]] = {name: [] for name in self.plan.queries if key[name] is not None}
        for group in shift.split(reach):
            extents = self._solve_apart(compiled, scene, group.apply(given, key))
            for name, parts in found.items():
                position = key[name]
                assert position is not None
                moved = group.undo(extents[name], position, self.stored[name].chunks[0])
                if moved is None:
                    return None
                parts.append(moved if single is None else single.restore(moved, position))
        return {name: join_groups(parts, self.stored[name].columns) for name, parts in found.items()}

    def _solve_apart(self, compiled: CompiledProgram, scene: Scene, given: Mapping[str, Rows]) -> dict[str, Extent]:
        """Solve a problem with few facts."""
        symbols = scene.ledger.symbols
        if not compiled.numeric and not any(rule.comparisons for rule in compiled.rules):
            return self._solve(compiled, scene, given, symbols)
        # Numbers and the order of constants are computed for a whole dictionary: take a small one.
        small, given = _take_symbols(symbols, given)
        extents = self._solve(compiled, scene, given, small)
        ids = symbols.merge(small)
        return {
            name: Extent(Rows(ids[e.rows.args], e.rows.lo, e.rows.hi), e.left, e.right) for name, e in extents.items()
        }

    def compare(self, result: StageResult, factor: int) -> Iterator[tuple[str, Extent, Extent]]:
        """Yield, by query, extents that became true and that became false; the grid is `factor` times as fine."""
        for name, extent in result.extents.items():
            stored = self.stored[name]
            for old, new in stored.pair(extent, result.keys):
                yield name, *compare(refine_extent(old, factor), new, stored.columns)

    def commit(self, result: StageResult) -> None:
        """Keep a result as what holds now."""
        self.compiled = result.compiled
        for name, extent in result.extents.items():
            if name not in self.stored:
                self.stored[name] = StoredExtents(len(extent.rows.args), self.plan.key[name])
            if result.keys is None:
                self.stored[name].replace_all(extent)
            else:
                self.stored[name].replace(result.keys, extent)

    def refine(self, factor: int) -> None:
        """Move to a finer grid."""
        if factor > 1:
            for stored in self.stored.values():
                stored.refine(factor)

    def _compile(self, scene: Scene) -> CompiledProgram:
        if self.compiled is not None and self.compiled.grid == scene.grid:
            return self.compiled
        names = self.plan.key
        arities = {name: n for ledger in (scene.fixed, scene.ledger) for name, n in ledger.tables if name in names}
        target = Target("batch", self.plan.queries, scene.timeline, scene.grid.denominator, arities)
        return compile_program(self.plan.program, target)

    def _gather(self, compiled: CompiledProgram, scene: Scene, keys: Int64s | None) -> dict[str, Rows]:
        arities = compiled.arities
        return {
            name: scene.gather(name, arities[name], position, keys)
            for name, position in self.plan.key.items()
            if name in arities
        }

    def _is_endless(self) -> bool:
        """Return whether something repeats for ever now, and may do so again."""
        return any(chunk.left or chunk.right for stored in self.stored.values() for chunk in stored.chunks)

    def _is_worthwhile(self, given: Mapping[str, Rows], scene: Scene) -> bool:
        """Return whether facts of some constants are few enough that evaluating them alone saves time."""
        hashed = [(name, len(rows.args)) for name, rows in given.items() if self.plan.key[name] is not None]
        tables = [ledger.tables.get(key) for key in hashed for ledger in (scene.ledger, scene.fixed)]
        total = sum(table.stands for table in tables if table is not None)
        return sum(len(given[name]) for name, _ in hashed) <= _MOST_FACTS * total

    def _solve(
        self, compiled: CompiledProgram, scene: Scene, given: Mapping[str, Rows], symbols: Symbols
    ) -> dict[str, Extent]:
        whole = Problem(compiled, given, symbols, endless=self._is_endless() and any(map(len, given.values())))
        problem = whole if scene.span is None else focus(whole, [Query(name) for name in self.plan.queries], scene.span)
        extents: dict[str, Extent] | None = None
        if problem is not whole:
            # As in `materialise`, a problem with only what the range needs may fail where the whole does not.
            with suppress(TidelogError):
                extents = BatchRun(Dataset(symbols), problem, scene.span).solve(stops=scene.until is not None)
        if extents is None or (problem is not whole and any(e.left and e.right for e in extents.values())):
            extents = BatchRun(Dataset(symbols), whole, scene.span).solve(stops=scene.until is not None)
        answers = {name: extents[name] for name in self.plan.queries}
        return answers if scene.span is None else {name: e.within(*scene.span) for name, e in answers.items()}


def _take_symbols(symbols: Symbols, given: Mapping[str, Rows]) -> tuple[Symbols, dict[str, Rows]]:
    """Return a dictionary with the constants of some facts only, and the facts with their ids there."""
    used = [rows.args.ravel() for rows in given.values()]
    ids = np.unique(np.concatenate([np.empty(0, np.int32), *used]))
    small = Symbols()
    small.intern_encoded(*symbols.texts_of(ids))
    moved = {
        name: Rows(np.searchsorted(ids, rows.args).astype(np.int32), rows.lo, rows.hi) for name, rows in given.items()
    }
    return small, moved
