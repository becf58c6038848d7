"""`tidelog stable` as a user sees it: output, exit codes and errors."""

from __future__ import annotations

import builtins
import json

import pytest

from shell import CommandResult, Shell

pytestmark = pytest.mark.usefixtures("kernels")

CHOICE = "P :- not Q. Q :- not P."


def ran(sh: Shell, arguments: str) -> CommandResult:
    return sh("stable", *arguments.split())


def test_json_has_the_form_of_the_interface(sh: Shell) -> None:
    sh.write("r.dmtl", "R :- Diamondminus[2,2] R, not Q. R :- Diamondminus[1,1] P.")
    sh.write("d.facts", "P@0\nR@[3,4]")
    done = ran(sh, "r.dmtl d.facts --json")
    assert done.code == 0
    assert json.loads(done.out) == {
        "satisfiable": True,
        "models": [
            {
                "facts": ["P@0", "R@1", "R@[3,4]"],
                "repeats_after": {"from": 3, "every": 1, "facts": ["R@3"]},
                "repeats_before": None,
            }
        ],
        "between": [0, 4],
    }


def test_no_model_is_exit_code_1(sh: Shell) -> None:
    sh.write("r.dmtl", "P :- not P.")
    sh.write("d.facts", "")
    assert (ran(sh, "r.dmtl d.facts").out, ran(sh, "r.dmtl d.facts").code) == ("no stable model\n", 1)
    assert json.loads(ran(sh, "r.dmtl d.facts --json").out) == {
        "satisfiable": False,
        "models": [],
        "between": [0, 0],
    }
    assert ran(sh, "r.dmtl d.facts --brave P@0").out == "no\n"
    assert ran(sh, "r.dmtl d.facts --cautious P@0").out == "yes\n"


def test_a_range_with_too_many_facts_is_refused(sh: Shell) -> None:
    sh.write("r.dmtl", "S :- Diamondminus[12,12] S, not Diamondminus(0,12) S.")
    sh.write("d.facts", "S@0\nS@1200000000")
    for question in ("", " --brave S --between 0,1200000000"):
        refused = ran(sh, "r.dmtl d.facts" + question)
        assert refused.code == 2
        assert "error[TL332]: something repeats from " in refused.err
        assert "help: ask for a shorter range, with --between LO,HI" in refused.err
    assert ran(sh, "r.dmtl d.facts --between 600000000,600000013").out.splitlines()[1:3] == [
        "S@600000000",
        "S@600000012",
    ]
    # What does not change is one fact, however long.
    sh.write("e.dmtl", "S :- Diamondminus[1,1] S, not E.")
    assert ran(sh, "e.dmtl d.facts").out.splitlines()[1] == "S@[0,1200000000]"


def test_models_are_counted(sh: Shell) -> None:
    sh.write("r.dmtl", CHOICE)
    assert ran(sh, "r.dmtl --between 0,1").out.count("% model") == 1
    assert ran(sh, "r.dmtl --between 0,1 --models 3").out.count("% model") == 3
    assert ran(sh, "r.dmtl --between 0,1 --models 0").out.count("% model") == 4


def test_answers_have_exit_codes(sh: Shell) -> None:
    sh.write("r.dmtl", CHOICE)
    assert (ran(sh, "r.dmtl --brave P@[0,inf)").out, ran(sh, "r.dmtl --brave P@[0,inf)").code) == ("yes\n", 0)
    assert (ran(sh, "r.dmtl --cautious P@0").out, ran(sh, "r.dmtl --cautious P@0").code) == ("no\n", 1)
    assert json.loads(ran(sh, "r.dmtl --cautious P@0 --json").out)["answer"] == "no"


def test_dates_come_back_as_dates(sh: Shell) -> None:
    sh.write("r.dmtl", "Due(X) :- Diamondminus[10s,10s] Due(X), not Off(X).")
    sh.write("d.facts", "Due(a)@2026-01-31\nOff(a)@2026-01-31T00:00:20Z")
    done = ran(sh, "r.dmtl d.facts")
    assert done.out == (
        "% model 1\nDue(a)@2026-01-31T00:00:00Z\nDue(a)@2026-01-31T00:00:10Z\nOff(a)@2026-01-31T00:00:20Z\n"
    )


def test_temporal_datalog_programs_have_stable_models(sh: Shell) -> None:
    sh.write("r.tdl", "On(X,T+1) :- Lamp(X), On(X,T), not Off(X,T+1). Off(X,T+1) :- Lamp(X), On(X,T), not On(X,T+1).")
    sh.write("d.facts", "Lamp(a).\nOn(a,0).\nOff(a,2).".replace(".", ""))
    done = ran(sh, "r.tdl d.facts --models 0 --between 0,2")
    assert (done.code, done.out.count("% model")) == (0, 2)


