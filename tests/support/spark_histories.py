"""Random histories of insertions and deletions over the buckets of a job, judged by the law of corrections.

After every micro-batch the changes so far, folded, are the answers that a job without corrections gives by the same
clock, if the assertions that stand all come in its first batch. What stands is counted here, from the definition.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import tidelog as tl
from corrected_streams import History, Operation, Standing, describe, draw_history, fold
from examine import parse_case
from spark_by_hand import ByHand
from strategies import Case, Features
from tidelog.data.deletions import name_deletions
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.spark.worker.packed_rows import from_spark_clock


def to_input(operation: Operation) -> Fact:
    """An operation as it arrives: a fact, or the deletion of one."""
    fact = operation.fact
    return replace(fact, predicate=name_deletions(fact.predicate)) if operation.deletes else fact


class JudgedJob:
    """A job with corrections, and what its input makes of the answers by definition."""

    def __init__(self, program: tl.Program, history: History, buckets: int, seed: int, faults: bool) -> None:
        self.program, self.history, self.buckets = program, history, buckets
        self.work = self._start(history.length, seed, faults)
        self.standing = Standing(history.length)
        self.late: list[str] = []
        self.folded: set[Fact] = set()

    def _start(self, corrections: Fraction | None, seed: int = 0, faults: bool = False) -> ByHand:
        return ByHand.start(
            self.program,
            self.history.query,
            self.history.background,
            buckets=self.buckets,
            delay=self.history.delay,
            timeline=self.history.timeline,
            corrections=corrections,
            seed=seed,
            faults=faults,
        )

    def batch(self, operations: list[Operation], until: Fraction | None, where: str) -> Iterator[str]:
        """Run a micro-batch; yield what is wrong with its changes."""
        work, known = self.work, len(self.work.changes)
        clock = from_spark_clock(work.watermark)
        watermark = work.watermark
        for operation in operations:
            if operation.start < clock - self.history.length and operation.fact.predicate in work.job.routes:
                self.late.append(str(operation))
            self.standing.take(operation, clock)
        work.batch(map(to_input, operations), until)
        if isinstance(clock, float):
            return
        yield from fold(self.folded, work.changes[known:], clock, where)
        fresh = self._start(None)
        fresh.batch(self.standing.facts())
        fresh.watermark = watermark
        fresh.batch()
        if self.folded != set(fresh.answers):
            yield describe(f"{where}, clock {clock}", set(fresh.answers), self.folded)
        told = sorted(map(format_fact, work.late))
        if told != sorted(self.late):
            yield f"{where}: late are {told}, and should be {sorted(self.late)}"


def examine_job(case: Case, seed: int) -> tuple[int, str]:
    """Return the number of stages of a random job with corrections, and what is wrong with it, if anything is."""
    history = draw_history(case, seed)
    if history is None:
        return 0, ""
    choices = random.Random(seed)
    program = parse_case(case).program
    try:
        tl.Reasoner(program, history.query, **{**history.options(), "at": None})
    except tl.TidelogError:
        return 0, ""
    job = JudgedJob(program, history, choices.randint(1, 3), seed, choices.random() < 0.5)
    stages = len(job.work.split.stages)
    for number, arrival in enumerate(history.arrivals):
        until = arrival.clock if choices.random() < 0.4 else None
        for problem in job.batch(list(arrival.operations), until, f"batch {number}"):
            return stages, problem
        if choices.random() < 0.3:
            for problem in job.batch([], None, f"after batch {number}"):
                return stages, problem
    for problem in job.batch([], Fraction(100), "at the end"):
        return stages, problem
    for problem in job.batch([], None, "after the end"):
        return stages, problem
    return stages, ""


#: Programs of several stages: facts go by X, what follows from them by Z, and then by R; some rules look ahead.
STAGED = (
    """
    Up(X,Z) :- On(X,Z), not Diamondminus[0,2] Beat(X).
    Bad(Z,R) :- Up(X,Z), At(Z,R), not Diamondplus[0,1] Alarm(Z).
    Region(R) :- Bad(Z,R), Diamondminus[0,3] Watch(R).
    """,
    """
    Busy(X,Z) :- On(X,Z), Diamondminus[0,3] Beat(X).
    Alarm2(Z) :- Busy(X,Z), Diamondminus[0,2] Alarm(Z).
    Region(R) :- Alarm2(Z), At(Z,R).
    Boxplus[0,1] Watch(R) :- Region(R), Beat(R).
    Region(R) :- Boxminus[0,2] Watch(R).
    """,
    """
    Up(X,Z) :- On(X,Z), Beat(X) Since[0,4] Alarm(X).
    Many(Z,N) :- N = count[0,2]{ Up(X,Z) }, N > 1.
    Region(R) :- Many(Z,N), At(Z,R), not Watch(R).
    """,
)
_ARGUMENTS = {"On": ("x", "z"), "Beat": ("x",), "At": ("z", "r"), "Alarm": ("z",), "Watch": ("r",)}


def draw_staged_case(seed: int, *, integer: bool) -> Case:
    """Draw facts for one of the programs of several stages."""
    choices = random.Random(seed)
    facts = []
    for _ in range(choices.randint(3, 14)):
        name = choices.choice(list(_ARGUMENTS))
        # Some names are arguments of all kinds, so that facts of different predicates meet.
        args = tuple(f"{choices.choice((letter, 'x'))}{choices.randint(1, 2)}" for letter in _ARGUMENTS[name])
        start = Fraction(choices.randint(0, 12))
        length = choices.choice((0, 0, 1, 3, 9)) if name in ("On", "At", "Watch") else choices.choice((0, 0, 0, 1))
        closed = (True, True) if integer or not length else (choices.random() < 0.7, choices.random() < 0.7)
        facts.append(Fact(name, args, tl.Interval(start, start + length, *closed)))
    rules = tl.Program.parse(choices.choice(STAGED)).rules
    features = Features(integer=True, denominators=(1,)) if integer else Features(denominators=(1, 2))
    return Case(rules, tuple(facts), features)
