"""The plan of a job: its stages, buckets and routes, decided once by the driver and followed by all workers.

A job is a chain of stages. A fact is sent to one bucket of a stage, by the hash of one of its arguments, or to all its
buckets. Rows for a later stage pass through the stages before it, so all rows take the same path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b
from math import ceil
from typing import Any, Literal

from tidelog.analysis.distribution import Distribution, Stage
from tidelog.analysis.stage_programs import build_stage_program
from tidelog.analysis.time_reach import compute_look_ahead
from tidelog.compiler.compiled_program import Memory
from tidelog.compiler.validate import choose_timeline
from tidelog.hypothetical.key_split import KeySplit
from tidelog.language.hidden_predicates import TIMES
from tidelog.language.program import Program
from tidelog.language.syntax_json import nodes_to_json
from tidelog.streaming.alerts import AlertOptions
from tidelog.timeline.interval import INF, Time, TimelineName

#: What a job over stable models gives: the facts that hold in some model, in all of them, or in one.
StableMode = Literal["brave", "cautious", "model"]


@dataclass(frozen=True)
class Route:
    """Where facts of a predicate go: to one bucket of a stage, by the argument `key`, or to all its buckets (None).

    In that stage they have the predicate `name`, which differs from their own for a copy that goes by another key.
    """

    stage: int
    buckets: int
    key: int | None
    name: str


@dataclass(frozen=True)
class StagePlan:
    """One stage, as its buckets see it."""

    number: int
    buckets: int
    #: The number of buckets in the stage before; 0 for the first stage, whose clock is that of the input.
    upstream_buckets: int
    stage: Stage
    #: Where the facts that it derives go; those of the user's query, in the last stage, go nowhere.
    routes: Mapping[str, tuple[Route, ...]]
    #: Predicates that every bucket derives alike, so that only the first bucket passes them on.
    copied: frozenset[str]
    timeline: TimelineName | None
    memory: Memory | None
    at: str | tuple[Fraction, ...] | None
    #: For how long before its own clock it takes corrections, if at all.
    corrections: Fraction | None = None

    @property
    def is_last(self) -> bool:
        return not any(self.routes.values())

    def gives_answers(self, query: str) -> bool:
        """Return whether its facts are the answers to the query."""
        return self.is_last and self.stage.outputs == (query,)


@dataclass(frozen=True)
class Awaiting:
    """How to say what is awaited: bounds of resolution where it does not end by itself, and how likely facts come; all
    as `tidelog.hypothetical.Hypotheses` has them, with `max_open` for each bucket."""

    depth: int | None = None
    horizon: int | None = None
    probability: float | Mapping[str, float] | None = None
    chances: Mapping[str, str] | None = None
    min_confidence: float | None = None
    max_open: int | None = None


@dataclass(frozen=True)
class AwaitedStagePlan:
    """The stage for hypothetical answers, after all others.

    Its buckets receive facts of the input, and the clock from the first bucket of the first stage.
    """

    number: int
    buckets: int
    #: The query as an atom with variables.
    query: str
    options: Awaiting
    #: How late facts may arrive, in time points; then predicates with a delay of their own.
    delays: tuple[str, ...]
    timeline: TimelineName | None
    #: Whether times are dates.
    dates: bool
    #: Facts that are known from the start, packed.
    background: tuple[bytes, ...]
    key_split: KeySplit


@dataclass(frozen=True)
class JobPlan:
    """A program and a query, split into stages and buckets."""

    program: Program
    query: str
    stages: tuple[StagePlan, ...]
    #: Where facts of the input go; without predicates that no rule reads.
    routes: Mapping[str, tuple[Route, ...]]
    delays: Mapping[str | None, Fraction]
    #: The clock of a stream at its start, if it continues from the state of a backfill.
    start: Time = -INF
    #: Which answers are reported, if not all.
    alerts: AlertOptions | None = None
    #: Whether its state may have been saved with other rules.
    rules_changed: bool = False
    awaited: AwaitedStagePlan | None = None
    #: The end of time: answers that hold there are given with a closed end, and later facts wait for another run.
    until: Time | None = None
    #: For how long before the clock of the input facts may be late or deleted, if answers are corrected.
    corrections: Fraction | None = None
    #: Which facts of stable models are answers, if the job is over those.
    stable: StableMode | None = None

    @property
    def all_stages(self) -> tuple[StagePlan | AwaitedStagePlan, ...]:
        """All stages that rows pass through, in order; the number of a stage is its index."""
        return self.stages if self.awaited is None else (*self.stages, self.awaited)

    @property
    def max_buckets(self) -> int:
        """The number of buckets of the widest stage."""
        return max(stage.buckets for stage in self.all_stages)

    @property
    def longest_delay(self) -> Fraction:
        """The largest delay of any predicate."""
        return max(self.delays.values())

    def delay(self, predicate: str) -> Fraction:
        """Return how late a fact of the input may be; `predicate` is its name in any stage."""
        if self.corrections is not None:
            return self.corrections
        if predicate == TIMES:
            return self.longest_delay
        return self.delays.get(self.sources[predicate], self.delays[None])

    @cached_property
    def sources(self) -> Mapping[str, str]:
        """The predicate of the input for each name that its facts have in a stage."""
        return {route.name: predicate for predicate, routes in self.routes.items() for route in routes}

    @cached_property
    def layout(self) -> list[dict[str, Any]]:
        """The parts of the split that a saved state depends on, per stage, as JSON: see `state_layout`."""
        return [
            {
                "buckets": plan.buckets,
                "key": dict(plan.stage.key),
                "rules": None if plan.is_last else _digest(build_stage_program(self.program, plan.stage)),
                **({} if self.stable is None else {"stable": self.stable}),
            }
            for plan in self.stages
        ]


def _digest(program: Program) -> str:
    return blake2b(repr(nodes_to_json(program.rules)).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class PlanOptions:
    """What a plan needs besides the split: the number of buckets per stage, and the options of their engines."""

    buckets: int
    delays: Mapping[str | None, Fraction]
    timeline: TimelineName | None = None
    memory: Memory | None = None
    at: str | tuple[Fraction, ...] | None = None
    start: Time = -INF
    alerts: AlertOptions | None = None
    rules_changed: bool = False
    until: Time | None = None
    corrections: Fraction | None = None
    stable: StableMode | None = None


def plan_job(program: Program, query: str, split: Distribution, options: PlanOptions) -> JobPlan:
    """Plan a job: give every stage its buckets, and every predicate its routes."""
    program = split.program
    counts = [1 if stage.single else options.buckets for stage in split.stages]

    def find_routes(predicate: str, names: Callable[[Stage], Iterable[str]], first: int = 0) -> tuple[Route, ...]:
        return tuple(
            Route(number, counts[number], stage.key[name], name)
            for number, stage in enumerate(split.stages)
            if number >= first
            for name in names(stage)
            if stage.aliases.get(name, name) == predicate
        )

    last = len(split.stages) - 1
    stages = tuple(
        StagePlan(
            number,
            counts[number],
            counts[number - 1] if number else 0,
            stage,
            {name: find_routes(name, lambda s: s.receives, number + 1) for name in stage.outputs},
            frozenset(name for name in stage.outputs if stage.key[name] is None),
            options.timeline if options.stable is None else "integer",
            options.memory,
            options.at if number == last else None,
            _find_reach(program, options, number),
        )
        for number, stage in enumerate(split.stages)
    )
    inputs = {
        predicate: find_routes(predicate, lambda s: s.inputs)
        for predicate in dict.fromkeys(stage.aliases.get(n, n) for stage in split.stages for n in stage.inputs)
    }
    if options.at is not None:
        inputs[TIMES] = (Route(last, counts[last], None, TIMES),)
    return JobPlan(
        program,
        query,
        stages,
        inputs,
        options.delays,
        options.start,
        options.alerts,
        options.rules_changed,
        until=options.until,
        corrections=options.corrections,
        stable=options.stable,
    )


def _find_reach(program: Program, options: PlanOptions, stage: int) -> Fraction | None:
    """Return how far before its clock a stage takes corrections.

    The clock of the first stage is that of the input minus the delay. A change of the input may change facts that later
    stages receive before its time, by the look-ahead of the rules; and those facts may begin earlier, since they are
    passed on in pieces (`worker.passed_facts`).
    """
    if options.corrections is None:
        return None
    length = options.corrections - max(options.delays.values())
    if stage == 0:
        return length
    timeline = choose_timeline(program, options.timeline)
    found = compute_look_ahead(program, timeline).values()
    ahead = max((known.distance for known in found if isinstance(known.distance, Fraction)), default=Fraction(0))
    return Fraction(3 * ceil(length + ahead) + 1, 2) if timeline == "integer" else 3 * (length + ahead) / 2
