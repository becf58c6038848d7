"""Delays: how late facts may arrive, by predicate and by pattern.

`5` is the delay of all predicates, `Temp=5` of one, `Temp(wt4,_)=5` of the facts that match. Of all patterns that match
a fact, the one with the most constants applies; of several such patterns, the longest delay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidelog.hypothetical.fact_patterns import Pattern, most_specific, parse_patterns, to_texts
from tidelog.language.time_text import read_number

#: The largest number of atoms whose delays are cached.
_MAX_KNOWN = 100_000


class Delays:
    """The delay function of the paper, delta, for atoms with and without variables.

    >>> delays = Delays.parse(["1", "Temp(wt4,_)=5"], {"Temp": 2})
    >>> delays.of("Temp", ("wt2", "high")), delays.of("Temp", ("wt4", "high")), delays.of("Temp", (None, "high"))
    (1, 5, 5)
    """

    def __init__(self, patterns: Iterable[Pattern[int]] = ()) -> None:
        self.patterns: tuple[Pattern[int], ...] = tuple(patterns)
        self._with_patterns = frozenset(p.predicate for p in self.patterns if p.args is not None)
        self._uniform: dict[str, int] = {}
        self._known: dict[tuple[str, Sequence[object]], int] = {}

    @staticmethod
    def parse(delay: int | str | Iterable[str] | Mapping[str, int], predicates: Mapping[str, int]) -> Delays:
        """Parse delays: a number for all predicates, a mapping by predicate or pattern, or one or several texts."""
        return Delays(
            parse_patterns(to_texts(delay), predicates, _parse_delay, "TL703", "a whole number of time points")
        )

    def uniform_delay(self, predicate: str) -> int | None:
        """Return the delay of a predicate if all its facts have the same, else None."""
        if predicate in self._with_patterns:
            return None
        found = self._uniform.get(predicate)
        if found is None:
            found = self._uniform[predicate] = self._find_delay(predicate, ())
        return found

    def of(self, predicate: str, args: Sequence[object]) -> int:
        """Return the delay of an atom; for one with open arguments (None), the longest delay of its instances."""
        uniform = self.uniform_delay(predicate)
        if uniform is not None:
            return uniform
        found = self._known.get((predicate, args))
        if found is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            found = self._known[predicate, args] = self._longest(predicate, args)
        return found

    def _longest(self, predicate: str, args: Sequence[object]) -> int:
        # A pattern that applies to some instance also applies to the one with its constants and fresh ones elsewhere.
        instances = [[_FreshConstant() if arg is None else arg for arg in args]]
        for pattern in self.patterns:
            if pattern.predicate == predicate and pattern.args is not None:
                pairs = list(zip(pattern.args, args, strict=True))
                if all(a is None or b is None or a == b for a, b in pairs):
                    instances.append(
                        [b if b is not None else a if a is not None else _FreshConstant() for a, b in pairs]
                    )
        return max(self._find_delay(predicate, instance) for instance in instances)

    def _find_delay(self, predicate: str, args: Sequence[object]) -> int:
        return max(most_specific(self.patterns, predicate, args), default=0)


class _FreshConstant:
    """A fresh constant, which no pattern mentions."""


def _parse_delay(text: str) -> int | None:
    value = read_number(text, units=True)
    return None if value is None or value < 0 or value.denominator != 1 else int(value)
