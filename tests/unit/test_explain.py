"""`tidelog explain` and `Reasoner.explain`: text, JSON objects and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tidelog as tl
from proof_checker import find_cycles
from tidelog.cli.main import run
from tidelog.model import Answer

pytestmark = pytest.mark.usefixtures("kernels")

SIGNALS = """
Flag(X, Z) :- Monit(X, Z), Boxminus[0,4] Diamondminus[0,2] Signal(Z).
Boxplus[0,3] Monit(X, Z) :- Flag(Y, Z), Connect(X, Y).
"""
HEARD = [(0, "Signal(z)"), (2, "Signal(z)"), (3, "Signal(z)"), (5, "Signal(z)")]


def explain_text(rules: str, facts: str, fact: str, **options: object) -> str:
    return str(tl.explain(tl.Program.parse(rules), tl.Dataset.parse(facts), fact, **options))  # type: ignore[arg-type]


def test_a_cycle_at_one_time_is_proved_from_outside_the_cycle() -> None:
    rules = "R(X, Y) :- E(X, Y). R(X, Y) :- R(X, Z), R(Z, Y)."
    facts = "E(a,b)@0\nE(b,a)@0\nE(b,c)@0"
    explanation = tl.explain(tl.Program.parse(rules), tl.Dataset.parse(facts), "R(a,c)@0")
    assert explanation.proof is not None
    assert not list(find_cycles(explanation.proof))
    assert {step.kind for step in explanation.proof.steps.values()} == {"given", "derived"}
    assert len(explanation.proof.steps) == 5  # the fact, two facts R, and the two given ones


def test_two_facts_that_support_each_other_are_not_derived_from_each_other() -> None:
    rules = "P :- Q. Q :- P. P :- Diamondminus[3,3] S."
    assert explain_text(rules, "S@0", "Q@3") == (
        "Q@3  by Q :- P. (line 1)\n"
        "└─ P@3  by P :- Diamondminus[3,3] S. (line 1)\n"
        "   └─ Diamondminus[3,3] S at 3\n"
        "      └─ S@0  given\n"
    )


def test_an_interval_that_no_single_rule_derives_falls_into_pieces() -> None:
    rules = "P :- A. P :- B."
    assert explain_text(rules, "A@[0,2]\nB@[1,5]\nP@[5,6]", "P@[0,6]").splitlines() == [
        "P@[0,6]  in 3 pieces",
        "├─ P@[0,2]  by P :- A. (line 1)",
        "│  └─ A@[0,2]  given",
        "├─ P@(2,5]  by P :- B. (line 1)",
        "│  └─ B@(2,5]  given",
        "└─ P@(5,6]  given",
    ]


def test_comparisons_and_absences_are_shown() -> None:
    lines = explain_text("P(X) :- A(X), X < 5, not Diamondminus[0,2] B(X).", "A(3)@4", "P(3)@4").splitlines()
    assert lines[1:] == ["├─ A(3)@4  given", "├─ 3 < 5", "└─ no B(3) in [2,4]"]


def test_a_depth_cuts_the_proof_off() -> None:
    assert explain_text("P :- Q. Q :- R.", "R@1", "P@1", depth=1).splitlines() == [
        "P@1  by P :- Q. (line 1)",
        "└─ Q@1  ...",
    ]


def test_a_proof_that_was_shown_is_not_shown_again() -> None:
    assert "Q@1  see above" in explain_text("P :- Q, T. T :- Q. Q :- R.", "R@1", "P@1")


@pytest.mark.slow
def test_a_deep_proof_is_shown_as_a_whole() -> None:
    program, data = tl.Program.parse("A :- Diamondminus[1,1] A.\nB :- A, not C."), tl.Dataset.parse("A@0\nC@1500")
    explanation = tl.explain(program, data, "B@1400")
    text = str(explanation)
    assert "not shown" in json.dumps(explanation.as_json())
    assert text.count(" by A ") == 1400
    assert text.rstrip().splitlines()[-2].endswith("A@0  given")


def test_temporal_datalog_is_explained_as_it_is_written() -> None:
    program = tl.Program.parse("P(X, T+1) :- Q(X, T), not R(X, 5), S(X, U), S(X, U+1).\n#temporal R/2.", syntax="tdl")
    data = tl.Dataset.parse("Q(a,3)\nS(a,7)\nS(a,8)")
    assert str(tl.explain(program, data, "P(a,4)")).splitlines() == [
        "P(a)@4  by P(X, T+1) :- Q(X, T), not R(X, 5), S(X, U), S(X, U+1). (line 1)",
        "├─ Q(a)@3  given",
        "├─ no R(a) at 5",
        "├─ S(a)@7  given",
        "└─ S(a)@8  given",
    ]
    denied = str(tl.explain(program, data, "P(a,9)"))
    assert "Q(a) fails at 8" in denied
    assert "it holds on 3" in denied
    assert "$" not in denied


def test_files_and_dates_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.dmtl").write_text("P(X) :- A(X), B(X).\n")
    (tmp_path / "a.facts").write_text("A(x)@2026-01-31\n")
    (tmp_path / "b.facts").write_text("B(x)@[2026-01-30,2026-02-01]\n")
    names = [str(tmp_path / name) for name in ("r.dmtl", "a.facts", "b.facts")]
    assert run(["explain", *names, "P(x)@2026-01-31"]) == 0
    lines = capsys.readouterr().out.replace(f"{tmp_path}/", "").splitlines()
    assert lines[1] == "├─ A(x)@2026-01-31T00:00:00Z  given in a.facts"
    assert lines[2] == "└─ B(x)@2026-01-31T00:00:00Z  given in b.facts"


def test_why_not_names_the_blockers_the_mistakes_and_the_constants() -> None:
    rules = "P(X) :- A(X), not Diamondminus[0,5] B(X).\nN(X) :- A(X), X > 3."
    text = explain_text(rules, "A(north)@3\nB(north)@1", "P(north)@3")
    assert "not Diamondminus[0,5] B(north) fails at 3" in text
    assert "since B(north)@1" in text
    assert "did you mean north?" in explain_text(rules, "A(north)@3\nB(north)@1", "P(nort)@3")
    assert "no rule derives A" in explain_text(rules, "A(north)@3", "A(north)@4")
    assert "2 > 3 fails" in explain_text(rules, "A(2)@3", "N(2)@3")


def test_exit_codes_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.dmtl").write_text("P :- Diamondminus[1,1] A.\n")
    (tmp_path / "f.facts").write_text("A@0\n")
    files = [str(tmp_path / "r.dmtl"), str(tmp_path / "f.facts")]
    assert run(["explain", *files, "P@1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["proof"]["premises"][0]["kind"] == "operator"
    assert run(["explain", *files, "P@2", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["why_not"]["rules"][0] == {
        "rule": "P :- Diamondminus[1,1] A.",
        "line": 1,
        "met": [],
        "failing": "Diamondminus[1,1] A",
        "at": ["2"],
        "nearest": ["1"],
        "others": [],
    }
    assert run(["explain", *files, "Q@2"]) == 2
    assert run(["explain", *files, "P(a)@2"]) == 2


def test_an_undecidable_fact_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.engine.repetition_search.MOST_ATTEMPTS", 0)
    program = tl.Program.parse("A :- Diamondminus[2,2] A.")
    explanation = tl.explain(program, tl.Dataset.parse("A@[0,2]"), "A@[0,inf)")
    assert explanation.answer is Answer.UNKNOWN
    assert "it is not known whether A@[0,inf) holds" in str(explanation)
    explanation = tl.explain(program, tl.Dataset.parse("A@0"), "A@1")
    assert explanation.answer is Answer.NO
    assert str(explanation).startswith("A@1 does not hold; why cannot be shown, since it could not be decided how A")


def run_stream(remember: str | None) -> tuple[tl.Reasoner, list[tl.Fact]]:
    background = tl.Dataset.parse("Connect(n2,n1)\nMonit(n1,z)@(-inf,6]")
    reasoner = tl.Reasoner(tl.Program.parse(SIGNALS), "Flag", background=background, remember=remember)
    answers = [answer for t, fact in HEARD for answer in reasoner.push(t, [fact])]
    return reasoner, answers + reasoner.advance(30)


def test_a_stream_that_remembers_explains_its_answers() -> None:
    reasoner, answers = run_stream("inf")
    data = tl.Dataset.from_facts(["Connect(n2,n1)", "Monit(n1,z)@(-inf,6]", *(f"{fact}@{t}" for t, fact in HEARD)])
    assert answers
    for answer in answers:
        assert str(reasoner.explain(answer)) == str(tl.explain(reasoner.program, data, answer))


def test_a_stream_that_has_forgotten_facts_answers_unknown_rather_than_no() -> None:
    for remember in (None, "3"):
        reasoner, answers = run_stream(remember)
        explanation = reasoner.explain(answers[0])
        assert explanation.answer is Answer.UNKNOWN
        assert "forgotten" in str(explanation)


def test_late_facts_explain_nothing() -> None:
    reasoner = tl.Reasoner(tl.Program.parse("P(X) :- Diamondminus[0,9] A(X)."), "P", remember="inf")
    reasoner.advance(5)
    reasoner.push(6, ["A(x)@2"])
    assert reasoner.late_count == 1
    assert reasoner.explain("P(x)@6").answer is Answer.NO


def test_times_off_the_grid_of_the_data_are_explained() -> None:
    program, data = tl.Program.parse("B :- A."), tl.Dataset.parse("A@[0,1]")
    assert str(tl.explain(program, data, "B@1/2")).startswith("B@1/2  by B :- A.")


def test_braces_may_need_a_value_that_other_braces_of_the_condition_bind() -> None:
    rules = "E(K) :- max[0,3]{ X / 2 : B(X, K) } = last[0,2]{ X + J : D(J) } * -1, A(X)."
    program, data = tl.Program.parse(rules), tl.Dataset.parse("B(4,1)@0\nD(2)@0\nD(-6)@1\nA(4)@[0,3]")
    assert "does not hold" in str(tl.explain(program, data, "E(7)@0"))
    assert "does not hold" in str(tl.explain(program, data, "E(2)@9"))
    assert str(tl.explain(program, data, "E(1)@1")).startswith("E(1)@1  by E(K)")
