"""Is an interpretation founded? A proof that it is the least model relative to itself (theorem 3.4).

The interpretation T is for all time and repeats at both ends. That T contains what the rules derive is checked when T
is made; here everything in T has to be derived, with negation read in T. Three derivations on finite stretches of time
suffice, in each of which nothing is known outside:

1. in the middle, from nothing;
2. to the right: what holds throughout one stretch as long as the rules reach, in the part that repeats, yields what
   holds in the period after it; shifted by that period again and again, it yields everything to the right;
3. to the left, likewise.

The atoms for which all three succeed are derived at all times. `Boxminus[a,inf)` and `Boxplus[a,inf)` over such an
atom may then be believed where they hold in T, and the three are tried again. A proof is a proof; that there is none
in the stretches tried here does not mean that T is not founded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tidelog.stable.folded import Fold, literal_holds
from tidelog.stable.grounding import GroundLiteral, GroundRule
from tidelog.stable.normal import Kind
from tidelog.timeline.grid import NEG_INF, POS_INF

#: When an atom holds in T.
Truth = Callable[[int, int], bool]

#: Derived atoms, each with its times.
_Known = dict[int, set[int]]


class Foundation:
    """A part of a ground program, an interpretation T, and what is given."""

    def __init__(
        self, rules: Sequence[GroundRule], atoms: Iterable[int], truth: Truth, given: Truth, fold: Fold
    ) -> None:
        self.rules = [rule for rule in rules if rule.head >= 0]
        self.atoms = frozenset(atoms)
        self.truth, self.given, self.fold = truth, given, fold
        ends = [
            abs(end)
            for rule in rules
            for literal in rule.body
            for end in (literal.lo, literal.hi)
            if end not in (NEG_INF, POS_INF)
        ]
        self.reach = max(ends, default=0) + 1
        self._boxes: frozenset[int] = frozenset()

    def complete(self) -> bool:
        """Whether everything in T is derived."""
        while True:
            found = self._everywhere()
            if found == self.atoms:
                return True
            if found <= self._boxes:
                return False
            self._boxes |= found

    def _everywhere(self) -> frozenset[int]:
        """The atoms that are derived wherever T has them."""
        fold, reach = self.fold, self.reach
        margin = 2 * (reach + max(fold.left, fold.right)) * 3
        block = reach + max(fold.left, fold.right)
        # The middle must contain the blocks with which the steps to the right and to the left begin.
        lo, hi = fold.first - block, fold.last + block
        middle = self._derived({}, range(lo - margin, hi + margin + 1), range(lo - margin, hi + margin + 1))
        found = self._covered(middle, lo, hi)
        while True:
            right = self._step(found, fold.last - fold.right + 1, block, fold.right, margin)
            left = self._step(found, fold.first + fold.left - 1, block, -fold.left, margin)
            if found <= right & left:
                return found
            found &= right & left

    def _step(self, atoms: frozenset[int], begin: int, block: int, period: int, margin: int) -> frozenset[int]:
        """Of some atoms that are derived in the middle, and so in the block from `begin` on, those that are derived in
        the period after it.

        Rules apply beyond the block only. There bounded operators reach nothing but what repeats; what operators
        without an end find in the middle, they find from any time later on, too.
        """
        if period > 0:
            hi = begin + block - 1
            next_lo, next_hi = hi + 1, hi + period
            active = range(next_lo, next_hi + margin + 1)
            known_times = range(self.fold.first - block, next_lo)
            stretch = range(known_times.start, active.stop)
        else:
            lo = begin - block + 1
            next_lo, next_hi = lo + period, lo - 1
            active = range(next_lo - margin, next_hi + 1)
            known_times = range(lo, self.fold.last + block + 1)
            stretch = range(active.start, known_times.stop)
        known = {a: {t for t in known_times if self.truth(a, t)} for a in atoms}
        return self._covered(self._derived(known, stretch, active), next_lo, next_hi)

    def _covered(self, known: _Known, lo: int, hi: int) -> frozenset[int]:
        return frozenset(
            atom
            for atom in self.atoms
            if all(time in known.get(atom, ()) for time in range(lo, hi + 1) if self.truth(atom, time))
        )

    def _derived(self, known: _Known, stretch: range, active: range) -> _Known:
        """What follows from what is known by rules at the `active` times, with nothing known outside of a stretch."""
        first, last = stretch.start, stretch.stop - 1
        found: _Known = {atom: set(times) for atom, times in known.items()}
        for atom in self.atoms:
            found.setdefault(atom, set()).update(t for t in stretch if self.given(atom, t))
        alive = [
            (rule, time)
            for rule in self.rules
            for time in active
            if self.truth(rule.head, time)
            and not any(p.negated and literal_holds(p, time, self.truth, self.fold) for p in rule.body)
        ]
        changed = True
        while changed:
            changed = False
            later = []
            for rule, time in alive:
                if time in found[rule.head]:
                    continue
                if all(p.negated or self._holds(p, time, found, first, last) for p in rule.body):
                    found[rule.head].add(time)
                    changed = True
                else:
                    later.append((rule, time))
            alive = later
        return found

    def _holds(self, literal: GroundLiteral, time: int, found: _Known, first: int, last: int) -> bool:
        """Whether a positive literal is derived."""

        def holds(atom: int, at: int) -> bool:
            if atom not in self.atoms:
                return self.given(atom, at)
            return at in found[atom]

        if literal.atom not in self.atoms and literal.left not in self.atoms:
            return literal_holds(literal, time, self.given, self.fold)
        if literal.kind is Kind.BOX and POS_INF in (literal.hi, -literal.lo):
            return literal.atom in self._boxes and literal_holds(literal, time, self.truth, self.fold)
        if literal.kind is Kind.DIAMOND:
            lo = first if literal.hi == POS_INF else max(first, time - literal.hi)
            hi = last if literal.lo == NEG_INF else min(last, time - literal.lo)
            return any(lo <= at <= hi for at in found[literal.atom])
        if literal.kind is Kind.BOX:
            return all(holds(literal.atom, at) for at in range(time - literal.hi, time - literal.lo + 1))
        step = -1 if literal.kind is Kind.SINCE else 1
        at = time + step
        while first <= at <= last and abs(at - time) <= literal.hi:
            if abs(at - time) >= literal.lo and holds(literal.atom, at):
                return True
            if not holds(literal.left, at):
                return False
            at += step
        return False
