"""How much history a query needs: examples of the paper, and random queries compared with an explicit search."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random

import pytest

import tidelog as tl
from locations import EXAMPLES
from regular_expressions import Expression, find_counterexample, random_expression, translate_expression
from tidelog.language.syntax import Value
from tidelog.windows.closed_domain import assume_window
from tidelog.windows.forward_query import build_forward_query
from tidelog.windows.open_containment import find_obstacle, find_open_loss
from tidelog.windows.product_program import build_product
from tidelog.windows.product_search import Invariant, is_invariant, search_product
from tidelog.windows.validity import WindowCheck, WindowReport
from tidelog.windows.window_algorithm import run_window_algorithm
from tidelog.windows.witness import TimedFact, Witness
from window_oracle import find_answers, find_first_loss, loses, random_query


def parse(text: str) -> tl.Program:
    return tl.Program.parse(text, syntax="tdl")


BLACKLIST = tl.Program.load(EXAMPLES / "intrusion" / "blacklist.tdl")
SUBSUMED = parse("P(T) :- A(T). P(T) :- A(T-1), A(T).")
PERSISTS = parse("B(T) :- A(T). B(T+1) :- B(T). P(T) :- B(T).")


def window_sizes(report: WindowReport) -> tuple[object, ...]:
    return report.radius, report.uniform, report.exact


def check_replay(program: tl.Program, query: str, window: int, witness: Witness) -> None:
    """Check that the streaming algorithm loses the answer with this window, but not with the radius."""
    asked = build_forward_query(program, query)
    background = [(name, args) for name, args, _ in witness.background]
    _, args, time = witness.lost
    assert time is not None
    assert args in run_window_algorithm(asked, asked.radius, background, witness.steps)[time]
    assert args not in run_window_algorithm(asked, window, background, witness.steps)[time]


# Examples of the paper


@pytest.mark.parametrize("objects", ["a", "max", "a,b", "a,max", "a,b,max", "a,b,c,max", "a,b,c"])
def test_the_intrusion_query_looks_back_2_but_a_window_of_1_is_valid_over_any_objects(objects: str) -> None:
    report = tl.window(BLACKLIST, "Black", objects)
    assert window_sizes(report) == (2, 2, 1)
    assert report.witness is not None
    check_replay(BLACKLIST, "Black", 0, report.witness)


def test_the_intrusion_query_as_json() -> None:
    assert tl.window(BLACKLIST, "Black", ["a", "b", "max"]).to_json() == {
        "radius": 2,
        "uniform": 2,
        "exact": 1,
        "witness": {"background": [], "stream": ["Brst(a,a,0)", "Brst(a,a,1)"], "lost": "Black(a,1)"},
    }
    assert tl.window(BLACKLIST, "Black").to_json() == {"radius": 2, "uniform": 2}


def test_a_rule_that_another_subsumes_needs_no_window() -> None:
    assert window_sizes(tl.window(SUBSUMED, "P")) == (1, 0, None)
    report = tl.window(SUBSUMED, "P", ["a"])
    assert window_sizes(report) == (1, 0, 0)
    assert report.witness is None


def test_a_fact_that_persists_needs_a_window_of_1() -> None:
    report = tl.window(PERSISTS, "P", ["a"])
    assert window_sizes(report) == (1, 1, 1)
    assert report.witness is not None
    assert report.witness.to_json() == {"background": [], "stream": ["A(0)"], "lost": "P(1)"}


def test_only_the_rules_that_a_query_depends_on_count() -> None:
    program = parse("P(T) :- A(T). Q(T) :- P(T-7). R(T) :- A(T), not Q(T+1).")
    assert window_sizes(tl.window(program, "P", "a")) == (0, 0, 0)
    assert window_sizes(tl.window(program, "Q", "a")) == (7, 7, 7)


def test_the_output_may_occur_in_bodies_and_inputs_may_be_asked_for() -> None:
    program = parse("P(X, T+1) :- P(X, T), A(X, T+1). P(X, T) :- B(X, T).")
    assert window_sizes(tl.window(program, "P", "a")) == (1, 1, 1)
    assert window_sizes(tl.window(program, "A", "a")) == (0, 0, 0)


def test_background_facts_are_part_of_a_witness() -> None:
    program = parse("P(X, T) :- A(X, T-1), R(X, Y), S(Y). S(Y) :- U(Y). #rigid R/2.")
    report = tl.window(program, "P", "a,b")
    assert window_sizes(report) == (1, 1, 1)
    assert report.witness is not None
    assert report.witness.to_json() == {
        "background": ["R(a,a)", "U(a)"],
        "stream": ["A(a,0)"],
        "lost": "P(a,1)",
    }


def test_rigid_facts_of_the_rule_file_always_hold() -> None:
    rules = "P(X, T) :- A(X, T). P(X, T) :- A(X, T), Old(Y, T-1), R(Y). #rigid R/1."
    assert window_sizes(tl.window(parse(rules), "P", "a")) == (1, 0, 0)
    rules = "P(T) :- A(T), A(T-1). P(T) :- A(T), S(on). #rigid S/1."
    assert window_sizes(tl.window(parse(rules), "P", "a")) == (1, 1, 1)
    assert window_sizes(tl.window(parse(rules + " S(on)."), "P", "a")) == (1, 0, 0)


def test_input_facts_mention_only_the_objects_not_constants_of_rules() -> None:
    program = parse("P(T) :- A(T-1), R(on). #rigid R/1.")
    assert tl.window(program, "P", "a").exact == 0
    assert tl.window(program, "P", "a,on").exact == 1


def test_comparisons_are_evaluated_over_the_objects() -> None:
    program = parse("P(X, T) :- A(X, T). P(X, T) :- B(X, T-1), X < 3. Q(X, T) :- P(X, T), X > 5.")
    assert window_sizes(tl.window(program, "Q", [1, 7])) == (1, 1, 0)
    assert window_sizes(tl.window(program, "P", [7])) == (1, 1, 0)
    assert window_sizes(tl.window(program, "P", [2, 7])) == (1, 1, 1)


def test_frozen_objects_compare_as_the_rule_says_and_not_otherwise() -> None:
    assert tl.window(parse("P(X, T) :- A(X, T), X < 5. P(X, T) :- A(X, T), 5 > X, B(T-1)."), "P").uniform == 0
    assert tl.window(parse("P(X, T) :- A(X, T), X < 5. P(X, T) :- A(X, T), X < 9, B(T-1)."), "P").uniform == 1


def test_a_window_between_two_radii_is_judged_by_the_lower_one() -> None:
    program = parse("P(T) :- A(T-5).")
    report = tl.window(program, "P", "a", check=3)
    assert window_sizes(report) == (5, 5, 5)
    assert report.check is not None
    assert report.check.valid is False
    assert report.check.witness is not None
    check_replay(program, "P", 3, report.check.witness)
    check_replay(program, "P", 4, report.check.witness)


def test_a_check_without_objects_decides_for_all_data_if_there_is_no_recursion() -> None:
    # Whatever Y is, X itself would do; so the longer rule is needed only for its second reading of A.
    program = parse("P(X, T) :- Q(X, T), Q(_Y, T). Q(X, T) :- A(X, T). Q(X, T) :- A(X, T), A(_Z, T-2).")
    assert tl.window(program, "P", check=0).check == WindowCheck(0, True)
    program = parse("Q(X, T) :- A(X, T). P(X, T) :- Q(X, T), Q(_Y, T-1). P(X, T) :- A(X, T), B(T).")
    found = tl.window(program, "P", check=0).check
    assert found is not None
    assert found.valid is False
    assert found.witness is not None
    assert found.witness.to_json() == {"background": [], "stream": ["A(b,0)", "A(a,1)"], "lost": "P(a,1)"}
    check_replay(program, "P", 0, found.witness)


def test_a_recursive_query_or_one_with_an_order_is_not_decided_without_objects() -> None:
    recursive = tl.window(BLACKLIST, "Black", check=1).check
    ordered = tl.window(parse("P(X, T) :- A(X, T), X < 3. P(X, T) :- A(X, T), X < 2, A(_Y, T-1)."), "P", check=0).check
    assert recursive is not None
    assert ordered is not None
    assert (recursive.valid, recursive.reason) == (None, "the query is recursive")
    assert (ordered.valid, ordered.reason) == (None, "the rules compare objects by order")
    with pytest.raises(tl.TidelogError, match=r"blacklist.tdl:7:1: error.TL608.: .* the query is recursive"):
        tl.windows.contained((BLACKLIST, "Black"), (BLACKLIST, "Black"))


def test_random_queries_without_known_objects_against_the_definition() -> None:
    decided = {True: 0, False: 0}
    for seed in range(80):
        text, objects = random_query(Random(seed))
        if seed % 2:  # a rule that another makes unnecessary, in a way that only unfolding may show
            rule = next(line for line in text.replace(". ", ".\n").splitlines() if line.startswith("G"))
            text += "\n" + rule.rstrip(". ") + ", A(T-3)."
        program = parse(text).with_temporal_query("G")
        assert program.temporal is not None
        query = build_forward_query(program, "G")
        for window in range(query.radius):
            if find_obstacle(query, query.restrict_to(window)):
                continue
            witness = find_open_loss(query, query.restrict_to(window))
            decided[witness is None] += 1
            if witness is not None:
                facts = [*witness.background, *witness.stream]
                assert loses(program.temporal, "G", window, facts, witness.lost), f"{text}\n{witness}"
            else:
                assert find_first_loss(program.temporal, "G", list(objects), window) is None, f"{text}\nwindow {window}"
    assert min(decided.values()) >= 3


def test_a_stream_with_a_chosen_window_gives_what_the_algorithm_gives() -> None:
    compared = shorter = 0
    for seed in range(60):
        random = Random(seed)
        text, objects = random_query(random)
        program = parse(text).with_temporal_query("G")
        assert program.temporal is not None
        query = build_forward_query(program, "G")
        facts: list[TimedFact] = []
        for name in query.inputs:
            for values in product(objects, repeat=query.arities[name]):
                times = range(6) if name in query.temporal else [None]
                facts += [(name, values, time) for time in times if random.random() < 0.5]
        data = tl.Dataset.parse("\n".join(map(format_timed, facts)))
        for window in range(query.radius + 1):
            domain, warning = assume_window(program, "G", window)
            expected = find_answers(program.temporal, "G", window, facts, 5)
            reasoner = tl.Reasoner(domain.program, "G", at="every:1")
            steps = [answer for step in reasoner.feed(data) for answer in step.answers]
            given = {(fact.args, int(fact.interval.lo)) for fact in [*steps, *reasoner.finish(5)]}
            assert given == expected, f"seed {seed}, window {window}\n{text}"
            whole = find_answers(program.temporal, "G", query.radius, facts, 5)
            assert warning is not None or given == whole, f"seed {seed}: no warning, but answers are lost"
            compared += 1
            shorter += given != whole
    assert compared >= 60
    assert shorter >= 5


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("P(X, T) :- E(X, Y, T), E(Y, Z, T).", "P(X, T) :- E(X, Y, T).", True),
        ("P(X, T) :- E(X, Y, T).", "P(X, T) :- E(X, Y, T), E(Y, Z, T).", False),
        ("P(X, T) :- E(X, X, T).", "P(X, T) :- E(X, Y, T), E(Y, Z, T), E(Z, X, T).", True),
        # The second may be recursive.
        ("P(X, T+2) :- E(X, Y, T), F(T+1), F(T+2).", "P(X, T) :- E(X, Y, T). P(X, T+1) :- P(X, T), F(T+1).", True),
        ("P(X, T) :- E(X, Y, T).", "P(X, T) :- E(X, X, T). P(X, T) :- E(X, Y, T), X != Y.", True),
        ("P(X, T) :- E(X, Y, T), X != Y.", "P(X, T) :- E(X, Y, T), X != a.", False),
        ("P(X, T) :- E(X, Y, T).", "P(X, T) :- E(X, Y, T), Y != a. P(X, T) :- E(X, a, T).", True),
        ("P(X, T) :- E(X, Y, T), R(Y). #rigid R/1. R(c).", "P(X, T) :- E(X, Y, T), R(Y). #rigid R/1.", False),
        ("P(X, T) :- E(X, Y, T), R(Y). #rigid R/1.", "P(X, T) :- E(X, Y, T), R(Y). #rigid R/1. R(c).", True),
    ],
)
def test_containment_without_objects(first: str, second: str, expected: bool) -> None:
    one, two = parse(f"{first} #temporal E/3. #temporal F/1."), parse(f"{second} #temporal E/3. #temporal F/1.")
    found = tl.windows.contained((one, "P"), (two, "P"))
    assert found.holds is expected
    if found.witness is not None:
        facts = [*found.witness.background, *found.witness.stream]
        for program, wanted in ((one, True), (two, False)):
            data = tl.Dataset.parse("\n".join(map(format_timed, facts)))
            model = tl.materialise(program, data, query="P")
            assert (format_timed(found.witness.lost) in str(model).splitlines()) is wanted


def format_timed(fact: TimedFact) -> str:
    """The fact as DatalogMTL writes it."""
    name, args, time = fact
    return f"{name}({','.join(map(str, args))})" + ("" if time is None else f"@{time}")


def test_a_check_without_objects_knows_what_is_uniform() -> None:
    assert [tl.window(BLACKLIST, "Black", check=w).to_json()["check"]["valid"] for w in range(4)] == [
        None,
        None,
        True,
        True,
    ]


# Containment


def test_a_window_is_valid_if_the_query_is_contained_in_itself_without_longer_rules() -> None:
    asked = build_forward_query(BLACKLIST, "Black")
    for window, expected in ((0, False), (1, True)):
        kept = [rule.source.text for rule in asked.rules if rule.source and rule.radius <= window]
        # A predicate that no rule derives would be input.
        nothing = ["Attk(X, Y, T) :- Attk(X, Y, T).", "Grey(X, Y, T) :- Grey(X, Y, T)."]
        cut = parse(" ".join([*kept, *nothing, "#rigid Succ/2. #temporal Brst/3."]))
        found = tl.windows.contained((BLACKLIST, "Black"), (cut, "Black"), "a,max")
        assert found.holds is bool(found) is expected
        assert tl.windows.contained((cut, "Black"), (BLACKLIST, "Black"), "a,max").holds


def merged(first: str, second: str, radius: int) -> tl.Program:
    """Return the query of theorem 12: its window `radius` is valid if the first query is contained in the second."""
    return parse(
        f"{first}\n{second}\nG(T) :- Before(T-{radius + 1}), Now(T), One(T).\nG(T) :- Now(T), Two(T).\n"
        "#temporal Before/1. #temporal Now/1. #temporal A/1."
    )


@pytest.mark.parametrize(
    "first, second, expected",
    [
        ("One(T) :- A(T), A(T-1).", "Two(T) :- A(T).", True),
        ("One(T) :- A(T).", "Two(T) :- A(T), A(T-1).", False),
        ("One(T) :- A(T). One(T) :- One(T-1), B(T).", "Two(T) :- A(T). Two(T) :- Two(T-1), B(T).", True),
        ("One(T) :- A(T). One(T) :- One(T-1), B(T).", "Two(T) :- A(T). Two(T) :- A(T-1), B(T).", False),
    ],
)
def test_containment_is_a_window_and_a_window_is_containment(first: str, second: str, expected: bool) -> None:
    one, two = (parse(text + " #temporal A/1.") for text in (first, second))
    assert tl.windows.contained((one, "One"), (two, "Two"), "a").holds is expected
    query = merged(first, second, 1)
    report = tl.window(query, "G", "a", check=1)
    assert report.check is not None
    assert report.check.valid is expected
    if report.check.witness:
        check_replay(query, "G", 1, report.check.witness)


@pytest.mark.parametrize("seed", range(40))
def test_regular_expressions_are_contained_as_their_automata_say(seed: int) -> None:
    random = Random(seed)
    first, second = random_expression(random, 3), random_expression(random, 4)
    one, two = queries(first, second)
    found = tl.windows.contained((one, "G"), (two, "G"), "a")
    word = find_counterexample(first, second)
    assert found.holds == (word is None), f"{first} in {second}"
    if word is not None:
        assert found.witness is not None
        assert found.witness.lost[2] == len(word), "the shortest word is the shortest stream"


def queries(first: Expression, second: Expression) -> tuple[tl.Program, tl.Program]:
    kinds = "#temporal F/1. #temporal Aa/1. #temporal Ab/1. #temporal G/1."
    one, two = (
        parse("\n".join([kinds, "G(T) :- G(T).", *translate_expression(e, side)]))
        for e, side in ((first, "l"), (second, "r"))
    )
    return one, two


def test_plain_datalog_is_compared_over_the_objects() -> None:
    path = parse("P(X, Y) :- E(X, Y). P(X, Z) :- P(X, Y), E(Y, Z).")
    pair_of_steps = parse("P(X, Y) :- E(X, Y). P(X, Z) :- E(X, Y), E(Y, Z).")
    assert tl.windows.contained((pair_of_steps, "P"), (path, "P"), "a,b,c").holds
    assert tl.windows.contained((path, "P"), (pair_of_steps, "P"), "a,b").holds, "among two objects two steps reach all"
    found = tl.windows.contained((path, "P"), (pair_of_steps, "P"), "a,b,c")
    assert found.witness is not None
    assert found.witness.stream == ()
    assert len(found.witness.background) == 3
    assert found.witness.lost[2] is None


def test_queries_that_cannot_be_compared_are_refused() -> None:
    one, two = parse("P(X,T) :- A(X,T)."), parse("P(T) :- A(X,T). Q(X,T) :- B(X,T). A(X,T) :- B(X,T).")
    with pytest.raises(tl.TidelogError, match=r"TL604.*different arguments") as raised:
        tl.windows.contained((one, "P"), (two, "P"), "a")
    assert "A is input of one query and derived by the other" in str(raised.value)


# Random queries


@pytest.mark.parametrize("seeds", [range(start, start + 50) for start in range(0, 400, 50)], ids=str)
def test_random_queries_against_the_definition(seeds: range) -> None:
    for seed in seeds:
        compare_with_definition(*random_query(Random(seed)), seed)


def test_random_queries_over_interchangeable_objects() -> None:
    judged = 0
    for seed in range(250):
        text, objects = random_query(Random(seed), 3)
        # With more kinds of input the explicit search takes too long.
        if len(objects) == 3 and "B(" in text and "R(" not in text and "A(" not in text:
            compare_with_definition(text, objects, seed)
            judged += 1
    assert judged >= 15


def compare_with_definition(text: str, objects: list[str], seed: int) -> None:
    program = parse(text)
    assert program.temporal is not None
    report = tl.window(program, "G", objects)
    assert isinstance(report.exact, int)
    assert 0 <= report.exact <= report.uniform <= report.radius
    values: list[Value] = list(objects)
    for window in range(report.radius + 1):
        lost = find_first_loss(program.temporal, "G", values, window)
        assert (lost is None) == (window >= report.exact), f"seed {seed}, window {window}\n{text}"
        if window == report.exact - 1:
            assert report.witness is not None
            assert report.witness.lost[2] == (lost or 0) - 1, f"seed {seed}, not the shortest\n{text}"
            check_replay(program, "G", window, report.witness)


@pytest.mark.parametrize("seeds", [range(start, start + 60) for start in range(0, 180, 60)], ids=str)
def test_random_queries_with_negation_against_the_definition(seeds: range) -> None:
    smaller = wrong = judged = 0
    for seed in seeds:
        text, objects = random_query(Random(seed), negation=True)
        program = parse(text).with_temporal_query("G")
        assert program.temporal is not None
        try:
            report = tl.window(program, "G", objects)
        except tl.TidelogError as refused:
            if {found.code for found in refused.diagnostics} != {"TL301"}:
                raise
            continue
        assert isinstance(report.exact, int)
        assert 0 <= report.exact <= report.uniform <= report.radius
        judged += 1
        smaller += report.exact < report.uniform
        for window in range(report.radius + 1):
            losses = {
                kind: find_first_loss(program.temporal, "G", list(objects), window, kind) for kind in (False, True)
            }
            valid = not any(losses.values())
            assert tl.window(program, "G", objects, check=window).check.valid is valid, f"seed {seed}, {window}\n{text}"  # type: ignore[union-attr]
            assert valid or window < report.exact, f"seed {seed}, window {window}\n{text}"
            if window == report.exact - 1:
                witness = report.witness
                assert witness is not None
                assert witness.wrong is (losses[False] is None)
                assert witness.lost[2] == (losses[witness.wrong] or 0) - 1, f"seed {seed}, not the shortest\n{text}"
                facts = [*witness.background, *witness.stream]
                assert loses(program.temporal, "G", window, facts, witness.lost, witness.wrong)
                wrong += witness.wrong
    assert judged >= 20
    assert smaller + wrong >= 1


def test_a_window_that_forgets_an_exception_gives_wrong_answers() -> None:
    program = parse("P(X, T) :- A(X, T), not Ill(X, T). Ill(X, T) :- B(X, T-1).")
    report = tl.window(program, "P", "a")
    assert window_sizes(report) == (1, 1, 1)
    assert report.witness is not None
    assert report.witness.to_json() == {"background": [], "stream": ["B(a,0)", "A(a,1)"], "wrong": "P(a,1)"}


def test_with_negation_a_larger_window_than_a_valid_one_may_be_invalid() -> None:
    rules = "P(T) :- A(T), not Q(T). Q(T) :- B(T-1), not R(T). R(T) :- B(T-1), Z(T-2). R(T) :- B(T-1), not Z(T-2)."
    checks = [tl.window(parse(rules), "P", "a", check=w).check for w in range(3)]
    assert [check and check.valid for check in checks] == [True, False, True]
    assert tl.window(parse(rules), "P", "a").exact == 2


def test_a_rule_with_negation_follows_from_another_with_the_same_negation() -> None:
    rules = "P(X, T) :- A(X, T), not B(X, T). P(X, T) :- A(X, T), not B(X, T), A(X, T-3)."
    assert window_sizes(tl.window(parse(rules), "P", "a")) == (3, 0, 0)
    rules = "P(X, T) :- A(X, T), not B(X, T). P(X, T) :- A(X, T), not B(X, T-3)."
    assert window_sizes(tl.window(parse(rules), "P", "a")) == (3, 3, 3)


def test_negation_of_what_held_before_is_allowed_within_a_recursion() -> None:
    program = parse("P(T) :- A(T), not P(T-1). #temporal A/1.")
    report = tl.window(program, "P", "a")
    assert window_sizes(report) == (1, 1, 1)
    assert report.witness is not None
    check_replay(program, "P", 0, report.witness)


def test_negation_that_runs_through_a_cycle_is_refused() -> None:
    with pytest.raises(tl.TidelogError, match=r"TL301.*P -> not Q -> not P"):
        tl.window(parse("P(T) :- A(T), not Q(T). Q(T) :- A(T), not P(T). #temporal A/1."), "P", "a")


def test_all_data_is_not_decided_with_negation() -> None:
    found = tl.window(parse("P(X, T) :- A(X, T), not B(X, T-1)."), "P", check=0).check
    assert found is not None
    assert (found.valid, found.reason) == (None, "the rules use negation")


def test_a_proof_is_checked_and_a_wrong_one_is_rejected() -> None:
    query = build_forward_query(BLACKLIST, "Black")
    product = build_product(query, query.restrict_to(1), ["a", "max"])
    found = search_product(product)
    assert isinstance(found, Invariant)
    assert is_invariant(product, found)
    assert found.cubes
    for left_out in range(len(found.cubes)):
        fewer = Invariant(found.cubes[:left_out] + found.cubes[left_out + 1 :])
        if not is_invariant(product, fewer):
            break
    else:
        pytest.fail("no cube of the invariant was needed")
    lossy = build_product(query, query.restrict_to(0), ["a", "max"])
    assert not is_invariant(lossy, Invariant(()))


# Time


def test_if_time_runs_out_the_result_is_an_interval() -> None:
    objects = [f"o{i}" for i in range(12)] + ["max"]
    report = tl.window(BLACKLIST, "Black", objects, timeout=0.5)
    assert isinstance(report.exact, tuple)
    low, high = report.exact
    assert low <= 1 <= high
    assert report.to_json()["exact"] == [low, high]
    if report.witness:
        check_replay(BLACKLIST, "Black", low - 1, report.witness)


def test_progress_is_reported_before_and_during_the_search() -> None:
    told: list[object] = []
    tl.window(BLACKLIST, "Black", "a,max", progress=told.append)
    assert any(p.window == 1 and p.bits and not p.steps for p in told)  # type: ignore[attr-defined]
    assert any(p.window == 1 and p.steps for p in told)  # type: ignore[attr-defined]
    assert all(p.practical for p in told)  # type: ignore[attr-defined]


# Errors


@pytest.mark.parametrize(
    "rule, reason",
    [
        ("P(T) :- A(T), B(T+1).", "B(T+1) is later than the head, by 1"),
        ("P(T-2) :- A(T).", "A(T) is later than the head, by 2"),
        ("P(X, T) :- R(X), not B(X, T-1). #rigid R/1.", "the time T of its head occurs only under `not`"),
        ("P(T) :- A(T+0), B(S+1).", "B(S+1) has the time variable S, but the head has T"),
        ("P(T) :- A(T+0), B(3). #temporal B/1.", "it names the time point 3"),
        ("P(3) :- A(3). #temporal A/1. #temporal P/1.", "it names the time point 3"),
        ("Q(X) :- A(X, T+1). P(X, T) :- B(X, T), Q(X). #rigid Q/1.", "its head has no time, but A(X, T+1) has"),
        ("P(X, T) :- R(X). #temporal P/2.", "the time T of its head does not occur in its body"),
        ("P(T) :- A(T-0). A(3).", "it names the time point 3"),
    ],
)
def test_a_rule_that_is_not_forward_propagating_is_named_with_the_reason(rule: str, reason: str) -> None:
    with pytest.raises(tl.TidelogError) as raised:
        tl.window(parse(rule), "P", "a")
    assert [found.code for found in raised.value.diagnostics] == ["TL601"]
    assert f"is not forward-propagating: {reason}" in str(raised.value)
    assert raised.value.diagnostics[0].place is not None


def test_bad_input_has_a_clear_error() -> None:
    with pytest.raises(tl.TidelogError, match="did you mean Black"):
        tl.window(BLACKLIST, "Blck")
    nothing: list[str] = []
    for objects in ("", nothing):
        with pytest.raises(tl.TidelogError, match=r"TL602.*no objects are given"):
            tl.window(BLACKLIST, "Black", objects)
    with pytest.raises(tl.TidelogError, match="TL602"):
        tl.window(BLACKLIST, "Black", "a,,b")
    with pytest.raises(tl.TidelogError, match="TL603"):
        tl.window(BLACKLIST, "Black", check=-1)
    with pytest.raises(tl.TidelogError, match=r"TL601.*DatalogMTL"):
        tl.window(tl.Program.parse("P :- A."), "P")


def test_objects_are_names_and_numbers() -> None:
    report = tl.window(parse("P(X, T) :- A(X, T-1)."), "P", [" x", Fraction(1, 2)])
    assert report.witness is not None
    assert json.dumps(report.witness.to_json()["stream"]) == '["A(\\" x\\",0)"]'
    report = tl.window(parse("P(X, T) :- A(X, T-1), X = 1."), "P", '"1", 1')
    assert report.objects == ("1", Fraction(1))
    assert report.witness is not None
    assert report.witness.to_json()["stream"] == ["A(1,0)"]
    assert replace(report, witness=None).to_json()["witness"] is None
