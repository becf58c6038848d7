"""The figures of a stream's steps as lines for charts, in bounded memory however long the stream is.

Steps are grouped, with the same number of steps per group; when there are too many groups, each two become one. Sums
stay exact; of the facts held and the time of a step, the largest is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidelog.language.time_text import format_iso
from tidelog.timeline.interval import INF, format_time

if TYPE_CHECKING:
    from tidelog.streaming.answers import StreamStep
    from tidelog.timeline.interval import Time

_MOST = 2000


@dataclass(slots=True)
class StepGroup:
    """Consecutive steps, the last of them at `t`."""

    t: Time
    steps: int
    facts_in: int
    answers: int
    seconds: float
    held: int
    slowest: float

    def absorb(self, later: StepGroup) -> None:
        """Add the steps of the next group to this one."""
        self.t = later.t
        self.steps += later.steps
        self.facts_in += later.facts_in
        self.answers += later.answers
        self.seconds += later.seconds
        self.held = max(self.held, later.held)
        self.slowest = max(self.slowest, later.slowest)


@dataclass
class StepCharts:
    """The figures of the steps of a stream so far."""

    most: int = _MOST
    groups: list[StepGroup] = field(default_factory=list)
    #: The number of steps per group.
    size: int = 1

    def add(self, step: StreamStep) -> None:
        held = step.window_facts + step.history_atoms
        new = StepGroup(step.time, 1, step.facts_in, len(step.answers), step.seconds, held, step.seconds)
        if self.groups and self.groups[-1].steps < self.size:
            self.groups[-1].absorb(new)
            return
        if len(self.groups) >= self.most:
            for first, second in zip(self.groups[::2], self.groups[1::2], strict=False):
                first.absorb(second)
            self.groups = self.groups[::2]
            self.size *= 2
            if self.groups[-1].steps < self.size:
                self.groups[-1].absorb(new)
                return
        self.groups.append(new)

    def to_json(self, dates: bool) -> dict[str, Any]:
        """Build the JSON object that the page reads.

        `x` are the times as floats, or the numbers of the groups if a time is infinite.
        """
        groups = self.groups
        finite = all(abs(group.t) != INF for group in groups)
        return {
            "t": [format_iso(group.t) if dates else format_time(group.t) for group in groups],
            "x": [float(group.t) if finite else float(number) for number, group in enumerate(groups)],
            **{
                name: [getattr(group, name) for group in groups]
                for name in ("steps", "facts_in", "held", "answers", "slowest", "seconds")
            },
        }
