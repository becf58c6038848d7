"""The streaming algorithm that windows are defined by (algorithm 1 of the paper, with full materialisation).

It keeps a set M of facts, at first the background. At each time t = 0, 1, 2, ...

1. the stream's facts that hold at t are added to M;
2. all facts that hold at t and follow from the rules and M, of every derived predicate, are added to M;
3. the facts of the output predicate that hold at t are given out;
4. all facts that hold at t - w are removed from M.

So the present is derived from the facts of t - w, ..., t alone. The window w is **valid** for a query and a set of
objects if, whatever background and stream over these objects come in, all that is given out up to any time is all that
follows from background and stream together, up to that time. Input facts are of predicates that no rule derives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.language.syntax import Value
from tidelog.windows.evaluate import Facts, add, close, close_rigid
from tidelog.windows.query import Query


def streamed(
    query: Query, window: int, background: Iterable[tuple[str, tuple[Value, ...]]], stream: Mapping[int, Facts]
) -> dict[int, frozenset[tuple[Value, ...]]]:
    """What the algorithm gives out at each time up to the last of the stream."""
    rigid: Facts = {}
    for predicate, values in (*query.facts, *background):
        add(rigid, predicate, values)
    close_rigid(query.rules, rigid)
    memory: dict[int, Facts] = {}
    given: dict[int, frozenset[tuple[Value, ...]]] = {}
    for t in range(max(stream, default=-1) + 1):
        now = {name: dict(found) for name, found in stream.get(t, {}).items()}
        close(query.rules, now, {t - then: held for then, held in memory.items()}, rigid)
        memory[t] = now
        given[t] = frozenset((now if query.output in query.temporal else rigid).get(query.output, ()))
        memory.pop(t - window, None)
    return given
