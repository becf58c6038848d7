"""Rules that follow from others: which are found, that leaving them out changes nothing, and what is said about it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

import tidelog as tl
from tidelog.cli.main import run
from tidelog.language.syntax import Rule, Top
from tidelog.timeline.interval import TimelineName
from tidelog.windows.memory_report import compute_savings, explain_memory
from tidelog.windows.redundant_rules import drop_redundant_rules, explain_redundancy, find_redundant_rules

pytestmark = pytest.mark.usefixtures("kernels")


def explain_by_number(
    text: str, timeline: TimelineName = "rational", syntax: str = "dmtl"
) -> dict[int, tuple[int, ...]]:
    """Return the redundant rules and the rules that they follow from, numbered from 1."""
    because = explain_redundancy(tl.Program.parse(text, syntax=syntax), timeline)
    return {number + 1: tuple(other + 1 for other in others) for number, others in because.items()}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("P(X) :- A(X).  P(X) :- A(X), Diamondminus[0,5] B(X).", {2: (1,)}),
        ("P(X) :- A(X).  P(Y) :- A(Y).", {2: (1,)}),
        ("P(X) :- A(X, Y).  P(X) :- A(X, c).", {2: (1,)}),
        ("P(X) :- A(X, c).  P(X) :- A(X, Y).", {1: (2,)}),
        ("P(X) :- Boxminus[0,1] A(X).  P(X) :- Boxminus[0,4] A(X).", {2: (1,)}),
        ("P(X) :- Diamondminus[0,1] A(X).  P(X) :- Diamondminus[0,4] A(X).", {1: (2,)}),
        ("P(X) :- Diamondminus[0,1] A(X).  P(X) :- Boxminus[1,3] A(X).", {2: (1,)}),
        # Covered by two others, or not quite: the point 1 is missing.
        ("P :- Diamondminus[0,1] A.  P :- Diamondminus(1,2] A.  P :- Diamondminus[0,2] A.", {3: (1, 2)}),
        ("Q :- Diamondminus[0,1) A.  Q :- Diamondminus(1,2] A.  Q :- Diamondminus[0,2] A, A.", {3: (1,)}),
        ("Q :- Diamondminus[0,1) A, B.  Q :- Diamondminus(1,2] A, B.  Q :- Diamondminus[1,2] A, B, C.", {}),
        # Two points, in every order within a unit; in the second program they may not be the same.
        (
            "D :- A, Diamondminus[0,1] B.  E :- B, Diamondminus[0,1] A.  P :- Diamondminus[0,1] D."
            "  P :- Diamondminus[0,1] E.  P :- Diamondminus[0,1] A, Diamondminus[0,1] B.",
            {5: (1, 2, 3, 4)},
        ),
        (
            "D :- A, Diamondminus(0,1] B.  E :- B, Diamondminus(0,1] A.  P :- Diamondminus[0,1] D."
            "  P :- Diamondminus[0,1] E.  P :- Diamondminus[0,1] A, Diamondminus[0,1] B.",
            {},
        ),
        ("P :- A Since[0,5] B.  P :- Diamondminus[0,5] B.", {1: (2,)}),
        ("P :- A Since[0,5] B.  P :- A Since[2,4] B.", {2: (1,)}),
        ("P :- A Since[0,5] B.  P :- A Since[2,6] B.", {}),
        ("P :- A Until[1,2] B.  P :- Diamondplus[0,2] B.", {1: (2,)}),
        # Through other predicates, and through recursion.
        ("Q :- Diamondminus[1,1] A.  P :- Diamondminus[1,1] Q.  P :- Diamondminus[2,2] A.", {3: (1, 2)}),
        ("P :- Diamondminus[1,1] P.  P :- A.  P :- Diamondminus[4,4] A.", {3: (1, 2)}),
        ("P :- Diamondminus[2,2] P.  P :- A.  P :- Diamondminus[3,3] A.", {}),
        # Literals that cannot be frozen are abstracted.
        ("P :- B, Boxminus[0,4] Diamondminus[0,2] A.  P :- C, B, Boxminus[0,4] Diamondminus[0,2] A.", {2: (1,)}),
        ("P :- B, Boxminus[0,4] Diamondminus[0,2] A.  P :- C, B, Boxminus[0,4] Diamondminus[0,3] A.", {}),
        ("P :- Diamondminus[3,inf) A.  P :- B, Diamondminus[3,inf) A.", {2: (1,)}),
        # Heads.
        ("Boxplus[0,3] P :- A.  P :- Diamondminus[0,2] A.", {2: (1,)}),
        ("Boxplus[0,3] P :- A.  P :- Diamondminus[0,4] A.", {1: (2,)}),
        ("Boxplus[0,3] P :- A.  Boxplus(3,4] P :- A.  Boxminus[0,1] Boxplus[2,3] P :- A.", {3: (1,)}),
        # Negation and comparisons, only as they are written.
        ("P(X) :- A(X), not C(X).  P(X) :- A(X), B(X), not C(X).", {2: (1,)}),
        ("P(X) :- A(X), not C(X).  P(X) :- A(X), B(X), not D(X).", {}),
        ("P(X) :- A(X).  P(X) :- A(X), not C(X).", {2: (1,)}),
        ("P(X) :- A(X), not C(X).  P(X) :- A(X).", {1: (2,)}),
        ("P(X) :- A(X, V), V > 3.  P(X) :- A(X, V), 3 < V, B(X).", {2: (1,)}),
        ("P(X) :- A(X, V), V >= 3.  P(X) :- A(X, V), V > 3, B(X).", {2: (1,)}),
        ("P(X) :- A(X, V), V > 3.  P(X) :- A(X, V), V >= 3, B(X).", {}),
        ("P(X) :- A(X, V), V != W, A(X, W).  P(X) :- A(X, V), A(X, W), V < W.", {2: (1,)}),
        # Constraints stay, and nothing follows from them.
        ("Bottom :- A, B.  Bottom :- A, B, C.  P :- A, B.", {}),
    ],
)
def test_which_rules_follow_from_others(text: str, expected: dict[int, tuple[int, ...]]) -> None:
    assert explain_by_number(text) == expected


def test_on_the_integers_there_is_nothing_between_two_points() -> None:
    rules = "P :- Diamondminus[0,1] A.  P :- Diamondminus[2,3] A.  P :- Diamondminus[0,3] A."
    assert explain_by_number(rules, "integer") == {3: (1, 2)}
    assert explain_by_number(rules) == {1: (3,), 2: (3,)}


def test_temporal_datalog_is_treated_in_the_same_way() -> None:
    assert explain_by_number("P(T) :- A(T). P(T) :- A(T-1), A(T).", "integer", "tdl") == {2: (1,)}


def test_dropping_rules_keeps_the_numbers_of_the_others() -> None:
    program = tl.Program.parse("P :- A.  P :- A, B.  Q :- P.")
    assert drop_redundant_rules(program, "rational") == (program.rules[0], Rule(Top()), program.rules[2])


# Random programs

_OPERATORS = ["", "", "Diamondminus", "Diamondminus", "Boxminus", "Diamondplus", "Boxplus", "Since"]


def random_program(random: Random) -> str:
    rules = []
    for _ in range(random.randint(2, 5)):
        body = ", ".join(_literal(random) for _ in range(random.choice([1, 1, 2])))
        head = random.choice(["P", "P", "P", "Q"])
        box = random.choice(["", "", "", f"Boxplus{_range(random)} ", f"Boxminus{_range(random)} "])
        rules.append(f"{box}{head} :- {body}.")
    return "\n".join(rules)


def _literal(random: Random) -> str:
    op, name = random.choice(_OPERATORS), random.choice("AABBPQ")
    if op == "Since":
        return f"{random.choice('AB')} Since{_range(random)} {name}"
    negated = "not " if name in "AB" and random.random() < 0.1 else ""
    inner = f"Diamondminus{_range(random)} " if random.random() < 0.15 else ""
    return f"{negated}{op}{_range(random)} {inner}{name}" if op else f"{negated}{inner}{name}"


def _range(random: Random) -> str:
    lo = random.choice([0, 0, 1, 2])
    hi = lo + random.choice([0, 1, 2])
    if lo == hi:
        return f"[{lo},{hi}]"
    return random.choice("[[(") + f"{lo},{hi}" + random.choice("]])")


def random_facts(random: Random) -> str:
    lines = []
    for _ in range(random.randint(1, 6)):
        lo = random.randint(0, 12)
        hi = lo + random.choice([0, 0, 1, 2, 5])
        ends = "[]" if lo == hi else random.choice(["[]", "[)", "(]", "()"])
        lines.append(f"{random.choice('AABBPQ')}@{ends[0]}{lo}/2,{hi}/2{ends[1]}")
    return "\n".join(lines)


@pytest.mark.parametrize("seeds", [range(start, start + 40) for start in range(0, 160, 40)], ids=str)
def test_dropping_redundant_rules_changes_no_answer(seeds: range) -> None:
    counted = 0
    for seed in seeds:
        random = Random(seed)
        text = random_program(random)
        program = tl.Program.parse(text)
        left_out = set(find_redundant_rules(program, "rational"))
        if not left_out:
            continue
        rules = tuple(rule for number, rule in enumerate(program.rules) if number not in left_out)
        fewer = tl.Program(rules, "rational")
        for _ in range(5):
            facts = random_facts(random)
            data = tl.Dataset.parse(facts)
            try:
                both = [tl.materialise(p, data, query=["P", "Q"], between=(-5, 15)) for p in (program, fewer)]
            except tl.TidelogError:  # undecided, or Q occurs nowhere
                continue
            counted += 1
            assert both[0].render() == both[1].render(), f"seed {seed}, without {left_out}\n{text}\n{facts}"
    assert counted >= 20, "too few programs of which a rule is left out"


# Reports


def test_the_reasoner_drops_redundant_rules_and_keeps_less() -> None:
    both = tl.Program.parse("P(X) :- A(X).  P(X) :- A(X), Diamondminus[0,100] B(X).")
    one = tl.Program.parse("P(X) :- A(X).")
    held = []
    for program in (both, one):
        reasoner = tl.Reasoner(program, "P", memory="generic")
        for t in range(50):
            reasoner.push(t, [f"A(a{t})", f"B(a{t})"])
        held.append(reasoner.last_step.window_facts)
    assert held[0] == held[1]


def test_a_redundant_rule_may_look_ahead_without_limit_in_a_stream() -> None:
    program = tl.Program.parse("Q(X) :- P(X).  Q(X) :- P(X), Diamondplus[0,inf) R(X).")
    reasoner = tl.Reasoner(program, "Q")
    assert [str(fact.interval) for fact in reasoner.push(3, ["P(a)"]) + reasoner.push(4)] == ["3"]


def test_why_each_predicate_is_kept() -> None:
    program = tl.Program.parse(
        "Hot(X) :- Temp(X), Diamondminus[0,5min] Temp(X).\n"
        "Alarm(X) :- Hot(X).\n"
        "Alarm(X) :- Hot(X), Boxminus[0,17min] Temp(X).\n"
        "Warm(X) :- Boxminus[0,10min] Temp(X).\n"
        "Warm(X) :- B(X), Diamondminus[0,10min] Temp(X).\n"
    )
    assert explain_memory(program) == (
        "Temp is kept for 600 because of rules 4 and 5; 300 would be enough without them",
        "rule 3 follows from rule 2 and is left out",
    )
    assert explain_memory(program, "Alarm") == (
        "Temp is kept for 300 because of rule 1",
        "rule 3 follows from rule 2 and is left out",
    )
    assert compute_savings(program, program, "Alarm") == {
        "rules": ["line 3: Alarm(X) :- Hot(X), Boxminus[0,17min] Temp(X)."],
        "retention": {"Temp": ["1020", "300"]},
    }
    assert compute_savings(program, program, "Hot") is None


def test_check_and_the_statistics_of_a_stream_report_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, facts, stats = tmp_path / "rules.tdl", tmp_path / "facts", tmp_path / "stats"
    rules.write_text("P(T) :- A(T).\nP(T) :- A(T-1), A(T).\n")
    facts.write_text("A(0)\nA(1)\n")
    assert run(["check", str(rules), "--query", "P"]) == 0
    shown = capsys.readouterr().out
    assert "rule 2 follows from rule 1 and is left out" in shown
    assert "P looks back 1, but a window of 0 is enough for any data" in shown
    assert run(["stream", str(rules), "--query", "P", "--input", str(facts), "--stats", str(stats)]) == 0
    assert capsys.readouterr().out == "P@[0,1]\n"
    first, *rest = map(json.loads, stats.read_text().splitlines())
    assert first["saved"] == {"rules": ["line 2: P(T) :- A(T-1), A(T)."], "retention": {"A": ["1", "0"]}}
    assert rest
    assert not any("saved" in figures for figures in rest)


def test_a_program_that_only_renames_a_variable_streams_as_well() -> None:
    reasoner = tl.Reasoner(tl.Program.parse("S(Y) :- P(X), Y = X."), "S")
    assert reasoner.push(0, ["P(3)"]) + reasoner.finish(1) == list(tl.Dataset.parse("S(3)@0"))
