"""Questions with constants: how they are written, what is left out for them, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

import tidelog as tl
from shell import Shell
from tidelog.engine.batch_problem import Problem
from tidelog.engine.fact_store import Rows
from tidelog.goals import demand, focused_problem
from tidelog.goals.demand import Box
from tidelog.goals.fact_source import FactSource
from tidelog.proofs import explained_model
from tidelog.timeline.time_sets import Pair

pytestmark = pytest.mark.usefixtures("kernels")

REACH = "Reach(X, Y) :- Edge(X, Y). Reach(X, Z) :- Reach(X, Y), Edge(Y, Z)."
EDGES = "\n".join(f"Edge(n{i},n{i + 1})@[0,9]" for i in range(20))


class Focused:
    """The problems that were evaluated, with the number of facts of each."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    @property
    def facts(self) -> int:
        (problem,) = self.problems
        return sum(len(rows) for name, rows in problem.given.items() if not name.startswith("$"))


@pytest.fixture
def focused(monkeypatch: pytest.MonkeyPatch) -> Focused:
    seen = Focused()

    def record(*question: Any) -> Problem:
        seen.problems.append(focused_problem.focus(*question))
        return seen.problems[-1]

    monkeypatch.setattr("tidelog.batch.focus", record)
    return seen


def ask(rules: str, facts: str, query: str, **options: Any) -> list[str]:
    program, data = tl.Program.parse(rules), tl.Dataset.parse(facts)
    return str(tl.materialise(program, data, query=query, **options)).splitlines()


# How questions are written


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("P", ["P(A,b)@1", "P(a,a)@1", "P(a,b)@1", "P(b,3)@1"]),
        ("P(a,X)", ["P(a,a)@1", "P(a,b)@1"]),
        ("P(X,X)", ["P(a,a)@1"]),
        ("P(_,_)", ["P(A,b)@1", "P(a,a)@1", "P(a,b)@1", "P(b,3)@1"]),
        ('P("A",X).', ["P(A,b)@1"]),
        ("P(b,3.0)", ["P(b,3)@1"]),
        ("P(nobody,X)", []),
    ],
)
def test_atoms_as_queries(query: str, expected: list[str]) -> None:
    assert ask("P(X, Y) :- Q(X, Y).", "Q(A,b)@1\nQ(a,a)@1\nQ(a,b)@1\nQ(b,3)@1", query) == expected


def test_several_queries_about_one_predicate() -> None:
    program, data = tl.Program.parse("P(X) :- Q(X)."), tl.Dataset.parse("Q(a)@1\nQ(b)@2\nQ(c)@3")
    assert str(tl.materialise(program, data, query=["P(a)", "P(c)"])) == "P(a)@1\nP(c)@3\n"
    assert len(tl.materialise(program, data, query=["P(a)", "P"])) == 3


def test_the_time_of_temporal_datalog_is_a_variable() -> None:
    program = tl.Program.parse("P(X, T+1) :- Q(X, T).", syntax="tdl")
    data = tl.Dataset.parse("Q(a,1)\nQ(b,2)")
    for query in ("P(a,T)", "P(a)"):
        assert str(tl.materialise(program, data, query=query)) == "P(a)@2\n"
    with pytest.raises(tl.TidelogError, match="its time"):
        tl.materialise(program, data, query="P(a,2)")


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("Hit(a)", "TL302", "Hit"),
        ("Hot(a,b)", "TL102", "in the query"),
        ("Hot(a", "TL001", "too early"),
        ("Hot(X+1)", "TL001", "is not a query"),
        ("Diamondminus[0,1] Hot(X)", "TL001", "is not a query"),
        ("Hot(a) Cold(b)", "TL001", "unexpected"),
    ],
)
def test_queries_that_cannot_be_read(sh: Shell, query: str, code: str, words: str) -> None:
    sh.write("rules.dmtl", "Hot(X) :- High(X).")
    sh.write("data.facts", "High(a)@1")
    result = sh("materialise", "rules.dmtl", "data.facts", "--query", query)
    assert result.code == 2
    assert code in result.err
    assert words in result.err


