"""Interpretations for all time that repeat at both ends, folded into a finite stretch.

The times of the stretch are `first` to `last`; before it its first `left` points repeat, after it its last `right`
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidelog.stable.grounding import GroundLiteral
from tidelog.stable.normal import Kind
from tidelog.timeline.grid import NEG_INF, POS_INF


@dataclass(frozen=True, slots=True)
class Fold:
    """A stretch of time whose ends repeat."""

    first: int
    last: int
    left: int
    right: int

    def __call__(self, time: int) -> int:
        """The point of the stretch that a time is like."""
        if time < self.first:
            return self.first + (time - self.first) % self.left
        if time > self.last:
            return self.last - self.right + 1 + (time - self.last - 1) % self.right
        return time

    def points(self, lo: int, hi: int) -> list[int]:
        """The points that the times from lo to hi are like."""
        lo = max(lo, min(self.first - self.left, hi - self.left)) if hi != POS_INF else max(lo, self.first - self.left)
        hi = min(hi, max(self.last + self.right, lo + self.right))
        return sorted({self(time) for time in range(lo, hi + 1)})

    def leftmost(self, time: int) -> int:
        """As far to the left of a time as something can differ."""
        return min(time, self.first) - 2 * self.left

    def rightmost(self, time: int) -> int:
        return max(time, self.last) + 2 * self.right


def literal_holds(literal: GroundLiteral, time: int, holds: Callable[[int, int], bool], fold: Fold) -> bool:
    """Whether a literal (its negation aside) holds at a time, in an interpretation that is folded so."""
    atom = literal.atom
    if literal.kind is Kind.DIAMOND:
        return any(holds(atom, point) for point in reach(literal, time, fold))
    if literal.kind is Kind.BOX:
        return all(holds(atom, point) for point in reach(literal, time, fold))
    step = -1 if literal.kind is Kind.SINCE else 1
    far = literal.hi
    if far == POS_INF:
        far = time - fold.leftmost(time) if step < 0 else fold.rightmost(time) - time
        far = max(far, literal.lo)
    for distance in range(1, far + 1):
        if distance >= literal.lo and holds(atom, time + step * distance):
            return True
        if not holds(literal.left, time + step * distance):
            return False
    return False


def reach(literal: GroundLiteral, time: int, fold: Fold) -> Iterator[int]:
    """The times that a diamond or box looks at; of infinitely many, as many as can differ."""
    lo, hi = literal.lo, literal.hi
    newest = fold.rightmost(time) if lo == NEG_INF else time - lo
    oldest = fold.leftmost(time) if hi == POS_INF else time - hi
    if hi == POS_INF:
        oldest = min(oldest, fold.leftmost(newest))
    if lo == NEG_INF:
        newest = max(newest, fold.rightmost(oldest))
    return iter(range(newest, oldest - 1, -1))
