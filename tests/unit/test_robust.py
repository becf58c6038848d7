"""What must hold of a reasoner however it is used: steps ahead, names without end, constraints, saves at any step."""

from __future__ import annotations

import csv
import fcntl
import gzip
import io
import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import tidelog as tl
from shell import Shell
from tidelog.data import data_files, table_cells
from tidelog.language.fact_text import format_fact
from tidelog.streaming import stream_reader
from tidelog.streaming.state_format import write_atomically

pytestmark = pytest.mark.usefixtures("kernels")


def shown(answers: Iterable[tl.Fact]) -> list[str]:
    return list(map(format_fact, answers))


def stream(rules: str, query: str, **options: Any) -> tl.Reasoner:
    return tl.Reasoner(tl.Program.parse(rules), query, **options)


def test_time_stops_between_two_points_of_the_grid() -> None:
    reasoner = stream("B :- Diamondminus[1,1] B.", "B")
    assert reasoner.push(0, ["B@(0,1)"]) == []
    assert shown(reasoner.finish(Fraction(3, 2))) == ["B@(0,1)", "B@(1,3/2]"]


# Steps that are taken ahead of those that were asked for

TWICE = "Twice(X) :- Hot(X), Diamondminus(0,3] Hot(X)."
HOT = [f"Hot(t{n % 3})@{n}" for n in range(40)]


def whole(at: Any = None) -> list[str]:
    reasoner = stream(TWICE, "Twice", at=at)
    data = tl.Dataset.parse("\n".join(HOT), ordered=True)
    return [fact for step in [*reasoner.feed(data), reasoner.finish_step()] for fact in shown(step.answers)]


@pytest.mark.parametrize("at", [None, "input", "every:1/2"])
@pytest.mark.parametrize("stop", [1, 2, 17, 39, 40])
def test_a_feed_that_is_left_has_taken_no_more_than_it_gave(at: Any, stop: int) -> None:
    reasoner = stream(TWICE, "Twice", at=at)
    found: list[str] = []
    for number, step in enumerate(reasoner.feed(tl.Dataset.parse("\n".join(HOT), ordered=True)), 1):
        found += shown(step.answers)
        if number == stop:
            break
    assert reasoner.facts_taken == stop
    assert reasoner.last_step.time == stop - 1
    rest = tl.Dataset.parse("\n".join(HOT[stop:]), ordered=True)
    found += [fact for step in [*reasoner.feed(rest), reasoner.finish_step()] for fact in shown(step.answers)]
    assert reasoner.late_count == 0
    assert found == whole(at)


@pytest.mark.parametrize("at", [None, "input", "every:1/2"])
def test_a_state_saved_between_two_steps_is_that_of_the_first(at: Any) -> None:
    reasoner = stream(TWICE, "Twice", at=at)
    found: list[str] = []
    for number, step in enumerate(reasoner.feed(tl.Dataset.parse("\n".join(HOT), ordered=True)), 1):
        found += shown(step.answers)
        if number % 9 == 4:
            other = tl.Reasoner.load(reasoner.save())
            rest = tl.Dataset.parse("\n".join(HOT[number:]), ordered=True)
            later = [fact for step in [*other.feed(rest), other.finish_step()] for fact in shown(step.answers)]
            assert found + later == whole(at)
    assert found + shown(reasoner.finish()) == whole(at)


def test_something_else_may_come_between_two_steps_of_a_feed() -> None:
    reasoner = stream(TWICE, "Twice")
    found: list[str] = []
    for number, step in enumerate(reasoner.feed(tl.Dataset.parse("\n".join(HOT), ordered=True)), 1):
        found += shown(step.answers)
        if number == 10:
            found += shown(reasoner.push("28/3", tl.Dataset.parse("".join(f"Hot(a{n})@28/3\n" for n in range(6_000)))))
        if number == 20:
            found += shown(reasoner.push("77/4", tl.Dataset.parse("".join(f"Hot(b{n})@77/4\n" for n in range(18_000)))))
            assert len(reasoner.evaluation.symbols) < 20_000
    assert reasoner.late_count == 0
    assert found + shown(reasoner.finish()) == whole()


