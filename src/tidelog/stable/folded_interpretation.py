"""Interpretations for all time that repeat at both ends, folded into a finite range of times.

The range is `first` to `last`. Before it, its first `left` points repeat; after it, its last `right` points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidelog.stable.grounding import GroundLiteral
from tidelog.stable.normal_form import OperatorKind
from tidelog.timeline.grid import NEG_INF, POS_INF


@dataclass(frozen=True, slots=True)
class FoldedTimeline:
    """A finite range of times whose ends repeat for ever."""

    first: int
    last: int
    left: int
    right: int

    def fold(self, time: int) -> int:
        """Return the point of the range that stands for a time."""
        if time < self.first:
            return self.first + (time - self.first) % self.left
        if time > self.last:
            return self.last - self.right + 1 + (time - self.last - 1) % self.right
        return time

    def fold_range(self, lo: int, hi: int) -> list[int]:
        """Return the points that stand for the times from lo to hi."""
        lo = max(lo, min(self.first - self.left, hi - self.left)) if hi != POS_INF else max(lo, self.first - self.left)
        hi = min(hi, max(self.last + self.right, lo + self.right))
        return sorted({self.fold(time) for time in range(lo, hi + 1)})

    def leftmost(self, time: int) -> int:
        """Return a time so far left of `time` that everything before it repeats what has been seen."""
        return min(time, self.first) - 2 * self.left

    def rightmost(self, time: int) -> int:
        """Return a time so far right of `time` that everything after it repeats what has been seen."""
        return max(time, self.last) + 2 * self.right


def literal_holds(
    literal: GroundLiteral, time: int, holds: Callable[[int, int], bool], timeline: FoldedTimeline
) -> bool:
    """Tell whether a literal, its negation aside, holds at a time in a folded interpretation."""
    atom = literal.atom
    if literal.kind is OperatorKind.DIAMOND:
        return any(holds(atom, point) for point in _times_read(literal, time, timeline))
    if literal.kind is OperatorKind.BOX:
        return all(holds(atom, point) for point in _times_read(literal, time, timeline))
    step = -1 if literal.kind is OperatorKind.SINCE else 1
    far = literal.hi
    if far == POS_INF:
        far = time - timeline.leftmost(time) if step < 0 else timeline.rightmost(time) - time
        far = max(far, literal.lo)
    for distance in range(1, far + 1):
        if distance >= literal.lo and holds(atom, time + step * distance):
            return True
        if not holds(literal.left, time + step * distance):
            return False
    return False


def _times_read(literal: GroundLiteral, time: int, timeline: FoldedTimeline) -> Iterator[int]:
    """Yield the times that a diamond or box reads; of infinitely many, those that can differ from each other."""
    lo, hi = literal.lo, literal.hi
    newest = timeline.rightmost(time) if lo == NEG_INF else time - lo
    oldest = timeline.leftmost(time) if hi == POS_INF else time - hi
    if hi == POS_INF:
        oldest = min(oldest, timeline.leftmost(newest))
    if lo == NEG_INF:
        newest = max(newest, timeline.rightmost(oldest))
    return iter(range(newest, oldest - 1, -1))
