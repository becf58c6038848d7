"""The streaming reasoner: a standing query over a stream that never ends.

The input is complete up to the frontier F, which moves with the clock, less the delay that facts may have. What comes
is derived from at once, into the future as far as it is known (an interval fact, a diamond, a box in a head), so what
persists costs nothing while time passes. Rules with negation are evaluated stretch by stretch as their bodies become
complete, and only if something changes in the stretch. An interval of the query is an answer once it has ended before
the query's own frontier. Facts that no rule can look back at any more are forgotten.

What is held and where it stands is in `evaluation`; here is what users call, and what they are told of each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import lcm
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from tidelog.analysis.components import strata
from tidelog.analysis.queries import known_predicates, require_known
from tidelog.data.dataset import Dataset
from tidelog.data.notebook import Facts
from tidelog.data.symbols import Symbols
from tidelog.engine.steps import FRONTIER, JUDGED, LAST, NOW, REPORTED
from tidelog.engine.store import Int64s, Rows
from tidelog.language.printer import format_rule
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.reasoning import AnyTime, ends_of, time_of, timeline_of
from tidelog.streaming import given, snapshot
from tidelog.streaming.ahead import Ahead, reach
from tidelog.streaming.answers import Answers, Found, RuleCost, Step
from tidelog.streaming.batch import Batch, Clock
from tidelog.streaming.evaluation import Evaluation, finer
from tidelog.streaming.remembered import Remembered, explained_by
from tidelog.streaming.standing import chosen_memory
from tidelog.streaming.state import pack, unpack
from tidelog.streaming.times import Delay, Times, delays
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import INF, Time

if TYPE_CHECKING:
    from tidelog.proofs.explanation import Explanation


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
        self.memory = memory
        self.late = 0
        self.taken = 0
        #: Whether an answer comes in parts, as far as it is certain, rather than once it has ended.
        self.parts = parts
        #: The facts that came, for `explain`.
        self.remembered = None if remember is None else Remembered(time_of(remember))
        late = delays(delay)
        dense = timeline_of(program, timeline) == "rational"
        data = given.known(program, background)
        require_known([query], known_predicates(program, (predicate for predicate, _ in data.relations)))
        self.dates = data.dates
        fine = [end.denominator for end in (*ends_of(program), *late.values())]
        grid = Grid(dense, lcm(data.denominator, *fine) if dense else 1)
        #: What is held, and where it stands: in the middle of a feed, maybe further than what was shown.
        self.evaluation = Evaluation(program, query, grid, chosen_memory(program, query, grid, memory), late, at)
        self._ahead: Ahead | None = None
        #: Where time stopped, once it has.
        self.stopped: Time = INF
        #: What could not be kept when a state was loaded onto changed rules.
        self.notes: tuple[str, ...] = ()
        self.taken += self.evaluation.begin(data)
        self.stats = self._idle(len(data))
        if self.remembered is not None:
            self.remembered.take(-INF, data, self.stats)

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
        self.evaluation.fit(clock)
        data = self.evaluation.on_grid(data)
        step = self._at_once(clock, False, data)
        if self.remembered is not None:
            self.remembered.take(clock, data, step)
        return Facts(step.answers, self.dates)

    def advance(self, t: AnyTime) -> list[Fact]:
        """The clock is at t, and nothing more comes that holds at or before t, but for what the delay allows."""
        self._settle()
        clock = time_of(t)
        self.evaluation.fit(clock)
        return Facts(self._at_once(clock, True, None).answers, self.dates)

    def held(self) -> dict[str, int]:
        """How many atoms of each predicate are held; what operators remember counts as `(operators)`."""
        self._settle()
        found: dict[str, int] = {}
        for number, name in enumerate(self.evaluation.form.names):
            shown = "(operators)" if name.startswith("$") else name
            found[shown] = found.get(shown, 0) + self.evaluation.store.size(number)
        return found

    def work(self) -> Int64s:
        """What each rule of the program has done since this reasoner was made or loaded: see `RuleCost`."""
        return self.evaluation.work()

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
        seconds = self.evaluation.stepper.nanoseconds / 1e9
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
        evaluation = self.evaluation
        if until is not None:
            evaluation.fit(time_of(until))
        data = given.timed(self.program, data)
        self.dates |= data.dates
        data = evaluation.on_grid(data)
        if self.remembered is not None:
            self.remembered.take(-INF, data)
        grid, symbols, clock = evaluation.grid, evaluation.symbols, evaluation.clock
        length = 0 if step is None else max(1, int(step * grid.denominator * grid.tick))
        last = POS_INF if until is None else evaluation.position(time_of(until))
        batch = evaluation.batch(data, clock, length, last)
        self.taken += evaluation.take_first(batch)
        done = 0
        ahead = True
        while done < len(batch.counts):
            if evaluation.grid is not grid or evaluation.symbols is not symbols:
                # Something else came between two steps, and times or constants have other numbers now.
                factor = evaluation.grid.denominator // grid.denominator
                grid, symbols = evaluation.grid, evaluation.symbols
                clock = Clock(*(finer(at, factor) for at in clock))
                last, length = finer(last, factor), factor * length
                batch = evaluation.batch(evaluation.on_grid(data), clock, length, last)
            stop = reach(batch, done, evaluation.store.nbytes()) if ahead else done + 1
            mark = evaluation.mark() if stop > done + 1 else None
            found, taken, stop, violated = evaluation.run(batch.todo, done, stop)
            mine = self._ahead = None if mark is None else Ahead(mark, batch, done, done)
            try:
                for shown in self._shown(batch, found, taken, done, stop):
                    done += 1
                    if mine:
                        mine.shown = done
                        if done == stop:
                            self._ahead = None
                    if self.remembered is not None:
                        self.remembered.leave_out(shown.late)
                    yield shown
                    if mine and self._ahead is not mine and done < stop:
                        ahead = False  # someone looked at how things stood after this step, so others come one by one
                        break
            finally:
                if mine and self._ahead is mine:
                    self._settle()
            if violated and done == stop:
                raise violated
        evaluation.seen = batch.seen
        evaluation.forget_names()

    def end(self, until: AnyTime | None = None) -> Step:
        """The end of the stream as a step: time stops at the last time that came, or at `until`."""
        self._settle()
        evaluation = self.evaluation
        if until is not None:
            evaluation.fit(time_of(until))
            stop = evaluation.position(time_of(until))
        else:
            stop = int(max(evaluation.at[NOW], evaluation.at[LAST]))
        if stop in (NEG_INF, POS_INF):
            return self.stats
        began = perf_counter_ns()
        found, violated = evaluation.stop(stop)
        self.stopped = evaluation.grid.time(stop)
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
            reasoner.evaluation.restore_times(meta["at"], at)
        reasoner.stats = reasoner._idle(0)
        return reasoner

    # What stages of a pipeline and alerts call

    def take(self, t: Time, data: Dataset, *, closed: bool = False, times: Iterable[Fraction] | None = None) -> Step:
        """Facts have come, each with its time and in any order, and then the clock goes to t: a step.

        More may come at t, unless it is closed. `times` are the stream's own time points, where they are not those of
        these facts.
        """
        self._settle()
        self.evaluation.fit(t)
        self.dates |= data.dates
        data = self.evaluation.on_grid(data)
        if times is not None:
            self.evaluation.note_times(times)
        now, before, seen = self.evaluation.clock
        complete = NEG_INF - 1 if now == NEG_INF else before
        reported = int(self.evaluation.at[REPORTED])
        if self.parts:
            self.evaluation.at[JUDGED] = -1  # what persists has to be told, too
        step = self._at_once(t, closed, data, Clock(now, complete, seen), own=times is None)
        if self.remembered is not None:
            self.remembered.take(t, data, step)
        return self._part(step, reported) if self.parts else step

    def begin(self, t: Time) -> None:
        """Output times that are multiples begin with a stream that begins at t, although facts may come before it."""
        if not isinstance(t, float):
            self.evaluation.start_times(t)

    @property
    def complete(self) -> tuple[Time, bool]:
        """Up to when all answers are known, and whether that time itself is included."""
        at, grid = self.evaluation.complete, self.evaluation.grid
        if at <= NEG_INF:
            return -INF, False
        if grid.dense and at & 1:
            return grid.time(at + 1), False
        return grid.time(at), True

    def begun(self, after: tuple[Time, bool] | None = None) -> tuple[Answers, tuple[Time, bool]]:
        """The intervals of the query that hold up to where all is known, and have not been seen to end there; of those
        that began after a time, if given. Second, up to when all is known, and whether that time is included."""
        self._settle()
        evaluation, grid, since = self.evaluation, self.evaluation.grid, NEG_INF - 1
        if after is not None and not isinstance(after[0], float):
            ticks = int(after[0] * grid.denominator) * grid.tick
            since = ticks if after[1] else ticks - 1
        rows = evaluation.holding(evaluation.complete, since)
        found = evaluation.answers(rows)
        # Where evaluation was put off, nothing begins or ends.
        frontier = int(evaluation.at[FRONTIER])
        if frontier <= NEG_INF:
            return Answers(0, found, 0, found.symbols), (-INF, False)
        known = frontier - evaluation.task.ahead
        included = grid.dense and not known & 1
        return Answers(len(rows), found, 0, found.symbols), (grid.time(known if included else known + 1), included)

    def _part(self, step: Step, reported: int) -> Step:
        """A step with what holds between two positions, instead of what has ended."""
        evaluation = self.evaluation
        until = evaluation.complete
        ended, _, _ = step.answers.block()
        rows = evaluation.holding(until)
        # What ended at the last position of the step before was told then.
        rows = Rows.joined([ended.where(ended.hi < until), rows], len(rows.args))
        rows = rows.clipped(reported if reported == NEG_INF else reported + 1, until)
        evaluation.at[REPORTED] = max(until, reported)
        self.stats = step.with_answers((evaluation.answers(rows), 0, len(rows)))
        return self.stats

    # Steps

    def _at_once(self, t: Time, over: bool, data: Dataset | None, came: Clock | None = None, own: bool = True) -> Step:
        """One step at a time of the clock, which never goes back; the facts came while it stood at `came`, if given.

        `own` tells that their times are the stream's own.
        """
        evaluation, grid = self.evaluation, self.evaluation.grid
        now, closed, seen = evaluation.clock
        at = NEG_INF if isinstance(t, float) else evaluation.position(t)
        # On the integers a clock between two of them has passed the first.
        over = at >= now and (over or (not isinstance(t, float) and t.denominator > 1 and not grid.dense))
        if at >= now:
            now, closed = at, max(closed, at if over else at - 1)
        todo, count, late = evaluation.quiet, 0, _NONE
        if data is not None and len(data):
            clock = Clock(now, came.closed if came else closed, seen)
            batch = evaluation.batch(data, clock, fixed=True, own=own)
            self.taken += evaluation.take_first(batch)
            if len(batch.counts):
                todo, count = batch.todo, int(batch.counts[0])
                late = self._late(batch, 0)
        todo.clocks[:], todo.over[:] = now, over
        if now == NEG_INF:
            self.stats = self._idle(0)
            return self.stats
        found, taken, _, violated = evaluation.run(todo, 0, 1)
        finite, endless, nanoseconds, answers = taken[0].tolist()
        self.taken += count
        step = self.stats = Step(now, grid, count, finite, endless, nanoseconds, (found, 0, answers), late)
        evaluation.forget_names()
        if violated:
            violated.step = step
            raise violated
        return step

    def _settle(self) -> None:
        """Goes back to the last step that was asked for, if others were taken after it."""
        ahead, self._ahead = self._ahead, None
        if ahead:
            ahead.settle(self.evaluation)

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
        grid, any_late = self.evaluation.grid, bool(batch.late)
        rows = zip(clocks, counts, taken[first:stop].tolist(), strict=True)
        for number, (clock, count, (finite, endless, nanoseconds, end)) in enumerate(rows, first):
            late = self._late(batch, number) if any_late else _NONE
            self.taken += count
            self.stats = Step(clock, grid, count, finite, endless, nanoseconds, (found, begin, end), late)
            begin = end
            yield self.stats

    def _idle(self, count: int, answers: tuple[Found, int, int] | None = None, nanoseconds: int = 0) -> Step:
        """A step as things stand."""
        evaluation = self.evaluation
        finite, endless = evaluation.held
        none = evaluation.answers(Rows.empty(0)), 0, 0
        now = int(evaluation.at[NOW])
        return Step(now, evaluation.grid, count, finite, endless, nanoseconds, answers or none, _NONE)


_NONE = Answers(0, (), 0, Symbols())
