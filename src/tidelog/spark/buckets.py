"""One bucket of one stage: an engine that takes packed rows, step by step, and gives packed rows.

There is no Spark here. A bucket's state is a base, which is a saved reasoner with what waits beside it, and the inputs
of the steps since: a step is a function of state and input, so that replaying them on the base gives the state back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from time import perf_counter

import numpy as np

from tidelog.analysis.stage_programs import OUT as GIVEN
from tidelog.analysis.stage_programs import stage_program, stage_query
from tidelog.data import pieces
from tidelog.data.columns import Columns
from tidelog.data.dataset import Dataset
from tidelog.data.pieces import Piece
from tidelog.data.symbols import Symbols
from tidelog.engine.store import Int64s, Rows
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import Program
from tidelog.language.syntax import Atom, Literal, Rule, Value, Variable
from tidelog.model import relation_of
from tidelog.reasoning import on_timeline, timeline_of
from tidelog.spark.alerts import packed as packed_alerts
from tidelog.spark.plan import TIMES, Job, Part, other_layout
from tidelog.spark.rows import ANSWER, CLOCK, LATE, OUT, STATS, Row, addressed, framed, frames
from tidelog.spark.slices import chosen
from tidelog.streaming.alerts import AlertState
from tidelog.streaming.answers import Step as Taken
from tidelog.streaming.reasoner import Reasoner
from tidelog.streaming.snapshot import differs
from tidelog.streaming.state import pack, unpack
from tidelog.streaming.watch import alerts_of, restored
from tidelog.timeline.interval import INF, Time, format_time, read_time


@dataclass(frozen=True)
class Step:
    """What a bucket is given: the clock of the input, and the payloads of the rows meant for it."""

    clock: Time
    facts: Sequence[bytes] = ()
    #: What the buckets of the stage before say of their clocks.
    clocks: Sequence[bytes] = ()

    def to_bytes(self) -> bytes:
        parts = [json.dumps([format_time(self.clock), len(self.facts)]).encode(), *self.facts, *self.clocks]
        return framed(parts)

    @staticmethod
    def from_bytes(data: bytes) -> Step:
        parts = list(frames(data))
        clock, facts = json.loads(parts[0])
        return Step(read_time(clock), parts[1 : 1 + facts], parts[1 + facts :])


@dataclass
class Bucket:
    """The engine of a bucket; facts wait until the time is known, which it is not in the first batch."""

    job: Job
    part: Part
    number: int
    reasoner: Reasoner
    #: Up to when each bucket of the stage before has given all, and whether that time is included.
    frontiers: dict[int, tuple[Time, bool]] = field(default_factory=dict)
    waiting: list[bytes] = field(default_factory=list)
    #: The clock of the input, as it was last told.
    told: Time = -INF
    #: Whether its rules are still those of the state that it was loaded from, and not the job's.
    behind: bool = False
    #: What changed rules could not keep, until it is told.
    notes: tuple[str, ...] = ()
    #: What is remembered for the sake of alerts, in a bucket that gives answers; and how many the last step gave.
    alerts: AlertState | None = None
    rang: int = 0
    #: The bytes of state that this engine was made from, and the seconds that took, where its next step has to tell.
    restored: tuple[int, float] | None = None

    @staticmethod
    def new(job: Job, part: Part, number: int, background: Dataset) -> Bucket:
        """A bucket that knows its share of the background, and nothing else."""
        reasoner = Reasoner(
            program_of(job, part, number),
            stage_query(part.stage),
            timeline=part.timeline,
            background=share(part, number, background),
            memory=part.memory,
            at=part.at,
            parts=not part.last,
        )
        alerts = AlertState(job.alerts, job.query) if job.alerts and part.answers(job.query) else None
        return Bucket(job, part, number, reasoner, alerts=alerts)

    def step(self, step: Step) -> list[Row]:
        """Takes a step in; gives what leaves the bucket by it."""
        begun, work = perf_counter(), self.reasoner.work()
        self.told = step.clock
        self.rang, silenced = 0, self.alerts.silenced if self.alerts else 0
        facts = list(step.facts)
        rows: list[Row] = []
        if self.part.number == 0:
            facts, rows = timely(self.job, 0, self.number, facts, step.clock)
        for payload in step.clocks:
            bucket, t, included = json.loads(payload)
            self.frontiers[bucket] = read_time(t), included
        t, included = self._clock(step.clock)
        costs: dict[int, list[float]] = {}
        if isinstance(t, float):
            self.waiting += facts
        else:
            taken = self._take(t, included, facts)
            costs = self._costs(self.reasoner.work() - work, taken.seconds)
            rows += self._leaving(taken)
        if not self.part.last:
            rows += self._told()
        if self.job.awaited and (self.part.number, self.number) == (0, 0):
            payload = json.dumps([0, format_time(step.clock), False]).encode()
            rows += (Row(b, self.job.awaited.number, CLOCK, payload) for b in range(self.job.awaited.buckets))
        rows.append(self._stats(costs, silenced, perf_counter() - begun))
        return rows

    def save(self) -> bytes:
        """The whole state."""
        meta = {
            "stage": self.part.number,
            "bucket": self.number,
            "layout": self.job.layout,
            "t": format_time(self.told),
            "frontiers": [[i, format_time(t), included] for i, (t, included) in self.frontiers.items()],
            "waiting": len(self.waiting),
            "alerts": self.alerts and self.alerts.to_json(),
        }
        arrays = {f"waiting.{i}": np.frombuffer(payload, np.uint8) for i, payload in enumerate(self.waiting)}
        return pack(meta, {"reasoner": np.frombuffer(self.reasoner.save(), np.uint8), **arrays})

    @staticmethod
    def load(job: Job, part: Part, state: bytes, *, changed: bool = False) -> Bucket:
        """The bucket that was saved; with `changed`, on the rules that it was saved with, until `change`."""
        meta, arrays = unpack(state, "the state of a bucket")
        other = other_layout(meta["layout"], job.layout)
        if other is not None:
            raise TidelogError(
                Diagnostic(
                    "TL403",
                    f"the state was saved by a job that was split in another way: {other}",
                    law="facts stay in the bucket that they were sent to, and what a stage told the next stays told",
                    help="run the job with the rules and the number of buckets that it had, or start without the state",
                )
            )
        saved = arrays["reasoner"].tobytes()
        program, query = program_of(job, part, meta["bucket"]), stage_query(part.stage)
        behind = changed and differs(saved, program, query)
        if behind:
            reasoner = Reasoner.load(saved, at=part.at)
        else:
            reasoner = Reasoner.load(saved, program, query=query, at=part.at)
        frontiers = {i: (read_time(t), included) for i, t, included in meta["frontiers"]}
        waiting = [arrays[f"waiting.{i}"].tobytes() for i in range(meta["waiting"])]
        alerts = restored(reasoner, meta, False) if meta.get("alerts") else None
        return Bucket(
            job, part, meta["bucket"], reasoner, frontiers, waiting, read_time(meta["t"]), behind, alerts=alerts
        )

    def change(self, background: Dataset) -> bool:
        """Goes over to the rules of the job, if it is behind them; whether it was."""
        if not self.behind:
            return False
        self.reasoner = Reasoner.load(
            self.reasoner.save(),
            program_of(self.job, self.part, self.number),
            query=stage_query(self.part.stage),
            changed=True,
            background=share(self.part, self.number, background),
            at=self.part.at,
        )
        if self.alerts:
            self.alerts = restored(self.reasoner, {"alerts": self.alerts.to_json()}, True)
        self.behind, self.notes = False, self.reasoner.notes
        return True

    def _clock(self, clock: Time) -> tuple[Time, bool]:
        """Up to when all that the reasoner reads has come, and whether that time is included."""
        if self.part.number == 0:
            return clock if isinstance(clock, float) else clock - self.job.longest_delay, False
        if len(self.frontiers) < self.part.before:
            return -INF, False
        return min(self.frontiers.values())

    def _take(self, t: Fraction, included: bool, payloads: list[bytes]) -> Taken:
        """Hands over what has come, but for pieces whose time has not: nothing follows from them up to t, and as they
        came they are smaller than in an engine."""
        facts: list[Piece] = []
        self.waiting, payloads = [], self.waiting + payloads
        for payload in payloads:
            head = pieces.head(payload)
            ahead = (head.least >> 1) - t * head.denominator
            if head.predicate != TIMES and (ahead > 0 or (ahead == 0 and not included)):
                self.waiting.append(payload)
            else:
                facts.append(pieces.unpacked(payload))
        if self.part.at is None:
            return self.reasoner.take(t, pieces.dataset(facts), closed=included)
        told = [piece for piece in facts if piece.predicate == TIMES]
        times = {Fraction(int(lo) >> 1, piece.denominator) for piece in told for lo in piece.lo}
        if times and self.reasoner.stats.t == -INF:
            self.reasoner.begin(min(times))
        data = pieces.dataset(piece for piece in facts if piece.predicate != TIMES)
        return self.reasoner.take(t, data, closed=included, times=times)

    def _leaving(self, taken: Taken) -> Iterator[Row]:
        """Answers on their way to the user, or to the stages that read them."""
        yield from self._alerts(taken)
        rows, grid, symbols = taken.answers.block()
        for predicate, part in given_rows(self.part, rows, symbols) if len(rows) else ():
            if self.number and predicate in self.part.copied:
                continue
            relation = relation_of(predicate, part, grid)
            if predicate == self.job.query and self.part.last and self.alerts is None:
                payload = pieces.packed(symbols, grid.denominator, self.reasoner.dates, relation)
                yield Row(self.number, OUT, ANSWER, payload)
            yield from addressed(symbols, grid.denominator, False, relation, self.part.routes[predicate])

    def _alerts(self, taken: Taken) -> Iterator[Row]:
        """What is told of the answers of a step."""
        if self.alerts is None or (self.number and self.job.query in self.part.copied):
            return
        found = alerts_of(self.reasoner, self.alerts, taken.answers)
        self.rang = len(found)
        if found:
            yield Row(self.number, OUT, ANSWER, packed_alerts(found, self.reasoner.dates))

    def _told(self) -> Iterator[Row]:
        """Tells every bucket of the next stage up to when this one has given all."""
        t, included = self.reasoner.complete
        payload = json.dumps([self.number, format_time(t), included]).encode()
        following = self.part.number + 1
        for bucket in range(self.job.parts[following].buckets):
            yield Row(bucket, following, CLOCK, payload)

    def _costs(self, work: Int64s, seconds: float) -> dict[int, list[float]]:
        """Of every rule of the program at work: what it has done, and its share of the engine's time."""
        total = int(work.sum())
        # What is not the user's comes after the rules of the stage.
        shares = zip(self.part.stage.rules, work.tolist(), strict=False)
        return {number: [done, round(seconds * done / total, 9)] for number, done in shares if done}

    def _stats(self, costs: dict[int, list[float]], silenced: int, seconds: float) -> Row:
        step = self.reasoner.stats
        figures = {
            "stage": self.part.number,
            "bucket": self.number,
            "t": format_time(step.t),
            "held": self.reasoner.held(),
            "window_facts": step.window_facts,
            "history_atoms": step.history_atoms,
            "answers": len(step.answers) if self.part.last else 0,
            "rules": costs,
            "seconds": round(seconds, 6),
        }
        if self.alerts is not None:
            figures |= {"answers": self.rang, "silenced": self.alerts.silenced - silenced}
        if self.notes:
            figures["notes"], self.notes = self.notes, ()
        if self.restored:
            figures["restored_bytes"], figures["restored_seconds"] = self.restored[0], round(self.restored[1], 6)
            self.restored = None
        return Row(self.number, OUT, STATS, json.dumps(figures).encode())