def test_what_is_held_is_counted_exactly() -> None:
    reasoner = stream("Q(X) :- A(X), Diamondminus[0,100] B(X).", "Q")
    lines = "\n".join(f"B(x{n})@{n // 200}" for n in range(30_000))
    for step in reasoner.feed(tl.Dataset.parse(lines, ordered=True)):
        if step.window_facts > 10_000:
            break
    store = reasoner.evaluation.store
    held = sum(len(store.rows(number)) for number in range(len(store.preds)))
    assert held == step.window_facts + step.history_atoms > 10_000


# Names


def test_names_that_nothing_holds_any_more_are_left_behind() -> None:
    reasoner = stream(TWICE + '\nTwice(X) :- Hot(X), X = "t7".', "Twice")
    found: list[str] = []
    for n in range(60):
        lines = "\n".join(f"Hot(name{n}_{i})@{n}\nHot(t7)@{n}\nOther(more{n}_{i})@{n}" for i in range(500))
        for step in reasoner.feed(tl.Dataset.parse(lines, ordered=True)):
            found += shown(step.answers)
    assert len(reasoner.evaluation.symbols) < 12_000
    assert found == [f"Twice(t7)@{n}" for n in range(59)]
    assert shown(reasoner.finish()) == ["Twice(t7)@59"]


def test_answers_keep_their_names_when_names_are_left_behind() -> None:
    reasoner = stream("Q(X) :- P(X).", "Q")
    steps = []
    for n in range(30):
        lines = "\n".join(f"P(name{n}_{i})@{n}" for i in range(500))
        steps += list(reasoner.feed(tl.Dataset.parse(lines, ordered=True)))
    assert len(reasoner.evaluation.symbols) < 12_000
    names = {str(fact.args[0]) for step in steps for fact in step.answers}
    assert names == {f"name{n}_{i}" for n in range(29) for i in range(500)}


# Constraints

NEVER_BOTH = "Q(X) :- P(X).\nBottom :- P(X), R(X)."


def test_answers_of_a_step_come_before_its_violation() -> None:
    reasoner = stream(NEVER_BOTH, "Q")
    assert reasoner.push(1, ["P(a)"]) == []
    with pytest.raises(tl.errors.Inconsistent) as found:
        reasoner.push(2, ["P(b)", "R(b)"])
    assert found.value.step is not None
    assert shown(found.value.step.answers) == ["Q(a)@1"]
    # It is said once, and the stream goes on.
    assert shown(reasoner.push(3, ["P(c)"])) == ["Q(b)@2"]
    assert shown(reasoner.finish()) == ["Q(c)@3"]


def test_steps_before_a_violation_are_shown_in_bulk() -> None:
    reasoner = stream(NEVER_BOTH, "Q")
    steps = reasoner.feed(tl.Dataset.parse("P(a)@1\nP(b)@2\nR(b)@2\nP(c)@3", ordered=True))
    assert [shown(next(steps).answers), shown(next(steps).answers)] == [[], ["Q(a)@1"]]
    with pytest.raises(tl.errors.Inconsistent):
        next(steps)
    assert shown(tl.Reasoner.load(reasoner.save()).finish()) == ["Q(b)@2"]


def test_the_last_answers_come_with_a_violation_at_the_end() -> None:
    reasoner = stream("Q :- P.\nBottom :- P, not Boxplus[0,2] P.", "Q")
    assert reasoner.push(0, ["P@[0,1]"]) == []
    with pytest.raises(tl.errors.Inconsistent) as found:
        reasoner.finish(5)
    assert found.value.step is not None
    assert shown(found.value.step.answers) == ["Q@[0,1]"]


# Lateness


def test_what_begins_after_the_end_still_makes_others_late() -> None:
    rules = "Q(X) :- A(X).\nQ(X) :- B(X)."
    lines = "A(a)@9\nA(b)@12\nA(c)@10\nB(d)@10"
    reasoner = stream(rules, "Q", delay={"B": 5, None: 0})
    answers = [
        fact
        for line in lines.splitlines()
        for step in reasoner.feed(tl.Dataset.parse(line, ordered=True), until=10)
        for fact in shown(step.answers)
    ]
    assert answers + shown(reasoner.finish(10)) == ["Q(a)@9", "Q(d)@10"]
    assert reasoner.late_count == 1


# Saving again and again

RULES = """\
Seen(X) :- A(X), Diamondminus[1,4] B(X).
Gone(X) :- A(X), not Diamondminus[0,3] B(X).
Long(X) :- Boxminus[0,2] Diamondminus[0,1] A(X).
Chain(X) :- Diamondminus[1,1] B(X).
Chain(X) :- Diamondminus[2,2] Chain(X).
"""


