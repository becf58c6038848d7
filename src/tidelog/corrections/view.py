"""A model that is kept up to date while assertions are inserted and deleted.

An update counts insertions and deletions in the ledger. What can be evaluated for the constants that it touches alone
(`analysis.key_stages`) is evaluated for them: their facts, old and new, are gathered and solved as a small batch
problem. That is exact for negation, aggregates, look-ahead and what repeats for ever, since it is the same engine.
Everything else is computed from scratch. In both cases the change is the exact difference of the extents before and
after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from tidelog.analysis.key_stages import plan_stages, plan_whole
from tidelog.batch import choose_queries, parse_span
from tidelog.compiler.choose_grid import find_grid
from tidelog.compiler.prepare_facts import InputFormat, needed_denominator, read_time_arguments
from tidelog.compiler.validate import choose_timeline
from tidelog.corrections.ledger import Ledger, LedgerChange
from tidelog.corrections.stage_evaluation import Scene, StageResult, StageState
from tidelog.data.data_frames import ArrowStream, SchemaLike, to_dataset, to_schema
from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, Inconsistent, TidelogError
from tidelog.language.calendar_predicates import require_no_calendar
from tidelog.language.program import Program, require_program
from tidelog.language.syntax import Fact
from tidelog.language.time_like import TimeLike, to_finite_time
from tidelog.model import Model
from tidelog.numeric.refinement import FinerGridNeeded
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import INF, TimelineName

if TYPE_CHECKING:
    from tidelog.engine.extent import Extent

#: What can be inserted and deleted: a dataset, dataframes by predicate, fact text, or facts as texts and objects.
Facts = Dataset | Mapping[str, ArrowStream] | str | Iterable[str | Fact]

Results = dict[StageState, StageResult]


@dataclass(frozen=True)
class Change:
    """The effect of an update: the intervals on which atoms became true (`added`) or false (`removed`).

    `recomputed` says whether something was computed from scratch. `unmatched` are all deletions that wait for their
    insertion after the update.
    """

    added: Model
    removed: Model
    recomputed: bool
    unmatched: Dataset

    def __bool__(self) -> bool:
        """Return whether the truth of anything has changed."""
        return any(len(model) or model.repeats for model in (self.added, self.removed))

    def __str__(self) -> str:
        """Print what became false with `-` before it, then what became true with `+`."""
        parts = (("-", self.removed), ("+", self.added))
        return "".join(f"{sign}{line}\n" for sign, model in parts for line in str(model).splitlines())


class View:
    """All facts that hold, as in `materialise`, kept up to date while facts are inserted and deleted.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] High(X).")
    >>> view = tl.View(program, tl.Dataset.parse("High(t1)@3"))
    >>> print(view.update(insert=["High(t1)@7"], delete=["High(t1)@3"]), end="")
    -Hot(t1)@[3,7)
    +Hot(t1)@(8,12]
    >>> print(view.model(), end="")
    Hot(t1)@[7,12]
    """

    def __init__(
        self,
        program: Program,
        data: Facts,
        *,
        query: str | Iterable[str] | None = None,
        between: tuple[TimeLike, TimeLike] | None = None,
        until: TimeLike | None = None,
        timeline: TimelineName | None = None,
        schema: SchemaLike | None = None,
    ) -> None:
        require_program(program)
        require_no_calendar(program.rules, "`tl.View`")
        self._program = program
        self._schema = to_schema(schema)
        self._until: Fraction | None = None
        if until is not None:
            if between is not None:
                raise TidelogError(Diagnostic("TL305", "give either a range of time or its end"))
            self._until, between = to_finite_time(until), (-INF, until)
        self._span = parse_span(between)
        self._format = InputFormat.of(program, choose_timeline(program, timeline), "batch")
        first = self._read(data)
        self._names = choose_queries(program, first, query)
        self._ledger = Ledger(first.symbols)
        #: The facts in the rule file, which stand whatever is deleted.
        self._fixed = Ledger(first.symbols)
        self._fixed.apply(read_time_arguments(program, Dataset.from_facts(program.facts)))
        self._format.check(self._with_known_relations(first))
        self._ledger.apply(first)
        self._ledger.add_tables(first.relations)
        self._grid = Grid(self._format.timeline == "rational")
        self._grid = self._find_grid([first, self._fixed.standing()])
        rules = replace(program, facts=())
        self._whole = plan_whole(rules, self._names)
        self._stages = [StageState(plan) for plan in plan_stages(rules, self._names)]
        self._grid, results = self._evaluate_on_grid(self._grid, lambda grid: self._recompute(self._stages, grid))
        for stage, result in results.items():
            stage.commit(result)

    def update(self, insert: Facts | None = None, delete: Facts | None = None) -> Change:
        """Insert and delete facts, all at once, and return the exact change of what holds.

        A deletion takes back one insertion of the identical atom and interval; without one, it waits for it. If a
        constraint would be violated, or the facts do not fit the rules, an error is raised and nothing changes.
        """
        parts = [None if facts is None else self._read(facts) for facts in (insert, delete)]
        given = [data for data in parts if data is not None]
        for data in given:
            self._format.check(self._with_known_relations(data))
        change = self._ledger.apply(*parts)
        try:
            grid, results = self._evaluate_on_grid(self._find_grid(given), lambda grid: self._evaluate(change, grid))
            extents = self._compare(results, grid)
        except BaseException:
            self._ledger.undo(change)
            raise
        factor = grid.denominator // self._grid.denominator
        self._grid = grid
        for stage in self._stages:
            stage.refine(factor)
            if stage in results:
                stage.commit(results[stage])
        added, removed = (self._build_model(part) for part in extents)
        recomputed = any(result.keys is None for result in results.values())
        return Change(added, removed, recomputed, self._ledger.unmatched())

    def model(self) -> Model:
        """Return everything that holds now: the same as `materialise` over the assertions that stand."""
        return self._build_model({name: stored.live() for s in self._stages for name, stored in s.stored.items()})

    @property
    def assertions(self) -> Dataset:
        """The facts that were inserted and not deleted, each once, as they were written."""
        return self._ledger.standing()

    @property
    def unmatched(self) -> Dataset:
        """The deletions that wait for their insertion."""
        return self._ledger.unmatched()

    def __repr__(self) -> str:
        return f"<View of {', '.join(self._names)} over {len(self._ledger)} assertions>"

    def _read(self, facts: Facts) -> Dataset:
        """Read facts as the program has them."""
        if isinstance(facts, str):
            facts = Dataset.parse(facts)
        if isinstance(facts, Dataset | Mapping):
            data = to_dataset(facts, self._schema)
        else:
            data = Dataset.from_facts(facts)
        return read_time_arguments(self._program, data)

    def _with_known_relations(self, data: Dataset) -> Dataset:
        """Return data to check: a predicate keeps its number of arguments as long as the view lives."""
        known = [key for ledger in (self._fixed, self._ledger) for key in ledger.tables]
        if all(key in data.relations for key in known):
            return data
        checked = Dataset(data.symbols, data.as_columns())
        some = next(iter(data.relations.values()), None)
        if some is not None:
            checked.relations = {**dict.fromkeys(known, some), **data.relations}
        return checked

    def _find_grid(self, given: Iterable[Dataset]) -> Grid:
        """Return the grid for all that was inserted so far and for new data; it only becomes finer."""
        asked = () if self._span is None else (self._span.lo, self._span.hi)
        denominators = [self._grid.denominator, self._ledger.denominator, self._fixed.denominator]
        denominators += [Fraction(end).denominator for end in asked if abs(end) != INF]
        denominators += [needed_denominator(self._program, data) for data in given if len(data)]
        return find_grid(self._program, self._format.timeline, [lcm(*denominators)])

    def _evaluate_on_grid(self, grid: Grid, evaluate: Callable[[Grid], Results]) -> tuple[Grid, Results]:
        """Evaluate on a grid, and again on finer ones as long as computed values need one; return the last one, too."""
        while True:
            try:
                return grid, evaluate(grid)
            except FinerGridNeeded as needed:
                denominator = lcm(grid.denominator, needed.denominator)
                grid = find_grid(self._program, self._format.timeline, [denominator])

    def _evaluate(self, change: LedgerChange, grid: Grid) -> Results:
        """Return the new extents of the stages that a change touches."""
        scene = self._make_scene(grid)
        touched = [stage for stage in self._stages if stage.reads(change)]
        results: Results = {}
        for stage in touched:
            keys = stage.find_keys(change)
            result = None if keys is None else stage.solve_for(keys, scene)
            if result is not None:
                results[stage] = result
        return {**results, **self._recompute([stage for stage in touched if stage not in results], grid)}

    def _recompute(self, stages: Iterable[StageState], grid: Grid) -> Results:
        """Compute stages from scratch; raise if a constraint is violated."""
        scene = self._make_scene(grid)
        try:
            return {stage: stage.solve_all(scene) for stage in stages}
        except Inconsistent:
            # Name the violated constraints of all stages.
            StageState(self._whole).solve_all(scene)
            raise

    def _compare(self, results: Results, grid: Grid) -> tuple[dict[str, list[Extent]], dict[str, list[Extent]]]:
        added: dict[str, list[Extent]] = {name: [] for name in self._names}
        removed: dict[str, list[Extent]] = {name: [] for name in self._names}
        factor = grid.denominator // self._grid.denominator
        for stage, result in results.items():
            for name, more, less in stage.compare(result, factor):
                added[name].append(more)
                removed[name].append(less)
        return added, removed

    def _make_scene(self, grid: Grid) -> Scene:
        span = None if self._span is None else grid.to_pair(self._span) or (0, -1)
        return Scene(self._ledger, self._fixed, grid, self._format.timeline, span, self._until)

    def _build_model(self, extents: Mapping[str, Iterable[Extent]]) -> Model:
        times = self._program.time_arguments if self._ledger.dates else None
        found = {name: list(extents[name]) or [self._make_empty(name)] for name in self._names}
        return Model(found, self._grid, self._ledger.symbols, self._ledger.dates, times)

    def _make_empty(self, name: str) -> Extent:
        return next(stage.stored[name].empty for stage in self._stages if name in stage.stored)