def program_of(job: Job, part: Part, bucket: int) -> Program:
    """The rules of a stage as one of its buckets evaluates them."""

    def mine(value: Value) -> bool:
        symbols = Symbols()
        symbols.intern(value)
        return bool(pieces.buckets_of(symbols, part.buckets)[0] == bucket)

    program = stage_program(job.program, part.stage, mine)
    query = stage_query(part.stage)
    if query in program.predicates:
        return program
    # Nothing derives what is asked for, so the answers are the facts themselves.
    atom = Atom(query, tuple(Variable(f"X{i}") for i in range(job.program.predicates[query])))
    return replace(program, rules=(*program.rules, Rule(atom, (Literal(atom),))))


def given_rows(part: Part, rows: Rows, symbols: Symbols) -> Iterator[tuple[str, Rows]]:
    """What a stage gives, by predicate."""
    query = stage_query(part.stage)
    if query != GIVEN:
        yield query, rows
        return
    for tag in np.unique(rows.args[0]) if len(rows) else ():
        predicate, _, arity = str(symbols.value(int(tag))).rpartition("/")
        chosen = rows.where(rows.args[0] == tag)
        yield predicate, Rows(chosen.args[1 : 1 + int(arity)], chosen.lo, chosen.hi)


def share(part: Part, bucket: int, background: Dataset) -> Dataset:
    """What a bucket has to know of the background: its share of what is hashed, and all that is copied."""
    found = {}
    for name in part.stage.inputs:
        for (predicate, arity), relation in background.relations.items():
            if predicate != part.stage.aliases.get(name, name):
                continue
            position = part.stage.key[name]
            named = replace(relation, predicate=name)
            if position is not None and part.buckets > 1 and len(relation):
                mine = pieces.buckets_of(background.symbols, part.buckets)[relation.args[position]] == bucket
                named = pieces.part_of(named, mine)
            found[name, arity] = named
    return Dataset(background.symbols, Columns(background.denominator, background.dates, found))


