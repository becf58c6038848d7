"""A small traffic simulator: vehicles on a ring of roads, one of which is blocked for a while.

Once a second every vehicle says whether it drives or halts (`Drive(v)@7`, `Halt(v)@7`); `On(v,road)` holds from the
second at which it enters a road until it enters the next. `Feeds(a,b)` is background: from road a one drives to b.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from importlib.resources import files
from operator import itemgetter
from random import Random

#: How long a vehicle drives along a road, in seconds.
LENGTH = 20
#: How often the road is blocked, in seconds.
CYCLE = 200


def program() -> str:
    """The rules that come with the simulator: short stops, jams, and whom to warn of them."""
    return files("tidelog.generate").joinpath("traffic.dmtl").read_text(encoding="utf-8")


def facts(vehicles: int = 40, seconds: int = 200, *, roads: int = 6, seed: int = 0) -> Iterator[str]:
    """The stream as fact text, one fact an item, in the order of time. Road `r0` is blocked in the middle third of the
    time, or of every `CYCLE` seconds.

    >>> next(facts())
    'Feeds(r0,r1)'
    """
    for road in range(roads):
        yield f"Feeds(r{road},r{(road + 1) % roads})"
    cycle = min(seconds, CYCLE)
    blocked = range(cycle // 3, 2 * cycle // 3)
    drives = (_drive(number, seconds, roads, cycle, blocked, seed) for number in range(vehicles))
    yield from (line for _, line in heapq.merge(*drives, key=itemgetter(0)))


def _drive(number: int, seconds: int, roads: int, cycle: int, blocked: range, seed: int) -> Iterator[tuple[int, str]]:
    """One vehicle: it makes short stops now and then, and stands at the end of the blocked road until it is free.

    When it leaves a road is known when it does, so what it reports on it is held back until then.
    """
    vehicle, rng = f"v{number}", Random(f"{seed}/{number}")
    road, way, entered, stop = rng.randrange(roads), rng.randrange(LENGTH), 0, 0
    reports: list[tuple[int, str]] = []
    for second in range(seconds):
        if stop == 0 and rng.random() < 0.02:
            stop = rng.randint(1, 4)
        if stop > 0 or (road == 0 and way == LENGTH - 1 and second % cycle in blocked):
            stop = max(0, stop - 1)
            reports.append((second, f"Halt({vehicle})@{second}"))
            continue
        reports.append((second, f"Drive({vehicle})@{second}"))
        way += 1
        if way == LENGTH:
            yield entered, f"On({vehicle},r{road})@[{entered},{second + 1})"
            yield from reports
            reports = []
            road, way, entered = (road + 1) % roads, 0, second + 1
    if entered < seconds:
        yield entered, f"On({vehicle},r{road})@[{entered},{seconds})"
        yield from reports
