"""Recursive rules without a depth: answers against the evaluation of all rules, and refusals that say why."""

from __future__ import annotations

import re
from functools import partial

import pytest

import tidelog as tl
from completion_oracle import find_answers, find_facts_to_come
from hypothetical_oracle import Domain, Ground, parse_printed_fact
from hypothetical_random import LAST, Case, delay_of, random_case
from tidelog.hypothetical import Hypotheses, HypothesisOptions
from tidelog.language.tdl_parser import parse_query

DOMAIN = Domain(("a", "b"), range(LAST + 1), range(-5, LAST + 6))
COMPARED = range(-2, LAST + 3)

LIVE = "Live(X, T) :- Start(X, T). Live(X, T+1) :- Live(X, T), Ping(X, T+1)."


def tdl(rules: str) -> tl.Program:
    return tl.Program.parse(rules, syntax="tdl")


def compare(case: Case) -> int:
    """Compare the answers of every moment with those over all facts; return how many there are."""
    program = tdl(case.program)
    assert program.temporal is not None
    query = parse_query(case.query, program.temporal)
    session = Hypotheses(program, case.query, delay=case.delays, options=HypothesisOptions(unsupported=True))
    arrived: set[Ground] = set()
    given: list[dict[str, object]] = []
    for tau in range(LAST + 4):
        batch = [fact for arrival, fact in case.arrivals if arrival == tau]
        given += [dict(answer.bindings) for answer in session.push(tau, batch)]
        arrived |= {parse_printed_fact(fact) for fact in batch}
        to_come = find_facts_to_come(program.temporal, arrived, partial(delay_of, delays=case.delays), tau, DOMAIN)
        certain = find_answers(program.temporal, query, arrived, DOMAIN)
        possible = find_answers(program.temporal, query, arrived | set(to_come), DOMAIN)
        entries = session.hypothetical()
        for theta in map(dict, possible):
            if theta.get("T", 0) in COMPARED:
                answered = any(known.items() <= theta.items() for known in given)
                assert answered == (tuple(sorted(theta.items())) in certain), (tau, theta, str(case))
                awaited = any(entry.bindings.items() <= theta.items() for entry in entries)
                assert answered or awaited, (tau, theta, str(case))
        for entry in entries:
            if not re.search(r"[(,][A-Z_]", " ".join(entry.hypotheses)):
                facts = arrived | set(map(parse_printed_fact, entry.hypotheses))
                values = tuple(sorted(entry.bindings.items()))
                if entry.bindings.get("T", 0) in COMPARED and len(values) == len(session.query.variables):
                    assert values in find_answers(program.temporal, query, facts, DOMAIN), (tau, entry, str(case))
    return len(given)


def test_bounded_recursion_against_the_evaluation_of_all_rules() -> None:
    bounded = answers = 0
    for seed in range(60):
        case = random_case(seed, recursive=True)
        try:
            Hypotheses(tdl(case.program), case.query)
        except tl.TidelogError:
            continue
        bounded += 1
        answers += compare(case)
    assert bounded > 8
    assert answers > 20


def test_a_query_about_one_time_ends_at_time_0() -> None:
    session = Hypotheses(tdl(LIVE), "Live(X,3)")
    assert [len(schema.premises) for schema in session.schemas] == [1, 2, 3, 4]
    session.push(0, ["Start(a,0)"])
    assert [entry.hypotheses for entry in session.hypothetical()] == [("Ping(a,1)", "Ping(a,2)", "Ping(a,3)")]


def test_recursion_that_adds_nothing_new_is_bounded() -> None:
    rules = "Alert(X, T) :- Bad(X, T). Alert(X, T) :- Alert(X, T-1), Bad(X, T)."
    assert len(Hypotheses(tdl(rules), "Alert(X,T)").schemas) == 1
    mutual = "A(X, T) :- B(X, T). A(X, T+1) :- C(X, T), B(X, T+1). C(X, T) :- A(X, T), D(X, T)."
    assert len(Hypotheses(tdl(mutual), "A(X,T)").schemas) == 1
    windows = tl.Program.parse("Hot(X) :- Temp(X). Hot(X) :- Diamondminus[0,2] Hot(X), Temp(X).")
    assert len(Hypotheses(windows, "Hot(X,T)", timeline="integer").schemas) == 1


def test_a_refusal_shows_where_the_recursion_goes() -> None:
    with pytest.raises(tl.TidelogError, match=r"goes on to Live\(X,T\) :- Ping\(X,T\), Start\(X,T-1\)") as caught:
        Hypotheses(tdl(LIVE), "Live(X,T)")
    assert "ask for one time" in (caught.value.diagnostics[0].help or "")
    with pytest.raises(tl.TidelogError, match="is a cycle") as caught:
        Hypotheses(tdl("R(X, Y, T) :- L(X, Y, T). R(X, Z, T) :- R(X, Y, T), L(Y, Z, T)."), "R(X,Y,3)")
    assert "ask for one time" not in (caught.value.diagnostics[0].help or "")
