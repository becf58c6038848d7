"""The sets of data that can be generated, each with the rules that go with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from tidelog.generate import lubm, signals, traffic, turbines


@dataclass(frozen=True)
class Generated:
    """A set of data: `facts` takes how many, of how many vehicles or the like, and a seed."""

    name: str
    title: str
    #: What there are more of with a larger size, and how many unless told; LUBM grows with its facts alone.
    things: str
    size: int
    #: The rules, their file's name, and a predicate to ask for.
    program: Callable[[], str]
    file: str
    query: str
    facts: Callable[[int, int, int], Iterator[str]]


def _traffic(count: int, size: int, seed: int) -> Iterator[str]:
    return islice(traffic.facts(size, -(-count // size), seed=seed), count)


def _turbines(count: int, size: int, seed: int) -> Iterator[str]:
    return (fact for _, fact in islice(turbines.arrivals(size, seed=seed), count))


def _lubm(count: int, size: int, seed: int) -> Iterator[str]:
    return lubm.facts(count, seed=seed)


def _signals(count: int, size: int, seed: int) -> Iterator[str]:
    # A signal is sent at least every three time units.
    return islice(signals.facts(20, size, 3 * (count // size + 1), seed=seed), count)


CATALOGUE = {
    found.name: found
    for found in (
        Generated(
            "traffic",
            "vehicles on a ring of roads, one of which is blocked now and then",
            "vehicles",
            40,
            traffic.program,
            "traffic.dmtl",
            "Jam",
            _traffic,
        ),
        Generated(
            "turbines",
            "wind turbines whose reports come late",
            "turbines",
            10,
            turbines.program,
            "turbines.tdl",
            "Malf",
            _turbines,
        ),
        Generated(
            "lubm",
            "universities in the proportions of the Lehigh University Benchmark",
            "",
            0,
            lubm.program,
            "lubm.dmtl",
            "AssociateProfessorCandidate",
            _lubm,
        ),
        Generated(
            "signals",
            "a network of nodes that watch signals",
            "signals",
            3,
            signals.program,
            "signals.dmtl",
            "Flag",
            _signals,
        ),
    )
}
