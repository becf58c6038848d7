"""The streaming reasoner: a standing query over a stream that never ends.

The input is complete up to the frontier F, which is the clock minus the allowed delay. Every fact that arrives is
derived from at once, as far into the future as its consequences are known (an interval fact, a diamond, a box in a
head), so facts that persist cost nothing while time passes. Rules with negation are evaluated span by span as their
bodies become complete, and only where something changes in the span. An interval of the query is an answer once it has
ended before the query's own frontier. Facts that no rule can look back at any more are forgotten.

`query_evaluation` holds the facts and the position in the stream; this module is what users call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Self, Unpack

from tidelog.analysis.query_names import known_predicates, require_known_predicates
from tidelog.compiler.choose_grid import find_grid
from tidelog.compiler.compiled_program import Memory, Target
from tidelog.compiler.passes import check_program
from tidelog.compiler.prepare_facts import with_program_facts
from tidelog.data.data_frames import DataLike, FactsLike, to_dataset
from tidelog.data.dataset import Dataset
from tidelog.data.time_units import require_same_unit
from tidelog.engine.fact_store import Int64s, Rows
from tidelog.engine.stream_kernel import JUDGED, LAST, NOW, REPORTED
from tidelog.language.calendar_predicates import require_no_calendar
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.program import Program, require_program
from tidelog.language.program_json import program_from_json
from tidelog.language.syntax import Fact
from tidelog.language.time_like import DurationLike, TimeLike, to_dated_time, to_retention, to_time
from tidelog.streaming import snapshot
from tidelog.streaming.answers import AnswerColumns, AnswerList, Answers, RuleCost, StepColumns, StreamStep, share_costs
from tidelog.streaming.compiled_query import choose_memory
from tidelog.streaming.completeness import compute_complete_bound, find_certain_pieces, find_open_intervals
from tidelog.streaming.corrections import Corrections
from tidelog.streaming.fact_input import read_facts
from tidelog.streaming.fact_log import FactLog, explain_from_log
from tidelog.streaming.feeding import NO_FACTS, count_late, feed_in_order
from tidelog.streaming.output_times import (
    DelayLike,
    OutputTimesLike,
    PastLengths,
    parse_corrections,
    parse_delays,
    read_past_lengths,
)
from tidelog.streaming.query_evaluation import Evaluation
from tidelog.streaming.speculation import Speculation
from tidelog.streaming.state_format import pack, unpack
from tidelog.streaming.step_layout import Clock
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.interval import INF, Bound, Time, TimelineName

if TYPE_CHECKING:
    from tidelog.proofs.explanation import Explanation
    from tidelog.streaming.corrected_steps import AheadInOrder
    from tidelog.streaming.correction_windows import Window


class Reasoner:
    """A standing query over a stream of facts; a `Session` whose answers are facts.

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
        timeline: TimelineName | None = None,
        background: DataLike | None = None,
        delay: DelayLike = 0,
        memory: Memory | None = None,
        at: OutputTimesLike | None = None,
        **lengths: Unpack[PastLengths],
    ) -> None:
        """Prepare the query `query` over the rules of `program`.

        `background` holds facts that are known before the stream begins. `delay` is how late facts may arrive, for all
        predicates or by predicate. `memory="bounded"` insists on the bounded form. `at` asks for answers at points of
        time instead of intervals: `"input"`, `"every:S"` (with an offset, `"every:S+O"`), `"file:PATH"` or increasing
        times. `remember` keeps the facts of that length of time (or `"inf"`: all) for `explain`, beyond what the rules
        need. `corrections` is for how long late facts and deletions (`-P(a)@3`) are taken: answers are then an
        `AnswerChange` each, added or taken back.
        """
        require_program(program)
        remember, corrections = read_past_lengths(lengths)
        check_program(program, Target("stream", (query,), timeline))
        self.program, self.query, self.memory = program, query, memory
        #: How many facts arrived later than the delay allows.
        self.late_count = 0
        #: How many facts were taken, background included.
        self.facts_taken = 0
        #: Whether answers are reported piece by piece, as far as they are certain, instead of once they have ended.
        self.partial = False
        #: The facts that arrived, for `explain`.
        self.fact_log = None if remember is None else FactLog(to_retention(remember))
        delays = parse_delays(delay)
        data = with_program_facts(program, background)
        require_known_predicates([query], known_predicates(program, (predicate for predicate, _ in data.relations)))
        length = parse_corrections(corrections, delays, memory)
        if length is not None:
            require_no_calendar(program.rules, "a stream with corrections")
        waits = [*delays.values(), *([] if length is None else [length])]
        grid = find_grid(program, timeline, [data.denominator, *(wait.denominator for wait in waits)])
        #: The facts held and the position in the stream. During `feed` it may be ahead of the last step given out.
        kept = "generic" if length is not None else memory
        self.evaluation = Evaluation(program, query, grid, choose_memory(program, query, grid, kept), delays, at)
        #: Whether times were given as dates, so that answers are printed with dates.
        self.dates = self.evaluation.dates = data.dates
        #: Steps that were evaluated ahead, if any, and how often the stream was continued by other calls than `feed`.
        self.speculation: Speculation | AheadInOrder | Window | None = None
        self.version = 0
        #: Where time stopped, once the stream has ended.
        self.stopped_at: Time = INF
        #: What could not be kept when a state was loaded onto changed rules.
        self.notes: tuple[str, ...] = ()
        self.facts_taken += self.evaluation.begin(data)
        #: The assertions and answers that can still be corrected, if corrections are taken.
        self.corrections = None if length is None else Corrections(self.evaluation, length)
        #: The record of the last step.
        self.last_step: StreamStep = self.idle_step(len(data))
        if self.fact_log is not None:
            self.fact_log.add(-INF, data, self.last_step)

    # The session: push, advance, finish, save, load

    def push(self, t: TimeLike, facts: FactsLike = ()) -> AnswerList:
        """Advance the clock to t and add facts; texts and dataframes without a time hold at t. More may follow at t.

        Returns the answers that became certain. Facts that arrive later than the delay allows are counted in
        `late_count` and set aside, never mixed in.
        """
        self.roll_back()
        clock, dated = self._read_clock(t)
        data = read_facts(self.program, facts, clock)
        self.note_dates(dated or data.dates)
        step = self._take_facts(clock, False, data)
        if self.fact_log is not None:
            self.fact_log.add(clock, data, step)
        return AnswerList(step, self.dates)

    def advance(self, t: TimeLike) -> AnswerList:
        """Advance the clock to t and close t, except as the delay allows; return the answers that became certain."""
        self.roll_back()
        return AnswerList(self._take_facts(self._read_clock(t)[0], True, None), self.dates)

    def _read_clock(self, t: TimeLike) -> tuple[Time, bool]:
        """Return a time of the clock, and whether it is a date; raise if the clock had another unit before."""
        clock, dated = to_dated_time(t)
        now = int(self.evaluation.at[NOW])
        if dated != self.dates and now > NEG_INF:
            require_same_unit(clock, self.evaluation.grid.to_time(now), dates_before=self.dates)
        return clock, dated

    def _take_facts(self, t: Time, over: bool, data: Dataset | None) -> StreamStep:
        """Advance the clock to t and add facts, with corrections or without."""
        self.version += 1
        if self.corrections is not None:
            from tidelog.streaming.corrected_steps import take_pushed_step

            return take_pushed_step(self, t, over, data)
        self.evaluation.fit(t)
        return self._run_step(t, over, None if data is None else self.evaluation.on_grid(data))

    def finish(self, until: TimeLike | None = None) -> AnswerList:
        """End the stream, at `until` or else at the last time seen.

        Returns the last answers. Intervals that still hold are returned with a closed end.
        """
        return AnswerList(self.finish_step(until), self.dates)

    def save(self) -> bytes:
        """Return the whole state; `load` continues from it exactly."""
        self.roll_back()
        return pack(*snapshot.dump_reasoner(self))

    @classmethod
    def load(
        cls,
        state: bytes,
        program: Program | None = None,
        *,
        query: str | None = None,
        changed: bool = False,
        background: DataLike | None = None,
        at: OutputTimesLike | None = None,
    ) -> Self:
        """Return a reasoner that continues where the saved one stopped.

        With `changed`, `program` may have other rules: the state keeps whatever still means the same, and `notes` says
        what it cannot keep. A state holds the background that its own rules read; if new rules read more of it, pass
        `background` again. Output times from a generator have to be passed again as `at`.
        """
        meta, arrays = unpack(state)
        rules = program or program_from_json(meta)
        query = query or meta["query"]
        differs = snapshot.is_changed(meta, rules, query)
        if differs and not changed:
            raise snapshot.changed_rules_error(meta, rules)
        delay = {name: Fraction(delay) for name, delay in meta["delays"]}
        length = Fraction(meta["corrections"]["length"]) if "corrections" in meta else None
        more: dict[str, Any] = {"timeline": meta["timeline"], "memory": meta["memory"], "corrections": length}
        reasoner = cls(rules, query, delay=delay, **more)
        reasoner.partial = meta["parts"]
        reasoner.notes = snapshot.restore_reasoner(reasoner, meta, arrays, differs, background, at)
        reasoner.last_step = reasoner.idle_step(0)
        return reasoner

    # What the reasoner holds, costs and can explain

    def count_held_atoms(self) -> dict[str, int]:
        """Count the atoms held per predicate; `(operators)` and `(aggregates)` stand for what these keep."""
        self.roll_back()
        counts: dict[str, int] = {}
        for number, predicate in enumerate(self.evaluation.form.names):
            name = "(operators)" if is_hidden(predicate) else predicate
            counts[name] = counts.get(name, 0) + self.evaluation.store.size(number)
        rows = self.evaluation.count_rows()
        return counts | ({"(aggregates)": rows} if rows else {})

    def rule_work(self) -> Int64s:
        """Return the work per rule since this reasoner was created or loaded, in the unit of `RuleCost.work`."""
        return self.evaluation.work()

    def count_undefined(self) -> int:
        """Return how many rows had an undefined operation so far, or a value that is not a number in a sum.

        >>> import tidelog as tl
        >>> reasoner = tl.Reasoner(tl.Program.parse("Share(X, 1 / N) :- Of(X, N)."), "Share")
        >>> answers = reasoner.push(0, ["Of(a, 0)", "Of(b, 4)"])
        >>> reasoner.count_undefined()
        1
        """
        numbers = self.evaluation.numbers
        return 0 if numbers is None else numbers.steps.undefined

    def slowest_rules(self, count: int | None = None) -> list[RuleCost]:
        """Return the cost of the rules since this reasoner was created or loaded, most expensive first.

        >>> import tidelog as tl
        >>> program = tl.Program.parse("Pair(X,Y) :- A(X), A(Y). Big(X) :- A(X), X > 8.")
        >>> reasoner = tl.Reasoner(program, "Pair")
        >>> answers = reasoner.push(0, [f"A({i})" for i in range(10)])
        >>> [(cost.rule, cost.work > 100) for cost in reasoner.slowest_rules()]
        [('Pair(X,Y) :- A(X), A(Y).', True)]
        """
        return share_costs(self.program.rules, self.rule_work(), self.evaluation.stepper.nanoseconds / 1e9)[:count]

    def explain(self, fact: str | Fact, *, depth: int | None = None) -> Explanation:
        """Explain why a fact holds or not, from the remembered facts or else from those still held.

        To get full explanations, create the reasoner with `remember=`: a stream forgets facts that its rules cannot
        need any more. The explanation's `notes` say what is missing.

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
        self.roll_back()
        return explain_from_log(self, fact, depth)

    def feed(
        self, data: DataLike, *, step: DurationLike | None = None, until: TimeLike | None = None
    ) -> Iterator[StreamStep]:
        """Process a dataset or dataframes step by step, in order of arrival or, where that is unknown, of time.

        Yields one step per time, or per multiple of `step`; without `step`, rules with aggregates are evaluated for
        many times at once, as one step unless there are corrections. Facts that begin after `until` are left out.
        Several steps may be evaluated ahead (see `speculation`); using the reasoner between two steps rolls back.
        """
        if self.corrections is not None:
            from tidelog.streaming.corrected_steps import feed_corrections

            return feed_corrections(self, to_dataset(data), step, until)
        return feed_in_order(self, to_dataset(data), step, until)

    def finish_step(self, until: TimeLike | None = None) -> StreamStep:
        """End the stream as `finish` does, and return the record of the step."""
        self.roll_back()
        self.version += 1
        evaluation = self.evaluation
        if self.corrections is not None:
            from tidelog.streaming.corrected_steps import finish_corrections

            return finish_corrections(self, until)
        if until is not None:
            evaluation.fit(to_time(until))
            stop = evaluation.position(to_time(until))
        else:
            stop = int(max(evaluation.at[NOW], evaluation.at[LAST]))
        if stop in (NEG_INF, POS_INF):
            return self.last_step
        began = perf_counter_ns()
        self.cover_calendar(stop, stop + evaluation.form.longest_wait)
        end = evaluation.grid.to_time(stop)
        found, violated = evaluation.stop(stop)
        self.stopped_at = end
        self.last_step = self.idle_step(0, found, perf_counter_ns() - began)
        if violated:
            violated.step = self.last_step
            raise violated
        return self.last_step

    # For the stages of a pipeline, and for alerts

    def take_step(
        self, t: Time, data: Dataset, *, closed: bool = False, times: Iterable[Fraction] | None = None
    ) -> StreamStep:
        """Add facts that have their own times, in any order, then advance the clock to t; return the step.

        More facts may follow at t unless it is `closed`. `times` are the stream's own time points, where these are not
        the times of the facts.
        """
        self.roll_back()
        self.note_dates(data.dates)
        if self.corrections is not None:
            from tidelog.streaming.corrected_steps import take_pushed_step

            self.version += 1
            return take_pushed_step(self, t, closed, data, came_before=True)
        self.evaluation.fit(t)
        data = self.evaluation.on_grid(data)
        if times is not None:
            self.evaluation.note_times(times)
        now, before, seen = self.evaluation.clock
        complete = NEG_INF - 1 if now == NEG_INF else before
        reported = int(self.evaluation.at[REPORTED])
        if self.partial:
            self.evaluation.at[JUDGED] = -1  # intervals that persist must be reported, too
        step = self._run_step(t, closed, data, Clock(now, complete, seen), own=times is None)
        if self.fact_log is not None:
            self.fact_log.add(t, data, step)
        return self._report_partial(step, reported) if self.partial else step

    def start_output_times(self, t: Time) -> None:
        """Begin output times that are multiples at t, even if facts arrive that are earlier."""
        if not isinstance(t, float):
            self.evaluation.start_times(t)

    @property
    def unmatched_count(self) -> int:
        """How many deletions have found no insertion so far, if corrections are taken."""
        return 0 if self.corrections is None else self.corrections.unmatched

    @property
    def complete_until(self) -> Bound:
        """The time up to which all answers are known, and whether that time is included."""
        return compute_complete_bound(self.evaluation)

    def open_intervals(self, after: Bound | None = None) -> tuple[Answers, Bound]:
        """Return the intervals of the query that have begun and are not known to end, and the bound of that knowledge.

        With `after`, only intervals that began after that bound. A bound is a time and whether it is included.
        """
        self.roll_back()
        return find_open_intervals(self.evaluation, after)

    def _report_partial(self, step: StreamStep, reported: int) -> StreamStep:
        """Replace the answers of a step by the pieces of intervals that hold after the position `reported`."""
        rows = find_certain_pieces(self.evaluation, step.answers.block()[0], reported)
        self.evaluation.at[REPORTED] = max(self.evaluation.complete, reported)
        self.last_step = step.with_answers(self.evaluation.answers(rows))
        return self.last_step

    # Steps

    def _run_step(
        self, t: Time, over: bool, data: Dataset | None, came: Clock | None = None, own: bool = True
    ) -> StreamStep:
        """Run one step at time t; the clock never goes back. The facts arrived while it stood at `came`, if given.

        `own` says that the times of the facts are the stream's own time points.
        """
        evaluation, grid = self.evaluation, self.evaluation.grid
        now, closed, seen = evaluation.clock
        at = NEG_INF if isinstance(t, float) else evaluation.position(t)
        # On the integers a clock between two of them has passed the first.
        over = at >= now and (over or (not isinstance(t, float) and t.denominator > 1 and not grid.dense))
        if at >= now:
            now, closed = at, max(closed, at if over else at - 1)
        self.cover_calendar(now, now, data)
        todo, count, late = evaluation.quiet, 0, NO_FACTS
        if data is not None and len(data):
            clock = Clock(now, came.closed if came else closed, seen)
            batch = evaluation.batch(data, clock, fixed=True, own=own)
            self.facts_taken += evaluation.take_first(batch)
            if len(batch.counts):
                todo, count = batch.todo, int(batch.counts[0])
                late = count_late(self, batch, 0)
        todo.clocks[:], todo.over[:] = now, over
        if now == NEG_INF:
            self.last_step = self.idle_step(0)
            return self.last_step
        found, taken, _, violated = evaluation.run(todo, 0, 1)
        finite, endless, nanoseconds, answers = taken[0].tolist()
        self.facts_taken += count
        numbers = now, count, finite, endless, nanoseconds, 0, answers
        step = self.last_step = StreamStep(StepColumns(grid, found), numbers, late)
        evaluation.forget_names()
        if violated:
            violated.step = step
            raise violated
        return step

    def cover_calendar(self, first: int, last: int, data: Dataset | None = None) -> None:
        """Generate the calendar for a clock that goes from one position to another, if rules read one."""
        if self.evaluation.calendar.active and last > NEG_INF:
            violated = self.evaluation.calendar.cover(first, last, data)
            if violated:
                violated.step = self.last_step
                raise violated

    def note_dates(self, dates: bool) -> None:
        """Note whether times were given as dates."""
        self.dates = self.evaluation.dates = self.dates or dates

    def roll_back(self) -> None:
        """Undo the steps that were evaluated ahead and not given out."""
        speculation, self.speculation = self.speculation, None
        if speculation:
            speculation.roll_back(self.evaluation)

    def idle_step(self, count: int, found: AnswerColumns | None = None, nanoseconds: int = 0) -> StreamStep:
        """Return the record of a step in which nothing was evaluated."""
        evaluation = self.evaluation
        finite, endless = evaluation.held
        found = evaluation.answers(Rows.empty(0)) if found is None else found
        numbers = int(evaluation.at[NOW]), count, finite, endless, nanoseconds, 0, len(found.lo)
        return StreamStep(StepColumns(evaluation.grid, found), numbers, NO_FACTS)