@pytest.mark.parametrize(
    "rules, data, arguments, code",
    [
        ("P(X) :- not Q(X).", "Q(a)@0", "", "TL101"),
        ("P :- Q, not R.", "Q@1/2", "", "TL325"),
        ("P :- Diamondminus[0,1/2] Q, not R.", "Q@1", "", "TL325"),
        ("P :- Q, not R.", "Q@1", "--timeline rational", "TL321"),
        ("P :- Q, not R.", "Q@1", "--between 0,inf", "TL305"),
        ("P :- Q, not R.", "Q@1", "--brave Rr@1", "TL302"),
        ("P :- Q, not R.", "Q(a)@1", "", "TL102"),
        ("P :- Diamondplus[1,1] Q.", "", "--input d.facts", "TL327"),
        ("P :- Q.", "Q@2\nQ@1", "--input d.facts", "TL328"),
        ("Bottom :- Q.", "Q@2", "--input d.facts", "TL326"),
    ],
)
def test_bad_input_has_its_own_error(sh: Shell, rules: str, data: str, arguments: str, code: str) -> None:
    sh.write("r.dmtl", rules)
    sh.write("d.facts", data)
    files = "r.dmtl" if "--input" in arguments else "r.dmtl d.facts"
    done = ran(sh, f"{files} {arguments}")
    assert done.code == 2
    assert f"error[{code}]" in done.err


def test_without_clingo_the_command_says_how_to_get_it(sh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: object, **named: object) -> object:
        if name == "clingo":
            raise ImportError(name)
        return real(name, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    sh.write("r.dmtl", CHOICE)
    done = ran(sh, "r.dmtl")
    assert done.code == 2
    assert "pip install 'tidelog[stable]'" in done.err


def test_an_undecided_search_is_exit_code_3(sh: Shell) -> None:
    """The rule looks back millions of seconds, each of them a time point: too many to visit."""
    sh.write("r.dmtl", "Due(X) :- Diamondminus[30d,30d] Due(X), not Off(X).")
    sh.write("d.facts", "Due(a)@2026-01-31\nOff(a)@2026-06-02")
    done = ran(sh, "r.dmtl d.facts --json")
    assert done.code == 3
    assert "TL323" in done.err
    assert "larger unit of time" in done.err
    assert json.loads(done.out)["satisfiable"] is None
    done = ran(sh, "r.dmtl d.facts --brave Due(a)@2026-04-01")
    assert (done.out, done.code) == ("unknown\n", 3)


def test_a_stream_is_answered_up_to_the_time_at_which_it_fails(sh: Shell) -> None:
    sh.write("r.dmtl", "Ann :- Day, not Bob. Bob :- Day, not Ann. Bottom :- Boxminus[0,1] Ann.")
    sh.write("d.facts", "Day@[1,3]\nAnn@[2,3]")
    done = ran(sh, "r.dmtl --input d.facts")
    assert (done.code, done.out) == (2, "some Ann@1\nsome Bob@1\nall Ann@2\n")
    assert "no stable model is left from 3 on" in done.err


def test_brave_and_cautious_facts_of_a_predicate(sh: Shell) -> None:
    sh.write("rules.dmtl", "On(X) :- Lamp(X), not Off(X). Off(X) :- Lamp(X), not On(X). Bottom :- Off(hall).")
    sh.write("data.facts", "Lamp(hall)@[0,3]\nLamp(attic)@2\n")
    command = ("stable", "rules.dmtl", "data.facts")
    ran = sh(*command, "--brave", "On")
    assert (ran.code, ran.out) == (0, "On(attic)@2\nOn(hall)@[0,3]\n")
    assert sh(*command, "--cautious", "On", "--between", "1,2").out == "On(hall)@[1,2]\n"
    assert sh(*command, "--brave", "On(_)", "--format", "csv").out.splitlines()[1].startswith("some,On,attic")
    ran = sh(*command, "--cautious", "Off")
    assert (ran.code, ran.out) == (1, "")
    ran = sh(*command, "--cautious", "On(hall)@2")
    assert (ran.code, ran.out) == (0, "yes\n")
    found = json.loads(sh(*command, "--cautious", "On", "--json").out)
    assert found == {"pattern": "On", "mode": "cautious", "satisfiable": True, "facts": ["On(hall)@[0,3]"]}
    assert sh(*command, "--brave", "On(hall)@2", "--format", "csv").code == 2
