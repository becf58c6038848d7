"""Durations that are compared with computed values, which may need finer times than any fact has."""

from __future__ import annotations

from fractions import Fraction

import pytest

import tidelog as tl

RULES = "E(Y, V) :- V = Y / 3, B(Y), duration[0,3]{ B(Z) } >= V."


def spans(answers: list[tl.Fact]) -> list[str]:
    return [str(fact.interval) for fact in answers]


def test_batch_reasoning_refines_its_times() -> None:
    program, data = tl.Program.parse(RULES), tl.Dataset.parse("B(0.5)@[5,6]")
    assert str(tl.materialise(program, data)) == "E(0.5,1/6)@[31/6,6]\n"
    assert tl.entails(program, data, "E(0.5,1/6)@[31/6,6]").value == "yes"
    assert tl.entails(program, data, "E(0.5,1/6)@5").value == "no"
    assert tl.explain(program, data, "E(0.5,1/6)@31/6").answer.value == "yes"


def test_a_stream_refines_its_times() -> None:
    reasoner = tl.Reasoner(tl.Program.parse(RULES), "E")
    answers = reasoner.push(5, ["B(0.5)@[5,6]"]) + reasoner.push(7)
    assert spans(answers) == ["[31/6,6]"]


def test_facts_around_the_finer_times_stay_where_they_are() -> None:
    reasoner = tl.Reasoner(tl.Program.parse(RULES), "E", delay=1)
    answers: list[tl.Fact] = []
    for t in range(10):
        answers += reasoner.push(t, [f"B(0.{t})@[{t},{t}]"] if t else ["B(1)@[0,8)"])
    loaded = tl.Reasoner.load(reasoner.save())
    data = tl.Dataset.parse("\n".join(["B(1)@[0,8)"] + [f"B(0.{t})@[{t},{t}]" for t in range(1, 10)]))
    expected = tl.materialise(tl.Program.parse(RULES), data, until=9)
    for rest in (reasoner.finish(), loaded.finish()):
        assert sorted(map(str, answers + rest)) == sorted(map(str, expected))


def test_steps_keep_the_times_at_which_they_were_taken() -> None:
    program, data = tl.Program.parse(RULES), tl.Dataset.parse("B(1)@[0,1]\nB(0.5)@[5,6]\nB(0.25)@[5.5,7]")
    reasoner = tl.Reasoner(program, "E")
    steps = list(reasoner.feed(data, step=1))
    answers = [fact for step in steps for fact in step.answers] + reasoner.finish(7)
    assert [step.time for step in steps] == [0, 5, Fraction(11, 2)]
    assert sorted(map(str, answers)) == sorted(map(str, tl.materialise(program, data)))
    assert reasoner.stopped_at == 7


def test_output_times_stay_where_they_are() -> None:
    reasoner = tl.Reasoner(tl.Program.parse(RULES), "E", at="every:1/2")
    answers = reasoner.push(5, ["B(0.5)@[5,6]"]) + reasoner.push(7)
    assert spans(answers) == ["11/2", "6"]


def test_a_recursion_through_time_refines_its_times_before_the_first_fact() -> None:
    rules = """
        Alert :- Long(Y), not Diamondminus[1,5] Alert.
        Long(Y) :- B(Y), V = Y / 7, duration[0,3]{ On } >= V.
    """
    program = tl.Program.parse(rules)
    background, stream = "On@[0,2]\nB(1)\n", "On@[20,23]\nC@30\n"
    reasoner = tl.Reasoner(program, "Alert", background=tl.Dataset.parse(background))
    answers = [fact for step in reasoner.feed(tl.Dataset.parse(stream)) for fact in step.answers] + reasoner.finish()
    expected = tl.materialise(program, tl.Dataset.parse(background + stream), query="Alert", until=30)
    assert len(answers) > 1
    assert spans(answers) == spans(list(expected))


def test_a_stream_with_corrections_refuses_a_value_between_its_times() -> None:
    reasoner = tl.Reasoner(tl.Program.parse(RULES), "E", corrections=10)
    with pytest.raises(tl.TidelogError) as raised:
        reasoner.push(5, ["B(0.5)@[5,6]"])
    assert raised.value.diagnostics[0].code == "TL314"


def test_a_background_number_gives_a_stream_with_corrections_the_times_it_needs() -> None:
    background = tl.Dataset.parse("Unit(1/6)")
    reasoner = tl.Reasoner(tl.Program.parse(RULES), "E", background=background, corrections=10)
    answers = reasoner.push(5, ["B(0.5)@[5,6]"]) + reasoner.push(7)
    assert spans(answers) == ["[31/6,6]"]
