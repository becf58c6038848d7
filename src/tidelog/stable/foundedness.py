"""Prove that an interpretation is founded: that it is the least model relative to itself (theorem 3.4).

The interpretation T covers all time and repeats at both ends. That T contains whatever the rules derive is ensured when
T is built. Here everything in T must be derived, with negation evaluated in T. Three derivations over finite ranges of
time suffice, each of which assumes nothing outside its range:

1. in the middle, from nothing;
2. to the right: in the part that repeats, what holds throughout a block as long as the reach of the rules yields what
   holds in the period after it; repeated period by period, it yields everything to the right;
3. to the left, likewise.

The atoms for which all three succeed are derived at all times. `Boxminus[a,inf)` and `Boxplus[a,inf)` over such an
atom may then be assumed where they hold in T, and the three derivations are tried again. Success is a proof. Failure
does not show that T is unfounded, since only these ranges are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tidelog.stable.folded_interpretation import FoldedTimeline, literal_holds
from tidelog.stable.grounding import GroundLiteral, GroundRule
from tidelog.stable.normal_form import OperatorKind
from tidelog.timeline.grid import NEG_INF, POS_INF

#: Tells whether an atom holds at a time.
Truth = Callable[[int, int], bool]

#: The times at which each atom has been derived.
_DerivedTimes = dict[int, set[int]]


class FoundednessCheck:
    """Checks an interpretation T (`truth`) of a component of a ground program, given facts (`given`)."""

    def __init__(
        self, rules: Sequence[GroundRule], atoms: Iterable[int], truth: Truth, given: Truth, timeline: FoldedTimeline
    ) -> None:
        self.rules = [rule for rule in rules if rule.head >= 0]
        self.atoms = frozenset(atoms)
        self.truth, self.given, self.timeline = truth, given, timeline
        ends = [
            abs(end)
            for rule in rules
            for literal in rule.body
            for end in (literal.lo, literal.hi)
            if end not in (NEG_INF, POS_INF)
        ]
        self.reach = max(ends, default=0) + 1
        #: Atoms that are derived at all times, so that boxes without an end over them may be assumed.
        self._boxes: frozenset[int] = frozenset()

    def is_founded(self) -> bool:
        """Tell whether everything in T is derived."""
        while True:
            derived = self._find_derived_everywhere()
            if derived == self.atoms:
                return True
            if derived <= self._boxes:
                return False
            self._boxes |= derived

    def _find_derived_everywhere(self) -> frozenset[int]:
        """Return the atoms that are derived wherever T has them."""
        timeline, reach = self.timeline, self.reach
        margin = 2 * (reach + max(timeline.left, timeline.right)) * 3
        block = reach + max(timeline.left, timeline.right)
        # The middle must contain the blocks with which the steps to the right and to the left begin.
        lo, hi = timeline.first - block, timeline.last + block
        middle = self._derive({}, range(lo - margin, hi + margin + 1), range(lo - margin, hi + margin + 1))
        atoms = self._find_covered(middle, lo, hi)
        while True:
            right = self._derive_next_period(atoms, timeline.last - timeline.right + 1, block, timeline.right, margin)
            left = self._derive_next_period(atoms, timeline.first + timeline.left - 1, block, -timeline.left, margin)
            if atoms <= right & left:
                return atoms
            atoms &= right & left

    def _derive_next_period(
        self, atoms: frozenset[int], begin: int, block: int, period: int, margin: int
    ) -> frozenset[int]:
        """Return those atoms that are derived in the period after the block that starts at `begin`.

        The atoms are derived in the middle, and so in the block. Rules apply beyond the block only. There, bounded
        operators reach only times in the part that repeats, and whatever an operator without an end finds in the
        middle, it also finds from any later time.
        """
        if period > 0:
            hi = begin + block - 1
            next_lo, next_hi = hi + 1, hi + period
            active = range(next_lo, next_hi + margin + 1)
            known_times = range(self.timeline.first - block, next_lo)
            times = range(known_times.start, active.stop)
        else:
            lo = begin - block + 1
            next_lo, next_hi = lo + period, lo - 1
            active = range(next_lo - margin, next_hi + 1)
            known_times = range(lo, self.timeline.last + block + 1)
            times = range(active.start, known_times.stop)
        known = {a: {t for t in known_times if self.truth(a, t)} for a in atoms}
        return self._find_covered(self._derive(known, times, active), next_lo, next_hi)

    def _find_covered(self, derived: _DerivedTimes, lo: int, hi: int) -> frozenset[int]:
        """Return the atoms that are derived at every time from lo to hi at which T has them."""
        return frozenset(
            atom
            for atom in self.atoms
            if all(time in derived.get(atom, ()) for time in range(lo, hi + 1) if self.truth(atom, time))
        )

    def _derive(self, known: _DerivedTimes, times: range, active: range) -> _DerivedTimes:
        """Derive what follows from `known` by rules at the `active` times, with nothing known outside of `times`."""
        first, last = times.start, times.stop - 1
        derived: _DerivedTimes = {atom: set(known_times) for atom, known_times in known.items()}
        for atom in self.atoms:
            derived.setdefault(atom, set()).update(t for t in times if self.given(atom, t))
        waiting = [
            (rule, time)
            for rule in self.rules
            for time in active
            if self.truth(rule.head, time)
            and not any(p.negated and literal_holds(p, time, self.truth, self.timeline) for p in rule.body)
        ]
        changed = True
        while changed:
            changed = False
            later = []
            for rule, time in waiting:
                if time in derived[rule.head]:
                    continue
                if all(p.negated or self._is_derived(p, time, derived, first, last) for p in rule.body):
                    derived[rule.head].add(time)
                    changed = True
                else:
                    later.append((rule, time))
            waiting = later
        return derived

    def _is_derived(self, literal: GroundLiteral, time: int, derived: _DerivedTimes, first: int, last: int) -> bool:
        """Tell whether a positive literal is derived."""

        def holds(atom: int, at: int) -> bool:
            if atom not in self.atoms:
                return self.given(atom, at)
            return at in derived[atom]

        if literal.atom not in self.atoms and literal.left not in self.atoms:
            return literal_holds(literal, time, self.given, self.timeline)
        if literal.kind is OperatorKind.BOX and POS_INF in (literal.hi, -literal.lo):
            return literal.atom in self._boxes and literal_holds(literal, time, self.truth, self.timeline)
        if literal.kind is OperatorKind.DIAMOND:
            lo = first if literal.hi == POS_INF else max(first, time - literal.hi)
            hi = last if literal.lo == NEG_INF else min(last, time - literal.lo)
            return any(lo <= at <= hi for at in derived[literal.atom])
        if literal.kind is OperatorKind.BOX:
            return all(holds(literal.atom, at) for at in range(time - literal.hi, time - literal.lo + 1))
        step = -1 if literal.kind is OperatorKind.SINCE else 1
        at = time + step
        while first <= at <= last and abs(at - time) <= literal.hi:
            if abs(at - time) >= literal.lo and holds(literal.atom, at):
                return True
            if not holds(literal.left, at):
                return False
            at += step
        return False
