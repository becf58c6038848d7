"""The operator keeps an engine as a base and deltas, with a cache beside them: whatever happens, one state.

Without Spark; by the answers of the local reasoner, and of a run in which nothing fails.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from fractions import Fraction

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import tidelog as tl
from spark_by_hand import ByHand, forget_engines
from tidelog.data import wire_format
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.spark.job.wake_clock import ClockSource
from tidelog.spark.worker import engine_cache, packed_rows, stateful_operator
from tidelog.spark.worker.bucket import Bucket, BucketInput
from tidelog.spark.worker.packed_rows import Row

ABSENT = "Down(X) :- Node(X), not Diamondminus[0,3] Beat(X)."
TWO_STAGES = ABSENT + "\nBad(Z) :- Down(X), In(X,Z), Diamondminus[0,2] Alarm(Z)."
LASTING = "Up(X) :- Beat(X).\nUp(X) :- Diamondminus[1,1] Up(X), not Alarm(X)."
SINCE = "Lit(X) :- Diamondminus[0,5] Beat(X).\nLong(X) :- Boxminus[0,2] Lit(X), Lit(X) Since[1,6] Alarm(X)."

NODES = [f"n{i}" for i in range(5)]
KNOWN = [f"Node({n})" for n in NODES] + [f"In({n},z{i % 2})" for i, n in enumerate(NODES)]

CASES = [
    pytest.param(ABSENT, "Down", NODES, id="absence"),
    pytest.param(TWO_STAGES, "Bad", ["z0", "z1"], id="two-stages"),
    pytest.param(LASTING, "Up", NODES, id="recursion-in-time"),
    pytest.param(SINCE, "Long", NODES, id="since"),
]


@pytest.fixture(autouse=True)
def _own_cache() -> None:
    forget_engines()


def micro_batches(seed: int, alarmed: list[str], count: int = 9) -> list[list[Fact]]:
    """Facts in order of time, some batches empty, with times between whole ones now and then."""
    chance = random.Random(seed)
    batches: list[list[str]] = []
    for k in range(count):
        times = [f"{chance.randint(4 * k, 4 * k + 3)}{chance.choice(['', '', '.5'])}" for _ in range(6)]
        facts = [f"Beat({chance.choice(NODES)})@{t}" for t in times[:4]]
        facts += [f"Alarm({chance.choice(alarmed)})@{t}" for t in times[4:]]
        batches.append(facts if chance.random() < 0.8 else [])
    batches += [[f"Beat(n0)@{4 * count + 20}"], []]
    return [list(tl.Dataset.from_facts(facts)) for facts in batches]


def background(program: str) -> list[Fact]:
    return list(tl.Dataset.from_facts(fact for fact in KNOWN if fact.partition("(")[0] in program))


def unbroken(program: str, query: str, batches: list[list[Fact]]) -> list[str]:
    """The answers of the local reasoner."""
    known = tl.Dataset.from_facts(background(program))
    reasoner = tl.Reasoner(tl.Program.parse(program), query, background=known)
    steps = list(reasoner.feed(tl.Dataset.from_facts(fact for batch in batches for fact in batch)))
    return sorted(format_fact(fact) for step in steps for fact in step.answers)


def start(program: str, query: str, seed: int, faults: bool) -> ByHand:
    return ByHand.start(tl.Program.parse(program), query, background(program), seed=seed, faults=faults)


def by_batch(work: ByHand, batches: list[list[Fact]]) -> Iterator[list[str]]:
    """What each micro-batch gives."""
    for batch in batches:
        before = len(work.answers)
        work.batch(batch)
        yield sorted(map(format_fact, work.answers[before:]))


@pytest.mark.parametrize("most_deltas", [0, 1, 3, 32])
@pytest.mark.parametrize(("program", "query", "alarmed"), CASES)
def test_whatever_is_cached_the_state_is_the_same(
    program: str, query: str, alarmed: list[str], most_deltas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = micro_batches(most_deltas, alarmed)
    expected = list(by_batch(start(program, query, 0, faults=False), batches))
    answers = sorted(fact for given in expected for fact in given)
    assert answers == unbroken(program, query, batches)
    assert answers, "the stream has answers"
    monkeypatch.setattr(stateful_operator, "_MOST_DELTAS", most_deltas)
    for seed in range(3):
        assert list(by_batch(start(program, query, seed, faults=True), batches)) == expected


@pytest.mark.parametrize("most_deltas", [1, 3])
def test_bases_and_deltas_may_be_of_many_chunks(most_deltas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = micro_batches(7, NODES)
    expected = list(by_batch(start(ABSENT, "Down", 0, faults=False), batches))
    monkeypatch.setattr(stateful_operator, "_MOST_DELTAS", most_deltas)
    monkeypatch.setattr(packed_rows, "CHUNK_BYTES", 100)
    work = start(ABSENT, "Down", 7, faults=True)
    for batch, given in zip(batches, expected, strict=True):
        assert next(by_batch(work, [batch])) == given
        for handle in work.handles.values():
            kept = handle.cells["version"].value
            assert kept is not None
            version = stateful_operator.Version(*kept)
            numbers = range(-version.delta_chunks, version.base_chunks)
            assert sorted(handle.maps["chunks"].values) == [(number,) for number in numbers], "no more, and no less"


def test_what_is_ahead_of_the_clock_waits_as_it_came() -> None:
    """The first stage learns the time of a batch with the next one, so what it holds is mostly ahead of its clock."""
    work = ByHand.start(tl.Program.parse(SINCE), "Long", [], buckets=1, seed=0, faults=False)
    engine = Bucket.new(work.job, work.job.stages[0], 0, tl.Dataset())
    facts = [
        next(wire_format.pack_dataset(tl.Dataset.from_facts([f"Beat(n{i})@{i}" for i in range(at, at + 9)])))
        for at in (0, 9)
    ]
    engine.step(BucketInput(Fraction(0), facts))
    assert engine.waiting == facts, "0 itself is not over yet"
    empty = len(engine.save())
    engine.step(BucketInput(Fraction(9)))
    assert engine.waiting == facts[1:]
    assert engine.reasoner.count_held_atoms()["Beat"] <= 9
    again = Bucket.load(work.job, work.job.stages[0], engine.save())
    assert again.waiting == facts[1:]
    assert len(engine.save()) < empty + 4000
    again.step(BucketInput(Fraction(40)))
    assert not again.waiting
    assert again.reasoner.facts_taken == 18


def test_a_step_that_fails_half_way_leaves_no_engine_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = micro_batches(1, NODES)
    expected = list(by_batch(start(ABSENT, "Down", 0, faults=False), batches))
    work = start(ABSENT, "Down", 0, faults=False)
    step, failing = Bucket.step, False

    def fails(self: Bucket, given: BucketInput) -> list[Row]:
        rows = step(self, given)
        if failing:
            raise MemoryError("half way")
        return rows

    monkeypatch.setattr(Bucket, "step", fails)
    for number, batch in enumerate(batches):
        before, begun, failing = deepcopy(work.handles), work.begun, True
        if batch or number == 0:
            with pytest.raises(MemoryError):
                work.batch(batch)
        work.handles, work.begun, failing = before, begun, False
        assert list(by_batch(work, [batch])) == expected[number : number + 1]


@pytest.mark.parametrize("steps", [1, 2, 40])
def test_other_rules_are_refused_from_the_first_step_on(steps: int) -> None:
    work = start(ABSENT, "Down", 0, faults=False)
    for batch in micro_batches(0, NODES, steps)[:steps]:
        work.batch(batch)
    other = start(ABSENT.replace("[0,3]", "[0,4]"), "Down", 0, faults=False)
    other.handles, other.watermark, other.begun = work.handles, work.watermark, True
    with pytest.raises(tl.TidelogError, match="TL403"):
        other.batch(list(tl.Dataset.from_facts([f"Beat({n})@500" for n in NODES])))


def changed_on_the_way(
    before: str, after: str, query: str, batches: list[list[Fact]], change: int, known: list[Fact]
) -> tuple[list[str], tuple[str, ...]]:
    """One local reasoner that takes the same steps, and other rules after so many of them: its answers from then on.

    Facts whose time has not come are for the new rules to see, if the old ones could read them.
    """
    data = tl.Dataset.from_facts(known)
    reasoner = tl.Reasoner(tl.Program.parse(before), query, background=data)
    found: list[str] = []
    clock: Fraction | None = None
    waiting: list[Fact] = []
    for number, batch in enumerate(batches):
        if number == change:
            changed = tl.Program.parse(after)
            reasoner = tl.Reasoner.load(reasoner.save(), changed, changed=True, background=data)
            found, waiting = [], [fact for fact in waiting if fact.predicate in tl.Program.parse(before).predicates]
        waiting += batch
        if clock is not None:
            due = [fact for fact in waiting if fact.interval.lo < clock]
            step = reasoner.take_step(clock, tl.Dataset.from_facts(due))
            found += map(format_fact, step.answers)
            waiting = [fact for fact in waiting if fact not in due]
        clock = max([clock or Fraction(0), *(Fraction(fact.interval.lo) for fact in batch)])
    return sorted(found), reasoner.notes


CHANGES = [
    pytest.param(ABSENT, ABSENT.replace("[0,3]", "[0,5]"), "Down", NODES, id="a-longer-range"),
    pytest.param(ABSENT, ABSENT.replace("[0,3]", "[0,2]"), "Down", NODES, id="a-shorter-range"),
    pytest.param(ABSENT, ABSENT + "\nDown(X) :- Alarm(X).", "Down", NODES, id="one-rule-more"),
    pytest.param(LASTING, LASTING.replace("[1,1]", "[2,2]"), "Up", NODES, id="recursion"),
    pytest.param(SINCE, SINCE.replace("Boxminus[0,2]", "Boxminus[0,1]"), "Long", NODES, id="since"),
    pytest.param(SINCE, SINCE + "\nLong(X) :- Node(X), Alarm(X).", "Long", NODES, id="background-that-was-not-read"),
    pytest.param(TWO_STAGES, TWO_STAGES.replace("[0,2]", "[0,1]"), "Bad", ["z0", "z1"], id="the-last-of-two-stages"),
    pytest.param(
        ABSENT + "\nOdd(X) :- Down(X), X = n1.",
        ABSENT + "\nOdd(X) :- Down(X), X != n1.\nOdd(n2) :- Beat(n2).",
        "Odd",
        NODES,
        id="constants",
    ),
]


@pytest.mark.parametrize("change", [1, 5])
@pytest.mark.parametrize(("before", "after", "query", "alarmed"), CHANGES)
def test_changed_rules_take_over_what_they_can(
    before: str, after: str, query: str, alarmed: list[str], change: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The clock is behind all that is about a rule, so that a fact is either due or not, whatever else comes with it.
    batches = [[*batch, *tl.Dataset.parse(f"Tick@{4 * k + 3.75}")] for k, batch in enumerate(micro_batches(3, alarmed))]
    known = background(before + after)
    expected, _ = changed_on_the_way(before, after, query, batches, change, known)
    assert expected, "there are answers after the change"
    monkeypatch.setattr(stateful_operator, "_MOST_DELTAS", 3)
    for seed in range(3):
        work = ByHand.start(tl.Program.parse(before), query, background(before), seed=seed, faults=bool(seed))
        for batch in batches[:change]:
            work.batch(batch)
        given: list[str] = []
        for number, batch in enumerate(batches[change:]):
            if number in (0, 2):  # the second time, some of the state is of the new rules, and is not changed again
                given += map(format_fact, work.answers if number else ())
                work = work.changed(tl.Program.parse(after), known)
            work.batch(batch)
        given += map(format_fact, work.answers)
        assert sorted(given) == expected


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (TWO_STAGES, TWO_STAGES.replace("[0,3]", "[0,4]"), "only the rules of the last stage may change"),
        (TWO_STAGES, "Bad(Z) :- Down(Z), Diamondminus[0,2] Alarm(Z).", "it had 2 stages, and now has 1 stage"),
        (
            "Bad(X,Y) :- Pair(X,Y), Diamondminus[0,2] Alarm(Y).",
            "Bad(X,Y) :- Pair(X,Y), Diamondminus[0,2] Beat(X).",
            "went by argument 2, and now it goes by argument 1",
        ),
    ],
)
def test_a_change_of_how_the_work_is_split_is_refused(before: str, after: str, says: str) -> None:
    work = start(before, "Bad", 0, faults=False)
    batches = micro_batches(0, ["z0", "z1"])
    for batch in batches[:3]:
        work.batch(batch)
    work = work.changed(tl.Program.parse(after), background(before))
    with pytest.raises(tl.TidelogError, match="TL403") as raised:
        work.batch(batches[3])
    assert says in str(raised.value)


def test_another_number_of_buckets_is_refused() -> None:
    work = start(ABSENT, "Down", 0, faults=False)
    work.batch(micro_batches(0, NODES)[0])
    other = ByHand.start(tl.Program.parse(ABSENT), "Down", background(ABSENT), buckets=3)
    other.handles, other.watermark, other.begun = work.handles, work.watermark, True
    with pytest.raises(tl.TidelogError, match="TL403"):
        other.batch(list(tl.Dataset.from_facts([f"Beat({n})@500" for n in NODES])))


def test_other_keys_are_refused_before_the_first_batch() -> None:
    """The keys of buckets depend on how many partitions Spark has; with others, it would find no state."""
    reader = ClockSource({"keys": "0,1,2,5", "woken": "4"}).streamReader(None)
    offset = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert reader.latestOffset(json.loads(json.dumps(offset)), ReadAllAvailable()) == offset
    other = ClockSource({"keys": "0,1,2,3", "woken": "4"}).streamReader(None)
    with pytest.raises(tl.TidelogError, match="TL403"):
        other.latestOffset(offset, ReadAllAvailable())


def test_engines_that_nobody_asks_for_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(engine_cache, "monotonic", lambda: clock[0])
    batches = micro_batches(2, NODES)
    ended = start(ABSENT, "Down", 0, faults=False)
    ended.batch(batches[0])
    assert len(stateful_operator._ENGINES.places) == 2
    other = start(ABSENT, "Down", 0, faults=False)
    expected = list(by_batch(start(ABSENT, "Down", 0, faults=False), batches))
    for number, batch in enumerate(batches):
        clock[0] += engine_cache.IDLE / 2
        assert list(by_batch(other, [batch])) == expected[number : number + 1]
    assert {run for run, _, _ in stateful_operator._ENGINES.places} == {str(id(other))}
