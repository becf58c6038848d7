"""Search for an input on which one query has an answer that another lacks, over known objects.

Whatever is found is checked a second time: a proof by a separate solver, a witness by the streaming algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from tidelog.language.syntax import Value
from tidelog.windows.forward_query import ForwardQuery
from tidelog.windows.incremental_solver import Deadline, Effort
from tidelog.windows.product_program import build_product, count_instances
from tidelog.windows.product_search import is_invariant, search_product
from tidelog.windows.unrolled_product import find_shortest_loss
from tidelog.windows.window_algorithm import run_window_algorithm
from tidelog.windows.witness import Witness, find_witness

#: Seconds, or steps, to verify a result once the search itself has finished in time.
_GRACE_SECONDS = 10.0
_GRACE_STEPS = 2_000_000
#: With more bits per state, or more rule instances, a search may take minutes or longer (see `make bench-window`).
PRACTICAL_BITS = 150
PRACTICAL_INSTANCES = 50_000


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """Progress of the search for one window: no answer is lost within `steps` time points.

    Before the search begins, `steps` is 0. `bits` is 0 until the rules are instantiated; `instances` is an upper bound
    on the number of their instances. `cubes` is the number of partial states excluded so far."""

    window: int
    instances: int
    bits: int = 0
    steps: int = 0
    cubes: int = 0

    @property
    def practical(self) -> bool:
        """Whether searches of this size finish within minutes."""
        return self.bits <= PRACTICAL_BITS and self.instances <= PRACTICAL_INSTANCES


ProgressCallback = Callable[[SearchProgress], None]


def find_window_loss(
    query: ForwardQuery,
    window: int,
    objects: Sequence[Value],
    deadline: float | None,
    progress: ProgressCallback | None,
) -> Witness | None:
    """Return a replayed witness that a window is not valid, or None if it is proved that it is.

    With negation, a window may also give wrong answers, which is tried if it is proved that none is lost."""
    part = query.restrict_to(window)
    witness = find_loss(query, part, objects, deadline, progress, window)
    if witness is None and query.negates:
        found = find_loss(part, query, objects, deadline, progress, window)
        witness = replace(found, wrong=True) if found else None
    if witness is not None:
        replay_window(query, window, witness)
    return witness


def find_loss(
    left: ForwardQuery,
    right: ForwardQuery,
    objects: Sequence[Value],
    deadline: Deadline,
    progress: ProgressCallback | None = None,
    window: int = 0,
) -> Witness | None:
    """Return a shortest input on which the right query lacks an answer of the left, or None if provably there is none.

    A separate solver checks the proof; the streaming algorithm checks a witness."""
    report = progress or (lambda _: None)
    so_far = SearchProgress(window, count_instances(left, objects) + count_instances(right, objects))
    report(so_far)
    product = build_product(left, right, objects, deadline)
    so_far = replace(so_far, bits=product.bits)
    report(so_far)
    length, certain = find_shortest_loss(product, deadline)
    if length is None and not certain:
        found = search_product(
            product, deadline, lambda steps, cubes: report(replace(so_far, steps=steps, cubes=cubes))
        )
        if isinstance(found, int):
            length = found
        elif not is_invariant(product, found, _grace_deadline(deadline)):
            raise AssertionError("the search returned an invariant that does not hold")
    if length is None:
        return None
    witness = find_witness(product, length, _grace_deadline(deadline))
    _replay(left, left.radius, right, right.radius, witness)
    return witness


def _grace_deadline(deadline: Deadline) -> Deadline:
    if isinstance(deadline, Effort):
        return Effort(_GRACE_STEPS)
    return None if deadline is None else monotonic() + _GRACE_SECONDS


def replay_window(query: ForwardQuery, window: int, witness: Witness) -> None:
    """Check that the streaming algorithm with a window loses the answer of the witness, or gives it wrongly."""
    runs = (query, query.radius), (query, window)
    (first, most), (second, least) = reversed(runs) if witness.wrong else runs
    _replay(first, most, second, least, witness)


def _replay(whole: ForwardQuery, most: int, part: ForwardQuery, least: int, witness: Witness) -> None:
    """Check that the streaming algorithm, run for each query with its window, loses the answer of the witness."""
    _, args, time = witness.lost
    background = [(name, values) for name, values, _ in witness.background]
    full, cut = (
        run_window_algorithm(query, window, background, witness.steps)
        for query, window in ((whole, most), (part, least))
    )
    if args not in full[time or 0] or args in cut[time or 0]:
        raise AssertionError(f"this witness loses nothing: {witness}")
