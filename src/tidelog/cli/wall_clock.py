"""The wall clock of `--heartbeat`: the time of a stream while nothing arrives, so that absence is noticed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.streaming.reasoner import Reasoner


@dataclass
class WallClock:
    """A clock that shows the present where times are dates; where they are numbers, it counts the seconds since the
    last fact arrived, from the time of that fact."""

    arrived: float = 0.0
    reached: Fraction | None = None

    def note_arrival(self, reasoner: Reasoner) -> None:
        """Remember the time that the stream has reached, and when it did."""
        reached = reasoner.last_step.time
        self.reached = None if isinstance(reached, float) else reached
        self.arrived = time.monotonic()

    def read(self, reasoner: Reasoner) -> Fraction | None:
        """Return the present time of the stream, in whole tenths of a second; None if no fact with a time has come."""
        if self.reached is None:
            return None
        if reasoner.dates:
            return Fraction(int(time.time() * 10), 10)
        return self.reached + Fraction(int((time.monotonic() - self.arrived) * 10), 10)
