"""Services that do not support numbers in rules refuse them by name, instead of leaving rules out."""

from __future__ import annotations

import pytest

import tidelog as tl
from tidelog.windows.memory_report import explain_memory

NUMBERS = (
    "Load(N) :- N = count{ Job(X) }.",
    "Twice(X, D) :- Job(X), D = X * 2.",
    "Next(X + 1) :- Job(X).",
    'Early(X) :- Job(X), starts_with(X, "a").',
    "Late(X) :- Job(X), X > last[0,9]{ V : Job(V) }.",
)


@pytest.mark.parametrize("rule", NUMBERS)
def test_stable_models_refuse_numbers(rule: str) -> None:
    program = tl.Program.parse(f"Idle :- not Job(a).\n{rule}")
    data = tl.Dataset.parse("Job(1)@0")
    args = "(1,2)" if rule.startswith("Twice") else "(1)"
    for ask in (
        lambda: tl.stable_models(program, data),
        lambda: tl.stable.stable_entails(program, data, f"{rule.partition('(')[0]}{args}@0"),
        lambda: tl.stable.StableReasoner(program),
    ):
        with pytest.raises(tl.TidelogError) as raised:
            ask()
        (found,) = raised.value.diagnostics
        assert (found.code, found.place.line if found.place else None) == ("TL329", 2)
        assert rule in found.message


@pytest.mark.parametrize("rule", NUMBERS)
def test_stable_models_leave_out_numbers_that_the_question_does_not_need(rule: str) -> None:
    choice = "On :- Idle, not Off.\nOff :- Idle, not On.\nIdle :- not Job(a)."
    data = tl.Dataset.parse("Job(1)@0")
    program = tl.Program.parse(f"{choice}\n{rule}")
    assert tl.stable.stable_entails(program, data, "On@0", mode="brave").value == "yes"
    assert tl.stable.stable_entails(program, data, "On@0", mode="cautious").value == "no"
    found = tl.stable.stable_consequences(program, data, "Idle", mode="cautious", between=(0, 1))
    assert [str(fact.interval) for fact in found.facts] == ["[0,1]"]


@pytest.mark.parametrize("use", ["Bottom :- Load(1).", "P :- Load(1), not P.", "On :- Load(1)."])
def test_stable_models_refuse_numbers_that_can_leave_no_model(use: str) -> None:
    program = tl.Program.parse(f"On :- not Job(a).\nLoad(N) :- N = count{{ Job(X) }}.\n{use}")
    with pytest.raises(tl.TidelogError) as raised:
        tl.stable.stable_entails(program, tl.Dataset.parse("Job(1)@0"), "On@0")
    assert [found.code for found in raised.value.diagnostics] == ["TL329"]


@pytest.mark.parametrize("rule", NUMBERS)
def test_hypothetical_answers_refuse_numbers_that_the_query_needs(rule: str) -> None:
    program = tl.Program.parse(f"Seen(X) :- Diamondminus[0,2] Job(X).\n{rule}")
    name = rule.partition("(")[0]
    variables = "X, Y, T" if name == "Twice" else "X, T"
    with pytest.raises(tl.TidelogError) as raised:
        tl.hypothetical.Hypotheses(program, f"{name}({variables})", timeline="integer")
    assert {found.code for found in raised.value.diagnostics} == {"TL702"}
    assert "not supported by hypothetical answers" in raised.value.diagnostics[0].message
    session = tl.hypothetical.Hypotheses(program, "Seen(X, T)", timeline="integer")
    assert [answer.bindings["T"] for answer in session.push(0, ["Job(7)@0"])] == [0, 1, 2]


@pytest.mark.parametrize(
    ("rule", "part", "column"),
    [
        ("Load(N, T) :- N = count{ Job(X, T) }.", "aggregates", 24),
        ("Twice(D, T) :- Job(C, T), D = C * 2.", "arithmetic", 33),
        ("More(D, T) :- Job(C, T), D = C + 1.", "arithmetic", 32),
        ("Less(D, T) :- Job(C, T), D = C / 2.", "arithmetic", 32),
        ("Size(D, T) :- Job(C, T), D = abs(C).", "arithmetic", 30),
        ("Next(C * 2, T) :- Job(C, T).", "arithmetic", 8),
    ],
)
def test_temporal_datalog_has_no_numbers(rule: str, part: str, column: int) -> None:
    with pytest.raises(tl.TidelogError) as raised:
        tl.Program.parse(rule, syntax="tdl")
    (found,) = raised.value.diagnostics
    assert (found.code, found.message) == ("TL121", f"temporal Datalog has no {part}")
    assert found.place is not None
    assert found.place.column == column


def test_negative_numbers_and_shifted_times_are_no_arithmetic() -> None:
    tl.Program.parse("Cold(X, T+1) :- Temp(X, C, T), C < -3.", syntax="tdl")
    with pytest.raises(tl.TidelogError) as raised:
        tl.Program.parse("Cold(X, T+1) :- Temp(X, C, T), C < -3 Wet(X, T).", syntax="tdl")
    assert raised.value.diagnostics[0].code == "TL001"


def test_the_report_says_what_each_aggregate_keeps() -> None:
    program = tl.Program.parse(
        "Last(X, C) :- C = last[0,inf){ V : Temp(X, V) }.\n"
        "Many(X) :- count[0,10min]{ Temp(X, _) } >= 3.\n"
        "Kinds(N) :- N = count[0,inf){ distinct V : Temp(_, V) }.\n"
        "Busy(X) :- duration[0,1h]{ Hot(X) } > 5, start{ Hot(X) } > 3.\n"
        "Now(N, A) :- N = count{ Hot(_) }, A = avg[0,inf){ V : Temp(_, V) }."
    )
    assert explain_memory(program) == (
        "Hot is kept for 3600 because of rule 4",
        "Temp is kept for 600 because of rule 2",
        "last[0,inf) of rule 1 keeps one value per group",
        "count[0,600] of rule 2 keeps the occurrences of the last 600, per group",
        "count[0,inf) of rule 3 keeps all distinct values, per group",
        "duration[0,3600] of rule 4 keeps the intervals of the last 3600, per group",
        "start of rule 4 keeps the start of what holds, per group",
        "count of rule 5 keeps the rows that hold, per group",
        "avg[0,inf) of rule 5 keeps a sum and a number per group",
    )


def test_a_sum_that_leaves_63_bits_is_refused_with_its_rule() -> None:
    program = tl.Program.parse("Seen(X) :- P(X, _).\nTotal(S) :- S = sum{ V : P(_, V) }.")
    large = 4 * 10**18
    facts = [f"P(1,{large})@[0,5]", f"P(2,{large})@[3,5]"]
    with pytest.raises(tl.TidelogError) as raised:
        tl.materialise(program, tl.Dataset.from_facts(facts))
    (found,) = raised.value.diagnostics
    assert (found.code, found.place.line if found.place else None) == ("TL312", 2)
    assert "does not fit into 63 bits, in `Total(S) :- S = sum{ V : P(_, V) }.`" in found.message
    reasoner = tl.Reasoner(program, "Total")
    assert reasoner.push(0, facts[:1]) == []
    assert len(reasoner.push(3, facts[1:])) == 1
    with pytest.raises(tl.TidelogError) as raised:
        reasoner.finish(5)
    assert raised.value.diagnostics[0].code == "TL312"
