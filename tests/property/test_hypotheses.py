"""Hypothetical answers: the paper's examples, its propositions on random programs, and everything around them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

import pytest

import tidelog as tl
from hypothetical_oracle import parse_printed_fact
from hypothetical_random import LAST, Case, compare_with_definitions, delay_of, random_case
from tidelog.hypothetical import Hypotheses, HypothesisOptions, Rejected, SupportedAnswer
from tidelog.hypothetical.answer_changes import ChangeTracker
from tidelog.hypothetical.comparison_constraints import is_satisfiable
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.general_hypotheses import GeneralHypotheses
from tidelog.hypothetical.regular_hypotheses import RegularHypotheses
from tidelog.hypothetical.session import AnyFact
from tidelog.hypothetical.supported_answers import format_atom
from tidelog.language.syntax import Comparison, Constant, Variable
from tidelog.timeline.interval import TimelineName

TURBINES = """
Flag(X, T) :- Temp(X, high, T).
Cool(X, T+1) :- Flag(X, T), Flag(X, T+1).
Shdn(X, T+1) :- Cool(X, T), Flag(X, T+1).
Malf(X, T-2) :- Shdn(X, T).
"""
DEFECTIVE = TURBINES + 'Defective(X, 0) :- Temp(X, high, T1), Temp(X, "n/a", T2).\n'

#: A certain or possible answer: X, T, times of the evidence, times of the hypotheses.
Turbine = tuple[object, object, list[int], list[int]]


def tdl(text: str) -> tl.Program:
    return tl.Program.parse(text, syntax="tdl")


def turbine(entries: Iterable[SupportedAnswer]) -> list[Turbine]:
    return [
        (
            e.bindings.get("X"),
            e.bindings.get("T"),
            [parse_printed_fact(f)[2] for f in e.evidence],
            [parse_printed_fact(f)[2] for f in e.hypotheses],
        )
        for e in entries
    ]


# The paper's examples


def test_example_1_and_3_without_delay() -> None:
    arrivals = [(t, f"Temp(wt2,high,{t})") for t in range(3)]
    seen = list(tl.hypotheses(tdl(TURBINES), "Malf(X,T)", arrivals))
    assert [turbine(moment.hypothetical) for moment in seen] == [
        [("wt2", 0, [0], [1, 2])],
        [("wt2", 0, [0, 1], [2]), ("wt2", 1, [1], [2, 3])],
        [("wt2", 1, [1, 2], [3]), ("wt2", 2, [2], [3, 4])],
    ]
    assert [turbine(moment.answers) for moment in seen] == [[], [], [("wt2", 0, [0, 1, 2], [])]]


def test_example_2_hypotheses_without_evidence_are_not_shown() -> None:
    session = Hypotheses(tdl(TURBINES), "Malf(X,T)")
    session.push(0, ["Temp(wt2,high,0)"])
    session.push(1, ["Temp(wt2,high,1)"])
    assert 3 not in [entry.bindings["T"] for entry in session.hypothetical()]


def test_example_3_the_query_resolves_to_one_schema() -> None:
    (schema,) = Hypotheses(tdl(TURBINES), "Malf(X,T)").schemas
    assert [format_atom(atom) for atom in schema.premises] == ["Temp(X,high,T)", "Temp(X,high,T+1)", "Temp(X,high,T+2)"]


def test_examples_4_and_5_a_fact_may_still_come_within_its_delay() -> None:
    session = Hypotheses(tdl(TURBINES), "Malf(X,T)", delay={"Temp": 1})
    session.push(0, ["Temp(wt4,high,0)"])
    session.advance(1)
    (entry,) = session.hypothetical()
    assert turbine([entry]) == [("wt4", 0, [0], [1, 2])]
    assert entry.decided_by == 3


def test_example_6_local_unifiers() -> None:
    session = Hypotheses(tdl("q(X,T) :- p(X,T), r(Y,T). #temporal p/2."), "q(X,T)", delay={"p": 2})
    (answer,) = session.push(0, ["p(a,0)", "r(b,0)"])
    assert (answer.bindings, answer.evidence) == ({"X": "a", "T": 0}, ("p(a,0)", "r(b,0)"))
    (entry,) = session.hypothetical()
    assert (entry.bindings, entry.evidence, entry.hypotheses) == ({"T": 0}, ("r(b,0)",), ("p(X,0)",))
    assert entry.decided_by == 2
    (late,) = session.push(2, ["p(c,0)"])
    assert late.bindings == {"X": "c", "T": 0}
    assert session.hypothetical() == []


@pytest.mark.parametrize(
    "second, answers, possible",
    [
        ([], [], []),
        (["Temp(wt2,high,1)"], [], [("wt2", 0, [0, 1], [2])]),
        (["Temp(wt2,high,1)", "Temp(wt2,high,2)"], [("wt2", 0, [0, 1, 2], [])], []),
    ],
)
def test_example_7_with_a_delay_of_one(second: list[str], answers: list[Turbine], possible: list[Turbine]) -> None:
    session = Hypotheses(tdl(TURBINES), "Malf(X,T)", delay={"Temp": 1})
    session.push(0, ["Temp(wt2,high,0)"])
    assert turbine(session.hypothetical()) == [("wt2", 0, [0], [1, 2])]
    session.push(1, [])
    assert turbine(session.hypothetical()) == [("wt2", 0, [0], [1, 2])]
    assert turbine(session.push(2, second)) == answers
    assert [entry for entry in turbine(session.hypothetical()) if entry[1] == 0] == possible


def test_example_8_an_open_time() -> None:
    session = Hypotheses(tdl(DEFECTIVE), "Defective(X,T)")
    session.push(0, ["Temp(wt2,high,0)"])
    (entry,) = session.hypothetical()
    assert entry.bindings == {"X": "wt2", "T": 0}
    assert (entry.evidence, entry.hypotheses) == (("Temp(wt2,high,0)",), ('Temp(wt2,"n/a",T2)',))
    assert entry.decided_by is None
    (answer,) = session.push(7, ['Temp(wt2,"n/a",7)'])
    assert answer.evidence == ("Temp(wt2,high,0)", 'Temp(wt2,"n/a",7)')
    assert list(session.push(8, ["Temp(wt2,high,8)"])) == session.hypothetical() == []


def test_hypotheses_that_await_more_than_they_need_are_not_shown() -> None:
    rules = "q(0) :- p(a,0), p(b,1), p(c,2). q(0) :- p(a,0), p(c,2), p(d,3). #temporal p/2, q/1."
    session = Hypotheses(tdl(rules), "q(T)", delay={"p": 3})
    session.push(0, ["p(a,0)"])
    assert [entry.hypotheses for entry in session.hypothetical()] == [("p(b,1)", "p(c,2)"), ("p(c,2)", "p(d,3)")]
    session.push(1, ["p(b,1)"])
    assert [entry.hypotheses for entry in session.hypothetical()] == [("p(c,2)",)]
    session.push(3, ["p(d,3)"])
    assert [entry.evidence for entry in session.hypothetical()] == [("p(a,0)", "p(b,1)"), ("p(a,0)", "p(d,3)")]
    answers = session.push(5, ["p(c,2)"])
    assert [len(answer.evidence) for answer in answers] == [3, 3]


# By the definitions


@pytest.mark.parametrize("seed", range(120))
def test_random_programs_agree_with_the_definitions(seed: int) -> None:
    compare_with_definitions(random_case(seed))


@pytest.mark.parametrize("seed", range(120, 160))
def test_the_store_of_hypotheses_makes_no_difference(seed: int) -> None:
    """A limit that is never reached turns the quick ways off."""
    compare_with_definitions(random_case(seed), max_open=10**9)


@pytest.mark.parametrize("seed", range(160, 200))
def test_answers_without_evidence_agree_with_the_definitions(seed: int) -> None:
    compare_with_definitions(random_case(seed), unsupported=True)


def test_random_cases_cover_every_kind_of_store() -> None:
    stores = [Hypotheses(tdl(c.program), c.query, delay=c.delays)._store for c in map(random_case, range(160))]
    assert sum(isinstance(store, RegularHypotheses) for store in stores) >= 10
    assert sum(isinstance(store, GeneralHypotheses) and store._orders is not None for store in stores) >= 15
    assert sum(isinstance(store, GeneralHypotheses) and store.minimality.can_compete for store in stores) >= 50


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("seed", range(200, 230))
def test_with_everything_arrived_answers_are_those_of_batch_reasoning(seed: int) -> None:
    case = _punctual(random_case(seed))
    program = tdl(case.program)
    predicate = case.query.partition("(")[0]
    arity = program.predicates[predicate]
    names = ["X", "Y"][:arity]
    answers = [
        answer
        for moment in tl.hypotheses(program, f"{predicate}({','.join([*names, 'T'])})", case.arrivals, until=LAST + 1)
        for answer in moment.answers
    ]
    given = {
        (*(answer.bindings[name] for name in names), t)
        for answer in answers
        for t in ([answer.bindings["T"]] if "T" in answer.bindings else range(-9, 20))
    }
    facts = tl.Dataset.from_facts(
        f"{name}({','.join(map(str, args))})@{t}" if args else f"{name}@{t}"
        for name, args, t in (parse_printed_fact(fact) for _, fact in case.arrivals)
    )
    model = tl.materialise(program, facts, query=[predicate], between=(-9, 19))
    held = {(*fact.args, t) for fact in model for t in range(-9, 20) if fact.interval.lo <= t <= fact.interval.hi}
    assert {answer for answer in given if -9 <= int(str(answer[-1])) <= 19} == held, str(case)


def _punctual(case: Case) -> Case:
    """The case without delays: every fact comes at its time."""
    arrivals = sorted({(parse_printed_fact(fact)[2], fact) for _, fact in case.arrivals})
    return replace(case, delays=(), arrivals=tuple(arrivals))


@pytest.mark.parametrize("seed", range(40))
def test_proposition_2_every_possible_answer_is_one_of_some_continuation(seed: int) -> None:
    case = random_case(seed)
    program = tdl(case.program)
    session = Hypotheses(program, case.query, delay=case.delays)
    for tau in range(LAST + 2):
        session.push(tau, [fact for arrival, fact in case.arrivals if arrival == tau])
        for entry in session.hypothetical()[:5]:
            if entry.conditions:
                continue
            assert any(
                _becomes_certain(
                    Hypotheses.load(session.save()),
                    entry,
                    facts,
                    case,
                )
                for facts in _instances(entry.hypotheses, tau)
            ), (tau, entry, str(case))


def _instances(hypotheses: tuple[str, ...], tau: int) -> Iterator[list[str]]:
    """Open variables stand for constants, one of them new, and for a time to come."""
    text = ";".join(hypotheses)
    names = sorted(set(re.findall(r"[(,]([A-Z_]\w*)(?=,)", text)))
    times = set(re.findall(r"[(,]([A-Z_]\w*)(?:[+-]\d+)?\)", text))
    for values in product(["new", "a", "b"], repeat=len(names)):
        found = text
        for name, value in zip(names, values, strict=True):
            found = re.sub(rf"\b{name}\b", value, found)
        for time in times:
            found = re.sub(rf"\b{time}([+-]\d+)?\)", lambda m: f"{tau + 5 + int(m[1] or 0)})", found)
        yield found.split(";")


def _becomes_certain(future: Hypotheses, entry: SupportedAnswer, facts: list[str], case: Case) -> bool:
    coming = sorted((max(parse_printed_fact(fact)[2], future.tau + 1), fact) for fact in facts)
    if any(
        arrival > parse_printed_fact(fact)[2] + delay_of(parse_printed_fact(fact), case.delays)
        for arrival, fact in coming
    ):
        return False
    given = [answer for arrival, fact in coming for answer in future.push(arrival, [fact])]
    return any(answer.bindings.items() >= entry.bindings.items() for answer in given)


def test_many_facts_of_one_moment_take_polynomial_time() -> None:
    """Without delays, twelve premises of one time are resolved in order: no set of them is a hypothesis of its own."""
    body = ", ".join(f"p{i}(X{i},T)" for i in range(12))
    session = Hypotheses(tdl(f"q(T+1) :- {body}, p0(X,T+1)."), "q(T)")
    session.push(0, [f"p{i}(a,0)" for i in reversed(range(12))])
    assert session.open <= 12
    assert len(session.hypothetical()) == 1
    assert [answer.bindings for answer in session.push(1, ["p0(b,1)"])] == [{"T": 1}]


@pytest.mark.parametrize("delay", [["3"], ["3", "Temp(wt1,_)=5", "Temp(wt2,high)=4"]])
def test_the_regular_and_the_general_store_agree(delay: list[str]) -> None:
    """The quick way for the turbines, and the general one, on a larger stream with facts that come twice."""
    rng = random.Random(5)
    arrivals: list[list[str]] = [[] for _ in range(60)]
    for t in range(50):
        for turbine_number in range(8):
            if rng.random() < 0.8:
                for _ in range(rng.choice([1, 1, 2])):
                    arrivals[t + rng.randint(0, 3)].append(f"Temp(wt{turbine_number},high,{t})")
    quick = Hypotheses(tdl(TURBINES), "Malf(X,T)", delay=delay)
    general = Hypotheses(tdl(TURBINES), "Malf(X,T)", delay=delay, options=HypothesisOptions(max_open=10**9))
    assert isinstance(quick._store, RegularHypotheses)
    assert isinstance(general._store, GeneralHypotheses)
    for tau, batch in enumerate(arrivals):
        a, b = (sorted(map(str, session.push(tau, batch))) for session in (quick, general))
        assert a == b
        assert [e.to_json() for e in quick.hypothetical()] == [
            {k: v for k, v in e.to_json().items() if k != "confidence"} for e in general.hypothetical()
        ]
    assert quick.open == general.open == 0


def test_memory_holds_only_facts_within_the_delay() -> None:
    session = Hypotheses(tdl(TURBINES), "Malf(X,T)", delay="Temp(wt1,_)=2", options=HypothesisOptions(max_open=10**9))
    other = Hypotheses(tdl(DEFECTIVE), "Malf(X,T)", delay=2)
    sizes = []
    for tau in range(300):
        for each in (session, other):
            each.push(tau, [f"Temp(wt{i},high,{tau})" for i in range(5)])
        sizes.append((session.open, other.open))
    assert max(sizes) == max(sizes[:20])
    store = session._store
    assert isinstance(store, GeneralHypotheses)
    assert len(store.arrived) <= 3
    assert len(store._buckets) <= 8


# Recursion

CHAIN = """
Live(X, T) :- Start(X, T).
Live(X, T+1) :- Live(X, T), Ping(X, T+1).
"""


def test_recursion_without_a_bound_names_the_cycle() -> None:
    rules = "A(X,T) :- B(X,T). B(X,T+1) :- A(X,T), C(X,T). B(X,T) :- D(X,T)."
    with pytest.raises(tl.TidelogError, match="A -> B -> A is a cycle"):
        Hypotheses(tdl(rules), "A(X,T)")


@pytest.mark.parametrize("bound, longest", [({"depth": 3}, 2), ({"horizon": 3}, 3)])
def test_a_bound_is_sound_and_complete_up_to_it(bound: dict[str, int], longest: int) -> None:
    session = Hypotheses(tdl(CHAIN), "Live(X,T)", options=HypothesisOptions(**bound))  # type: ignore[arg-type]
    assert len(session.schemas) == longest + 1
    times = [answer.bindings["T"] for answer in session.push(0, ["Start(a,0)"])]
    for tau in range(1, 7):
        times += [answer.bindings["T"] for answer in session.push(tau, [f"Ping(a,{tau})"])]
    assert times == list(range(longest + 1))


def test_a_horizon_does_not_limit_recursion_at_one_time() -> None:
    rules = "Path(X,Y,T) :- Edge(X,Y,T). Path(X,Z,T) :- Path(X,Y,T), Edge(Y,Z,T). #temporal Edge/3."
    with pytest.raises(tl.TidelogError, match="does not terminate within the horizon"):
        Hypotheses(tdl(rules), "Path(X,Y,T)", options=HypothesisOptions(horizon=5))
    session = Hypotheses(tdl(rules), "Path(X,Y,T)", options=HypothesisOptions(depth=3))
    paths = {(a.bindings["X"], a.bindings["Y"]) for a in session.push(0, ["Edge(a,b,0)", "Edge(b,c,0)", "Edge(c,d,0)"])}
    assert paths == {("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("b", "d"), ("a", "d")}


# Delays


def test_delays_by_pattern() -> None:
    delays = Delays.parse(["1", "Temp=2", "Temp(wt4,_)=5", "Temp(_,low,_)=0"], {"Temp": 2, "Wind": 1})
    assert delays.of("Wind", ("x",)) == 1
    assert delays.of("Temp", ("wt1", "high")) == 2
    assert delays.of("Temp", ("wt4", "high")) == 5
    assert delays.of("Temp", ("wt4", "low")) == 5, "of two patterns with one constant each, the longer delay"
    assert delays.of("Temp", ("wt1", "low")) == 0
    assert delays.of("Temp", (None, "low")) == 5
    assert delays.of("Temp", ("wt1", None)) == 2


@pytest.mark.parametrize("delay", ["Tmp=5", "Temp=-1", "Temp=x", "Temp(a)=1", "Temp=1/2", "Temp(=1"])
def test_unreadable_delays_are_refused(delay: str) -> None:
    with pytest.raises(tl.TidelogError) as caught:
        Hypotheses(tdl(TURBINES), "Malf(X,T)", delay=delay)
    assert caught.value.diagnostics[0].code == "TL703"


def test_delays_that_depend_on_constants() -> None:
    session = Hypotheses(tdl(TURBINES), "Malf(X,T)", delay=["Temp(wt4,_)=2"])
    session.push(0, ["Temp(wt2,high,0)", "Temp(wt4,high,0)"])
    assert [(e.bindings["X"], e.decided_by) for e in session.hypothetical()] == [("wt2", 2), ("wt4", 4)]
    session.advance(2)
    assert [e.bindings["X"] for e in session.hypothetical()] == ["wt4"]
    assert len(session.push(3, ["Temp(wt4,high,1)", "Temp(wt4,high,2)"])) == 1


# Bad input


def test_facts_out_of_time_are_counted_and_the_run_continues() -> None:
    found: list[Rejected] = []
    session = Hypotheses(
        tdl(TURBINES), "Malf(X,T)", delay={"Temp": 1}, options=HypothesisOptions(on_rejected=found.append)
    )
    session.push(3, ["Temp(a,high,3)", "Temp(a,high,1)", "Temp(a,high,9)", "Flag(a,3)", "Other(a,3)", "Temp(a,low,0)"])
    session.push(2, ["Temp(a,high,2)"])
    assert session.rejected == {"late": 2, "future": 1, "derived": 1, "backwards": 1}
    assert [(r.why, r.arrival, r.text) for r in found] == [
        ("late", 3, "Temp(a,high,1)"),
        ("future", 3, "Temp(a,high,9)"),
        ("derived", 3, "Flag(a,3)"),
        ("late", 3, "Temp(a,low,0)"),
        ("backwards", 2, "Temp(a,high,2)"),
    ]
    session.push(4, ["Temp(a,high,4)"])
    assert len(session.push(5, ["Temp(a,high,5)"])) == 1


def test_a_batch_with_an_unreadable_fact_is_rejected_as_a_whole() -> None:
    session = Hypotheses(tdl("Hot(X,T) :- Temp(X,high,T). #temporal Temp/3."), "Hot(X,T)")
    with pytest.raises(tl.TidelogError):
        session.push(0, ["Temp(a,high,0)", "Temp(a"])
    assert len(session.push(0, ["Temp(a,high,0)"])) == 1


def test_a_fact_that_arrives_twice_counts_once() -> None:
    for limit in (None, 10**9):
        session = Hypotheses(tdl(TURBINES), "Malf(X,T)", delay=2, options=HypothesisOptions(max_open=limit))
        facts = [f"Temp(a,high,{t})" for t in range(3)]
        assert len(session.push(2, facts)) == 1
        assert [e.bindings["T"] for e in session.hypothetical()] == [1, 2]
        assert len(session.push(2, facts)) == 0
        assert [e.bindings["T"] for e in session.hypothetical()] == [1, 2]


@pytest.mark.parametrize(
    "fact",
    [
        ("Temp", ("a",), 0),
        ("Temp", ("a", "high"), -1),
        "Temp(a,high)",
        "Temp(a,high,x)",
        "Temp(a,high)@[0,3]",
        "Temp(a",
        "Temp(a,high)@1/2",
    ],
)
def test_unreadable_facts_are_refused(fact: AnyFact) -> None:
    with pytest.raises(tl.TidelogError):
        Hypotheses(tdl(TURBINES), "Malf(X,T)").push(3, [fact])


@pytest.mark.parametrize(
    "rules, query, code",
    [
        (TURBINES, "Malv(X,T)", "TL302"),
        (TURBINES, "Malf", "TL102"),
        (TURBINES, "Malf(X,T), Flag(X,T)", "TL001"),
        (TURBINES, "Malf(X,b)", "TL107"),
        ("A(X,T) :- B(X,T+1), not C(X,T). A(X,T) :- C(X,T).", "A(X,T)", "TL702"),
    ],
)
def test_unsupported_queries_are_refused(rules: str, query: str, code: str) -> None:
    with pytest.raises(tl.TidelogError) as caught:
        Hypotheses(tdl(rules), query)
    assert caught.value.diagnostics[0].code == code


def test_negation_that_the_query_does_not_need_is_accepted() -> None:
    Hypotheses(tdl(TURBINES + "Calm(X,T) :- Temp(X,low,T), not Flag(X,T)."), "Malf(X,T)")


# The rest of the language


def test_no_fact_is_before_time_0_but_an_answer_may_be() -> None:
    session = Hypotheses(tdl(TURBINES), "Malf(X,T)", delay=5)
    session.push(0, ["Temp(a,high,0)"])
    assert [e.bindings["T"] for e in session.hypothetical()] == [0]
    early = Hypotheses(tdl("q(T-1) :- p(T)."), "q(T)")
    assert [a.bindings for a in early.push(0, ["p(0)"])] == [{"T": -1}]


def test_facts_of_the_program_are_not_evidence() -> None:
    rules = tdl("Hot(X,T) :- Sensor(X), Temp(X,high,T), Temp(X,high,T+1). Sensor(a). Temp(a,high,0).")
    session = Hypotheses(rules, "Hot(X,T)")
    assert list(session.push(0, [])) == session.hypothetical() == []
    (answer,) = session.push(1, ["Temp(a,high,1)", "Temp(b,high,1)"])
    assert (answer.bindings, answer.evidence) == ({"X": "a", "T": 0}, ("Temp(a,high,1)",))
    assert [e.hypotheses for e in session.hypothetical()] == [("Temp(a,high,2)",)]


def test_answers_that_need_no_facts_are_given_at_once() -> None:
    session = Hypotheses(tdl("q(X,T+1) :- p(X,T). p(a,3)."), "q(X,T)")
    assert [(a.bindings, a.evidence) for a in session.advance(0)] == [({"X": "a", "T": 4}, ())]
    assert list(session.advance(1)) == []


def test_rigid_facts_arrive_at_time_0() -> None:
    rules = tdl("Hot(X,T) :- Sensor(X), Temp(X,high,T+1). #rigid Sensor/1.")
    session = Hypotheses(rules, "Hot(X,T)")
    session.push(0, ["Sensor(a)"])
    assert [(e.evidence, e.hypotheses) for e in session.hypothetical()] == [(("Sensor(a)",), ("Temp(a,high,T+1)",))]
    assert len(session.push(5, ["Temp(a,high,5)", "Sensor(b)"])) == 1
    assert session.rejected == {"late": 1}


def test_background_facts_are_part_of_the_program() -> None:
    rules = tdl("Hot(X,T) :- Sensor(X), Temp(X,high,T), Temp(X,high,T+1). #rigid Sensor/1.")
    session = Hypotheses(rules, "Hot(X,T)", background=tl.Dataset.parse("Sensor(a)"))
    session.push(0, ["Temp(a,high,0)", "Temp(b,high,0)"])
    assert [e.bindings["X"] for e in session.hypothetical()] == ["a"]


def test_a_query_without_rules_has_no_answers() -> None:
    session = Hypotheses(tdl("q(a,T) :- p(T), r(T+1)."), "q(b,T)")
    assert session.schemas == ()
    assert list(session.push(0, ["p(0)"])) == session.hypothetical() == []


def test_equal_numbers_match_however_they_are_written() -> None:
    session = Hypotheses(tdl("q(X,T) :- p(X,5,T), p(X,1/2,T+1)."), "q(X,T)")
    session.push(0, ["p(7,5.0,0)", "p(007,5,0)"])
    assert [e.hypotheses for e in session.hypothetical()] == [("p(7,0.5,1)",)]
    assert [a.to_json()["bindings"] for a in session.push(1, ["p(7,0.5,1)"])] == [{"X": 7, "T": 0}]


def test_comparisons_restrict_what_is_awaited() -> None:
    rules = tdl("Up(X,T) :- Level(X,A,T), Level(X,B,T+1), A < B, B > 3.")
    session = Hypotheses(rules, "Up(X,T)")
    session.push(0, ["Level(s,5,0)"])
    (entry,) = session.hypothetical()
    assert (entry.hypotheses, entry.conditions) == (("Level(s,B,1)",), ("5 < B", "B > 3"))
    assert len(session.push(1, ["Level(s,4,1)", "Level(s,6,1)"])) == 1


def test_variables_of_the_query_are_not_captured_by_rules() -> None:
    """X and Y of the query are equal here, and X of the rule is another variable."""
    session = Hypotheses(tdl("q(Y,Y,T) :- e(T), g(Y,X,T+1)."), "q(X,Y,T)")
    session.push(0, ["e(0)"])
    (entry,) = session.hypothetical()
    assert (entry.bindings, entry.hypotheses, entry.conditions) == ({"T": 0}, ("g(Y,X1,1)",), ("X = Y",))


def test_symmetric_variables_give_one_hypothesis() -> None:
    session = Hypotheses(tdl("q(T) :- p(X,T), p(Y,T+1), p(X,T+1), p(Y,T), X != Y."), "q(T)", delay=1)
    session.push(1, ["p(a,0)", "p(b,0)"])
    assert [entry.hypotheses for entry in session.hypothetical() if entry.bindings] == [("p(a,1)", "p(b,1)")]


@pytest.mark.parametrize(
    "comparisons, possible",
    [
        ([("X", "<", "Y"), ("Y", "<", "X")], False),
        ([("X", "<=", "Y"), ("Y", "<=", "X")], True),
        ([("X", "<=", "Y"), ("Y", "<=", "X"), ("X", "!=", "Y")], False),
        ([("X", "<", "b"), ("X", ">", "a")], True),
        ([("X", "<", "a"), ("X", ">", "b")], False),
        ([("X", "=", "a"), ("X", "=", "b")], False),
        ([("X", "!=", "X")], False),
    ],
)
def test_satisfiable_comparisons(comparisons: list[tuple[str, str, str]], possible: bool) -> None:
    def term(name: str) -> Variable | Constant:
        return Variable(name) if name.isupper() else Constant(name)

    assert is_satisfiable(Comparison(op, term(a), term(b)) for a, op, b in comparisons) is possible


# DatalogMTL


def test_datalogmtl_through_the_translation() -> None:
    program = tl.Program.parse("Hot(X) :- Boxminus[0,2] Temp(X, high).")
    session = Hypotheses(program, "Hot(X,T)", timeline="integer", delay={"Temp": 1})
    session.push(0, ["Temp(a,high)@0"])
    assert [(e.bindings["T"], e.hypotheses) for e in session.hypothetical()] == [
        (2, ("Temp(a,high,1)", "Temp(a,high,2)"))
    ]
    session.push(1, ["Temp(a,high)@1"])
    assert [a.bindings for a in session.push(3, ["Temp(a,high,2)"])] == [{"X": "a", "T": 2}]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    "rule",
    [
        "Q(X) :- Diamondminus[1,3] P(X), R(X).",
        "Q(X) :- P(X) Since[0,2] R(X).",
        "Q(X) :- P(X) Since(1,4) R(X).",
        "Boxplus[0,2] Q(X) :- Boxminus[0,1] P(X), Diamondminus[0,1] Boxminus[0,1] R(X).",
        "Q(X) :- P(X) Until[1,2] R(X), Boxplus[0,1] P(X).",
        "Boxminus[1,2] Q(X) :- Diamondplus[0,1] P(X), R(X).",
        "Q(X) :- Boxminus(0,1) P(X), R(X).",
        "Q(X) :- Diamondminus(0,1) P(X), R(X).",
    ],
)
def test_datalogmtl_gives_the_answers_of_batch_reasoning(rule: str) -> None:
    program = tl.Program.parse(rule)
    rng = random.Random(rule)
    facts = [(name, x, t) for name in "PR" for x in "ab" for t in range(9) if rng.random() < 0.7]
    session = Hypotheses(program, "Q(X,T)", timeline="integer", delay=2)
    arrivals = sorted((t + rng.randint(0, 2), f"{name}({x},{t})") for name, x, t in facts)
    given = [
        (a.bindings["X"], a.bindings["T"])
        for tau in range(12)
        for a in session.push(tau, [fact for arrival, fact in arrivals if arrival == tau])
    ]
    model = tl.materialise(
        program, tl.Dataset.from_facts(f"{n}({x})@{t}" for n, x, t in facts), query=["Q"], timeline="integer"
    )
    held = {(f.args[0], t) for f in model for t in range(-9, 30) if f.interval.lo <= t <= f.interval.hi}
    assert set(given) == held


@pytest.mark.parametrize(
    "rules, timeline, message",
    [
        ("Q(X) :- P(X).", None, "the rational timeline is not supported by hypothetical answers"),
        (
            "Q(X) :- Diamondminus[0,inf) P(X).",
            "integer",
            r"Diamondminus\[0,inf\) is not supported by hypothetical answers",
        ),
        (
            "Q(X) :- R(X), Boxminus[1,inf) P(X).",
            "integer",
            r"Boxminus\[1,inf\) is not supported by hypothetical answers",
        ),
        ("Q(X) :- P(X) Since[0,inf) R(X).", "integer", r"Since\[0,inf\) is not supported by hypothetical answers"),
    ],
)
def test_unsupported_datalogmtl_is_refused(rules: str, timeline: TimelineName | None, message: str) -> None:
    with pytest.raises(tl.TidelogError, match=message):
        Hypotheses(tl.Program.parse(rules), "Q(X,T)", timeline=timeline)


def test_unsupported_rules_that_the_query_does_not_need_are_accepted() -> None:
    program = tl.Program.parse("Q(X) :- P(X). S(X) :- Diamondminus[0,inf) Q(X).")
    assert len(Hypotheses(program, "Q(X,T)", timeline="integer").schemas) == 1


# Confidence


def test_confidence_by_given_chances() -> None:
    """A fact is true with probability 0.8; it arrives at once with 0.5 and one later with 0.3, and is lost with 0.2."""
    session = Hypotheses(
        tdl("q(T) :- p(T), p(T+1)."),
        "q(T)",
        delay={"p": 1},
        options=HypothesisOptions(probability={"p": 0.8}, chances={"p": "0.5:0.3"}),
    )
    session.push(0, ["p(0)"])
    assert session.hypothetical()[0].confidence == pytest.approx(0.8 * 0.8)
    session.advance(1)
    assert session.hypothetical()[0].confidence == pytest.approx(0.8 * 0.3 / (1 - 0.8 * 0.5))


def test_facts_of_probability_0_have_no_confidence() -> None:
    session = Hypotheses(tdl("q(T) :- p(T), p(T+1)."), "q(T)", options=HypothesisOptions(probability=0))
    session.push(0, ["p(0)"])
    assert session.hypothetical()[0].confidence == 0


def test_confidence_by_delays_seen_so_far() -> None:
    session = Hypotheses(tdl("q(T) :- p(T), p(T+1)."), "q(T)", delay={"p": 1}, options=HypothesisOptions(probability=1))
    session.push(0, ["p(0)"])
    session.push(2, ["p(1)"])
    assert session.confidence is not None
    assert session.confidence.counts == {"p": [1, 1]}
    # p(2) could have arrived. Two delays were seen, and each of the two allowed delays counts once more.
    (entry,) = [e for e in session.hypothetical() if e.hypotheses == ("p(2)",)]
    assert entry.confidence == pytest.approx(0.5 / (1 - 0.5))


def test_confidence_is_the_share_of_continuations_that_confirm_an_answer() -> None:
    """Over many streams drawn from the model, the share of confirmed hypotheses is their confidence."""
    rng = random.Random(11)
    expected, confirmed, n = 0.0, 0, 500
    program = tdl("q(T) :- p(T), p(T+1), p(T+2).")
    for _ in range(n):
        arrivals: dict[int, list[str]] = {}
        for t in range(3):
            delay = rng.choices([0, 1, 2, None], [0.5, 0.2, 0.2, 0.1])[0]
            if rng.random() < 0.7 and delay is not None:
                arrivals.setdefault(t + delay, []).append(f"p({t})")
        session = Hypotheses(
            program, "q(T)", delay=2, options=HypothesisOptions(probability=0.7, chances="0.5:0.2:0.2")
        )
        session.push(0, arrivals.get(0, []))
        session.push(1, arrivals.get(1, []))
        rated = [e.confidence for e in session.hypothetical() if e.bindings == {"T": 0}]
        given = [a.bindings for tau in range(2, 5) for a in session.push(tau, arrivals.get(tau, []))]
        if rated and rated[0] is not None:
            expected += rated[0]
            confirmed += {"T": 0} in given
    assert abs(expected - confirmed) < 4 * (n * 0.25) ** 0.5


def test_unlikely_and_surplus_hypotheses_are_discarded_and_counted() -> None:
    facts = [f"Temp(wt{i},high,0)" for i in range(6)]
    session = Hypotheses(
        tdl(TURBINES),
        "Malf(X,T)",
        options=HypothesisOptions(probability=["0.9", "Temp(wt1,_)=0.1", "Temp(wt2,_)=0.5"], min_confidence=0.2),
    )
    session.push(0, facts)
    assert [e.bindings["X"] for e in session.hypothetical()] == ["wt0", "wt2", "wt3", "wt4", "wt5"]
    assert session.discarded == 1
    most = Hypotheses(
        tdl(TURBINES), "Malf(X,T)", options=HypothesisOptions(probability=["0.9", "Temp(wt2,_)=0.5"], max_open=3)
    )
    most.push(0, facts)
    assert (most.open, most.discarded) == (3, 3)
    assert "wt2" not in [e.bindings["X"] for e in most.hypothetical()]
    most.push(1, [f"Temp(wt{i},high,1)" for i in range(6)])
    assert most.open == 3


@pytest.mark.parametrize("option", [{"probability": "Temp=2"}, {"probability": "x"}, {"chances": "Temp=0.9:0.2"}])
def test_unreadable_probabilities_are_refused(option: dict[str, str]) -> None:
    with pytest.raises(tl.TidelogError) as caught:
        Hypotheses(tdl(TURBINES), "Malf(X,T)", options=HypothesisOptions(**option))  # type: ignore[arg-type]
    assert caught.value.diagnostics[0].code == "TL706"


# States


@pytest.mark.parametrize("query", ["Malf(X,T)", "Defective(X,T)"])
@pytest.mark.parametrize("delay", [["2"], ["2", "Temp(wt1,_)=3"]])
def test_a_saved_session_continues_as_if_never_stopped(query: str, delay: list[str]) -> None:
    rng = random.Random(3)
    levels = ["high", "high", '"n/a"']
    session = Hypotheses(tdl(DEFECTIVE), query, delay=delay)
    for tau in range(20):
        batch = [f"Temp(wt{rng.randrange(4)},{rng.choice(levels)},{max(0, tau - rng.randrange(3))})" for _ in range(3)]
        again = Hypotheses.load(session.save(), tdl(DEFECTIVE))
        assert list(again.push(tau, batch)) == list(session.push(tau, batch))
        assert again.hypothetical() == session.hypothetical()
        assert again.save() == session.save()


def test_a_state_of_another_query_is_refused() -> None:
    state = Hypotheses(tdl(DEFECTIVE), "Malf(X,T)").save()
    with pytest.raises(tl.TidelogError, match="another query"):
        Hypotheses(tdl(DEFECTIVE), "Defective(X,T)").resume(state)
    with pytest.raises(tl.TidelogError, match="another query"):
        Hypotheses.load(state, tdl(TURBINES))


def test_facts_may_be_given_in_any_form() -> None:
    fact = next(iter(tl.Dataset.parse("Temp(a,high)@0")))
    for form in ("Temp(a,high,0)", "Temp(a, high, 0).", "Temp(a,high)@0", ("Temp", ("a", "high"), 0), fact):
        session = Hypotheses(tdl(TURBINES), "Malf(X,T)")
        session.push(0, [form])
        assert turbine(session.hypothetical()) == [("a", 0, [0], [1, 2])]
    for arrival in ((0, "Temp(a,high,0)"), {"arrival": 0, "fact": "Temp(a,high,0)"}):
        (moment,) = tl.hypotheses(tdl(TURBINES), "Malf(X,T)", [arrival])
        assert turbine(moment.hypothetical) == [("a", 0, [0], [1, 2])]


# Changes


@pytest.mark.parametrize("seed", range(300, 340))
def test_changes_add_up_to_the_answers_of_every_moment(seed: int) -> None:
    case = random_case(seed)
    for program, query in ((case.program, case.query), (TURBINES, "Malf(X,T)"), ("q(X,T+1) :- f(X,T).", "q(X,T)")):
        arrivals = [(tau, _as_reading(fact) if program == TURBINES else fact) for tau, fact in case.arrivals]
        tracked, plain = (Hypotheses(tdl(program), query, delay=3) for _ in range(2))
        tracker = ChangeTracker(tracked)
        kept: dict[str, SupportedAnswer] = {}
        # Some time points are skipped, and some batches share one.
        moments = random.Random(seed).choices(range(LAST + 9), k=9) if seed % 2 else range(LAST + 9)
        for tau in sorted(moments):
            batch = [fact for arrival, fact in arrivals if plain.tau < arrival <= tau]
            answers = {str(answer) for answer in plain.push(tau, batch)}
            changes = tracker.push(tau, batch)
            for change in changes:
                before = kept.pop(change.id, None)
                assert change.change != "awaited" or before != change.answer
                if change.change == "awaited":
                    kept[change.id] = change.answer
            assert sorted(map(str, kept.values())) == sorted(map(str, plain.hypothetical())), (tau, str(case))
            answered = {str(c.answer) for c in changes if c.change == "answered" and not c.answer.hypotheses}
            assert answered == answers, (tau, str(case))


def _as_reading(fact: str) -> str:
    name, args, time = parse_printed_fact(fact)
    return f"Temp({'wt'.join(['', *map(str, args)]) or name},high,{time})"
