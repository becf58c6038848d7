"""Paths of one component through its windows: from the infinite past, through the data, into the infinite future.

The data is a list of spans of time in which the same atoms are given. The windows of a time point are those before its
slice. A forward pass from every initial window computes all windows that can be reached at each time point. A backward
pass from the end keeps those from which a path continues for ever. Then the paths are enumerated by what they show in
LO..HI, each appearance once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_, or_

from tidelog.stable.given_atoms import GivenAtoms
from tidelog.stable.initial_windows import InitialWindows
from tidelog.stable.search_limits import SearchLimit
from tidelog.stable.slice_machine import SliceMachine, Window

#: More time points are not visited one by one.
MOST_POINTS = 2_000_000
#: A slice that occurs more often in a row than this, and than the ends need to repeat, becomes a gap.
MOST_REPEATED = 1000

Windows = frozenset[Window]


@dataclass(frozen=True, slots=True)
class WindowSpan:
    """Consecutive time points before each of which the same windows are possible, with the same atoms given."""

    first: int
    last: int
    windows: Windows
    given: int


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """A time that no path passes, the windows that were possible before it, and the atoms given at it."""

    time: int
    windows: Windows
    given: int


@dataclass(frozen=True, slots=True)
class Trace:
    """One path for all time, as slices from `start` on.

    The first `left` slices repeat for ever before them, and the last `right` slices repeat for ever after them. A gap
    is a position in `slices` with a length: so often, the slice there is repeated in addition. On both sides of
    it, the same slice stands more often than either end needs to repeat.
    """

    start: int
    slices: tuple[int, ...]
    left: int
    right: int
    gaps: tuple[tuple[int, int], ...] = ()


#: Returns what a slice costs from a time on, for a number of time points.
Cost = Callable[[int, int, int], int]
#: A time, how many time points from it on have the same choice, and their span.
_Point = tuple[int, int, WindowSpan]
#: A slice and how often it occurs in a row.
_Run = tuple[int, int]


class WindowPaths:
    """All paths of a component. Windows from which a path continues for ever are in `spans`, from `first` to `last`."""

    def __init__(
        self,
        machine: SliceMachine,
        past: InitialWindows,
        given: GivenAtoms,
        first: int,
        last: int,
        limit: SearchLimit,
        accepted: int | None = None,
    ) -> None:
        """`first` is not after the first change, and `last` not before the last one.

        `accepted` is an atom that, once it holds, holds for ever: only paths in which it holds at the end count.
        """
        self.machine, self.past, self.given, self._limit = machine, past, given, limit
        self._points_left = MOST_POINTS
        self.first, self.last = first, last
        self.dead_end: DeadEnd | None = None
        self.spans: list[WindowSpan] = []
        self.end: Windows = frozenset()
        #: The slices of the only path, where there is just one.
        self._single_path = self._follow_single_path()
        forward = self._find_reachable() if self._single_path is None else []
        if self.dead_end is None:
            self._future = _Future(machine, given.after, accepted)
            viable = self._future.find_viable(self._final)
            self.end = frozenset(w for w in self._final if w in viable)
            if not self.end:
                self.dead_end = DeadEnd(last + 1, self._final, given.after)
            else:
                self._prune_dead_ends(forward)

    def _count_points(self, points: int) -> None:
        """Count time points that are visited one by one; raise `Undecided` when there are too many."""
        self._points_left -= points
        if self._points_left < 0:
            raise self._limit.build_undecided(f"more than {MOST_POINTS:,} time points differ from those before them")

    def _require_settling(self, before: object, now: object, time: int, end: int) -> None:
        """Raise `Undecided` if a span is too long to be visited and what happens in it repeats without settling."""
        if before == now and end - time > self._points_left:
            raise self._limit.build_undecided(f"something repeats between {time:,} and {end:,}, which is too long")

    def _follow_single_path(self) -> list[_Run] | None:
        """Return the slices of the only path; None where there are several, or none."""
        if len(self.past.parents) != 1:
            return None
        (window,) = self.past.parents
        steps = self.machine.find_steps
        slices: list[_Run] = []
        for begin, end, atoms in self.given.constant_spans(self.first, self.last):
            known = None
            for time in range(begin, end + 1):
                self._count_points(1)
                choices = steps(window, atoms)
                if len(choices) != 1:
                    return None
                after, slice = choices[0]
                if after == window:
                    slices.append((slice, end - time + 1))
                    break
                slices.append((slice, 1))
                self._require_settling(known, after, time, end)
                known = after if _is_power_of_two(time - begin) else known
                window = after
        self._final = frozenset((window,))
        return slices

    def _find_reachable(self) -> list[WindowSpan]:
        """Return the windows that can be reached at each time point, whether or not a path continues from them."""
        steps = self.machine.find_steps
        windows: Windows = frozenset(self.past.parents)
        spans: list[WindowSpan] = []
        for begin, end, atoms in self.given.constant_spans(self.first, self.last):
            time, known = begin, None
            while time <= end:
                self._count_points(1)
                after = frozenset([step[0] for window in windows for step in steps(window, atoms)])
                if not after:
                    self.dead_end = DeadEnd(time, windows, atoms)
                    return spans
                if after == windows:
                    spans.append(WindowSpan(time, end, windows, atoms))
                    break
                spans.append(WindowSpan(time, time, windows, atoms))
                self._require_settling(known, after, time, end)
                known = after if _is_power_of_two(time - begin) else known
                windows = after
                time += 1
        self._final = windows
        return spans

    def _prune_dead_ends(self, forward: list[WindowSpan]) -> None:
        """Keep the windows from which a path reaches the end."""
        viable = self.end
        steps = self.machine.find_steps
        spans: list[WindowSpan] = []
        for span in reversed(forward):
            time = span.last
            while time >= span.first:
                self._count_points(1)
                kept = frozenset(w for w in span.windows if any(s[0] in viable for s in steps(w, span.given)))
                if kept == viable:
                    spans.append(WindowSpan(span.first, time, kept, span.given))
                    break
                spans.append(WindowSpan(time, time, kept, span.given))
                viable = kept
                time -= 1
        self.spans = spans[::-1]

    def traces(self, shown: Callable[[int], int], cost: Cost | None = None) -> Iterator[Trace]:
        """Yield one path per appearance: `shown` says for each time point which atoms of its slice are visible.

        With `cost`, which depends only on visible atoms, only paths of least cost."""
        if self.dead_end is not None:
            return
        if self._single_path is not None:
            yield self._complete(self._single_path, min(self.past.parents), min(self.end))
            return
        points = [point for span in self.spans for point in self._list_points(span)]
        targets = [span.windows for _, _, span in points[1:]] + [self.end]
        least = None if cost is None else self._find_least_costs(points, cost)
        # Depth-first over the visible atoms of each time point. Per point: the windows before it that agree with the
        # choices so far, the visible atoms chosen, and the choices that are left.
        windows_before: list[Windows] = []
        visible: list[int] = []
        choices: list[Iterator[tuple[int, Windows]]] = []
        windows = self.spans[0].windows if self.spans else self.end
        if least is not None:
            windows = frozenset(w for w in windows if least[0][w] == min(least[0].values()))
        while True:
            while len(windows_before) < len(points):
                at = len(windows_before)
                time, count, span = points[at]
                groups = self._group_steps(windows, span.given, targets[at], shown(time))
                if least is not None and cost is not None:
                    groups = _select_cheapest(groups, partial(cost, time, count), least[at + 1])
                choices.append(iter(sorted(groups.items())))
                atoms, after = next(choices[-1])
                windows_before.append(windows)
                visible.append(atoms)
                windows = after
            yield self._build_trace(windows_before, visible, points, windows, shown)
            while choices:
                choice = next(choices[-1], None)
                if choice is not None:
                    visible[-1], windows = choice
                    break
                choices.pop()
                windows_before.pop()
                visible.pop()
            else:
                return

    def _find_least_costs(self, points: list[_Point], cost: Cost) -> list[dict[Window, int]]:
        """Return for each time point, and for the end, what a path from each window costs at least from there on."""
        found: list[dict[Window, int]] = [dict.fromkeys(self.end, 0)]
        for time, count, span in reversed(points):
            after = found[-1]
            found.append(
                {
                    window: min(
                        cost(time, count, slice) + after[target]
                        for target, slice in self.machine.find_steps(window, span.given)
                        if target in after
                    )
                    for window in span.windows
                }
            )
        return found[::-1]

    def _list_points(self, span: WindowSpan) -> list[_Point]:
        """Return the time points of a span; one for all of them if there is nothing to choose and nothing changes."""
        if len(span.windows) == 1:
            (window,) = span.windows
            steps = self.machine.find_steps(window, span.given)
            if len(steps) == 1 and steps[0][0] == window:
                return [(span.first, span.last - span.first + 1, span)]
        self._count_points(span.last - span.first)
        return [(time, 1, span) for time in range(span.first, span.last + 1)]

    def consequences(self, brave: bool) -> Iterator[tuple[int, int, int]]:
        """Yield spans of time, each with the atoms that hold on some path, or on all paths."""
        if self._single_path is not None:
            time = self.first
            for slice, count in self._single_path:
                yield time, time + count - 1, slice
                time += count
            return
        for span, after in zip(self.spans, [*self.spans[1:], None], strict=True):
            if span.last > span.first:
                yield span.first, span.last - 1, self._combine_steps(span, span.windows, brave)
            targets = self.end if after is None else after.windows
            yield span.last, span.last, self._combine_steps(span, targets, brave)

    def _combine_steps(self, span: WindowSpan, targets: Windows, brave: bool) -> int:
        """Return the atoms of some, or of all, slices of the steps from a span to the given windows."""
        slices = [s for w in span.windows for after, s in self.machine.find_steps(w, span.given) if after in targets]
        return reduce(or_ if brave else and_, slices)

    def _group_steps(self, windows: Windows, given: int, targets: Windows, shown: int) -> dict[int, Windows]:
        """Return the windows after a step, grouped by the visible atoms of the step."""
        steps = self.machine.find_steps
        groups: dict[int, set[Window]] = {}
        for window in windows:
            for after, slice in steps(window, given):
                if after in targets:
                    groups.setdefault(slice & shown, set()).add(after)
        return {visible: frozenset(after) for visible, after in groups.items()}

    def _build_trace(
        self,
        windows_before: list[Windows],
        visible: list[int],
        points: list[_Point],
        windows: Windows,
        shown: Callable[[int], int],
    ) -> Trace:
        """Build a path through the windows that has the chosen visible atoms, backwards from its end."""
        window = last = min(windows)
        slices: list[_Run] = []
        for at in range(len(points) - 1, -1, -1):
            time, count, span = points[at]
            mask = shown(time)
            window, slice = min(
                (before, slice)
                for before in windows_before[at]
                for after, slice in self.machine.find_steps(before, span.given)
                if after == window and slice & mask == visible[at]
            )
            slices.append((slice, count))
        return self._complete(slices[::-1], window, last)

    def _complete(self, runs: list[_Run], begin: Window, end: Window) -> Trace:
        """Extend slices by a past before the window `begin` and a future after the window `end`."""
        loop, slices_from_loop = self.past.history(begin)
        future, right = self._future.continue_path(end)
        slices = [*loop, *slices_from_loop]
        start = self.first - len(slices)
        most = MOST_REPEATED + 2 * (len(loop) + right)
        gaps: list[tuple[int, int]] = []
        for slice, count in runs:
            slices += [slice] * min(count, most)
            if count > most:
                gaps.append((len(slices) - most // 2, count - most))
        return Trace(start, (*slices, *future), len(loop), right, tuple(gaps))


def _select_cheapest(
    groups: dict[int, Windows], cost: Callable[[int], int], least: dict[Window, int]
) -> dict[int, Windows]:
    """Return the groups of steps, and the windows in them, from which a path of least cost continues.

    All paths up to here cost the same, so only this step and what follows it differ."""
    totals = {atoms: cost(atoms) + min(least[w] for w in after) for atoms, after in groups.items()}
    cheapest = min(totals.values())
    return {
        atoms: frozenset(w for w in groups[atoms] if least[w] == cheapest - cost(atoms))
        for atoms, total in totals.items()
        if total == cheapest
    }


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


class _Future:
    """The time after the data, in which the given atoms no longer change."""

    def __init__(self, machine: SliceMachine, given: int, accepted: int | None) -> None:
        self.machine, self.given, self.accepted = machine, given, accepted
        #: The windows from which a path continues for ever.
        self._viable: set[Window] = set()
        #: Those of them in which a path may stay for ever, with the accepted atom.
        self._endless: set[Window] = set()

    def find_viable(self, windows: Windows) -> set[Window]:
        """Return the windows reachable from these from which a path continues for ever."""
        before: dict[Window, list[Window]] = {}
        count: dict[Window, int] = {}
        todo = deque(windows)
        seen = set(windows)
        while todo:
            window = todo.popleft()
            steps = {after for after, _ in self.machine.find_steps(window, self.given)}
            count[window] = len(steps)
            for after in steps:
                before.setdefault(after, []).append(window)
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        lasting = seen
        if self.accepted is not None:
            slot = self.machine.slots.index(self.accepted)
            lasting = {window for window in seen if window[slot] & 1}
            count = {w: len({a for a, _ in self.machine.find_steps(w, self.given)} & lasting) for w in lasting}
        # Repeatedly drop windows without a successor.
        ended = deque(window for window in lasting if not count[window])
        dropped = set(ended)
        while ended:
            for window in before.get(ended.popleft(), ()):
                if window in lasting and window not in dropped:
                    count[window] -= 1
                    if not count[window]:
                        dropped.add(window)
                        ended.append(window)
        self._endless = lasting - dropped
        self._viable = set(self._endless)
        todo = deque(self._endless)
        while todo:
            for window in before.get(todo.popleft(), ()):
                if window not in self._viable:
                    self._viable.add(window)
                    todo.append(window)
        return self._viable

    def continue_path(self, window: Window) -> tuple[list[int], int]:
        """Return the slices of a path that continues for ever, and how many of the last of them repeat."""
        slices: list[int] = []
        parents: dict[Window, tuple[Window, int]] = {}
        start = window
        todo = deque([window])
        while window not in self._endless:
            for after, slice in self.machine.find_steps(window, self.given):
                if after in self._viable and after not in parents:
                    parents[after] = window, slice
                    todo.append(after)
            todo.popleft()
            window = todo[0]
        end = window
        while window != start:
            window, slice = parents[window]
            slices.insert(0, slice)
        window = end
        seen: dict[Window, int] = {}
        while window not in seen:
            seen[window] = len(slices)
            window, slice = min(
                step for step in self.machine.find_steps(window, self.given) if step[0] in self._endless
            )
            slices.append(slice)
        return slices, len(slices) - seen[window]
