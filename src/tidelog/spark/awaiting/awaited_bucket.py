"""One bucket of hypothetical answers: a session that takes packed rows and returns the changes of its answers.

Facts arrive before their own time here, since the clock of a job follows its facts. If the clock is c, facts with time
t and delay d may arrive while c <= t + d. On the integers that is while tau < t + d with tau = ceil(c) - 1, which is
the paper's condition at time point tau: the last one that the clock has passed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import groupby, pairwise
from math import ceil
from operator import itemgetter

import numpy as np

from tidelog.data import wire_format
from tidelog.data.dataset import Dataset
from tidelog.data.symbol_kernels import NAME_KIND
from tidelog.data.wire_format import FactBlock
from tidelog.errors import Diagnostic, TidelogError
from tidelog.hypothetical.answer_changes import ANSWERED, AWAITED, AnswerChange, ChangeTracker
from tidelog.hypothetical.ground_facts import GroundFact, Scalar, to_scalar
from tidelog.hypothetical.session import Hypotheses
from tidelog.hypothetical.session_options import HypothesisOptions
from tidelog.hypothetical.supported_answers import SupportedAnswer
from tidelog.language.program import Program
from tidelog.spark.awaiting import change_rows
from tidelog.spark.plan.job_plan import AwaitedStagePlan, JobPlan
from tidelog.spark.worker.bucket import BucketInput
from tidelog.spark.worker.packed_rows import AWAITED as AWAITED_ROW
from tidelog.spark.worker.packed_rows import OUTPUT_STAGE, Row
from tidelog.streaming.state_format import pack, unpack
from tidelog.timeline.interval import INF, Time, format_time, read_time


@dataclass
class AwaitedBucket:
    """A session, the clock at the last step, and the number of steps with changes."""

    plan: AwaitedStagePlan
    number: int
    changes: ChangeTracker
    clock: Time = -INF
    steps: int = 0
    restored: tuple[int, float] | None = None

    @staticmethod
    def new(job: JobPlan, plan: AwaitedStagePlan, number: int, background: Dataset) -> AwaitedBucket:
        """Create an empty bucket; the background facts that it needs are in its plan."""
        return AwaitedBucket(plan, number, ChangeTracker(create_session(job.program, plan)))

    @staticmethod
    def load(job: JobPlan, plan: AwaitedStagePlan, state: bytes, *, changed: bool = False) -> AwaitedBucket:
        meta, arrays = unpack(state, "the state of a bucket")
        if meta["buckets"] != plan.buckets:
            raise TidelogError(
                Diagnostic(
                    "TL403",
                    f"the state was saved with {meta['buckets']} buckets, but the job has {plan.buckets}",
                    law="facts stay in the bucket that they were sent to",
                    help=f"run the job with buckets={meta['buckets']}, or start without the state",
                )
            )
        session = create_session(job.program, plan).resume(arrays["session"].tobytes())
        return AwaitedBucket(plan, meta["bucket"], ChangeTracker(session), read_time(meta["t"]), meta["steps"])

    def adopt_rules(self, background: Dataset) -> bool:
        """Do nothing: jobs with hypothetical answers refuse changed rules."""
        return False

    def step(self, step: BucketInput) -> list[Row]:
        """Take one step, and return the changes as rows."""
        before = self.clock
        self.clock = max([self.clock, *(read_time(json.loads(payload)[1]) for payload in step.clocks)])
        if not step.facts and self.clock == before:
            return []
        facts = sorted((fact for payload in step.facts for fact in unpack_ground_facts(payload)), key=_sort_key)
        return self._change_rows(self.changes.push(self._tau(), facts))

    def process_history(self, facts: Sequence[bytes], until: Time) -> list[Row]:
        """Take in all past facts in the order of their times, until the clock is at `until`.

        Return rows with the answers, and with the hypothetical answers at that time.
        """
        session = self.changes.session
        session.stop_journal()
        answers: list[SupportedAnswer] = []
        ordered = sorted((fact for payload in facts for fact in unpack_ground_facts(payload)), key=_sort_key)
        for time, coming in groupby(ordered, key=itemgetter(2)):
            answers += session.push(max(time - 1, session.tau), coming)
            until = max(until, Fraction(time))
        self.clock = until
        answers += session.advance(self._tau())
        found = [AnswerChange(ANSWERED, entry) for entry in answers]
        found += [AnswerChange(AWAITED, entry) for entry in session.hypothetical()]
        self.changes = ChangeTracker(session)
        return self._change_rows(found)

    def save(self) -> bytes:
        """Return the whole state as bytes."""
        meta = {
            "stage": self.plan.number,
            "bucket": self.number,
            "buckets": self.plan.buckets,
            "t": format_time(self.clock),
            "steps": self.steps,
        }
        return pack(meta, {"session": np.frombuffer(self.changes.session.save_progress(), np.uint8)})

    def _tau(self) -> int:
        """Return the last time point that the clock has passed."""
        return self.changes.session.tau if isinstance(self.clock, float) else max(ceil(self.clock) - 1, -1)

    def _change_rows(self, changes: Sequence[AnswerChange]) -> list[Row]:
        if not changes:
            return []
        self.steps += 1
        return [Row(self.number, OUTPUT_STAGE, AWAITED_ROW, change_rows.pack_changes(changes, self.clock, self.steps))]


def create_session(program: Program, plan: AwaitedStagePlan) -> Hypotheses:
    """Create an empty session; raise everything that is unsupported."""
    return Hypotheses(
        program,
        plan.query,
        delay=plan.delays,
        timeline=plan.timeline,
        background=wire_format.to_dataset(map(wire_format.unpack, plan.background)),
        options=HypothesisOptions(
            early=True,
            show=lambda atom: change_rows.format_awaited_atom(atom, plan.dates),
            **asdict(plan.options),
        ),
    )


def unpack_ground_facts(payload: bytes) -> Iterator[GroundFact]:
    """Unpack the facts of a block into the form that sessions take."""
    piece = wire_format.unpack(payload)
    times, rest = np.divmod(piece.lo, 2 * piece.denominator)
    if rest.any() or (piece.lo != piece.hi).any():
        raise TidelogError(
            Diagnostic(
                "TL704",
                f"facts of {piece.predicate} are not all at single time points",
                law="hypothetical answers need facts at the time points 0, 1, 2, ...: whole numbers, or whole seconds",
            )
        )
    constants = list(_constants(piece))
    columns = [[constants[i] for i in ids] for ids in piece.args.tolist()]
    every = zip(*columns, strict=True) if columns else iter([()] * len(piece))
    for args, time in zip(every, times.tolist(), strict=True):
        yield piece.predicate, args, time


def _constants(piece: FactBlock) -> Iterator[Scalar]:
    pool, offsets = piece.pool.tobytes(), piece.offsets.tolist()
    for start, end in pairwise(offsets):
        text = pool[start + 1 : end].decode()
        yield text if pool[start] == NAME_KIND else to_scalar(Fraction(text))


def _sort_key(fact: GroundFact) -> tuple[int, str, tuple[str, ...]]:
    """Order facts by time; then by anything that does not depend on the order in which they arrived."""
    predicate, args, time = fact
    return time, predicate, tuple(map(str, args))
