"""The steps of a reasoner with corrections: pushed, or fed in order of arrival.

Assertions that arrive in order are given to the evaluation as without corrections, many steps in one call; only steps
with deletions, or with facts that are behind the frontier of the evaluation, are taken one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import lcm
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidelog.compiler.prepare_facts import read_time_arguments
from tidelog.data.dataset import Dataset
from tidelog.data.relation import to_facts
from tidelog.engine.stream_kernel import ANSWERS_END, FRONTIER, NOW
from tidelog.language.fact_text import format_fact
from tidelog.language.time_like import DurationLike, TimeLike, to_duration, to_time
from tidelog.streaming.answer_changes import ChangeStep
from tidelog.streaming.answer_segments import Difference, TimedRows
from tidelog.streaming.answers import AnswerColumns, Answers, FactGroup, StepColumns, StreamStep
from tidelog.streaming.arrival_order import Arrived, Stand, arrange_arrivals, with_order
from tidelog.streaming.arrivals import (
    Arrivals,
    Relations,
    RowsByStart,
    Touched,
    is_out_of_order,
    separate_late,
    split_deletions,
)
from tidelog.streaming.checkpoints import BYTES_PER_ROW
from tidelog.streaming.correction_windows import (
    UNLIMITED,
    GivenSteps,
    LateRows,
    Window,
    evaluate_window,
    give_window,
    plan_window,
)
from tidelog.streaming.corrections import Corrections
from tidelog.streaming.feeding import give_steps
from tidelog.streaming.joined_steps import plan_joined_steps, run_joined
from tidelog.streaming.marks import Mark, go_back, mark_evaluation
from tidelog.streaming.speculation import plan_speculation
from tidelog.streaming.step_layout import Batch
from tidelog.streaming.stream_reader import order_of, select_rows
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.interval import INF, Time

if TYPE_CHECKING:
    from tidelog.engine.fact_store import Rows
    from tidelog.streaming.query_evaluation import Evaluation
    from tidelog.streaming.reasoner import Reasoner

Int64s = NDArray[np.int64]


def _require_corrections(reasoner: Reasoner) -> Corrections:
    assert reasoner.corrections is not None
    return reasoner.corrections


def read_arrivals(reasoner: Reasoner, corrections: Corrections, data: Dataset) -> tuple[Dataset, Dataset]:
    """Return the insertions and the deletions of a dataset, on the grid."""
    parts = [read_time_arguments(reasoner.program, part) for part in split_deletions(data)]
    needed = lcm(*(corrections.evaluation.needed_denominator(part) for part in parts))
    for part in parts:
        corrections.evaluation.input_format.check(part)
    corrections.refine(needed)
    inserted, deleted = (part.with_denominator(corrections.evaluation.grid.denominator) for part in parts)
    return inserted, deleted


def take_pushed_step(
    reasoner: Reasoner, t: Time, over: bool, data: Dataset | None, *, came_before: bool = False
) -> ChangeStep:
    """Advance the clock to t, where facts and deletions arrive; return the step.

    With `came_before`, they arrived while the clock stood where it stands, so that fewer of them are late.
    """
    corrections = _require_corrections(reasoner)
    began, evaluation = perf_counter_ns(), reasoner.evaluation
    if not isinstance(t, float):
        corrections.refine(t.denominator)
    arrivals = Arrivals({}, {})
    if data is not None and len(data):
        arrivals = Arrivals(*(corrections.read(part) for part in read_arrivals(reasoner, corrections, data)))
    now = before = int(evaluation.at[NOW])
    if came_before and before == NEG_INF:
        arrivals = Arrivals(_take_endless(reasoner, corrections, arrivals.inserted), arrivals.deleted)
    at = NEG_INF if isinstance(t, float) else evaluation.position(t)
    if at >= now:
        # On the integers a clock between two of them has passed the first.
        over = over or (not isinstance(t, float) and t.denominator > 1 and not evaluation.grid.dense)
        now = at
    else:
        over = False
    if now == NEG_INF:
        corrections.delete(arrivals.deleted, Touched())
        return _build_idle_step(reasoner)
    if not came_before:
        corrections.first_clock = min(corrections.first_clock, now)
    arrivals, late = separate_late(corrections, arrivals, before if came_before else now)
    step = _take_step(reasoner, corrections, now, over, arrivals, late, began)
    corrections.forget_names()
    return step


def _take_endless(reasoner: Reasoner, corrections: Corrections, rows: Relations) -> Relations:
    """Take the facts that have always held, before the clock begins; return the others."""
    reasoner.facts_taken += corrections.begin({key: r.select(r.lo == NEG_INF) for key, r in rows.items()})
    return {key: left for key, r in rows.items() if len(left := r.select(r.lo > NEG_INF))}


def _build_idle_step(reasoner: Reasoner) -> ChangeStep:
    """Return the record of a step before the clock begins."""
    nothing = reasoner.evaluation.no_answers()
    step = ChangeStep.of(reasoner.idle_step(0), (nothing, 0, 0), nothing)
    reasoner.last_step = step
    return step


def finish_corrections(reasoner: Reasoner, until: TimeLike | None) -> StreamStep:
    """End the stream: take what was still to come, and return the last changes."""
    corrections, evaluation = _require_corrections(reasoner), reasoner.evaluation
    began, known = perf_counter_ns(), reasoner.last_step.time
    if until is not None and isinstance(end := to_time(until), Fraction):
        corrections.refine(end.denominator)
    if evaluation.at[NOW] == NEG_INF:
        return _build_idle_step(reasoner)
    result = corrections.take_rest()
    stop = max(int(evaluation.at[NOW]), corrections.find_last())
    stop = stop if until is None else evaluation.position(to_time(until))
    found, violated = evaluation.stop(stop)
    reasoner.stopped_at = evaluation.grid.to_time(stop)
    changes = result.changes.add(found)
    plain = reasoner.idle_step(0, None, perf_counter_ns() - began)
    step = reasoner.last_step = build_change_step(plain, evaluation, changes, known)
    if new := result.violated or corrections.note_violation(violated):
        new.step = step
        raise new
    return step


def _take_step(
    reasoner: Reasoner,
    corrections: Corrections,
    now: int,
    over: bool,
    arrivals: Arrivals,
    late: list[FactGroup],
    began: int,
) -> ChangeStep:
    frontier = int(reasoner.evaluation.at[FRONTIER])
    result = corrections.take(now, over, arrivals)
    reasoner.facts_taken += result.taken
    reasoner.late_count += len(late)
    evaluation = reasoner.evaluation
    late_facts = Answers(len(late), late, 0, evaluation.symbols)
    shared = StepColumns(evaluation.grid, evaluation.no_answers())
    plain = StreamStep(shared, (now, result.taken, *result.held, perf_counter_ns() - began, 0, 0), late_facts)
    step = build_change_step(plain, evaluation, result.changes)
    reasoner.last_step = step
    if reasoner.fact_log is not None:
        reasoner.fact_log.add_changes(step.answers, _name_causes(corrections, arrivals, frontier))
    if result.violated:
        result.violated.step = step
        raise result.violated
    return step


def _name_causes(corrections: Corrections, arrivals: Arrivals, frontier: int) -> Iterator[str]:
    """Yield the late facts and the deletions of a step, as text."""
    symbols, denominator = corrections.evaluation.symbols, corrections.evaluation.grid.denominator
    for rows in arrivals.inserted.values():
        late = rows.select(corrections.first_positions(rows) <= frontier)
        yield from (format_fact(fact) for fact in to_facts(symbols, denominator, late))
    for rows in arrivals.deleted.values():
        yield from (f"-{format_fact(fact)}" for fact in to_facts(symbols, denominator, rows))


def build_change_step(
    plain: StreamStep, evaluation: Evaluation, changes: Difference, known: Time | None = None
) -> ChangeStep:
    """Return a step with the changes of its answers, which were known at a clock: that of the step unless given."""

    def show(rows: Rows) -> AnswerColumns:
        return AnswerColumns(
            evaluation.query,
            len(rows.args),
            rows.args.T.ravel(),
            rows.lo,
            rows.hi,
            changes.grid,
            evaluation.symbols,
            evaluation.times,
        )

    removed = show(changes.removed), 0, len(changes.removed)
    return ChangeStep.of(plain, removed, show(changes.added), known)


@dataclass(frozen=True)
class Feed:
    """Rows to feed, from where the evaluation stood; steps have a length (0: one for every time) and a last position.

    `version` is that of the reasoner: after other calls, what is left has to be arranged anew.
    """

    reasoner: Reasoner
    corrections: Corrections
    rows: tuple[Relations, Relations]
    length: int
    last: int
    stand: Stand
    version: int

    @property
    def is_outdated(self) -> bool:
        return self.reasoner.version != self.version

    @property
    def is_merged(self) -> bool:
        """Whether several times may be one step, as without corrections; otherwise, they are only taken together."""
        return self.corrections.evaluation.output is not None

    @cached_property
    def arrived(self) -> Arrived:
        return arrange_arrivals(self.corrections, self.rows, self.length, self.last, self.stand)

    @cached_property
    def late(self) -> LateRows | None:
        """The late facts, if the query falls apart by their keys; None where explanations are asked for."""
        plan = self.corrections.plan
        return None if plan is None or self.reasoner.fact_log is not None else LateRows.of(self.arrived, plan)

    def find_window(self, first: int) -> Window | None:
        """Evaluate a window of steps with late facts that begins with a step, if possible."""
        corrections = self.corrections
        if self.late is None or corrections.plan is None or corrections.is_special:
            return None
        window = plan_window(self.arrived, self.late, first)
        if window is None or not self.arrived.is_special[first : window.stop].any():
            return None
        return evaluate_window(corrections, corrections.plan, self.arrived, self.late, window, self.length)


def feed_corrections(
    reasoner: Reasoner, data: Dataset, step: DurationLike | None, until: TimeLike | None
) -> Iterator[StreamStep]:
    """Process insertions and deletions step by step, in order of arrival or, where that is unknown, of time."""
    corrections, evaluation = _require_corrections(reasoner), reasoner.evaluation
    reasoner.roll_back()
    reasoner.note_dates(data.dates)
    if reasoner.fact_log is not None:
        reasoner.fact_log.add(-INF, data)
    data = with_order(data)
    while len(data):
        reasoner.version += 1
        end = POS_INF if until is None else to_time(until)
        if isinstance(end, Fraction):
            corrections.refine(end.denominator)
        inserted, deleted = read_arrivals(reasoner, corrections, data)
        grid = evaluation.grid
        length = 0 if step is None else max(1, int(to_duration(step) * grid.denominator * grid.tick))
        last = POS_INF if until is None else evaluation.position(to_time(until))
        rows = corrections.read(inserted), corrections.read(deleted)
        if evaluation.at[NOW] == NEG_INF:
            rows = _take_background(reasoner, corrections, rows[0]), rows[1]
        feed = Feed(reasoner, corrections, rows, length, last, Stand.of(evaluation), reasoner.version)
        seen = [int(corrections.start_positions(r).max(initial=NEG_INF)) for r in rows[0].values()]
        last_given = yield from _feed_rows(feed)
        if last_given is None:
            evaluation.seen = max(evaluation.seen, int(evaluation.at[NOW]), *seen)
            break
        after = feed.arrived.order[: feed.arrived.end_of(last_given.position)].max(initial=-1)
        data = select_rows(data, {key: order_of(r) > after for key, r in data.relations.items()})
    corrections.forget_names()


def _feed_rows(feed: Feed) -> GivenSteps:
    """Take all steps of a feed, as in a stream without corrections if nothing is to be corrected."""
    corrections, (inserted, deleted) = feed.corrections, feed.rows
    evaluation, longest = corrections.evaluation, feed.stand.longest
    if not (deleted or corrections.is_special or is_out_of_order(corrections, inserted, longest)):
        whole = corrections.as_dataset(inserted)
        batch = evaluation.batch(whole, evaluation.clock, feed.length, feed.last, delay=longest, merged=feed.is_merged)
        if not (batch.late or corrections.starts_before(inserted)):
            return (yield from _feed_in_order(feed, batch, inserted, 0))
    return (yield from _feed_by_step(feed))


def _take_background(reasoner: Reasoner, corrections: Corrections, rows: Relations) -> Relations:
    """Take the facts without a start that come before all others, which cannot be corrected; return the others."""
    if all(int(r.lo.min(initial=POS_INF)) > NEG_INF for r in rows.values()):
        return rows
    timed = [order_of(r)[r.lo > NEG_INF].min(initial=POS_INF) for r in rows.values()]
    first = min(timed, default=POS_INF)
    early = {key: r.select(order_of(r) < first) for key, r in rows.items()}
    reasoner.facts_taken += corrections.begin(early)
    return {key: left for key, r in rows.items() if len(left := r.select(order_of(r) >= first))}


def _feed_by_step(feed: Feed) -> GivenSteps:
    """Take steps with corrections one by one, and those between them together."""
    arrived, corrections = feed.arrived, feed.corrections
    place, count = 0, len(arrived.begins)
    if count and arrived.clock[0] == POS_INF:  # there are only deletions, and the clock has not begun
        arrivals, _ = arrived.select(0, len(arrived.clock), corrections)
        corrections.delete(arrivals.deleted, Touched())
        return None
    may_speculate = True
    step: ChangeStep | None = None
    while place < count:
        window = feed.find_window(place) if may_speculate else None
        if window is not None:
            step = yield from give_window(feed.reasoner, window)
            place += window.given
            may_speculate = window.given == len(window.clocks)
        elif arrived.is_special[place] or corrections.is_special:
            began = perf_counter_ns()
            end = int(arrived.ends[place])
            arrivals, late = arrived.select(int(arrived.begins[place]), end, corrections)
            step = _take_step(feed.reasoner, corrections, int(arrived.clock[end - 1]), False, arrivals, late, began)
            yield step
            place += 1
        else:
            special = np.flatnonzero(arrived.is_special[place:])
            stop = place + int(special[0]) if len(special) else count
            first, end = int(arrived.begins[place]), int(arrived.ends[stop - 1])
            rows = arrived.select(first, end, corrections)[0].inserted
            evaluation = corrections.evaluation
            whole = corrections.as_dataset(rows)
            batch = evaluation.batch(whole, evaluation.clock, feed.length, delay=UNLIMITED, merged=feed.is_merged)
            step = yield from _feed_in_order(feed, batch, rows, first)
            place = stop
        if feed.is_outdated:
            return step
    return None


def _feed_in_order(feed: Feed, batch: Batch, rows: Relations, arrival: int) -> GivenSteps:
    """Take steps without corrections, many in one call while rolling back stays cheap.

    `rows` are those of the batch, which begin to arrive after `arrival` others of the feed. Unlike in `feed_in_order`,
    the rows and answers of steps are noted as these are given out, and the mark of a call is kept as a checkpoint;
    where other calls have renumbered times or constants, the feed reads what is left again.
    """
    reasoner, corrections = feed.reasoner, feed.corrections
    evaluation = corrections.evaluation
    done, count, may_speculate = 0, len(batch.counts), True
    known: Mark | None = None
    # Where no row is behind the clock, each comes at its start.
    by_start = RowsByStart.of(corrections, rows) if feed.stand.longest == 0 else None
    while done < count:
        held = evaluation.store.nbytes() + BYTES_PER_ROW * evaluation.count_rows()
        joins = evaluation.numbers is not None and not (feed.length or feed.is_merged)
        plan = plan_joined_steps if joins else plan_speculation
        stop = plan(batch, done, held) if may_speculate else done + 1
        mark = (known or mark_evaluation(evaluation, numbers=True)) if stop > done + 1 else None
        known = None
        run = partial(run_joined, evaluation, batch) if mark and joins else partial(evaluation.run, batch.todo)
        found, taken, stop, violated = run(done, stop)
        ahead = AheadInOrder(feed, batch, by_start or rows, arrival, mark, found, taken, done, done)
        if mark:
            reasoner.speculation = ahead
        try:
            for step in give_steps(reasoner, batch, found, taken, done, stop, ChangeStep, evaluation.grid):
                done += 1
                ahead.given = done
                if done == stop:
                    reasoner.speculation = None
                    known = ahead.note()
                if reasoner.fact_log is not None:
                    reasoner.fact_log.add_changes(step.answers, ())
                yield step
                if feed.is_outdated:
                    return step
                if mark and reasoner.speculation is not ahead and done < stop:
                    may_speculate = False  # the caller used the reasoner between steps and will do so again
                    break
        finally:
            if mark and reasoner.speculation is ahead:
                reasoner.roll_back()
        if done == stop and (new := corrections.note_violation(violated)):
            raise new
    return None


@dataclass
class AheadInOrder:
    """Steps in order that were evaluated in one call, and how many of them were given out.

    Their rows and answers are noted once they are given out.
    """

    feed: Feed
    batch: Batch
    rows: Relations | RowsByStart
    arrival: int
    before: Mark | None
    found: AnswerColumns
    taken: Int64s
    first: int
    given: int

    def roll_back(self, evaluation: Evaluation) -> None:
        """Restore the evaluation to the last step that was given out."""
        assert self.before is not None
        go_back(evaluation, self.before.copy())  # a checkpoint may have the same mark
        if self.given > self.first:
            evaluation.run(self.batch.todo, self.first, self.given)
            self.note()

    def note(self) -> Mark | None:
        """Note the rows and answers of the steps that were given out; return a mark of their end, if there is one."""
        todo, rows = self.batch.todo, self.rows
        clocks = todo.clocks.tolist()
        if isinstance(rows, RowsByStart):
            rows = rows.select(clocks[self.first - 1] if self.first else NEG_INF, clocks[self.given - 1])
            if self.feed.last < POS_INF:
                first_of = self.feed.corrections.first_positions
                rows = {key: r.select(first_of(r) <= self.feed.last) for key, r in rows.items()}
        elif self.first or self.given < len(clocks) or self.feed.last < POS_INF:
            arrived = self.feed.arrived
            first = arrived.end_of(clocks[self.first - 1]) if self.first else self.arrival
            stop = arrived.end_of(clocks[self.given - 1])
            rows = arrived.select(first, stop, self.feed.corrections)[0].inserted
        answers = int(self.taken[self.given - 1, ANSWERS_END])
        found = self.found
        given = found._replace(args=found.args[: answers * found.arity], lo=found.lo[:answers], hi=found.hi[:answers])
        words = int(todo.record_ends[self.given - 1]) - (int(todo.record_ends[self.first - 1]) if self.first else 0)
        return self.feed.corrections.note_in_order(rows, TimedRows.of(given), words)
