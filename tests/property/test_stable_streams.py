"""Streaming jobs over stable models, bucket by bucket, must answer as one session does over the same stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from random import Random

import pytest

import stable_random
import tidelog as tl
from spark_by_hand import ByHand, forget_engines
from stable_by_hand import DOMAIN, generate_facts, generate_program
from stable_oracle import StableOracle, Word
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Atom, Fact, Value
from tidelog.spark.plan.job_plan import StableMode
from tidelog.spark.plan.stable_program import derive_query
from tidelog.spark.worker import stateful_operator
from tidelog.spark.worker.stable_bucket import StableBucket
from tidelog.stable import StableReasoner
from tidelog.timeline.interval import Interval

pytestmark = pytest.mark.usefixtures("kernels")

FIRST, LAST = -3, 7
CASES = 60
MODES: tuple[StableMode, ...] = ("brave", "cautious")
#: An atom at a time; the beginning of time is FIRST.
Point = tuple[str, tuple[Value, ...], int]


@pytest.fixture(autouse=True)
def _own_cache() -> None:
    forget_engines()


def can_follow(program: tl.Program) -> bool:
    """Whether the rules only look back, also where one shifts time for another."""
    try:
        StableReasoner(program)
    except tl.TidelogError as problem:
        return problem.diagnostics[0].code != "TL327"
    return True


def follow_as_one(
    program: tl.Program, known: list[Fact], stream: Iterable[Fact], query: str
) -> list[set[Point]] | None:
    """What holds in some and in all models so far at each time, by one session; None if no model is left."""
    found: list[set[Point]] = [set(), set()]
    facts = list(stream)
    try:
        reasoner = StableReasoner(program, background=tl.Dataset.from_facts(known))
        for time in range(FIRST, LAST + 1):
            reasoner.push(time, [fact for fact in facts if fact.interval.lo == time])
            for point in reasoner.advance(time):
                for which, answers in enumerate((point.some, point.all)):
                    found[which] |= {(f.predicate, f.args, time) for f in answers if f.predicate == query}
    except tl.errors.Inconsistent:
        return None
    return found


def follow_by_buckets(
    program: tl.Program, known: list[Fact], batches: list[list[Fact]], query: str, mode: StableMode, rng: Random
) -> tuple[ByHand, bool]:
    """The same with many engines, which lose their state now and then; and whether a model is left."""
    delay = rng.choice((0, 1, 3))
    work = ByHand.start(
        program,
        query,
        known,
        buckets=rng.choice((2, 3)),
        delay=delay,
        stable=mode,
        seed=rng.randrange(1000),
        faults=rng.random() < 0.5,
        until=Fraction(LAST),
    )
    return work, run_to_end(work, batches, LAST + delay)


def run_to_end(work: ByHand, batches: Iterable[list[Fact]], clock: int) -> bool:
    """Run all batches, and move the clock to a time; return whether a model is left."""
    try:
        for batch in batches:
            work.batch(batch)
        work.batch(until=Fraction(clock))
        work.batch()
    except tl.TidelogError as problem:
        if problem.diagnostics[0].code != "TL331":
            raise
        return False
    return True


def to_points(answers: Iterable[Fact]) -> set[Point]:
    """The points of intervals that neither overlap nor touch."""
    found: set[Point] = set()
    for fact in answers:
        lo = FIRST - 1 if isinstance(fact.interval.lo, float) else int(fact.interval.lo)
        points = {(fact.predicate, fact.args, time) for time in range(lo, int(fact.interval.hi) + 1)}
        beside = {(fact.predicate, fact.args, time) for time in (lo - 1, int(fact.interval.hi) + 1)}
        assert not found & (points | beside), f"{fact} is no maximal interval"
        found |= points
    return {point for point in found if point[2] >= FIRST}


@pytest.mark.slow
def test_random_programs_by_buckets_are_the_same_as_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(0)
    seen = {"split": 0, "whole": 0, "none": 0, "open": 0, "late": 0, "before": 0}
    for number in range(CASES):
        monkeypatch.setattr(stateful_operator, "_MOST_DELTAS", rng.choice((0, 2, 32)))
        rules = generate_program(rng)
        program = tl.Program.parse(rules)
        if not can_follow(program):
            continue
        given = tl.Dataset.from_facts(generate_facts(rng, program))
        known, stream = [[f for f in given if (f.predicate == DOMAIN) == which] for which in (True, False)]
        rng.shuffle(stream)
        cuts = sorted(rng.randrange(len(stream) + 1) for _ in range(3))
        batches = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        query = rng.choice([name for name in program.predicates if name != DOMAIN])
        mode = MODES[number % 2]
        work, has_model = follow_by_buckets(program, known, batches, query, mode, rng)
        whole = derive_query(program, query, program.predicates[query])
        expected = follow_as_one(whole, known, [f for f in stream if f not in work.late], query)
        where = f"case {number}, {mode}:\n{rules}\n{[*map(str, known)]}\n{batches}\n{query}"
        if expected is None or not has_model:
            # Of a batch that fails, nobody learns which facts were late. No fact is later than 3.
            assert not has_model, where
            assert expected is None or work.job.longest_delay < 3, where
            seen["none"] += 1
            continue
        some, every = expected
        assert to_points(work.answers) == (some if mode == "brave" else every), where
        seen["split" if len(work.handles) > 1 else "whole"] += 1
        seen["open"] += some != every
        seen["late"] += bool(work.late)
        seen["before"] += any(isinstance(fact.interval.lo, float) for fact in work.answers)
    assert min(seen.values()) > CASES / 20, seen


def find_holding(program: tl.Program, given: list[tuple[int, str]], query: str) -> list[set[Point]] | None:
    """What holds in some and in all models so far from 0 to LAST, by the definitions; None if no model is left."""
    oracle = StableOracle(program.rules, tuple((atom, float(t), float(t)) for t, atom in given))
    slices = [frozenset(some) for size in range(4) for some in combinations("EPQ", size)]
    words = [Word(0, (frozenset(),), ())]
    found: list[set[Point]] = [set(), set()]
    for time in range(LAST + 1):
        longer = [Word(0, old.left, (*old.body, slice)) for old in words for slice in slices]
        words = list(filter(oracle.next_is_founded, longer))
        if not words:
            return None
        holds = [query in word.body[-1] for word in words]
        for points, yes in zip(found, (any(holds), all(holds)), strict=True):
            points |= {(query, (), time)} if yes else set()
    return found


def test_answers_are_those_of_the_definitions() -> None:
    rng = Random(1)
    seen = {"none": 0, "open": 0}
    for number in range(30):
        # Every rule needs a fact, so nothing holds before the stream.
        lines = [f"{rule[:-1]}, Diamondminus[0,2] E." for rule in stable_random.program(rng).split("\n")]
        lines += ["P :- E, not Q.", "Q :- E, not P."] if rng.random() < 0.6 else []
        program = tl.Program.parse("\n".join(lines))
        given = [(rng.randrange(4), rng.choice("EEPQ")) for _ in range(4)]
        heads = sorted({rule.head.predicate for rule in program.rules if isinstance(rule.head, Atom)} & set("PQ"))
        if not heads:
            continue
        expected = find_holding(program, given, heads[0])
        facts = [Fact(atom, (), Interval.point(Fraction(time))) for time, atom in given]
        for mode in MODES:
            work = ByHand.start(program, heads[0], buckets=2, delay=3, stable=mode, until=Fraction(LAST))
            has_model = run_to_end(work, [facts[:2], facts[2:]], LAST + 3)
            where = f"case {number}, {mode}: {lines}, {given}"
            assert has_model == (expected is not None), where
            if expected is not None:
                assert to_points(work.answers) == expected[mode == "cautious"], where
        seen["none"] += expected is None
        seen["open"] += expected is not None and expected[0] != expected[1]
    assert min(seen.values()) > 2, seen


CHOICE = """
    Free(X) :- Spot(X), not Taken(X).  Taken(X) :- Spot(X), not Free(X).
    Bottom :- Free(X), Full(X).  Bottom :- Boxminus[0,1] Taken(X).
