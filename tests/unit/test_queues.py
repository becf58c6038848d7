"""Queues of the plan machine that are full: nothing is lost, and nothing is derived from a fact that is not there."""

from __future__ import annotations

import tidelog as tl

COUNT = 3000
MEMBERS = [f"Member(g,m{i})" for i in range(COUNT)]


def test_a_fact_that_derives_more_than_fits_into_a_queue() -> None:
    program = tl.Program.parse("Told(X) :- Call(G), Member(G,X). Both(X) :- Told(X), Diamondminus[1,1] Told(X).")
    reasoner = tl.Reasoner(program, "Both", at="input", background=tl.Dataset.from_facts(MEMBERS))
    found = [len([*reasoner.push(t, ["Call(g)"]), *reasoner.advance(t)]) for t in range(4)]
    assert found == [0, COUNT, COUNT, COUNT]
    model = tl.materialise(program, tl.Dataset.from_facts([*MEMBERS, "Call(g)@0", "Call(g)@1"]), query="Both")
    assert len(model) == COUNT


def test_facts_that_wait_for_their_time_are_all_kept() -> None:
    program = tl.Program.parse("Boxplus[2,2] Told(X) :- Call(G), Member(G,X). Told(X) :- Diamondminus[3,3] Told(X).")
    reasoner = tl.Reasoner(program, "Told", background=tl.Dataset.from_facts(MEMBERS))
    answers = list(reasoner.push(0, ["Call(g)"]))
    for t in range(1, 7):
        answers += reasoner.advance(t)
    assert sorted({str(fact.interval) for fact in answers}) == ["2", "5"]
    assert len(answers) == 2 * COUNT


def test_requests_for_many_atoms_have_room_in_both_queues() -> None:
    program = tl.Program.parse("Down(X) :- Node(X), not Diamondminus[0,2] Beat(X).\nCalm(X) :- Node(X), not Down(X).")
    nodes = tl.Dataset.parse("\n".join(f"Node(n{i})" for i in range(1000)))
    beats = "\n".join(f"Beat(n{i})@{t}" for t in range(9) for i in range(1000) if (7 * i + t) % 5)
    reasoner = tl.Reasoner(program, "Calm", background=nodes)
    answers = [fact for step in reasoner.feed(tl.Dataset.parse(beats, ordered=True)) for fact in step.answers]
    answers += reasoner.finish()
    model = tl.materialise(program, tl.Dataset.parse(beats) | nodes, query="Calm", until=8)
    assert sorted(map(str, answers)) == sorted(map(str, model))
