"""The options of a session of hypothetical answers, and the facts that it rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from tidelog.hypothetical.ground_facts import GroundFact, to_value
from tidelog.hypothetical.supported_answers import format_atom
from tidelog.language.fact_text import format_value
from tidelog.language.syntax import TemporalAtom

#: Why a fact was rejected.
RejectReason = Literal["late", "future", "backwards", "derived"]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A rejected fact and the reason: it arrived later than its delay allows (`late`), before its own time (`future`),
    with an arrival time before the last one (`backwards`), or rules derive its predicate (`derived`)."""

    why: RejectReason
    arrival: int
    fact: GroundFact
    rigid: bool = False

    @property
    def text(self) -> str:
        """The fact as it is printed."""
        predicate, args, time = self.fact
        texts = [format_value(to_value(arg)) for arg in args] + ([] if self.rigid else [str(time)])
        return f"{predicate}({','.join(texts)})" if texts else predicate


@dataclass(frozen=True, slots=True)
class HypothesisOptions:
    """Options of `Hypotheses` beyond the delay.

    `depth` and `horizon` bound the resolution of recursive rules. `probability` says how likely facts are to become
    true, and `chances` how likely each delay is, both by predicate or pattern; they give answers a confidence. Answers
    below `min_confidence` are discarded, and all but the `max_open` most likely. With `early`, facts may arrive before
    their own time, which happens where the clock is a watermark. With `unsupported`, answers without evidence are also
    returned. `show` formats facts in answers. `on_rejected` is called with every rejected fact.
    """

    depth: int | None = None
    horizon: int | None = None
    probability: float | str | Iterable[str] | Mapping[str, float] | None = None
    chances: str | Iterable[str] | Mapping[str, str] | None = None
    min_confidence: float | None = None
    max_open: int | None = None
    early: bool = False
    unsupported: bool = False
    show: Callable[[TemporalAtom], str] = format_atom
    on_rejected: Callable[[Rejected], None] | None = None

    @property
    def has_confidence(self) -> bool:
        """Whether any option asks for a confidence."""
        options = (self.probability, self.chances, self.min_confidence, self.max_open)
        return any(option is not None for option in options)

    def to_json(self) -> dict[str, Any]:
        """Return the options that a saved state keeps: all but the functions."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _to_plain(value) for name, value in values.items() if name not in ("show", "on_rejected")}


def _to_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value
