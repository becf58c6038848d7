"""A small traffic simulator: vehicles on a ring of roads, one of which is blocked for a while.

Once a second every vehicle says whether it drives or halts (`Drive(v)@7`, `Halt(v)@7`); `On(v,road)` holds from the
second at which it enters a road until it enters the next. `Feeds(a,b)` is background: from road a one drives to b.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from random import Random

#: How long a vehicle drives along a road, in seconds.
LENGTH = 20


def program() -> str:
    """The rules that come with the simulator: short stops, jams, and whom to warn of them."""
    return files("tidelog.generate").joinpath("traffic.dmtl").read_text(encoding="utf-8")


def facts(vehicles: int = 40, seconds: int = 200, *, roads: int = 6, seed: int = 0) -> Iterator[str]:
    """The stream as fact text, one fact an item. Road `r0` is blocked in the middle third of the time.

    >>> next(facts())
    'Feeds(r0,r1)'
    """
    rng = Random(seed)
    for road in range(roads):
        yield f"Feeds(r{road},r{(road + 1) % roads})"
    blocked = range(seconds // 3, 2 * seconds // 3)
    for number in range(vehicles):
        yield from _drive(f"v{number}", seconds, roads, blocked, rng)


def _drive(vehicle: str, seconds: int, roads: int, blocked: range, rng: Random) -> Iterator[str]:
    """One vehicle: it makes short stops now and then, and stands at the end of the blocked road until it is free."""
    road, way, entered, stop = rng.randrange(roads), rng.randrange(LENGTH), 0, 0
    for second in range(seconds):
        if stop == 0 and rng.random() < 0.02:
            stop = rng.randint(1, 4)
        if stop > 0 or (road == 0 and way == LENGTH - 1 and second in blocked):
            stop = max(0, stop - 1)
            yield f"Halt({vehicle})@{second}"
            continue
        yield f"Drive({vehicle})@{second}"
        way += 1
        if way == LENGTH:
            yield f"On({vehicle},r{road})@[{entered},{second + 1})"
            road, way, entered = (road + 1) % roads, 0, second + 1
    if entered < seconds:
        yield f"On({vehicle},r{road})@[{entered},{seconds})"
