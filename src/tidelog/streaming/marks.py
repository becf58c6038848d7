"""Marks of an evaluation: points of a stream that it can be rolled back to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tidelog.engine.fact_store import Int64s, Store
from tidelog.streaming.stepper import NOTHING

if TYPE_CHECKING:
    from tidelog.streaming.query_evaluation import Evaluation


@dataclass(frozen=True)
class Mark:
    """A point that an evaluation can be rolled back to."""

    store: Store
    at: Int64s
    heap: Int64s
    #: How many output times had been taken, where they are given one by one.
    pulled: int = 0
    #: The state of calculations and aggregations, if there are any and it was asked for.
    numbers: Mapping[str, NDArray[Any]] | None = None

    def copy(self) -> Mark:
        """Return an independent copy, which can be used without using up this mark."""
        return replace(self, store=self.store.copy(), at=self.at.copy(), heap=self.heap.copy())


def mark_evaluation(evaluation: Evaluation, numbers: bool = False) -> Mark:
    """Return a mark to roll back to; with `numbers`, also the calculations and aggregations of the rules."""
    heap, pulled = (
        (evaluation.output.heap.copy(), evaluation.output.count_pulled) if evaluation.output else (NOTHING, 0)
    )
    state = None
    if numbers and evaluation.numbers is not None:
        state = evaluation.numbers.state(tidy=False)
    return Mark(evaluation.store.copy(), evaluation.at.copy(), heap, pulled, state)


def go_back(evaluation: Evaluation, mark: Mark) -> None:
    """Roll back to a mark; a mark can be used once."""
    mark.store.ranks = evaluation.store.ranks  # there may be new constants
    evaluation.engine = replace(evaluation.engine, store=mark.store)
    evaluation.at[:] = mark.at
    if evaluation.output:
        evaluation.output.heap = mark.heap
        evaluation.output.return_to(mark.pulled)
    if mark.numbers is not None:
        from tidelog.engine.running_numbers import RunningNumbers

        evaluation.numbers = RunningNumbers(evaluation.form, evaluation.symbols)
        evaluation.numbers.restore({name: array.copy() for name, array in mark.numbers.items()}, None)
