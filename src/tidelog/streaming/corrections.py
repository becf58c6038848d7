"""Corrections of a stream: late facts and deletions within a length of time, and the changes of answers they cause.

The evaluation takes facts as they arrive, as without corrections. A fact that arrives after its time was taken to be
complete, or a deletion of a fact that the evaluation has taken, is a correction: the evaluation goes back to the last
checkpoint that it does not concern, takes the assertions that stand since then in one go, and the answers given since
then are compared with those given before. All corrections of a step are one such replay.

An assertion is given to the evaluation once the clock has reached its start. So a checkpoint from before the start of
an assertion never holds it, and the checkpoint from right before the first time that can still be corrected is the
oldest that is ever needed. It is also what a saved state holds, with the assertions since then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidelog.data.dataset import Dataset
from tidelog.data.relation import Columns, Key, Relation, finer
from tidelog.engine.stream_kernel import CLOSED, FRONTIER, LAST, NOW, REPORTED
from tidelog.streaming.answer_segments import AnswerSegments, Difference, TimedRows, compare
from tidelog.streaming.answers import AnswerColumns
from tidelog.streaming.arrivals import Arrivals, Relations, Touched
from tidelog.streaming.assertion_ledger import PENDING, AssertionLedger, Int64s, assertion_of, start_of
from tidelog.streaming.checkpoints import BYTES_PER_ROW, BYTES_PER_WORD, Checkpoint, thin_out
from tidelog.streaming.key_replay import (
    KeyPlan,
    complete_evaluation,
    correct_keys,
    find_keys,
    plan_keys,
    repair_checkpoint,
)
from tidelog.streaming.marks import Mark, go_back, mark_evaluation
from tidelog.streaming.query_evaluation import MANY_NAMES, Evaluation
from tidelog.streaming.step_layout import Clock
from tidelog.timeline.grid import NEG_INF, POS_INF

if TYPE_CHECKING:
    from tidelog.compiler.compiled_program import CompiledProgram
    from tidelog.errors import Inconsistent


@dataclass(frozen=True)
class StepResult:
    """The changes of a step, how many insertions it took, what is held after it, and a violated constraint, if any."""

    changes: Difference
    taken: int
    held: tuple[int, int]
    violated: Inconsistent | None


class Corrections:
    """The assertions, checkpoints and answers of the last `length` of a stream, around its evaluation."""

    def __init__(self, evaluation: Evaluation, length: Fraction) -> None:
        self.evaluation = evaluation
        evaluation.fixed_grid = True
        self.length = length
        self.ledger = AssertionLedger()
        self.epoch = 1
        self.answers = AnswerSegments()
        #: Deletions that waited for their insertion until it could not come any more.
        self.unmatched_before = 0
        #: How many replays there were so far.
        self.replays = 0
        self.checkpoints = [Checkpoint(mark_evaluation(evaluation, numbers=True), 0)]
        #: The first position that the clock was set to, not by a row, and where output times that are multiples begin:
        #: there, or with the first row that stands (`POS_INF`: there is none yet; `NEG_INF`: there are no such times).
        self.first_clock, self.first_start = POS_INF, NEG_INF
        if evaluation.output is not None and not evaluation.output.begun:
            self.first_start = POS_INF
        self._words = 0
        self._planned: CompiledProgram | None = None
        self._plan: KeyPlan | None = None
        self.violations: set[str] = set()
        #: Whether the rules have changed, so that the next step compares all answers that can still be corrected.
        self.is_outdated = False

    # Positions

    @property
    def reach(self) -> int:
        """How far corrections reach back, as a grid distance."""
        return int(self.length * self.evaluation.grid.denominator * self.evaluation.grid.tick)

    @property
    def final_until(self) -> int:
        """The position before which answers have ended that can no longer be corrected."""
        return int(self.checkpoints[0].mark.at[REPORTED])

    @property
    def unmatched(self) -> int:
        """How many deletions have found no insertion so far."""
        return self.unmatched_before + sum(self.ledger.waiting.values())

    def start_positions(self, rows: Relation) -> Int64s:
        """Return the grid positions at which rows start; an open interval starts at its end point."""
        return start_of(rows.lo) if self.evaluation.grid.dense else np.where(rows.lo == NEG_INF, NEG_INF, rows.lo >> 1)

    def first_positions(self, rows: Relation) -> Int64s:
        """Return the first grid positions at which rows hold."""
        return rows.lo if self.evaluation.grid.dense else np.where(rows.lo == NEG_INF, NEG_INF, (rows.lo + 1) >> 1)

    # Input

    def read(self, data: Dataset) -> Relations:
        """Return the rows of a dataset on the grid, with the constants of the evaluation."""
        symbols = self.evaluation.symbols
        if not len(data):
            return {}
        if data.symbols is symbols:
            return data.relations
        known, used = len(symbols), np.zeros(len(data.symbols), np.bool_)
        for relation in data.relations.values():
            used[relation.args] = True
        ids = symbols.merge(data.symbols, np.flatnonzero(used))
        if len(symbols) > known:
            self.evaluation.rank()
        return {key: replace(r, args=ids[r.args]) for key, r in data.relations.items() if len(r)}

    def as_dataset(self, relations: Relations) -> Dataset:
        """Return rows with the constants of the evaluation as a dataset."""
        return Dataset(self.evaluation.symbols, Columns(self.evaluation.grid.denominator, False, relations))

    # Steps

    def take(self, now: int, over: bool, arrivals: Arrivals) -> StepResult:
        """Take one step: assertions arrive, none of them late, and the clock moves to a position, `over` or not."""
        evaluation = self.evaluation
        over = over or bool(evaluation.at[CLOSED] >= now)
        frontier = int(evaluation.at[FRONTIER])
        touched = Touched()
        for key, rows in arrivals.inserted.items():
            self._insert(key, rows, frontier, touched)
        self.delete(arrivals.deleted, touched)
        if self.is_outdated:
            touched.first_epoch, touched.keys, self.is_outdated = 0, None, False
        corrected = self._correct_keys(touched) if touched.keys else None
        due = self.ledger.take_due(now if evaluation.grid.dense else 2 * now, self.epoch)
        self._move_beginning(now, arrivals, touched)
        if corrected is not None or not touched or touched.keys == set():
            found, violated = self.run_rows(due, now, over)
            changes = corrected.add(found) if corrected else Difference.of_added(found)
            self.answers.add(self.epoch, found)
        else:
            place = self._find_checkpoint(touched.first_late, touched.first_epoch)
            changes, violated = self._replay(place, now, over)
        self.settle()
        return StepResult(changes, arrivals.count, evaluation.held, self.note_violation(violated))

    def take_rest(self) -> StepResult:
        """Take the rows that start in the future, at the end of the stream."""
        at = self.evaluation.at
        now, over = int(at[NOW]), bool(at[CLOSED] >= at[NOW])
        result = self.take(now, over, Arrivals({}, {})) if self.is_outdated else None
        found, violated = self.run_rows(self.ledger.take_due(POS_INF, self.epoch), now, over)
        changes = result.changes.add(found) if result else Difference.of_added(found)
        violated = (result.violated if result else None) or self.note_violation(violated)
        return StepResult(changes, 0, self.evaluation.held, violated)

    def begin(self, rows: Relations) -> int:
        """Take facts that hold before time begins, which cannot be corrected; return how many."""
        batch = self.evaluation.batch(self.as_dataset(rows), Clock(NEG_INF, NEG_INF, NEG_INF), fixed=True)
        count = self.evaluation.take_first(batch)
        if count:
            self.checkpoints = [Checkpoint(mark_evaluation(self.evaluation, numbers=True), 0)]
        return count

    @property
    def is_special(self) -> bool:
        """Whether even a step in order needs a look at what waits: deletions, future rows, changed rules."""
        waits = self.ledger.waiting or self.ledger.has_pending or self.is_outdated
        return bool(waits or self.first_start == POS_INF)

    def starts_before(self, rows: Relations) -> bool:
        """Return whether any row starts before output times that are multiples begin."""
        if self.first_start == NEG_INF:
            return False
        return any((self.start_positions(relation) < self.first_start).any() for relation in rows.values())

    @property
    def can_begin_elsewhere(self) -> bool:
        """Whether output times that are multiples begin with a row that can still be corrected."""
        return self.checkpoints[0].now == NEG_INF and self.first_start > NEG_INF

    def _move_beginning(self, now: int, arrivals: Arrivals, touched: Touched) -> None:
        """Let output times that are multiples begin with the first row that stands; replay if they began elsewhere."""
        if not self.can_begin_elsewhere:
            return
        if not (arrivals.deleted or self.first_start == POS_INF or self.starts_before(arrivals.inserted)):
            return
        first, begun = self.ledger.find_first(), self.first_start
        if POS_INF > first > NEG_INF and not self.evaluation.grid.dense:
            first >>= 1
        self.first_start = min(first, self.first_clock)
        output, grid = self.evaluation.output, self.evaluation.grid
        if output is None or not output.begun:
            return
        places = begun, self.first_start
        if POS_INF in places or len({output.find_first(grid.to_time(place)) for place in places}) == 2:
            touched.first_late, touched.keys = NEG_INF + 1, None

    def delete(self, deleted: Relations, touched: Touched) -> None:
        """Remove rows from the ledger; note those that the evaluation was given and that no longer stand."""
        for key, rows in deleted.items():
            for row in range(len(rows)):
                epoch = self.ledger.delete(assertion_of(key[0], rows, row))
                if epoch is not None and epoch < PENDING:
                    touched.first_epoch = min(touched.first_epoch, epoch)
                    self._note_keys(key, rows.select(np.array([row])), touched)

    def note_in_order(self, rows: Relations, found: TimedRows, words: int) -> Mark | None:
        """Note rows that the evaluation has taken in order, and the answers; return its mark, if there is one."""
        for key, relation in rows.items():
            if len(relation):
                self.ledger.insert(key, relation, self.epoch)
        self.answers.put(self.epoch, found)
        self._words += words
        before = self.epoch
        self.settle()
        return self.checkpoints[-1].mark if self.epoch > before else None

    def _insert(self, key: Key, rows: Relation, frontier: int, touched: Touched) -> None:
        """Add rows to the ledger; note those that come too late for the evaluation."""
        kept = self.ledger.match_waiting(key, rows)
        if not kept.all():
            rows = rows.select(kept)
        lo = self.first_positions(rows)
        behind = lo <= frontier
        if behind.any():
            late = rows.select(behind)
            epochs = self.ledger.find_epochs(key, late)
            new = epochs < 0
            if new.any():
                touched.first_late = min(touched.first_late, int(lo[behind][new].min()))
                self._note_keys(key, late.select(new), touched)
            epochs[new] = self.epoch
            for epoch in np.unique(epochs).tolist():
                self.ledger.insert(key, late.select(epochs == epoch), epoch)
            rows = rows.select(~behind)
        if len(rows):
            self.ledger.insert(key, rows, PENDING)

    def _note_keys(self, key: Key, rows: Relation, touched: Touched) -> None:
        """Note the keys of corrected rows."""
        keys = find_keys(self.plan, key, rows) if self.plan is not None else None
        touched.keys = None if keys is None or touched.keys is None else touched.keys | keys

    @property
    def plan(self) -> KeyPlan | None:
        """How the query falls apart by keys, if it does."""
        if self._planned is not self.evaluation.form:
            self._planned, self._plan = self.evaluation.form, plan_keys(self.evaluation)
        return self._plan

    def _correct_keys(self, touched: Touched) -> Difference | None:
        """Replay what belongs to the keys of corrections alone, if possible; return how the answers changed."""
        if self.plan is None or touched.keys is None:
            return None
        return correct_keys(self, self.plan, touched.keys, touched.first_late, touched.first_epoch)

    # Evaluation

    def run_rows(self, given: Relations, now: int, over: bool) -> tuple[AnswerColumns, Inconsistent | None]:
        """Give rows to the evaluation as one step, whatever their times; none of them is behind its frontier."""
        evaluation = self.evaluation
        todo = evaluation.quiet
        self._begin_times(now)
        if given:
            batch = evaluation.batch(self.as_dataset(given), Clock(now, NEG_INF, NEG_INF), fixed=True, delay=0)
            todo = batch.todo
            self._words += len(todo.records)
        todo.clocks[:], todo.over[:] = now, over
        found, _, _, violated = evaluation.run(todo, 0, 1)
        return found, violated

    def _begin_times(self, now: int) -> None:
        """Begin output times that are multiples, if they have not begun, when the clock is at a position."""
        evaluation = self.evaluation
        if evaluation.output is not None and not evaluation.output.begun:
            evaluation.start_times(evaluation.grid.to_time(min(now, self.first_start)))

    def _find_checkpoint(self, first_late: int, first_epoch: int) -> int:
        """Return the place of the last checkpoint that a correction does not concern."""
        place = len(self.checkpoints) - 1
        while place and not (
            self.checkpoints[place].frontier < first_late
            and self.checkpoints[place].epoch < first_epoch
            and not self.checkpoints[place].outdated
        ):
            place -= 1
        return place

    def _replay(self, place: int, now: int, over: bool) -> tuple[Difference, Inconsistent | None]:
        """Go back to a checkpoint, and take all assertions that stand since then; return how the answers changed."""
        evaluation, base = self.evaluation, self.checkpoints[place]
        dropped, self.checkpoints = self.checkpoints[place + 1 :], self.checkpoints[: place + 1]
        stops = [(checkpoint.now, checkpoint.over) for checkpoint in dropped if base.now < checkpoint.now < now]
        before = self.answers.take_after(base.epoch)
        go_back(evaluation, base.mark.copy())
        self.replays += 1
        after, violated = self.catch_up(base.epoch, [*stops, (now, over)])
        return compare(before, after, evaluation.task.arity, evaluation.grid.dense), violated

    def catch_up(self, epoch: int, stops: list[tuple[int, bool]]) -> tuple[list[TimedRows], Inconsistent | None]:
        """Give the evaluation, which is at the end of an epoch, all rows since then; return the answers.

        `stops` are positions of the clock, and whether they are over; at all but the last, a checkpoint is taken.
        """
        rows = self.ledger.standing_after(epoch)
        starts = {key: self.start_positions(relation) for key, relation in rows.items()}
        scale = 1 if self.evaluation.grid.dense else 2
        bounds = np.array([scale * position for position, _ in stops[:-1]], np.int64)
        self.ledger.renumber_epochs(epoch, bounds)
        last, violated = NEG_INF, None
        after: list[TimedRows] = []
        self.epoch, self._words = epoch + 1, 0
        self._begin_times(stops[-1][0])
        for number, (position, over) in enumerate(stops, 1):
            given: Relations = {}
            for key, relation in rows.items():
                part = (starts[key] > last) & (starts[key] <= position)
                if part.any():
                    given[key] = relation if part.all() else relation.select(part)
            found, wrong = self.run_rows(given, position, over)
            violated = violated or wrong
            self.answers.add(self.epoch, found)
            after.append(TimedRows.of(found))
            if number < len(stops):
                self._take_checkpoint()
            last = position
        return after, violated

    def _take_checkpoint(self) -> None:
        """Take a checkpoint, which ends the epoch."""
        if self.plan is not None:
            complete_evaluation(self.evaluation)
        self.checkpoints.append(Checkpoint(mark_evaluation(self.evaluation, numbers=True), self.epoch))
        self.epoch += 1
        self._words = 0

    def settle(self) -> None:
        """Take a checkpoint if it is due, and forget what is final."""
        evaluation = self.evaluation
        now, last = int(evaluation.at[NOW]), self.checkpoints[-1]
        if now > last.now and self._words * BYTES_PER_WORD >= (
            evaluation.store.nbytes() + BYTES_PER_ROW * evaluation.count_rows()
        ):
            self._take_checkpoint()
        oldest = now - self.reach
        # Where output times begin with a row that can be withdrawn, go back to before they began.
        is_open = self.can_begin_elsewhere and self.first_start >= oldest
        kept = thin_out(self.checkpoints, now, NEG_INF if is_open else oldest)
        if len(kept) < len(self.checkpoints):
            moved = kept[0] is not self.checkpoints[0]
            if kept[0].outdated:
                base, plan = self.checkpoints[0], self.plan
                repaired = None if plan is None else repair_checkpoint(self, plan, base, kept[0])
                kept, moved = ([repaired, *kept[1:]], True) if repaired else ([base, *kept], False)
            if moved:
                kept[0].mark.at[LAST] = self.find_last(kept[0].epoch)
            self.checkpoints = kept
            if moved:
                doubled = oldest if evaluation.grid.dense else 2 * oldest
                self.unmatched_before += self.ledger.forget(kept[0].epoch, doubled)
                self.answers.forget(kept[0].epoch)
                if evaluation.output is not None:
                    evaluation.output.keep_from(kept[0].mark.pulled)

    def find_last(self, epoch: int = PENDING - 1) -> int:
        """Return the position of the last time in the assertions of an epoch or one before that stand."""
        last, known = self.ledger.find_last(epoch), int(self.checkpoints[0].mark.at[LAST])
        return max(known, last if last == NEG_INF else last * self.evaluation.grid.tick)

    def note_violation(self, violated: Inconsistent | None) -> Inconsistent | None:
        """Return a violated constraint, unless it was reported before: a replay finds it again."""
        if violated is None or str(violated) in self.violations:
            return None
        self.violations.add(str(violated))
        return violated

    # Other numbers of constants, other grids, saved states

    def _rebuild(self, change: Callable[[], int]) -> None:
        """Change the grid: go back, change everything, and catch up again.

        `change` returns how many times as fine the grid has become.
        """
        evaluation, base = self.evaluation, self.checkpoints[0]
        now, over = int(evaluation.at[NOW]), bool(evaluation.at[CLOSED] >= evaluation.at[NOW])
        stops = [(checkpoint.now, checkpoint.over) for checkpoint in self.checkpoints[1:] if checkpoint.now < now]
        go_back(evaluation, base.mark)
        factor = change()
        self.checkpoints = [Checkpoint(mark_evaluation(evaluation, numbers=True), base.epoch)]
        if now > base.now:
            self.answers.take_after(base.epoch)
            self.catch_up(
                base.epoch, [(finer(position, factor), is_over) for position, is_over in [*stops, (now, over)]]
            )

    def refine(self, denominator: int) -> None:
        """Make the grid fine enough for times with a denominator."""
        grid = self.evaluation.grid
        if grid.dense and grid.denominator % denominator:

            def change() -> int:
                self.evaluation.refine(denominator)
                factor = self.evaluation.grid.denominator // grid.denominator
                self.ledger.refine(factor)
                self.first_clock, self.first_start = finer(self.first_clock, factor), finer(self.first_start, factor)
                return factor

            self._rebuild(change)

    def forget_names(self) -> None:
        """Drop constants that nothing mentions any more, once there are many."""
        ids = self.evaluation.forget_names(self._mark_constants)
        if ids is not None:
            self.ledger.renumber(ids)
            self.answers.renumber(ids)
            self.checkpoints = [checkpoint.renumber(self.evaluation, ids) for checkpoint in self.checkpoints]

    def _mark_constants(self, used: NDArray[np.bool_]) -> None:
        self.ledger.mark_constants(used)
        self.answers.mark_constants(used)
        if len(used) - np.count_nonzero(used) >= MANY_NAMES:  # otherwise, they all stay
            for checkpoint in self.checkpoints:
                checkpoint.mark_constants(self.evaluation, used)

    @contextmanager
    def at_oldest_checkpoint(self) -> Iterator[None]:
        """Let the evaluation be that of the oldest checkpoint for a while."""
        now = mark_evaluation(self.evaluation, numbers=True)
        go_back(self.evaluation, self.checkpoints[0].mark.copy())
        try:
            yield
        finally:
            go_back(self.evaluation, now)
