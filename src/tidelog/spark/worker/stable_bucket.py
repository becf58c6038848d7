"""Streaming jobs over stable models: one bucket, which follows its part of the stream.

**What is an answer.** The rules only look back (TL327 otherwise), so the facts that begin up to a time decide which
stable models are possible at it, and facts that begin later change nothing. `tidelog stable --input` prints for each
time of a stream what holds in all stable models so far, and what holds in some. A job answers for every time instead,
between the facts of its stream, too, since no bucket knows the times of the others: its answers are the maximal
intervals in which a fact of the query holds in some model so far (`brave`), or in all (`cautious`). At the times of the
stream they say what `tidelog stable --input` prints there.

**When it is final.** A time is complete once the clock has passed it by the longest delay. It is then evaluated, once,
and never again, so an interval is final when the first time after it is. That is when it is given; an interval without
an end is never given, unless time ends (`until`). What holds before the stream has held from the beginning of time, and
has no start. A fact that one model so far leaves open stays an answer of `brave`, although facts to come may exclude
that model: a batch job, which knows them, would not have it. For the same reason, a job cannot follow one `model`.

**Why buckets are independent.** `plan_stable_distribution` splits a program such that a stable model of the whole is
one stable model of each part. That is so for the facts up to any time. Nothing passes from stage to stage but the
clock, and a part is followed from its first fact on: until then it does not change. A part without a model leaves none
of the whole, whatever follows, so it fails the job (TL331), and the batch is not counted as done.

**State.** The windows that are possible before the next time, facts that rules may still look back at, and since when
the atoms of the query hold. As with other buckets, a step is a function of this state and its input.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from time import perf_counter
from typing import Any

import numpy as np

from tidelog.data import wire_format
from tidelog.data.dataset import Dataset
from tidelog.data.relation import Relation, to_facts
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import format_fact
from tidelog.language.time_text import format_iso
from tidelog.spark.plan.job_plan import JobPlan, StagePlan
from tidelog.spark.plan.state_layout import require_same_layout
from tidelog.spark.worker.bucket import BucketInput
from tidelog.spark.worker.bucket_program import select_background
from tidelog.spark.worker.late_facts import split_late_facts
from tidelog.spark.worker.packed_rows import ANSWER, CLOCK, OUTPUT_STAGE, STATS, Row
from tidelog.spark.worker.stable_worker import build_stable_program, refuse_conflict
from tidelog.stable.fact_stream import FactStream
from tidelog.stable.held_intervals import EndedInterval, HeldIntervals
from tidelog.stable.search_limits import MOST_WINDOWS
from tidelog.stable.stream_components import Facts, NoWindowLeft
from tidelog.streaming.state_format import pack, unpack
from tidelog.timeline.grid import NEG_INF
from tidelog.timeline.interval import INF, Time, format_time, read_time


@dataclass
class StableBucket:
    """The engine of a bucket. Facts wait until the clock is known, which it is not in the first batch."""

    job: JobPlan
    plan: StagePlan
    number: int
    stream: FactStream
    #: The last complete time of each bucket of the stage before.
    frontiers: dict[int, int] = field(default_factory=dict)
    waiting: list[bytes] = field(default_factory=list)
    #: The clock of the input at the last step.
    clock: Time = -INF
    #: The end of time at which the last answers were given.
    ended_at: Time | None = None
    #: The bytes of state that this engine was loaded from and the seconds it took, until the next step reports them.
    restored: tuple[int, float] | None = None

    @staticmethod
    def new(job: JobPlan, plan: StagePlan, number: int, background: Dataset) -> StableBucket:
        """Create a bucket that knows its share of the background, and nothing else."""
        program, held = build_stable_program(job, plan, number), _create_held_intervals(job, plan)
        known = select_background(plan, number, background)
        bucket = StableBucket(job, plan, number, FactStream(program, known, MOST_WINDOWS, held=held))
        try:
            bucket.stream.begin()
        except NoWindowLeft as stuck:
            raise bucket._explain_conflict(stuck) from None
        return bucket

    def step(self, step: BucketInput) -> list[Row]:
        """Take one step, and return the rows that leave the bucket."""
        begun = perf_counter()
        facts, rows = list(step.facts), list[Row]()
        if self.plan.number == 0:
            facts, rows = split_late_facts(self.job, 0, self.number, facts, step.clock)
        self.clock = step.clock
        self.frontiers |= dict(map(json.loads, step.clocks))
        self.waiting += facts
        until = None if step.until is None or isinstance(step.until, float) else floor(step.until)
        complete, ended = self._find_complete_time(), list[EndedInterval]()
        if complete is not None:
            last = complete if until is None else min(complete, until)
            ended = self._follow(last)
            if until is not None and complete >= until and self.ended_at != step.until:
                self.ended_at = step.until
                ended += [] if self.held is None else self.held.find_open(until)
            if self.number and self.job.query in self.plan.copied:
                ended = []  # the first bucket gives these answers
            if ended:
                rows.append(self._pack_answers(ended))
            rows += self._clock_rows(last)
        figures = self._figures(until, len(ended), perf_counter() - begun)
        rows.append(Row(self.number, OUTPUT_STAGE, STATS, json.dumps(figures).encode()))
        return rows

    @property
    def held(self) -> HeldIntervals | None:
        """The intervals of the query, in a stage that gives answers."""
        return self.stream.components.held

    # Saved states

    def save(self) -> bytes:
        """Return the whole state as bytes."""
        meta = {
            "stage": self.plan.number,
            "bucket": self.number,
            "layout": self.job.layout,
            "t": format_time(self.clock),
            "frontiers": list(self.frontiers.items()),
            "waiting": len(self.waiting),
            "ended_at": None if self.ended_at is None else format_time(self.ended_at),
            "stream": self.stream.to_json(),
        }
        return pack(meta, {f"waiting.{i}": np.frombuffer(p, np.uint8) for i, p in enumerate(self.waiting)})

    @staticmethod
    def load(job: JobPlan, plan: StagePlan, state: bytes, *, changed: bool = False) -> StableBucket:
        """Load a saved bucket, which must have the same rules."""
        meta, arrays = unpack(state, "the state of a bucket")
        require_same_layout(meta["layout"], job.layout)
        program, held = build_stable_program(job, plan, meta["bucket"]), _create_held_intervals(job, plan)
        return StableBucket(
            job,
            plan,
            meta["bucket"],
            FactStream.from_json(meta["stream"], program, held),
            dict(meta["frontiers"]),
            [arrays[f"waiting.{i}"].tobytes() for i in range(meta["waiting"])],
            read_time(meta["t"]),
            None if meta["ended_at"] is None else read_time(meta["ended_at"]),
        )

    def __reduce__(self) -> Any:
        """Go to another worker as a saved state: what the components have computed about their steps stays behind."""
        return StableBucket.load, (self.job, self.plan, self.save())

    def adopt_rules(self, background: Dataset) -> bool:
        """Do nothing: jobs over stable models refuse changed rules."""
        return False

    # One step

    def _find_complete_time(self) -> int | None:
        """Return the last time at which no more facts can begin; None if that is not known."""
        if self.plan.number:
            known = len(self.frontiers) == self.plan.upstream_buckets
            return min(self.frontiers.values()) if known else None
        return None if isinstance(self.clock, float) else ceil(self.clock - self.job.longest_delay) - 1

    def _follow(self, last: int) -> list[EndedInterval]:
        """Take the facts that have arrived, go on up to a time, and return the intervals that have ended."""
        components = self.stream.components
        components.add_facts(self._read_waiting())
        try:
            if components.next_time is None:
                components.start(last + 1)
            if components.next_time is not None and components.next_time <= last:
                components.evaluate_until(last)
        except NoWindowLeft as stuck:
            raise self._explain_conflict(stuck) from None
        components.forget_facts()
        return [] if self.held is None else self.held.take_ended()

    def _read_waiting(self) -> Facts:
        """Return the facts that have arrived."""
        data, self.waiting = wire_format.to_dataset(map(wire_format.unpack, self.waiting)), []
        for relation in data.relations.values():
            endless = relation.lo == NEG_INF
            if endless.any():
                first = next(iter(to_facts(data.symbols, data.denominator, relation.select(endless))))
                raise TidelogError(
                    Diagnostic(
                        "TL322",
                        f"the fact {format_fact(first, data.dates)} of a stream holds from -inf on",
                        law="in a stream, facts begin at some time; facts that always hold are known before it",
                        help="give it a beginning, or give it as background, from a table that is no stream",
                    )
                )
        next_time = self.stream.components.next_time
        return self.stream.read(data, NEG_INF if next_time is None else next_time)

    def _pack_answers(self, ended: Sequence[EndedInterval]) -> Row:
        """Pack intervals of the query as answers."""
        ground = self.stream.components.grounding.atoms
        args = np.array([ground[found.atom][1] for found in ended], np.int32).T
        lo = np.array([found.lo if found.lo == NEG_INF else 2 * found.lo for found in ended], np.int64)
        hi = np.array([2 * found.hi for found in ended], np.int64)
        relation = Relation(self.job.query, len(args), args.reshape(-1, len(ended)), lo, hi)
        payload = wire_format.pack(self.stream.symbols, 1, self.stream.dates, relation)
        return Row(self.number, OUTPUT_STAGE, ANSWER, payload)

    def _clock_rows(self, last: int) -> Iterator[Row]:
        """Tell every bucket of the next stage up to which time the input is complete."""
        following = self.plan.number + 1
        payload = json.dumps([self.number, last]).encode()
        for bucket in range(self.job.stages[following].buckets) if following < len(self.job.stages) else ():
            yield Row(bucket, following, CLOCK, payload)

    def _explain_conflict(self, stuck: NoWindowLeft) -> TidelogError:
        """Build the error for a part without a stable model: since when, which part, and what it violates."""
        time = stuck.time
        since = "" if time is None else f" from {format_iso(Fraction(time)) if self.stream.dates else time} on"
        problem = refuse_conflict(self.stream.name_atoms(stuck), since)
        return TidelogError([*problem.diagnostics, *self.stream.find_violations(stuck)])

    def _figures(self, until: int | None, answers: int, seconds: float) -> dict[str, Any]:
        """Return the figures of a step."""
        components = self.stream.components
        held = components.count_facts()
        known = -INF if components.next_time is None else Fraction(components.next_time)
        figures: dict[str, Any] = {
            "stage": self.plan.number,
            "bucket": self.number,
            "t": format_time(known if until is None else min(known, Fraction(until))),
            "held": held,
            "window_facts": sum(held.values()),
            "history_atoms": 0,
            "answers": answers,
            "rules": {},
            "seconds": round(seconds, 6),
        }
        if self.restored:
            figures["restored_bytes"], figures["restored_seconds"] = self.restored[0], round(self.restored[1], 6)
            self.restored = None
        return figures


def _create_held_intervals(job: JobPlan, plan: StagePlan) -> HeldIntervals | None:
    """Create the intervals of the query, in a stage that gives answers."""
    return HeldIntervals(job.query, job.stable == "brave") if job.query in plan.stage.outputs else None