def timely(job: Job, stage: int, bucket: int, facts: Sequence[bytes], clock: Time) -> tuple[list[bytes], list[Row]]:
    """The facts for a bucket that are not later than their delay allows, and rows for those that are, each once, and
    for their number."""
    if isinstance(clock, float):
        return list(facts), []
    dense = timeline_of(job.program, job.parts[0].timeline) == "rational"
    kept: list[bytes] = []
    rows: list[Row] = []
    for payload in facts:
        head = pieces.head(payload)
        since = clock - job.delay(head.predicate)
        bound = ceil(2 * since * head.denominator) if dense else ceil(since)
        if head.least >= (bound if dense else 2 * bound):
            kept.append(payload)
            continue
        piece = pieces.unpacked(payload)
        lo, _ = on_timeline(piece.lo, piece.hi, dense)
        late = lo < bound
        if not late.any():
            kept.append(payload)
            continue
        if not late.all():
            kept.append(chosen(piece, ~late))
        if piece.predicate == TIMES:
            continue
        first = job.routes[job.sources[piece.predicate]][0]
        if (first.stage, first.name) == (stage, piece.predicate) and (first.key is not None or not bucket):
            rows.append(Row(bucket, OUT, LATE, chosen(piece, late)))
            rows.append(Row(bucket, OUT, STATS, json.dumps({"late": int(late.sum())}).encode()))
    return kept, rows
