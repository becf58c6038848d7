"""The streaming reasoner: a standing query over a stream that never ends.

The input is complete up to the frontier F, which moves with the clock, less the delay that facts may have. What comes
is derived from at once, into the future as far as it is known (an interval fact, a diamond, a box in a head), so what
persists costs nothing while time passes. Rules with negation are evaluated stretch by stretch as their bodies become
complete, and only if something changes in the stretch. An interval of the query is an answer once it has ended before
the query's own frontier. Facts that no rule can look back at any more are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from math import floor, lcm
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from tidelog.analysis.components import strata
from tidelog.analysis.flatten import ALWAYS, VIOLATION
from tidelog.analysis.queries import known_predicates, require_known
from tidelog.data.columns import refined
from tidelog.data.dataset import Dataset
from tidelog.data.symbols import Symbols
from tidelog.engine import tables, window
from tidelog.engine.store import Int64s, Rows, Store
from tidelog.language.facts import parse_fact
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.language.times import parse_time
from tidelog.reasoning import (
    Inconsistent,
    arities_of,
    ends_of,
    refuse_arities,
    refuse_fractions,
    timeline_of,
    violation,
)
from tidelog.streaming import snapshot
from tidelog.streaming.answers import Answers, Group, Step
from tidelog.streaming.batch import Batch, arrange
from tidelog.streaming.standing import Engine, Standing, chosen_memory, engine, standing
from tidelog.streaming.state import pack, unpack
from tidelog.streaming.times import OutputTimes, Times, duration
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import INF, Interval, Time

AnyTime = Fraction | int | float | str
#: How late facts may come: for all predicates, or by predicate (None: all others).
Delay = Fraction | int | float | str | Mapping[str | None, Fraction | int | float | str]

_NOTHING = np.empty(0, np.int64)
#: With fewer facts than this, every step forgets; with more, every so many new ones.
SMALL = 4096


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
    ) -> None:
        strata(program.rules)
        self.program = program
        self.query = query
        self.memory = memory
        self.late = 0
        self.taken = 0
        #: Whether an answer comes in parts, as far as it is certain, rather than once it has ended.
        self.parts = parts
        self._delays = delays(delay)
        self._dense = timeline_of(program, timeline) == "rational"
        self._output = None if at is None else OutputTimes(at)
        #: Positions of the clock, and of the last time in the input, ends of intervals included.
        self._now = self._last = NEG_INF
        data = background or Dataset()
        if program.facts:
            data = data | Dataset.from_facts(program.facts)
        if program.temporal:
            data = data.timed(program.temporal.temporal)
        require_known([query], known_predicates(program, (predicate for predicate, _ in data.relations)))
        self.dates = data.dates
        self._symbols = Symbols()
        fine = [end.denominator for end in (*ends_of(program), *self._delays.values())]
        self._grid = Grid(self._dense, lcm(data.denominator, *fine) if self._dense else 1)
        self._bounded = chosen_memory(program, query, self._grid, memory)
        #: Everything at or before this position has come, but for what the delay allows.
        self._closed = NEG_INF
        self._frontier = self._evaluated = self._reported = NEG_INF
        self._next_end = self._next_change = self._next_due = POS_INF
        #: The numbers of new parts when answers were last looked for, negations evaluated, and facts forgotten.
        self._answered = self._judged = self._forgotten = 0
        self._held = (0, 0)
        self._form: Standing
        self._engine: Engine
        #: What could not be kept when a state was loaded onto changed rules.
        self.notes: tuple[str, ...] = ()
        self._make()
        self._begin(data)
        self.stats = self._record(len(data), [], [], 0.0)

    # What users call

    def push(self, t: AnyTime, facts: Iterable[str | Fact] | Dataset = ()) -> list[Fact]:
        """The clock is at t, and facts come; those without a time hold at t. More may come at t.

        Returns the answers that have become certain.
        """
        clock = _time(t)
        data = facts if isinstance(facts, Dataset) else Dataset.from_facts(self._read(fact, clock) for fact in facts)
        if isinstance(facts, Dataset) and self.program.temporal:
            data = data.timed(self.program.temporal.temporal)
        self._fit(clock)
        batch = self._batch(data)
        self._set(clock, False)
        late = batch.lo <= self._closed - self._delay_of(batch)
        return list(self._taken(batch, late).answers)

    def advance(self, t: AnyTime) -> list[Fact]:
        """The clock is at t, and nothing more comes that holds at or before t, but for what the delay allows."""
        return list(self.take(_time(t), Dataset(), closed=True).answers)

    def take(self, t: Time, data: Dataset, *, closed: bool = False, times: Iterable[Fraction] | None = None) -> Step:
        """Facts have come, each with its time and in any order, and then the clock goes to t: a step.

        More may come at t, unless it is closed. `times` are the stream's own time points, where they are not those of
        these facts.
        """
        self._fit(t)
        batch = self._batch(data)
        late = (batch.lo <= self._closed - self._delay_of(batch)) & (self._now > NEG_INF)
        self._set(t, closed)
        if times is not None and self._output is not None:
            self._output.note(times)
        return self._taken(batch, late, own=times is None)

    def begin(self, t: Time) -> None:
        """Output times that are multiples begin with a stream that begins at t, although facts may come before it."""
        if self._output is not None and not isinstance(t, float):
            self._output.start(t)

    def finish(self, until: AnyTime | None = None) -> list[Fact]:
        """The end of the stream: the last answers, and what is still open, with a closed end."""
        return list(self.end(until).answers)

    def feed(self, data: Dataset, *, step: Fraction | None = None, until: AnyTime | None = None) -> Iterator[Step]:
        """Facts in the order in which they came (or, where that is not known, of time), step by step.

        A step is a new time, or all times in the same multiple of `step`; what begins after `until` is left out.
        """
        if self.program.temporal:
            data = data.timed(self.program.temporal.temporal)
        self.dates |= data.dates
        batch = self._batch(data)
        if until is not None:
            batch = batch.where(batch.lo <= self._position(_time(until)))
        if not len(batch):
            return
        moments = np.where(batch.begin == NEG_INF, NEG_INF, batch.begin * self._grid.tick)
        clocks = np.maximum.accumulate(np.maximum(moments, self._now))
        late = batch.lo <= np.maximum(clocks - 1, self._closed) - self._delay_of(batch)
        late &= clocks > NEG_INF
        turns = clocks if step is None else -(-clocks // max(1, int(step * self._grid.denominator * self._grid.tick)))
        changes = np.flatnonzero(turns[1:] != turns[:-1]) + 1
        groups = list(pairwise([0, *changes.tolist(), len(batch)]))
        if late.any() or clocks[0] == NEG_INF:
            for first, last in groups:
                part = batch.between(first, last)
                if clocks[last - 1] == NEG_INF:
                    self._take(part)
                else:
                    self._moved(int(clocks[last - 1]), False)
                    yield self._taken(part, late[first:last])
            return
        queue, offsets = batch.records()
        for first, last in groups:
            self._moved(int(clocks[last - 1]), False)
            self._note(batch.begin[first:last], batch.stop[first:last])
            begin, end = int(offsets[first]), int(offsets[last])
            yield self._step(queue[begin:end], end - begin, last - first, [])

    def end(self, until: AnyTime | None = None) -> Step:
        """The end of the stream as a step: time stops at the last time that came, or at `until`."""
        stop = max(self._now, self._last) if until is None else self._position(_time(until))
        if stop in (NEG_INF, POS_INF):
            return self.stats
        begun = perf_counter()
        if self._output is not None:
            self._output.start(self._grid.time(stop))
        frontier = stop + self._form.bounds.delay[self.query]
        self._work(_NOTHING, 0, frontier, frontier)
        if self._engine.negations and self._evaluated < frontier:
            self._evaluate(frontier)
        if self._output is not None:
            groups = self._points(stop)
        else:
            rows = self._engine.store.rows(self._number(self.query))
            rows = rows.where((rows.hi >= self._reported) & (rows.lo <= stop)).clipped(NEG_INF, stop)
            groups = _by_end(self.query, rows, self._grid)
        self._reported = POS_INF
        self._now = max(self._now, stop)
        self.stats = self._record(0, groups, [], perf_counter() - begun)
        return self.stats

    @property
    def complete(self) -> tuple[Time, bool]:
        """Up to when all answers are known, and whether that time itself is included."""
        at = (self._evaluated if self._engine.negations else self._frontier) - self._ahead
        if at <= NEG_INF:
            return -INF, False
        if self._dense and at & 1:
            return self._grid.time(at + 1), False
        return self._grid.time(at), True

    def held(self) -> dict[str, int]:
        """How many atoms of each predicate are held; what operators remember counts as `(operators)`."""
        found: dict[str, int] = {}
        for number, name in enumerate(self._form.names):
            shown = "(operators)" if name.startswith("$") else name
            found[shown] = found.get(shown, 0) + self._engine.store.size(number)
        return found

    def save(self) -> bytes:
        """The whole state, from which `load` goes on exactly."""
        return pack(*snapshot.taken(self))

    @staticmethod
    def load(
        state: bytes,
        program: Program | None = None,
        *,
        query: str | None = None,
        changed: bool = False,
        at: Times | None = None,
    ) -> Reasoner:
        """A reasoner that goes on where the saved one stopped.

        With `changed`, `program` may have other rules: what can be kept is kept, and `notes` says what cannot. Output
        times that were given one by one have to be given again as `at`.
        """
        meta, arrays = unpack(state)
        rules = program or snapshot.program_of(meta)
        query = query or meta["query"]
        differs = snapshot.is_changed(meta, rules, query)
        if differs and not changed:
            raise snapshot.other_program(meta, rules)
        delays = {name: Fraction(delay) for name, delay in meta["delays"]}
        reasoner = Reasoner(rules, query, timeline=meta["timeline"], delay=delays, memory=meta["memory"])
        reasoner.parts = meta.get("parts", False)
        if meta["at"] is not None:
            reasoner._output = OutputTimes.restored(meta["at"], at)
        reasoner._symbols = Symbols()
        reasoner.notes = snapshot.put_back(reasoner, meta, arrays, differs)
        reasoner.stats = reasoner._record(0, [], [], 0.0)
        return reasoner

    # Making and refining

    def _make(self, held: Mapping[str, Rows] | None = None) -> None:
        """Plans for the program on the present grid, over a store with the facts that are held."""
        self._form = standing(self.program, self.query, self._grid, self._bounded)
        store = Store(list(self._form.arities.values()), self._dense, np.zeros(1, np.int64))
        for name, rows in (held or {}).items():
            store.insert(self._number(name), rows)
        self._engine = engine(self._form, self.query, self._symbols.intern, self._symbols.ranks, store)
        self._retention = np.array([self._form.bounds.retention[name] for name in self._form.names], np.int64)
        self._longest = int(max(self._delays.values()) * self._grid.denominator * self._grid.tick)
        self._ahead = self._form.bounds.delay[self.query]
        self._persisting = np.array([name in self._form.persisting for name in self._form.names], np.bool_)
        self._constraints = [i for i, name in enumerate(self._form.names) if name.startswith(VIOLATION)]
        self._next_end = self._next_change = self._next_due = NEG_INF
        self._answered = self._judged = -1
        self._forgotten = store.news

    def _put(self, held: Mapping[str, Rows], later: Int64s) -> None:
        """Facts that were held, and records that wait."""
        self._make(held)
        store = self._engine.store
        store.later, store.later_end = np.append(later, 0), len(later)
        self._forget()

    def _derive(self, held: Mapping[str, Rows]) -> None:
        """Facts that were held by other rules: all that follows is derived from them."""
        self._begin(Dataset())
        self._engine.store.horizon = (NEG_INF, max(self._now, self._frontier))
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
        self._take(self._batch(data))

    def _refine(self, denominator: int) -> None:
        """Goes over to a finer grid, once a time comes that is not on the present one."""
        factor = denominator // self._grid.denominator
        held = {name: self._engine.store.rows(i) for i, name in enumerate(self._form.names)}
        later = self._finer_records(factor)
        self._grid = Grid(self._dense, denominator)
        for position in snapshot.POSITIONS:
            at = getattr(self, position)
            if abs(at) < POS_INF:
                setattr(self, position, (at + (at & 1)) * factor - (at & 1))
        self._put({name: Rows(rows.args, *refined(rows.lo, rows.hi, factor)) for name, rows in held.items()}, later)

    def _finer_records(self, factor: int) -> Int64s:
        """The records that wait, on a finer grid."""
        store, at = self._engine.store, 0
        later = store.later[: store.later_end].copy()
        while at < len(later):
            lo, hi = refined(later[at + 1 : at + 2], later[at + 2 : at + 3], factor)
            later[at + 1], later[at + 2] = lo[0], hi[0]
            at += 3 + int(store.preds[later[at], tables.ARITY])
        return later

    # From facts to records

    def _read(self, fact: str | Fact, clock: Time) -> Fact:
        if isinstance(fact, Fact):
            return fact
        temporal = self.program.temporal.temporal if self.program.temporal else frozenset()
        read, dated = parse_fact(fact, "<fact>", temporal=temporal)
        self.dates |= dated
        if read.interval == Interval.always() and not isinstance(clock, float):
            return Fact(read.predicate, read.args, Interval.point(clock))
        return read

    def _batch(self, data: Dataset) -> Batch:
        """The rows of a dataset on this reasoner's grid, with its constants, in order of arrival."""
        refuse_arities(dict(arities_of(self.program)), data, None)
        if not self._dense:
            refuse_fractions(self.program, data)
        elif self._grid.denominator % data.denominator:
            self._refine(lcm(self._grid.denominator, data.denominator))
        known = len(self._symbols)
        ids = self._symbols.merge(data.symbols)
        if len(self._symbols) > known and any(rule.comparisons for rule in self._form.rules):
            self._engine.store.ranks = np.asarray(self._symbols.ranks(), np.int64)
        relations = list(data.rescaled(self._grid.denominator).relations.values())
        return arrange(relations, ids, {name: i for i, name in enumerate(self._form.names)}, self._dense)

    def _take(self, batch: Batch) -> None:
        """Facts that are there before time begins."""
        queue, offsets = batch.records()
        self._engine.store.work(self._engine.code, queue, int(offsets[-1]))
        self.taken += len(batch)

    def _delay_of(self, batch: Batch) -> Int64s:
        """The delay that each fact may have, on the grid."""
        scale = self._grid.denominator * self._grid.tick
        delays = [int(self._delays.get(name, self._delays[None]) * scale) for name in batch.names]
        return np.array([*delays, 0], np.int64)[batch.relation]

    # Steps

    def _fit(self, clock: Time) -> None:
        """Makes the grid fine enough for a time of the clock."""
        if self._dense and not isinstance(clock, float) and self._grid.denominator % clock.denominator:
            self._refine(lcm(self._grid.denominator, clock.denominator))

    def _set(self, clock: Time, closed: bool) -> None:
        """Sets the clock, which never goes back."""
        if isinstance(clock, float):
            return
        # On the integers a clock between two of them has passed the first.
        self._moved(self._position(clock), closed or (clock.denominator > 1 and not self._dense))

    def _moved(self, now: int, closed: bool) -> None:
        """Moves the clock to a position, and with it what counts as complete."""
        if now >= self._now:
            self._now = now
            self._closed = max(self._closed, now if closed else now - 1)
            if self._output is not None:
                self._output.start(self._grid.time(now))

    def _taken(self, batch: Batch, late: NDArray[np.bool_], own: bool = True) -> Step:
        """A step with the facts of a batch that are not too late."""
        dropped = batch.where(late).groups(self._grid) if late.any() else []
        batch = batch.where(~late)
        self.late += len(dropped)
        self._note(batch.begin, batch.stop, own)
        queue, offsets = batch.records()
        return self._step(queue, int(offsets[-1]), len(batch), dropped)

    def _step(self, queue: Int64s, end: int, count: int, dropped: list[Group]) -> Step:
        """Takes records in, and gives what is certain now that time has come to the clock."""
        begun = perf_counter()
        self.taken += count
        if self._now == NEG_INF:
            return self._record(count, [], dropped, perf_counter() - begun)
        frontier = max(self._closed - self._longest, self._frontier)
        self._work(queue, end, frontier, max(self._now, frontier))
        # Where evaluation was put off nothing begins or ends, so no answer does; what persists stands still till then.
        groups = self._certain((self._evaluated if self._engine.negations else frontier) - self._ahead)
        self._forget()
        self.stats = self._record(count, groups, dropped, perf_counter() - begun)
        return self.stats

    def _work(self, queue: Int64s, end: int, frontier: int, horizon: int) -> None:
        """Derives all that follows from new records, and from time having come to the frontier."""
        store, code = self._engine.store, self._engine.code
        store.horizon = (NEG_INF, horizon)
        if self._next_due <= horizon:
            waiting = np.empty(store.later_end + 1, np.int64)
            taken, store.later_end, _ = window.due(store.later, store.later_end, horizon, store.preds, waiting)
            queue, end = np.concatenate([waiting[:taken], queue[:end]]), taken + end
        if end:
            store.work(code, queue, end)
        self._frontier = frontier
        if self._engine.negations and frontier > self._evaluated:
            asked = self.parts or (self._output is not None and self._output.pending(self._come(frontier)))
            if asked or frontier >= self._next_change or store.news != self._judged:
                self._evaluate(frontier)
                self._judged = store.news
        if store.later_end:
            waiting = np.empty(store.later_end + 1, np.int64)
            taken, store.later_end, self._next_due = window.due(
                store.later, store.later_end, NEG_INF, store.preds, waiting
            )
        else:
            self._next_due = POS_INF
        self._refuse_violations()

    def _evaluate(self, frontier: int) -> None:
        """Evaluates the rules with negation on the stretch that has become complete, lowest component first."""
        store = self._engine.store
        longest = 0
        for group in self._engine.negations:
            plans = [plan for plan, _ in group]
            windows = [
                (NEG_INF if self._evaluated == NEG_INF else self._evaluated - wait + 1, frontier - wait)
                for _, wait in group
            ]
            news = -1
            while news != store.news:  # once more where the component is recursive and its rules may feed each other
                news = store.news
                store.evaluate(plans, self._engine.code, windows)
            longest = max(longest, *(wait for _, wait in group))
        self._evaluated = frontier
        self._next_change = int(
            window.next_change(frontier - longest, frontier, self._persisting, store.atoms, store.iv, store.meta)
        )

    def _certain(self, frontier: int) -> list[Group]:
        """The answers that have become certain now that the query is complete up to a position."""
        if self._output is not None:
            return self._points(frontier)
        store = self._engine.store
        groups: list[Group] = []
        if self.parts:
            if frontier > self._reported:
                first = self._reported if self._reported == NEG_INF else self._reported + 1
                rows = store.rows(self._number(self.query)).clipped(first, frontier)
                groups, self._reported = _by_end(self.query, rows, self._grid), frontier
            return groups
        if frontier > self._reported and (store.news != self._answered or frontier > self._next_end):
            number = self._number(self.query)
            arity = self._form.arities[self.query]
            args, lo, hi, following = window.ended(
                number, self._reported, frontier, arity, store.atoms, store.args, store.iv, store.meta
            )
            self._next_end = int(following)
            groups = _by_end(self.query, Rows(args, lo, hi), self._grid)
            self._reported, self._answered = frontier, store.news
        return groups

    def _points(self, frontier: int) -> list[Group]:
        """The answers at the output times that have come."""
        assert self._output is not None
        store, number = self._engine.store, self._number(self.query)
        groups: list[Group] = []
        arity = self._form.arities[self.query]
        # A time between two points of the grid is in the gap between them; the answer is given on a grid that has it.
        for t in self._output.taken(self._come(frontier)):
            at = self._position(t)
            if not self._dense and t.denominator > 1:
                continue
            args = window.holding(number, at, arity, store.atoms, store.args, store.iv, store.meta)
            finer = Grid(self._dense, lcm(self._grid.denominator, t.denominator) if self._dense else 1)
            when = np.full(args.shape[1], int(t * finer.denominator) * finer.tick, np.int64)
            groups.append(Group(self.query, Rows(args, when, when), finer))
        return groups

    def _come(self, frontier: int) -> Callable[[Fraction], bool]:
        """Tells of a time whether its position is at or before the frontier."""
        if frontier in (NEG_INF, POS_INF):
            return lambda _: frontier == POS_INF
        if self._dense and not frontier & 1:
            last = self._grid.time(frontier)
            return lambda t: t <= last
        following = self._grid.time(frontier + 1)
        return lambda t: t < following

    def _note(self, begin: Int64s, stop: Int64s, own: bool = True) -> None:
        """Notes the last time, and the stream's own time points: the ends of all its facts, in ticks."""
        if not len(begin):
            return
        least, most = int(begin.min()), int(stop.max())
        if most == POS_INF:
            most = int(np.where(stop == POS_INF, begin, stop).max())
        if most > NEG_INF:
            self._last = max(self._last, most * self._grid.tick)
        if own and self._output is not None and self._output.own is not None:
            ends = [least] if least == most else np.unique(np.concatenate([begin, stop])).tolist()
            self._output.note(Fraction(t, self._grid.denominator) for t in ends if NEG_INF < t < POS_INF)

    def _forget(self) -> None:
        """Drops what no rule can look back at any more."""
        store = self._engine.store
        new = store.news - self._forgotten
        if self._frontier == NEG_INF or (sum(self._held) > SMALL and new < sum(self._held) // 8):
            return
        self._forgotten = store.news
        base = min(self._frontier, self._evaluated) if self._engine.negations else self._frontier
        if base == NEG_INF:
            return
        finite, endless, empty = window.forget(store.atoms, store.iv, store.meta, base - self._retention)
        self._held = int(finite), int(endless)
        if empty > 1024 and empty > finite + endless:
            self._compact()

    def _compact(self) -> None:
        """Leaves atoms behind that hold nowhere any more."""
        old, due = self._engine.store, self._next_due
        self._make({name: old.rows(i) for i, name in enumerate(self._form.names)})
        self._engine.store.later, self._engine.store.later_end, self._next_due = old.later, old.later_end, due

    def _refuse_violations(self) -> None:
        store = self._engine.store
        for number in self._constraints:
            rows = store.rows(number) if store.size(number) else Rows.empty(0)
            if len(rows):
                rule = next(r for r in self._form.rules if r.predicate == self._form.names[number])
                values = [self._symbols.value(int(a)) for a in rows.args[:, 0]]
                when = self._grid.interval(int(rows.lo[0]), int(rows.hi[0]))
                raise Inconsistent(violation(self.program.rules[rule.origin], rule, values, when))

    def _number(self, name: str) -> int:
        return self._form.names.index(name)

    def _position(self, t: Time) -> int:
        """The grid position of a time: of the point, of the gap around it, or on the integers of the one before."""
        if isinstance(t, float):
            return POS_INF if t > 0 else NEG_INF
        ticks = t * self._grid.denominator
        return floor(ticks) * self._grid.tick + (1 if self._dense and ticks.denominator > 1 else 0)

    def _record(self, count: int, groups: list[Group], late: list[Group], seconds: float) -> Step:
        t: Time = -INF if self._now == NEG_INF else self._grid.time(self._now)
        answers = Answers(groups, self._symbols)
        finite, endless = self._held
        finite += self._engine.store.news - self._forgotten  # what has come since facts were last forgotten
        return Step(t, count, finite, endless, answers, Answers(late, self._symbols), seconds)


def _by_end(name: str, rows: Rows, grid: Grid) -> list[Group]:
    """The rows in groups that end together, in time order."""
    ends = np.unique(rows.hi)
    if len(ends) <= 1:
        return [Group(name, rows, grid)] if len(rows) else []
    return [Group(name, rows.where(rows.hi == end), grid) for end in ends]


def _time(t: AnyTime) -> Time:
    if isinstance(t, str):
        return parse_time(t)[0]
    return t if isinstance(t, float) and t in (INF, -INF) else Fraction(t)


def delays(delay: Delay) -> dict[str | None, Fraction]:
    """The delay of each predicate that has its own, and under None that of all others."""
    if isinstance(delay, Mapping):
        return {None: Fraction(0)} | {name: duration(value) for name, value in delay.items()}
    return {None: duration(delay)}
