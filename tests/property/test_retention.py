"""For how long predicates have to be kept: random programs, judged by a reasoner that follows the definition."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

import tidelog as tl
from retention_oracle import Held, random_rules, run_reasoner
from tidelog.timeline.interval import Interval, TimelineName
from tidelog.windows.retention_search import LosingStream, Retention, RetentionReport


def to_cells(interval: Interval, cells: list[Fraction]) -> list[Fraction]:
    def holds(time: Fraction) -> bool:
        return (
            interval.lo < time < interval.hi
            or (time == interval.lo and interval.lo_closed)
            or (time == interval.hi and interval.hi_closed)
        )

    return [time for time in cells if holds(time)]


def cells_until(last: int, tick: Fraction, timeline: TimelineName) -> list[Fraction]:
    step = tick if timeline == "integer" else tick / 2
    return [step * number for number in range(int(last * tick / step) + 1)]


def answers(
    program: tl.Program, stream: Held, kept: dict[str, Fraction] | None, cells: list[Fraction], tick: Fraction
) -> Held:
    """The answers if predicates are kept as given, and others not at all; or if everything is kept."""
    limits = None if kept is None else {name: kept.get(name, Fraction(0)) for name in program.predicates}
    return {fact for fact in run_reasoner(program.rules, stream, limits or {}, cells, tick) if fact[0] == "G"}


def check_witness(program: tl.Program, report: RetentionReport, found: Retention, witness: LosingStream) -> None:
    """The reasoner loses the answer with one tick less, also if the other predicates are kept as the report says."""
    cells = cells_until(14, report.tick, report.timeline)
    stream = {(f.predicate, f.args, time) for f in witness.stream for time in to_cells(f.interval, cells)}
    lost = {(witness.lost.predicate, witness.lost.args, time) for time in to_cells(witness.lost.interval, cells)}
    assert lost
    assert lost <= answers(program, stream, None, cells, report.tick)
    kept = {other.predicate: Fraction(other.enough) for other in report.predicates}
    less = {**kept, found.predicate: Fraction(found.least) - report.tick}
    assert not lost & answers(program, stream, less, cells, report.tick), f"{found}\n{program}"


def window_of(rules: str, query: str = "P", **options: object) -> list[tuple[object, ...]]:
    report = tl.windows.retention(tl.Program.parse(rules), query, **options)  # type: ignore[arg-type]
    assert report.reason is None
    return [(found.predicate, found.read, found.least, found.enough) for found in report.predicates]


def test_what_rules_read_is_needed_if_nothing_else_gives_the_answer() -> None:
    report = tl.windows.retention(tl.Program.parse("P(X) :- Boxminus[0,6] Diamondminus[0,5] H(X)."), "P")
    assert report.to_json() == {
        "timeline": "rational",
        "tick": "1",
        "retention": {
            "H": {
                "read": "11",
                "enough": "11",
                "least": "11",
                "witness": {"stream": ["H(a)@(0,1)", "H(a)@6"], "lost": "P(a)@11"},
            }
        },
        "reason": None,
    }


def test_what_other_rules_give_need_not_be_kept() -> None:
    # Rain now is all that the second rule asks for, since its range begins with 0.
    rules = "Slow(X) :- Diamondminus[0,2] Rain(X). Slow(X) :- Rain(X), Diamondminus[0,8] Rain(X)."
    assert window_of(rules, "Slow", timeline="integer") == [("Rain", 2, 2, 2)]
    rules = (
        "Slow(X) :- Wet(X), Dry(X). Slow(X) :- Rain(X), Diamondminus[0,8] Rain(X). Wet(X) :- Diamondminus[1,1] Dry(X)."
    )
    assert window_of(rules, "Slow", timeline="integer") == [("Dry", 1, 1, 1), ("Rain", 8, 0, 0)]
    assert window_of(rules, "Slow") == [("Dry", 1, 1, 1), ("Rain", 8, 0, 0)]


def test_of_two_predicates_that_replace_each_other_one_is_kept() -> None:
    rules = "P :- Diamondminus[3,3] Q. P :- Diamondminus[3,3] R. Q :- A. R :- A."
    assert window_of(rules) == [("Q", 3, 0, 0), ("R", 3, 3, 3)]


def test_over_the_integers_the_left_side_of_since_is_kept_one_less() -> None:
    assert window_of("P(X) :- A(X) Since[1,3] B(X).", timeline="integer") == [("A", 2, 2, 2), ("B", 3, 3, 3)]
    assert window_of("P(X) :- A(X) Since[1,3] B(X).") == [("A", 3, 3, 3), ("B", 3, 3, 3)]


def test_what_a_head_says_of_the_future_is_not_forgotten() -> None:
    assert window_of("Boxplus[0,2] Q(X) :- A(X). P(X) :- Diamondminus[1,1] Q(X), B(X).") == [("Q", 1, 1, 1)]


def test_objects_limit_what_is_needed() -> None:
    rules = "P(X) :- A(X), X != a. P(X) :- A(X), Diamondminus[2,2] A(X)."
    assert window_of(rules, objects="b", timeline="integer") == [("A", 2, 0, 0)]
    assert window_of(rules, objects="a,b", timeline="integer") == [("A", 2, 2, 2)]
    assert window_of(rules, timeline="integer") == [("A", 2, 2, 2)]


#: Rain now is all that this rule asks for.
RAIN = "Slow(X) :- Rain(X), Diamondminus[0,8] Rain(X). "


def test_one_object_proves_it_for_all_if_each_rule_is_about_one() -> None:
    rules = RAIN + "Slow(X) :- Diamondminus[1,1] Slow(X), Dry(X)."
    assert window_of(rules, "Slow", timeline="integer") == [("Rain", 8, 0, 0), ("Slow", 1, 1, 1)]


def test_what_a_recursive_query_relates_is_bounded_and_says_why() -> None:
    rules = RAIN + "Slow(Y) :- Diamondminus[1,1] Slow(X), Road(X,Y)."
    report = tl.windows.retention(tl.Program.parse(rules), "Slow", timeline="integer")
    assert report.reason == "the query is recursive"
    assert report.searched
    assert [(found.predicate, found.least, found.enough) for found in report.predicates] == [
        ("Rain", 0, 8),
        ("Slow", 1, 1),
    ]


def test_the_limit_is_work_not_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = tl.Program.parse(RAIN + "Near(Y) :- Slow(X), Road(X,Y).")
    monkeypatch.setattr("tidelog.windows.retention_search._OPEN_STEPS", 400)
    reports = [tl.windows.retention(rules, "Near", timeline="integer") for _ in range(2)]
    assert reports[0] == reports[1]
    assert reports[0].reason == "the search takes too many steps"
    monkeypatch.undo()
    report = tl.windows.retention(rules, "Near", timeline="integer")
    assert report.reason is None
    assert [(found.read, found.least, found.enough) for found in report.predicates] == [(8, 0, 0)]


@pytest.mark.parametrize(
    "rules, reason",
    [
        ("P(X) :- A(X), not Diamondminus[0,2] B(X).", "line 1 negates"),
        ("P(X) :- Diamondminus[0,2] B(X), Diamondplus[0,1] A(X).", "line 1 looks ahead"),
        ("P(X) :- Diamondminus[1,inf) B(X).", "line 1 has a range without an end"),
        ("P(X) :- Diamondminus[0,1] B(X).\nP(X) :- A(X, Y), X = Y + 1.", "line 2 computes with numbers"),
        ("P(X) :- Diamondminus[0,100000] B(X), Diamondminus[0,99999] A(X).", "the ranges have too many ticks of 1"),
        ("P(X) :- Diamondminus[0,1] B(X). B(a).", "line 1 is a fact"),
    ],
)
def test_what_is_not_decided_says_why_and_gives_what_the_rules_read(rules: str, reason: str) -> None:
    report = tl.windows.retention(tl.Program.parse(rules), "P")
    assert report.reason == reason
    assert all(found.least == 0 < found.enough == found.read for found in report.predicates)
    assert report.predicates


@pytest.mark.slow
@pytest.mark.parametrize("recursive", [False, True])
@pytest.mark.parametrize("timeline", ["integer", "rational"])
def test_random_programs_against_the_definition(timeline: TimelineName, recursive: bool) -> None:
    shorter = witnesses = 0
    for seed in range(12):
        random = Random(seed)
        program = tl.Program.parse(random_rules(random, recursive))
        report = tl.windows.retention(program, "G", ["a"], timeline=timeline)
        assert report.reason is None
        for found in report.predicates:
            assert found.least == found.enough <= found.read, f"seed {seed}"
            shorter += found.enough < found.read
            if found.witness is not None:
                check_witness(program, report, found, found.witness)
                witnesses += 1
        kept = {found.predicate: Fraction(found.enough) for found in report.predicates}
        cells = cells_until(7, report.tick, timeline)
        for density in (0.4, 0.8):
            stream: Held = {(name, (), time) for name in "AB" for time in cells if random.random() < density}
            whole = answers(program, stream, None, cells, report.tick)
            assert whole == answers(program, stream, kept, cells, report.tick), f"seed {seed}\n{program}\n{stream}"
    assert shorter >= 1
    assert witnesses >= 5
