"""Queues of the plan machine that are full: nothing is lost, and nothing is derived from a fact that is not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidelog as tl
from tidelog.engine import plan_machine, store_tables
from tidelog.engine.fact_store import Store
from tidelog.engine.join_kernels import is_merged_head
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

    assert run(following)[0] == plan_machine.NO_ROOM
    following = np.empty(8, np.int64)
    status, turned, _, end, _, _ = run(following)
    assert (status, turned, end) == (plan_machine.TIRED, True, 8)
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
        self.recent = store_tables.make_recent(1)
        self.queue, self.end = np.zeros(64, np.int64), 0
        self.begin(new_run=True)

    def begin(self, new_run: bool = False) -> None:
        """Begin a round, whose queue is empty, perhaps of a new run."""
        self.recent[0, store_tables.ROUND] += 1
        if new_run:
            self.recent[0, store_tables.SINCE_ROUND] = self.recent[0, store_tables.ROUND]
        self.end = 0

    def adds(self, lo: int, hi: int) -> bool:
        """Derive a record; return whether the queue gets one more."""
        if is_merged_head(3, 1, lo, hi, self.queue, self.end, np.array([5]), self.recent):
            return False
        self.queue[self.end : self.end + 4] = 3, lo, hi, 5
        self.end += 4
        return True


def test_a_record_is_dropped_that_says_nothing_beyond_earlier_ones_of_its_run() -> None:
    rounds = Rounds()
    assert rounds.adds(10, 20)
    assert not rounds.adds(21, 30)
    assert rounds.queue[:4].tolist() == [3, 10, 30, 5]
    rounds.begin()
    assert not rounds.adds(12, 30)
    assert rounds.adds(25, 35)
    assert not rounds.adds(9, 12)
    assert rounds.queue[:4].tolist() == [3, 9, 35, 5]
    assert rounds.adds(50, 60)
    rounds.begin(new_run=True)
    assert rounds.adds(52, 53)


def test_no_record_is_dropped_where_a_fact_stands() -> None:
    rounds = Rounds()
    assert rounds.adds(10, STANDING_END)
    rounds.begin()
    assert rounds.adds(12, 14)
    rounds.begin()
    assert rounds.adds(13, STANDING_END)


def test_places_for_the_records_of_a_round_grow_with_the_queue() -> None:
    recent = store_tables.make_recent(2)
    recent[0, store_tables.ROUND] = 7
    assert store_tables.fit_recent(recent, np.empty(8 * store_tables.RECENT, np.int64)) is recent
    larger = store_tables.fit_recent(recent, np.empty(8 * store_tables.RECENT + 1, np.int64))
    assert len(larger) == 1 + 2 * store_tables.RECENT
    assert larger[0, 0] == 7
    assert not larger[1:].any()
