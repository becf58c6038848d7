"""What is awaited, through the buckets and the operator of a job: at every moment what one local session says."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

import tidelog as tl
from hypothetical_oracle import Ground, as_fact
from hypothetical_random import Case, examine, random_case
from spark_by_hand import ByHand
from tidelog.hypothetical.changes import ANSWERED, AWAITED, Change, Changes
from tidelog.language.syntax import Fact
from tidelog.spark import operator
from tidelog.spark.awaiting import query_of
from tidelog.spark.plan import Awaiting

TURBINES = """
Flag(X, T) :- Temp(X, high, T).
Cool(X, T+1) :- Flag(X, T), Flag(X, T+1).
Shdn(X, T+1) :- Cool(X, T), Flag(X, T+1).
Malf(X, T-2) :- Shdn(X, T).
"""
#: An entry: what is known of the answer, the evidence, the hypotheses, by when it is decided, what it has to keep to.
Entry = tuple[object, ...]


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "_ENGINES", {})


def tdl(text: str) -> tl.Program:
    return tl.Program.parse(text, syntax="tdl")


def entry_of(found: tl.SupportedAnswer) -> Entry:
    return (
        tuple(sorted((n, str(v)) for n, v in found.bindings.items())),
        found.evidence,
        found.hypotheses,
        found.decided_by,
        found.confidence,
        found.conditions,
    )


def row_of(change: dict[str, Any]) -> Entry:
    """The same of a row, whose facts have their times behind `@`."""
    bindings = {name: value if isinstance(value, str) else value[0] for name, value in change["bindings"].items()}
    return (
        tuple(sorted((n, str(v)) for n, v in bindings.items())),
        tuple(map(as_temporal, change["evidence"])),
        tuple(map(as_temporal, change["hypotheses"])),
        change["decided_by"],
        change["confidence"],
        tuple(change["conditions"]),
    )


def as_temporal(text: str) -> str:
    """`f(a)@1` as `f(a,1)`."""
    name, at, time = text.rpartition("@")
    if not at:
        return text
    return f"{name[:-1]},{time})" if name.endswith(")") else f"{name}({time})"


@dataclass
class Table:
    """What a reader of the changes keeps: the last change of every id."""

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: list[Entry] = field(default_factory=list)

    def take(self, changes: Iterable[dict[str, Any]]) -> None:
        seen: set[str] = set()
        for change in changes:
            assert change["id"] not in seen, "an id changes once in a batch"
            seen.add(change["id"])
            if change["change"] == ANSWERED and not change["hypotheses"]:
                self.answers.append(row_of(change)[:2])
            if change["change"] != AWAITED:
                assert change["decided_by"] is change["confidence"] is None
            self.rows[change["id"]] = change

    @property
    def awaited(self) -> list[Entry]:
        return sorted((row_of(r) for r in self.rows.values() if r["change"] == AWAITED), key=repr)


@dataclass
class Local:
    """One session over the same arrivals: they come when the clock has passed tau, the time before the watermark."""

    session: tl.Hypotheses
    delays: dict[str | None, int]
    clock: int | None = None
    answers: list[Entry] = field(default_factory=list)
    late: set[Fact] = field(default_factory=set)

    def batch(self, facts: Iterable[Ground], following: int | None = None) -> None:
        facts = list(facts)
        tau = -1 if self.clock is None else max(self.clock - 1, -1)
        timely = [f for f in facts if self.clock is None or f[2] + self.delay(f) >= self.clock]
        self.late |= {fact_of(fact) for fact in facts if fact not in timely}
        self.answers += (entry_of(e)[:2] for e in self.session.push(tau, timely))  # type: ignore[arg-type]
        times = [f[2] for f in facts] + ([] if following is None else [following + 1])
        self.clock = max([*times, *([] if self.clock is None else [self.clock])], default=None)

    def delay(self, fact: Ground) -> int:
        return self.delays.get(fact[0], self.delays[None])

    @property
    def awaited(self) -> list[Entry]:
        return sorted(map(entry_of, self.session.hypothetical()), key=repr)


def fact_of(ground: Ground) -> Fact:
    name, args, time = ground
    return Fact(name, args, tl.Interval.point(Fraction(time)))


def compare(
    program: tl.Program,
    query: str,
    batches: list[list[Ground]],
    delays: dict[str | None, int],
    *,
    buckets: int = 2,
    seed: int = 0,
    past: int = 0,
    background: tuple[Fact, ...] = (),
    **asked: Any,
) -> tuple[ByHand, Table]:
    """Takes the first `past` batches as history and the rest as a stream, with workers that come and go, and compares
    what is awaited after each with one session."""
    timeline = None if program.temporal else "integer"
    work = ByHand.start(
        program,
        query,
        background,
        buckets=buckets,
        delay={name: Fraction(delay) for name, delay in delays.items()},
        timeline=timeline,
        seed=seed,
        faults=True,
        awaiting=Awaiting(**asked),
    )
    local = Local(
        tl.Hypotheses(
            program,
            query_of(program, query),
            delay=[str(delays[None]), *(f"{name}={delay}" for name, delay in delays.items() if name)],
            background=background,
            timeline=timeline,
            early=True,
            **asked,
        ),
        delays,
    )
    table = Table()
    if past:
        history = sorted((fact for batch in batches[:past] for fact in batch), key=lambda fact: fact[2])
        for fact in history:
            local.clock = fact[2]
            local.batch([fact])
        local.batch([])
        work.backfill(list(map(fact_of, history)))
        work.watermark = 0
        table.take(work.awaited)
        assert table.awaited == local.awaited
    end = max((fact[2] for batch in batches for fact in batch), default=0) + max(delays.values()) + 5
    for batch in [*batches[past:], [], None, []]:
        before = len(work.awaited)
        if batch is None:
            work.batch(until=Fraction(end))
            local.batch([], end)
        else:
            work.batch(map(fact_of, batch))
            local.batch(batch)
        table.take(work.awaited[before:])
        assert table.awaited == local.awaited
        assert sorted(table.answers) == sorted(local.answers)
    assert set(work.late) == {fact for fact in local.late if fact.predicate in work.job.routes}
    return work, table


def in_batches(case: Case, rng: random.Random) -> list[list[Ground]]:
    """The facts of a case in any order, cut anywhere."""
    facts = [as_fact(fact) for _, fact in case.arrivals]
    if rng.random() < 0.7:
        facts.sort(key=lambda fact: fact[2] + rng.randint(0, 3))
    batches: list[list[Ground]] = [[]]
    for fact in facts:
        if rng.random() < 0.5:
            batches.append([])
        batches[-1].append(fact)
    return batches


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_await_what_one_session_awaits(seed: int) -> None:
    seen: Counter[str] = Counter()
    for number in range(30 * seed, 30 * seed + 30):
        one_program(number, seen)
    assert min(seen[kind] for kind in ("split", "one", "answers", "dropped", "agreed")) > 0, seen


def keyed(case: Case, rng: random.Random) -> Case:
    """The same rules for each of some keys, which go through all of them as the first argument."""

    def with_key(line: str) -> str:
        if line.startswith("#"):
            return re.sub(r"/(\d+)", lambda arity: f"/{int(arity[1]) + 1}", line)
        return re.sub(r"\b([efg]|i\d)\(", rf"\1({'K' if ':-' in line else 'k1'},", line)

    program = "\n".join(map(with_key, case.program.splitlines())) + "\n"
    arrivals = tuple((at, fact.replace("(", f"(k{rng.randint(1, 3)},", 1)) for at, fact in case.arrivals * 2)
    return Case(program, case.query, case.delays, arrivals)


def one_program(seed: int, seen: Counter[str]) -> None:
    rng = random.Random(seed)
    case = random_case(seed)
    if seed % 2:
        case = keyed(case, rng)
    program, query = tdl(case.program), case.query.partition("(")[0]
    try:
        tl.Reasoner(program, query)
    except tl.TidelogError:
        return  # it cannot stand over a stream, so that there is no job
    delays: dict[str | None, int] = {None: rng.randint(0, 2)}
    delays |= {name: rng.randint(0, 3) for name in ("e", "f", "g") if rng.random() < 0.4}
    batches = in_batches(case, rng)
    past = rng.randint(1, len(batches)) if rng.random() < 0.3 and batches[0] else 0
    work, table = compare(program, query, batches, delays, buckets=rng.randint(1, 3), seed=seed, past=past)
    assert work.job.awaited is not None
    seen["one" if work.job.awaited.splitting.single else "split"] += 1
    seen["answers"] += len(table.answers)
    seen["dropped"] += sum(change["change"] == "dropped" for change in work.awaited)
    # Certain answers are those of the reasoner, which gives them once nothing can come late any more.
    if all("Time" in change["bindings"] for change in work.awaited if change["change"] == ANSWERED):
        seen["agreed"] += bool(work.answers)
        certain = {known for known, _ in table.answers}
        assert certain == {known for fact in work.answers for known in points(fact)}


def points(fact: Fact) -> Iterable[tuple[tuple[str, str], ...]]:
    """A fact as the bindings of the query, at each of its times."""
    args = [(f"Arg{i + 1}", str(value)) for i, value in enumerate(fact.args)]
    assert not isinstance(fact.interval.lo, float)
    assert not isinstance(fact.interval.hi, float)
    for time in range(int(fact.interval.lo), int(fact.interval.hi) + 1):
        yield (*args, ("Time", str(time)))


# Sessions that follow a watermark


def before_their_time(case: Case, rng: random.Random) -> Case:
    arrivals = [(rng.randint(0, at), fact) for at, fact in case.arrivals]
    return Case(case.program, case.query, case.delays, tuple(sorted(arrivals, key=lambda pair: pair[0])))


@pytest.mark.parametrize("seed", range(10))
def test_facts_that_come_before_their_time_by_the_definitions(seed: int) -> None:
    cases = [before_their_time(random_case(number), random.Random(number)) for number in range(6 * seed, 6 * seed + 6)]
    assert sum(examine(case, early=True) for case in cases) > 0


@pytest.mark.parametrize("seed", range(40))
def test_changes_tell_every_moment(seed: int) -> None:
    case = random_case(seed)
    session = tl.Hypotheses(tdl(case.program), case.query, delay=case.delays)
    other = tl.Hypotheses(tdl(case.program), case.query, delay=case.delays)
    changes, kept = Changes(session), dict[str, Change]()
    for tau in range(9):
        facts = [fact for arrival, fact in case.arrivals if arrival == tau]
        given = {entry_of(entry)[:2] for entry in other.push(tau, facts)}
        found = changes.push(tau, facts)
        answered = {entry_of(c.entry)[:2] for c in found if c.change == ANSWERED and not c.entry.hypotheses}
        assert answered == given
        gone = [kept[c.id].change for c in found if c.change != AWAITED and c.id in kept]
        assert gone == [AWAITED] * len(gone), "only what is awaited is decided"
        kept |= {change.id: change for change in found}
        awaited = [c.entry for c in kept.values() if c.change == AWAITED]
        assert sorted(map(entry_of, awaited), key=repr) == sorted(map(entry_of, other.hypothetical()), key=repr)


def test_an_entry_that_is_an_answer_by_other_facts_is_answered() -> None:
    changes = Changes(tl.Hypotheses(tdl("P(T) :- A(T), B(T+1). P(T) :- C(T)."), "P(T)", delay=3))
    assert [c.change for c in changes.push(0, ["A(0)"])] == ["awaited"]
    told = changes.push(0, ["C(0)"])
    assert sorted((c.change, c.entry.evidence, c.entry.hypotheses) for c in told) == [
        ("answered", ("A(0)",), ("B(1)",)),
        ("answered", ("C(0)",), ()),
    ]
