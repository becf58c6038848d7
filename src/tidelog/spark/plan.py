"""What the workers of a job need to know, worked out once by the driver.

A job is a chain of stages. Facts are sent to a bucket of a stage: by the hash of one of their arguments, or to all its
buckets. Rows that are meant for a later stage pass through those before it, so that every row takes one way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b
from typing import Any

from tidelog.analysis.distribution import Distribution, Stage
from tidelog.analysis.stage_programs import stage_program
from tidelog.hypothetical.splitting import Splitting
from tidelog.language.program import Program
from tidelog.language.tree import to_tree
from tidelog.streaming.alerts import Alerting
from tidelog.timeline.interval import INF, Time

#: The predicate under which the stream's own times go to every bucket, where answers are asked for at these times.
TIMES = "$time"


@dataclass(frozen=True)
class Route:
    """Where facts of a predicate go: to the buckets of a stage, by the argument `key`, or to all (None).

    There they have the name `name`, which is another than the predicate's for a copy that goes by another key.
    """

    stage: int
    buckets: int
    key: int | None
    name: str


@dataclass(frozen=True)
class Part:
    """A stage as its buckets see it."""

    number: int
    buckets: int
    #: How many buckets the stage before has; 0 for the first, whose clock is that of the input.
    before: int
    stage: Stage
    #: Where what it gives goes; the user's query, in the last stage, goes nowhere.
    routes: Mapping[str, tuple[Route, ...]]
    #: What it gives that every bucket derives alike, and so only the first passes on.
    copied: frozenset[str]
    timeline: str | None
    memory: str | None
    at: str | tuple[Fraction, ...] | None

    @property
    def last(self) -> bool:
        return not any(self.routes.values())

    def answers(self, query: str) -> bool:
        """Whether what it gives are the answers to a query."""
        return self.last and self.stage.gives == (query,)


@dataclass(frozen=True)
class Awaiting:
    """How to say what is awaited: bounds of resolution where it does not end by itself, and how likely facts come; all
    as `tidelog.Hypotheses` has them, with `max_open` for each bucket."""

    depth: int | None = None
    horizon: int | None = None
    probability: float | Mapping[str, float] | None = None
    chances: Mapping[str, str] | None = None
    min_confidence: float | None = None
    max_open: int | None = None


@dataclass(frozen=True)
class AwaitedPart:
    """What follows the stages where what is awaited is asked for: all its buckets see facts of the input, and are told
    the clock by the first bucket of the first stage."""

    number: int
    buckets: int
    #: The query as an atom with variables.
    query: str
    asked: Awaiting
    #: How late facts may come, in time points, and those of predicates with a delay of their own.
    delays: tuple[str, ...]
    timeline: str | None
    #: Whether times are dates.
    dates: bool
    #: Facts that are known from the beginning, packed.
    background: tuple[bytes, ...]
    splitting: Splitting


@dataclass(frozen=True)
class Job:
    """A program and a query, split."""

    program: Program
    query: str
    parts: tuple[Part, ...]
    #: Where facts of the input go; predicates that no rule reads are not in it.
    routes: Mapping[str, tuple[Route, ...]]
    delays: Mapping[str | None, Fraction]
    #: The clock with which a stream begins that goes on from a state handed over.
    since: Time = -INF
    #: What is told of the answers, if not all.
    alerts: Alerting | None = None
    #: Whether its state may be one of other rules.
    changed: bool = False
    awaited: AwaitedPart | None = None

    @property
    def chain(self) -> tuple[Part | AwaitedPart, ...]:
        """All that rows pass through, in order; the number of each is its place."""
        return self.parts if self.awaited is None else (*self.parts, self.awaited)

    @property
    def most_buckets(self) -> int:
        return max(part.buckets for part in self.chain)

    @property
    def longest_delay(self) -> Fraction:
        """The most by which a fact may be late."""
        return max(self.delays.values())

    def delay(self, predicate: str) -> Fraction:
        """The delay that facts of the input may have, under whatever name they go."""
        if predicate == TIMES:
            return self.longest_delay
        return self.delays.get(self.sources[predicate], self.delays[None])

    @cached_property
    def sources(self) -> Mapping[str, str]:
        """The predicate of the input for each name under which its facts go."""
        return {route.name: predicate for predicate, routes in self.routes.items() for route in routes}

    @cached_property
    def layout(self) -> list[dict[str, Any]]:
        """What of the split a state depends on, stage by stage, as JSON: see `other_layout`."""
        return [
            {
                "buckets": part.buckets,
                "key": dict(part.stage.key),
                "rules": None if part.last else _digest(stage_program(self.program, part.stage)),
            }
            for part in self.parts
        ]


def other_layout(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> str | None:
    """Why a state of a job with one layout cannot go on with another; None if it can.

    Facts lie in the bucket that they were sent to. What a stage has told the next one stays told, so that only the
    rules of the last stage can become others.
    """
    if len(old) != len(new):
        return f"it had {_stages(len(old))}, and now has {_stages(len(new))}"
    for number, (was, now) in enumerate(zip(old, new, strict=True), 1):
        if was["buckets"] != now["buckets"]:
            return f"stage {number} had {was['buckets']} buckets, and now has {now['buckets']}"
        for name in was["key"].keys() & now["key"].keys():
            if was["key"][name] != now["key"][name]:
                return (
                    f"in stage {number}, {name} {_goes(was['key'][name])}, and now it {_goes(now['key'][name], True)}"
                )
        if was["rules"] != now["rules"]:
            return (
                f"the rules of stage {number} have changed, and what they gave before is held by the stages after it: "
                "only the rules of the last stage may change"
            )
    return None


def _stages(count: int) -> str:
    return "1 stage" if count == 1 else f"{count} stages"


def _goes(position: int | None, now: bool = False) -> str:
    if position is None:
        return "is copied" if now else "was copied"
    return f"{'goes' if now else 'went'} by argument {position + 1}"


def _digest(program: Program) -> str:
    return blake2b(repr(to_tree(program.rules)).encode(), digest_size=8).hexdigest()


def job(
    program: Program,
    query: str,
    split: Distribution,
    *,
    buckets: int,
    delays: Mapping[str | None, Fraction],
    timeline: str | None = None,
    memory: str | None = None,
    at: str | tuple[Fraction, ...] | None = None,
    since: Time = -INF,
    alerts: Alerting | None = None,
    changed: bool = False,
) -> Job:
    """The plan of a job with so many buckets a stage."""
    counts = [1 if stage.single else buckets for stage in split.stages]

    def routes(predicate: str, names: Callable[[Stage], Iterable[str]], first: int = 0) -> tuple[Route, ...]:
        return tuple(
            Route(number, counts[number], stage.key[name], name)
            for number, stage in enumerate(split.stages)
            if number >= first
            for name in names(stage)
            if stage.aliases.get(name, name) == predicate
        )

    parts = []
    last = len(split.stages) - 1
    for number, stage in enumerate(split.stages):
        parts.append(
            Part(
                number,
                counts[number],
                counts[number - 1] if number else 0,
                stage,
                {name: routes(name, lambda s: s.receives, number + 1) for name in stage.gives},
                frozenset(name for name in stage.gives if stage.key[name] is None),
                timeline,
                memory,
                at if number == last else None,
            )
        )
    inputs = {
        predicate: routes(predicate, lambda s: s.inputs)
        for predicate in dict.fromkeys(stage.aliases.get(n, n) for stage in split.stages for n in stage.inputs)
    }
    if at is not None:
        inputs[TIMES] = (Route(last, counts[last], None, TIMES),)
    return Job(program, query, tuple(parts), inputs, delays, since, alerts, changed)


def spread(count: int, partitions: int) -> tuple[int, ...]:
    """Keys for so many buckets that Spark's hash partitioning lays out evenly, the same for ever.

    >>> spread(4, 2)
    (2, 0, 4, 1)
    """
    keys: list[int] = []
    for bucket in range(count):
        key = 0
        while key in keys or _murmur3(key) % partitions != bucket % partitions:
            key += 1
        keys.append(key)
    return tuple(keys)


def _murmur3(key: int, seed: int = 42) -> int:
    """The hash by which Spark chooses the partition of a row with an integer key; its remainder is Spark's `pmod`."""
    mask = 0xFFFFFFFF
    k = (key * 0xCC9E2D51) & mask
    k = ((k << 15) | (k >> 17)) & mask
    h = seed ^ ((k * 0x1B873593) & mask)
    h = ((h << 13) | (h >> 19)) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & mask
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & mask
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h
