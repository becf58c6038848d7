"""The figures of a stream's steps as lines for charts, in bounded memory however long the stream is.

Steps are gathered in stretches of equally many steps; when there are too many stretches, two become one. What is added
up stays exact, and of what is compared (facts held, the time of a step) the largest is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidelog.language.times import format_iso
from tidelog.timeline.interval import INF, format_time

if TYPE_CHECKING:
    from tidelog.streaming.answers import Step
    from tidelog.timeline.interval import Time

_MOST = 2000


@dataclass(slots=True)
class Stretch:
    """Some steps one after the other, the last of them at `t`."""

    t: Time
    steps: int
    facts_in: int
    answers: int
    seconds: float
    held: int
    slowest: float

    def grow(self, later: Stretch) -> None:
        self.t = later.t
        self.steps += later.steps
        self.facts_in += later.facts_in
        self.answers += later.answers
        self.seconds += later.seconds
        self.held = max(self.held, later.held)
        self.slowest = max(self.slowest, later.slowest)


@dataclass
class Figures:
    """The steps of a stream so far."""

    most: int = _MOST
    stretches: list[Stretch] = field(default_factory=list)
    #: How many steps a stretch is.
    size: int = 1

    def add(self, step: Step) -> None:
        held = step.window_facts + step.history_atoms
        new = Stretch(step.t, 1, step.facts_in, len(step.answers), step.seconds, held, step.seconds)
        if self.stretches and self.stretches[-1].steps < self.size:
            self.stretches[-1].grow(new)
            return
        if len(self.stretches) >= self.most:
            for first, second in zip(self.stretches[::2], self.stretches[1::2], strict=False):
                first.grow(second)
            self.stretches = self.stretches[::2]
            self.size *= 2
            if self.stretches[-1].steps < self.size:
                self.stretches[-1].grow(new)
                return
        self.stretches.append(new)

    def to_json(self, dates: bool) -> dict[str, Any]:
        """What the page reads; `x` are times as near as a float comes, or numbers of steps where time is infinite."""
        parts = self.stretches
        finite = all(abs(part.t) != INF for part in parts)
        return {
            "t": [format_iso(part.t) if dates else format_time(part.t) for part in parts],
            "x": [float(part.t) if finite else float(number) for number, part in enumerate(parts)],
            **{
                name: [getattr(part, name) for part in parts]
                for name in ("steps", "facts_in", "held", "answers", "slowest", "seconds")
            },
        }
