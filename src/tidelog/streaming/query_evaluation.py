"""The evaluation of a standing query: the facts held, the plans of its rules, and its position in the stream.

Times are positions on a grid, and constants are numbers. A time that is not on the grid refines it, and constants that
no fact mentions any more are dropped. Positions and numbers then change, and plans are made anew where needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import floor, lcm
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.prepare_facts import InputFormat, needed_denominator
from tidelog.compiler.violations import describe_violation
from tidelog.data.dataset import Dataset
from tidelog.data.relation import finer, refine_pairs
from tidelog.data.symbol_table import Symbols
from tidelog.engine import retention, store_tables, stream_kernel
from tidelog.engine.fact_store import Int32s, Int64s, Rows, Store
from tidelog.engine.stream_kernel import (
    CHANGES,
    CLOSED,
    EVALUATED,
    FRONTIER,
    GROUP,
    LAST,
    NOW,
    PHASE,
    REPORTED,
    STOP,
    TARGET,
    Task,
    Todo,
)
from tidelog.errors import Inconsistent
from tidelog.language.hidden_predicates import ALWAYS
from tidelog.language.program import Program
from tidelog.streaming.answers import AnswerColumns
from tidelog.streaming.calendar_feed import CalendarFeed
from tidelog.streaming.compiled_query import compile_query
from tidelog.streaming.finer_grid import take_steps
from tidelog.streaming.output_times import OutputTimes, OutputTimesLike
from tidelog.streaming.recursion_start import Beginning, begin_recursion
from tidelog.streaming.step_layout import Batch, Clock, Reading, arrange, merge_steps
from tidelog.streaming.stepper import NOTHING, Stepper, make_quiet_step
from tidelog.streaming.stream_plans import StreamEngine, build_engine, build_task
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import Time

if TYPE_CHECKING:
    from tidelog.engine.running_numbers import RunningNumbers

#: Unused constants are dropped once there are this many of them, and more than are in use.
MANY_NAMES = 4096
#: Steps with numbers are merged until they have about this many words of records.
WORDS_PER_STEP = 1 << 17


class Evaluation:
    """The evaluation of a query over a stream: facts held, plans and position. `bounded` says whether memory is."""

    form: CompiledProgram
    engine: StreamEngine
    task: Task

    def __init__(
        self,
        program: Program,
        query: str,
        grid: Grid,
        bounded: bool,
        delays: Mapping[str | None, Fraction],
        at: OutputTimesLike | None,
    ) -> None:
        self.program, self.grid = program, grid
        self.query, self.times = query, program.time_arguments.get(query, ())
        #: Whether times were given as dates.
        self.dates = False
        self.input_format = InputFormat.of(program, grid.timeline, "stream")
        self.bounded, self.delays, self.symbols = bounded, delays, Symbols()
        #: The position in the stream; see `engine.stream_kernel`.
        self.at: Int64s = np.zeros(stream_kernel.AT_SIZE, np.int64)
        self.at[: REPORTED + 1], self.at[STOP] = NEG_INF, POS_INF
        #: The last position at which a fact was seen to begin, even if it was left out.
        self.seen = NEG_INF
        self.output = None if at is None else OutputTimes(at, self.at, grid.denominator)
        #: A step without facts, at a time that is set later.
        self.quiet, self.stepper = make_quiet_step(), Stepper()
        #: Whether others hold positions on the grid, so that it cannot change in the middle of a step.
        self.fixed_grid = False
        #: The calculations and aggregations of the rules, if there are any.
        self.numbers: RunningNumbers | None = None
        #: The work of each rule when the plans were last made.
        self._work: Int64s = np.zeros(len(program.rules), np.int64)
        #: Generates the facts of calendar predicates, if rules read any.
        self.calendar = CalendarFeed(self)
        self._compile()
        #: The constants of the rules are the first in the dictionary, and stay there.
        self._constants = self._names = len(self.symbols)

    # Position

    @property
    def store(self) -> Store:
        return self.engine.store

    @property
    def clock(self) -> Clock:
        return Clock(int(self.at[NOW]), int(self.at[CLOSED]), self.seen)

    @property
    def complete(self) -> int:
        """The position up to which all answers are known."""
        return int(self.at[EVALUATED if self.form.waiting else FRONTIER]) - self.task.ahead

    @property
    def held(self) -> tuple[int, int]:
        """The number of intervals and rows held that will be forgotten, and of intervals that are kept for ever."""
        endless, held = (int(self.store.meta[place]) for place in (store_tables.ENDLESS, store_tables.HELD))
        return held - endless + self.count_rows(), endless

    def count_rows(self) -> int:
        """Return how many rows aggregations keep."""
        return 0 if self.numbers is None else self.numbers.count_held()

    def work(self) -> Int64s:
        """Return the work of each rule of the program since this evaluation began; see `RuleCost`."""
        return self._work + self.engine.count_work(len(self.program.rules))

    def answers(self, rows: Rows) -> AnswerColumns:
        """Return intervals of the query as answers."""
        args, kinds = rows.args.T.ravel(), (self.times, self.dates)
        return AnswerColumns(self.query, len(rows.args), args, rows.lo, rows.hi, self.grid, self.symbols, *kinds)

    def no_answers(self) -> AnswerColumns:
        """Return columns without answers."""
        return self.answers(Rows.empty(self.task.arity))

    # Plans and grid

    def _compile(self, held: Mapping[str, Rows] | None = None) -> None:
        """Compile and plan the query on the current grid, over a store with the facts held."""
        form = self.form = compile_query(self.program, self.query, self.grid, self.bounded)
        self._numbers = {name: number for number, name in enumerate(form.names)}
        store = Store(list(form.arities.values()), self.grid.dense, np.zeros(1, np.int64))
        for name, rows in (held or {}).items():
            store.insert(self._numbers[name], rows)
        self.engine = build_engine(form, self.symbols.intern, self.symbols.ranks, store)
        if form.numeric and self.numbers is None:
            from tidelog.engine.running_numbers import RunningNumbers

            self.numbers = RunningNumbers(form, self.symbols)
        self.at[CHANGES] = NEG_INF if form.numeric else POS_INF
        self._set_task()
        self.at[stream_kernel.JUDGED] = -1
        self.at[stream_kernel.FORGOTTEN] = store.news

    def _set_task(self) -> None:
        """Set the task for the current grid and output times."""
        output, grid = self.output, self.grid
        if output:
            output.fit(grid.denominator)
        self._answer_grid = Grid(grid.dense, output.denominator) if output and grid.dense else grid
        longest = int(max(self.delays.values()) * grid.denominator * grid.tick)
        self.task = build_task(self.form, self.engine, longest, output)

    def rank(self) -> None:
        """Rank all constants, if rules compare them."""
        if any(rule.comparisons for rule in self.form.rules):
            self.store.ranks = np.asarray(self.symbols.ranks(), np.int64)

    def _refine(self, denominator: int) -> None:
        """Change to a finer grid, for a time that is not on the current one."""
        factor = denominator // self.grid.denominator
        held = {name: self.store.rows(number) for number, name in enumerate(self.form.names)}
        later = self.store.deferred()
        self._work = self.work()
        self.grid = Grid(self.grid.dense, denominator)
        for place in (NOW, LAST, CLOSED, FRONTIER, EVALUATED, REPORTED):
            self.at[place] = finer(int(self.at[place]), factor)
        self.seen = finer(self.seen, factor)
        self._compile({name: Rows(rows.args, *refine_pairs(rows.lo, rows.hi, factor)) for name, rows in held.items()})
        store = self.store
        if self.numbers is not None:
            store.take_log()
            self.numbers.refine(self.form, factor)
        store.defer({pred: Rows(rows.args, *refine_pairs(rows.lo, rows.hi, factor)) for pred, rows in later.items()})
        store.meta[store_tables.NEXT_DUE] = NEG_INF if later else POS_INF

    def fit(self, t: Time) -> None:
        """Make the grid fine enough for a time."""
        if self.grid.dense and not isinstance(t, float):
            self.refine(t.denominator)

    def refine(self, denominator: int) -> None:
        """Make the grid fine enough for times with a denominator."""
        if self.grid.denominator % denominator:
            self._refine(lcm(self.grid.denominator, denominator))

    def position(self, t: Time) -> int:
        """Return the grid position of a time: the point, the gap around it, or on the integers the point before."""
        if isinstance(t, float):
            return POS_INF if t > 0 else NEG_INF
        ticks = t * self.grid.denominator
        return floor(ticks) * self.grid.tick + (1 if self.grid.dense and ticks.denominator > 1 else 0)

    def forget_names(self, mark: Callable[[NDArray[np.bool_]], None] | None = None) -> Int32s | None:
        """Drop constants that no fact mentions any more, if there are many; `mark` marks others that are in use.

        Return the new numbers of constants, if they have changed."""
        if len(self.symbols) < 2 * self._names + MANY_NAMES:
            return None
        store = self.store
        store.compact()
        used = store.constants(len(self.symbols))
        used[: self._constants] = True
        if self.numbers is not None:
            self.numbers.mark_constants(used)
        if mark is not None:
            mark(used)
        self._names = int(np.count_nonzero(used))
        if len(used) - self._names < MANY_NAMES:
            return None
        old, self.symbols = self.symbols, Symbols()
        ids = self.symbols.merge(old, np.flatnonzero(used))
        store.renumber(ids)
        if self.numbers is not None:
            self.numbers.renumber(ids, self.symbols)
        self.rank()
        return ids

    # Beginning

    def begin(self, data: Dataset) -> int:
        """Take background facts and rules without a body, which hold before the stream begins. Return their number."""
        store, code = self.store, self.engine.code
        store.horizon = (NEG_INF, NEG_INF)
        self.calendar.note_background(data)
        if ALWAYS in self.form.arities:
            self._work_off(np.array([self._numbers[ALWAYS], NEG_INF, POS_INF], np.int64))
        store.evaluate(list(self.engine.plans.axioms), code)
        self._work_off(NOTHING)
        return self.take_first(self.batch(self.on_grid(data), Clock(NEG_INF, NEG_INF, NEG_INF), fixed=True))

    def stand(
        self, denominator: int, positions: Sequence[int], names: tuple[NDArray[Any], NDArray[Any]]
    ) -> Int32s | None:
        """Move to the position of a saved evaluation, without its facts. Return new numbers of constants, if any."""
        self.grid = Grid(self.grid.dense, denominator)
        self.at[: REPORTED + 1] = positions
        self.numbers = None  # which are those of another grid
        self._compile()
        ids = self.symbols.adopt_texts(*names)
        self.rank()
        return ids

    def take_over(self, arrays: Mapping[str, NDArray[Any]], ids: Int32s | None) -> None:
        """Take over all facts of an evaluation with the same rules, with new numbers for its constants, if any."""
        self.store.put(arrays, ids)
        if self.numbers is not None:
            self.numbers.restore(arrays, ids)
        self._names = len(self.symbols)
        self.at[stream_kernel.FORGOTTEN] = self.store.news

    def derive(self, held: Mapping[str, Rows], known: Dataset) -> int:
        """Take facts that other rules held, and the background, and derive everything that follows.

        Return the number of background facts."""
        count = self.begin(known)
        store = self.store
        store.horizon = (NEG_INF, int(max(self.at[NOW], self.at[FRONTIER])))
        for name, rows in held.items():
            queue = np.empty((3 + len(rows.args)) * len(rows) + 1, np.int64)
            end = store_tables.pack(self._numbers[name], rows.args, rows.lo, rows.hi, 0, len(rows), queue, 0)
            self._work_off(queue[: int(end)])
        return count

    def _work_off(self, queue: Int64s) -> None:
        """Work records off, with everything that follows from them and from calculations with it."""
        self.store.work(self.engine.code, queue, len(queue))
        while self.numbers is not None and self.store.log[0, 0]:
            queue = self.compute()
            self.store.work(self.engine.code, queue, len(queue))

    def compute(self) -> Int64s:
        """Return the records that calculations derive from the pieces in the log."""
        assert self.numbers is not None
        known = len(self.symbols)
        queue = self.numbers.compute(self.store.take_log())
        if len(self.symbols) > known:
            self.rank()
        return queue

    def aggregate(self) -> Int64s:
        """Return the records that the aggregations due now derive."""
        assert self.numbers is not None
        known, at = len(self.symbols), self.at
        due = self.form.waiting[at[GROUP]].aggregations
        queue, at[CHANGES] = self.numbers.aggregate(due, int(at[TARGET]), self.store.rows)
        if len(self.symbols) > known:
            self.rank()
        return queue

    # Output times

    def restore_times(self, state: Mapping[str, Any], given: OutputTimesLike | None) -> None:
        """Resume output times where they stopped; an iterable of times has to be given again."""
        self.output = OutputTimes.restore(state, given, self.at, self.grid.denominator)
        self._set_task()

    def start_times(self, t: Fraction) -> None:
        """Let output times that are multiples begin with a stream that begins at t."""
        if self.output is not None:
            self.output.start(t)
            self._set_task()

    def note_times(self, times: Iterable[Fraction]) -> None:
        """Add the stream's own time points, if they are not those of its facts."""
        if self.output is not None:
            self.output.note(times)
            self._fit_times(self.output)

    def _expect(self, last: int) -> None:
        """Prepare the output times up to a position."""
        if self.output is not None and self.output.given:
            self.output.pull(self.grid.to_time(last + 1))
            self._fit_times(self.output)

    def _fit_times(self, output: OutputTimes) -> None:
        """Set the task again if output times have become finer."""
        if output.denominator != self.task.ratio * self.grid.denominator:
            self._set_task()

    # From facts to records

    def on_grid(self, data: Dataset) -> Dataset:
        """Return a dataset on the grid, which is refined first if needed."""
        self.input_format.check(data)
        self.refine(self.needed_denominator(data))
        return data.with_denominator(self.grid.denominator)

    def needed_denominator(self, data: Dataset) -> int:
        """Return the denominator of the grid that facts need."""
        return needed_denominator(self.program, data) if self.grid.dense else data.denominator

    def batch(
        self,
        data: Dataset,
        clock: Clock,
        step: int = 0,
        until: int = POS_INF,
        *,
        fixed: bool = False,
        own: bool = True,
        delay: int | None = None,
        merged: bool = True,
    ) -> Batch:
        """Lay out the facts of a dataset as steps; with a fixed clock as one step, whatever their times.

        `delay` is a delay for all predicates, instead of their own. Steps with numbers may be `merged`."""
        known = len(self.symbols)
        own = own and self.output is not None and self.output.own
        delay_of = self._delay_of if delay is None else lambda predicate: delay
        reading = Reading(self._numbers, self.grid, delay_of, step, until, own, fixed)
        batch = arrange(data, reading, clock, self.symbols)
        if len(self.symbols) > known:
            self.rank()
        return merge_steps(batch, WORDS_PER_STEP) if merged and self.numbers is not None and not step else batch

    def _delay_of(self, predicate: str) -> int:
        """Return the allowed delay of a predicate, as a grid distance."""
        delay = self.delays.get(predicate, self.delays[None])
        return int(delay * self.grid.denominator * self.grid.tick)

    def take_first(self, batch: Batch) -> int:
        """Take the facts that hold before time begins; return how many."""
        self._work_off(batch.todo.records[: batch.first_record].copy())
        return batch.before

    # Steps

    def run(self, todo: Todo, first: int, stop: int) -> tuple[AnswerColumns, Int64s, int, Inconsistent | None]:
        """Take steps, perhaps not all. Return answers, records, the next step, and a violated constraint if any."""
        if self.output is not None:
            if not self.output.begun:
                self.output.start(self.grid.to_time(int(todo.clocks[first])))
            self._expect(int(todo.clocks[stop - 1]))
        return self._take(begin_recursion(self, todo), first, stop)

    def _take(self, begun: Beginning, first: int, stop: int) -> tuple[AnswerColumns, Int64s, int, Inconsistent | None]:
        """Take steps after a beginning, perhaps not all. Its answers come with those of the first step."""
        early, broken, grid = begun.found, begun.violated, self._answer_grid
        rows, taken, step, violated = take_steps(self, begun.todo, first, first + 1 if broken else stop)
        if len(early.lo):
            lo, hi = refine_pairs(early.lo, early.hi, self._answer_grid.denominator // grid.denominator)
            rows = retention.Found(*map(np.append, (early.args, lo, hi), rows))
            taken[first:step, stream_kernel.ANSWERS_END] += len(lo)
        grid, symbols = self._answer_grid, self.symbols
        found = AnswerColumns(self.query, self.task.arity, *rows, grid, symbols, self.times, self.dates)
        return self.calendar.clip_answers(found), taken, step, broken or violated

    def find_violation(self) -> Inconsistent | None:
        """Return the first constraint that is violated by now, if any. It is reported once, so it is then cleared."""
        store, found = self.store, None
        reached = int(stream_kernel.reached_time(self.at))
        for number in self.task.constraints[::-1].tolist():
            rows = store.rows(number)
            rows = rows.where(rows.lo <= reached)
            if len(rows):
                values = [self.symbols.value(int(a)) for a in rows.args[:, 0]]
                when = self.grid.to_interval(int(rows.lo[0]), int(rows.hi[0]))
                found = Inconsistent(describe_violation(self.form, self.form.names[number], values, when))
                retention.clear_begun(number, reached, store.atoms, store.iv, store.meta)
        if found:
            store.compact()
        return found

    def stop(self, stop: int) -> tuple[AnswerColumns, Inconsistent | None]:
        """End time at a position: return the last answers, and open ones with a closed end."""
        at = self.at
        if self.output is not None:
            self.output.start(self.grid.to_time(stop))
            self._expect(stop)
        self.quiet.clocks[:] = stop
        begun = begin_recursion(self, self.quiet)
        stop = int(begun.todo.clocks[0])
        at[FRONTIER], at[STOP], at[PHASE] = stop + self.form.longest_wait, stop, stream_kernel.TAKE
        self.quiet.clocks[:], self.quiet.over[:] = at[NOW], False
        found, _, _, violated = self._take(begun._replace(todo=self.quiet), 0, 1)
        if self.output is None:
            rows = self.calendar.clip(self.store.rows(self.task.query))
            rows = rows.where((rows.hi >= at[REPORTED]) & (rows.lo <= at[STOP])).clip(NEG_INF, int(at[STOP]))
            found = found._replace(args=rows.args.T.ravel(), lo=rows.lo, hi=rows.hi)
            violated = begun.violated or self.find_violation()
        at[NOW] = max(at[NOW], at[STOP])
        at[REPORTED], at[STOP], at[PHASE] = POS_INF, POS_INF, stream_kernel.BEGIN
        return found, violated