@pytest.mark.parametrize("query", ["Seen", "Gone", "Long", "Chain"])
@pytest.mark.parametrize("at", [None, "input", "every:1/2"])
def test_states_saved_again_and_again_give_every_answer_once(query: str, at: Any) -> None:
    choose = random.Random(f"{query} {at}")
    for _ in range(6):
        times = sorted(Fraction(choose.randint(0, 40), choose.choice([1, 2, 3])) for _ in range(40))
        lines = [f"{choose.choice('AB')}({choose.choice('xy')})@{t}" for t in times]
        delay = choose.choice([0, Fraction(3, 2)])
        unbroken = run(query, at, delay, [lines], None)
        for _ in range(4):
            cuts = sorted(choose.sample(range(len(lines) + 1), 4))
            parts = [lines[i:j] for i, j in zip([0, *cuts], [*cuts, len(lines)], strict=True)]
            assert run(query, at, delay, parts, choose) == unbroken


def run(query: str, at: Any, delay: Any, parts: list[list[str]], choose: random.Random | None) -> list[str]:
    """The answers over parts of a stream, with a save and a load, or several, after some of them."""
    reasoner = stream(RULES, query, at=at, delay=delay)
    found: list[str] = []
    for part in parts:
        for step in reasoner.feed(tl.Dataset.parse("\n".join(part), ordered=True)):
            found += shown(step.answers)
        while choose and choose.random() < 0.6:
            reasoner = tl.Reasoner.load(reasoner.save())
    # Parts cut a time point in two; the steps differ, but what is answered does not.
    return found + shown(reasoner.finish())


# Tables


@pytest.mark.parametrize("name", ["P.csv", "P.csv.gz", "P.parquet"])
def test_a_table_is_read_in_pieces_and_gives_what_it_gives_as_a_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    rows = [(f'v{n % 7}, "so\nto speak"', n) for n in range(1_000)]
    if name.endswith("parquet"):
        table = pa.table({"who": [who for who, _ in rows], "time": [time for _, time in rows]})
        parquet.write_table(table, path)
    else:
        text = io.StringIO()
        csv.writer(text).writerows([("who", "time"), *rows])
        data = text.getvalue().encode()
        path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    monkeypatch.setattr(data_files, "CHUNK", 500)
    monkeypatch.setattr(table_cells, "CHUNK", 100)
    pieces = [piece.data for piece in stream_reader.read_pieces(str(path))]
    assert len(pieces) >= 10
    assert [fact for data in pieces for fact in data] == list(tl.Dataset.load(path))
    assert [str(fact.args[0]) for fact in pieces[0]][:2] == ['v0, "so\nto speak"', 'v1, "so\nto speak"']


def test_a_bad_row_of_a_table_is_counted_from_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "P.csv"
    path.write_text("who,time\n" + "".join(f"a,{n}\n" for n in range(300)) + "b,never\n")
    monkeypatch.setattr(data_files, "CHUNK", 200)
    *_, last = stream_reader.read_pieces(str(path))
    assert "P.csv:302:1: error[TL206]: column `time`" in str(last.error)


@pytest.mark.parametrize("call", [lambda r: r.push(0), lambda r: r.advance(0), lambda r: r.finish(5)])
def test_a_recursion_without_a_beginning_is_refused_in_every_call(call: Callable[[tl.Reasoner], object]) -> None:
    program = tl.Program.parse("E(X) :- A(X), not Diamondminus[2,4] E(X).")
    reasoner = tl.Reasoner(program, "E", background=tl.Dataset.parse("A(b)@(-inf,inf)"))
    for _ in range(2):
        with pytest.raises(tl.TidelogError, match="TL311"):
            call(reasoner)


def test_a_recursion_that_no_fact_begins_is_refused_with_a_way_out() -> None:
    program = tl.Program.parse("P :- not Diamondminus[1,1] P.")
    with pytest.raises(tl.TidelogError, match=r"help: add a condition that begins at some time; .* `tidelog stable`"):
        tl.materialise(program, tl.Dataset.parse("Q@3"))
    assert tl.stable_models(program, tl.Dataset.parse("Q@3")).satisfiable
    begun = tl.materialise(tl.Program.parse("P :- E, not Diamondminus[1,1] P."), tl.Dataset.parse("E@[3,5]"))
    assert str(begun) == "P@[3,4)\nP@5\n"


