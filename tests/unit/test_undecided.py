"""What could not be decided: the message names the rule, the reason, and what can be decided."""

from __future__ import annotations

import pytest

import tidelog as tl
from tidelog.batch import decide
from tidelog.errors import Undecided


def test_an_unknown_answer_comes_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.engine.repetition_search.MOST_ATTEMPTS", 0)
    program, data = tl.Program.parse("A :- Diamondminus[7,7] A."), tl.Dataset.parse("A@[0,7]")
    answer, reason = decide(program, data, "A@[0,inf)")
    assert answer is tl.entails(program, data, "A@[0,inf)") is tl.types.Answer.UNKNOWN
    assert reason is not None
    assert "`A :- Diamondminus[7,7] A.` is recursive over distances of up to 7," in reason.message
    assert tl.entails(program, tl.Dataset.parse("A@[0,6]"), "A@[0,inf)") is tl.types.Answer.NO
    always = tl.Program.parse('Day :- calendar:weekday("UTC", _).')
    answer, reason = decide(always, tl.Dataset.parse("Work@2026-11-18"), "Day@(-inf,inf)")
    assert answer is tl.types.Answer.UNKNOWN
    assert reason is not None
    assert reason.message == "Day follows from a calendar, which is not known for all times"


def test_a_model_that_is_not_decided_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.engine.repetition_search.MOST_ATTEMPTS", 0)
    for rules, facts, reason in (
        ("A :- Diamondminus[7,7] A.", "A@0", "`A :- Diamondminus[7,7] A.` is recursive over distances of up to 7,"),
        ("A :- Boxplus[1,inf) A.\nA :- B.", "B@[0,inf)", "`A :- Boxplus[1,inf) A.` is recursive and looks over an"),
    ):
        program, data = tl.Program.parse(rules), tl.Dataset.parse(facts)
        with pytest.raises(Undecided) as caught:
            tl.materialise(program, data)
        (found,) = caught.value.diagnostics
        assert found.code == "TL304"
        assert reason in found.message
        assert found.place is not None
        assert found.place.line == 1
        assert "--between LO,HI" in (found.help or "")


def test_a_recursion_that_ends_too_late_says_that_closer_facts_are_decided() -> None:
    program = tl.Program.parse("A :- Diamondminus[1,1] A, On.")
    with pytest.raises(Undecided) as caught:
        tl.materialise(program, tl.Dataset.parse("A@0\nOn@[0,1000000000]"))
    (found,) = caught.value.diagnostics
    assert "with facts that begin and end closer together" in (found.help or "")
    assert len(str(tl.materialise(program, tl.Dataset.parse("A@0\nOn@[0,1000]"))).splitlines()) == 1001


def test_a_count_that_grows_for_ever_is_not_decided() -> None:
    program = tl.Program.parse("Tick :- Diamondminus[2,2] Tick.\nN(C) :- C = count[0,inf){ Tick }.")
    with pytest.raises(Undecided, match=r"how the body of `N\(C\) :- .*` continues forever"):
        tl.materialise(program, tl.Dataset.parse("Tick@0"))
