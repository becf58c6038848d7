"""Wind turbines that report how hot they are, at every time point; reports come late, in any order within a delay."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from itertools import count
from random import Random

#: A predicate, its arguments, and when it holds.
Reading = tuple[str, tuple[str, str], int]
#: By how much readings are late at most, and how often a turbine is hot, unless told.
DELAY = 2
HIGH = 0.4


def program() -> str:
    """The rules that come with the turbines: malfunctions and defects."""
    return files("tidelog.generate").joinpath("turbines.tdl").read_text(encoding="utf-8")


def batches(
    turbines: int = 10, steps: int | None = None, *, delay: int = DELAY, high: float = HIGH, seed: int = 0
) -> Iterator[list[Reading]]:
    """What arrives at 0, 1, 2, ..., shuffled: the readings of so many time points, or without end.

    >>> next(batches(turbines=1, delay=0, high=1.0))
    [('Temp', ('wt0', 'high'), 0)]
    """
    rng = Random(seed)
    names = [f"wt{i}" for i in range(turbines)]
    coming: list[list[Reading]] = [[] for _ in range(delay + 1)]
    for t in count() if steps is None else range(steps + delay):
        if steps is None or t < steps:
            for name in names:
                level = "high" if rng.random() < high else "low"
                coming[rng.randint(0, delay)].append(("Temp", (name, level), t))
        batch = coming.pop(0)
        coming.append([])
        rng.shuffle(batch)
        yield batch


def arrivals(turbines: int = 10, *, delay: int = DELAY, seed: int = 0) -> Iterator[tuple[int, str]]:
    """When each reading arrives, and the reading as a fact of temporal Datalog.

    >>> next(arrivals(turbines=1, delay=0))
    (0, 'Temp(wt0,low,0)')
    """
    for arrival, batch in enumerate(batches(turbines, delay=delay, seed=seed)):
        for predicate, (name, level), t in batch:
            yield arrival, f"{predicate}({name},{level},{t})"
