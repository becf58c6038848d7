"""What `check` says of programs: fragments, recursion, strata, how far rules look."""

from __future__ import annotations

import json
from fractions import Fraction
from random import Random

import pytest

from tidelog.analysis.fragments import FRAGMENTS
from tidelog.analysis.time_reach import compute_look_ahead, compute_retention
from tidelog.check_report import check
from tidelog.errors import TidelogError
from tidelog.language.program import Program
from tidelog.timeline.interval import INF, TimelineName

FORWARD, BACKWARD = "forward-propagating", "backward-propagating"
INFINITE = float("inf")


def fragments(text: str, timeline: TimelineName = "rational") -> set[str]:
    return set(check(Program.parse(text), timeline=timeline).fragments)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("A(X) :- B(X, Y), not C(Y), X < Y.", {"datalog", FORWARD, BACKWARD, "bounded", "non-punctual", "stratified"}),
        ("A :- Diamondminus[0,1] B.", {FORWARD, "bounded", "non-punctual", "stratified"}),
        ("A :- Boxminus[0,1] B, C Since[1,2] D.", {FORWARD, "bounded", "non-punctual", "stratified"}),
        ("Boxplus[0,1] A :- B.", {FORWARD, "bounded", "non-punctual", "stratified"}),
        ("A :- Diamondplus[0,1] B, Boxplus[2,3] C.", {BACKWARD, "bounded", "non-punctual", "stratified"}),
        ("Boxminus[0,1] A :- B Until[0,2] C.", {BACKWARD, "bounded", "non-punctual", "stratified"}),
        ("A :- Boxminus[0,1] Diamondplus[0,1] B.", {"bounded", "non-punctual", "stratified"}),
        ("Boxminus[0,1] A :- Diamondminus[0,1] B.", {"bounded", "non-punctual", "stratified"}),
        ("Bottom :- A, B.", {"datalog", "bounded", "non-punctual", "stratified"}),
        ("A :- Top Since[0,1] B.", {"bounded", "non-punctual", "stratified"}),
        ("A :- Diamondminus[1,1] B.", {FORWARD, "bounded", "stratified"}),
        ("A :- Diamondminus[1,inf) B.", {FORWARD, "non-punctual", "stratified"}),
        ("A :- not B.  B :- Diamondminus[0,1] A.", {FORWARD, "bounded", "non-punctual"}),
        ("", {"datalog", FORWARD, BACKWARD, "bounded", "non-punctual", "stratified"}),
    ],
)
def test_fragments(text: str, expected: set[str]) -> None:
    assert fragments(text) == expected


def test_an_open_range_may_be_a_point_of_the_integers() -> None:
    text = "A :- Diamondminus(0,2) B."
    assert "non-punctual" in fragments(text)
    assert "non-punctual" not in fragments(text, "integer")
    assert "non-punctual" in fragments("A :- Diamondminus(0,3) B.", "integer")
    assert "non-punctual" in fragments("A :- Diamondminus(0,1) B.", "integer"), "an empty range is not a point"


def test_fragments_come_in_a_fixed_order() -> None:
    assert check(Program.parse("A :- B.")).fragments == tuple(FRAGMENTS)


def test_recursion_and_strata() -> None:
    report = check(
        Program.parse("""
            A(X) :- B(X).  B(X) :- Diamondminus[0,1] A(X).
            C(X) :- D(X), not A(X).
            E(X) :- D(X), not Diamondminus[0,1] C(X).  E(X) :- Boxminus[0,1] E(X).
        """)
    )
    assert report.recursive == (("A", "B"), ("E",))
    assert report.strata == (("A", "B"), ("C",), ("E",))


def test_a_problem_of_any_rule_is_reported_because_it_keeps_every_query_from_running() -> None:
    program = Program.parse("A(X) :- B(X), not C(X). C(X) :- B(X), not A(X). D(X) :- B(X).")
    report = check(program, "D")
    assert [problem.code for problem in report.problems] == ["TL301"]
    assert report.strata == (("D",),)


def test_a_range_that_is_not_on_the_timeline_is_a_problem() -> None:
    report = check(Program.parse("A(X) :- Diamondminus[0,1/2] B(X)."), timeline="integer")
    (problem,) = report.problems
    assert (problem.code, problem.message) == ("TL306", "the range [0,1/2] has an end that is not an integer")


