"""A queue of contributions by their ends: a few sorted runs, the longest first.

New contributions come sorted. They become a run, which is merged with the one before it as long as that is not twice as
long. So there are at most about log2(n) runs, every entry is merged log2(n) times at most, in the order of memory, and
contributions that end in the order in which they came are only appended.
"""

from __future__ import annotations

from tidelog.jit import Array, Number, inlined_kernel, kernel
from tidelog.timeline.grid import POS_INF

#: Columns of the entries: where a contribution ends, and its place.
END, PLACE = range(2)
#: The most runs there can be.
MAX_RUNS = 64


@inlined_kernel
def find_first_run(entries: Array, runs: Array, count: int) -> Number:
    """Return the run whose first entry ends first, or -1."""
    best = -1
    for run in range(count):
        if best < 0 or entries[runs[run, 0], END] < entries[runs[best, 0], END]:
            best = run
    return best


@inlined_kernel
def pop_first(runs: Array, count: int, run: int) -> Number:
    """Remove the first entry of a run; return the number of runs, without those that are empty now."""
    runs[run, 0] += 1
    if runs[run, 0] < runs[run, 1]:
        return count
    for later in range(run + 1, count):
        runs[later - 1, 0], runs[later - 1, 1] = runs[later, 0], runs[later, 1]
    return count - 1


@inlined_kernel
def _close_gaps(entries: Array, runs: Array, count: int) -> None:
    """Move all runs to the beginning."""
    at = 0
    for run in range(count):
        first = runs[run, 0]
        size = runs[run, 1] - first
        if first > at:
            for i in range(size):
                entries[at + i, END], entries[at + i, PLACE] = entries[first + i, END], entries[first + i, PLACE]
        runs[run, 0], runs[run, 1] = at, at + size
        at += size


@kernel
def push_sorted(
    entries: Array, runs: Array, count: int, times: Array, places: Array, first: int, scratch: Array
) -> Number:
    """Add contributions, sorted by their `times`, from the one at `first` on; return the number of runs.

    Those that never end are left out. There must be room: in `entries` once gaps are closed, in `scratch` for a run.
    """
    last = len(places)
    while last > first and times[places[last - 1]] == POS_INF:
        last -= 1
    if last == first:
        return count
    end = runs[count - 1, 1] if count > 0 else 0
    if end + last - first > len(entries):
        _close_gaps(entries, runs, count)
        end = runs[count - 1, 1] if count > 0 else 0
    for i in range(first, last):
        entries[end + i - first, END], entries[end + i - first, PLACE] = times[places[i]], places[i]
    runs[count, 0], runs[count, 1] = end, end + last - first
    count += 1
    while count > 1 and runs[count - 2, 1] - runs[count - 2, 0] <= 2 * (runs[count - 1, 1] - runs[count - 1, 0]):
        _merge_last(entries, runs, count, scratch)
        count -= 1
    return count


@inlined_kernel
def _merge_last(entries: Array, runs: Array, count: int, scratch: Array) -> None:
    """Merge the last two runs: copy the last one aside, then fill from the right."""
    begin, middle, end = runs[count - 1, 0], runs[count - 2, 1], runs[count - 1, 1]
    size = end - begin
    if entries[begin, END] < entries[middle - 1, END]:
        for i in range(size):
            scratch[i, END], scratch[i, PLACE] = entries[begin + i, END], entries[begin + i, PLACE]
        left, right, to = middle - 1, size - 1, middle + size - 1
        first = runs[count - 2, 0]
        while right >= 0:
            if left >= first and entries[left, END] > scratch[right, END]:
                entries[to, END], entries[to, PLACE] = entries[left, END], entries[left, PLACE]
                left -= 1
            else:
                entries[to, END], entries[to, PLACE] = scratch[right, END], scratch[right, PLACE]
                right -= 1
            to -= 1
    elif begin > middle:
        for i in range(size):
            entries[middle + i, END], entries[middle + i, PLACE] = entries[begin + i, END], entries[begin + i, PLACE]
    runs[count - 2, 1] = middle + size
