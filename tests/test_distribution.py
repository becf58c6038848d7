"""How programs split over a cluster: plans in words, and a cluster by hand that must answer as one engine does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import tidelog as tl
from tidelog.analysis.distribution import distribution, in_words

# Plans in words

SIGNALS = """
Flag(X, Z) :- Monit(X, Z), Boxminus[0,4] Diamondminus[0,2] Signal(Z).
Boxplus[0,3] Monit(X, Z) :- Flag(Y, Z), Connect(X, Y).
"""


def words(rules: str, query: str | None = None, background: Sequence[str] = (), syntax: str = "dmtl") -> list[str]:
    return in_words(distribution(tl.Program.parse(rules, syntax=syntax), query, background=background), 16)


def limit(key: str) -> str:
    return (
        f"facts with the same {key} meet in one bucket: the {key} with the most facts limits how far more buckets help"
    )


@pytest.mark.parametrize(
    "rules, background, expected",
    [
        pytest.param(
            SIGNALS.strip(),
            "",
            [
                "facts of Signal go by z to 16 buckets; Connect is copied to all, because of rule 2 (line 2)",
                limit("z"),
            ],
            id="a recursion with a copy",
        ),
        pytest.param(
            SIGNALS.strip(),
            "Connect",
            ["facts of Signal go by z to 16 buckets; Connect is copied to all", limit("z")],
            id="background is copied without asking",
        ),
        pytest.param(
            "Down(X) :- Node(X), not Diamondminus[0,5] Beat(X).",
            "Node",
            ["facts of Beat, Node go by x to 16 buckets", limit("x")],
            id="background that guards is hashed",
        ),
        pytest.param(
            "P(X, Y) :- S(X, Y), T(X).\nQ(Y) :- P(X, Y), R(Y).",
            "",
            [
                "stage 1 by x: facts of S, T go by x to 16 buckets",
                "stage 2 by y because of rule 2 (line 2): facts of P (from stage 1), R go by y to 16 buckets",
                limit("x or y"),
            ],
            id="another key, another stage, rather than a copy of a stream",
        ),
        pytest.param(
            "P(X, Y) :- S(X, Y), T(X).\nQ(Y) :- P(X, Y), R(Y).",
            "T",
            ["facts of R, S go by y to 16 buckets; T is copied to all", limit("y")],
            id="a copy of background rather than another stage",
        ),
        pytest.param(
            "Alarm :- Hot(X).\nQ(X) :- P(X), Alarm.",
            "",
            [
                "stage 1 in one bucket, because of rule 1 (line 1): Alarm has no argument to split by",
                "stage 2 by x: facts of P go by x to 16 buckets; Alarm is copied to all, because of rule 2 (line 2)",
                limit("x"),
            ],
            id="a head without arguments",
        ),
        pytest.param(
            "Q :- not P.\nR(X) :- S(X), Q.",
            "",
            ["facts of S go by x to 16 buckets; P is copied to all, because of rule 1 (line 1)", limit("x")],
            id="what has no arguments is derived in all buckets",
        ),
        pytest.param(
            "Path(X, Y) :- Edge(X, Y).\nPath(X, Z) :- Path(X, Y), Path(Y, Z).",
            "",
            ["all in one bucket, because of rule 2 (line 2): no argument of Path goes through it unchanged"],
            id="a recursion that joins itself",
        ),
        pytest.param(
            "Path(X, Y) :- Edge(X, Y).\nPath(X, Z) :- Path(X, Y), Edge(Y, Z).",
            "",
            ["facts of Path go by x to 16 buckets; Edge is copied to all, because of rule 2 (line 2)", limit("x")],
            id="hashed in one rule and copied in another",
        ),
        pytest.param(
            "Path(X, Y) :- First(X, Y).\nPath(X, Z) :- Path(X, Y), Edge(Y, Z).",
            "",
            [
                "facts of First go by x to 16 buckets; Edge is copied to all, because of rule 2 (line 2)",
                limit("x"),
            ],
            id="a path from its start",
        ),
        pytest.param(
            "A(X) :- B(X, Y), A(Y).\nA(X) :- C(X).",
            "",
            ["all in one bucket, because of rule 1 (line 1): no argument of A goes through it unchanged"],
            id="a recursion that leaves its key",
        ),
        pytest.param(
            "A(X) :- B(X).\nBottom :- A(X), A(Y), X != Y.",
            "",
            [
                "stage 1 by x: facts of B go by x to 16 buckets",
                "stage 2 in one bucket, because of rule 2 (line 2): its atoms share no argument",
                limit("x"),
            ],
            id="a constraint between keys",
        ),
        pytest.param(
            "A(X) :- B(X), C(Y), X = Y.",
            "",
            ["facts of B go by x to 16 buckets; facts of C go by y to 16 buckets"],
            id="equal variables",
        ),
        pytest.param("A(b) :- Top.", "", ["all in one bucket, since nothing here reads a stream"], id="no body"),
        pytest.param(
            "Level(base) :- Top.\nLevel(X) :- S(X).",
            "",
            ["facts of S go by x to 16 buckets", limit("x")],
            id="a rule without a body beside one with",
        ),
    ],
)
def test_plans_in_words(rules: str, background: str, expected: list[str]) -> None:
    found = words(rules, background=background.split())
    assert found[: len(expected)] == expected
    assert len(found) <= len(expected) + 1
