"""Calendar predicates: what is refused, cut and said about them, and what a stream holds of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

import tidelog as tl
from tidelog.errors import TidelogError

WORKED = 'Worked(P, D) :- Work(P), calendar:day("Europe/Berlin", D).'
WEEKEND = 'Weekend :- calendar:weekday("UTC", saturday) or calendar:weekday("UTC", sunday).'
DATA = "Work(ann)@[2026-11-18T22:00:00Z,2026-11-19T00:00:00Z]"


def refusal(run: Callable[[], object]) -> tl.Diagnostic:
    with pytest.raises(TidelogError) as caught:
        run()
    return caught.value.diagnostics[0]


@pytest.mark.parametrize(
    ("atom", "message"),
    [
        ('calendar:fortnight("UTC", D)', "there is no predicate calendar:fortnight"),
        ("calendar:day(Z, D)", "the time zone of calendar:day is a variable"),
        ('calendar:day("UTC")', "calendar:day needs a time zone and what it names"),
        ('calendar:day("Europe/Bonn", D)', "there is no time zone Europe/Bonn"),
        ("calendar:day(7, D)", "there is no time zone 7"),
        ('calendar:weekday("UTC", "Sunday")', "Sunday is never an argument of calendar:weekday"),
        ('calendar:day("UTC", "2026-02-30")', "2026-02-30 is never an argument of calendar:day"),
        ('calendar:hour("UTC", 24)', "24 is never an argument of calendar:hour"),
        ('calendar:year("UTC", "2026")', "2026 is never an argument of calendar:year"),
    ],
)
def test_a_misspelt_calendar_is_an_error_rather_than_empty(atom: str, message: str) -> None:
    found = refusal(lambda: tl.Program.parse(f"P(X) :- Work(X), {atom}, Other(D, Z)."))
    assert (found.code, found.message) == ("TL124", message)
    assert found.place is not None


def test_no_rule_and_no_data_gives_facts_of_a_calendar() -> None:
    found = refusal(lambda: tl.Program.parse('calendar:day("UTC", D) :- Day(D).'))
    assert (found.code, found.message) == ("TL124", "a rule derives calendar:day")
    data = tl.Dataset.parse('calendar:day("Europe/Berlin",d)@2026-11-18')
    assert refusal(lambda: tl.materialise(tl.Program.parse(WORKED), data)).code == "TL124"


def test_plain_numbers_have_no_calendar() -> None:
    program = tl.Program.parse(WORKED)
    data = tl.Dataset.parse("Work(ann)@7")
    reasoner = tl.Reasoner(program, "Worked")
    for run in (
        lambda: tl.materialise(program, data),
        lambda: list(tl.Reasoner(program, "Worked").feed(data)),
        lambda: reasoner.push(7, ["Work(ann)"]),
    ):
        assert refusal(run).code == "TL315"
    # With the facts of other predicates, nothing is asked of the calendar.
    assert len(tl.materialise(program, tl.Dataset.parse("Other(ann)@2026-11-18"))) == 0


def test_what_follows_from_a_calendar_alone_is_cut_to_the_data_or_the_question() -> None:
    program, data = tl.Program.parse(f"{WORKED}\n{WEEKEND}"), tl.Dataset.parse(f"{DATA}\nWork(bob)@2026-11-29")
    model = tl.materialise(program, data)
    assert str(model).splitlines()[:2] == [
        "Weekend@[2026-11-21T00:00:00Z,2026-11-23T00:00:00Z)",
        "Weekend@[2026-11-28T00:00:00Z,2026-11-29T00:00:00Z]",
    ]
    assert [warning.code for warning in model.warnings] == ["TL316"]
    assert not tl.materialise(program, data, query="Worked").warnings
    asked = tl.materialise(program, data, query="Weekend", between=("2027-01-02", "2027-01-03"))
    assert not asked.warnings
    assert str(asked) == "Weekend@[2027-01-02T00:00:00Z,2027-01-03T00:00:00Z]\n"
    assert tl.entails(program, data, "Weekend@[2027-01-02,2027-01-03]") is tl.types.Answer.YES
    assert tl.entails(program, data, "Weekend@2027-01-01") is tl.types.Answer.NO
    assert tl.entails(program, data, "Weekend@(-inf,inf)") is tl.types.Answer.NO
    always = tl.Program.parse('Day :- calendar:weekday("UTC", _).')
    assert tl.entails(always, data, "Day@(-inf,inf)") is tl.types.Answer.UNKNOWN


def test_a_calendar_of_all_times_is_refused() -> None:
    data = tl.Dataset.parse(DATA)
    for text in (
        'P :- Diamondminus[0,inf) calendar:weekday("UTC", sunday).',
        'P(X) :- Work(X), not Diamondplus[0,inf) calendar:day("UTC", "2026-11-20").',
    ):
        program = tl.Program.parse(text)
        found = refusal(partial(tl.materialise, program, data))
        assert (found.code, found.place is not None) == ("TL315", True)
    endless = tl.Program.parse('P(X) :- Work(X), Diamondminus[0,inf) calendar:day("UTC", "1999-12-31").')
    assert refusal(lambda: list(tl.Reasoner(endless, "P").feed(data))).code == "TL315"
    assert (
        refusal(lambda: tl.materialise(tl.Program.parse(WORKED), tl.Dataset.parse("Work(a)@2300-01-01"))).code
        == "TL315"
    )
    assert refusal(lambda: tl.materialise(tl.Program.parse(WEEKEND), tl.Dataset())).code == "TL315"


def test_what_does_not_support_calendars_says_so() -> None:
    program, data = tl.Program.parse(WORKED), tl.Dataset.parse(DATA)
    for run in (
        lambda: tl.View(program, data),
        lambda: tl.Reasoner(program, "Worked", corrections="1h"),
        lambda: list(tl.stable_models(program, data)),
        lambda: tl.hypotheses(program, "Worked(P, D)", [], timeline="integer"),
    ):
        assert refusal(run).code == "TL317"


def test_temporal_datalog_may_use_the_names_for_its_own_predicates() -> None:
    program = tl.Program.parse("P(X, T+1) :- calendar:day(X, T).", syntax="tdl")
    assert str(tl.materialise(program, tl.Dataset.parse("calendar:day(a, 3)"))) == "P(a)@4\n"


def test_a_stream_holds_some_weeks_of_the_calendar_and_no_more() -> None:
    program = tl.Program.parse('Q(D) :- Tick, calendar:day("Europe/Berlin", D), not calendar:hour("Europe/Berlin", 3).')
    reasoner = tl.Reasoner(program, "Q")
    start, most = datetime(2026, 1, 1, 12, tzinfo=UTC), 0
    answers: list[tl.Fact] = []
    for day in range(800):
        answers += reasoner.push(start + timedelta(days=day), ["Tick"])
        most = max(most, sum(reasoner.count_held_atoms().values()))
    assert [fact.args[0] for fact in answers[:2]] == ["2026-01-01", "2026-01-02"]
    assert len(answers) == 799
    assert most < 2_000  # of some 20,000 that were generated


def test_a_state_continues_with_its_calendars_only() -> None:
    program = tl.Program.parse(WORKED)
    reasoner = tl.Reasoner(program, "Worked")
    reasoner.push("2026-11-18T22:00:00Z", ["Work(ann)"])
    assert len(tl.Reasoner.load(reasoner.save(), program).advance("2026-11-19")) == 1
    other = tl.Program.parse(WORKED.replace("Berlin", "Paris"))
    assert refusal(lambda: tl.Reasoner.load(reasoner.save(), other, changed=True)).code == "TL403"


def test_proofs_name_the_calendar() -> None:
    program, data = tl.Program.parse(WORKED), tl.Dataset.parse(DATA)
    shown = str(tl.explain(program, data, 'Worked(ann,"2026-11-19")@2026-11-18T23:30:00Z'))
    assert "given in the calendar" in shown
    shown = str(tl.explain(program, data, 'Worked(ann,"2026-11-18")@2026-11-18T23:30:00Z'))
    assert 'there is calendar:day("Europe/Berlin", "2026-11-19")' in shown
