"""Numbers in rules: random programs with every form of them, in batch and over streams, against the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

import pytest

import tidelog as tl
from numeric_examine import TEXT_TESTS, Outcome, format_numeric_case, judge_batch, judge_stream
from numeric_random import Numbers, numeric_case
from streams import Plan, choose_plan
from streams_random import describe
from tidelog.language.fact_text import format_fact

pytestmark = pytest.mark.usefixtures("kernels")

FUNCTIONS = ("count", "sum", "min", "max", "avg")
NOW = {*FUNCTIONS, *(f"{name} distinct" for name in FUNCTIONS)}
WINDOWS = {f"{name} in a window" for name in (*NOW, "last", "first")}
AROUND_BRACES = {
    "no group",
    "a group from outside",
    "a group of the braces",
    "an aggregate as a value",
    "an aggregate that is compared",
    "two aggregates in one condition",
    "an operator in braces",
    "a comparison in braces",
    "not in braces",
    "not beside braces",
    "an expression in a head",
}


@dataclass(frozen=True)
class Part:
    """A part of the language with numbers, and the forms that programs of it must show with answers."""

    features: Numbers
    forms: frozenset[str]
    #: How many programs are tried in batch and over streams.
    batch: int = 50
    streams: int = 25


PARTS = {
    "arithmetic": Part(
        Numbers(now=False, windows=False, durations=False),
        frozenset({f"operation {name}" for name in ("+", "-", "*", "/", "mod", "abs", "floor", "ceil", "min", "max")}),
        batch=90,
    ),
    "texts": Part(
        Numbers(texts=True, now=False, windows=False, durations=False),
        frozenset({f"operation {name}" for name in ("++", "lower", "upper", "length")} | set(TEXT_TESTS)),
        batch=90,
    ),
    "at a point in time": Part(
        Numbers(windows=False, durations=False, always=True),
        frozenset(NOW | AROUND_BRACES | {"a local name in two pairs of braces", "an expression as the value"}),
        batch=100,
    ),
    "in windows": Part(
        Numbers(now=False, durations=False, always=True), frozenset(WINDOWS | {"a window without end"}), batch=100
    ),
    "durations and starts": Part(
        Numbers(now=False, windows=False, always=True), frozenset({"duration in a window", "start"})
    ),
    "looking ahead": Part(Numbers(backward=True, constraints=True), frozenset({"an operator in braces"})),
    "integers": Part(
        Numbers(integer=True, denominators=(1,), backward=True),
        frozenset({"duration in a window", "start"}),
        streams=50,
    ),
    "recursion through time": Part(
        Numbers(through_time=True, endless_data=False), frozenset({"recursion through time", "count in a window"})
    ),
    "recursion through time over integers": Part(
        Numbers(through_time=True, endless_data=False, integer=True, denominators=(1,)),
        frozenset({"recursion through time", "duration in a window"}),
    ),
    "recursion": Part(
        Numbers(recursion=True, endless_data=False),
        frozenset({"recursion with arithmetic", "recursion beside numbers"}),
    ),
    "recursion without a beginning": Part(
        Numbers(through_time=True, recursion=True), frozenset({"recursion through time"})
    ),
}


@dataclass
class Seen:
    """What was compared: kinds of outcomes, and forms of rules that derive something."""

    kinds: Counter[str]
    forms: Counter[str]

    def add(self, outcome: Outcome) -> None:
        self.kinds[outcome.kind] += 1
        self.forms.update(outcome.forms)


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_models_agree_with_the_oracle(part: Part) -> None:
    seen = Seen(Counter(), Counter())
    for seed in range(part.batch):
        case = numeric_case(seed, part.features)
        outcome = judge_batch(case)
        assert not outcome.complaint, format_numeric_case(outcome.complaint, case)
        seen.add(outcome)
    assert seen.kinds["answers"] >= part.batch // 3, seen.kinds
    assert seen.forms.keys() >= part.forms, part.forms - seen.forms.keys()


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_streams_agree_with_the_oracle(part: Part) -> None:
    seen, ways = Seen(Counter(), Counter()), Counter[str]()
    for seed in range(part.streams):
        case = numeric_case(seed, stream_features(part))
        plan = choose_plan(Random(seed).choice, ("A", "B", "C"), integer=part.features.integer)
        outcome = judge_stream(tl.Reasoner, case, plan)
        assert not outcome.complaint, describe(outcome.complaint, case, plan)
        seen.add(outcome)
        if outcome.kind == "answers":
            ways.update(name_ways(plan))
    assert seen.kinds["answers"] >= part.streams // 4, seen.kinds
    assert ways.keys() >= {"delayed", "in bulk", "one by one", "interrupted", "intervals", "at times"}, ways


@pytest.mark.parametrize(
    "features",
    [
        Numbers(now=False, durations=False, always=True),
        Numbers(now=False, windows=False, always=True),
        Numbers(integer=True, denominators=(1,), always=True),
    ],
    ids=["windows", "durations", "integers"],
)
def test_streams_look_back_for_rows_that_become_known_late(features: Numbers) -> None:
    kinds = Counter[str]()
    for seed in range(1000, 1060):
        case = numeric_case(seed, features)
        plan = choose_plan(Random(seed).choice, ("A", "B", "C"), integer=features.integer)
        outcome = judge_stream(tl.Reasoner, case, plan)
        assert not outcome.complaint, describe(outcome.complaint, case, plan)
        kinds[outcome.kind] += 1
    assert kinds["answers"] >= 15, kinds


def stream_features(part: Part) -> Numbers:
    """Return the part without aggregates that cannot look back; the test above has them."""
    return replace(part.features, closed=part.features.windows or part.features.durations)


def test_a_group_that_only_tests_in_braces_read_has_rows_from_before_it_arrives() -> None:
    program = tl.Program.parse("E(X) :- A(X), count(1,3]{ B(Y), Y < X } > 0.")
    reasoner = tl.Reasoner(program, "E")
    answers = reasoner.push(0, ["B(1)"]) + reasoner.push(1, ["B(9)"]) + reasoner.push(2, ["A(5)"]) + reasoner.finish()
    assert [format_fact(fact) for fact in answers] == ["E(5)@2"]


@pytest.mark.parametrize("braces", ["count[0,inf){ B(Y), Y < X }", "count[0,9]{ B(Y), not C(Y, X) }"])
def test_a_stream_refuses_a_new_value_that_an_aggregate_would_have_to_look_back_for(braces: str) -> None:
    program = tl.Program.parse(f"E(X) :- A(X), {braces} > 0.")
    reasoner = tl.Reasoner(program, "E")
    known = reasoner.push(0, ["A(5)", "B(1)"]) + reasoner.push(1, ["A(5)", "B(1)"])
    assert [format_fact(fact) for fact in known] == ["E(5)@0"]
    with pytest.raises(tl.TidelogError) as raised:
        reasoner.push(2, ["A(6)"])
    assert raised.value.diagnostics[0].code == "TL313"


def test_a_stream_looks_back_over_a_not_that_reads_no_outside_value() -> None:
    program = tl.Program.parse("E(X) :- A(X), duration[0,9]{ B(Y), not C(Y) } >= X.")
    reasoner = tl.Reasoner(program, "E")
    answers = reasoner.push(0, ["B(1)@[0,4]", "C(1)@[3,4]"]) + reasoner.push(5, ["A(3)"]) + reasoner.push(6, ["A(4)"])
    answers += reasoner.finish()
    assert [format_fact(fact) for fact in answers] == ["E(3)@5"]


@pytest.mark.parametrize("timeline", ["rational", "integer"])
def test_a_fact_that_meets_a_value_is_answered_once_it_is_certain(timeline: Literal["rational", "integer"]) -> None:
    program = tl.Program.parse("Q(X, N) :- N = last[0,inf){ Y : C(X, Y) }, Diamondminus[0,2] A(X).")
    reasoner = tl.Reasoner(program, "Q", timeline=timeline)
    assert not reasoner.push(1, ["C(a,1)"]) + reasoner.push(6, ["A(a)"]) + reasoner.advance(7)
    assert [format_fact(fact) for fact in reasoner.advance(9)] == ["Q(a,1)@[6,8]"]


def test_a_late_fact_within_the_delay_changes_only_sums_that_are_not_certain() -> None:
    program = tl.Program.parse("Total(C, S) :- S = sum[0,10]{ A : Pay(C, _, A) }.")
    reasoner = tl.Reasoner(program, "Total", delay=5)
    assert not reasoner.push(0, ["Pay(c,1,50)"]) + reasoner.push(9, ["Pay(c,2,40)"])
    assert not reasoner.push(9, ["Pay(c,3,1)@7"])
    first = reasoner.push(13, ["Pay(c,4,7)@8"])
    assert [format_fact(fact) for fact in first] == ["Total(c,50)@[0,7)"]
    rest = reasoner.push(14, ["Pay(c,5,100)@7"]) + reasoner.finish(17)
    assert reasoner.late_count == 1
    assert [format_fact(fact) for fact in rest] == [
        "Total(c,51)@[7,8)",
        "Total(c,58)@[8,9)",
        "Total(c,98)@[9,10]",
        "Total(c,48)@(10,17]",
    ]


def name_ways(plan: Plan) -> Iterator[str]:
    """Yield in which ways a plan feeds a stream and asks for answers."""
    yield "in bulk" if plan.bulk else "one by one"
    yield "at times" if plan.at else "intervals"
    if plan.longest_delay:
        yield "delayed"
    if plan.interrupted:
        yield "interrupted"
