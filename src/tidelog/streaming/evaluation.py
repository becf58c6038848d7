"""A standing query in the middle of its stream: what is held, the plans of its rules, and where it stands.

Times are positions on a grid, and constants are numbers. A time that is not on the grid makes it finer, and names that
nothing holds any more are left behind: positions and numbers are others then, and plans are made anew where need be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidelog.analysis.flatten import ALWAYS
from tidelog.data.columns import refined
from tidelog.data.dataset import Dataset
from tidelog.data.symbols import Symbols
from tidelog.engine import steps, tables, window
from tidelog.engine.steps import (
    CLOSED,
    EVALUATED,
    FRONTIER,
    LAST,
    NOW,
    PHASE,
    REPORTED,
    STOP,
    Task,
    Todo,
)
from tidelog.engine.store import Int32s, Int64s, Rows, Store
from tidelog.language.program import Program
from tidelog.reasoning import Inconsistent, arities_of, refuse_arities, refuse_fractions, violation
from tidelog.streaming.answers import Found
from tidelog.streaming.batch import Batch, Clock, Reading, arrange
from tidelog.streaming.standing import Engine, Standing, engine, standing, task
from tidelog.streaming.stepper import NOTHING, Stepper
from tidelog.streaming.times import OutputTimes, Times
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import Time

#: Names that nothing holds any more are left behind once there are so many, and more than are in use.
MANY_NAMES = 4096


@dataclass(frozen=True)
class Mark:
    """Where an evaluation stood."""

    store: Store
    at: Int64s
    heap: Int64s


class Evaluation:
    """The evaluation of a query over a stream; `bounded` tells whether its memory is."""

    form: Standing
    engine: Engine
    task: Task

    def __init__(
        self,
        program: Program,
        query: str,
        grid: Grid,
        bounded: bool,
        delays: Mapping[str | None, Fraction],
        at: Times | None,
    ) -> None:
        self.program = program
        self.query = query
        self.grid = grid
        self.bounded = bounded
        self.delays = delays
        self.symbols = Symbols()
        #: Where it stands: see `engine.steps`.
        self.at: Int64s = np.zeros(steps.AT_SIZE, np.int64)
        self.at[: REPORTED + 1], self.at[STOP] = NEG_INF, POS_INF
        #: The last position at which a fact was seen to begin, also one that was left out.
        self.seen = NEG_INF
        self.output = None if at is None else OutputTimes(at, self.at, grid.denominator)
        #: A step in which nothing comes, at a time that is still to be said.
        self.quiet = _quiet()
        self.stepper = Stepper()
        self._arities = dict(arities_of(program))
        #: What each rule had done when the plans were last made.
        self._work: Int64s = np.zeros(len(program.rules), np.int64)
        self._make()
        #: The constants of the rules are the first in the dictionary, and stay there.
        self._constants = self._names = len(self.symbols)

    # Where it stands

    @property
    def store(self) -> Store:
        return self.engine.store

    @property
    def clock(self) -> Clock:
        return Clock(int(self.at[NOW]), int(self.at[CLOSED]), self.seen)

    @property
    def complete(self) -> int:
        """The position up to which all answers are known."""
        return int(self.at[EVALUATED if self.form.negations else FRONTIER]) - self.task.ahead

    @property
    def held(self) -> tuple[int, int]:
        """How many intervals are held that will be forgotten some day, and how many for ever."""
        endless, held = (int(self.store.meta[place]) for place in (tables.ENDLESS, tables.HELD))
        return held - endless, endless

    def work(self) -> Int64s:
        """What each rule of the program has done since this evaluation began: see `RuleCost`."""
        return self._work + self.engine.work(len(self.program.rules))

    def holding(self, at: int, since: int = NEG_INF - 1) -> Rows:
        """The intervals of the query that hold at a position, of those that began after another."""
        rows = self.store.rows(self.task.query)
        return rows.where((rows.lo <= at) & (rows.hi >= at) & (rows.lo > since))

    def answers(self, rows: Rows) -> Found:
        """Intervals of the query as answers."""
        return Found(self.query, len(rows.args), rows.args.T.ravel(), rows.lo, rows.hi, self.grid, self.symbols)

    # Plans and grid

    def _make(self, held: Mapping[str, Rows] | None = None) -> None:
        """Plans for the program on the present grid, over a store with the facts that are held."""
        form = self.form = standing(self.program, self.query, self.grid, self.bounded)
        self._numbers = {name: number for number, name in enumerate(form.names)}
        store = Store(list(form.arities.values()), self.grid.dense, np.zeros(1, np.int64))
        for name, rows in (held or {}).items():
            store.insert(self._numbers[name], rows)
        self.engine = engine(form, self.query, self.symbols.intern, self.symbols.ranks, store)
        self._set_task()
        self.at[steps.JUDGED] = -1
        self.at[steps.FORGOTTEN] = store.news

    def _set_task(self) -> None:
        """The task on the present grid, with the present output times."""
        output, grid = self.output, self.grid
        if output:
            output.fit(grid.denominator)
        self._answer_grid = Grid(grid.dense, output.denominator) if output and grid.dense else grid
        longest = int(max(self.delays.values()) * grid.denominator * grid.tick)
        self.task = task(self.form, self.engine, self.query, longest, output)

    def _rank(self) -> None:
        """Ranks all constants, where rules compare them."""
        if any(rule.comparisons for rule in self.form.rules):
            self.store.ranks = np.asarray(self.symbols.ranks(), np.int64)

    def _refine(self, denominator: int) -> None:
        """Goes over to a finer grid, once a time comes that is not on the present one."""
        factor = denominator // self.grid.denominator
        held = {name: self.store.rows(number) for number, name in enumerate(self.form.names)}
        later = self.store.deferred()
        self._work = self.work()
        self.grid = Grid(self.grid.dense, denominator)
        for place in (NOW, LAST, CLOSED, FRONTIER, EVALUATED, REPORTED):
            self.at[place] = finer(int(self.at[place]), factor)
        self.seen = finer(self.seen, factor)
        self._make({name: Rows(rows.args, *refined(rows.lo, rows.hi, factor)) for name, rows in held.items()})
        store = self.store
        store.defer({pred: Rows(rows.args, *refined(rows.lo, rows.hi, factor)) for pred, rows in later.items()})
        store.meta[tables.NEXT_DUE] = NEG_INF if later else POS_INF

    def fit(self, t: Time) -> None:
        """Makes the grid fine enough for a time."""
        if self.grid.dense and not isinstance(t, float) and self.grid.denominator % t.denominator:
            self._refine(lcm(self.grid.denominator, t.denominator))

    def position(self, t: Time) -> int:
        """The grid position of a time: of the point, of the gap around it, or on the integers of the one before."""
        if isinstance(t, float):
            return POS_INF if t > 0 else NEG_INF
        ticks = t * self.grid.denominator
        return floor(ticks) * self.grid.tick + (1 if self.grid.dense and ticks.denominator > 1 else 0)

    def forget_names(self) -> None:
        """Leaves names behind that nothing holds any more, once there are many."""
        if len(self.symbols) < 2 * self._names + MANY_NAMES:
            return
        store = self.store
        store.compact()
        used = store.constants(len(self.symbols))
        used[: self._constants] = True
        old, self.symbols = self.symbols, Symbols()
        store.renumber(self.symbols.merge(old, np.flatnonzero(used)))
        self._names = len(self.symbols)
        self._rank()

    # How it begins

    def begin(self, data: Dataset) -> int:
        """What holds before the stream begins: background facts, and rules without a body. Returns how many facts."""
        store, code = self.store, self.engine.code
        store.horizon = (NEG_INF, NEG_INF)
        if ALWAYS in self.form.arities:
            store.work(code, np.array([self._numbers[ALWAYS], NEG_INF, POS_INF], np.int64), 3)
        store.evaluate(list(self.engine.axioms), code)
        return self.take_first(self.batch(self.on_grid(data), Clock(NEG_INF, NEG_INF, NEG_INF), fixed=True))

    def stand(
        self, denominator: int, positions: Sequence[int], names: tuple[NDArray[Any], NDArray[Any]]
    ) -> Int32s | None:
        """Goes to where a saved one stood, holding nothing yet. Returns new numbers for its constants, if any."""
        self.grid = Grid(self.grid.dense, denominator)
        self.at[: REPORTED + 1] = positions
        self._make()
        ids = self.symbols.merge_texts(*names)
        self._rank()
        return ids

    def take_over(self, arrays: Mapping[str, NDArray[Any]], ids: Int32s | None) -> None:
        """All that one with the same rules held, with other numbers for its constants, if any."""
        self.store.put(arrays, ids)
        self._names = len(self.symbols)
        self.at[steps.FORGOTTEN] = self.store.news

    def derive(self, held: Mapping[str, Rows], known: Dataset) -> int:
        """Facts that were held by other rules, and the background: all that follows is derived from them.

        Returns how many facts the background has."""
        count = self.begin(known)
        store = self.store
        store.horizon = (NEG_INF, int(max(self.at[NOW], self.at[FRONTIER])))
        for name, rows in held.items():
            queue = np.empty((3 + len(rows.args)) * len(rows) + 1, np.int64)
            end = tables.pack(self._numbers[name], rows.args, rows.lo, rows.hi, 0, len(rows), queue, 0)
            store.work(self.engine.code, queue, int(end))
        return count

    # Output times

    def restore_times(self, state: Mapping[str, Any], given: Times | None) -> None:
        """Goes on with output times where they stopped; those that were given one by one are given again."""
        self.output = OutputTimes.restored(state, given, self.at, self.grid.denominator)
        self._set_task()

    def start_times(self, t: Fraction) -> None:
        """Output times that are multiples begin with a stream that begins at t."""
        if self.output is not None:
            self.output.start(t)
            self._set_task()

    def note_times(self, times: Iterable[Fraction]) -> None:
        """The stream's own time points, where they are not those of its facts."""
        if self.output is not None:
            self.output.note(times)
            self._fit_times(self.output)

    def _expect(self, last: int) -> None:
        """Gets the output times up to a position ready."""
        if self.output is not None and self.output.given:
            self.output.pull(self.grid.time(last + 1))
            self._fit_times(self.output)

    def _fit_times(self, output: OutputTimes) -> None:
        """Sets the task again where output times have become finer."""
        if output.denominator != self.task.ratio * self.grid.denominator:
            self._set_task()

    # From facts to records

    def on_grid(self, data: Dataset) -> Dataset:
        """A dataset on the grid, which is made finer where need be."""
        refuse_arities(self._arities, data, None)
        if not self.grid.dense:
            refuse_fractions(self.program, data)
        elif self.grid.denominator % data.denominator:
            self._refine(lcm(self.grid.denominator, data.denominator))
        return data.rescaled(self.grid.denominator)

    def batch(
        self,
        data: Dataset,
        clock: Clock,
        step: int = 0,
        until: int = POS_INF,
        *,
        fixed: bool = False,
        own: bool = True,
    ) -> Batch:
        """The facts of a dataset as steps; with a fixed clock as one step, whatever their times."""
        known = len(self.symbols)
        own = own and self.output is not None and self.output.own
        reading = Reading(self._numbers, self.grid, self._delay_of, step, until, own, fixed)
        batch = arrange(data, reading, clock, self.symbols)
        if len(self.symbols) > known:
            self._rank()
        return batch

    def _delay_of(self, predicate: str) -> int:
        """The delay that facts of a predicate may have, on the grid."""
        delay = self.delays.get(predicate, self.delays[None])
        return int(delay * self.grid.denominator * self.grid.tick)

    def take_first(self, batch: Batch) -> int:
        """Takes the facts that are there before time begins; returns how many."""
        records = batch.todo.records[: batch.first_record].copy()
        self.store.work(self.engine.code, records, len(records))
        return batch.before

    # Steps

    def run(self, todo: Todo, first: int, stop: int) -> tuple[Found, Int64s, int, Inconsistent | None]:
        """Takes steps. Returns their answers, what is noted of them, and up to which step it came, maybe not to all."""
        if self.output is not None:
            if not self.output.begun:
                self.output.start(self.grid.time(int(todo.clocks[first])))
            self._expect(int(todo.clocks[stop - 1]))
        rows, taken, step, violated = self.stepper.take(
            self.engine, self.task, self.at, self.output, todo, first, stop, self._violation
        )
        return Found(self.query, self.task.arity, *rows, self._answer_grid, self.symbols), taken, step, violated

    def _violation(self) -> Inconsistent | None:
        """The first constraint that is violated. It is said once: that it is violated is held no longer."""
        store, found = self.store, None
        for number in self.task.constraints[::-1].tolist():
            rows = store.rows(number) if store.size(number) else Rows.empty(0)
            if len(rows):
                rule = next(r for r in self.form.rules if r.predicate == self.form.names[number])
                values = [self.symbols.value(int(a)) for a in rows.args[:, 0]]
                when = self.grid.interval(int(rows.lo[0]), int(rows.hi[0]))
                found = Inconsistent(violation(self.program.rules[rule.origin], rule, values, when))
                window.clear(number, store.atoms, store.iv, store.meta)
        if found:
            store.compact()
        return found

    def stop(self, stop: int) -> tuple[Found, Inconsistent | None]:
        """Time stops at a position: the last answers, and what is still open, with a closed end."""
        at = self.at
        if self.output is not None:
            self.output.start(self.grid.time(stop))
            self._expect(stop)
        at[FRONTIER], at[STOP], at[PHASE] = stop + self.task.ahead, stop, steps.TAKE
        self.quiet.clocks[:], self.quiet.over[:] = at[NOW], False
        found, _, _, violated = self.run(self.quiet, 0, 1)
        if self.output is None:
            rows = self.store.rows(self.task.query)
            rows = rows.where((rows.hi >= at[REPORTED]) & (rows.lo <= stop)).clipped(NEG_INF, stop)
            found = found._replace(args=rows.args.T.ravel(), lo=rows.lo, hi=rows.hi)
            violated = self._violation()
        at[REPORTED], at[STOP], at[PHASE] = POS_INF, POS_INF, steps.BEGIN
        at[NOW] = max(at[NOW], stop)
        return found, violated

    def mark(self) -> Mark:
        """Where it stands, to go back to."""
        return Mark(self.store.copy(), self.at.copy(), self.output.heap.copy() if self.output else NOTHING)

    def go_back(self, mark: Mark) -> None:
        """Stands where it stood; a mark is good for one time."""
        self.engine = replace(self.engine, store=mark.store)
        self.at[:] = mark.at
        if self.output:
            self.output.heap = mark.heap


def finer(at: int, factor: int) -> int:
    """A position on a grid that is so many times as fine: of a gap, where it ends."""
    return at if abs(at) >= POS_INF else (at + (at & 1)) * factor - (at & 1)


def _quiet() -> Todo:
    """A step in which nothing comes, at a time that is still to be said."""
    time, zero = np.empty(1, np.int64), np.zeros(1, np.int64)
    return Todo(time, np.full(1, NEG_INF), np.zeros(1, np.bool_), NOTHING, zero, NOTHING, zero)
