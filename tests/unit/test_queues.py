"""Queues of the plan machine that are full: nothing is lost, and nothing is derived from a fact that is not there."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tidelog as tl
from kernel_ways import run_kernels
from tidelog.engine import join_kernels, plan_machine, store_tables
from tidelog.engine.fact_store import Rows, Store, make_empty_code
from tidelog.engine.generated_kernel import generate_source
from tidelog.engine.join_kernels import merge_record
from tidelog.timeline.grid import NEG_INF, STANDING_END

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


def test_a_record_that_is_taken_again_derives_only_what_is_new() -> None:
    program = tl.Program.parse("Told(X) :- Call(G), Member(G,X).")
    reasoner = tl.Reasoner(program, "Told", background=tl.Dataset.from_facts(MEMBERS[:2]))
    reasoner.push(0, ["Call(g)@[0,10]"])
    evaluation = reasoner.evaluation
    store, code = evaluation.store, evaluation.engine.code
    call, told = (evaluation.form.names.index(name) for name in ("Call", "Told"))
    queue = np.array([call, 10, 40, evaluation.symbols.intern("g")], np.int64)
    following, later = np.empty(4, np.int64), np.empty(4, np.int64)
    allowance = store.taken + 1

    def run(following: Any) -> tuple[int, bool, int, int, int, int]:
        tables = store.tables(code)
        return plan_machine.run(code, tables, NEG_INF, 40, True, queue, 0, 4, following, 0, later, 0, allowance)

    assert run(following)[0] == join_kernels.NO_ROOM
    following = np.empty(8, np.int64)
    status, turned, _, end, _, _ = run(following)
    assert (status, turned, end) == (join_kernels.TIRED, True, 8)
    assert following.reshape(2, 4)[:, :3].tolist() == [[told, 21, 40]] * 2


def test_many_atoms_are_found_whether_they_are_looked_at_ahead_or_not() -> None:
    count = 2 * plan_machine.FEW_ATOMS
    program = tl.Program.parse("Told(X) :- Call(X). Both(X) :- Told(X), Diamondminus[1,1] Told(X).")
    text = "\n".join(f"Call(c{(7 * i) % count})@{t}" for t in range(2) for i in range(count))
    model = tl.materialise(program, tl.Dataset.parse(text), query="Both")
    assert len(model) == count
    reasoner = tl.Reasoner(program, "Both")
    found = sum(len(step.answers) for step in reasoner.feed(tl.Dataset.parse(text, ordered=True)))
    assert found + len(reasoner.finish()) == count


def test_a_stream_of_ever_new_constants_copies_its_tables_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    grown, compacted = [0], [0]

    def count_calls(name: str, counter: list[int]) -> None:
        method = getattr(Store, name)

        def counting(store: Store, *args: Any, **options: Any) -> None:
            counter[0] += 1
            method(store, *args, **options)

        monkeypatch.setattr(Store, name, counting)

    count_calls("grow", grown)
    count_calls("compact", compacted)
    reasoner = tl.Reasoner(tl.Program.parse("Twice(X) :- Call(X), Diamondminus(0,1] Call(X)."), "Twice")
    text = "\n".join(f"Call(c{t // 2 * 300 + i})@{t}" for t in range(200) for i in range(300))
    for _ in reasoner.feed(tl.Dataset.parse(text, ordered=True)):
        pass
    assert compacted[0] >= 10
    assert grown[0] <= 2 * compacted[0]


class Rounds:
    """Records `P(5)@[lo,hi]` that are derived in the rounds of a run."""

    def __init__(self) -> None:
        self.store = Store([1], True, np.zeros(1, np.int64))
        self.tables = self.store.tables(make_empty_code(1))
        self.queue, self.end = np.zeros(64, np.int64), 0

    def begin(self) -> None:
        """Begin a round, whose queue is empty, once the records of the last one have been taken."""
        records = self.queue[: self.end].reshape(-1, 4)
        for _, lo, hi, _ in records.tolist():
            self.store.insert(0, Rows(np.array([[5]], np.int32), np.array([lo]), np.array([hi])))
        self.tables.queued[0, store_tables.ROUND] += 1
        self.end = 0

    def adds(self, lo: int, hi: int) -> bool:
        """Derive a record; return whether the queue gets one more."""
        self.tables.scratch[1, 0] = 5
        end = int(merge_record(0, 1, lo, hi, self.queue, self.end, self.tables))
        more, self.end = end > self.end, end
        return more


def test_a_record_is_dropped_that_says_nothing_beyond_what_is_known_of_its_atom() -> None:
    rounds = Rounds()
    assert rounds.adds(10, 20)
    assert not rounds.adds(21, 30)
    assert rounds.queue[:4].tolist() == [store_tables.NAMED, 10, 30, 5]
    rounds.begin()
    assert not rounds.adds(12, 30)
    assert rounds.adds(25, 35)
    assert not rounds.adds(9, 25)
    assert rounds.queue[:4].tolist() == [store_tables.NAMED, 9, 35, 5]
    assert rounds.adds(50, 60)
    assert rounds.end == 8
    rounds.begin()
    assert not rounds.adds(52, 60)
    assert not rounds.adds(9, 9)
    assert rounds.adds(40, 41)


def test_no_record_is_dropped_where_a_fact_stands() -> None:
    rounds = Rounds()
    assert rounds.adds(10, STANDING_END)
    assert rounds.adds(12, 14)
    assert rounds.adds(13, STANDING_END)


NETWORK = """
Flag(X, Z) :- Monit(X, Z), Boxminus[0,2] Diamondminus[0,2] Signal(Z).
Boxplus[0,3] Monit(X, Z) :- Flag(Y, Z), Edge(X, Y).
"""


def follow_network(joins: str, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return what a stream shows and holds whose edges become more, some always and some for a while."""
    monkeypatch.setenv("TIDELOG_JOINS", joins)
    program = tl.Program.parse(NETWORK)
    always = [*(f"Edge(n{(3 * i + k) % 7},n{i})" for i in range(7) for k in range(2)), "Monit(n0,z0)", "Monit(n4,z1)"]
    reasoner = tl.Reasoner(program, "Flag", background=tl.Dataset.parse("\n".join(always)))
    assert generate_source(reasoner.evaluation.engine.code, reasoner.evaluation.task, reasoner.evaluation.store.preds)
    found: list[object] = []
    for t in range(38):
        facts = [f"Signal(z{z})" for z in range(2) if (t + z) % 9 > 2]
        if t == 8:
            facts += ["Edge(n9,n2)@[8,inf)", "Edge(n8,n3)@[8,30]"]
        step = reasoner.push(t, facts)
        found += [sorted(map(str, step)), reasoner.count_held_atoms()]
        if t == 16:
            reasoner = tl.Reasoner.load(reasoner.save())
        if t == 20:
            reasoner.evaluation.store.compact()
        if t == 29:
            reasoner = pickle.loads(pickle.dumps(reasoner))
    _, linked, _ = reasoner.evaluation.store.links.fit(reasoner.evaluation.store.atoms)
    assert (linked[1:, store_tables.N_LINKS].sum() > 0) == (joins == "generated")
    return [*found, sorted(map(str, reasoner.finish()))]


def test_what_follows_from_facts_that_always_hold_is_found_again_when_there_are_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with run_kernels("interpreted"):
        expected = follow_network("machine", monkeypatch)
        assert follow_network("generated", monkeypatch) == expected
