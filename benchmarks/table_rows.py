"""The rows of the benchmark tables, and how they are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """One row: what was measured, the figure that counts, and the goal for that figure, if any."""

    what: str
    facts: int | None
    cpu: float
    wall: float
    figure: str
    goal: str = ""
    note: str = ""


def measure(work: Callable[[], T], repeats: int = 1) -> tuple[T, float, float]:
    """Run some work several times; return its result with the least CPU and wall time."""
    cpu = wall = float("inf")
    for _ in range(repeats):
        began, began_cpu = perf_counter(), process_time()
        result = work()
        cpu, wall = min(cpu, process_time() - began_cpu), min(wall, perf_counter() - began)
    return result, cpu, wall