def test_an_unstratified_program_is_reported_with_its_cycle() -> None:
    report = check(Program.parse("Win(X) :- Move(X, Y), not Lose(Y).\nLose(X) :- Win(X)."))
    assert "stratified" not in report.fragments
    assert report.strata == ()
    (problem,) = report.problems
    assert "Win -> not Lose -> Win" in problem.message
    assert problem.help
    assert "tidelog stable" in problem.help
    assert "Win -> not Lose -> Win" in str(report)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("A :- B.", {"B": 0}),
        ("A :- Diamondminus[1,3] B, Boxminus[0,1/2] C.", {"B": 3, "C": Fraction(1, 2)}),
        ("A :- Boxminus[0,4] Diamondminus[0,2] B.", {"B": 6}),
        ("A :- Diamondminus[0,5] Diamondplus[2,3] B.", {"B": 3}),
        ("A :- Diamondplus[0,5] B.", {"B": 0}),
        ("A :- B Since[1,4) C.", {"B": 4, "C": 4}),
        ("A :- B Until[1,4] C.", {"B": 0, "C": 0}),
        ("A :- Diamondminus[1,2] (B Since[0,3] Boxminus[1,1] C).", {"B": 5, "C": 6}),
        ("A :- not Diamondminus[0,7] B, Diamondminus[0,2] B.", {"B": 7}),
        ("A :- Diamondminus[3,inf) B.", {"B": INFINITE}),
        ("Boxplus[0,9] A :- B.  A :- Diamondminus[1,1] A.", {"A": 1, "B": 0}),
        ("A :- Top.", {}),
    ],
)
def test_retention(text: str, expected: dict[str, float]) -> None:
    assert compute_retention(Program.parse(text), "rational") == expected


def test_retention_over_the_integers_closes_brackets() -> None:
    program = Program.parse("A :- Diamondminus(0,4) B, C Since[0,3] D, E Since[0,1] F.")
    # C is read strictly between, at most two steps back; nothing lies strictly between two neighbours.
    assert compute_retention(program, "integer") == {"B": 3, "C": 2, "D": 3, "F": 1}


@pytest.mark.parametrize(
    "text, predicate, distance",
    [
        ("A :- B.", "A", 0),
        ("A :- Diamondminus[1,2] B.", "A", 0),
        ("A :- Diamondplus[1,2] B.", "A", 2),
        ("A :- Boxplus[0,3] Diamondplus[1,2] B.", "A", 5),
        ("A :- Diamondminus[1,1] Diamondplus[0,3] B.", "A", 2),
        ("A :- B Until[1,4] C.", "A", 4),
        ("Boxminus[1,5] A :- B.", "A", 5),
        ("Boxplus[2,5] A :- Diamondplus[0,3] B.", "A", 1),
        ("A :- Diamondplus[0,2] B.  B :- Diamondplus[0,3] C.", "A", 5),
        ("A :- Diamondminus[4,4] B.  B :- Diamondplus[0,3] C.", "A", 0),
        ("A :- Diamondminus[1,1] A, Diamondplus[0,2] B.", "A", 2),
        ("A :- Diamondplus[1,1] B.  B :- Diamondminus[1,1] A.", "A", 1),
        ("Bottom :- Diamondplus[0,6] A.", "Bottom", 6),
    ],
)
def test_look_ahead(text: str, predicate: str, distance: int) -> None:
    found = compute_look_ahead(Program.parse(text), "rational")[predicate]
    assert (found.distance, found.rule) == (distance, None)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("A :- Diamondplus[0,inf) B.\nC :- A.", "A :- Diamondplus[0,inf) B."),
        ("A :- Diamondplus[1,1] A.\nC :- Diamondminus[9,9] A.", "A :- Diamondplus[1,1] A."),
        ("A :- Diamondminus[1,1] B.\nB :- Diamondplus[2,2] A.\nC :- A.", "B :- Diamondplus[2,2] A."),
        ("Boxminus[0,inf) A :- B.\nC :- A.", "Boxminus[0,inf) A :- B."),
    ],
)
def test_unbounded_look_ahead_names_its_rule(text: str, reason: str) -> None:
    found = compute_look_ahead(Program.parse(text), "rational")["C"]
    assert found.distance == INF
    assert found.rule is not None
    assert found.rule.text == reason


