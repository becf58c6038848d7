"""How late facts may come: by predicate, and by patterns of constants.

`5` is the delay of all predicates, `Temp=5` that of one, `Temp(wt4,_)=5` that of the facts that fit. Of all patterns
that fit a fact, the one with the most constants counts, and of several such the longest delay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidelog.hypothetical.patterns import Pattern, most_special, parse_patterns, texts
from tidelog.language.times import read_number

LAW = "a delay is a natural number of time points: 5, Temp=5, or Temp(wt4,_)=5 for the facts that fit"

#: Delays of atoms that are remembered.
_MOST_KNOWN = 100_000


class Delays:
    """The function delta of the paper, for atoms with and without variables.

    >>> delays = Delays.parse(["1", "Temp(wt4,_)=5"], {"Temp": 2})
    >>> delays.of("Temp", ("wt2", "high")), delays.of("Temp", ("wt4", "high")), delays.of("Temp", (None, "high"))
    (1, 5, 5)
    """

    def __init__(self, patterns: Iterable[Pattern[int]] = ()) -> None:
        self.patterns: tuple[Pattern[int], ...] = tuple(patterns)
        self._special = frozenset(p.predicate for p in self.patterns if p.args is not None)
        self._plain: dict[str, int] = {}
        self._known: dict[tuple[str, Sequence[object]], int] = {}

    @staticmethod
    def parse(given: int | str | Iterable[str] | Mapping[str, int], predicates: Mapping[str, int]) -> Delays:
        """Delays as text, one or several, as a number for all predicates, or by predicate or pattern."""
        return Delays(parse_patterns(texts(given), predicates, _amount, "TL703", LAW))

    def plain(self, predicate: str) -> int | None:
        """The delay of a predicate, if it is the same for all its facts."""
        if predicate in self._special:
            return None
        found = self._plain.get(predicate)
        if found is None:
            found = self._plain[predicate] = self._ground(predicate, ())
        return found

    def of(self, predicate: str, args: Sequence[object]) -> int:
        """The delay of an atom; where an argument is not known yet (None), the longest of its instances."""
        plain = self.plain(predicate)
        if plain is not None:
            return plain
        found = self._known.get((predicate, args))
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[predicate, args] = self._longest(predicate, args)
        return found

    def _longest(self, predicate: str, args: Sequence[object]) -> int:
        # Each pattern that counts for some instance also counts for the one with its constants, and new ones elsewhere.
        instances = [[_New() if arg is None else arg for arg in args]]
        for pattern in self.patterns:
            if pattern.predicate == predicate and pattern.args is not None:
                pairs = list(zip(pattern.args, args, strict=True))
                if all(a is None or b is None or a == b for a, b in pairs):
                    instances.append([b if b is not None else a if a is not None else _New() for a, b in pairs])
        return max(self._ground(predicate, instance) for instance in instances)

    def _ground(self, predicate: str, args: Sequence[object]) -> int:
        return max(most_special(self.patterns, predicate, args), default=0)


class _New:
    """A constant that no pattern mentions."""


def _amount(text: str) -> int | None:
    value = read_number(text, units=True)
    return None if value is None or value < 0 or value.denominator != 1 else int(value)
