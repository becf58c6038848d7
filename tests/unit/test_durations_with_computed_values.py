"""Durations that are compared with computed values, which may need finer times than any fact has."""

from __future__ import annotations

import pytest

import tidelog as tl

RULES = "E(Y, V) :- V = Y / 3, B(Y), duration[0,3]{ B(Z) } >= V."


def test_batch_reasoning_refines_its_times() -> None:
    program, data = tl.Program.parse(RULES), tl.Dataset.parse("B(0.5)@[5,6]")
    assert str(tl.materialise(program, data)) == "E(0.5,1/6)@[31/6,6]\n"
    assert tl.entails(program, data, "E(0.5,1/6)@[31/6,6]").value == "yes"
    assert tl.entails(program, data, "E(0.5,1/6)@5").value == "no"
    assert tl.explain(program, data, "E(0.5,1/6)@31/6").answer.value == "yes"


def test_a_stream_refuses_a_value_between_its_times() -> None:
    reasoner = tl.Reasoner(tl.Program.parse(RULES), "E")
    with pytest.raises(tl.TidelogError) as raised:
        reasoner.push(5, ["B(0.5)@[5,6]"])
    assert raised.value.diagnostics[0].code == "TL314"


def test_a_background_number_gives_a_stream_the_times_it_needs() -> None:
    reasoner = tl.Reasoner(tl.Program.parse(RULES), "E", background=tl.Dataset.parse("Unit(1/6)"))
    answers = reasoner.push(5, ["B(0.5)@[5,6]"]) + reasoner.push(7)
    assert [str(fact.interval) for fact in answers] == ["[31/6,6]"]
