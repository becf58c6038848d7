"""From the past through the data, and on for ever: all walks of one component, and its models on a stretch of time.

The data is a list of stretches of time in which the same atoms are given. Windows are those before the slice of a time
point. Forward, from every possible window, all windows that can be reached at each time point; backward from the end,
those of them that go on for ever; then the walks are told apart by what they show in LO..HI, each once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidelog.stable.machine import Machine, Window
from tidelog.stable.past import Past

Windows = frozenset[Window]


@dataclass(frozen=True, slots=True)
class Given:
    """The atoms that are given: `before` the first change, and from each change on. Changes are sorted by time."""

    before: int
    changes: tuple[tuple[int, int], ...]

    @property
    def after(self) -> int:
        return self.changes[-1][1] if self.changes else self.before

    def stretches(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """The stretches from `first` to `last` in which the same atoms are given: begin, end, atoms."""
        atoms, begin = self.before, first
        for time, changed in self.changes:
            if time > last:
                break
            if time > begin:
                yield begin, time - 1, atoms
                begin = time
            atoms = changed
        if begin <= last:
            yield begin, last, atoms


@dataclass(frozen=True, slots=True)
class Run:
    """Time points in a row, before each of which the same windows are possible, with the same atoms given."""

    first: int
    last: int
    windows: Windows
    given: int


@dataclass(frozen=True, slots=True)
class Stuck:
    """No walk goes on beyond a time: before it, these windows were possible."""

    time: int
    windows: Windows
    given: int


@dataclass(frozen=True, slots=True)
class Trace:
    """One walk for all time: slices from `start` on, of which the first `left` repeat for ever before, and the last
    `right` for ever after."""

    start: int
    slices: tuple[int, ...]
    left: int
    right: int


class Walks:
    """All walks of a component; those that go on for ever are in `runs`, from `first` to `last`."""

    def __init__(
        self, machine: Machine, past: Past, given: Given, first: int, last: int, accepted: int | None = None
    ) -> None:
        """`first` is not after the first change, `last` not before the last one. `accepted` is an atom, one that never
        ends once it holds: only walks in which it holds at last count."""
        self.machine, self.past, self.given = machine, past, given
        self.first, self.last = first, last
        self.stuck: Stuck | None = None
        self.runs: list[Run] = []
        self.end: Windows = frozenset()
        #: Where there is one walk only: its slices.
        self._only = self._straight()
        forward = self._forward() if self._only is None else []
        if self.stuck is None:
            self._ahead = _Ahead(machine, given.after, accepted)
            good = self._ahead.good(self._final)
            self.end = frozenset(w for w in self._final if w in good)
            if not self.end:
                self.stuck = Stuck(last + 1, self._final, given.after)
            else:
                self._backward(forward)

    def _straight(self) -> list[int] | None:
        """The slices of the one walk that there is; None where there are several, or none."""
        if len(self.past.parents) != 1:
            return None
        (window,) = self.past.parents
        steps = self.machine.steps
        slices: list[int] = []
        for begin, end, atoms in self.given.stretches(self.first, self.last):
            for time in range(begin, end + 1):
                found = steps(window, atoms)
                if len(found) != 1:
                    return None
                after, slice = found[0]
                slices.append(slice)
                if after == window:
                    slices += [slice] * (end - time)
                    break
                window = after
        self._final = frozenset((window,))
        return slices

    def _forward(self) -> list[Run]:
        """What can be reached, without a look at what comes after."""
        steps = self.machine.steps
        windows: Windows = frozenset(self.past.parents)
        runs: list[Run] = []
        for begin, end, atoms in self.given.stretches(self.first, self.last):
            time = begin
            while time <= end:
                after = frozenset([step[0] for window in windows for step in steps(window, atoms)])
                if not after:
                    self.stuck = Stuck(time, windows, atoms)
                    return runs
                if after == windows:
                    runs.append(Run(time, end, windows, atoms))
                    break
                runs.append(Run(time, time, windows, atoms))
                windows = after
                time += 1
        self._final = windows
        return runs

    def _backward(self, forward: list[Run]) -> None:
        """Keep the windows from which one gets to the end."""
        good = self.end
        steps = self.machine.steps
        found: list[Run] = []
        for run in reversed(forward):
            time = run.last
            while time >= run.first:
                kept = frozenset(w for w in run.windows if any(s[0] in good for s in steps(w, run.given)))
                if kept == good:
                    found.append(Run(run.first, time, kept, run.given))
                    break
                found.append(Run(time, time, kept, run.given))
                good = kept
                time -= 1
        self.runs = found[::-1]

    def traces(self, shown: Callable[[int], int]) -> Iterator[Trace]:
        """One walk for each way to look on the time points, where `shown` says which atoms of a slice are looked at."""
        if self.stuck is not None:
            return
        if self._only is not None:
            yield self._whole(self._only, min(self.past.parents), min(self.end))
            return
        points = [(time, run) for run in self.runs for time in range(run.first, run.last + 1)]
        targets = [run.windows for _, run in points[1:]] + [self.end]
        # The windows after each time point of the walk under way that agree with what is shown.
        so_far: list[Windows] = []
        looks: list[int] = []
        choices: list[Iterator[tuple[int, Windows]]] = []
        windows = self.runs[0].windows if self.runs else self.end
        while True:
            while len(so_far) < len(points):
                at = len(so_far)
                time, run = points[at]
                ways = self._ways(windows, run.given, targets[at], shown(time))
                choices.append(iter(sorted(ways.items())))
                look, after = next(choices[-1])
                so_far.append(windows)
                looks.append(look)
                windows = after
            yield self._trace(so_far, looks, points, windows, shown)
            while choices:
                step = next(choices[-1], None)
                if step is not None:
                    looks[-1], windows = step
                    break
                choices.pop()
                so_far.pop()
                looks.pop()
            else:
                return

    def _ways(self, windows: Windows, given: int, targets: Windows, shown: int) -> dict[int, Windows]:
        """The windows after a step, by what the step shows."""
        steps = self.machine.steps
        ways: dict[int, set[Window]] = {}
        for window in windows:
            for after, slice in steps(window, given):
                if after in targets:
                    ways.setdefault(slice & shown, set()).add(after)
        return {look: frozenset(after) for look, after in ways.items()}

    def _trace(
        self,
        so_far: list[Windows],
        looks: list[int],
        points: list[tuple[int, Run]],
        windows: Windows,
        shown: Callable[[int], int],
    ) -> Trace:
        """A walk through the windows, with a past before it and a future after it."""
        window = last = min(windows)
        slices: list[int] = []
        for at in range(len(points) - 1, -1, -1):
            time, run = points[at]
            mask = shown(time)
            window, slice = min(
                (before, slice)
                for before in so_far[at]
                for after, slice in self.machine.steps(before, run.given)
                if after == window and slice & mask == looks[at]
            )
            slices.append(slice)
        return self._whole(slices[::-1], window, last)

    def _whole(self, slices: list[int], begin: Window, end: Window) -> Trace:
        """Slices with a past before them and a future after them."""
        loop, way = self.past.history(begin)
        future, right = self._ahead.onwards(end)
        past = [*loop, *way]
        return Trace(self.first - len(past), (*past, *slices, *future), len(loop), right)


class _Ahead:
    """After the data: nothing changes from outside any more."""

    def __init__(self, machine: Machine, given: int, accepted: int | None) -> None:
        self.machine, self.given, self.accepted = machine, given, accepted
        self._good: set[Window] = set()
        self._round: set[Window] = set()

    def good(self, windows: Windows) -> set[Window]:
        """The windows, of those that can be reached from these, from which a walk goes on for ever."""
        before: dict[Window, list[Window]] = {}
        count: dict[Window, int] = {}
        todo = deque(windows)
        seen = set(windows)
        while todo:
            window = todo.popleft()
            steps = {after for after, _ in self.machine.steps(window, self.given)}
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
            count = {w: len({a for a, _ in self.machine.steps(w, self.given)} & lasting) for w in lasting}
        ended = deque(window for window in lasting if not count[window])
        lost = set(ended)
        while ended:
            for window in before.get(ended.popleft(), ()):
                if window in lasting and window not in lost:
                    count[window] -= 1
                    if not count[window]:
                        lost.add(window)
                        ended.append(window)
        self._round = lasting - lost
        self._good = set(self._round)
        todo = deque(self._round)
        while todo:
            for window in before.get(todo.popleft(), ()):
                if window not in self._good:
                    self._good.add(window)
                    todo.append(window)
        return self._good

    def onwards(self, window: Window) -> tuple[list[int], int]:
        """The slices of a walk that goes on for ever, and how many of the last of them repeat."""
        slices: list[int] = []
        parents: dict[Window, tuple[Window, int]] = {}
        start = window
        todo = deque([window])
        while window not in self._round:
            for after, slice in self.machine.steps(window, self.given):
                if after in self._good and after not in parents:
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
            window, slice = min(step for step in self.machine.steps(window, self.given) if step[0] in self._round)
            slices.append(slice)
        return slices, len(slices) - seen[window]
