"""How programs split over a cluster: plans in words, and the program of a stage."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import tidelog as tl
from tidelog.analysis.distribution import describe_distribution, plan_distribution
from tidelog.analysis.stage_programs import build_stage_program, choose_stage_query, decode_output
from tidelog.language.fact_text import format_fact
from tidelog.language.hidden_predicates import STAGE_OUTPUT
from tidelog.language.syntax import Value

# Plans in words

SIGNALS = """
Flag(X, Z) :- Monit(X, Z), Boxminus[0,4] Diamondminus[0,2] Signal(Z).
Boxplus[0,3] Monit(X, Z) :- Flag(Y, Z), Connect(X, Y).
"""


def words(rules: str, query: str | None = None, background: Sequence[str] = (), syntax: str = "dmtl") -> list[str]:
    return describe_distribution(
        plan_distribution(tl.Program.parse(rules, syntax=syntax), query, background=background), 16
    )


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


def test_rules_that_the_query_does_not_need_do_not_count() -> None:
    rules = "A(X) :- B(X).\nC :- A(X), A(Y), X < Y.\nD(X) :- C, A(X)."
    assert words(rules, "A") == ["facts of B go by x to 16 buckets", limit("x")]
    assert words(rules, "D")[1].startswith("stage 2 in one bucket, because of rule 2 (line 2)")


def test_a_query_that_no_rule_derives() -> None:
    assert words("A(X) :- B(X).", "B") == ["facts of B go by argument 1 to 16 buckets", limit("argument 1 of B")]
    assert words("A(X) :- B(X).", "Z") == ["all in one bucket, since no rule says what Z could be split by"]


def test_temporal_datalog_is_counted_by_the_rules_of_the_file() -> None:
    rules = "Attk(X, Y, T+1) :- Brst(X, Y, T), Brst(Z, Y, T+1).\nBlack(X, T+2) :- Attk(X, Y, T), Attk(X, Y, T+1)."
    assert words(rules, "Black", syntax="tdl") == [
        "stage 1 by y: facts of Brst go by y to 16 buckets",
        "stage 2 by x because of rule 2 (line 2): facts of Attk (from stage 1) go by x to 16 buckets",
        limit("y or x"),
    ]
    rigid = "Moved(X, T+1) :- At(X, L, T), Succ(L, M), At(X, M, T+1)."
    assert words(rigid, syntax="tdl")[0] == "facts of At go by x to 16 buckets; Succ is copied to all"


def test_large_programs_are_searched_in_bounded_time() -> None:
    """Cycles whose rules leave no argument unchanged, and long chains of changing keys."""
    count = 200
    swapped = [f"D{i}(X, Y) :- D{(i + 1) % count}(Y, X), D{(i * 7 + 3) % count}(X, Z), E(X)." for i in range(count)]
    (stage,) = plan_distribution(tl.Program.parse("\n".join(swapped))).stages
    assert stage.single
    chain = [f"D{i}(X, Y) :- D{i - 1}(X, Y), E{i}({'XY'[i // 50 % 2]})." for i in range(1, count)]
    stages = plan_distribution(tl.Program.parse("\n".join(chain)), f"D{count - 1}").stages
    assert [stage.split_by for stage in stages] == ["x", "y", "x", "y"]


# The program of a stage


def test_a_stage_that_gives_several_predicates_gives_them_as_one() -> None:
    program = tl.Program.parse("P(X, Y) :- S(X, Y).\nO(X) :- S(X, X).\nAny :- S(X, Y).\nQ(Y) :- P(X, Y), O(Y), Any.")
    first = plan_distribution(program, "Q").stages[0]
    assert set(first.outputs) == {"P", "O"}
    assert choose_stage_query(first) == STAGE_OUTPUT
    made = build_stage_program(program, first)
    model = tl.materialise(made, tl.Dataset.parse("S(a,b)@1\nS(c,c)@[2,3]"), query=STAGE_OUTPUT)
    found = sorted(format_fact(decode_output(fact)) for fact in model)
    assert found == ["O(c)@[2,3]", "P(a,b)@1", "P(c,c)@[2,3]"]
    reasoner = tl.Reasoner(made, STAGE_OUTPUT)
    reasoner.push(1, ["S(a,b)"])
    again = tl.Reasoner.load(reasoner.save(), made)
    answers = again.push(2, []) + again.finish(5)
    assert [format_fact(decode_output(fact)) for fact in answers] == ["P(a,b)@1"]


def test_a_stage_keeps_the_text_of_its_rules_for_errors() -> None:
    program = tl.Program.parse("A(X) :- B(X).\nBottom :- A(X), A(Y), X < Y.")
    plan = plan_distribution(program, "A")
    assert [(stage.single, stage.outputs) for stage in plan.stages] == [(False, ("A",)), (True, ())]
    made = build_stage_program(program, plan.stages[1])
    with pytest.raises(tl.errors.Inconsistent) as raised:
        tl.materialise(made, tl.Dataset.parse("A(a)@1\nA(b)@1"), query=choose_stage_query(plan.stages[1]))
    assert "Bottom :- A(X), A(Y), X < Y." in str(raised.value)
    assert raised.value.diagnostics[0].place is not None
    assert raised.value.diagnostics[0].place.line == 2
    with pytest.raises(tl.errors.Inconsistent):
        tl.Reasoner(made, choose_stage_query(plan.stages[1])).push(1, ["A(a)", "A(b)"])


def test_a_bucket_has_its_share_of_the_facts_of_the_program() -> None:
    rules = "Moved(X, T+1) :- At(X, L, T), Succ(L, M), At(X, M, T+1).\nSucc(a, b).\nAt(x, a, 0).\nAt(y, a, 1)."
    program = tl.Program.parse(rules, syntax="tdl")
    (stage,) = plan_distribution(program, "Moved").stages

    def mine(value: Value) -> bool:
        return value == "x"

    held = sorted(format_fact(fact) for fact in build_stage_program(program, stage, mine).facts)
    assert held == ["At(x,a)@0", "Succ(a,b)@(-inf,inf)"]


def test_a_constant_key_is_guarded_in_other_buckets() -> None:
    program = tl.Program.parse("L(base) :- Top.\nL(X) :- S(X).")
    (stage,) = plan_distribution(program, "L").stages
    for constant in ("base", "other"):
        made = build_stage_program(program, stage, constant.__eq__)
        held = list(map(format_fact, tl.materialise(made, tl.Dataset(), query="L")))
        assert held == (["L(base)@(-inf,inf)"] if constant == "base" else [])


def test_a_copied_predicate_comes_hashed_as_well_where_it_guards() -> None:
    program = tl.Program.parse("Path(X, Y) :- Edge(X, Y).\nPath(X, Z) :- Path(X, Y), Edge(Y, Z).")
    (stage,) = plan_distribution(program, "Path").stages
    assert stage.aliases == {"$Edge/1": "Edge"}
    assert stage.key == {"Path": 0, "Edge": None, "$Edge/1": 0}
    assert set(stage.receives) == set(stage.inputs) == {"Path", "Edge", "$Edge/1"}