"""


def test_the_error_names_the_part_since_when_and_what_is_violated() -> None:
    work = ByHand.start(tl.Program.parse(CHOICE), "Free", buckets=3, stable="cautious")
    work.batch([f"{name}({x})@{t}" for x, t in (("a", 1), ("b", 1), ("b", 2)) for name in ("Spot", "Full")])
    work.batch(["Spot(a)@9"])
    with pytest.raises(tl.TidelogError) as raised:
        work.batch()
    first, *violated = raised.value.diagnostics
    message = "there is no stable model from 2 on: the rules leave none for Free(b), Taken(b)"
    assert (first.code, first.message) == ("TL331", message)
    assert {found.code for found in violated} == {"TL303"}


def test_an_interval_is_given_once_it_has_ended_and_no_other_time() -> None:
    work = ByHand.start(tl.Program.parse(CHOICE), "Taken", buckets=2, delay=2, stable="cautious")
    work.batch(["Full(a)@3", "Spot(a)@4"])
    work.batch(["Spot(a)@3"])
    work.batch(["Spot(c)@7"])
    assert work.answers == []
    work.batch(["Spot(a)@1"])
    assert [format_fact(fact) for fact in work.answers] == ["Taken(a)@3"]
    assert [format_fact(fact) for fact in work.late] == ["Spot(a)@1"]
    work.batch(["Spot(c)@30"])
    work.batch()
    assert len(work.answers) == 1, "Free(a)@4 follows from Taken(a)@3, and c has a choice"


def test_a_state_continues_with_its_own_rules_and_answers() -> None:
    work = ByHand.start(tl.Program.parse(CHOICE), "Taken", buckets=1, stable="brave")
    work.batch(["Spot(a)@0"])
    plan = work.job.stages[0]
    state = StableBucket.new(work.job, plan, 0, tl.Dataset()).save()
    assert StableBucket.load(work.job, plan, state).number == 0
    for other, message in (
        (replace(work.job, stable="cautious"), r"TL403.*\(brave\), and now are those of stable models \(cautious\)"),
        (replace(work.job, stable=None), r"TL403.*\(brave\), and now are those of the one model"),
        (replace(work.job, program=tl.Program.parse(CHOICE.replace("0,1", "0,2"))), "TL403.*with other rules"),
    ):
        with pytest.raises(tl.TidelogError, match=message):
            StableBucket.load(other, plan, state)


def test_facts_of_a_stream_have_a_beginning() -> None:
    work = ByHand.start(tl.Program.parse(CHOICE), "Taken", buckets=1, stable="brave")
    work.batch(["Spot(a)@(-inf,3]", "Spot(a)@5"])
    with pytest.raises(tl.TidelogError, match=r"TL322.*Spot\(a\)@\(-inf,3\] of a stream holds from -inf on"):
        work.batch()


def test_jobs_look_back_only() -> None:
    program = tl.Program.parse("Free(X) :- Spot(X), not Diamondplus[1,1] Free(X).")
    work = ByHand.start(program, "Free", buckets=2, stable="brave")
    with pytest.raises(tl.TidelogError, match="TL327"):
        StableBucket.new(work.job, work.job.stages[0], 0, tl.Dataset())
