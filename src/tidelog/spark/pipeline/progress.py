"""The progress of a run: what it has read, answered and set aside so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidelog.timeline.interval import Time


@dataclass
class Progress:
    """How far a run has come. Figures are of this run, not of the whole life of its checkpoint."""

    batch: int = -1
    facts: int = 0
    answers: int = 0
    late: int = 0
    #: Deletions that wait for a fact that has not come.
    unmatched: int = 0
    aside: int = 0
    held: int = 0
    silenced: int = 0
    watermark: str | None = None
    #: The watermark as a number, for comparison.
    at: Time | None = None
    #: What could not be carried over from the state of other rules.
    notes: dict[str, None] = field(default_factory=dict)
    #: The message of TL211, if the times of facts seem to be milliseconds, and rules have durations.
    unit_warning: str | None = None
    #: The engines that the first batch restored from their state, if any (`buckets`, `bytes`, `seconds` of the
    #: slowest); and the seconds from the start until that batch was done.
    restored: Mapping[str, Any] | None = None
    first_seconds: float | None = None