def test_look_ahead_of_random_graphs_is_their_heaviest_path() -> None:
    """Against plain iteration: what still grows after many more rounds than there are predicates is unbounded."""
    rng = Random(0)
    for _ in range(200):
        names = "ABCDE"[: rng.randint(1, 5)]
        edges = [(rng.choice(names), rng.choice(names), rng.randint(-3, 3)) for _ in range(rng.randint(1, 8))]
        rules = [
            f"{head} :- Diamond{'plus' if weight > 0 else 'minus'}[{abs(weight)},{abs(weight)}] {body}."
            for head, body, weight in edges
        ]
        ahead = dict.fromkeys(names, 0)
        rounds = []
        for _ in range(200):
            for head, body, weight in edges:
                ahead[head] = max(ahead[head], ahead[body] + weight)
            rounds.append(dict(ahead))
        expected = {name: INFINITE if ahead[name] > rounds[99][name] else ahead[name] for name in names}
        found = compute_look_ahead(Program.parse("\n".join(rules)), "rational")
        assert {name: one.distance for name, one in found.items()} == {name: expected[name] for name in found}, rules


def test_a_query_narrows_the_report() -> None:
    program = Program.parse("A :- Diamondplus[0,2] B.  C :- Diamondminus[0,5] A.  D :- Diamondminus[0,9] E.")
    report = check(program, "A")
    assert (report.rules, report.predicates, report.look_ahead.distance) == (1, {"A": 0, "B": 0}, 2)
    assert check(program, "C").look_ahead.distance == 2
    assert check(program).retention == {"A": 5, "B": 0, "E": 9}


def test_constraints_concern_every_query() -> None:
    report = check(Program.parse("A :- B.\nBottom :- C, D.\nE :- F."), "A")
    assert report.constraints == ("line 2: Bottom :- C, D.",)
    assert set(report.predicates) == {"A", "B", "C", "D"}


def test_an_unknown_query_gets_a_suggestion() -> None:
    with pytest.raises(TidelogError) as raised:
        check(Program.parse("Alarm(X) :- Smoke(X)."), "Alram")
    (problem,) = raised.value.diagnostics
    assert problem.help == "did you mean Alarm?"


def test_json_has_all_the_keys() -> None:
    shown = check(Program.parse("A(X) :- Diamondminus[0,1/2] B(X).")).to_json()
    assert json.loads(json.dumps(shown)) == {
        "source": "<text>",
        "timeline": "rational",
        "query": None,
        "rules": 1,
        "predicates": {"A": 1, "B": 1},
        "fragments": ["forward-propagating", "bounded", "non-punctual", "stratified"],
        "recursive": [],
        "strata": [["A"]],
        "retention": {"B": "1/2"},
        "look_ahead": "0",
        "look_ahead_rule": None,
        "memory": None,
        "constraints": [],
        "distribution": {
            "stages": [
                {
                    "rules": [1],
                    "hashed": {"A": 1, "B": 1},
                    "copied": [],
                    "single": False,
                    "receives": ["A", "B"],
                    "gives": ["A"],
                    "reason": "by x",
                }
            ],
            "words": [
                "facts of B go by x to the buckets",
                "facts with the same x meet in one bucket: the x with the most facts limits how far more buckets help",
            ],
        },
        "problems": [],
        "warnings": [],
    }


def test_temporal_datalog_hides_what_its_translation_adds() -> None:
    text = "P(X, T+1) :- Q(X, T), R(X, U+1), S(X).\nP(X, T) :- P(X, T+2), Q(X, 3)."
    report = check(Program.parse(text, syntax="tdl"))
    assert report.timeline == "integer"
    assert report.rules == 2
    assert report.predicates == {"P": 1, "Q": 1, "R": 1, "S": 1}
    assert report.recursive == (("P",),)
    assert not any(name.startswith("$") for name in report.retention)
    assert "$" not in str(report)
