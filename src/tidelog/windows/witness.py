"""A stream on which an answer is lost: as short as can be, then with as few facts as can be, then the first in the
order of predicates and objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic

from tidelog.language.facts import format_value
from tidelog.language.syntax import Value
from tidelog.windows.evaluate import Facts, add
from tidelog.windows.ground import GroundAtom, Product
from tidelog.windows.solver import OutOfTime, Solver

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
        unrolled = _Unrolled(product, length, solver)
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


class _Unrolled:
    """The product over the time points 0, 1, ..., length - 1, with a loss at the last of them."""

    def __init__(self, product: Product, length: int, solver: Solver) -> None:
        chosen = set(product.inputs)
        timeless = [atom for atom in product.inputs if atom in product.rigid]
        streamed = [atom for atom in product.inputs if atom not in product.rigid]
        parts: list[tuple[GroundAtom, int | None]] = [(atom, None) for atom in timeless]
        parts += [(atom, t) for t in range(length) for atom in streamed]
        self.inputs = dict(zip(parts, solver.atoms(len(parts), choice=True), strict=True))
        rest = _derived(product, chosen)
        derived: list[tuple[GroundAtom, int | None]] = [(atom, None) for atom in rest if atom in product.rigid]
        derived += [(atom, t) for t in range(length) for atom in rest if atom not in product.rigid]
        self.literals = self.inputs | dict(zip(derived, solver.atoms(len(derived)), strict=True))
        solver.rules((self._at(atom, 0), []) for atom in product.facts)
        for rule in product.rules:
            times = range(1 if rule.head in product.rigid else length)
            solver.rules(
                (self._at(rule.head, t), [self._at(atom, t - lag) for atom, lag in rule.body])
                for t in times
                if all(lag <= t for _, lag in rule.body)
            )
        goals = [left for left, _ in product.goals]
        self.lost = dict(zip(goals, solver.atoms(len(goals)), strict=True))
        some = solver.atoms(1)[0]
        for left, right in product.goals:
            absent = [-self._at(right, length - 1)] if right else []
            solver.rules([(self.lost[left], [self._at(left, length - 1), *absent]), (some, [self.lost[left]])])
        solver.rules([(0, [-some])])

    def _at(self, atom: GroundAtom, t: int) -> int:
        return self.literals[atom, None] if (atom, None) in self.literals else self.literals[atom, t]


def _derived(product: Product, chosen: Iterable[GroundAtom]) -> list[GroundAtom]:
    known = set(chosen)
    atoms = [atom for rule in product.rules for atom in (rule.head, *(part for part, _ in rule.body))]
    goals = [atom for goal in product.goals for atom in goal if atom is not None]
    return [atom for atom in dict.fromkeys([*atoms, *goals, *product.facts]) if atom not in known]
