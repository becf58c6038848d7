"""Paths of one component after its data, where the given atoms no longer change: which of them continue for ever."""

from __future__ import annotations

from collections import deque

from tidelog.stable.slice_machine import SliceMachine, Window, Windows


class EndlessPaths:
    """The paths after the data: from which windows they continue for ever, and how."""

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
