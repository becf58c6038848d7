"""The streaming algorithm that defines windows (algorithm 1 of the paper, with full materialisation).

It keeps a set M of facts, initially the background. At each time t = 0, 1, 2, ...

1. the facts of the stream that hold at t are added to M;
2. all facts that hold at t and follow from M and the rules that look back at most w, of every derived predicate, are
   added to M;
3. the facts of the output predicate that hold at t are output;
4. all facts that hold at t - w are removed from M.

So the present is derived from the facts of t - w, ..., t alone. The window w is **valid** for a query and a set of
objects if, for every background and stream over these objects, the output up to any time is exactly what follows
from background and stream up to that time. Input facts belong to predicates that no rule derives.

A rule that looks back further than w could not be applied in step 2 anyway, unless it looks back at a negated atom.
Then it is left out, because a fact that is not remembered may have held. With negation, the output may lack answers
and may have wrong ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.language.syntax import Value
from tidelog.windows.forward_query import ForwardQuery, order_rules
from tidelog.windows.pointwise_evaluation import Facts, add_fact, derive_present, derive_rigid


def run_window_algorithm(
    query: ForwardQuery, window: int, background: Iterable[tuple[str, tuple[Value, ...]]], stream: Mapping[int, Facts]
) -> dict[int, frozenset[tuple[Value, ...]]]:
    """Return the output of the algorithm at each time, up to the last time of the stream."""
    rigid: Facts = {}
    for predicate, values in (*query.facts, *background):
        add_fact(rigid, predicate, values)
    rules = query.restrict_to(window).rules
    derive_rigid(rules, rigid)
    layers = order_rules(rule for rule in rules if rule.temporal)
    memory: dict[int, Facts] = {}
    output: dict[int, frozenset[tuple[Value, ...]]] = {}
    for t in range(max(stream, default=-1) + 1):
        now = {name: dict(found) for name, found in stream.get(t, {}).items()}
        derive_present(layers, now, {t - then: held for then, held in memory.items()}, rigid)
        memory[t] = now
        output[t] = frozenset((now if query.output in query.temporal else rigid).get(query.output, ()))
        memory.pop(t - window, None)
    return output
