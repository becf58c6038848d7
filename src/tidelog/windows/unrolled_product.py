"""The product of two queries unrolled over a number of time points: all streams of a given length at once.

Empty time points before a stream change nothing. So if an answer can be lost at the last of n time points, it can also
be lost at the last of more, and binary search finds the length of a shortest stream. Without recursion through time,
answers depend on a bounded number of time points, and one solver call decides for all streams. With recursion, short
streams are tried before `product_search`, which can also prove that there is no loss: most losses show early, once
there are enough time points for the longest rule.
"""

from __future__ import annotations

from tidelog.windows.incremental_solver import Deadline, IncrementalSolver
from tidelog.windows.product_program import GroundAtom, ProductProgram


def find_shortest_loss(product: ProductProgram, deadline: Deadline = None) -> tuple[int | None, bool]:
    """Return the least number of time points after which an answer is lost, or None, and whether the result is certain
    for streams of any length.

    Raise `DeadlineExceeded` if time runs out."""
    if not product.goals:
        return None, True
    depth = _temporal_depth(product)
    most = 2 * max(product.longest.values(), default=0) + 2 if depth is None else depth + 1
    lossless, length = 0, min(most, 4)
    while not _has_loss(product, length, deadline):
        if length == most:
            return None, depth is not None
        lossless, length = length, min(most, 4 * length)
    while length - lossless > 1:
        middle = (lossless + length) // 2
        if _has_loss(product, middle, deadline):
            length = middle
        else:
            lossless = middle
    return length, True


def _has_loss(product: ProductProgram, length: int, deadline: Deadline) -> bool:
    with IncrementalSolver(deadline) as solver:
        UnrolledProduct(product, length, solver)
        return solver.solve([])[0] is not None


def _temporal_depth(product: ProductProgram) -> int | None:
    """Return how many time points back an answer can depend on, or None if predicates recurse through time."""
    edges = {
        ((rule.head.predicate, rule.head.side), (atom.predicate, atom.side), lag)
        for rule in product.rules
        for atom, lag in rule.reads
    }
    depth = {end: 0 for head, body, _ in edges for end in (head, body)}
    for _ in range(len(depth) + 1):
        deeper = {(head, depth[body] + lag) for head, body, lag in edges if depth[body] + lag > depth[head]}
        if not deeper:
            return max(depth.values(), default=0)
        for head, back in deeper:
            depth[head] = max(depth[head], back)
    return None


class UnrolledProduct:
    """The product over the time points 0, 1, ..., length - 1, constrained to lose an answer at the last of them."""

    def __init__(self, product: ProductProgram, length: int, solver: IncrementalSolver) -> None:
        chosen = set(product.inputs)
        timeless = [atom for atom in product.inputs if atom in product.rigid]
        run_window_algorithm = [atom for atom in product.inputs if atom not in product.rigid]
        parts: list[tuple[GroundAtom, int | None]] = [(atom, None) for atom in timeless]
        parts += [(atom, t) for t in range(length) for atom in run_window_algorithm]
        self.inputs = dict(zip(parts, solver.add_atoms(len(parts), choice=True), strict=True))
        rest = [atom for atom in product.atoms if atom not in chosen]
        derived: list[tuple[GroundAtom, int | None]] = [(atom, None) for atom in rest if atom in product.rigid]
        derived += [(atom, t) for t in range(length) for atom in rest if atom not in product.rigid]
        self.literals = self.inputs | dict(zip(derived, solver.add_atoms(len(derived)), strict=True))
        solver.add_rules((self._at(atom, 0), []) for atom in product.facts)
        for rule in product.rules:
            times = range(1 if rule.head in product.rigid else length)
            solver.add_rules(
                (
                    self._at(rule.head, t),
                    [
                        *(self._at(atom, t - lag) for atom, lag in rule.body),
                        *(-self._at(atom, t - lag) for atom, lag in rule.negated if lag <= t),
                    ],
                )
                for t in times
                if all(lag <= t for _, lag in rule.body)
            )
        goals = [left for left, _ in product.goals]
        self.lost = dict(zip(goals, solver.add_atoms(len(goals)), strict=True))
        some = solver.add_atoms(1)[0]
        for left, right in product.goals:
            absent = [-self._at(right, length - 1)] if right else []
            solver.add_rules([(self.lost[left], [self._at(left, length - 1), *absent]), (some, [self.lost[left]])])
        solver.add_rules([(0, [-some])])

    def _at(self, atom: GroundAtom, t: int) -> int:
        return self.literals[atom, None] if (atom, None) in self.literals else self.literals[atom, t]
