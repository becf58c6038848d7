"""Run many steps in one call of the stream kernel, and give it the space that it needs.

A call returns where an array is full or something has to be decided in Python; the next call resumes there.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tidelog.engine import retention, stream_kernel
from tidelog.engine.fact_store import Int64s
from tidelog.engine.store_tables import double_queue
from tidelog.engine.stream_kernel import EMPTY, END, LATER_END, N_FOUND, N_TIMES, NEEDED, Task, Todo
from tidelog.errors import Inconsistent
from tidelog.streaming.output_times import OutputTimes
from tidelog.streaming.stream_plans import StreamEngine
from tidelog.timeline.grid import NEG_INF

#: Deferred records of one atom that touch are merged once there are more words than this, and twice as many as after
#: the last merge.
FEW_DEFERRED = 512

NOTHING = np.empty(0, np.int64)


class Decisions(Protocol):
    """What the stream kernel asks for while it takes steps."""

    def find_violation(self) -> Inconsistent | None:
        """Return the first violated constraint, if any."""

    def compute(self) -> Int64s:
        """Return the records that calculations derive from the pieces in the log."""

    def aggregate(self) -> Int64s:
        """Return the records that the aggregations due now derive."""


class Stepper:
    """The queues of the stream kernel and the space for its answers, which grow as needed and are reused."""

    def __init__(self) -> None:
        #: The nanoseconds of all steps so far.
        self.nanoseconds = 0
        self._queue, self._following = np.empty(256, np.int64), np.empty(256, np.int64)
        self._found = retention.Found(NOTHING.astype(np.int32), NOTHING, NOTHING)
        self._deferred = FEW_DEFERRED

    def take(
        self,
        engine: StreamEngine,
        task: Task,
        at: Int64s,
        output: OutputTimes | None,
        todo: Todo,
        first: int,
        stop: int,
        decisions: Decisions,
    ) -> tuple[retention.Found, Int64s, int, Inconsistent | None]:
        """Take steps, possibly not all.

        Return answers, records, the next step, and the violated constraint if there is one.
        """
        store, code = engine.store, engine.code
        taken = np.empty((stop, stream_kernel.NOTES), np.int64)
        at[N_FOUND] = 0
        heap = output.heap if output else NOTHING
        take = engine.tier.choose(code, task, store.preds)
        step, violated = first, None
        while True:
            at[LATER_END] = store.later_end
            status, step, turned = take(
                code,
                store.tables(code),
                task,
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
            if turned:
                self._queue, self._following = self._following, self._queue
            store.later_end = int(at[LATER_END])
            if status == stream_kernel.STORE_FULL:
                store.grow()
            elif status == stream_kernel.NO_SPACE:
                self._following = double_queue(self._following)
            elif status == stream_kernel.NO_SPACE_LATER:
                store.later = double_queue(store.later)
            elif status == stream_kernel.QUEUE_FULL:
                records = int(_count_in_step(todo.record_ends, step)) + store.later_end
                requests = len(task.plans) + len(task.visits) + len(task.remakes)
                self._grow_queues(max(records, 4 * requests + stream_kernel.ASKED))
                if output is not None:
                    heap = output.with_room(int(at[N_TIMES] + _count_in_step(todo.time_ends, step)))
            elif status == stream_kernel.ANSWERS_FULL:
                self._found = _enlarge(self._found, int(at[NEEDED]), task.arity)
            elif status == stream_kernel.SPARSE:
                store.compact()
                at[EMPTY] = 0
            elif status == stream_kernel.VIOLATED:
                violated, stop = decisions.find_violation(), step + 1
            elif status == stream_kernel.LOGGED:
                self._queue, at[END] = with_room(self._queue, decisions.compute(), 0)
            elif status == stream_kernel.AGGREGATE:
                self._queue, at[END] = with_room(self._queue, decisions.aggregate(), int(at[END]))
            else:
                break
        spent = int(taken[first:step, stream_kernel.TOOK].sum())
        self.nanoseconds += spent
        engine.tier.count(spent, code, task, store.preds)
        if store.later_end > self._deferred:
            store.defer(store.deferred())
            self._deferred = max(FEW_DEFERRED, 2 * store.later_end)
        count = int(at[N_FOUND])
        args, lo, hi = self._found
        found = retention.Found(args[: count * task.arity].copy(), lo[:count].copy(), hi[:count].copy())
        return found, taken, step, violated

    def _grow_queues(self, need: int) -> None:
        """Make room for this many words in both queues, which change places during a step."""
        self._queue, self._following = _grow_queue(self._queue, need), _grow_queue(self._following, need)


def _grow_queue(queue: Int64s, need: int) -> Int64s:
    """Return a queue with room for this many words, and the same words."""
    if need <= len(queue):
        return queue
    larger = np.empty(max(need, 2 * len(queue)), np.int64)
    larger[: len(queue)] = queue
    return larger


def with_room(queue: Int64s, records: Int64s, end: int) -> tuple[Int64s, int]:
    """Write records behind the end of a queue; return the queue, which may be a larger one, and its new end."""
    need = end + len(records)
    if need > len(queue):
        larger = np.empty(max(need, 2 * len(queue)), np.int64)
        larger[:end] = queue[:end]
        queue = larger
    queue[end:need] = records
    return queue, need


def _count_in_step(ends: Int64s, step: int) -> int:
    """Return how much of a list that ends at `ends` belongs to a step."""
    return int(ends[step] - (ends[step - 1] if step else 0))


def _enlarge(found: retention.Found, count: int, arity: int) -> retention.Found:
    """Return the answers so far, with space for at least `count`."""
    size = max(count, 4 * len(found.lo))
    larger = retention.Found(np.empty(size * arity, np.int32), np.empty(size, np.int64), np.empty(size, np.int64))
    for old, new in zip(found, larger, strict=True):
        new[: len(old)] = old
    return larger


def make_quiet_step() -> Todo:
    """Make a step without facts, at a time that is set later."""
    time, zero = np.empty(1, np.int64), np.zeros(1, np.int64)
    return Todo(time, np.full(1, NEG_INF), np.zeros(1, np.bool_), NOTHING, zero, NOTHING, zero)
