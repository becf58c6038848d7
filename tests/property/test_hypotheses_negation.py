"""Hypothetical answers with negation: against all continuations of random streams, and by hand."""

from __future__ import annotations

import random

import pytest

import tidelog as tl
from absence_random import compare_with_continuations, random_absence_case
from tidelog.hypothetical import ChangeTracker, Hypotheses, HypothesisOptions

LATE = "Late(X, T) :- Due(X, T), not Paid(X, T+1)."


def tdl(rules: str) -> tl.Program:
    return tl.Program.parse(rules, syntax="tdl")


def test_answers_are_certain_or_possible_as_all_continuations_say() -> None:
    answers = possible = 0
    for seed in range(60):
        case = random_absence_case(seed)
        try:
            Hypotheses(tdl(case.program), case.query, delay=case.delays)
        except tl.TidelogError:
            continue
        given, listed = compare_with_continuations(case)
        answers += given
        possible += listed
    assert answers > 20
    assert possible > 3


def test_an_answer_waits_until_a_fact_can_no_longer_arrive() -> None:
    session = Hypotheses(tdl(LATE), "Late(X,T)", delay={"Paid": 1})
    assert list(session.push(0, ["Due(a,0)", "Due(b,0)"])) == []
    (first, _) = session.hypothetical()
    assert (first.evidence, first.hypotheses, first.decided_by) == (("Due(a,0)",), ("not Paid(a,1)",), 2)
    assert list(session.push(1, ["Paid(a,1)"])) == []
    assert [entry.bindings["X"] for entry in session.hypothetical()] == ["b"]
    (answer,) = session.advance(2)
    assert (answer.bindings, answer.evidence) == ({"X": "b", "T": 0}, ("Due(b,0)", "not Paid(b,1)"))
    assert session.hypothetical() == list(session.advance(3)) == []


def test_a_time_point_is_complete_once_it_was_pushed() -> None:
    session = Hypotheses(tdl(LATE), "Late(X,T)", delay={"Paid": 1})
    session.push(0, ["Due(a,0)"])
    assert len(session.push(2, [])) == 1
    session.push(2, ["Paid(a,1)", "Paid(b,2)"])
    assert session.rejected == {"late": 1}


def test_what_is_negated_may_be_derived_with_variables_of_its_own() -> None:
    rules = """
    Alarm(X, T) :- Hot(X, T), not Handled(X, T).
    Handled(X, T) :- Ack(X, Who, T+1), Staff(Who).
    Handled(X, T) :- Level(X, V, T), V < 30.
    Staff(ann).
    #rigid Staff/1.
    """
    session = Hypotheses(tdl(rules), "Alarm(X,T)", delay={"Ack": 1, "Level": 1})
    session.push(0, ["Hot(a,0)", "Hot(b,0)", "Hot(c,0)", "Level(c,40,0)"])
    awaited = {entry.bindings["X"]: entry.hypotheses for entry in session.hypothetical()}
    assert awaited["a"][0] == "not (Level(a,V,0), V < 30)"
    assert "not Ack(a,ann,1)" in awaited["a"]
    assert awaited.keys() == {"a", "b", "c"}
    session.push(1, ["Ack(a,bob,1)", "Ack(b,ann,1)"])
    assert [entry.bindings["X"] for entry in session.hypothetical()] == ["a", "c"]
    assert [answer.bindings["X"] for answer in session.push(2, ["Level(c,20,1)"])] == ["a", "c"]


def test_schemas_and_changes_name_what_must_not_arrive() -> None:
    session = Hypotheses(tdl(LATE), "Late(X,T)", delay={"Paid": 1})
    tracker = ChangeTracker(session)
    found = [
        (tau, change.change, change.id)
        for tau, facts in enumerate([["Due(a,0)", "Due(b,0)"], ["Paid(a,1)"], [], []])
        for change in tracker.push(tau, facts)
    ]
    assert [(tau, change) for tau, change, _ in found] == [
        (0, "awaited"),
        (0, "awaited"),
        (1, "dropped"),
        (2, "answered"),
    ]
    assert found[0][2] == found[2][2]
    assert found[1][2] == found[3][2]


