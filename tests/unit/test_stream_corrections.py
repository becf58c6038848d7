"""Streams with corrections: late facts and deletions, and the changes of answers that they cause."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import tidelog as tl
from tidelog.language.fact_text import format_fact

pytestmark = pytest.mark.usefixtures("kernels")

WINDOW = "Q(X) :- Diamondminus[0,2] P(X)."
EXCEPT = "Q(X) :- P(X), not Diamondminus[0,2] R(X)."
SINCE = "Q(X) :- P(X) Since[0,inf) S(X)."
CHAIN = "Q(X) :- S(X).\nQ(X) :- Diamondminus[1,1] Q(X), not R(X)."


def make(rules: str, **options: Any) -> tl.Reasoner:
    return tl.Reasoner(tl.Program.parse(rules), "Q", **{"corrections": 20, **options})


def texts(changes: Iterable[object]) -> list[str]:
    return [str(change) for change in changes]


def push(reasoner: tl.Reasoner, t: int, *facts: str) -> list[str]:
    return texts(reasoner.push(t, facts))


def test_a_late_fact_adds_an_answer_and_a_deletion_takes_it_back() -> None:
    reasoner = make(WINDOW)
    assert push(reasoner, 10, "P(a)@10") == []
    assert push(reasoner, 11, "P(b)@2") == ["+Q(b)@[2,4]"]
    assert push(reasoner, 12, "-P(b)@2") == ["-Q(b)@[2,4]"]
    assert push(reasoner, 13) == ["+Q(a)@[10,12]"]


def test_changes_say_when_they_were_known() -> None:
    reasoner = make(WINDOW)
    push(reasoner, 10)
    (change,) = reasoner.push(11, ["P(b)@2"])
    assert isinstance(change, tl.streaming.AnswerChange)
    assert (change.change, change.known, change.args) == ("+", 11, ("b",))


def test_an_answer_that_grows_is_replaced_as_a_whole() -> None:
    reasoner = make(WINDOW)
    assert push(reasoner, 9, "P(a)@1") == ["+Q(a)@[1,3]"]
    assert push(reasoner, 9, "P(a)@2") == ["-Q(a)@[1,3]", "+Q(a)@[1,4]"]


def test_a_deletion_splits_an_interval() -> None:
    reasoner = make("Q(X) :- P(X).")
    push(reasoner, 0, "P(a)@[0,3)", "P(a)@[3,6]", "P(a)@(6,8]")
    assert push(reasoner, 9) == ["+Q(a)@[0,8]"]
    assert push(reasoner, 9, "-P(a)@[3,6]") == ["-Q(a)@[0,8]", "+Q(a)@[0,3)", "+Q(a)@(6,8]"]


def test_a_deletion_that_changes_nothing_is_silent() -> None:
    reasoner = make("Q(X) :- P(X).")
    push(reasoner, 0, "P(a)@[0,5]", "P(a)@[3,5]")
    assert push(reasoner, 9) == ["+Q(a)@[0,5]"]
    assert push(reasoner, 9, "-P(a)@[3,5]") == []


def test_deleting_one_of_two_intervals_that_overlap_leaves_the_other() -> None:
    reasoner = make("Q(X) :- P(X).")
    push(reasoner, 0, "P(a)@[0,5]", "P(a)@[3,8]")
    assert push(reasoner, 9) == ["+Q(a)@[0,8]"]
    assert push(reasoner, 9, "-P(a)@[3,8]") == ["-Q(a)@[0,8]", "+Q(a)@[0,5]"]


def test_a_fact_under_not_removes_past_answers_and_creates_others() -> None:
    reasoner = make(EXCEPT)
    push(reasoner, 0, "P(a)@[0,8]")
    assert push(reasoner, 10) == ["+Q(a)@[0,8]"]
    assert push(reasoner, 11, "R(a)@3") == ["-Q(a)@[0,8]", "+Q(a)@[0,3)", "+Q(a)@(5,8]"]
    assert push(reasoner, 12, "-R(a)@3") == ["-Q(a)@[0,3)", "-Q(a)@(5,8]", "+Q(a)@[0,8]"]


def test_a_correction_reaches_the_present_through_since() -> None:
    reasoner = make(SINCE)
    push(reasoner, 0, "P(a)@[0,30]")
    assert push(reasoner, 18, "S(a)@2") == []  # it holds and has not ended
    assert texts(reasoner.finish(20)) == ["+Q(a)@[2,20]"]


def test_a_correction_reaches_the_present_through_a_recursion() -> None:
    reasoner = make(CHAIN, at="every:5")
    push(reasoner, 0, "S(a)@0")
    assert push(reasoner, 11) == ["+Q(a)@0", "+Q(a)@5", "+Q(a)@10"]
    assert push(reasoner, 12, "R(a)@3") == ["-Q(a)@5", "-Q(a)@10"]
    assert push(reasoner, 21, "-R(a)@3") == ["+Q(a)@5", "+Q(a)@10", "+Q(a)@15", "+Q(a)@20"]


def test_two_corrections_of_one_atom_in_one_step_cancel_out() -> None:
    reasoner = make(WINDOW)
    push(reasoner, 10)
    assert push(reasoner, 11, "P(b)@2", "-P(b)@2") == []
    assert push(reasoner, 11, "-P(c)@2", "P(c)@2") == []
    assert reasoner.unmatched_count == 0


def test_a_correction_can_be_corrected() -> None:
    reasoner = make(WINDOW)
    push(reasoner, 10)
    assert push(reasoner, 11, "P(b)@2") == ["+Q(b)@[2,4]"]
    assert push(reasoner, 12, "-P(b)@2", "P(b)@3") == ["-Q(b)@[2,4]", "+Q(b)@[3,5]"]
    assert push(reasoner, 13, "-P(b)@3", "P(b)@2") == ["-Q(b)@[3,5]", "+Q(b)@[2,4]"]


def test_a_row_inserted_twice_and_deleted_once_still_holds() -> None:
    reasoner = make(WINDOW)
    push(reasoner, 1, "P(b)@1", "P(b)@1")
    assert push(reasoner, 9) == ["+Q(b)@[1,3]"]
    assert push(reasoner, 9, "-P(b)@1") == []
    assert push(reasoner, 9, "-P(b)@1") == ["-Q(b)@[1,3]"]


def test_a_deletion_waits_for_its_insertion_and_is_counted_meanwhile() -> None:
    reasoner = make(WINDOW)
    assert push(reasoner, 5, "-P(b)@4") == []
    assert reasoner.unmatched_count == 1
    reasoner = tl.Reasoner.load(reasoner.save())
    assert push(reasoner, 6, "P(b)@4") == []
    assert reasoner.unmatched_count == 0
    assert push(reasoner, 9) == []


def test_a_deletion_that_never_finds_its_insertion_stays_counted() -> None:
    reasoner = make(WINDOW)
    push(reasoner, 5, "-P(b)@4")
    for t in range(6, 60):
        push(reasoner, t, f"P(a)@{t}")
    assert reasoner.unmatched_count == 1


@pytest.mark.parametrize(("start", "late"), [(10, 0), (9, 1)])
def test_a_correction_exactly_at_the_limit_is_taken(start: int, late: int) -> None:
    reasoner = make(WINDOW)
    push(reasoner, 30, "P(a)@30")
    found = push(reasoner, 30, f"P(b)@{start}")
    assert (reasoner.late_count, bool(found)) == (late, not late)


def test_late_deletions_are_late_facts() -> None:
    reasoner = make(WINDOW)
    push(reasoner, 1, "P(a)@1")
    push(reasoner, 30)
    assert push(reasoner, 30, "-P(a)@1") == []
    assert [format_fact(fact) for fact in reasoner.last_step.late] == ["-P(a)@1"]


def test_a_correction_of_an_answer_that_was_not_printed_is_silent() -> None:
    reasoner = make(WINDOW, delay=5)
    push(reasoner, 10, "P(a)@9")
    assert push(reasoner, 11, "-P(a)@9", "P(a)@10") == []
    assert push(reasoner, 20) == ["+Q(a)@[10,12]"]


def test_lateness_below_the_delay_is_no_change() -> None:
    reasoner = make(WINDOW, delay=5)
    push(reasoner, 10, "P(a)@10")
    assert push(reasoner, 12, "P(a)@8") == []
    assert push(reasoner, 30) == ["+Q(a)@[8,12]"]
    assert reasoner.corrections is not None
    assert reasoner.corrections.replays == 0


def test_an_aggregate_counts_again_when_its_window_is_corrected() -> None:
    reasoner = make("Q(X, N) :- N = count{ distinct Y : Diamondminus[0,5] P(X, Y) }, P(X, _).")
    push(reasoner, 1, "P(a,b)@1")
    assert push(reasoner, 4, "P(a,c)@4") == ["+Q(a,1)@1"]
    assert push(reasoner, 8) == ["+Q(a,2)@4"]
    assert push(reasoner, 9, "P(a,d)@2") == ["-Q(a,2)@4", "+Q(a,2)@2", "+Q(a,3)@4"]
    assert push(reasoner, 10, "-P(a,b)@1") == ["-Q(a,1)@1", "-Q(a,2)@2", "-Q(a,3)@4", "+Q(a,1)@2", "+Q(a,2)@4"]


def test_times_of_withdrawn_facts_are_no_output_times() -> None:
    reasoner = make(WINDOW, at="input")
    push(reasoner, 1, "P(a)@1")
    assert push(reasoner, 2, "Other@2") == ["+Q(a)@1"]
    assert push(reasoner, 3) == ["+Q(a)@2"]
    assert push(reasoner, 3, "-Other@2") == ["-Q(a)@2"]


def test_regular_output_times_begin_with_the_first_fact_that_stands() -> None:
    reasoner = make("Q :- B. B :- A.", at="every:3", background=tl.Dataset.parse("B@(-inf,-2]"), corrections=30)
    steps = reasoner.feed(tl.Dataset.parse("A@-12\n-A@-12\nA@-8\nA@1", ordered=True))
    assert [texts(step) for step in steps] == [[], [], ["+Q@-6", "+Q@-3"]]
    # Times begin later without the first fact, and earlier with one before it.
    assert push(reasoner, 1, "-A@-8") == ["-Q@-6", "-Q@-3"]
    resumed = tl.Reasoner.load(reasoner.save())
    assert push(resumed, 2, "A@-4") == ["+Q@-3"]
    assert push(resumed, 2, "A@-8", "-A@-4") == ["+Q@-6"]


def test_regular_output_times_begin_with_a_clock_that_was_set() -> None:
    reasoner = make("Q :- B. B :- A.", at="every:3", background=tl.Dataset.parse("B@(-inf,-2]"), corrections=30)
    assert push(reasoner, -12) == []
    assert push(reasoner, -5, "A@-8") == ["+Q@-12", "+Q@-9", "+Q@-6"]
    assert push(reasoner, -5, "-A@-8") == []


def test_a_fact_of_the_future_can_be_deleted_before_its_time() -> None:
    reasoner = make(WINDOW)
    push(reasoner, 1, "P(a)@50", "P(b)@51")
    push(reasoner, 49, "-P(a)@50")
    assert push(reasoner, 60) == ["+Q(b)@[51,53]"]


def test_feeding_and_pushing_give_the_same_changes() -> None:
    lines = ["P(a)@1", "P(a)@5", "P(b)@3", "-P(a)@1", "P(a)@9", "P(c)@2", "-P(c)@2", "P(b)@12"]
    pushed, fed = make(WINDOW), make(WINDOW)
    clock, expected = 0, []
    for line in lines:
        clock = clock if line.startswith("-") else max(clock, int(line.split("@")[1]))
        expected += push(pushed, clock, line)
    found = [str(change) for step in fed.feed(tl.Dataset.parse("\n".join(lines), ordered=True)) for change in step]
    assert set(found) <= set(expected)
    assert texts(fed.finish()) == texts(pushed.finish())


@pytest.mark.parametrize(
    "rules", [WINDOW, EXCEPT, "Q(X) :- N = count[0,5]{ P(X) }, N >= 2, not R(X)."], ids=["window", "negation", "count"]
)
def test_late_facts_of_one_key_in_several_steps_of_a_feed_each_correct_it(rules: str) -> None:
    lines = ["P(b)@0", "P(a)@10", "P(a)@4", "P(b)@11", "P(b)@7", "P(a)@12", "P(a)@5", "R(a)@4", "P(b)@13", "R(b)@8"]
    lines += ["P(a)@14", "P(a)@5", "P(c)@9", "P(b)@15", "R(a)@6", "P(c)@3", "P(c)@30", "P(c)@12"]
    fed, pushed = make(rules), make(rules)
    found = [sorted(texts(step)) for step in fed.feed(tl.Dataset.parse("\n".join(lines), ordered=True))]
    clocks = [[int(line[5:]) for line in lines[: number + 1]] for number in range(len(lines))]
    steps: dict[int, list[str]] = {}
    for line, seen in zip(lines, clocks, strict=True):
        steps.setdefault(max(seen), []).append(line)
    assert found == [sorted(push(pushed, clock, *facts)) for clock, facts in steps.items()]
    assert sorted(texts(fed.finish())) == sorted(texts(pushed.finish()))


def test_aggregates_that_are_fed_are_known_at_their_own_clocks() -> None:
    rules = "Q(X) :- V(X).\nQ(X) :- W(X), N = count[0,4]{ P(X) }, N > 1."
    lines = [f"{name}(a)@{t}" for t in range(30) for name in ("VWP" if t % 3 else "P") if t % 7 or name == "W"]
    fed, pushed = make(rules, timeline="integer"), make(rules, timeline="integer")
    found = {int(step.time): texts(step) for step in fed.feed(tl.Dataset.parse("\n".join(lines), ordered=True))}
    steps: dict[int, list[str]] = {}
    for line in lines:
        steps.setdefault(int(line[5:]), []).append(line)
    assert found == {t: push(pushed, t, *facts) for t, facts in steps.items()}
    assert sum(map(bool, found.values())) > 5


def test_states_hold_everything_that_can_be_corrected() -> None:
    reasoner = make(EXCEPT, delay=2)
    for t in range(40):
        push(reasoner, t, f"P(a)@{t}", *([f"R(b)@{t}"] if t % 7 == 0 else []))
    again = tl.Reasoner.load(reasoner.save())
    assert push(again, 41, "R(a)@25", "-P(a)@30") == push(reasoner, 41, "R(a)@25", "-P(a)@30") != []
    assert texts(again.finish()) == texts(reasoner.finish())


def test_changed_rules_change_the_answers_that_can_still_be_corrected() -> None:
    reasoner = make("Q(X) :- Diamondminus[0,2] P(X).")
    push(reasoner, 1, "P(a)@1")
    assert push(reasoner, 9) == ["+Q(a)@[1,3]"]
    changed = tl.Program.parse("Q(X) :- Diamondminus[0,4] P(X).")
    again = tl.Reasoner.load(reasoner.save(), changed, changed=True)
    assert push(again, 10) == ["-Q(a)@[1,3]", "+Q(a)@[1,5]"]


def test_memory_is_bounded_by_what_can_be_corrected() -> None:
    reasoner = make(WINDOW, corrections=10)
    assert reasoner.corrections is not None
    sizes = []
    for t in range(400):
        push(reasoner, t, f"P(a{t % 9})@{t}", f"P(late)@{t - 3}")
        sizes.append((len(reasoner.corrections.ledger), len(reasoner.corrections.checkpoints)))
    assert max(rows for rows, _ in sizes) <= 4 * 2 * 10
    assert max(count for _, count in sizes) <= 16


def test_deletions_are_refused_without_corrections() -> None:
    reasoner = tl.Reasoner(tl.Program.parse(WINDOW), "Q")
    with pytest.raises(tl.TidelogError, match="--corrections 1h"):
        reasoner.push(0, ["-P(a)@0"])
    with pytest.raises(tl.TidelogError, match="the facts are an object of type int"):
        reasoner.push(0, 3)  # type: ignore[arg-type]
    with pytest.raises(tl.TidelogError, match="TL407"):
        tl.materialise(tl.Program.parse(WINDOW), tl.Dataset.parse("-P(a)@0"))


@pytest.mark.parametrize("options", [{"delay": 5, "corrections": 3}, {"memory": "bounded", "corrections": 3}])
def test_corrections_that_cannot_be_taken_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(tl.TidelogError, match="TL408"):
        make(WINDOW, **options)


def test_an_answer_that_meets_a_negation_is_not_lost_by_saving() -> None:
    reasoner = make("Q(X) :- P(X), Open. Open :- not Closed.", corrections=0)
    push(reasoner, 5, "P(a)@5")
    found = push(reasoner, 7)
    assert found + push(tl.Reasoner.load(reasoner.save()), 9) == ["+Q(a)@5"]
