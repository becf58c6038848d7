"""How likely awaited facts are to come.

A fact of a predicate comes true with a probability, and then arrives with some delay, or never: the chances of the
delays 0, 1, 2, ... may sum to less than 1, where a channel loses facts. That a fact has not come so far makes it less
likely: with probability p, and chances F(d) of a delay of at most d, a fact of time t that has not come at tau still
comes with p (F(last) - F(tau - t)) / (1 - p F(tau - t)). Awaited facts count as independent of each other. One that
has variables counts as a fact that has all its time before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidelog.hypothetical.compiled import Awaited
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.patterns import Pattern, most_special, parse_patterns, texts

PROBABILITY_LAW = "a probability is a number from 0 to 1: 0.5, Temp=0.9, or Temp(wt4,_)=0.2 for the facts that fit"
CHANCES_LAW = (
    "the chances of the delays 0, 1, 2, ... sum to at most 1: Temp=0.7:0.2:0.05, where 0.05 of the facts never arrive"
)
DEFAULT = 0.5


@dataclass
class Confidence:
    """Probabilities, and chances of delays: as given, or else counted in the stream so far, where every delay that is
    allowed counts as seen once."""

    delays: Delays
    probabilities: tuple[Pattern[float], ...] = ()
    chances: tuple[Pattern[tuple[float, ...]], ...] = ()
    #: By predicate: how many facts came with each delay.
    counts: dict[str, list[int]] = field(default_factory=dict)

    @staticmethod
    def parse(
        delays: Delays,
        predicates: Mapping[str, int],
        probability: float | str | Iterable[str] | Mapping[str, float],
        chances: str | Iterable[str] | Mapping[str, str],
    ) -> Confidence:
        return Confidence(
            delays,
            parse_patterns(texts(probability), predicates, _probability, "TL706", PROBABILITY_LAW),
            parse_patterns(texts(chances), predicates, _chances, "TL706", CHANCES_LAW),
        )

    def note(self, predicate: str, late: int) -> None:
        """A fact came so late."""
        counts = self.counts.setdefault(predicate, [])
        counts.extend([0] * (late + 1 - len(counts)))
        counts[late] += 1

    def of(self, awaited: Iterable[Awaited], tau: int) -> float:
        """The likelihood that all facts come that have not come at `tau`."""
        product = 1.0
        for predicate, args, time in awaited:
            product *= self._comes(predicate, args, None if time is None or None in args else tau - time)
        return product

    def _comes(self, predicate: str, args: Sequence[object], waited: int | None) -> float:
        p = max(most_special(self.probabilities, predicate, args), default=DEFAULT)
        last = self.delays.of(predicate, tuple(args))
        given = most_special(self.chances, predicate, args)
        whole = self._at_most(predicate, last, last, given)
        if waited is None or waited < 0:
            return p * whole
        so_far = self._at_most(predicate, waited, last, given)
        rest = 1 - p * so_far
        return p * (whole - so_far) / rest if rest > 0 else 0.0

    def _at_most(self, predicate: str, delay: int, last: int, given: Sequence[tuple[float, ...]]) -> float:
        """The chance of a delay of at most so much."""
        if given:
            return sum(given[0][: min(delay, last) + 1])
        counts = self.counts.get(predicate, [])[: last + 1]
        return (sum(counts[: delay + 1]) + min(delay, last) + 1) / (sum(counts) + last + 1)


def _probability(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _chances(text: str) -> tuple[float, ...] | None:
    parts = [_probability(part) for part in text.split(":")]
    chances = tuple(part for part in parts if part is not None)
    return chances if len(chances) == len(parts) and sum(chances) <= 1 + 1e-9 else None