def test_unsupported_answers_list_absences() -> None:
    session = Hypotheses(tdl(LATE), "Late(X,T)", options=HypothesisOptions(unsupported=True))
    session.push(0, ["Due(a,0)"])
    assert ("Due(X,T)", "not Paid(X,T+1)") in [entry.hypotheses for entry in session.hypothetical()]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    "rule",
    [
        "Q(X) :- P(X), not R(X).",
        "Q(X) :- P(X), not Diamondplus[0,2] R(X).",
        "Q(X) :- Diamondminus[1,3] P(X), not Boxminus[0,1] R(X).",
        "Q(X) :- P(X), not S(X) Since[0,2] R(X).",
        "Boxplus[0,1] Q(X) :- P(X), not (R(X), S(X)), not Diamondminus[1,1] S(X).",
    ],
)
def test_datalogmtl_gives_the_answers_of_batch_reasoning(rule: str) -> None:
    program = tl.Program.parse(rule)
    rng = random.Random(rule)
    facts = [(name, x, t) for name in "PRS" for x in "ab" for t in range(9) if rng.random() < 0.4]
    session = Hypotheses(program, "Q(X,T)", timeline="integer", delay=2)
    arrivals = sorted((t + rng.randint(0, 2), f"{name}({x},{t})") for name, x, t in facts)
    given: set[tuple[object, object]] = set()
    for tau in range(18):
        answers = session.push(tau, [fact for arrival, fact in arrivals if arrival == tau])
        new = {(answer.bindings["X"], answer.bindings["T"]) for answer in answers}
        assert not new & given
        given |= new
    model = tl.materialise(
        program, tl.Dataset.from_facts(f"{n}({x})@{t}" for n, x, t in facts), query=["Q"], timeline="integer"
    )
    assert given == {(f.args[0], t) for f in model for t in range(-9, 30) if f.interval.lo <= t <= f.interval.hi}


@pytest.mark.parametrize(
    "rules, message",
    [
        ("q(X,T) :- p(X,T). q(X,T) :- r(X,T), not p(X,T).", "a fact of p may both support an answer and, by `not p`"),
        (
            "q(X,T) :- p(X,T), not d(X,T). d(X,T) :- r(X,T), not e(X,T).",
            "`not e` is not supported by hypothetical answers: d is negated itself",
        ),
        ("q(X,T) :- p(X,T), r(X,S+1), not e(X,T).", "facts at unrelated times"),
        ("q(X,T) :- p(X,T), not d(X,T). d(X,T) :- r(X,T), e(X,S+1).", "may be at any time"),
        ("q(X,T) :- p(X,T), not d(X,T). d(X,T) :- r(X,T). d(X,T) :- d(X,T-1), e(X,T).", "does not terminate"),
    ],
)
def test_what_cannot_be_decided_exactly_is_refused(rules: str, message: str) -> None:
    with pytest.raises(tl.TidelogError, match=message):
        Hypotheses(tdl(rules), "q(X,T)", options=HypothesisOptions(depth=3))


def test_refused_options() -> None:
    with pytest.raises(tl.TidelogError, match="needs a fact of the stream that binds T"):
        Hypotheses(tdl("q(X,T) :- s(X,T), not p(X,T+1)."), "q(X,T)", background=tl.Dataset.parse("s(a)"))
    with pytest.raises(tl.TidelogError, match="have no confidence"):
        Hypotheses(tdl(LATE), "Late(X,T)", options=HypothesisOptions(probability=0.5))
    joined = tdl("q(X,T) :- p(X,T), not d(X,T). d(X,T) :- r(X,V,T), V != b.")
    with pytest.raises(tl.TidelogError, match="several delays of r"):
        Hypotheses(joined, "q(X,T)", delay=["1", "r(_,b)=3"])
