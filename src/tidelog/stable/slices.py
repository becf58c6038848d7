"""The stable models of the propositional program of one slice.

Most slices are decided by the well-founded model; what it leaves open goes to clingo, each such program once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tidelog.stable.solver import control

#: A slice that clingo finds costs as much as so many windows.
_COST = 10


@dataclass(frozen=True, slots=True)
class Residual:
    """`head :- pos, not neg` over bits of atoms; a head of -1 is a constraint. `number` is that of the rule."""

    number: int
    head: int
    pos: int
    neg: int


class Slices:
    """Solves the slices of one machine; `note` hears of each slice that clingo finds."""

    def __init__(self, note: Callable[[int], None]) -> None:
        self._note = note
        self._open: dict[tuple[object, ...], tuple[int, ...]] = {}

    def solve(self, rules: Sequence[Residual], given: int) -> tuple[int, ...]:
        """All stable models that violate no constraint."""
        heads = [rule for rule in rules if rule.head >= 0]
        if not any(rule.neg for rule in heads):
            slices: Sequence[int] = (self.least(heads, given),)
        else:
            lower, upper = self._well_founded(heads, given)
            if lower != upper:
                return self._enumerated(rules, lower, upper, given)
            slices = (lower,)
        return tuple(s for s in slices if not any(r.head < 0 and r.pos & ~s == 0 and not r.neg & s for r in rules))

    def least(self, rules: Sequence[Residual], given: int, against: int = 0) -> int:
        """The least model where negation is read in `against`."""
        found = given
        waiting = [rule for rule in rules if not rule.neg & against]
        while True:
            later = []
            before = found
            for rule in waiting:
                if rule.pos & ~found:
                    later.append(rule)
                else:
                    found |= 1 << rule.head
            if found == before:
                return found
            waiting = later

    def _well_founded(self, rules: Sequence[Residual], given: int) -> tuple[int, int]:
        lower = given
        while True:
            upper = self.least(rules, given, lower)
            higher = self.least(rules, given, upper)
            if higher in (lower, upper):
                return higher, upper
            lower = higher

    def _enumerated(self, rules: Sequence[Residual], lower: int, upper: int, given: int) -> tuple[int, ...]:
        """By clingo, over the atoms that the well-founded model leaves open."""
        left = [
            (rule.head, rule.pos & ~lower, rule.neg & upper)
            for rule in rules
            if not rule.pos & ~upper and not rule.neg & lower and (rule.head < 0 or not lower >> rule.head & 1)
        ]
        key = (*sorted(set(left)), lower, upper)
        if key not in self._open:
            self._open[key] = tuple(sorted(lower | extra for extra in self._answer_sets(left)))
        return self._open[key]

    def _answer_sets(self, rules: Sequence[tuple[int, int, int]]) -> Iterator[int]:
        solver = control(["--models=0"])
        text = []
        for head, pos, neg in rules:
            body = [f"a({i})" for i in bits(pos)] + [f"not a({i})" for i in bits(neg)]
            text.append(
                (f"a({head})" if head >= 0 else "") + (":- " + ", ".join(body) if body or head < 0 else "") + "."
            )
        solver.add("base", [], "\n".join(text))
        solver.ground([("base", [])])
        with solver.solve(yield_=True) as handle:
            for model in handle:
                self._note(_COST)
                yield sum(1 << symbol.arguments[0].number for symbol in model.symbols(atoms=True))


def bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
