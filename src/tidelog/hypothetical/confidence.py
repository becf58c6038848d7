"""Confidence: how likely it is that awaited facts arrive.

A fact is true with some probability, and then arrives with some delay, or never: the chances of the delays 0, 1, 2
and so on may sum to less than 1 if the channel loses facts. The longer a fact is missing, the less likely it is. With
probability p and chance F(d) of a delay of at most d, a fact of time t that has not arrived at tau still arrives with
probability p (F(last) - F(tau - t)) / (1 - p F(tau - t)). Awaited facts are treated as independent of each other. A
fact with open variables is treated as if no time had passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.fact_patterns import Pattern, most_specific, parse_patterns, to_texts
from tidelog.hypothetical.ground_facts import AwaitedFact

_CHANCES_LAW = (
    "the chances of the delays 0, 1, 2, ... sum to at most 1: Temp=0.7:0.2:0.05, where 0.05 of the facts never arrive"
)
_DEFAULT_PROBABILITY = 0.5


@dataclass
class Confidence:
    """Probabilities of facts and chances of delays.

    Chances that are not given are estimated from the stream so far, where each allowed delay counts as seen once."""

    delays: Delays
    probabilities: tuple[Pattern[float], ...] = ()
    chances: tuple[Pattern[tuple[float, ...]], ...] = ()
    #: By predicate: how many facts arrived with each delay.
    counts: dict[str, list[int]] = field(default_factory=dict)

    @staticmethod
    def parse(
        delays: Delays,
        predicates: Mapping[str, int],
        probability: float | str | Iterable[str] | Mapping[str, float],
        chances: str | Iterable[str] | Mapping[str, str],
    ) -> Confidence:
        """Parse probabilities and chances of delays, each as `Delays.parse` takes delays."""
        return Confidence(
            delays,
            parse_patterns(to_texts(probability), predicates, _parse_probability, "TL706", "a number from 0 to 1"),
            parse_patterns(
                to_texts(chances), predicates, _parse_chances, "TL706", "a list of chances p0:p1:...", _CHANCES_LAW
            ),
        )

    def record_delay(self, predicate: str, delay: int) -> None:
        """Record the delay of a fact that has arrived."""
        counts = self.counts.setdefault(predicate, [])
        counts.extend([0] * (delay + 1 - len(counts)))
        counts[delay] += 1

    def of(self, awaited: Iterable[AwaitedFact], tau: int) -> float:
        """Return the likelihood that all awaited facts arrive, none of which has arrived at `tau`."""
        product = 1.0
        for predicate, args, time in awaited:
            product *= self._likelihood(predicate, args, None if time is None or None in args else tau - time)
        return product

    def _likelihood(self, predicate: str, args: Sequence[object], waited: int | None) -> float:
        p = max(most_specific(self.probabilities, predicate, args), default=_DEFAULT_PROBABILITY)
        last = self.delays.of(predicate, tuple(args))
        given = most_specific(self.chances, predicate, args)
        whole = self._chance_within(predicate, last, last, given)
        if waited is None or waited < 0:
            return p * whole
        so_far = self._chance_within(predicate, waited, last, given)
        rest = 1 - p * so_far
        return p * (whole - so_far) / rest if rest > 0 else 0.0

    def _chance_within(self, predicate: str, delay: int, last: int, given: Sequence[tuple[float, ...]]) -> float:
        """Return the chance of a delay of at most `delay`."""
        if given:
            return sum(given[0][: min(delay, last) + 1])
        counts = self.counts.get(predicate, [])[: last + 1]
        return (sum(counts[: delay + 1]) + min(delay, last) + 1) / (sum(counts) + last + 1)


def _parse_probability(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _parse_chances(text: str) -> tuple[float, ...] | None:
    parts = [_parse_probability(part) for part in text.split(":")]
    chances = tuple(part for part in parts if part is not None)
    return chances if len(chances) == len(parts) and sum(chances) <= 1 + 1e-9 else None
