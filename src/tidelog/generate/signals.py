"""A network of nodes that monitor signals: `Connect` is background, `Signal` and `Monit` have times.

A node that monitors a signal may flag it. Its neighbours then monitor it too, and so the flags spread.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from operator import itemgetter
from random import Random


def generate_facts(nodes: int = 20, signals: int = 3, horizon: int = 100, *, seed: int = 0) -> Iterator[str]:
    """Generate a ring of nodes with some shortcuts; every signal is sent with pauses of one to three time units.

    >>> list(generate_facts(nodes=2, signals=1, horizon=3))
    ['Connect(n0,n1)', 'Connect(n1,n0)', 'Monit(n0,z0)@[0,10]', 'Signal(z0)@0', 'Signal(z0)@1']
    """
    rng = Random(seed)
    for node in range(nodes):
        yield f"Connect(n{node},n{(node + 1) % nodes})"
    for _ in range(nodes // 5):
        one, other = rng.sample(range(nodes), 2)
        yield f"Connect(n{one},n{other})"
    for signal in range(signals):
        yield f"Monit(n{signal % nodes},z{signal})@[0,10]"
    streams = (_send_signal(signal, horizon, seed) for signal in range(signals))
    yield from (line for _, line in heapq.merge(*streams, key=itemgetter(0)))


def _send_signal(signal: int, horizon: int, seed: int) -> Iterator[tuple[int, str]]:
    rng = Random(f"{seed}/{signal}")
    at = 0
    while at < horizon:
        yield at, f"Signal(z{signal})@{at}"
        at += rng.choices((1, 2, 3), weights=(4, 4, 1))[0]
