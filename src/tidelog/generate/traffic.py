"""A small traffic simulator: vehicles on a ring of roads, one of which is blocked for a while.

Once a second every vehicle reports whether it drives or halts (`Drive(v)@7`, `Halt(v)@7`). `On(v,road)` holds from the
second in which it enters a road until it enters the next. `Feeds(a,b)` is background: road a leads to road b.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from operator import itemgetter
from random import Random

#: How long a vehicle drives along a road, in seconds.
LENGTH = 20
#: The time from one blockage of the road to the next, in seconds.
CYCLE = 200


def generate_facts(vehicles: int = 40, seconds: int = 200, *, roads: int = 6, seed: int = 0) -> Iterator[str]:
    """Generate the stream as fact text, one fact per item, in order of time.

    Road `r0` is blocked in the middle third of the time, or of every `CYCLE` seconds.

    >>> next(generate_facts())
    'Feeds(r0,r1)'
    """
    for road in range(roads):
        yield f"Feeds(r{road},r{(road + 1) % roads})"
    cycle = min(seconds, CYCLE)
    blocked = range(cycle // 3, 2 * cycle // 3)
    streams = (_simulate_vehicle(number, seconds, roads, cycle, blocked, seed) for number in range(vehicles))
    yield from (line for _, line in heapq.merge(*streams, key=itemgetter(0)))


def _simulate_vehicle(
    number: int, seconds: int, roads: int, cycle: int, blocked: range, seed: int
) -> Iterator[tuple[int, str]]:
    """Generate the facts of one vehicle, which makes short stops, and halts at the end of the blocked road.

    The time at which it leaves a road is known only then, so its reports on that road are held back until then.
    """
    vehicle, rng = f"v{number}", Random(f"{seed}/{number}")
    road, position, entered, stop = rng.randrange(roads), rng.randrange(LENGTH), 0, 0
    reports: list[tuple[int, str]] = []
    for second in range(seconds):
        if stop == 0 and rng.random() < 0.02:
            stop = rng.randint(1, 4)
        if stop > 0 or (road == 0 and position == LENGTH - 1 and second % cycle in blocked):
            stop = max(0, stop - 1)
            reports.append((second, f"Halt({vehicle})@{second}"))
            continue
        reports.append((second, f"Drive({vehicle})@{second}"))
        position += 1
        if position == LENGTH:
            yield entered, f"On({vehicle},r{road})@[{entered},{second + 1})"
            yield from reports
            reports = []
            road, position, entered = (road + 1) % roads, 0, second + 1
    if entered < seconds:
        yield entered, f"On({vehicle},r{road})@[{entered},{seconds})"
        yield from reports
