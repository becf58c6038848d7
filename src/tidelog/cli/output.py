"""What a stream writes: answers or alerts to standard output, late facts and the figures of steps to files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import IO, Any

from tidelog.cli.options import write_out
from tidelog.language.times import format_iso
from tidelog.streaming.alerts import Alert, render, time_of
from tidelog.streaming.answers import Answers, Step
from tidelog.timeline.interval import format_time


@dataclass
class Output:
    """Where it goes, and in which form. `iso` says how times print; None: as in the data, whose way is `dates`."""

    form: str
    iso: bool | None
    late: IO[bytes] | None = None
    stats: IO[bytes] | None = None
    late_facts: int = 0
    #: What the run before printed as it ended, and where its time stopped: it is not printed again.
    printed: frozenset[bytes] = frozenset()
    stopped_at: Fraction = Fraction(0)

    def answer(self, told: Answers | list[Alert], dates: bool) -> None:
        if len(told):
            write_out(self._new(told, lines_of(told, self.form, self._iso(dates))))

    def came_late(self, facts: Answers, dates: bool) -> None:
        self.late_facts += len(facts)
        if self.late:
            self.late.write(facts.render("text", self._iso(dates)))

    def count(self, step: Step, more: Mapping[str, Any], dates: bool) -> None:
        """The figures of a step, and more that the step does not know."""
        figures = {
            "t": format_iso(step.t) if self._iso(dates) else format_time(step.t),
            "facts_in": step.facts_in,
            "window_facts": step.window_facts,
            "history_atoms": step.history_atoms,
            "answers": len(step.answers),
            "seconds": round(step.seconds, 9),
            **more,
        }
        if self.stats:
            self.stats.write(json.dumps(figures).encode() + b"\n")

    def flush(self) -> None:
        sys.stdout.flush()
        for file in (self.late, self.stats):
            if file:
                file.flush()

    def _iso(self, dates: bool) -> bool:
        return dates if self.iso is None else self.iso

    def _new(self, told: Answers | list[Alert], lines: bytes) -> bytes:
        """Lines without those that the run before has printed as it ended."""
        if not self.printed:
            return lines
        alerts = list(told)
        shown = zip(render(alerts).splitlines(), lines.splitlines(keepends=True), strict=True)
        lines = b"".join(line for text, line in shown if text not in self.printed)
        # Answers come in the order of time, so that none of the others comes again.
        if max(time_of(alert) for alert in alerts) > self.stopped_at:
            self.printed = frozenset()
        return lines


def lines_of(told: Answers | list[Alert], form: str = "text", iso: bool = False) -> bytes:
    return told.render(form, iso) if isinstance(told, Answers) else render(told, form, iso)
