"""The streaming reasoner: a standing query over a stream that never ends.

The input is complete up to the frontier F, which moves with the clock, less the delay that facts may have. What comes
is derived from at once, into the future as far as it is known (an interval fact, a diamond, a box in a head), so what
persists costs nothing while time passes. Rules with negation are evaluated stretch by stretch as their bodies become
complete, and only if something changes in the stretch. An interval of the query is an answer once it has ended before
the query's own frontier. Facts that no rule can look back at any more are forgotten.

Steps themselves are taken by compiled code, many in one call (`engine.steps`); here is what happens around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, lcm
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidelog.analysis.components import strata
from tidelog.analysis.flatten import ALWAYS
from tidelog.analysis.queries import known_predicates, require_known
from tidelog.data.columns import refined
from tidelog.data.dataset import Dataset
from tidelog.data.notebook import Facts
from tidelog.data.symbols import Symbols
from tidelog.engine import steps, tables, window
from tidelog.engine.steps import (
    CLOSED,
    EMPTY,
    EVALUATED,
    FRONTIER,
    LAST,
    LATER_END,
    N_FOUND,
    N_TIMES,
    NEEDED,
    NOW,
    PHASE,
    REPORTED,
    STOP,
    Task,
    Todo,
)
from tidelog.engine.store import Int32s, Int64s, Rows, Store
from tidelog.language.printer import format_rule
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.reasoning import (
    AnyTime,
    Inconsistent,
    arities_of,
    ends_of,
    refuse_arities,
    refuse_fractions,
    time_of,
    timeline_of,
    violation,
)
from tidelog.streaming import given, snapshot
from tidelog.streaming.answers import Answers, Found, RuleCost, Step
from tidelog.streaming.batch import Batch, Clock, Reading, arrange
from tidelog.streaming.remembered import Remembered
from tidelog.streaming.standing import Engine, Standing, chosen_memory, engine, standing, task
from tidelog.streaming.state import pack, unpack
from tidelog.streaming.times import Delay, OutputTimes, Times, delays
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import INF, Time

if TYPE_CHECKING:
    from tidelog.proofs.explanation import Explanation

#: Names that nothing holds any more are left behind once there are so many, and more than are in use.
MANY_NAMES = 4096
#: Words of deferred records that are left as they are; once there are more, and twice as many as there were after the
#: last time, those of one atom that meet are made one.
FEW_DEFERRED = 512
#: Steps are taken ahead of those that were asked for only if going back costs little beside them: at most so many
#: bytes of the store, and so many more for each word that comes in, have to be copied for it.
CHEAP, CHEAP_A_WORD = 1 << 16, 32
#: The most words of records, and the most steps, that are taken in one call.
WORDS, STEPS = 1 << 19, 1 << 14


@dataclass
class Ahead:
    """Steps that were taken, of which not all have been asked for: how it was before, and how far it has come."""

    before: Mark
    batch: Batch
    first: int
    shown: int


@dataclass(frozen=True)
class Mark:
    """Where a reasoner stood."""

    store: Store
    at: Int64s
    heap: Int64s


class Reasoner:
    """A standing query over a stream of facts.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Twice(X) :- Hot(X), Diamondminus(0,10] Hot(X).")
    >>> reasoner = tl.Reasoner(program, "Twice")
    >>> reasoner.push(0, ["Hot(t1)"]) + reasoner.push(8, ["Hot(t1)"])
    []
    >>> [str(fact.interval) for fact in reasoner.push(9, [])]
    ['8']
    """

    def __init__(
        self,
        program: Program,
        query: str,
        *,
        timeline: str | None = None,
        background: Dataset | None = None,
        delay: Delay = 0,
        memory: str | None = None,
        at: Times | None = None,
        parts: bool = False,
        remember: AnyTime | None = None,
    ) -> None:
        """`remember` keeps the facts of so long a time (or `"inf"`: all) for `explain`, beyond what the rules need."""
        strata(program.rules)
        self.program = program
        self.query = query
        self._arities = dict(arities_of(program))
        self.memory = memory
        self.late = 0
        self.taken = 0
        #: Whether an answer comes in parts, as far as it is certain, rather than once it has ended.
        self.parts = parts
        self._remembered = None if remember is None else Remembered(time_of(remember))
        self._delays = delays(delay)
        self._dense = timeline_of(program, timeline) == "rational"
        data = given.known(program, background)
        require_known([query], known_predicates(program, (predicate for predicate, _ in data.relations)))
        self.dates = data.dates
        self._symbols = Symbols()
        fine = [end.denominator for end in (*ends_of(program), *self._delays.values())]
        self._grid = Grid(self._dense, lcm(data.denominator, *fine) if self._dense else 1)
        self._bounded = chosen_memory(program, query, self._grid, memory)
        #: Where it stands: see `engine.steps`.
        self._at: Int64s = np.zeros(steps.AT_SIZE, np.int64)
        self._at[: REPORTED + 1], self._at[STOP] = NEG_INF, POS_INF
        #: The last position at which a fact was seen to begin, also one that was left out.
        self._seen = NEG_INF
        self._output = None if at is None else OutputTimes(at, self._at, self._grid.denominator)
        self._queue, self._following = np.empty(256, np.int64), np.empty(256, np.int64)
        self._found = window.Found(_NOTHING.astype(np.int32), _NOTHING, _NOTHING)
        self._quiet = _quiet()
        self._ahead: Ahead | None = None
        self._deferred = FEW_DEFERRED
        #: What each rule had done when the plans were last made, and the nanoseconds of all steps.
        self._work: Int64s = np.zeros(len(program.rules), np.int64)
        self._nanoseconds = 0
        self._form: Standing
        self._engine: Engine
        self._task: Task
        #: Where time stopped, once it has.
        self.stopped: Time = INF
        #: What could not be kept when a state was loaded onto changed rules.
        self.notes: tuple[str, ...] = ()
        self._make()
        #: The constants of the rules are the first in the dictionary, and stay there.
        self._constants = self._names = len(self._symbols)
        self._begin(data)
        self.stats = self._idle(len(data))
        if self._remembered is not None:
            self._remembered.take(-INF, data, self.stats)

    # What users call

    def push(self, t: AnyTime, facts: Iterable[str | Fact] | Dataset = ()) -> list[Fact]:
        """The clock is at t, and facts come; those without a time hold at t. More may come at t.

        Returns the answers that have become certain.
        """
        self._settle()
        clock = time_of(t)
        if isinstance(facts, Dataset):
            data = given.timed(self.program, facts)
        else:
            data = given.gathered(self.program, list(facts), clock)
            self.dates |= data.dates
        self._fit(clock)
        data = self._on_grid(data)
        step = self._at_once(clock, False, data)
        if self._remembered is not None:
            self._remembered.take(clock, data, step)
        return Facts(step.answers, self.dates)

    def advance(self, t: AnyTime) -> list[Fact]:
        """The clock is at t, and nothing more comes that holds at or before t, but for what the delay allows."""
        self._settle()
        clock = time_of(t)
        self._fit(clock)
        return Facts(self._at_once(clock, True, None).answers, self.dates)

    def take(self, t: Time, data: Dataset, *, closed: bool = False, times: Iterable[Fraction] | None = None) -> Step:
        """Facts have come, each with its time and in any order, and then the clock goes to t: a step.

        More may come at t, unless it is closed. `times` are the stream's own time points, where they are not those of
        these facts.
        """
        self._settle()
        self._fit(t)
        self.dates |= data.dates
        data = self._on_grid(data)
        if times is not None and self._output is not None:
            self._output.note(times)
            self._expect(NEG_INF)
        now, before, seen = self._clock()
        complete = NEG_INF - 1 if now == NEG_INF else before
        reported = int(self._at[REPORTED])
        if self.parts:
            self._at[steps.JUDGED] = -1  # what persists has to be told, too
        step = self._at_once(t, closed, data, Clock(now, complete, seen), own=times is None)
        if self._remembered is not None:
            self._remembered.take(t, data, step)
        return self._part(step, reported) if self.parts else step

    def begin(self, t: Time) -> None:
        """Output times that are multiples begin with a stream that begins at t, although facts may come before it."""
        if self._output is not None and not isinstance(t, float):
            self._output.start(t)
            self._retask()

    @property
    def complete(self) -> tuple[Time, bool]:
        """Up to when all answers are known, and whether that time itself is included."""
        at = self._complete()
        if at <= NEG_INF:
            return -INF, False
        if self._dense and at & 1:
            return self._grid.time(at + 1), False
        return self._grid.time(at), True

    def begun(self, after: tuple[Time, bool] | None = None) -> tuple[Answers, tuple[Time, bool]]:
        """The intervals of the query that hold up to where all is known, and have not been seen to end there; of those
        that began after a time, if given. Second, up to when all is known, and whether that time is included."""
        self._settle()
        until, since = self._complete(), NEG_INF - 1
        if after is not None and not isinstance(after[0], float):
            ticks = int(after[0] * self._grid.denominator) * self._grid.tick
            since = ticks if after[1] else ticks - 1
        rows = self._engine.store.rows(self._task.query)
        rows = rows.where((rows.lo <= until) & (rows.hi >= until) & (rows.lo > since))
        found = Found(self.query, len(rows.args), rows.args.T.ravel(), rows.lo, rows.hi, self._grid, self._symbols)
        # Where evaluation was put off, nothing begins or ends.
        known = int(self._at[FRONTIER]) - self._task.ahead
        if self._at[FRONTIER] <= NEG_INF:
            return Answers(0, found, 0, self._symbols), (-INF, False)
        included = self._dense and not known & 1
        return Answers(len(rows), found, 0, self._symbols), (
            self._grid.time(known if included else known + 1),
            included,
        )

    def held(self) -> dict[str, int]:
        """How many atoms of each predicate are held; what operators remember counts as `(operators)`."""
        self._settle()
        found: dict[str, int] = {}
        for number, name in enumerate(self._form.names):
            shown = "(operators)" if name.startswith("$") else name
            found[shown] = found.get(shown, 0) + self._engine.store.size(number)
        return found

    def work(self) -> Int64s:
        """What each rule of the program has done since this reasoner was made or loaded: see `RuleCost`."""
        return self._work + self._engine.work(len(self.program.rules))

    def slowest(self, count: int | None = None) -> list[RuleCost]:
        """What the rules have cost since this reasoner was made or loaded, the most expensive first.

        >>> import tidelog as tl
        >>> program = tl.Program.parse("Pair(X,Y) :- A(X), A(Y). Big(X) :- A(X), X > 8.")
        >>> reasoner = tl.Reasoner(program, "Pair")
        >>> answers = reasoner.push(0, [f"A({i})" for i in range(10)])
        >>> [(cost.rule, cost.work > 100) for cost in reasoner.slowest()]
        [('Pair(X,Y) :- A(X), A(Y).', True)]
        """
        work = self.work()
        total = int(work.sum())
        order = [int(number) for number in np.argsort(-work, kind="stable")[:count] if work[number]]
        seconds = self._nanoseconds / 1e9
        rules = self.program.rules
        return [
            RuleCost(rules[n].text or format_rule(rules[n]), n, int(work[n]), seconds * int(work[n]) / total)
            for n in order
        ]

    def explain(self, fact: str | Fact, *, depth: int | None = None) -> Explanation:
        """Why a fact holds, or why not, from the facts that were remembered, or else from what is still held.

        A stream forgets what its rules cannot need any more; `notes` of the explanation say what cannot be shown.

        >>> import tidelog as tl
        >>> program = tl.Program.parse("Twice(X) :- Hot(X), Diamondminus(0,10] Hot(X).")
        >>> reasoner = tl.Reasoner(program, "Twice", remember="1h")
        >>> answers = reasoner.push(0, ["Hot(t1)"]) + reasoner.push(8, ["Hot(t1)"]) + reasoner.advance(9)
        >>> print(reasoner.explain(answers[0]), end="")
        Twice(t1)@8  by Twice(X) :- Hot(X), Diamondminus(0,10] Hot(X). (line 1)
        ├─ Hot(t1)@8  given
        └─ Diamondminus(0,10] Hot(t1) at 8
           └─ Hot(t1)@0  given
        """
        from tidelog.streaming.remembered import explained_by

        self._settle()
        return explained_by(self, fact, depth)

    def finish(self, until: AnyTime | None = None) -> list[Fact]:
        """The end of the stream: the last answers, and what is still open, with a closed end."""
        return Facts(self.end(until).answers, self.dates)

    def feed(self, data: Dataset, *, step: Fraction | None = None, until: AnyTime | None = None) -> Iterator[Step]:
        """Facts in the order in which they came (or, where that is not known, of time), step by step.

        A step is a new time, or all times in the same multiple of `step`; what begins after `until` is left out.
        """
        self._settle()
        if until is not None:
            self._fit(time_of(until))
        data = given.timed(self.program, data)
        self.dates |= data.dates
        data = self._on_grid(data)
        if self._remembered is not None:
            self._remembered.take(-INF, data)
        grid, symbols, clock = self._grid, self._symbols, self._clock()
        length = 0 if step is None else max(1, int(step * grid.denominator * grid.tick))
        last = POS_INF if until is None else self._position(time_of(until))
        batch = self._batch(data, clock, length, last)
        self._take(batch)
        done = 0
        ahead = True
        while done < len(batch.counts):
            if self._grid is not grid or self._symbols is not symbols:
                # Something else came between two steps, and times or constants have other numbers now.
                factor = self._grid.denominator // grid.denominator
                grid, symbols = self._grid, self._symbols
                clock, last, length = (
                    Clock(*(_finer(at, factor) for at in clock)),
                    _finer(last, factor),
                    factor * length,
                )
                batch = self._batch(self._on_grid(data), clock, length, last)
            stop = self._reach(batch, done) if ahead else done + 1
            mark = self._mark() if stop > done + 1 else None
            found, taken, stop, violated = self._run(batch.todo, done, stop)
            mine = self._ahead = None if mark is None else Ahead(mark, batch, done, done)
            try:
                for shown in self._shown(batch, found, taken, done, stop):
                    done += 1
                    if mine:
                        mine.shown = done
                        if done == stop:
                            self._ahead = None
                    if self._remembered is not None:
                        self._remembered.leave_out(shown.late)
                    yield shown
                    if mine and self._ahead is not mine and done < stop:
                        ahead = False  # someone looked at how things stood after this step, so others come one by one
                        break
            finally:
                if mine and self._ahead is mine:
                    self._settle()
            if violated and done == stop:
                raise violated
        self._seen = batch.seen
        self._tidy()

    def end(self, until: AnyTime | None = None) -> Step:
        """The end of the stream as a step: time stops at the last time that came, or at `until`."""
        self._settle()
        at = self._at
        if until is not None:
            self._fit(time_of(until))
        stop = int(max(at[NOW], at[LAST])) if until is None else self._position(time_of(until))
        if stop in (NEG_INF, POS_INF):
            return self.stats
        began = perf_counter_ns()
        if self._output is not None:
            self._output.start(self._grid.time(stop))
            self._expect(stop)
        at[FRONTIER], at[STOP], at[PHASE] = stop + self._task.ahead, stop, steps.TAKE
        self._quiet.clocks[:], self._quiet.over[:] = at[NOW], False
        found, _, _, violated = self._run(self._quiet, 0, 1)
        if self._output is None:
            rows = self._engine.store.rows(self._task.query)
            rows = rows.where((rows.hi >= at[REPORTED]) & (rows.lo <= stop)).clipped(NEG_INF, stop)
            found = found._replace(args=rows.args.T.ravel(), lo=rows.lo, hi=rows.hi)
            violated = self._violation()
        at[REPORTED], at[STOP], at[PHASE] = POS_INF, POS_INF, steps.BEGIN
        self.stopped = self._grid.time(stop)
        at[NOW] = max(at[NOW], stop)
        self.stats = self._idle(0, (found, 0, len(found.lo)), perf_counter_ns() - began)
        if violated:
            violated.step = self.stats
            raise violated
        return self.stats

    def save(self) -> bytes:
        """The whole state, from which `load` goes on exactly."""
        self._settle()
        return pack(*snapshot.taken(self))

    @staticmethod
    def load(
        state: bytes,
        program: Program | None = None,
        *,
        query: str | None = None,
        changed: bool = False,
        background: Dataset | None = None,
        at: Times | None = None,
    ) -> Reasoner:
        """A reasoner that goes on where the saved one stopped.

        With `changed`, `program` may have other rules: what can be kept is kept, and `notes` says what cannot. A state
        has the background that its own rules read; where others read more of it, give it again. Output times that were
        given one by one have to be given again as `at`.
        """
        meta, arrays = unpack(state)
        rules = program or snapshot.program_of(meta)
        query = query or meta["query"]
        differs = snapshot.is_changed(meta, rules, query)
        if differs and not changed:
            raise snapshot.other_program(meta, rules)
        delay = {name: Fraction(delay) for name, delay in meta["delays"]}
        reasoner = Reasoner(rules, query, timeline=meta["timeline"], delay=delay, memory=meta["memory"])
        reasoner.parts = meta["parts"]
        reasoner.notes = snapshot.put_back(reasoner, meta, arrays, differs, background)
        if meta["at"] is not None:
            reasoner._output = OutputTimes.restored(meta["at"], at, reasoner._at, reasoner._grid.denominator)
            reasoner._retask()
        reasoner.stats = reasoner._idle(0)
        return reasoner

    # Making and refining

    def _make(self, held: Mapping[str, Rows] | None = None) -> None:
        """Plans for the program on the present grid, over a store with the facts that are held."""
        form = self._form = standing(self.program, self.query, self._grid, self._bounded)
        store = Store(list(form.arities.values()), self._dense, np.zeros(1, np.int64))
        for name, rows in (held or {}).items():
            store.insert(self._number(name), rows)
        self._engine = engine(form, self.query, self._symbols.intern, self._symbols.ranks, store)
        self._numbers = {name: i for i, name in enumerate(form.names)}
        self._retask()
        self._at[steps.JUDGED] = -1
        self._at[steps.FORGOTTEN] = store.news

    def _retask(self) -> None:
        """What compiled code has to know of the query and its rules."""
        output, grid = self._output, self._grid
        if output:
            output.fit(grid.denominator)
        self._answer_grid = Grid(self._dense, output.denominator) if output and self._dense else grid
        longest = int(max(self._delays.values()) * grid.denominator * grid.tick)
        self._task = task(self._form, self._engine, self.query, longest, output)

    def _take_over(self, arrays: Mapping[str, NDArray[Any]], ids: Int32s | None) -> None:
        """All that a reasoner with the same rules held, with other numbers for its constants, if any."""
        store = self._engine.store
        store.put(arrays, ids)
        self._names = len(self._symbols)
        self._at[steps.FORGOTTEN] = store.news

    def _rank(self) -> None:
        """Ranks all constants, where rules compare them."""
        if any(rule.comparisons for rule in self._form.rules):
            self._engine.store.ranks = np.asarray(self._symbols.ranks(), np.int64)

    def _derive(self, held: Mapping[str, Rows], known: Dataset) -> None:
        """Facts that were held by other rules, and the background: all that follows is derived from them."""
        self._begin(known)
        self._engine.store.horizon = (NEG_INF, int(max(self._at[NOW], self._at[FRONTIER])))
        for name, rows in held.items():
            queue = np.empty((3 + len(rows.args)) * len(rows) + 1, np.int64)
            end = tables.pack(self._number(name), rows.args, rows.lo, rows.hi, 0, len(rows), queue, 0)
            self._engine.store.work(self._engine.code, queue, int(end))

    def _begin(self, data: Dataset) -> None:
        """What holds before the stream begins: background facts, and rules without a body."""
        store, code = self._engine.store, self._engine.code
        store.horizon = (NEG_INF, NEG_INF)
        if ALWAYS in self._form.arities:
            store.work(code, np.array([self._number(ALWAYS), NEG_INF, POS_INF], np.int64), 3)
        store.evaluate(list(self._engine.axioms), code)
        self._take(self._batch(self._on_grid(data), Clock(NEG_INF, NEG_INF, NEG_INF), fixed=True))

    def _refine(self, denominator: int) -> None:
        """Goes over to a finer grid, once a time comes that is not on the present one."""
        factor = denominator // self._grid.denominator
        held = {name: self._engine.store.rows(i) for i, name in enumerate(self._form.names)}
        later = self._engine.store.deferred()
        self._work = self.work()
        self._grid = Grid(self._dense, denominator)
        for place in (NOW, LAST, CLOSED, FRONTIER, EVALUATED, REPORTED):
            self._at[place] = _finer(int(self._at[place]), factor)
        self._seen = _finer(self._seen, factor)
        self._make({name: Rows(rows.args, *refined(rows.lo, rows.hi, factor)) for name, rows in held.items()})
        store = self._engine.store
        store.defer({pred: Rows(rows.args, *refined(rows.lo, rows.hi, factor)) for pred, rows in later.items()})
        store.meta[tables.NEXT_DUE] = NEG_INF if later else POS_INF

    # From facts to records

    def _on_grid(self, data: Dataset) -> Dataset:
        """A dataset on this reasoner's grid, which is made finer where need be."""
        refuse_arities(self._arities, data, None)
        if not self._dense:
            refuse_fractions(self.program, data)
        elif self._grid.denominator % data.denominator:
            self._refine(lcm(self._grid.denominator, data.denominator))
        return data.rescaled(self._grid.denominator)

    def _batch(
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
        known = len(self._symbols)
        own = own and self._output is not None and self._output.own
        reading = Reading(self._numbers, self._grid, self._delay_of, step, until, own, fixed)
        batch = arrange(data, reading, clock, self._symbols)
        if len(self._symbols) > known:
            self._rank()
        return batch

    def _take(self, batch: Batch) -> None:
        """Facts that are there before time begins."""
        records = batch.todo.records[: batch.first_record].copy()
        self._engine.store.work(self._engine.code, records, len(records))
        self.taken += batch.before

    def _delay_of(self, predicate: str) -> int:
        """The delay that facts of a predicate may have, on the grid."""
        delay = self._delays.get(predicate, self._delays[None])
        return int(delay * self._grid.denominator * self._grid.tick)

    # Steps

    def _clock(self) -> Clock:
        return Clock(int(self._at[NOW]), int(self._at[CLOSED]), self._seen)

    def _fit(self, clock: Time) -> None:
        """Makes the grid fine enough for a time of the clock."""
        if self._dense and not isinstance(clock, float) and self._grid.denominator % clock.denominator:
            self._refine(lcm(self._grid.denominator, clock.denominator))

    def _at_once(self, t: Time, over: bool, data: Dataset | None, came: Clock | None = None, own: bool = True) -> Step:
        """One step at a time of the clock, which never goes back; the facts came while it stood at `came`, if given.

        `own` tells that their times are the stream's own.
        """
        now, closed, seen = self._clock()
        at = NEG_INF if isinstance(t, float) else self._position(t)
        # On the integers a clock between two of them has passed the first.
        over = at >= now and (over or (not isinstance(t, float) and t.denominator > 1 and not self._dense))
        if at >= now:
            now, closed = at, max(closed, at if over else at - 1)
        todo, count, late = self._quiet, 0, _NONE
        if data is not None and len(data):
            clock = Clock(now, came.closed if came else closed, seen)
            batch = self._batch(data, clock, fixed=True, own=own)
            self._take(batch)
            if len(batch.counts):
                todo, count = batch.todo, int(batch.counts[0])
                late = self._late(batch, 0)
        todo.clocks[:], todo.over[:] = now, over
        if now == NEG_INF:
            self.stats = self._idle(0)
            return self.stats
        found, taken, _, violated = self._run(todo, 0, 1)
        finite, endless, nanoseconds, answers = taken[0].tolist()
        self.taken += count
        step = self.stats = Step(now, self._grid, count, finite, endless, nanoseconds, (found, 0, answers), late)
        self._tidy()
        if violated:
            violated.step = step
            raise violated
        return step

    def _complete(self) -> int:
        """The position up to which all answers are known."""
        return int(self._at[EVALUATED if self._form.negations else FRONTIER]) - self._task.ahead

    def _part(self, step: Step, reported: int) -> Step:
        """A step with what holds between two positions, instead of what has ended."""
        until = self._complete()
        ended, _, _ = step.answers.block()
        rows = self._engine.store.rows(self._task.query)
        open_rows = rows.where((rows.hi >= until) & (rows.lo <= until))
        # What ended at the last position of the step before was told then.
        rows = Rows.joined([ended.where(ended.hi < until), open_rows], len(rows.args))
        rows = rows.clipped(reported if reported == NEG_INF else reported + 1, until)
        self._at[REPORTED] = max(until, reported)
        found = Found(self.query, len(rows.args), rows.args.T.ravel(), rows.lo, rows.hi, self._grid, self._symbols)
        self.stats = step.with_answers((found, 0, len(rows)))
        return self.stats

    def _reach(self, batch: Batch, first: int) -> int:
        """The step up to which steps are taken in one call."""
        ends = batch.todo.record_ends
        before = int(ends[first - 1]) if first else batch.first_record
        stop = min(int(np.searchsorted(ends, before + WORDS, "right")), first + STEPS, len(ends))
        words = int(ends[max(stop, first + 1) - 1]) - before
        return stop if self._engine.store.nbytes() <= CHEAP + CHEAP_A_WORD * words else first + 1

    def _mark(self) -> Mark:
        heap = self._output.heap.copy() if self._output else _NOTHING
        return Mark(self._engine.store.copy(), self._at.copy(), heap)

    def _settle(self) -> None:
        """Goes back to the last step that was asked for, if others were taken after it."""
        ahead, self._ahead = self._ahead, None
        if ahead:
            self._engine = replace(self._engine, store=ahead.before.store)
            self._at[:] = ahead.before.at
            if self._output:
                self._output.heap = ahead.before.heap
            self._run(ahead.batch.todo, ahead.first, ahead.shown)

    def _expect(self, last: int) -> None:
        """Gets the output times up to a position ready."""
        if self._output is None or not self._output.given:
            return
        self._output.pull(self._grid.time(last + 1))
        if self._output.denominator != self._task.ratio * self._grid.denominator:
            self._retask()

    def _run(self, todo: Todo, first: int, stop: int) -> tuple[Found, Int64s, int, Inconsistent | None]:
        """Takes steps. Returns their answers, what is noted of them, and up to which step it came, maybe not to all."""
        at, store, code = self._at, self._engine.store, self._engine.code
        if self._output is not None:
            if not self._output.begun:
                self._output.start(self._grid.time(int(todo.clocks[first])))
            self._expect(int(todo.clocks[stop - 1]))
        taken = np.empty((stop, steps.NOTES), np.int64)
        arity = self._task.arity
        at[N_FOUND] = 0
        heap = self._output.heap if self._output else _NOTHING
        step, violated = first, None
        while True:
            at[LATER_END] = store.later_end
            status, step, self._queue, self._following, store.later = steps.take(
                code,
                store.tables(code),
                self._task,
                at,
                todo,
                taken,
                step,
                stop,
                heap,
                self._found,
                self._queue,
                self._following,
                store.later,
            )
            store.later_end = int(at[LATER_END])
            if status == steps.STORE_FULL:
                store.grow()
            elif status == steps.QUEUE_FULL:
                heap = self._make_room(todo, step)
            elif status == steps.ANSWERS_FULL:
                self._found = _larger(self._found, int(at[NEEDED]), arity)
            elif status == steps.SPARSE:
                store.compact()
                at[EMPTY] = 0
            elif status == steps.VIOLATED:
                violated, stop = self._violation(), step + 1
            else:
                break
        self._nanoseconds += int(taken[first:step, steps.TOOK].sum())
        if store.later_end > self._deferred:
            store.defer(store.deferred())
            self._deferred = max(FEW_DEFERRED, 2 * store.later_end)
        count = int(at[N_FOUND])
        args, lo, hi = self._found
        answers = Found(
            self.query,
            arity,
            args[: count * arity].copy(),
            lo[:count].copy(),
            hi[:count].copy(),
            self._answer_grid,
            self._symbols,
        )
        return answers, taken, step, violated

    def _make_room(self, todo: Todo, step: int) -> Int64s:
        """Room for all that a step may put into its queue, and for its output times; returns the heap of these."""
        store = self._engine.store
        records = todo.record_ends[step] - (todo.record_ends[step - 1] if step else 0)
        need = int(records) + store.later_end
        need = max(need, 4 * (len(self._task.plans) + len(self._task.visits)) + steps.ASKED)
        if need > len(self._queue):
            larger = np.empty(max(need, 2 * len(self._queue)), np.int64)
            larger[: len(self._queue)] = self._queue
            self._queue = larger
        if self._output is None:
            return _NOTHING
        times = todo.time_ends[step] - (todo.time_ends[step - 1] if step else 0)
        if self._at[N_TIMES] + times > len(self._output.heap):
            self._output.grow(int(self._at[N_TIMES] + times))
        return self._output.heap

    def _late(self, batch: Batch, step: int) -> Answers:
        """The facts of a step that came too late, which are counted."""
        if step not in batch.late:
            return _NONE
        groups = batch.late[step]
        self.late += len(groups)
        return Answers(len(groups), groups, 0, batch.symbols)

    def _shown(self, batch: Batch, found: Found, taken: Int64s, first: int, stop: int) -> Iterator[Step]:
        """Steps that were taken, one after the other, each noted as it is shown."""
        clocks, counts = batch.todo.clocks[first:stop].tolist(), batch.counts[first:stop].tolist()
        begin = 0
        grid, any_late = self._grid, bool(batch.late)
        rows = zip(clocks, counts, taken[first:stop].tolist(), strict=True)
        for number, (clock, count, (finite, endless, nanoseconds, end)) in enumerate(rows, first):
            late = self._late(batch, number) if any_late else _NONE
            self.taken += count
            self.stats = Step(clock, grid, count, finite, endless, nanoseconds, (found, begin, end), late)
            begin = end
            yield self.stats

    def _tidy(self) -> None:
        """Leaves names behind that nothing holds any more."""
        if len(self._symbols) < 2 * self._names + MANY_NAMES:
            return
        store = self._engine.store
        store.compact()
        used = store.constants(len(self._symbols))
        used[: self._constants] = True
        old, self._symbols = self._symbols, Symbols()
        store.renumber(self._symbols.merge(old, np.flatnonzero(used)))
        self._names = len(self._symbols)
        self._rank()

    def _violation(self) -> Inconsistent | None:
        """The first constraint that is violated. It is said once: that it is violated is held no longer."""
        store, found = self._engine.store, None
        for number in self._task.constraints[::-1].tolist():
            rows = store.rows(number) if store.size(number) else Rows.empty(0)
            if len(rows):
                rule = next(r for r in self._form.rules if r.predicate == self._form.names[number])
                values = [self._symbols.value(int(a)) for a in rows.args[:, 0]]
                when = self._grid.interval(int(rows.lo[0]), int(rows.hi[0]))
                found = Inconsistent(violation(self.program.rules[rule.origin], rule, values, when))
                window.clear(number, store.atoms, store.iv, store.meta)
        if found:
            store.compact()
        return found

    def _number(self, name: str) -> int:
        return self._form.names.index(name)

    def _position(self, t: Time) -> int:
        """The grid position of a time: of the point, of the gap around it, or on the integers of the one before."""
        if isinstance(t, float):
            return POS_INF if t > 0 else NEG_INF
        ticks = t * self._grid.denominator
        return floor(ticks) * self._grid.tick + (1 if self._dense and ticks.denominator > 1 else 0)

    def _idle(self, count: int, answers: tuple[Found, int, int] | None = None, nanoseconds: int = 0) -> Step:
        """A step as things stand."""
        endless, held = (int(self._engine.store.meta[place]) for place in (tables.ENDLESS, tables.HELD))
        none = Found(self.query, 0, np.empty(0, np.int32), _NOTHING, _NOTHING, self._grid, self._symbols), 0, 0
        now = int(self._at[NOW])
        return Step(now, self._grid, count, held - endless, endless, nanoseconds, answers or none, _NONE)


_NOTHING = np.empty(0, np.int64)
_NONE = Answers(0, (), 0, Symbols())


def _quiet() -> Todo:
    """A step in which nothing comes, at a time that is still to be said."""
    time, zero = np.empty(1, np.int64), np.zeros(1, np.int64)
    return Todo(time, np.full(1, NEG_INF), np.zeros(1, np.bool_), _NOTHING, zero, _NOTHING, zero)


def _larger(found: window.Found, count: int, arity: int) -> window.Found:
    """The answers so far, with room for so many and more."""
    size = max(count, 2 * len(found.lo))
    larger = window.Found(np.empty(size * arity, np.int32), np.empty(size, np.int64), np.empty(size, np.int64))
    for old, new in zip(found, larger, strict=True):
        new[: len(old)] = old
    return larger


def _finer(at: int, factor: int) -> int:
    """A position on a grid that is so many times as fine: of a gap, where it ends."""
    return at if abs(at) >= POS_INF else (at + (at & 1)) * factor - (at & 1)
