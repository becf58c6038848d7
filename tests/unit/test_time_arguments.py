"""Arguments that are times, such as the results of `start`: they print as dates where the data has dates."""

from __future__ import annotations

import json

import pytest

import tidelog as tl

RULES = (
    "Since(T, S) :- S = start{ Hot(T) }.\nDue(T, S + 1h) :- Since(T, S).\nLate(T, S - R) :- Since(T, S), Since(_, R)."
)
DATED = "Hot(t1)@[2026-01-31T10:00:00Z,2026-01-31T11:00:00.5Z]"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("A(S) :- S = start{ P }.", {"A": (0,)}),
        ("A(X, start{ P(X) }) :- Q(X).", {"A": (1,)}),
        ("A(S) :- S = start{ P }. B(S + 60, S - 1, S * 2) :- A(S).", {"A": (0,), "B": (0, 1)}),
        ("A(S) :- S = start{ P }. B(S - R) :- A(S), A(R).", {"A": (0,)}),
        ("A(X, S) :- S = start{ P(X) }. B(M) :- M = max{ S : A(_, S) }.", {"A": (1,), "B": (0,)}),
        ("A(X, S) :- S = start{ P(X) }. B(N) :- N = sum{ S : A(_, S) }.", {"A": (1,)}),
        # A number from another rule, or from the data, makes it a number.
        ("A(S) :- S = start{ P }. A(N) :- N = count{ P }. B(S) :- A(S).", {}),
        ("A(S) :- S = start{ P }. A(N) :- Q(N).", {}),
        ("A(X) :- B(X).", {}),
    ],
)
def test_results_of_start_and_what_comes_from_them_are_times(rules: str, expected: dict[str, tuple[int, ...]]) -> None:
    assert tl.Program.parse(rules).time_arguments == expected


def test_times_among_arguments_print_as_dates_where_the_data_has_dates() -> None:
    program, data = tl.Program.parse(RULES), tl.Dataset.parse(DATED)
    when = "[2026-01-31T10:00:00Z,2026-01-31T11:00:00.5Z]"
    model = tl.materialise(program, data)
    assert str(model).splitlines() == [
        f"Due(t1,2026-01-31T11:00:00Z)@{when}",
        f"Late(t1,0)@{when}",
        f"Since(t1,2026-01-31T10:00:00Z)@{when}",
    ]
    assert model.render(iso=False).splitlines()[2] == b"Since(t1,1769853600)@[1769853600,3539714401/2]"
    since = tl.materialise(program, data, query="Since")
    assert json.loads(since.render("jsonl"))["args"] == ["t1", "2026-01-31T10:00:00Z"]
    assert since.render("csv").splitlines()[1].startswith(b"Since,t1,2026-01-31T10:00:00Z,")
    flagged = tl.Program.parse(f"{RULES}\nFlag(T) :- Hot(T).")
    mixed = tl.materialise(flagged, data, query=["Flag", "Since"]).render("csv").splitlines()
    assert [line.split(b",")[2] for line in mixed[1:]] == [b"", b"2026-01-31T10:00:00Z"]
    numbers = tl.materialise(program, tl.Dataset.parse("Hot(t1)@[-5,1/2]"), query="Since")
    assert str(numbers) == "Since(t1,-5)@[-5,1/2]\n"


def test_streams_print_times_among_arguments_as_dates() -> None:
    reasoner = tl.Reasoner(tl.Program.parse(RULES), "Since")
    steps = [*reasoner.feed(tl.Dataset.parse(DATED)), reasoner.finish_step()]
    lines = b"".join(step.answers.render("text", True) for step in steps)
    assert lines == b"Since(t1,2026-01-31T10:00:00Z)@[2026-01-31T10:00:00Z,2026-01-31T11:00:00.5Z]\n"


def test_questions_may_give_times_among_arguments_as_dates() -> None:
    program, data = tl.Program.parse(RULES), tl.Dataset.parse(DATED)
    at = "@2026-01-31T10:30:00Z"
    assert tl.entails(program, data, f"Since(t1,2026-01-31T10:00:00Z){at}").value == "yes"
    assert tl.entails(program, data, f"Since(t1,1769853600){at}").value == "yes"
    assert tl.entails(program, data, f"Since(t1,2026-01-31T10:00:01Z){at}").value == "no"
    assert tl.entails(program, data, f"Since(t1,soon){at}").value == "no"


def test_explanations_write_times_among_arguments_as_dates() -> None:
    program, data = tl.Program.parse(RULES), tl.Dataset.parse(DATED)
    found = tl.explain(program, data, "Since(t1,2026-01-31T10:00:00Z)@2026-01-31T10:30:00Z")
    lines = str(found).splitlines()
    assert lines[0].startswith("Since(t1,2026-01-31T10:00:00Z)@2026-01-31T10:30:00Z  by Since")
    assert lines[1] == "└─ start{ Hot(t1) } is 2026-01-31T10:00:00Z at 2026-01-31T10:30:00Z"
    assert str(found.as_json()["fact"]).startswith("Since(t1,2026-01-31T10:00:00Z)@")
    absent = tl.explain(program, data, "Since(t1,2026-01-31T10:00:00Z)@2026-01-31T11:00:00.7Z")
    assert str(absent).startswith("Since(t1,2026-01-31T10:00:00Z)@2026-01-31T11:00:00")
    assert "is 1769853600" not in str(absent)


def test_explanations_write_the_times_in_conditions_as_dates() -> None:
    rules = f"{RULES}\nMost(M) :- M = max{{ S + 60 : Since(_, S) }}.\nOld(T) :- Since(T, S), S < 5."
    program, data = tl.Program.parse(rules), tl.Dataset.parse(DATED)

    def explain(fact: str) -> str:
        return str(tl.explain(program, data, f"{fact}@2026-01-31T10:30:00Z"))

    assert "2026-01-31T10:00:00Z + 3600 = 2026-01-31T11:00:00Z" in explain("Due(t1,2026-01-31T11:00:00Z)")
    assert "2026-01-31T10:00:00Z - 2026-01-31T10:00:00Z = 0" in explain("Late(t1,0)")
    assert "2026-01-31T10:00:00Z + 3600 is 2026-01-31T11:00:00Z" in explain("Due(t1,2026-01-31T12:00:00Z)")
    most = explain("Most(2026-01-31T10:01:00Z)")
    assert "max{ S + 60 : Since(_, S) } is 2026-01-31T10:01:00Z" in most
    assert "S = 2026-01-31T10:00:00Z, S + 60 = 2026-01-31T10:01:00Z" in most
    assert "is 2026-01-31T10:00:00Z, needs = 2026-01-31T10:05:00Z" in explain("Since(t1,2026-01-31T10:05:00Z)")
    assert "2026-01-31T10:00:00Z < 5 fails" in explain("Old(t1)")
    numbers = tl.Dataset.parse("Hot(t1)@[0,9]")
    assert "0 + 3600 = 3600" in str(tl.explain(program, numbers, "Due(t1,3600)@5"))
