"""The product of two queries written out over a number of time points: streams of a given length, all at once.

Time points without facts in front of a stream change nothing, so if an answer can be lost at the last of n time points,
it can also be lost at the last of more, and the length of a shortest stream is found by halving. Without recursion
through time, what holds depends on so many time points only, and one question decides for all streams. With it, short
streams are tried before the search that can also prove that there is none: most losses show soon, if enough time
points are there for the longest rule.
"""

from __future__ import annotations

from tidelog.windows.ground import GroundAtom, Product
from tidelog.windows.solver import Solver


def shortest_loss(product: Product, deadline: float | None = None) -> tuple[int | None, bool]:
    """The least number of time points after which an answer is lost, None if none was found; and whether that is true
    of streams of any length. Raises `OutOfTime`."""
    if not product.goals:
        return None, True
    depth = _depth(product)
    most = 2 * max(product.longest.values(), default=0) + 2 if depth is None else depth + 1
    lossless, length = 0, min(most, 4)
    while not _loses(product, length, deadline):
        if length == most:
            return None, depth is not None
        lossless, length = length, min(most, 4 * length)
    while length - lossless > 1:
        middle = (lossless + length) // 2
        if _loses(product, middle, deadline):
            length = middle
        else:
            lossless = middle
    return length, True


def _loses(product: Product, length: int, deadline: float | None) -> bool:
    with Solver(deadline) as solver:
        Unrolled(product, length, solver)
        return solver.solve([])[0] is not None


def _depth(product: Product) -> int | None:
    """How many time points back an answer can depend on at most; None if predicates recurse through time."""
    edges = {
        ((rule.head.predicate, rule.head.side), (atom.predicate, atom.side), lag)
        for rule in product.rules
        for atom, lag in rule.body
    }
    depth = {end: 0 for head, body, _ in edges for end in (head, body)}
    for _ in range(len(depth) + 1):
        deeper = {(head, depth[body] + lag) for head, body, lag in edges if depth[body] + lag > depth[head]}
        if not deeper:
            return max(depth.values(), default=0)
        for head, back in deeper:
            depth[head] = max(depth[head], back)
    return None


class Unrolled:
    """The product over the time points 0, 1, ..., length - 1, with a loss at the last of them."""

    def __init__(self, product: Product, length: int, solver: Solver) -> None:
        chosen = set(product.inputs)
        timeless = [atom for atom in product.inputs if atom in product.rigid]
        streamed = [atom for atom in product.inputs if atom not in product.rigid]
        parts: list[tuple[GroundAtom, int | None]] = [(atom, None) for atom in timeless]
        parts += [(atom, t) for t in range(length) for atom in streamed]
        self.inputs = dict(zip(parts, solver.atoms(len(parts), choice=True), strict=True))
        rest = [atom for atom in product.atoms if atom not in chosen]
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
