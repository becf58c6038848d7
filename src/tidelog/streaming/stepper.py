"""Steps in compiled code, many in one call (`engine.steps`), with the room that they need.

A call comes back where something is full, or has to be looked at; then there is more room, and it goes on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidelog.engine import steps, window
from tidelog.engine.steps import EMPTY, LATER_END, N_FOUND, N_TIMES, NEEDED, Task, Todo
from tidelog.engine.store import Int64s
from tidelog.reasoning import Inconsistent
from tidelog.streaming.standing import Engine
from tidelog.streaming.times import OutputTimes

#: Words of deferred records that are left as they are; once there are more, and twice as many as there were after the
#: last time, those of one atom that meet are made one.
FEW_DEFERRED = 512

NOTHING = np.empty(0, np.int64)


class Stepper:
    """The queues of steps and the room for their answers, which grow as need be and are used again."""

    def __init__(self) -> None:
        #: The nanoseconds of all steps.
        self.nanoseconds = 0
        self._queue, self._following = np.empty(256, np.int64), np.empty(256, np.int64)
        self._found = window.Found(NOTHING.astype(np.int32), NOTHING, NOTHING)
        self._deferred = FEW_DEFERRED

    def take(
        self,
        engine: Engine,
        task: Task,
        at: Int64s,
        output: OutputTimes | None,
        todo: Todo,
        first: int,
        stop: int,
        violation: Callable[[], Inconsistent | None],
    ) -> tuple[window.Found, Int64s, int, Inconsistent | None]:
        """Takes steps. Returns their answers, what is noted of them, up to which step it came, maybe not to all, and
        what `violation` said if a constraint is violated."""
        store, code = engine.store, engine.code
        taken = np.empty((stop, steps.NOTES), np.int64)
        at[N_FOUND] = 0
        heap = output.heap if output else NOTHING
        step, violated = first, None
        while True:
            at[LATER_END] = store.later_end
            status, step, self._queue, self._following, store.later = steps.take(
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
            store.later_end = int(at[LATER_END])
            if status == steps.STORE_FULL:
                store.grow()
            elif status == steps.QUEUE_FULL:
                records = int(_length(todo.record_ends, step)) + store.later_end
                self._grow_queue(max(records, 4 * (len(task.plans) + len(task.visits)) + steps.ASKED))
                if output is not None:
                    heap = output.with_room(int(at[N_TIMES] + _length(todo.time_ends, step)))
            elif status == steps.ANSWERS_FULL:
                self._found = _larger(self._found, int(at[NEEDED]), task.arity)
            elif status == steps.SPARSE:
                store.compact()
                at[EMPTY] = 0
            elif status == steps.VIOLATED:
                violated, stop = violation(), step + 1
            else:
                break
        self.nanoseconds += int(taken[first:step, steps.TOOK].sum())
        if store.later_end > self._deferred:
            store.defer(store.deferred())
            self._deferred = max(FEW_DEFERRED, 2 * store.later_end)
        count = int(at[N_FOUND])
        args, lo, hi = self._found
        found = window.Found(args[: count * task.arity].copy(), lo[:count].copy(), hi[:count].copy())
        return found, taken, step, violated

    def _grow_queue(self, need: int) -> None:
        if need > len(self._queue):
            larger = np.empty(max(need, 2 * len(self._queue)), np.int64)
            larger[: len(self._queue)] = self._queue
            self._queue = larger


def _length(ends: Int64s, step: int) -> int:
    """How much of what ends there belongs to a step."""
    return int(ends[step] - (ends[step - 1] if step else 0))


def _larger(found: window.Found, count: int, arity: int) -> window.Found:
    """The answers so far, with room for so many and more."""
    size = max(count, 2 * len(found.lo))
    larger = window.Found(np.empty(size * arity, np.int32), np.empty(size, np.int64), np.empty(size, np.int64))
    for old, new in zip(found, larger, strict=True):
        new[: len(old)] = old
    return larger
