"""What is awaited, through the buckets and the operator of a job: at every moment what one local session says."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

import tidelog as tl
from hypothetical_oracle import Ground, parse_printed_fact
from hypothetical_random import Case, compare_with_definitions, random_case
from spark_by_hand import ByHand, forget_engines
from tidelog.analysis.distribution import plan_distribution
from tidelog.data import wire_format
from tidelog.hypothetical import Hypotheses, HypothesisOptions, SupportedAnswer
from tidelog.hypothetical.answer_changes import ANSWERED, AWAITED, AnswerChange, ChangeTracker
from tidelog.language.syntax import Fact
from tidelog.spark.awaiting.awaited_bucket import unpack_ground_facts
from tidelog.spark.awaiting.awaited_plan import add_awaited_stage, build_query, describe_awaited_stage
from tidelog.spark.awaiting.change_rows import ChangeColumns, changes_to_arrow, format_changes, pack_changes
from tidelog.spark.plan.fact_columns import FactColumns
from tidelog.spark.plan.job_plan import Awaiting, JobPlan, PlanOptions, plan_job
from tidelog.streaming.output_times import DelayLike, parse_delays
from tidelog.timeline.interval import TimelineName

TURBINES = """
Flag(X, T) :- Temp(X, high, T).
Cool(X, T+1) :- Flag(X, T), Flag(X, T+1).
Shdn(X, T+1) :- Cool(X, T), Flag(X, T+1).
Malf(X, T-2) :- Shdn(X, T).
"""
#: An entry: what is known of the answer, the evidence, the hypotheses, by when it is decided, what it has to keep to.
Entry = tuple[object, ...]


@pytest.fixture(autouse=True)
def _own_cache() -> None:
    forget_engines()


def tdl(text: str) -> tl.Program:
    return tl.Program.parse(text, syntax="tdl")


def entry_of(found: SupportedAnswer) -> Entry:
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
            assert change["id"] not in self.rows or change["step"] > self.rows[change["id"]]["step"]
            self.rows[change["id"]] = change

    @property
    def awaited(self) -> list[Entry]:
        """Without confidence, which a row has as of its own moment."""
        rows = (row | {"confidence": None} for row in self.rows.values() if row["change"] == AWAITED)
        return sorted(map(row_of, rows), key=repr)


@dataclass
class Local:
    """One session over the same arrivals: they come when the clock has passed tau, the time before the watermark."""

    session: Hypotheses
    delays: dict[str | None, int]
    clock: int | None = None
    answers: list[Entry] = field(default_factory=list)
    late: set[Fact] = field(default_factory=set)

    def batch(self, facts: Iterable[Ground], following: int | None = None) -> None:
        facts = list(facts)
        tau = -1 if self.clock is None else max(self.clock - 1, -1)
        timely = [f for f in facts if self.clock is None or f[2] + self.delay(f) >= self.clock]
        self.late |= {fact_of(fact) for fact in facts if fact not in timely}
        self.answers += (entry_of(e)[:2] for e in self.session.push(tau, timely))
        times = [f[2] for f in facts] + ([] if following is None else [following + 1])
        self.clock = max([*times, *([] if self.clock is None else [self.clock])], default=None)

    def delay(self, fact: Ground) -> int:
        return self.delays.get(fact[0], self.delays[None])

    @property
    def awaited(self) -> list[Entry]:
        return sorted((entry_of(replace(e, confidence=None)) for e in self.session.hypothetical()), key=repr)


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
    timeline: TimelineName | None = None if program.temporal else "integer"
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
        Hypotheses(
            program,
            build_query(program, query),
            delay=[str(delays[None]), *(f"{name}={delay}" for name, delay in delays.items() if name)],
            background=tl.Dataset.from_facts(background),
            timeline=timeline,
            options=HypothesisOptions(early=True, **asked),
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
        told = work.awaited[before:]
        table.take(told)
        assert table.awaited == local.awaited
        assert {row_of(row) for row in told if row["change"] == AWAITED} <= set(
            map(entry_of, local.session.hypothetical())
        )
        assert sorted(table.answers) == sorted(local.answers)
    assert set(work.late) == {fact for fact in local.late if fact.predicate in work.job.routes}
    return work, table


def in_batches(case: Case, rng: random.Random) -> list[list[Ground]]:
    """The facts of a case in any order, cut anywhere."""
    facts = [parse_printed_fact(fact) for _, fact in case.arrivals]
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
        return  # it cannot run over a stream, so that there is no job
    delays: dict[str | None, int] = {None: rng.randint(0, 2)}
    delays |= {name: rng.randint(0, 3) for name in ("e", "f", "g") if rng.random() < 0.4}
    batches = in_batches(case, rng)
    past = rng.randint(1, len(batches)) if rng.random() < 0.3 and batches[0] else 0
    # With so many, the constants, and the keys, lie in different buckets.
    buckets = 1 if rng.random() < 0.1 else 3 if seed % 2 else 5
    work, table = compare(program, query, batches, delays, buckets=buckets, seed=seed, past=past)
    assert work.job.awaited is not None
    seen["one" if work.job.awaited.key_split.single else "split"] += 1
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
    assert sum(compare_with_definitions(case, early=True) for case in cases) > 0


@pytest.mark.parametrize("seed", range(40))
def test_changes_tell_every_moment(seed: int) -> None:
    """Also where the session is saved and loaded in between."""
    case = random_case(seed)

    def session() -> Hypotheses:
        return Hypotheses(tdl(case.program), case.query, delay=case.delays)

    other = session()
    changes, kept = ChangeTracker(session()), dict[str, AnswerChange]()
    for tau in range(9):
        facts = [fact for arrival, fact in case.arrivals if arrival == tau]
        given = {entry_of(entry)[:2] for entry in other.push(tau, facts)}
        if tau % 2:
            changes = ChangeTracker(session().load(changes.session.save()))
        found = changes.push(tau, facts)
        answered = {entry_of(c.answer)[:2] for c in found if c.change == ANSWERED and not c.answer.hypotheses}
        assert answered == given
        gone = [kept[c.id].change for c in found if c.change != AWAITED and c.id in kept]
        assert gone == [AWAITED] * len(gone), "only what is awaited is decided"
        kept |= {change.id: change for change in found}
        awaited = [c.answer for c in kept.values() if c.change == AWAITED]
        assert sorted(map(entry_of, awaited), key=repr) == sorted(map(entry_of, other.hypothetical()), key=repr)


def test_an_entry_that_is_an_answer_by_other_facts_is_answered() -> None:
    changes = ChangeTracker(Hypotheses(tdl("P(T) :- A(T), B(T+1). P(T) :- C(T)."), "P(T)", delay=3))
    assert [c.change for c in changes.push(0, ["A(0)"])] == ["awaited"]
    told = changes.push(0, ["C(0)"])
    assert sorted((c.change, c.answer.evidence, c.answer.hypotheses) for c in told) == [
        ("answered", ("A(0)",), ("B(1)",)),
        ("answered", ("C(0)",), ()),
    ]


# What a job says before it starts


def planned(
    rules: str, query: str, shapes: dict[str, FactColumns] | None = None, delay: DelayLike = 0, **asked: Any
) -> JobPlan:
    program = tdl(rules) if ", T" in rules else tl.Program.parse(rules)
    timeline: TimelineName | None = None if program.temporal else "integer"
    work = plan_job(program, query, plan_distribution(program, query), PlanOptions(4, parse_delays(delay), timeline))
    return add_awaited_stage(work, Awaiting(**asked), shapes or {}, tl.Dataset(), buckets=4, dates=False)


@pytest.mark.parametrize(
    "rules, words",
    [
        (TURBINES, "hypothetical answers: facts of Temp go by argument 1 to 4 buckets"),
        ("Malf(X, T) :- A(X, T), B(Y, X, T+1).", "facts of A go by argument 1; facts of B go by argument 2 to 4"),
        ("Malf(X, T) :- A(X, T), Storm(T+1).", "no argument of Malf is in all of A(Arg1,Time), Storm(Time+1)"),
        ("Malf(X, T) :- A(Y, X, T), A(X, Z, T+1).", "one bucket, since no argument of Malf is in the same place"),
        ("Malf(X, T) :- A(X, T+1).\nMalf(b, 3).", "one bucket, since there are answers to Malf that await nothing"),
        ("Malf(X) :- Boxminus[0,2] Hot(X).", "hypothetical answers: facts of Hot go by argument 1 to 4 buckets"),
    ],
)
def test_the_plan_says_how_what_is_awaited_is_spread(rules: str, words: str) -> None:
    part = planned(rules, "Malf").awaited
    assert part is not None
    assert words in describe_awaited_stage(part)


def shape(name: str, *times: str) -> FactColumns:
    return FactColumns(name, (("x", "string"),), tuple((role, "bigint") for role in times))


@pytest.mark.parametrize(
    "rules, shapes, options, code, message",
    [
        (
            "P(X, T+1) :- P(X, T).\nP(X, T) :- Q(X, T).",
            [],
            {},
            "TL701",
            "resolution of P does not terminate: P -> P is a cycle",
        ),
        (
            "P(X) :- Q(X), not R(X).",
            [],
            {},
            "TL702",
            "`not` is not supported by hypothetical answers on Spark",
        ),
        (
            "P(X) :- Diamondminus[0,inf) Q(X).",
            [],
            {},
            "TL702",
            "Diamondminus[0,inf) is not supported by hypothetical answers",
        ),
        (
            "P(X) :- Q(X), not Diamondminus[0,1] R(X).",
            [],
            {},
            "TL702",
            "`not` is not supported by hypothetical answers",
        ),
        ("P(X, T+1) :- Q(X, T).", [], {"delay": {"Q": "0.5s"}}, "TL703", "the delay of Q is 1/2"),
        ("P(X, T+1) :- Q(X, T).", [("Q", "start", "end")], {}, "TL702", "facts of Q are not supported: they hold over"),
        ("P(X, T+1) :- Q(X, T).", [("Q",)], {}, "TL702", "facts of Q are not supported: they hold at all times"),
        (
            "P(X, T+1) :- R(X, T).\nR(X, T) :- Q(X, T).",
            [("R", "time")],
            {},
            "TL702",
            "facts of R are not supported: rules",
        ),
        ("P(X, T+1) :- Q(X, T).", [], {"probability": {"R": 0.5}}, "TL706", "`R=0.5`: the query awaits no facts of R"),
    ],
)
def test_what_cannot_be_awaited_is_refused(
    rules: str, shapes: list[tuple[str, ...]], options: dict[str, Any], code: str, message: str
) -> None:
    with pytest.raises(tl.TidelogError) as raised:
        planned(rules, "P", {name: shape(name, *times) for name, *times in shapes}, **options)
    (found,) = raised.value.diagnostics
    assert found.code == code
    assert found.message.startswith(message)


# Cases


def readings(*batches: str) -> list[list[Ground]]:
    """Batches like `a0 b1`: facts of Hot by constant and time."""
    return [[("Hot", (text[0],), int(text[1:])) for text in batch.split()] for batch in batches]


def test_datalogmtl_over_the_integers() -> None:
    program = tl.Program.parse("Over(X) :- Boxminus[0,2] Diamondminus[0,1] Hot(X).")
    batches = readings("a0", "b1 a2", "a1 a4 b3", "b2", "a9")
    work, table = compare(program, "Over", batches, {None: 1}, past=0, seed=3)
    assert {known for known, _ in table.answers} == {known for fact in work.answers for known in points(fact)}
    assert table.answers


def test_a_recursion_within_a_horizon() -> None:
    program = tdl("Live(X, T) :- Start(X, T).\nLive(X, T+1) :- Live(X, T), Hot(X, T+1).")
    batches: list[list[Ground]] = [[("Start", ("a",), 0)], *readings("a1", "a2", "a3")]
    _, table = compare(program, "Live", batches, {None: 1}, horizon=2)
    assert [known for known, _ in table.answers] == [(("Arg1", "a"), ("Time", str(t))) for t in range(3)]


@pytest.mark.parametrize("asked", [{}, {"min_confidence": 0.2}])
def test_confidence_is_that_of_one_session(asked: dict[str, Any]) -> None:
    program = tdl("Alarm(X, T) :- Hot(X, T), Hot(X, T+1), Hot(X, T+3).")
    batches = readings("a0 b1", "a1 b2", "b5 a3", "a8")
    chances = {"Hot": "0.5:0.2:0.1"}
    work, table = compare(program, "Alarm", batches, {None: 2}, probability={"Hot": 0.8}, chances=chances, **asked)
    assert all(0 <= change["confidence"] <= 1 for change in work.awaited if change["change"] == AWAITED)
    assert table.answers


def test_background_is_known_and_no_evidence() -> None:
    program = tdl("#rigid Feeds/2.\nAlarm(Y, T+1) :- Hot(X, T), Hot(X, T+1), Feeds(X, Y).")
    known = tuple(Fact("Feeds", args, tl.Interval.always()) for args in (("a", "b"), ("b", "c"), ("c", "c")))
    work, table = compare(program, "Alarm", readings("a0", "a1 c1", "c2"), {None: 0}, background=known)
    assert [evidence for _, evidence in sorted(table.answers)] == [("Hot(a,0)", "Hot(a,1)"), ("Hot(c,1)", "Hot(c,2)")]
    assert work.job.awaited is not None
    assert work.job.awaited.key_split.single


def test_what_does_not_split_meets_in_one_bucket() -> None:
    """The constants would lie in different buckets."""
    program = tdl("P(X, T) :- A(X, T), B(Y, T+1).")
    batches: list[list[Ground]] = [[("A", ("a",), 0)], [("B", ("b",), 1), ("A", ("b",), 1)], [("B", ("a",), 2)]]
    _, table = compare(program, "P", batches, {None: 1}, buckets=5)
    assert [evidence for _, evidence in sorted(table.answers)] == [("A(a,0)", "B(b,1)"), ("A(b,1)", "B(a,2)")]


def test_a_state_of_another_query_is_refused() -> None:
    program = tdl(TURBINES)
    work = ByHand.start(program, "Malf", awaiting=Awaiting(), delay=1)
    facts = [Fact("Temp", (f"wt{i}", "high"), tl.Interval.point(Fraction(0))) for i in range(9)]
    work.batch(facts)
    other = ByHand.start(program, "Malf", awaiting=Awaiting(min_confidence=0.5), delay=1)
    other.handles, other.watermark, other.begun = work.handles, work.watermark, True
    with pytest.raises(tl.TidelogError, match="TL403"):
        other.batch(facts)


def test_a_time_between_two_points_is_refused() -> None:
    payload = next(wire_format.pack_dataset(tl.Dataset.from_facts(["Hot(a)@0.5"])))
    with pytest.raises(tl.TidelogError, match="TL704"):
        list(unpack_ground_facts(payload))


def test_rows_have_the_types_of_the_query() -> None:
    session = Hypotheses(tdl("P(X, Y, T) :- Q(X, Y, T), R(T+1)."), "P(Arg1,Arg2,Time)")
    changes = ChangeTracker(session).push(60, [("Q", ("a", 3), 60)])
    columns = ChangeColumns(("string", "int"), "timestamp")
    (row,) = changes_to_arrow(pack_changes(changes, Fraction(60), 7), columns).to_pylist()
    minute = datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    assert (row["arg1"], row["arg2"], row["time"], row["watermark"]) == ("a", 3, minute, minute)
    assert row["step"] == 7
    assert row["decided_by"] == minute + timedelta(seconds=1)
    assert changes_to_arrow(pack_changes(changes, Fraction(60), 7), columns).schema.names == [
        part.split(" ")[0] for part in columns.schema.split(", ")
    ]
    (line,) = format_changes(pack_changes(changes, Fraction(60), 7), "P", ChangeColumns(("string", "int"), "bigint"))
    assert line == "60: awaited P(a,3)@60 since Q(a,3,60) awaits R(61); decided by 61"
