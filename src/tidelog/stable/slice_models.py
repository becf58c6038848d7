"""The stable models of the propositional program of one slice.

The well-founded model decides most slices. What it leaves open goes to clingo, each such program once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tidelog.stable.clingo_control import create_control

#: A slice that clingo finds counts as this many windows against the limit.
_WINDOWS_PER_SLICE = 10


@dataclass(frozen=True, slots=True)
class ResidualRule:
    """`head :- pos, not neg` over bits of atoms; a head of -1 marks a constraint. `number` is that of the rule."""

    number: int
    head: int
    pos: int
    neg: int


class SliceSolver:
    """Solves the slices of one machine; reports each slice that clingo finds to `count_windows` and `count_choices`."""

    def __init__(self, count_windows: Callable[[int], None], count_choices: Callable[[int], None]) -> None:
        self._count_windows, self._count_choices = count_windows, count_choices
        #: Solved programs that the well-founded model leaves open.
        self._solved: dict[tuple[object, ...], tuple[int, ...]] = {}

    def solve(self, rules: Sequence[ResidualRule], given: int) -> tuple[int, ...]:
        """Return all stable models that violate no constraint."""
        heads = [rule for rule in rules if rule.head >= 0]
        if not any(rule.neg for rule in heads):
            slices: Sequence[int] = (self.compute_least_model(heads, given),)
        else:
            lower, upper = self._compute_well_founded(heads, given)
            if lower != upper:
                return self._enumerate(rules, lower, upper)
            slices = (lower,)
        return tuple(s for s in slices if not any(r.head < 0 and r.pos & ~s == 0 and not r.neg & s for r in rules))

    def compute_least_model(self, rules: Sequence[ResidualRule], given: int, against: int = 0) -> int:
        """Return the least model where negation is evaluated in `against`."""
        model = given
        waiting = [rule for rule in rules if not rule.neg & against]
        while True:
            later = []
            before = model
            for rule in waiting:
                if rule.pos & ~model:
                    later.append(rule)
                else:
                    model |= 1 << rule.head
            if model == before:
                return model
            waiting = later

    def _compute_well_founded(self, rules: Sequence[ResidualRule], given: int) -> tuple[int, int]:
        """Return the atoms that are true, and those that are true or undefined, in the well-founded model."""
        lower = given
        while True:
            upper = self.compute_least_model(rules, given, lower)
            higher = self.compute_least_model(rules, given, upper)
            if higher in (lower, upper):
                return higher, upper
            lower = higher

    def _enumerate(self, rules: Sequence[ResidualRule], lower: int, upper: int) -> tuple[int, ...]:
        """Enumerate with clingo, over the atoms that the well-founded model leaves open."""
        open_rules = [
            (rule.head, rule.pos & ~lower, rule.neg & upper)
            for rule in rules
            if not rule.pos & ~upper and not rule.neg & lower and (rule.head < 0 or not lower >> rule.head & 1)
        ]
        key = (*sorted(set(open_rules)), lower, upper)
        if key not in self._solved:
            self._solved[key] = tuple(sorted(lower | extra for extra in self._find_answer_sets(open_rules)))
        return self._solved[key]

    def _find_answer_sets(self, rules: Sequence[tuple[int, int, int]]) -> Iterator[int]:
        """Yield the answer sets of `head :- pos, not neg` rules, as bits."""
        solver = create_control(["--models=0"])
        text = []
        for head, pos, neg in rules:
            body = [f"a({i})" for i in bit_positions(pos)] + [f"not a({i})" for i in bit_positions(neg)]
            text.append(
                (f"a({head})" if head >= 0 else "") + (":- " + ", ".join(body) if body or head < 0 else "") + "."
            )
        solver.add("base", [], "\n".join(text))
        solver.ground([("base", [])])
        found = []
        with solver.solve(yield_=True) as handle:
            for model in handle:
                self._count_windows(_WINDOWS_PER_SLICE)
                self._count_choices(1)
                found.append(model.symbols(atoms=True))
        # Reading them takes longer than finding them, and is in vain where there are too many.
        for symbols in found:
            yield sum(1 << symbol.arguments[0].number for symbol in symbols)


def bit_positions(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
