"""A heap of times in an array, for the output times of a stream."""

from __future__ import annotations

from tidelog.jit import Array, inlined_kernel, kernel


@kernel
def push_time(heap: Array, size: int, t: int) -> None:
    """Add a time to a heap of `size` times that has room for it."""
    at = size
    while at > 0 and heap[(at - 1) >> 1] > t:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = t


@kernel
def pop_time(heap: Array, size: int) -> None:
    """Remove the least time from a heap of `size` times."""
    t, at = heap[size - 1], 0
    while 2 * at + 1 < size - 1:
        child = 2 * at + 1
        if child + 1 < size - 1 and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= t:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = t


@inlined_kernel
def to_grid_position(t: int, ratio: int, dense: bool) -> int:
    """Return the grid position of an output time: of the point, or of the gap around it."""
    whole = t // ratio
    if not dense:
        return whole
    return 2 * whole + (1 if whole * ratio != t else 0)
