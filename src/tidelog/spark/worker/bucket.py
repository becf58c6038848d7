"""One bucket of one stage: an engine that takes packed rows, step by step, and returns packed rows.

There is no Spark here. The state of a bucket is a base (a saved reasoner and the facts that wait for their time) and
the inputs of the steps since. A step is a function of state and input, so replaying the inputs on the base restores it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np

from tidelog.analysis.stage_programs import choose_stage_query
from tidelog.data import wire_format
from tidelog.data.dataset import Dataset
from tidelog.data.deletions import name_deletions
from tidelog.data.wire_format import FactBlock
from tidelog.engine.fact_store import Int64s
from tidelog.language.hidden_predicates import TIMES
from tidelog.model import relation_of
from tidelog.spark.plan.job_plan import JobPlan, StagePlan
from tidelog.spark.plan.state_layout import require_same_layout
from tidelog.spark.worker.alert_rows import pack_alerts
from tidelog.spark.worker.bucket_program import build_bucket_program, select_background, split_by_predicate
from tidelog.spark.worker.change_log import pack_alert_changes, pack_changes
from tidelog.spark.worker.end_of_time import end_copy, split_at_end
from tidelog.spark.worker.late_facts import split_late_facts
from tidelog.spark.worker.packed_rows import (
    ANSWER,
    CLOCK,
    FACTS,
    FINAL,
    OUTPUT_STAGE,
    STATS,
    Row,
    frame_parts,
    route_facts,
    unframe_parts,
)
from tidelog.spark.worker.passed_facts import PassedFacts
from tidelog.streaming.alerts import AlertState
from tidelog.streaming.answer_changes import ChangeStep
from tidelog.streaming.answers import StreamStep
from tidelog.streaming.reasoner import Reasoner
from tidelog.streaming.snapshot import has_other_rules
from tidelog.streaming.state_format import pack, unpack
from tidelog.streaming.watch import compute_alerts, compute_last_alerts, restore_alert_state
from tidelog.timeline.interval import INF, Time, format_time, read_time


@dataclass(frozen=True)
class BucketInput:
    """The input of one step of a bucket: the clock of the input, and the payloads of its rows."""

    clock: Time
    facts: Sequence[bytes] = ()
    #: The clocks of the buckets of the stage before.
    clocks: Sequence[bytes] = ()
    #: The end of time, if the job has one, and facts that the stage before derives only because time ends there.
    until: Time | None = None
    finals: Sequence[bytes] = ()

    def to_bytes(self) -> bytes:
        end = [] if self.until is None else [len(self.clocks), format_time(self.until)]
        head = json.dumps([format_time(self.clock), len(self.facts), *end]).encode()
        return frame_parts([head, *self.facts, *self.clocks, *self.finals])

    @staticmethod
    def from_bytes(data: bytes) -> BucketInput:
        head, *parts = unframe_parts(data)
        clock, facts, *end = json.loads(head)
        clocks, until = (end[0], read_time(end[1])) if end else (len(parts) - facts, None)
        rest = parts[facts:]
        return BucketInput(read_time(clock), parts[:facts], rest[:clocks], until, rest[clocks:])


@dataclass
class Bucket:
    """The engine of a bucket. Facts wait until the clock is known, which it is not in the first batch."""

    job: JobPlan
    plan: StagePlan
    number: int
    reasoner: Reasoner
    #: The time up to which each bucket of the stage before is complete, and whether that time is included.
    frontiers: dict[int, tuple[Time, bool]] = field(default_factory=dict)
    waiting: list[bytes] = field(default_factory=list)
    #: The clock of the input at the last step.
    clock: Time = -INF
    #: Whether its rules are still those of the state that it was loaded from, and not the job's.
    has_old_rules: bool = False
    #: What changed rules could not keep, until the next step reports it.
    notes: tuple[str, ...] = ()
    #: The state of alerts, in a bucket that gives answers; and the number of alerts of the last step.
    alerts: AlertState | None = None
    alert_count: int = 0
    #: The bytes of state that this engine was loaded from and the seconds it took, until the next step reports them.
    restored: tuple[int, float] | None = None
    #: The end of time at which the last answers were given, and the buckets of the stage before that have given theirs.
    ended_at: Time | None = None
    ends: dict[int, Time] = field(default_factory=dict)
    #: Facts that the stage before derived only because time ends, until all its buckets have given theirs.
    finals: list[bytes] = field(default_factory=list)
    #: The facts that a stage with corrections has passed on and may still correct.
    passed: PassedFacts | None = None

    @staticmethod
    def new(job: JobPlan, plan: StagePlan, number: int, background: Dataset) -> Bucket:
        """Create a bucket that knows its share of the background, and nothing else."""
        reasoner = Reasoner(
            build_bucket_program(job, plan, number),
            choose_stage_query(plan.stage),
            timeline=plan.timeline,
            background=select_background(plan, number, background),
            memory=plan.memory,
            at=plan.at,
            corrections=plan.corrections,
        )
        reasoner.partial = not plan.is_last and plan.corrections is None
        passed = None if plan.is_last or plan.corrections is None else PassedFacts.new(reasoner)
        alerts = AlertState(job.alerts, job.query) if job.alerts and plan.gives_answers(job.query) else None
        return Bucket(job, plan, number, reasoner, alerts=alerts, passed=passed)

    def step(self, step: BucketInput) -> list[Row]:
        """Take one step, and return the rows that leave the bucket."""
        begun, work, undefined = perf_counter(), self.reasoner.rule_work(), self.reasoner.count_undefined()
        self.clock = step.clock if self.job.corrections is None else max(self.clock, step.clock)
        self.alert_count, silenced = 0, self.alerts.silenced if self.alerts else 0
        facts = list(step.facts)
        rows: list[Row] = []
        if self.plan.number == 0:
            facts, rows = split_late_facts(self.job, 0, self.number, facts, step.clock)
        self._read_clocks(step)
        t, included = self._complete_time(step.clock, step.until)
        costs: dict[int, list[float]] = {}
        answers = 0
        if isinstance(t, float):
            self.waiting += facts
        else:
            result = self._push(t, included, facts, step.until)
            costs = self._rule_costs(self.reasoner.rule_work() - work, result.seconds)
            rows += self._derived_rows(result)
        if step.until is not None and not isinstance(step.until, float) and self._ends_now((t, included), step.until):
            last, answers = self._end_time(step.until)
            rows += last
        if not self.plan.is_last:
            rows += self._clock_rows()
        if self.job.awaited and (self.plan.number, self.number) == (0, 0):
            payload = json.dumps([0, format_time(step.clock), False]).encode()
            rows += (Row(b, self.job.awaited.number, CLOCK, payload) for b in range(self.job.awaited.buckets))
        figures = self._figures(costs, silenced, answers, perf_counter() - begun)
        if self.job.corrections is not None:
            figures["unmatched"] = self.reasoner.unmatched_count
        if more := self.reasoner.count_undefined() - undefined:
            figures["undefined"] = more
        rows.append(Row(self.number, OUTPUT_STAGE, STATS, json.dumps(figures).encode()))
        return rows

    def _read_clocks(self, step: BucketInput) -> None:
        """Note how far the buckets of the stage before have come, and what they gave at the end of time."""
        for payload in step.clocks:
            bucket, t, included, *more = json.loads(payload)
            self.frontiers[bucket] = read_time(t), included
            if self.job.corrections is not None:
                self.clock = max(self.clock, read_time(more[0] if more else t))
            elif more:
                self.ends[bucket] = read_time(more[0])
        self.finals += step.finals

    def _ends_now(self, complete: tuple[Time, bool], until: Fraction) -> bool:
        """Return whether the input is complete up to the end of time, and the last answers have not been given."""
        if self.ended_at == until:
            return False
        if self.plan.number == 0:
            return complete == (until, True)
        return list(self.ends.values()).count(until) == self.plan.upstream_buckets

    def _end_time(self, until: Fraction) -> tuple[list[Row], int]:
        """End time on a copy of the reasoner; return the rows of the last answers, and the number of answers."""
        program, query = build_bucket_program(self.job, self.plan, self.number), choose_stage_query(self.plan.stage)
        copy = Reasoner.load(self.reasoner.save(), program, query=query, at=self.plan.at)
        alerts = None if self.alerts is None else AlertState.from_json(self.alerts.to_json())
        payloads = [*self.finals, *split_at_end(self.waiting, until)[0]] if self.plan.number else []
        self.ended_at, self.finals = until, []
        rows: list[Row] = []
        answers = 0
        for step in end_copy(copy, until, payloads):
            rows += self._route_answers(step, copy, FINAL)
            answers += len(step.answers) if self.plan.is_last and not (self.number and query in self.plan.copied) else 0
            if alerts and not (self.number and query in self.plan.copied):
                answers += self._add_last_alerts(rows, alerts, step, until) - len(step.answers)
        return rows, answers

    def _add_last_alerts(self, rows: list[Row], alerts: AlertState, step: StreamStep, until: Fraction) -> int:
        """Add the alerts of the last answers to the rows; return their number."""
        found = compute_last_alerts(alerts, step.answers, until)
        if found:
            rows.append(Row(self.number, OUTPUT_STAGE, ANSWER, pack_alerts(found, self.reasoner.dates)))
        return len(found)

    def save(self) -> bytes:
        """Return the whole state as bytes."""
        meta = {
            "stage": self.plan.number,
            "bucket": self.number,
            "layout": self.job.layout,
            "t": format_time(self.clock),
            "frontiers": [[i, format_time(t), included] for i, (t, included) in self.frontiers.items()],
            "waiting": len(self.waiting),
            "alerts": self.alerts and self.alerts.to_json(),
            "ended_at": None if self.ended_at is None else format_time(self.ended_at),
            "ends": [[i, format_time(t)] for i, t in self.ends.items()],
            "finals": len(self.finals),
        }
        passed: list[bytes] = []
        if self.passed is not None:
            meta["passed"], passed = self.passed.save()
        arrays = {f"waiting.{i}": np.frombuffer(payload, np.uint8) for i, payload in enumerate(self.waiting)}
        arrays |= {f"final.{i}": np.frombuffer(payload, np.uint8) for i, payload in enumerate(self.finals)}
        arrays |= {f"passed.{i}": np.frombuffer(payload, np.uint8) for i, payload in enumerate(passed)}
        return pack(meta, {"reasoner": np.frombuffer(self.reasoner.save(), np.uint8), **arrays})

    @staticmethod
    def load(job: JobPlan, plan: StagePlan, state: bytes, *, changed: bool = False) -> Bucket:
        """Load a saved bucket; if `changed`, with the rules it was saved with, until `adopt_rules`."""
        meta, arrays = unpack(state, "the state of a bucket")
        require_same_layout(meta["layout"], job.layout)
        saved = arrays["reasoner"].tobytes()
        program, query = build_bucket_program(job, plan, meta["bucket"]), choose_stage_query(plan.stage)
        has_old_rules = changed and has_other_rules(saved, program, query)
        if has_old_rules:
            reasoner = Reasoner.load(saved, at=plan.at)
        else:
            reasoner = Reasoner.load(saved, program, query=query, at=plan.at)
        frontiers = {i: (read_time(t), included) for i, t, included in meta["frontiers"]}
        waiting = [arrays[f"waiting.{i}"].tobytes() for i in range(meta["waiting"])]
        alerts = restore_alert_state(reasoner, meta, False) if meta.get("alerts") else None
        bucket = Bucket(
            job, plan, meta["bucket"], reasoner, frontiers, waiting, read_time(meta["t"]), has_old_rules, alerts=alerts
        )
        if meta.get("ended_at") is not None:
            bucket.ended_at = read_time(meta["ended_at"])
        bucket.ends = {i: read_time(t) for i, t in meta.get("ends", ())}
        if "passed" in meta:
            blocks = [arrays[f"passed.{i}"].tobytes() for i in (0, 1)]
            bucket.passed = PassedFacts.load(reasoner, meta["passed"], blocks)
        bucket.finals = [arrays[f"final.{i}"].tobytes() for i in range(meta.get("finals", 0))]
        return bucket

    def adopt_rules(self, background: Dataset) -> bool:
        """Adopt the rules of the job if this bucket still has old ones; return whether it had."""
        if not self.has_old_rules:
            return False
        self.reasoner = Reasoner.load(
            self.reasoner.save(),
            build_bucket_program(self.job, self.plan, self.number),
            query=choose_stage_query(self.plan.stage),
            changed=True,
            background=select_background(self.plan, self.number, background),
            at=self.plan.at,
        )
        if self.alerts:
            self.alerts = restore_alert_state(self.reasoner, {"alerts": self.alerts.to_json()}, True)
        self.has_old_rules, self.notes = False, self.reasoner.notes
        return True

    def _complete_time(self, clock: Time, until: Time | None) -> tuple[Time, bool]:
        """Return the time up to which the input of the reasoner is complete, and whether that time is included.

        It never passes the end of time, so that a later run can continue from there.
        """
        end = (INF, True) if until is None else (until, True)
        if self.plan.number == 0:
            return min(end, (clock if isinstance(clock, float) else clock - self.job.longest_delay, False))
        if len(self.frontiers) < self.plan.upstream_buckets:
            return -INF, False
        return min(end, *self.frontiers.values())

    def _push(self, t: Fraction, included: bool, payloads: list[bytes], until: Time | None) -> StreamStep:
        """Push facts up to t. Later blocks wait: nothing follows from them yet, and packed they are smaller."""
        if self.reasoner.evaluation.calendar.active:
            # The driver has checked it; a bucket without facts, or behind one, cannot know.
            self.reasoner.note_dates(True)
        facts: list[FactBlock] = []
        self.waiting, payloads = [], self.waiting + payloads
        if until is not None and not isinstance(until, float):
            payloads, self.waiting = split_at_end(payloads, until)
        for payload in payloads:
            head = wire_format.read_header(payload)
            ahead = (head.least >> 1) - t * head.denominator
            if head.predicate != TIMES and (ahead > 0 or (ahead == 0 and not included)):
                self.waiting.append(payload)
            else:
                facts.append(wire_format.unpack(payload))
        if self.plan.at is None:
            return self.reasoner.take_step(t, wire_format.to_dataset(facts), closed=included)
        told = [piece for piece in facts if piece.predicate == TIMES]
        times = {Fraction(int(lo) >> 1, piece.denominator) for piece in told for lo in piece.lo}
        if times and self.reasoner.last_step.time == -INF:
            self.reasoner.start_output_times(min(times))
        data = wire_format.to_dataset(piece for piece in facts if piece.predicate != TIMES)
        return self.reasoner.take_step(t, data, closed=included, times=times)

    def _derived_rows(self, result: StreamStep) -> Iterator[Row]:
        """Yield the derived facts: answers for the user, and facts for the stages that read them."""
        if isinstance(result, ChangeStep):
            yield from self._changed_rows(result)
            return
        yield from self._alert_rows(result)
        yield from self._route_answers(result, self.reasoner, FACTS)

    def _route_answers(self, result: StreamStep, reasoner: Reasoner, kind: str) -> Iterator[Row]:
        """Yield the answers of a step as rows for the user, and as rows of this kind for later stages."""
        rows, grid, symbols = result.answers.block()
        for predicate, block in split_by_predicate(self.plan, rows, symbols) if len(rows) else ():
            if self.number and predicate in self.plan.copied:
                continue
            relation = relation_of(predicate, block, grid)
            if predicate == self.job.query and self.plan.is_last and self.alerts is None:
                payload = wire_format.pack(symbols, grid.denominator, reasoner.dates, relation)
                yield Row(self.number, OUTPUT_STAGE, ANSWER, payload)
            for row in route_facts(symbols, grid.denominator, False, relation, self.plan.routes[predicate]):
                yield row._replace(kind=kind)

    def _changed_rows(self, result: ChangeStep) -> Iterator[Row]:
        """Yield the changes of answers for the user, and those of the facts that later stages read."""
        dates, known = self.reasoner.dates, self.clock
        if self.passed is not None:
            change = self.passed.update(self.reasoner, result)
            for rows, name in ((change.removed, name_deletions), (change.added, str)):
                for predicate, block in split_by_predicate(self.plan, rows, change.symbols) if len(rows) else ():
                    if not (self.number and predicate in self.plan.copied):
                        relation = relation_of(name(predicate), block, change.grid)
                        routes = self.plan.routes[predicate]
                        yield from route_facts(change.symbols, change.grid.denominator, False, relation, routes)
        elif not (self.number and self.job.query in self.plan.copied):
            payloads = pack_changes(self.job.query, result.answers, dates, known)
            if self.alerts is not None:
                found = compute_alerts(self.reasoner, self.alerts, result.answers)
                self.alert_count = len(found)
                payloads = pack_alert_changes(found, dates, known)
            yield from (Row(self.number, OUTPUT_STAGE, ANSWER, payload) for payload in payloads)

    def _alert_rows(self, result: StreamStep) -> Iterator[Row]:
        """Yield the alerts of a step."""
        if self.alerts is None or (self.number and self.job.query in self.plan.copied):
            return
        found = compute_alerts(self.reasoner, self.alerts, result.answers)
        self.alert_count = len(found)
        if found:
            yield Row(self.number, OUTPUT_STAGE, ANSWER, pack_alerts(found, self.reasoner.dates))

    def _clock_rows(self) -> Iterator[Row]:
        """Tell every bucket of the next stage up to which time this one is complete."""
        t, included = self.reasoner.complete_until if self.passed is None else self.passed.bound
        more = [] if self.ended_at is None else [format_time(self.ended_at)]
        if self.passed is not None:
            more = [format_time(self.clock)]
        payload = json.dumps([self.number, format_time(t), included, *more]).encode()
        following = self.plan.number + 1
        for bucket in range(self.job.stages[following].buckets):
            yield Row(bucket, following, CLOCK, payload)

    def _rule_costs(self, work: Int64s, seconds: float) -> dict[int, list[float]]:
        """Return for each rule the work that it has done, and its share of the engine's time."""
        total = int(work.sum())
        # Rules that were added to the user's come after the rules of the stage.
        shares = zip(self.plan.stage.rules, work.tolist(), strict=False)
        return {number: [done, round(seconds * done / total, 9)] for number, done in shares if done}

    def _figures(
        self, costs: dict[int, list[float]], silenced: int, last_answers: int, seconds: float
    ) -> dict[str, Any]:
        """Return the figures of a step."""
        step = self.reasoner.last_step
        figures: dict[str, Any] = {
            "stage": self.plan.number,
            "bucket": self.number,
            "t": format_time(step.time),
            "held": self.reasoner.count_held_atoms(),
            "window_facts": step.window_facts,
            "history_atoms": step.history_atoms,
            "answers": len(step.answers) if self.plan.is_last else 0,
            "rules": costs,
            "seconds": round(seconds, 6),
        }
        if self.alerts is not None:
            figures |= {"answers": self.alert_count, "silenced": self.alerts.silenced - silenced}
        figures["answers"] += last_answers
        if self.notes:
            figures["notes"], self.notes = self.notes, ()
        if self.restored:
            figures["restored_bytes"], figures["restored_seconds"] = self.restored[0], round(self.restored[1], 6)
            self.restored = None
        return figures
