"""A network of nodes that watch signals: `Connect` is background, `Signal` and `Monit` come at times.

It goes with the rules in `examples/signals/signals.dmtl`: a node that watches a signal flags it, its neighbours watch
it then, and so the news travels.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random


def facts(nodes: int = 20, signals: int = 3, horizon: int = 100, *, seed: int = 0) -> Iterator[str]:
    """A ring of nodes with some shortcuts; every signal is sent with pauses of one to three time units.

    >>> list(facts(nodes=2, signals=1, horizon=3))
    ['Connect(n0,n1)', 'Connect(n1,n0)', 'Monit(n0,z0)@[0,10]', 'Signal(z0)@0', 'Signal(z0)@2']
    """
    rng = Random(seed)
    for node in range(nodes):
        yield f"Connect(n{node},n{(node + 1) % nodes})"
    for _ in range(nodes // 5):
        one, other = rng.sample(range(nodes), 2)
        yield f"Connect(n{one},n{other})"
    for signal in range(signals):
        yield f"Monit(n{signal % nodes},z{signal})@[0,10]"
        at = 0
        while at < horizon:
            yield f"Signal(z{signal})@{at}"
            at += rng.choices((1, 2, 3), weights=(4, 4, 1))[0]
