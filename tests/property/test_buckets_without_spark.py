"""A cluster by hand, split as the distribution of a program says, must answer as one engine does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import tidelog as tl
from behaviour import Behaviour, load_cases
from buckets_by_hand import Evaluate, Outcome, evaluate_by_buckets
from examine import format_as_behaviour
from formula_parts import head_predicates
from judge import Claim
from keyed_programs import keyed_cases
from numeric_random import Numbers, numeric_case
from strategies import BOTH, FORWARD, Case, Features, cases
from test_batch import PARTS
from tidelog.analysis.distribution import Distribution, describe_distribution, plan_distribution
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import INF, TimelineName


def batch(timeline: TimelineName | None) -> Evaluate:
    def evaluate(program: tl.Program, facts: tuple[Fact, ...], query: str) -> Claim:
        model = tl.materialise(program, tl.Dataset.from_facts(facts), query=query, timeline=timeline)
        return Claim(tuple(model), tuple(model.repeats))

    return evaluate


def stream(timeline: TimelineName | None, moments: Sequence[Fraction]) -> Evaluate:
    """Every bucket is told of every moment, whether or not facts come to it; time stops at the last."""

    def evaluate(program: tl.Program, facts: tuple[Fact, ...], query: str) -> Claim:
        background = tl.Dataset.from_facts(fact for fact in facts if fact.interval.lo == -INF)
        reasoner = tl.Reasoner(program, query, timeline=timeline, background=background)
        found: list[Fact] = []
        for t in moments:
            found += reasoner.push(t, [fact for fact in facts if fact.interval.lo == t])
        return Claim(tuple(found + reasoner.finish(moments[-1])), ())

    return evaluate


def judged(act: Callable[[], Claim | Outcome]) -> Claim | Outcome | str:
    try:
        return act()
    except tl.errors.Inconsistent:
        return "inconsistent"
    except tl.errors.Undecided:
        return "undecided"
    except tl.TidelogError as refusal:
        if refusal.diagnostics[0].code != "TL312":
            raise
        return "overflow"


def compared(
    program: tl.Program,
    query: str,
    facts: tuple[Fact, ...],
    evaluate: Evaluate,
    buckets: int,
    seed: int,
    background: Sequence[str] = (),
) -> Distribution | None:
    """Asserts that buckets answer as one engine does. Returns the plan, if there was something to compare."""
    whole = judged(lambda: evaluate(program, facts, query))
    found = judged(
        lambda: evaluate_by_buckets(program, query, facts, evaluate, buckets=buckets, seed=seed, background=background)
    )
    # Sums have a common denominator in each bucket, so one engine may refuse what buckets add, and the other way round.
    if whole == "undecided" or "overflow" in (whole, found):
        return None
    if isinstance(found, str) or isinstance(whole, str):
        # A bucket that cannot decide may come before the one that is inconsistent.
        assert found == whole or (found, whole) == ("undecided", "inconsistent")
        return None
    assert isinstance(found, Outcome)
    assert isinstance(whole, Claim)
    shown = "\n".join(describe_distribution(found.plan))
    assert sorted(map(format_fact, found.claim.facts)) == sorted(map(format_fact, whole.facts)), shown
    assert sorted(map(str, found.claim.repeats)) == sorted(map(str, whole.repeats)), shown
    return found.plan


def kind(plan: Distribution | None) -> str:
    if plan is None:
        return "not compared"
    if all(stage.single for stage in plan.stages):
        return "one bucket"
    return "one stage" if len(plan.stages) == 1 else "stages"


DRAWN = st.tuples(st.sampled_from((2, 3)), st.integers(0, 7), st.sampled_from(((), ("A",))), st.integers(0, 99))


def random_programs(
    strategy: st.SearchStrategy[Case], examples: int, *, streaming: bool = False, only: str | None = None
) -> Counter[str]:
    """Random programs (with `only`: of that kind) through buckets; how many split, and how."""
    kinds: Counter[str] = Counter()

    @settings(max_examples=examples)
    @given(strategy, DRAWN)
    def agree(case: Case, drawn: tuple[int, int, tuple[str, ...], int]) -> None:
        buckets, seed, background, choice = drawn
        program = tl.Program(case.rules, case.features.timeline)
        heads = sorted(head_predicates(case.rules))
        if only:
            heads = [name for name in heads if kind(plan_distribution(program, name, background=background)) == only]
        if not heads:
            return
        query = heads[choice % len(heads)]
        note(format_as_behaviour(f"query {query}, {buckets} buckets, seed {seed}, background {background}", case))
        timeline = case.features.timeline
        ends = {Fraction(t) for f in case.facts for t in (f.interval.lo, f.interval.hi) if abs(t) != INF}
        evaluate = stream(timeline, sorted(ends | {Fraction(0), Fraction(14)})) if streaming else batch(timeline)
        kinds[kind(compared(program, query, case.facts, evaluate, buckets, seed, background))] += 1

    agree()
    return kinds


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_random_programs_split_or_not_answer_the_same(part: Features) -> None:
    kinds = random_programs(cases(part), 6) + random_programs(keyed_cases(part), 16)
    assert kinds["one stage"] >= 6, kinds
    assert kinds["one bucket"] >= 4, kinds


def test_random_programs_in_several_stages_answer_the_same() -> None:
    part = replace(BOTH, negation=True, constraints=True)
    assert random_programs(keyed_cases(part), 360, only="stages")["stages"] >= 10


@pytest.mark.parametrize(
    "part",
    [
        FORWARD,
        replace(FORWARD, negation=True),
        replace(FORWARD, integer=True, denominators=(1,), unbounded=True, negation=True),
    ],
    ids=["forward", "negation", "integers"],
)
def test_random_streams_answer_the_same(part: Features) -> None:
    kinds = random_programs(keyed_cases(part), 20, streaming=True)
    assert kinds["one stage"] >= 8, kinds


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.name)
def test_behaviour_by_buckets(case: Behaviour) -> None:
    program, data = tl.Program.parse(case.rules, syntax=case.syntax), tl.Dataset.parse(case.facts)
    if program.temporal:
        data = data.with_time_arguments(program.temporal.temporal)
    heads = sorted(head_predicates(program.rules))
    for query in case.queries or [name for name in heads if not name.startswith("$")]:
        for buckets in (1, 2, 3):
            compared(program, query, tuple(data), batch(case.timeline), buckets, 0)


#: Parts of the language with numbers that all have a meaning over streams, and none of which repeats for ever.
NUMBERS = (
    Numbers(windows=False, durations=False, always=True, endless_data=False),
    Numbers(constraints=True, endless_data=False),
    Numbers(through_time=True, endless_data=False),
)


@pytest.mark.parametrize("streaming", [False, True], ids=["batch", "stream"])
def test_random_programs_with_numbers_answer_the_same(streaming: bool) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(64):
        choose = Random(seed)
        part = replace(NUMBERS[seed % len(NUMBERS)], keyed=choose.random() < 0.5, closed=streaming)
        case = numeric_case(seed, part)
        program, heads = tl.Program(case.rules, part.timeline), sorted(head_predicates(case.rules))
        moments = sorted({Fraction(t) for f in case.facts for t in (f.interval.lo, f.interval.hi)} | {Fraction(14)})
        evaluate = stream(None, moments) if streaming else batch(None)
        plan = compared(program, choose.choice(heads), case.facts, evaluate, choose.choice((2, 3)), seed)
        kinds[f"{kind(plan)}, keyed" if part.keyed else kind(plan)] += 1
    assert kinds["one stage, keyed"] >= 8, kinds
    assert kinds["one stage"] >= 4, kinds
    assert kinds["stages"] >= 4, kinds


#: Rules at the limits of what splits, with data that tells a wrong plan from a right one.
TRAPS = {
    "negation without a hashed guard": (
        "Down(X) :- Node(X), not Diamondminus[0,5] Beat(X).\nAlert(X) :- Down(X), Near(X, Y), Node(Y).",
        "Node(a)\nNode(b)\nNode(c)\nNear(a,b)\nNear(b,c)\nNear(c,d)\nBeat(a)@3\nBeat(b)@[7,9]",
    ),
    "a left operand that is not there": (
        "H(X) :- N(X), A(X) Since[0,5] B.\nG(X) :- H(X), N(Y).",
        "N(a)@[0,9]\nN(b)@[0,9]\nN(c)@[0,9]\nB@2\nA(a)@[2,6]\nA(c)@[3,4]",
    ),
    "a variable of a left operand only": (
        "H(Y) :- C(Y), A(X) Since[0,5] B(Y).\nBottom :- C(Y), A(X) Since[3,5] D(Y).",
        "C(a)@[0,9]\nC(b)@[0,9]\nB(a)@2\nB(b)@3\nA(x)@[0,5]\nA(y)@[1,7]\nA(z)@[4,9]",
    ),
    "a box over no integer": (
        "H(X) :- Boxminus(0,1) A(X), N(X).\nG(X) :- H(X), N(Y), B(Y).",
        "N(a)@[0,9]\nN(b)@[0,9]\nN(c)@[0,9]\nA(a)@[2,6]\nB(b)@[3,4]",
    ),
    "constants for keys": (
        "H(a, Y) :- B(a, Y).\nH(X, Y) :- B(X, Y), C(b).\nH(c, Y) :- D(Y), not B(c, Y).",
        "B(a,x)@1\nB(b,x)@2\nB(c,y)@3\nC(b)@[2,4]\nC(a)@3\nD(x)@[1,3]\nD(y)@[1,3]",
    ),
    "a head with a constant over anything": ("H(a) :- S(X).\nH(X) :- S(X), T(X).", "S(a)@1\nS(b)@2\nS(c)@3\nT(b)@2"),
    "heads without a body": ("L(base) :- Top.\nL(X) :- S(X), not L0(X).\nL0(a) :- Top.", "S(a)@1\nS(b)@2"),
    "equal variables": ("H(X) :- A(X), B(Y), X = Y, not C(Y).", "A(a)@1\nA(b)@1\nB(a)@1\nB(c)@1\nB(b)@1\nC(b)@1"),
    "a variable that equals a constant": (
        "H(X) :- A(X), B(b), X = b.\nH(X) :- A(X), C(X).",
        "A(a)@1\nA(b)@1\nB(b)@1\nB(a)@1\nC(a)@1\nC(b)@2",
    ),
    "the same predicate at two positions": ("H(X) :- E(X, Y), E(Y, X).", "E(a,b)@1\nE(b,a)@1\nE(b,c)@1\nE(c,c)@1"),
    "paths": (
        "Path(X, Y) :- Edge(X, Y).\nPath(X, Z) :- Path(X, Y), Edge(Y, Z).",
        "Edge(a,b)@[0,5]\nEdge(b,c)@[2,7]\nEdge(c,a)@[4,9]\nEdge(d,a)@1",
    ),
    "input facts of what is derived": (
        "P(X, Y) :- S(X, Y).\nQ(Y) :- P(X, Y), R(Y).",
        "S(a,b)@1\nP(c,b)@[2,3]\nP(d,e)@4\nR(b)@[0,9]\nR(e)@4\nQ(z)@7",
    ),
    "no arguments": ("Q :- not P.\nR(X) :- S(X), Q.", "P@[2,5]\nS(a)@[1,3]\nS(b)@[4,7]"),
    "numbers and names": ("H(X) :- A(X), B(X).", 'A(1)@1\nA("1")@1\nA(1.0)@2\nB(1)@[1,2]\nA(1/2)@1\nB(0.5)@1'),
    "several predicates given": (
        "P(X, Y) :- S(X, Y).\nO(X) :- S(X, X).\nQ(Y) :- P(X, Y), O(Y).",
        "S(a,b)@1\nS(b,b)@1\nS(c,b)@[0,2]\nS(a,a)@4",
    ),
    "a constraint that is kept": ("A(X) :- B(X).\nBottom :- A(X), not C(X).", "B(a)@1\nC(a)@[0,2]\nC(b)@1"),
    "a constraint that is violated": ("A(X) :- B(X).\nBottom :- N(X), N(Y), A(X), not C(X).", "B(a)@1\nN(a)@1\nC(b)@1"),
    "a constraint between keys": ("A(X) :- B(X).\nBottom :- A(X), A(Y), X < Y.", "B(a)@1\nB(b)@1"),
    "a group split over buckets": (
        "N(C, S) :- S = sum{ A : P(C, I, A) }.\nM(I, K) :- K = count{ P(C, I, A) }.\nBoth(C, K) :- N(C, S), M(S, K).",
        "P(a,1,5)@1\nP(a,2,5)@1\nP(b,1,3)@[0,2]\nP(c,5,10)@1\nP(c,2,10)@[1,3]\nP(d,10,2)@1\nP(e,10,2)@1",
    ),
    "empty groups of cards elsewhere": (
        "Idle(C) :- Card(C), count{ P(C, Id) } = 0.\nOther(C) :- Idle(C), Card(D), C != D.",
        "Card(a)@[0,9]\nCard(b)@[0,9]\nCard(c)@[0,9]\nP(a,1)@[2,3]\nP(b,2)@4",
    ),
    "one local name in two braces": (
        "H(C, N) :- Card(C), N = count{ P(C, X) } + count{ Q(X) }.\nG(N) :- N = count{ P(X, Y) } - count{ Q(Y) }.",
        "Card(a)@[0,9]\nCard(b)@[0,9]\nP(a,1)@1\nP(a,2)@[1,3]\nP(b,1)@2\nQ(a)@2\nQ(1)@[1,2]\nQ(b)@1",
    ),
    "no group, in parts": (
        "All(N) :- N = count{ P(C, Id) }.\nSum(S) :- S = sum[0,3]{ I : P(C, I) }.\nLow(M) :- M = min{ Id : P(C, Id) }."
        "\nCards(N) :- N = count{ distinct C : P(C, Id) }.\nSeen(N) :- N = count[0,3]{ distinct C : P(C, Id) }."
        "\nMean(M) :- M = avg{ Id : P(C, Id) }.\nLast(V) :- V = last[0,5]{ Id : P(C, Id) }."
        "\nBusy(C) :- Card(C), count[0,2]{ P(D, Id) } > 2.",
        "P(a,1)@1\nP(b,1)@1\nP(c,2)@[1,3]\nP(a,3)@4\nP(a,x)@4\nP(b,7)@[4,6)\nP(c,1)@(5,6)\nCard(a)@[0,4]\nCard(b)@2",
    ),
    "no group and no data": (
        "All(N) :- N = count{ P(C), not Q(C) }.\nNone(S) :- S = sum{ A : R(A) }.",
        "Q(a)@1\nS(b)@1",
    ),
    "negation inside braces": (
        "H(C, N) :- N = count{ P(C, X), not Q(X) }.\nG(C, N) :- Card(C), N = count{ P(C, X), not Q(C) }.",
        "P(a,1)@[0,5]\nP(a,2)@[1,3]\nP(b,2)@[0,5]\nQ(2)@[2,4]\nQ(a)@3\nCard(a)@[0,9]\nCard(b)@[0,9]",
    ),
    "a test inside braces with a value from outside": (
        "H(C, N) :- Limit(C, L), N = count{ P(D, V), V > L }.\nG(C, N) :- Limit(C, L), N = count{ P(C, V), V > L }.",
        "P(a,1)@[0,5]\nP(a,2)@[1,3]\nP(b,2)@[0,5]\nP(b,9)@2\nLimit(a,1)@[0,9]\nLimit(b,5)@[0,3]",
    ),
    "equal variables inside braces": (
        "H(X, Z, N) :- A(X), B(Z), N = count{ P(X, V), P(Z, V), X = Z }.",
        "A(a)@1\nA(b)@1\nB(a)@1\nB(c)@1\nP(a,1)@1\nP(b,2)@1\nP(c,1)@1\nP(a,3)@1",
    ),
    "a computed key": (
        "D(Y, N) :- P(X, N), Y = N * 2.\nH(Y) :- D(Y, N), R(Y)."
        "\nG(N) :- P(X, N), M = N + 1, R(M).\nF(M) :- P(X, N), M = N + 1.",
        "P(a,1)@[0,5]\nP(b,2)@[1,3]\nP(c,1)@[4,8]\nR(2)@[0,9]\nR(4)@2\nR(3)@1",
    ),
    "constraints with aggregates that are kept": (
        "A(C) :- P(C, V).\nBottom :- min{ V : P(C, V) } > 1, Q(_).\nBottom :- Card(C), count{ P(C, V) } = 0.",
        "P(a,1)@[0,9]\nP(b,5)@[0,9]\nP(c,5)@[0,9]\nQ(x)@3\nCard(a)@1\nCard(b)@2",
    ),
    "constraints with aggregates that are violated": (
        "A(C) :- P(C, V).\nBottom :- count{ P(C, V) } = 3.",
        "P(a,1)@[0,9]\nP(b,5)@[0,9]\nP(c,5)@[4,9]",
    ),
    "an alert and then none for a while": (
        "Alert(X) :- Bad(X), not Diamondminus[1,3] Alert(X).\nCalm(X) :- Bad(X), count[1,4]{ Alert(X) } = 0."
        "\nAll(N) :- N = count[0,9]{ Alert(X) }.",
        "Bad(a)@[0,7]\nBad(b)@2\nBad(b)@4\nBad(c)@5",
    ),
    "a constraint with copied guards": (
        "A(X) :- B(X), C(Y).\nBottom :- C(X), not A(X).",
        "C(a)@1\nC(b)@1\nB(a)@1\nB(b)@1",
    ),
}


@pytest.mark.parametrize("timeline", ["rational", "integer"])
@pytest.mark.parametrize("rules, facts", TRAPS.values(), ids=TRAPS.keys())
def test_traps(rules: str, facts: str, timeline: TimelineName) -> None:
    data = tuple(tl.Dataset.parse(facts))
    program = tl.Program.parse(rules)
    for query in sorted(head_predicates(program.rules)):
        for seed in range(3):
            for background in ((), ("N", "Node", "Near", "Connect", "C")):
                compared(program, query, data, batch(timeline), 3, seed, background)


def test_what_repeats_for_ever_stays_with_its_readers() -> None:
    program = tl.Program.parse(
        "P(X, Y) :- S(X, Y), T(X).\nP(X, Y) :- Diamondminus[3,3] P(X, Y).\nQ(Y) :- P(X, Y), R(Y)."
    )
    assert len(plan_distribution(program, "Q").stages) == 2
    (stage,) = plan_distribution(program, "Q", endless={"P"}).stages
    assert (stage.split_by, stage.key["P"], stage.key["T"]) == ("y", 1, None)
    data = tuple(tl.Dataset.parse("S(a,b)@0\nS(c,d)@1\nT(a)@[0,1]\nT(c)@[0,1]\nR(b)@[0,inf)\nR(d)@[2,9]"))
    plan = compared(program, "Q", data, batch(None), 3, 0)
    assert plan is not None
    assert len(plan.stages) == 1
