"""The data sets that can be generated, each with its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from tidelog.generate import lubm, signals, traffic, turbines


@dataclass(frozen=True)
class Generator:
    """A data set that can be generated."""

    name: str
    title: str
    #: What `--size` counts, and its default; LUBM has none, since it grows with the number of facts alone.
    things: str
    size: int
    #: The file of the rules, and a predicate to query.
    file: str
    query: str
    #: Takes the number of facts, the size and a seed.
    facts: Callable[[int, int, int], Iterator[str]]


def _generate_traffic(count: int, size: int, seed: int) -> Iterator[str]:
    return islice(traffic.generate_facts(size, -(-count // size), seed=seed), count)


def _generate_turbines(count: int, size: int, seed: int) -> Iterator[str]:
    return (fact for _, fact in islice(turbines.generate_arrivals(size, seed=seed), count))


def _generate_lubm(count: int, size: int, seed: int) -> Iterator[str]:
    return lubm.generate_facts(count, seed=seed)


def _generate_signals(count: int, size: int, seed: int) -> Iterator[str]:
    # A signal is sent at least every three time units.
    return islice(signals.generate_facts(20, size, 3 * (count // size + 1), seed=seed), count)


CATALOGUE = {
    generator.name: generator
    for generator in (
        Generator(
            "traffic",
            "vehicles on a ring of roads, one of which is blocked from time to time",
            "vehicles",
            40,
            "traffic.dmtl",
            "Jam",
            _generate_traffic,
        ),
        Generator(
            "turbines",
            "wind turbines whose reports arrive late",
            "turbines",
            10,
            "turbines.tdl",
            "Malf",
            _generate_turbines,
        ),
        Generator(
            "lubm",
            "universities in the proportions of the Lehigh University Benchmark",
            "",
            0,
            "lubm.dmtl",
            "AssociateProfessorCandidate",
            _generate_lubm,
        ),
        Generator(
            "signals",
            "a network of nodes that monitor signals",
            "signals",
            3,
            "signals.dmtl",
            "Flag",
            _generate_signals,
        ),
    )
}