@pytest.mark.parametrize("condition", ["not Diamondminus[1,4] E(X)", "count[1,4]{ E(X) } <= 0"])
@pytest.mark.parametrize("end", [-7, 0, 1, 5])
def test_a_recursion_without_a_beginning_that_ends_before_the_stream_begins_is_refused(
    condition: str, end: int
) -> None:
    program = tl.Program.parse(f"E(X) :- A(X), {condition}.")
    reasoner = tl.Reasoner(program, "E", background=tl.Dataset.parse(f"A(b)@(-inf,{end}]"))
    with pytest.raises(tl.TidelogError, match="TL311"):
        reasoner.push("3/2", ["A(1)@3/2"])


# Files


def test_what_a_kill_left_of_a_save_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "it.state"
    (tmp_path / ".it.state.x1y2.part").write_bytes(b"half")
    (tmp_path / ".other.state.x1y2.part").write_bytes(b"half")
    with (tmp_path / ".it.state.busy.part").open("wb") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        write_atomically(path, b"whole")
        assert path.read_bytes() == b"whole"
        assert sorted(p.name for p in tmp_path.iterdir()) == [
            ".it.state.busy.part",
            ".other.state.x1y2.part",
            "it.state",
        ]


def test_a_violation_is_said_after_the_answers_and_the_state_is_saved(sh: Shell) -> None:
    rules = sh.write("rules.dmtl", NEVER_BOTH)
    data = sh.write("p.facts", "P(a)@1\nP(b)@2\nR(b)@2\nP(c)@3\n")
    ran = sh("stream", rules, "--query", "Q", "--input", data, "--state", "s")
    assert (ran.code, ran.out) == (sh("materialise", rules, "--data", data).code, "Q(a)@1\n")
    assert "that of the step at 2" in ran.err
    rest = sh.write("rest.facts", "P(c)@3\n")
    ran = sh("stream", rules, "--query", "Q", "--input", rest, "--state", "s")
    assert (ran.code, ran.out) == (0, "Q(b)@2\nQ(c)@3\n")


def test_until_and_a_delay_of_its_own(sh: Shell) -> None:
    rules = sh.write("rules.dmtl", "Q(X) :- A(X).\nQ(X) :- B(X).")
    data = sh.write("d.facts", "A(a)@9\nA(b)@12\nA(c)@10\nB(d)@10\n")
    ran = sh("stream", rules, "--query", "Q", "--input", data, "--until", "10", "--delay", "B=5s")
    assert ran.out == "Q(a)@9\nQ(d)@10\n"
    assert "1 fact came too late" in ran.err


RECURSION_BESIDE = """
F(Y) :- B(Y).
F(Y) :- E(Y).
E(X) :- A(X), not Diamondminus[5/2,3] E(X).
"""


@pytest.mark.parametrize("clocks", [(), (1,), (1, 2)])
def test_a_recursion_through_time_loses_no_output_times_before_it_begins(clocks: tuple[int, ...]) -> None:
    background = tl.Dataset.parse("B(3)@(-inf,inf)")
    reasoner = tl.Reasoner(tl.Program.parse(RECURSION_BESIDE), "F", background=background, at="every:1")
    found = [fact for clock in clocks for fact in reasoner.advance(clock)]
    assert [fact.interval.lo for fact in [*found, *reasoner.finish(3)]] == [0, 1, 2, 3]


def test_a_recursion_through_time_hides_no_violation_before_it_begins() -> None:
    program = tl.Program.parse(f"Bottom :- B(X), not C(X).{RECURSION_BESIDE}")
    reasoner = tl.Reasoner(program, "F", background=tl.Dataset.parse("B(3)@(-inf,inf)"))
    with pytest.raises(tl.errors.Inconsistent, match=r"violated at \(-inf,3\)"):
        reasoner.push(3, ["A(1)"])


def test_a_recursion_without_a_beginning_is_refused_where_only_helpers_read_its_cause() -> None:
    program = tl.Program.parse("F(Y) :- Diamondminus[0,3] B(Y). F(X) :- A(X), not Diamondminus[5/2,3] F(X).")
    reasoner = tl.Reasoner(program, "F", background=tl.Dataset.parse("B(3)@(-inf,inf)"))
    with pytest.raises(tl.TidelogError, match="TL311"):
        reasoner.finish(2)
