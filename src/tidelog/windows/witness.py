"""A stream on which an answer is lost: as short as can be, then with as few facts as can be, then the first in the
order of predicates and objects."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from tidelog.language.facts import format_value
from tidelog.language.syntax import Value
from tidelog.windows.evaluate import Facts, add
from tidelog.windows.ground import Product
from tidelog.windows.solver import OutOfTime, Solver
from tidelog.windows.unrolled import Unrolled

#: Seconds that a witness may take to become small, once it is known that there is one.
_TIDYING = 10.0

#: A fact: its predicate, its arguments, and its time, None for a rigid one.
TimedFact = tuple[str, tuple[Value, ...], int | None]


@dataclass(frozen=True)
class Witness:
    """Background and stream facts on which `lost` is an answer that is not given out, as temporal Datalog writes them.

    >>> Witness((("Succ", ("low", "high"), None),), (("Brst", ("a", "b"), 0),), ("Black", ("a",), 0)).to_json()
    {'background': ['Succ(low,high)'], 'stream': ['Brst(a,b,0)'], 'lost': 'Black(a,0)'}
    """

    background: tuple[TimedFact, ...]
    stream: tuple[TimedFact, ...]
    lost: TimedFact

    def to_json(self) -> dict[str, object]:
        return {
            "background": [format_timed(fact) for fact in self.background],
            "stream": [format_timed(fact) for fact in self.stream],
            "lost": format_timed(self.lost),
        }

    @property
    def steps(self) -> dict[int, Facts]:
        """The stream by time, from 0 to the time of the lost answer."""
        last = self.lost[2] or 0
        found: dict[int, Facts] = {t: {} for t in range(last + 1)}
        for predicate, args, t in self.stream:
            add(found[t or 0], predicate, args)
        return found


def format_timed(fact: TimedFact) -> str:
    predicate, args, time = fact
    shown = [*map(format_value, args), *([] if time is None else [str(time)])]
    return predicate + (f"({','.join(shown)})" if shown else "")


def shortest(product: Product, length: int, deadline: float | None = None) -> Witness:
    """The witness of a product that loses an answer after `length` time points and not before. Raises `OutOfTime`."""
    try:
        return _witness(product, length, monotonic() + _TIDYING, tidy=True)
    except OutOfTime:
        return _witness(product, length, deadline, tidy=False)


def _witness(product: Product, length: int, deadline: float | None, tidy: bool) -> Witness:
    with Solver(deadline) as solver:
        unrolled = Unrolled(product, length, solver)
        cost = list(unrolled.inputs.values())
        if tidy:
            solver.minimise(((literal, 1) for literal in cost), 2)
            solver.minimise(((literal, position) for position, literal in enumerate(cost) if position), 1)
        model, _ = solver.solve([], [*cost, *unrolled.lost.values()])
    assert model is not None, "the search found a stream of this length"
    true = set(model)
    held = [part for part, literal in unrolled.inputs.items() if literal in true]
    answer = next(atom for atom, literal in unrolled.lost.items() if literal in true)
    return Witness(
        tuple((atom.predicate, atom.args, None) for atom, time in held if time is None),
        tuple((atom.predicate, atom.args, time) for atom, time in held if time is not None),
        (answer.predicate, answer.args, None if answer in product.rigid else length - 1),
    )
