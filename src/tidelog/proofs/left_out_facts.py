"""What an explanation of why a fact does not hold needs besides the facts that it looks at condition by condition.

A model that is focused on one fact leaves out most others. For which other constants a condition would hold, and which
constants facts mention, is looked up in all facts: within the times that the condition needs, and in the columns of the
given facts. Where an explanation depends on more, such as on where in time the facts of the whole model end, it raises
`NeedsAllFacts`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from tidelog.batch import BatchRun, prepare_run, solve_run
from tidelog.engine.extent import Extent
from tidelog.engine.fact_store import Rows
from tidelog.language.program import Program
from tidelog.language.queries import Query
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Constant
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import TimelineName
from tidelog.timeline.time_sets import Pair

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset


class NeedsAllFacts(Exception):
    """The explanation depends on the whole model."""


class LeftOutFacts:
    """Finds facts of some predicates that a focused model leaves out."""

    def __init__(
        self, program: Program, data: Dataset, timeline: TimelineName | None, run: BatchRun, names: Iterable[str]
    ) -> None:
        assert run.whole is not None, "a run with everything leaves nothing out"
        self.program, self.data, self._timeline = program, data, timeline
        self.grid: Grid = run.compiled.grid
        self._symbols = run.data.symbols
        self._given = {name: run.whole.given[name] for name in names if name in run.whole.given}
        self._derived = {rule.predicate for rule in run.whole.compiled.rules}
        self._known: dict[tuple[str, Pair], Rows] = {}

    def find_given_range(self) -> Pair:
        """Return a range in which facts of the whole model begin and end, whatever rules derive."""
        times = [0]
        for name, rows in self._given.items():
            # Facts without an end, and what rules derive, may swallow the ends of others.
            if name not in self._derived and len(rows) and rows.lo.min() > NEG_INF and rows.hi.max() < POS_INF:
                times += [int(rows.lo.min()), int(rows.hi.max())]
        return min(times), max(times)

    def find_rows(self, predicate: str, window: Pair) -> Rows:
        """Return the facts of a predicate in a window of time."""
        key = predicate, window
        if key not in self._known:
            span = self.grid.to_interval(*window)
            _, extent = solve_run(
                lambda finer: prepare_run(
                    self.program,
                    self.data,
                    (predicate,),
                    timeline=self._timeline,
                    span=span,
                    goals=(Query(predicate),),
                    denominator=lcm(finer, self.grid.denominator),
                ),
                lambda run: self._solve(run, predicate),
            )
            self._known[key] = extent.over(*window)
        return self._known[key]

    def _solve(self, run: BatchRun, predicate: str) -> Extent:
        if run.compiled.grid != self.grid:
            raise NeedsAllFacts
        extent = run.solve()[predicate]
        return extent if run.span is None else extent.within(*run.span)

    def mentions(self, constant: int) -> bool:
        """Return whether a given fact mentions a constant; raise `NeedsAllFacts` where a derived one may."""
        if any(bool((column == constant).any()) for rows in self._given.values() for column in rows.args):
            return True
        if self._symbols.value(constant) in self._find_head_constants():
            raise NeedsAllFacts
        return False

    def collect_constants(self) -> list[int]:
        """Return all constants that facts mention, in order; raise `NeedsAllFacts` where rules may add others."""
        seen = np.zeros(len(self._symbols), bool)
        for rows in self._given.values():
            for column in rows.args:
                seen[column] = True
        known = np.flatnonzero(seen).tolist()
        if self._find_head_constants() - set(map(self._symbols.value, known)):
            raise NeedsAllFacts
        return known

    def _find_head_constants(self) -> set[object]:
        heads = (head_atom(rule) for rule in self.program.rules)
        return {term.value for head in heads if head is not None for term in head.args if isinstance(term, Constant)}
