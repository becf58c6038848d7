"""The agenda of a stream: the right atoms at the right times, and no more work than there is change."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

import tidelog as tl
from tidelog.engine import agenda
from tidelog.engine.agenda import ANSWERS, RULES
from tidelog.language.fact_text import format_fact


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("seed", range(20))
def test_each_atom_comes_up_at_the_first_of_its_times(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randint(1, 12)
    made = agenda.ensure_room(agenda.empty(), count)
    agenda.schedule_all(made, np.zeros(count, np.int64))
    first: dict[tuple[int, int], int] = {}
    now = 0
    for _ in range(300):
        matter = chance.choice((RULES, ANSWERS))
        atom, t = chance.randrange(count), now + chance.randint(1, 30)
        agenda.schedule(t, atom, matter, made)
        first[atom, matter] = min(t, first.get((atom, matter), t))
        if chance.random() < 0.3:
            now += chance.randint(1, 10)
            for each in (RULES, ANSWERS):
                due = sorted(atom for (atom, of), t in first.items() if of == each and t <= now)
                agenda.advance_to(now, each, made)
                assert sorted(made.lists[: made.lengths[each], each]) == due
                made.flags[due] &= ~(1 << each)
                made.lengths[each] = 0
            first = {key: t for key, t in first.items() if t > now}


HEARTBEATS = tl.Program.parse("Down(X) :- Node(X), not Diamondminus[0,10] Beat(X).")


def beating(count: int) -> tl.Reasoner:
    """So many nodes that have all been heard of at 0."""
    nodes = tl.Dataset.from_facts([f"Node(n{i})" for i in range(count)])
    reasoner = tl.Reasoner(HEARTBEATS, "Down", background=nodes)
    reasoner.push(0, [f"Beat(n{i})" for i in range(count)])
    reasoner.advance(0)
    return reasoner


def taken(reasoner: tl.Reasoner) -> int:
    """How much the machine has done so far."""
    return reasoner.evaluation.store.taken


def test_a_rule_with_negation_is_evaluated_where_something_changes() -> None:
    work = []
    for count in (50, 5000):
        reasoner = beating(count)
        before = taken(reasoner)
        for t in range(1, 10):
            assert reasoner.push(t, ["Beat(n7)"]) == []
        work.append(taken(reasoner) - before)
    assert work[0] == work[1]


def test_what_is_absent_is_noticed_when_its_time_is_over() -> None:
    reasoner = beating(1000)
    assert reasoner.push(5, ["Beat(n3)"]) == []
    assert reasoner.advance(11) == []
    found = [(fact.args[0], str(fact.interval)) for fact in reasoner.push(12, ["Beat(n9)"]) + reasoner.advance(13)]
    assert found == [("n9", "(10,12)")]
    ends = {str(fact.args[0]): str(fact.interval) for fact in reasoner.finish(20)}
    assert (ends["n3"], ends["n0"], len(ends)) == ("(15,20]", "(10,20]", 999)


#: Rules over alarms, through every operator that facts may stand under.
ALARMS = {
    "Down": "",
    "Warn": "Warn(X) :- Diamondminus[0,5] Down(X).",
    "Page": "Page(X) :- Boxminus[0,5] Down(X).",
    "Isolated": "Isolated(X) :- Down(X), Down(Y), Link(X,Y).",
    "Trouble": "Trouble(X) :- Down(X). Trouble(X) :- Broken(X).",
    "Fine": "Fine(X) :- Node(X), not Diamondminus[0,5] Down(X).",
}


@pytest.mark.parametrize("query", ALARMS)
def test_a_step_costs_what_changes_however_many_alarms_stand(query: str) -> None:
    work = []
    for count in (50, 5000):
        program = tl.Program.parse(f"Down(X) :- Node(X), not Diamondminus[0,10] Beat(X). {ALARMS[query]}")
        nodes = [f"Node(n{i})" for i in range(count)] + [f"Link(n{i},n{i + 1})" for i in range(count - 1)]
        reasoner = tl.Reasoner(program, query, background=tl.Dataset.from_facts(nodes))
        reasoner.push(0, [f"Beat(n{i})" for i in range(count)])
        # From now on all nodes but one are down.
        reasoner.push(10, ["Beat(n7)"])
        reasoner.push(20, ["Beat(n7)"])
        reasoner.push(30, ["Beat(n7)"])
        before = taken(reasoner)
        for t in range(31, 60):
            reasoner.push(t, ["Beat(n7)"])
        work.append(taken(reasoner) - before)
        standing = {"Fine": 1, "Isolated": count - 3}.get(query, count - 1)
        assert sum(fact.interval.hi == 60 for fact in reasoner.finish(60)) == standing
    assert work[0] == work[1]


@pytest.mark.usefixtures("kernels")
def test_a_fact_that_begins_to_stand_holds_as_long_as_another_rule_says() -> None:
    rules = "A(X) :- R(X), not Diamondminus[0,1] Q(X).\nA(X) :- Diamondminus[0,2] P(X)."
    reasoner = tl.Reasoner(tl.Program.parse(rules), "A", delay=2)
    reasoner.take_step(Fraction(3), tl.Dataset.parse("R(a)@[-2,1]\nP(a)@-1/2"))
    assert [format_fact(fact) for fact in reasoner.push(9)] == ["A(a)@[-2,3/2]"]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("endless", ["", "P(b)@[0,inf)"])
def test_an_answer_that_meets_a_negation_is_given_once_it_is_certain(endless: str) -> None:
    rules = "Q(X) :- Diamondminus[2,3] P(X), Open. Open :- not Closed."
    reasoner = tl.Reasoner(tl.Program.parse(rules), "Q")
    reasoner.push(0, ["P(a)@0", *endless.split()])
    assert not reasoner.push(1) + reasoner.push(3)
    assert [format_fact(fact) for fact in reasoner.push(4)] == ["Q(a)@[2,3]"]
