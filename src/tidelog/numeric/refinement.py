"""Positions on a finer grid: left ends and right ends of intervals, on the doubled grid of the rational timeline.

Positions beyond the range of finite ends stand for infinity (or its neighbour, right after what came from there) and
stay as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidelog.numeric.rows import Int64s
from tidelog.timeline.grid import LIMIT, time_overflow


class FinerGridNeeded(Exception):
    """A limit is not a whole number of ticks; the grid needs the denominator, because of the rule with this number."""

    def __init__(self, denominator: int, origin: int | None = None) -> None:
        super().__init__(f"the grid needs the denominator {denominator}")
        self.denominator, self.origin = denominator, origin


def refine_left(at: int, factor: int) -> int:
    """Return a left end on a grid that is `factor` times as fine; a gap begins where it began."""
    return at if abs(at) >= LIMIT else (at - (at & 1)) * factor + (at & 1)


def refine_right(at: int, factor: int) -> int:
    """Return a right end on a grid that is `factor` times as fine; a gap ends where it ended."""
    return at if abs(at) >= LIMIT else (at + (at & 1)) * factor - (at & 1)


def refine_lefts(at: Int64s, factor: int) -> Int64s:
    """Apply `refine_left` to an array of ends."""
    return np.where(_is_beyond(at, factor), at, (at - (at & 1)) * factor + (at & 1))


def refine_rights(at: Int64s, factor: int) -> Int64s:
    """Apply `refine_right` to an array of ends."""
    return np.where(_is_beyond(at, factor), at, (at + (at & 1)) * factor - (at & 1))


def _is_beyond(at: Int64s, factor: int) -> NDArray[np.bool_]:
    """Return which positions stand for infinity; raise an error if a finite one would leave the grid."""
    beyond = np.abs(at) >= LIMIT
    if (np.abs(at[~beyond]) >= LIMIT // factor - 1).any():
        raise time_overflow(f"a time on a grid that is {factor} times as fine")
    result: NDArray[np.bool_] = beyond
    return result
