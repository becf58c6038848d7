"""Witnesses: streams on which an answer is lost, or a wrong one is given.

A witness is a shortest such stream; among these, one with the fewest facts; among these, the first in the order of
predicates and objects.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.language.fact_text import format_value
from tidelog.language.syntax import Value
from tidelog.windows.incremental_solver import Deadline, DeadlineExceeded, Effort, IncrementalSolver
from tidelog.windows.pointwise_evaluation import Facts, add_fact
from tidelog.windows.product_program import ProductProgram
from tidelog.windows.unrolled_product import UnrolledProduct

#: Steps to make a witness small, once it is known that there is one.
_MINIMISING_STEPS = 2_000_000

#: A fact: its predicate, its arguments, and its time, which is None for a rigid fact.
TimedFact = tuple[str, tuple[Value, ...], int | None]


@dataclass(frozen=True)
class Witness:
    """Background and stream facts on which the answer `lost` is missing from the output; if `wrong`, on which it is in
    the output although it does not follow.

    >>> Witness((("Succ", ("low", "high"), None),), (("Brst", ("a", "b"), 0),), ("Black", ("a",), 0)).to_json()
    {'background': ['Succ(low,high)'], 'stream': ['Brst(a,b,0)'], 'lost': 'Black(a,0)'}
    """

    background: tuple[TimedFact, ...]
    stream: tuple[TimedFact, ...]
    lost: TimedFact
    wrong: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the facts as text in temporal Datalog, ready for JSON."""
        return {
            "background": [format_timed_fact(fact) for fact in self.background],
            "stream": [format_timed_fact(fact) for fact in self.stream],
            "wrong" if self.wrong else "lost": format_timed_fact(self.lost),
        }

    @property
    def steps(self) -> dict[int, Facts]:
        """The facts of the stream by time, from 0 to the time of the lost answer."""
        last = self.lost[2] or 0
        found: dict[int, Facts] = {t: {} for t in range(last + 1)}
        for predicate, args, t in self.stream:
            add_fact(found[t or 0], predicate, args)
        return found


def format_timed_fact(fact: TimedFact) -> str:
    """Return a fact as temporal Datalog writes it."""
    predicate, args, time = fact
    texts = [*map(format_value, args), *([] if time is None else [str(time)])]
    return predicate + (f"({','.join(texts)})" if texts else "")


def find_witness(product: ProductProgram, length: int, deadline: Deadline = None) -> Witness:
    """Return a witness for a product that loses an answer after `length` time points and not before.

    Raise `DeadlineExceeded` if time runs out."""
    try:
        return _solve_witness(product, length, Effort(_MINIMISING_STEPS), small=True)
    except DeadlineExceeded:
        return _solve_witness(product, length, deadline, small=False)


def _solve_witness(product: ProductProgram, length: int, deadline: Deadline, small: bool) -> Witness:
    with IncrementalSolver(deadline) as solver:
        unrolled = UnrolledProduct(product, length, solver)
        cost = list(unrolled.inputs.values())
        if small:
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
