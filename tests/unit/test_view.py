"""Views: models that are kept up to date while facts are inserted and deleted."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

import tidelog as tl
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import Interval

pytestmark = pytest.mark.usefixtures("kernels")

HOT = "Hot(X) :- Diamondminus[0,5] High(X)."


def make_view(rules: str, facts: str, **options: str) -> tl.View:
    return tl.View(tl.Program.parse(rules), tl.Dataset.parse(facts), **options)  # type: ignore[arg-type]


def check(view: tl.View, rules: str, facts: str) -> None:
    """Check that a view holds what follows from some facts."""
    program = tl.Program.parse(rules)
    assert str(view.model()) == str(tl.materialise(program, tl.Dataset.parse(facts)))


# Assertions


def test_an_interval_that_another_assertion_covers_in_part_stays_there() -> None:
    view = make_view("Q(X) :- P(X).", "P(a)@[0,5]\nP(a)@[3,8]")
    assert str(view.update(delete=["P(a)@[3,8]"])) == "-Q(a)@(5,8]\n"
    check(view, "Q(X) :- P(X).", "P(a)@[0,5]")


def test_a_row_inserted_twice_and_deleted_once_still_holds() -> None:
    view = make_view("Q(X) :- P(X).", "P(a)@3\nP(a)@3")
    assert not view.update(delete=["P(a)@3"])
    assert str(view.update(delete=["P(a)@3"])) == "-Q(a)@3\n"
    assert str(view.model()) == ""


def test_a_deletion_that_splits_an_interval() -> None:
    view = make_view("Q(X) :- P(X).", "P(a)@[0,4]\nP(a)@[3,7]\nP(a)@[6,9]")
    assert str(view.update(delete=["P(a)@[3,7]"])) == "-Q(a)@(4,6)\n"
    check(view, "Q(X) :- P(X).", "P(a)@[0,4]\nP(a)@[6,9]")


def test_a_deletion_that_changes_nothing() -> None:
    view = make_view("Q(X) :- P(X).", "P(a)@[0,9]\nP(a)@[3,7]")
    change = view.update(delete=["P(a)@[3,7]"])
    assert (str(change), bool(change), len(change.unmatched)) == ("", False, 0)


def test_a_deletion_before_its_insertion_waits_and_is_reported() -> None:
    view = make_view(HOT, "High(a)@1")
    change = view.update(delete=["High(b)@3", "High(b)@3"])
    assert (str(change), str(change.unmatched)) == ("", "High(b)@3\nHigh(b)@3\n")
    assert str(view.update(insert=["High(b)@3"]).unmatched) == "High(b)@3\n"
    change = view.update(insert=["High(b)@3"])
    assert (str(change), len(change.unmatched), len(view.unmatched)) == ("", 0, 0)
    assert str(view.update(insert=["High(b)@3"])) == "+Hot(b)@[3,8]\n"


def test_two_corrections_of_one_atom_in_one_update_cancel_out() -> None:
    view = make_view(HOT, "High(a)@1")
    assert not view.update(insert=["High(a)@9", "High(b)@2"], delete=["High(b)@2", "High(a)@9"])
    check(view, HOT, "High(a)@1")


def test_a_correction_of_a_correction() -> None:
    view = make_view(HOT, "High(a)@1")
    assert str(view.update(insert=["High(a)@2"], delete=["High(a)@1"])) == "-Hot(a)@[1,2)\n+Hot(a)@(6,7]\n"
    assert str(view.update(insert=["High(a)@1"], delete=["High(a)@2"])) == "-Hot(a)@(6,7]\n+Hot(a)@[1,2)\n"
    check(view, HOT, "High(a)@1")


def test_facts_of_the_rule_file_stand_whatever_is_deleted() -> None:
    rules = "Alarm(X) :- Temp(X, V), High(V). High(1)."
    view = make_view(rules, "Temp(a,1)@1\nTemp(b,2)@2\nHigh(1)\nHigh(2)", query="Alarm")
    change = view.update(delete=["High(1)", "High(2)"])
    assert str(change) == "-Alarm(b)@2\n"
    assert str(view.update(delete=["High(1)"]).unmatched) == "High(1)@(-inf,inf)\n"
    assert str(view.model()) == "Alarm(a)@1\n"


# What rules make of them


def test_a_fact_under_not_removes_past_answers_and_creates_others() -> None:
    rules = "Down(X) :- Node(X), not Diamondminus[0,5] Beat(X)."
    view = make_view(rules, "Node(a)@[0,20]\nNode(b)@[0,20]\nBeat(a)@4\nBeat(b)@0")
    change = view.update(insert=["Beat(a)@12"], delete=["Beat(a)@4"])
    assert str(change) == "-Down(a)@[12,17]\n+Down(a)@[4,9]\n"
    assert not change.recomputed
    check(view, rules, "Node(a)@[0,20]\nNode(b)@[0,20]\nBeat(a)@12\nBeat(b)@0")


def test_a_correction_reaches_the_present_through_since() -> None:
    rules = "Calm(X) :- Room(X), not Closed(X). Open(X) :- Calm(X) Since[0,inf) Opened(X)."
    view = make_view(rules, "Room(a)\nOpened(a)@2\nClosed(a)@9\nRoom(b)\nOpened(b)@2\nClosed(b)@3", query="Open")
    assert str(view.update(delete=["Closed(a)@9"])) == "+Open(a)@(9,inf)\n"
    assert str(view.update(insert=["Closed(a)@4"])) == "-Open(a)@(4,inf)\n"


def test_a_correction_reaches_the_end_of_time_through_a_recursion() -> None:
    rules = "A(X) :- Diamondminus[3,3] A(X)."
    view = make_view(rules, "A(a)@0\nA(b)@1\nA(c)@1\nA(d)@2")
    change = view.update(insert=["A(a)@7"], delete=["A(b)@1"])
    assert str(change.added) == "% repeats every 3 from 7: A(a)@7\n"
    assert str(change.removed) == "% repeats every 3 from 1: A(b)@1\n"
    assert not change.recomputed
    check(view, rules, "A(a)@0\nA(a)@7\nA(c)@1\nA(d)@2")


def test_a_change_between_what_repeats_and_what_holds_for_ever() -> None:
    rules = "A(X) :- Diamondminus[1,1] A(X)."
    view = make_view(rules, "A(a)@0\nA(b)@0\nA(c)@1")
    assert str(view.update(insert=["A(a)@[2,3]"])) == "+% repeats every 1 from 2: A(a)@(2,3)\n"
    check(view, rules, "A(a)@0\nA(a)@[2,3]\nA(b)@0\nA(c)@1")


def test_an_aggregate_whose_window_contains_the_corrected_fact() -> None:
    rules = "Busy(X, N) :- N = count[0,10]{ Login(X, Y) }, N > 1."
    view = make_view(rules, "Login(a,1)@1\nLogin(a,2)@4\nLogin(a,3)@30\nLogin(b,1)@0\nLogin(b,9)@50")
    change = view.update(insert=["Login(a,9)@5"], delete=["Login(a,2)@4"])
    assert str(change) == "-Busy(a,2)@[4,5)\n"
    check(view, rules, "Login(a,1)@1\nLogin(a,9)@5\nLogin(a,3)@30\nLogin(b,1)@0\nLogin(b,9)@50")
    assert not change.recomputed


def test_an_aggregate_without_a_group_is_computed_from_scratch() -> None:
    rules = "Total(N) :- N = sum{ A : Open(C, A) }."
    view = make_view(rules, "Open(a,3)@[0,9]\nOpen(b,4)@[5,9]")
    change = view.update(delete=["Open(b,4)@[5,9]"])
    assert str(change) == "-Total(7)@[5,9]\n+Total(3)@[5,9]\n"
    assert change.recomputed


def test_what_lies_ahead_changes_what_holds_before() -> None:
    view = make_view("Warn(X) :- Diamondplus[0,5] Fault(X).", "Fault(a)@10\nFault(b)@3")
    assert str(view.update(insert=["Fault(a)@12"], delete=["Fault(a)@10"])) == "-Warn(a)@[5,7)\n+Warn(a)@(10,12]\n"


def test_a_change_of_a_relation_that_every_constant_reads_is_computed_from_scratch() -> None:
    rules = "Alarm(X) :- Temp(X, V), High(V)."
    view = make_view(rules, "Temp(a,1)@1\nTemp(b,2)@2\nTemp(c,2)@3\nHigh(1)")
    assert not view.update(insert=["Temp(a,1)@5"]).recomputed
    change = view.update(insert=["High(2)"])
    assert (str(change), change.recomputed) == ("+Alarm(b)@2\n+Alarm(c)@3\n", True)


def test_a_predicate_that_no_rule_reads_changes_nothing() -> None:
    view = make_view(HOT, "High(a)@1\nOther(x)@2")
    change = view.update(insert=["Other(y)@1/3"], delete=["Other(x)@2"])
    assert (str(change), change.recomputed) == ("", False)
    assert str(view.assertions) == "High(a)@1\nOther(y)@1/3\n"


# Options and input


def test_a_grid_that_becomes_finer() -> None:
    view = make_view(HOT, "High(a)@1\nHigh(b)@(0,2)")
    assert str(view.update(insert=["High(a)@10/3"])) == "+Hot(a)@(6,25/3]\n"
    assert str(view.update(delete=["High(a)@1"], insert=["High(b)@0.25"])) == "-Hot(a)@[1,10/3)\n"
    check(view, HOT, "High(a)@10/3\nHigh(b)@(0,2)\nHigh(b)@1/4")


def test_what_repeats_is_compared_on_a_grid_that_becomes_finer() -> None:
    view = make_view("B :- Diamondminus[1,1] B.", "B@(0,1)")
    assert str(view.update(insert=["B@(0,4/3)"])) == "+% repeats every 1 from 1: B@1\n"
    view = make_view("B :- Diamondplus[1,1] B.", "B@(0,1)")
    assert str(view.update(insert=["B@(-1/3,1)"])) == "+% repeats every 1 before 1: B@0\n"


def test_computed_values_that_need_a_finer_grid() -> None:
    rules = "E(K, Y, V) :- V = Y / 3, B(K, Y), duration[0,3]{ B(K, Z) } >= V."
    first = "B(a,6)@[0,9]\nB(b,3)@[0,9]\nB(c,3)@[0,9]"
    view = make_view(rules, first)
    assert str(view.update(insert=["B(d,0.5)@[5,6]"])) == "+E(d,0.5,1/6)@[31/6,6]\n"
    check(view, rules, f"{first}\nB(d,0.5)@[5,6]")
    assert str(make_view(rules, "B(d,0.5)@[5,6]").model()) == "E(d,0.5,1/6)@[31/6,6]\n"


def test_dates_on_the_integer_timeline_and_as_text() -> None:
    view = make_view(HOT, "High(a)@2026-01-01T00:00:00Z", timeline="integer")
    change = view.update(insert="High(b)@2026-01-01T00:00:10Z\nHigh(a)@2026-01-01T00:00:06Z")
    assert str(change) == (
        "+Hot(a)@[2026-01-01T00:00:06Z,2026-01-01T00:00:11Z]\n+Hot(b)@[2026-01-01T00:00:10Z,2026-01-01T00:00:15Z]\n"
    )
    with pytest.raises(tl.TidelogError, match="TL306"):
        view.update(insert=["High(c)@1/2"])
    assert not view.update()


def test_facts_are_objects_texts_or_datasets() -> None:
    fact = Fact("High", ("a",), Interval(Fraction(0), Fraction(2)))
    view = tl.View(tl.Program.parse(HOT), [fact, "High(b)@1"])
    assert str(view.update(delete=[fact], insert=tl.Dataset.parse("High(b)@2"))) == "-Hot(a)@[0,7]\n+Hot(b)@(6,7]\n"
    assert repr(view) == "<View of Hot over 2 assertions>"


def test_queries_ranges_and_the_end_of_time() -> None:
    rules = "A(X) :- Diamondminus[2,2] A(X). B(X) :- A(X). C(X) :- D(X)."
    view = tl.View(tl.Program.parse(rules), "A(a)@0", query="B", between=(1, 6))
    assert str(view.update(insert=["A(b)@1", "D(a)@3"])) == "+B(b)@1\n+B(b)@3\n+B(b)@5\n"
    view = tl.View(tl.Program.parse(rules), "A(a)@0\nD(a)@[1,9]", query=["A", "C"], until=3)
    assert str(view.update(insert=["A(b)@1", "D(b)@4"], delete=["A(a)@0"])) == "-A(a)@0\n-A(a)@2\n+A(b)@1\n+A(b)@3\n"
    assert str(view.model()) == "A(b)@1\nA(b)@3\nC(a)@[1,3]\n"
    with pytest.raises(tl.TidelogError, match="TL305"):
        tl.View(tl.Program.parse(rules), "A(a)@0", between=(1, 6), until=3)


def test_facts_that_do_not_matter_in_the_range_asked_for_are_not_computed_with() -> None:
    rules = "Mean(N) :- N = avg[0,1]{ K : Amount(K) }."
    facts = "Amount(3)@1\nAmount(4611686018427387904)@8\nAmount(1/3)@8\n"
    program, data = tl.Program.parse(rules), tl.Dataset.parse(facts)
    with pytest.raises(tl.TidelogError, match="TL312"):
        tl.View(program, data)
    view = tl.View(program, data, between=(0, 5))
    assert str(view.model()) == "Mean(3)@[1,2]\n"
    assert str(view.update(insert=["Amount(5)@1", "Amount(1/7)@8"])) == "-Mean(3)@[1,2]\n+Mean(4)@[1,2]\n"


def test_a_query_of_a_given_predicate_outlives_its_last_fact() -> None:
    view = make_view(HOT, "Given(a)@[1,2]", query="Given")
    assert str(view.update(delete=["Given(a)@[1,2]"])) == "-Given(a)@[1,2]\n"
    assert str(view.model()) == ""
    assert str(view.update(insert=["Given(a)@2"])) == "+Given(a)@2\n"


def test_temporal_datalog() -> None:
    program = tl.Program.parse("Black(X, T+1) :- Brst(X, T), Brst(X, T+1).", syntax="tdl")
    view = tl.View(program, "Brst(a,0)\nBrst(a,1)\nBrst(b,5)")
    assert str(view.update(insert=["Brst(b,6)"], delete=["Brst(a,1)"])) == "-Black(a)@1\n+Black(b)@6\n"


# Refusals


def test_a_violated_constraint_leaves_the_view_unchanged_and_usable() -> None:
    rules = f"{HOT}\nBottom :- Hot(X), Off(X)."
    view = make_view(rules, "High(a)@1\nOff(a)@9\nHigh(b)@1")
    with pytest.raises(tl.errors.Inconsistent, match="a"):
        view.update(insert=["High(a)@6"], delete=["High(b)@1"])
    check(view, rules, "High(a)@1\nOff(a)@9\nHigh(b)@1")
    assert str(view.update(insert=["High(a)@6"], delete=["Off(a)@9"])) == "+Hot(a)@(6,11]\n"


def test_facts_that_do_not_fit_leave_the_view_unchanged_and_usable() -> None:
    view = make_view(HOT, f"High(a)@{2**59}\nOther(a)@1")
    for wrong, code in (
        ("High(a,b)@1", "TL102"),
        ("Other(a,b)@1", "TL102"),
        ("High(a)@1/1000", "TL204"),
        ("-High(a)@1", "with delete="),
    ):
        with pytest.raises(tl.TidelogError, match=code):
            view.update(insert=["High(c)@1", wrong])
    with pytest.raises(tl.TidelogError, match="the facts are an object of type int"):
        view.update(insert=3)  # type: ignore[arg-type]
    check(view, HOT, f"High(a)@{2**59}")
    assert str(view.update(insert=["High(c)@1"])) == "+Hot(c)@[1,6]\n"


def test_a_grid_that_the_rules_do_not_fit_on_leaves_the_view_usable() -> None:
    rules = "Q(X) :- Diamondminus[0,1] P(X). R(X) :- Diamondminus[0,1000000000000000] S(X)."
    view = make_view(rules, "P(a)@1\nS(a)@1")
    with pytest.raises(tl.TidelogError, match="TL204"):
        view.update(insert=["P(a)@1/10000"])
    assert str(view.update(insert=["P(b)@3/2"])) == "+Q(b)@[3/2,5/2]\n"


def test_inconsistent_first_data_is_refused() -> None:
    with pytest.raises(tl.errors.Inconsistent):
        make_view("Bottom :- A(X), B(X).", "A(a)@1\nB(a)@1")


def test_many_updates_keep_few_dead_rows() -> None:
    rules = "A(X) :- Diamondminus[4,4] A(X)."
    facts = [f"A(k{number})@{number % 4}" for number in range(40)]
    view = tl.View(tl.Program.parse(rules), facts)
    for number in range(300):
        at = number % 40
        moved = f"A(k{at})@{number % 11}"
        assert not view.update(insert=[moved], delete=[facts[at]]).recomputed
        facts[at] = moved
    check(view, rules, "\n".join(facts))
    stored = view._stages[0].stored["A"]
    assert stored.size < 10_000
    assert len(stored.chunks) <= 100


def test_dataframes_are_inserted_and_deleted() -> None:
    program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] High(X).")
    view = tl.View(program, {"High": pa.table({"x": ["t1", "t2"], "time": [3, 4]})})
    one, other = (pa.table({"x": ["t1"], "time": [time]}) for time in (3, 20))
    assert str(view.update(insert={"High": other}, delete={"High": one})) == "-Hot(t1)@[3,8]\n+Hot(t1)@[20,25]\n"
    assert str(view.model()) == "Hot(t1)@[20,25]\nHot(t2)@[4,9]\n"
