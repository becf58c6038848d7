"""What a session was created with: kept in saved states, so that `load` needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tidelog.hypothetical.session_options import HypothesisOptions
from tidelog.language.program import Program
from tidelog.language.program_json import program_to_json
from tidelog.language.syntax import Fact
from tidelog.language.syntax_json import nodes_to_json
from tidelog.language.time_like import DurationLike, to_duration, to_integer_time
from tidelog.timeline.interval import TimelineName

#: How late facts may arrive: a number or duration for all, texts like `Temp(wt4,_)=5`, or a mapping by predicate.
DelayByPattern = int | str | timedelta | Iterable[str] | Mapping[str, int | timedelta]


@dataclass(frozen=True)
class SessionOrigin:
    """The arguments that a session was created with."""

    program: Program
    query: str
    delay: int | str | list[str] | dict[str, int]
    background: tuple[Fact, ...]
    timeline: TimelineName | None
    options: HypothesisOptions

    def to_json(self) -> dict[str, Any]:
        """Return the arguments as an object for JSON."""
        return {
            "program": program_to_json(self.program),
            "query": self.query,
            "delay": self.delay,
            "background": nodes_to_json(self.background),
            "timeline": self.timeline,
            "options": self.options.to_json(),
        }


def to_plain_delay(delay: DelayByPattern) -> int | str | list[str] | dict[str, int]:
    """Return delays as a value that a saved state can hold."""
    if isinstance(delay, Mapping):
        return {name: length if isinstance(length, int) else _to_whole(length) for name, length in delay.items()}
    if isinstance(delay, timedelta):
        return _to_whole(delay)
    return delay if isinstance(delay, int | str) else list(delay)


def _to_whole(length: DurationLike) -> int:
    return to_integer_time(to_duration(length))
