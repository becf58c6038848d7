"""Paths of one component through its windows: from the infinite past, through the data, into the infinite future.

The data is a list of spans of time in which the same atoms are given. The windows of a time point are those before its
slice. A forward pass from every initial window computes all windows that can be reached at each time point. A backward
pass from the end keeps those from which a path continues for ever. Then the paths are enumerated by what they show in
LO..HI, each appearance once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_, or_

from tidelog.stable.endless_paths import EndlessPaths
from tidelog.stable.given_atoms import GivenAtoms
from tidelog.stable.initial_windows import InitialWindows
from tidelog.stable.search_limits import SearchLimit, require_listable
from tidelog.stable.slice_machine import SliceMachine, Window, Windows

#: More time points are not visited one by one.
MOST_POINTS = 2_000_000
#: Slices that repeat for longer than this, and than the ends need to repeat, become a gap.
MOST_REPEATED = 1000


@dataclass(frozen=True, slots=True)
class WindowSpan:
    """Consecutive time points with the same atoms given and, before each of them, the same possible windows.

    With a `period`, only one window is possible before the first of them, and the only path from it returns to it after
    this number of time points, again and again until the last one.
    """

    first: int
    last: int
    windows: Windows
    given: int
    period: int = 1


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """A time that no path passes, the windows that were possible before it, and the atoms given at it."""

    time: int
    windows: Windows
    given: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A position in a list of slices at which the next `period` slices are left out, `times` times in a row."""

    position: int
    period: int
    times: int


@dataclass(frozen=True, slots=True)
class Trace:
    """One path for all time, as slices from `start` on.

    The first `left` slices repeat for ever before them, and the last `right` slices repeat for ever after them. On both
    sides of a gap, its slices repeat for longer than either end needs to repeat.
    """

    start: int
    slices: tuple[int, ...]
    left: int
    right: int
    gaps: tuple[Gap, ...] = ()


#: Returns what a slice costs at a time.
Cost = Callable[[int, int], int]
#: A time, its span, and slices if they repeat from it to the end of the span without a choice.
_Point = tuple[int, WindowSpan, tuple[int, ...]]
#: Slices that follow each other, and how often they do in a row.
_Run = tuple[tuple[int, ...], int]