def test_the_command_line_takes_atoms(sh: Shell) -> None:
    sh.write("rules.dmtl", "Hot(X, Y) :- High(X, Y).")
    sh.write("data.facts", "High(a,b)@1\nHigh(b,b)@1\n")
    result = sh("materialise", "rules.dmtl", "data.facts", "--query", "Hot(a,X)", "--strict")
    assert (result.code, result.out, result.err) == (0, "Hot(a,b)@1\n", "")


# What is left out


def test_only_facts_that_can_matter_are_read(focused: Focused) -> None:
    assert len(ask(REACH, EDGES, "Reach(n15,X)")) == 5
    assert focused.facts == 5


def test_rules_are_guarded_where_their_bodies_say_too_little(focused: Focused) -> None:
    ask(REACH, EDGES, "Reach(n15,X)")
    first, second = focused.problems[0].compiled.rules
    guard = first.body[-1]
    assert focused.problems[0].facts_of(guard.predicate).args.tolist() == [[find_number(focused.problems[0], "n15")]]
    assert [literal.predicate for literal in second.body] == ["Reach", "Edge"]


def find_number(problem: Problem, name: str) -> int:
    return problem.symbols.intern(name)


def test_negation_sees_everything_that_it_denies(focused: Focused) -> None:
    rules = "Free(X) :- Room(X), not Taken(X). Taken(X) :- Booked(X, Y), not Cancelled(Y)."
    facts = "Room(a)\nRoom(b)\nBooked(a,k1)@[0,3]\nBooked(a,k2)@[2,5]\nBooked(b,k3)@1\nCancelled(k2)\nCancelled(k3)"
    assert ask(rules, facts, "Free(a)") == ["Free(a)@(-inf,0)", "Free(a)@(3,inf)"]
    assert focused.facts == 4


def test_groups_of_aggregates_are_complete(focused: Focused) -> None:
    rules = "Busy(R, N) :- Room(R), N = count{ In(X, R) }."
    facts = "Room(a)\nRoom(b)\nIn(x,a)@1\nIn(y,a)@1\nIn(y,b)@1\nIn(z,b)@2"
    assert ask(rules, facts, "Busy(a,N)", between=(1, 1)) == ["Busy(a,2)@1"]
    assert focused.facts == 3


def test_facts_outside_the_reach_of_the_rules_are_left_out(focused: Focused) -> None:
    facts = "\n".join(f"High(a)@{i}" for i in range(100))
    assert ask("Hot(X) :- Boxminus[2,4] High(X).", facts, "Hot", between=(50, 51), timeline="integer") == [
        "Hot(a)@[50,51]"
    ]
    assert focused.facts == 4


def test_occurrences_keep_their_starts(focused: Focused) -> None:
    facts = "On(a)@[0,5]\nOn(a)@(5,20]"
    assert ask("Twice(X) :- count[0,20]{ On(X) } >= 2.", facts, "Twice", between=(10, 12)) == []
    assert focused.facts == 2


def test_violated_constraints_are_reported_whatever_is_asked() -> None:
    with pytest.raises(tl.errors.Inconsistent):
        ask("P(X) :- Q(X). Bottom :- Q(X), R(X).", "Q(a)@1\nQ(b)@5\nR(b)@5", "P(a)", between=(1, 1))


