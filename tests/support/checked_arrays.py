"""Run kernels on arrays that refuse indexes outside of them, and that have no more room than was asked for.

Compiled code checks no index: a write beyond the end of an array destroys other objects, long before anything fails. A
negative index counts from the end of an array, so it goes unnoticed everywhere else. Buffers usually have more room
than was asked for, because they start large and double; here they do not, so that asking for too little is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast
from unittest import mock

import numpy as np

from kernel_ways import run_kernels
from tidelog.data import symbol_table
from tidelog.engine import fact_store, plan_machine, store_tables
from tidelog.engine.fact_store import Store
from tidelog.jit import Array, interpreter
from tidelog.jit.interpreter import make_view
from tidelog.streaming import stepper
from tidelog.streaming.stepper import NOTHING, Stepper


class OutsideOfArray(AssertionError):
    """A kernel has used an index outside of an array."""


class CheckedArray:
    """An array as interpreted kernels see it: a memoryview that refuses every index outside of it."""

    def __init__(self, array: Array) -> None:
        self.view = make_view(array)
        self.shape = array.shape

    def __len__(self) -> int:
        return len(self.view)

    def __iter__(self) -> Iterator[int]:
        return iter(self.view)

    def __getitem__(self, at: Any) -> Any:
        self._check(at)
        return self.view[at]

    def __setitem__(self, at: Any, value: Any) -> None:
        self._check(at)
        self.view[at] = value

    def _check(self, at: Any) -> None:
        places = at if isinstance(at, tuple) else (at,)
        if len(places) != len(self.shape) or not all(map(_is_within, places, self.shape)):
            raise OutsideOfArray(f"index {at} of an array of shape {self.shape}")


def _is_within(place: int, size: int) -> bool:
    return 0 <= place < size


def _to_arrays(value: Any) -> Any:
    if isinstance(value, CheckedArray):
        return np.asarray(value.view.obj)
    return tuple(map(_to_arrays, value)) if isinstance(value, tuple) else value


@contextmanager
def check_arrays(*, tight: bool = False) -> Iterator[None]:
    """Interpret all kernels with checked arrays; if `tight`, with no more room than is asked for."""
    patches: list[tuple[Any, str, Any]] = [
        (interpreter, "make_view", CheckedArray),
        (interpreter, "_to_arrays", _to_arrays),
    ]
    if tight:
        patches += [
            (Store, "__init__", _make_small_store),
            (Stepper, "__init__", _make_small_stepper),
            (fact_store, "enlarge", _enlarge),
            (symbol_table, "grow_array", _enlarge),
            (stepper, "_grow_queue", _enlarge),
            (stepper, "double_queue", _extend_queue),
            (store_tables, "double_queue", _extend_queue),
        ]
    with ExitStack() as stack:
        for owner, name, stand_in in patches:
            stack.enter_context(mock.patch.object(owner, name, stand_in))
        # Look at records ahead however few atoms there are.
        scope = cast(Any, plan_machine.run).interpreted.__globals__
        stack.enter_context(mock.patch.dict(scope, FEW_ATOMS=0))
        stack.enter_context(run_kernels("interpreted"))
        yield


def _enlarge(array: Array, rows: int) -> Array:
    """Return the array, or a copy with exactly this many rows."""
    if rows <= len(array):
        return array
    larger = np.empty((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def _extend_queue(queue: Array) -> Array:
    """Return a queue with the same words and little more room."""
    return _enlarge(queue, len(queue) + 8)


_make_store, _make_stepper = Store.__init__, Stepper.__init__


def _make_small_stepper(made: Stepper) -> None:
    """Make a stepper without room for anything."""
    _make_stepper(made)
    made._queue, made._following = NOTHING, NOTHING


def _make_small_store(store: Store, arities: list[int], dense: bool, ranks: fact_store.Int64s) -> None:
    """Make a store with as little room as it can work with."""
    _make_store(store, arities, dense, ranks)
    store.atoms, store.iv, store.entries, store.pieces = (
        store.atoms[:2],
        store.iv[:1],
        store.entries[:1],
        store.pieces[:1],
    )
    store.args, store.later = store.args[:1], store.later[:1]
    store.table, store.keys = store.table[:2], store.keys[:2]