class _Recurrence:
    """Notices in a span that what happens repeats, by what was there before, and 1, 2, 4, 8, ... steps ago (Brent)."""

    def __init__(self, state: object, time: int) -> None:
        self._last = self._earlier = state
        self._since, self._doubled = time, 1

    def find_period(self, state: object, time: int) -> int:
        """Return how long ago the state of this time was there before; 0 where that is not known."""
        if state == self._last:
            return 1
        self._last = state
        if state == self._earlier:
            return time - self._since
        if time - self._since == self._doubled:
            self._earlier, self._since, self._doubled = state, time, 2 * self._doubled
        return 0


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
            self._future = EndlessPaths(machine, given.after, accepted)
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

    def _follow_single_path(self) -> list[_Run] | None:
        """Return the slices of the only path; None where there are several, or none."""
        if len(self.past.parents) != 1:
            return None
        (window,) = self.past.parents
        runs: list[_Run] = []
        for begin, end, atoms in self.given.constant_spans(self.first, self.last):
            recurrence = _Recurrence(window, begin)
            time = begin
            while time <= end:
                self._count_points(1)
                choices = self.machine.find_steps(window, atoms)
                if len(choices) != 1:
                    return None
                window, slice = choices[0]
                runs.append(((slice,), 1))
                time += 1
                period = recurrence.find_period(window, time)
                times = (end + 1 - time) // period if period else 0
                if times:
                    runs.append((tuple([slices[0] for slices, _ in runs[-period:]]), times))
                    time += times * period
        self._final = frozenset((window,))
        return runs

    def _find_reachable(self) -> list[WindowSpan]:
        """Return the windows that can be reached at each time point, whether or not a path continues from them."""
        steps = self.machine.find_steps
        windows: Windows = frozenset(self.past.parents)
        spans: list[WindowSpan] = []
        for begin, end, atoms in self.given.constant_spans(self.first, self.last):
            recurrence = _Recurrence(windows, begin)
            time = begin
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
                windows = after
                time += 1
                period = recurrence.find_period(windows, time)
                times = (end + 1 - time) // period if period else 0
                if times and self._find_loop(windows, atoms, period):
                    spans.append(WindowSpan(time, time + times * period - 1, windows, atoms, period))
                    time += times * period
                elif period and end + 1 - time > self._points_left:
                    reason = f"something repeats between {time:,} and {end:,}, with choices, which is too long"
                    raise self._limit.build_undecided(reason)
        self._final = windows
        return spans

    def _find_loop(self, windows: Windows, given: int, period: int) -> tuple[int, ...]:
        """Return the slices of the only path from the only window, if that leads back there after a period."""
        if len(windows) != 1:
            return ()
        (window,) = windows
        slices: list[int] = []
        for _ in range(period):
            steps = self.machine.find_steps(window, given)
            if len(steps) != 1:
                return ()
            window, slice = steps[0]
            slices.append(slice)
        return tuple(slices) if window in windows else ()

    def _prune_dead_ends(self, forward: list[WindowSpan]) -> None:
        """Keep the windows from which a path reaches the end."""
        viable = self.end
        steps = self.machine.find_steps
        spans: list[WindowSpan] = []
        for span in reversed(forward):
            if span.period > 1:
                spans.append(span)
                continue
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
        targets = [span.windows for _, span, _ in points[1:]] + [self.end]
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
                time, span, loop = points[at]
                groups = {0: windows} if loop else self._group_steps(windows, span.given, targets[at], shown(time))
                if least is not None and cost is not None and not loop:
                    groups = _select_cheapest(groups, partial(cost, time), least[at + 1])
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
        """Return for each time point, and for the end, what a path from each window costs at least from there on.

        Where there is no choice, all paths cost the same, which is left out."""
        found: list[dict[Window, int]] = [dict.fromkeys(self.end, 0)]
        for time, span, loop in reversed(points):
            after = found[-1]
            if loop:
                found.append(after)
                continue
            found.append(
                {
                    window: min(
                        cost(time, slice) + after[target]
                        for target, slice in self.machine.find_steps(window, span.given)
                        if target in after
                    )
                    for window in span.windows
                }
            )
        return found[::-1]

    def _list_points(self, span: WindowSpan) -> list[_Point]:
        """Return the time points of a span; one for all of them if everything repeats without a choice."""
        loop = self._find_loop(span.windows, span.given, span.period)
        if loop:
            return [(span.first, span, loop)]
        self._count_points(span.last - span.first)
        return [(time, span, ()) for time in range(span.first, span.last + 1)]

    def consequences(self, brave: bool, lo: int, hi: int) -> Iterator[tuple[int, int, int]]:
        """Yield spans of time that cover LO..HI, each with the atoms that hold on some path, or on all paths."""
        if self._single_path is not None:
            time = self.first
            for slices, count in self._single_path:
                yield from _unroll(time, slices, count, lo, hi)
                time += count * len(slices)
            return
        for span, after in zip(self.spans, [*self.spans[1:], None], strict=True):
            if span.period > 1:
                loop = self._find_loop(span.windows, span.given, span.period)
                yield from _unroll(span.first, loop, (span.last + 1 - span.first) // span.period, lo, hi)
                continue
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
            time, span, loop = points[at]
            if loop:
                slices.append((loop, (span.last + 1 - span.first) // len(loop)))
                continue
            mask = shown(time)
            window, slice = min(
                (before, slice)
                for before in windows_before[at]
                for after, slice in self.machine.find_steps(before, span.given)
                if after == window and slice & mask == visible[at]
            )
            slices.append(((slice,), 1))
        return self._complete(slices[::-1], window, last)

    def _complete(self, runs: list[_Run], begin: Window, end: Window) -> Trace:
        """Extend slices by a past before the window `begin` and a future after the window `end`."""
        loop, slices_from_loop = self.past.history(begin)
        future, right = self._future.continue_path(end)
        slices = [*loop, *slices_from_loop]
        start = self.first - len(slices)
        gaps: list[Gap] = []
        for repeated, count in runs:
            most = (MOST_REPEATED + 2 * (len(loop) + right)) // len(repeated) + 4
            slices += repeated * min(count, most)
            if count > most:
                gaps.append(Gap(len(slices) - most // 2 * len(repeated), len(repeated), count - most))
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


def _unroll(time: int, slices: tuple[int, ...], count: int, lo: int, hi: int) -> Iterator[tuple[int, int, int]]:
    """Yield slices that repeat from a time on as spans: one if there is only one slice, otherwise those in LO..HI."""
    last = time + count * len(slices) - 1
    if len(slices) == 1:
        yield time, last, slices[0]
        return
    first, last = max(time, lo), min(last, hi)
    require_listable(first, last)
    for at in range(first, last + 1):
        yield at, at, slices[(at - time) % len(slices)]
