"""One bucket of what is awaited: a session of hypothetical answers that takes packed rows and gives what changes.

Facts come before their own time here, since the clock of a job follows its facts. Where the clock is c, facts of time t
and delay d may come while c <= t + d; on the integers that is while tau < t + d with tau = ceil(c) - 1, which is the
paper's condition at time point tau: the last one that the clock has passed.
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

from tidelog.data import pieces
from tidelog.data.dataset import Dataset
from tidelog.data.pieces import Piece
from tidelog.data.symbols import NAME_KIND
from tidelog.errors import Diagnostic, TidelogError
from tidelog.hypothetical.changes import ANSWERED, AWAITED, Change, Changes, entry_id
from tidelog.hypothetical.compiled import GroundFact, Inside, inside
from tidelog.hypothetical.entries import SupportedAnswer
from tidelog.hypothetical.online import Hypotheses
from tidelog.language.program import Program
from tidelog.spark import awaited_rows
from tidelog.spark.buckets import Step
from tidelog.spark.plan import AwaitedPart, Job
from tidelog.spark.rows import AWAITED as AWAITED_ROW
from tidelog.spark.rows import OUT, Row
from tidelog.streaming.state import pack, unpack
from tidelog.timeline.interval import INF, Time, format_time, read_time


@dataclass
class AwaitedBucket:
    """A session, the clock as it was last told, and how often something has changed."""

    part: AwaitedPart
    number: int
    changes: Changes
    told: Time = -INF
    steps: int = 0
    restored: tuple[int, float] | None = None

    @staticmethod
    def new(job: Job, part: AwaitedPart, number: int, background: Dataset) -> AwaitedBucket:
        """A bucket to which nothing has come; what it has to know of the background is in its part."""
        return AwaitedBucket(part, number, Changes(session_of(job.program, part)))

    @staticmethod
    def load(job: Job, part: AwaitedPart, state: bytes, *, changed: bool = False) -> AwaitedBucket:
        meta, arrays = unpack(state, "the state of a bucket")
        if meta["buckets"] != part.buckets:
            raise TidelogError(
                Diagnostic(
                    "TL403",
                    f"the state was saved with {meta['buckets']} buckets, but the job has {part.buckets}",
                    law="facts stay in the bucket that they were sent to",
                    help=f"run the job with buckets={meta['buckets']}, or start without the state",
                )
            )
        session = session_of(job.program, part).load(arrays["session"].tobytes())
        return AwaitedBucket(part, meta["bucket"], Changes(session), read_time(meta["t"]), meta["steps"])

    def change(self, background: Dataset) -> bool:
        """Its rules never change: a job that says what is awaited refuses that."""
        return False

    def step(self, step: Step) -> list[Row]:
        """Takes a step in; gives what changes by it."""
        before = self.told
        self.told = max([self.told, *(read_time(json.loads(payload)[1]) for payload in step.clocks)])
        if not step.facts and self.told == before:
            return []
        facts = sorted((fact for payload in step.facts for fact in ground_facts(payload)), key=_order)
        return self._leaving(self.changes.push(self._tau(), facts))

    def pass_over(self, facts: Sequence[bytes], until: Time) -> list[Row]:
        """Takes in all that has passed, in the order of its times, until the clock is at `until`; gives the answers,
        and what is awaited then."""
        session = self.changes.session
        given: list[SupportedAnswer] = []
        ordered = sorted((fact for payload in facts for fact in ground_facts(payload)), key=_order)
        for time, coming in groupby(ordered, key=itemgetter(2)):
            given += session.push(max(time - 1, session.tau), coming)
            until = max(until, Fraction(time))
        self.told = until
        given += session.advance(self._tau())
        found = [Change(ANSWERED, entry_id(entry), entry) for entry in given]
        found += [Change(AWAITED, entry_id(entry), entry) for entry in session.hypothetical()]
        self.changes = Changes(session)
        return self._leaving(found)

    def save(self) -> bytes:
        """The whole state."""
        meta = {
            "stage": self.part.number,
            "bucket": self.number,
            "buckets": self.part.buckets,
            "t": format_time(self.told),
            "steps": self.steps,
        }
        return pack(meta, {"session": np.frombuffer(self.changes.session.save(), np.uint8)})

    def _tau(self) -> int:
        """The last time point that the clock has passed."""
        return self.changes.session.tau if isinstance(self.told, float) else max(ceil(self.told) - 1, -1)

    def _leaving(self, changes: Sequence[Change]) -> list[Row]:
        if not changes:
            return []
        self.steps += 1
        return [Row(self.number, OUT, AWAITED_ROW, awaited_rows.packed(changes, self.told, self.steps))]


def session_of(program: Program, part: AwaitedPart) -> Hypotheses:
    """A session with nothing in it; raises for everything that stands in its way."""
    return Hypotheses(
        program,
        part.query,
        delay=part.delays,
        timeline=part.timeline,
        background=pieces.dataset(map(pieces.unpacked, part.background)),
        early=True,
        show=lambda atom: awaited_rows.shown(atom, part.dates),
        **asdict(part.asked),
    )


def ground_facts(payload: bytes) -> Iterator[GroundFact]:
    """The facts of a piece, as sessions take them."""
    piece = pieces.unpacked(payload)
    times, rest = np.divmod(piece.lo, 2 * piece.denominator)
    if rest.any() or (piece.lo != piece.hi).any():
        raise TidelogError(
            Diagnostic(
                "TL704",
                f"facts of {piece.predicate} are not all at single time points",
                law="what is awaited are facts at the time points 0, 1, 2, ...: whole numbers, or whole seconds",
            )
        )
    constants = list(_constants(piece))
    columns = [[constants[i] for i in ids] for ids in piece.args.tolist()]
    every = zip(*columns, strict=True) if columns else iter([()] * len(piece))
    for args, time in zip(every, times.tolist(), strict=True):
        yield piece.predicate, args, time


def _constants(piece: Piece) -> Iterator[Inside]:
    pool, offsets = piece.pool.tobytes(), piece.offsets.tolist()
    for start, end in pairwise(offsets):
        text = pool[start + 1 : end].decode()
        yield text if pool[start] == NAME_KIND else inside(Fraction(text))


def _order(fact: GroundFact) -> tuple[int, str, tuple[str, ...]]:
    """By time first; any other order will do, as long as it does not depend on the way that facts took."""
    predicate, args, time = fact
    return time, predicate, tuple(map(str, args))