def test_a_question_that_needs_too_much_is_answered_from_all_facts(
    focused: Focused, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WORK_PER_FACT", "TIMES_PER_RULE", "WORK_IN_ANY_CASE"):
        monkeypatch.setattr(demand, name, 0)
    assert len(ask(REACH, EDGES, "Reach(n15,X)")) == 5
    assert focused.facts == 20


def test_atoms_that_repeat_at_both_ends_are_printed_as_in_the_whole_model() -> None:
    rules = "A(X) :- Diamondminus[3,3] A(X). A(X) :- Diamondplus[3,3] A(X)."
    whole = ask(rules, "A(a)@5\nA(b)@100", "A")
    assert ask(rules, "A(a)@5\nA(b)@100", "A(a)") == [line for line in whole if "A(a)" in line]


def test_a_question_is_answered_where_other_facts_are_refused() -> None:
    rules = "E(X) :- A(X), not Diamondminus[2,3] E(X)."
    facts = "A(a)@(-inf,0]\nA(b)@[4,5]"
    with pytest.raises(tl.TidelogError, match="TL311"):
        ask(rules, facts, "E")
    assert ask(rules, facts, "E(b)") == ["E(b)@[4,5]"]


def test_a_query_that_is_no_text_is_refused() -> None:
    with pytest.raises(tl.TidelogError, match="NoneType, which is no name of a predicate"):
        tl.Reasoner(tl.Program.parse("Hit(X) :- On(X)."), None)  # type: ignore[arg-type]


# Why facts do not hold


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let why-not ask for facts, however few there are; return the predicates, each with the known arguments."""
    monkeypatch.setattr(explained_model, "FEWEST_FACTS", 0)
    asked: list[str] = []
    find = FactSource.find

    def record(source: FactSource, name: str, box: Box, span: Pair) -> Rows:
        asked.append(f"{name}{sorted(box)}")
        return find(source, name, box, span)

    monkeypatch.setattr(FactSource, "find", record)
    return asked


def explain(rules: str, facts: str, fact: str) -> str:
    return str(tl.explain(tl.Program.parse(rules), tl.Dataset.parse(facts), fact))


def test_why_not_asks_for_what_it_looks_at(asking: list[str]) -> None:
    facts = "\n".join(f"Staff(p{i})@[0,9]\nHeadOf(p{i},d{i})@{i % 10}" for i in range(100))
    rules = "Member(X) :- Staff(X). Head(X) :- Member(X), HeadOf(X, Y)."
    assert explain(rules, facts, "Head(p7)@3") == (
        "Head(p7)@3 does not hold; it holds on 7\n"
        "└─ not by Head(X) :- Member(X), HeadOf(X, Y). (line 1): HeadOf(p7, Y) fails at 3\n"
        "   ├─ it holds on 7\n"
        "   └─ at that time there is HeadOf(p3, d3), HeadOf(p13, d13), HeadOf(p23, d23)\n"
    )
    assert asking == ["Head[0]", "Member[0]", "HeadOf[0]", "HeadOf[]"]


@pytest.mark.parametrize(
    ("rules", "fact"),
    [
        pytest.param("P(X) :- Q(X). P(X) :- Diamondminus[2,2] P(X).", "P(b)@5", id="what may repeat"),
        pytest.param("P(X) :- Q(X), Y = 1 / 0, Y > X.", "P(b)@5", id="undefined operations"),
        pytest.param("P(X) :- Q(X), N = count{ R(X, Y) }, N > 3.", "P(b)@5", id="values of aggregates"),
        pytest.param("P(X) :- Diamondplus[0,inf) Q(X).", "P(b)@5", id="the end of time"),
    ],
)
def test_why_not_takes_all_facts_where_it_depends_on_them(asking: list[str], rules: str, fact: str) -> None:
    assert "does not hold" in explain(rules, "Q(a)@1\nQ(b)@2\nR(a,b)@1", fact)
    assert not asking


def test_recursions_that_end_with_their_inputs_repeat_nothing(asking: list[str]) -> None:
    rules = "P(X) :- Q(X). P(X) :- Diamondminus[2,2] P(X), R(X)."
    assert "R(a) fails at 9" in explain(rules, "Q(a)@1\nR(a)@[0,7]\nP(a)@7", "P(a)@9")
    assert asking


def test_absences_far_from_the_data_are_explained_where_they_are() -> None:
    assert explain("P(X) :- Diamondminus[0,5] Q(X).", "Q(a)@3", "P(a)@1000000").splitlines() == [
        "P(a)@1000000 does not hold; it holds on [3,8]",
        "└─ not by P(X) :- Diamondminus[0,5] Q(X). (line 1): Diamondminus[0,5] Q(a) fails at 1000000",
        "   └─ it holds on [3,8]",
    ]
