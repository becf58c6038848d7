"""Wind turbines that report their temperature at every time point; reports are late by up to a delay, in any order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random

#: A predicate, its arguments, and its time.
Reading = tuple[str, tuple[str, str], int]
#: Defaults: how late readings are at most, and the share of hot readings.
DELAY = 2
HIGH = 0.4


def generate_batches(
    turbines: int = 10, steps: int | None = None, *, delay: int = DELAY, high: float = HIGH, seed: int = 0
) -> Iterator[list[Reading]]:
    """Generate the readings that arrive at 0, 1, 2, ..., shuffled: those of `steps` time points, or without end.

    >>> next(generate_batches(turbines=1, delay=0, high=1.0))
    [('Temp', ('wt0', 'high'), 0)]
    """
    rng = Random(seed)
    names = [f"wt{i}" for i in range(turbines)]
    pending: list[list[Reading]] = [[] for _ in range(delay + 1)]
    for t in count() if steps is None else range(steps + delay):
        if steps is None or t < steps:
            for name in names:
                level = "high" if rng.random() < high else "low"
                pending[rng.randint(0, delay)].append(("Temp", (name, level), t))
        batch = pending.pop(0)
        pending.append([])
        rng.shuffle(batch)
        yield batch


def generate_arrivals(turbines: int = 10, *, delay: int = DELAY, seed: int = 0) -> Iterator[tuple[int, str]]:
    """Generate readings as facts of temporal Datalog, each with its arrival time.

    >>> next(generate_arrivals(turbines=1, delay=0))
    (0, 'Temp(wt0,low,0)')
    """
    for arrival, batch in enumerate(generate_batches(turbines, delay=delay, seed=seed)):
        for predicate, (name, level), t in batch:
            yield arrival, f"{predicate}({name},{level},{t})"
