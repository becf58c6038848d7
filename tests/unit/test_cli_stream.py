"""`tidelog stream` and `tidelog state`: what is printed when, and what is kept."""

from __future__ import annotations

import gzip
import json
import os
import random
import select
import signal
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from shell import CommandResult, Shell, start_command
from tidelog.streaming import stream_reader

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.fixture
def rules(sh: Shell) -> str:
    return sh.write("rules.dmtl", "A(X) :- Diamondminus[0,2] B(X).\n")


@pytest.fixture
def beats(sh: Shell) -> str:
    return sh.write("down.dmtl", "Down(X) :- Node(X), not Diamondminus[0,5] Beat(X).\n")


STREAM = "B(a)@0\nB(a)@1\nB(b)@5\nB(a)@9\nB(b)@9.5\n"
ANSWERS = "A(a)@[0,3]\nA(b)@[5,7]\nA(a)@[9,19/2]\nA(b)@19/2\n"
QUERY = ("--query", "A", "--input")


# What is printed


def test_maximal_intervals_each_once_it_has_ended(sh: Shell, rules: str) -> None:
    data = sh.write("b.facts", STREAM)
    assert sh("stream", rules, *QUERY, data) == CommandResult(0, ANSWERS, "")
    assert sh("stream", rules, *QUERY, "-", stdin=STREAM) == CommandResult(0, ANSWERS, "")
    assert sh("stream", "-", *QUERY, data, stdin=Path(rules).read_text()) == CommandResult(0, ANSWERS, "")


def test_answers_at_the_streams_own_times(sh: Shell, rules: str) -> None:
    ran = sh("stream", rules, *QUERY, "-", "--at", "input", stdin=STREAM)
    assert ran.out == "A(a)@0\nA(a)@1\nA(b)@5\nA(a)@9\nA(a)@19/2\nA(b)@19/2\n"


def test_answers_at_multiples(sh: Shell, rules: str) -> None:
    ran = sh("stream", rules, *QUERY, "-", "--at", "every:3/2", stdin=STREAM)
    assert ran.out == "A(a)@0\nA(a)@3/2\nA(a)@3\nA(b)@6\nA(a)@9\n"


def test_answers_at_multiples_with_an_offset(sh: Shell, rules: str) -> None:
    plain = sh("stream", rules, *QUERY, "-", "--at", "every:1/2", stdin=STREAM).out.splitlines()
    offset = sh("stream", rules, *QUERY, "-", "--at", "every:3/2+1/2", stdin=STREAM).out.splitlines()
    times = {Fraction(1, 2) + n * Fraction(3, 2) for n in range(8)}
    assert offset == [line for line in plain if Fraction(line.partition("@")[2]) in times]
    assert len(offset) > 1
    assert sh("stream", rules, *QUERY, "-", "--at", "every:3/2+7/2", stdin=STREAM).out.splitlines() == offset


TIMES = "# in any order\n3\n\n1/2  % a half\n  2s\n3\n-1\n1970-01-01T00:00:04Z\n"


def test_answers_at_the_times_in_a_file(sh: Shell, rules: str) -> None:
    sh.write("times.txt", TIMES)
    every = sh("stream", rules, *QUERY, "-", "--at", "every:1/2", stdin=STREAM).out.splitlines()
    ran = sh("stream", rules, *QUERY, "-", "--at", "file:times.txt", stdin=STREAM)
    assert ran.out.splitlines() == [
        line for line in every if Fraction(line.partition("@")[2]) in (Fraction(1, 2), 2, 3, 4)
    ]
    assert ran.out.splitlines()


def test_a_file_of_times_with_mistakes_names_each_line(sh: Shell, rules: str) -> None:
    sh.write("times.txt", "1\n  noon\ninf\n")
    ran = sh("stream", rules, *QUERY, "-", "--at", "file:times.txt", stdin=STREAM)
    assert ran.code == 2
    assert "times.txt:2:3: error[TL202]: `noon` is not a time" in ran.err
    assert "times.txt:3:1: error[TL202]: a finite time is needed here, not inf" in ran.err


def test_a_stream_at_times_of_a_file_continues_with_these_times(sh: Shell, rules: str) -> None:
    sh.write("times.txt", "3\n1\n2\n11\n12\n")
    args = ("stream", rules, *QUERY, "-", "--state", "s.state")
    at = ("--at", "file:times.txt")
    whole = sh("stream", rules, *QUERY, "-", *at, stdin=f"{STREAM}B(a)@10\nC@12\n").out.splitlines()
    first = sh(*args, *at, "--continues", stdin=STREAM).out.splitlines()
    sh.write("times.txt", "11\n")
    refused = sh(*args, *at, stdin="B(a)@10\nC@12\n")
    assert (refused.code, "TL403" in refused.err) == (2, True)
    assert first + sh(*args, stdin="B(a)@10\nC@12\n").out.splitlines() == whole
    assert "A(a)@11" in whole


def test_a_chosen_window_warns_unless_it_is_proved(sh: Shell) -> None:
    pairs = "Q(X, T) :- A(X, T).\nP(X, T) :- Q(X, T), Q(_Y, T-1).\nP(X, T) :- A(X, T), B(T).\n"
    args = ("stream", sh.write("pairs.tdl", pairs), "--query", "P", "--input", "-")
    stream = "A(b)@0\nB@0\nA(a)@1\n"
    assert sh(*args, "--window", "1", stdin=stream) == CommandResult(0, "P(b)@0\nP(a)@1\n", "")
    lossy = sh(*args, "--window", "0", stdin=stream)
    assert (lossy.code, lossy.out) == (0, "P(b)@0\n")
    assert "warning[TL607]: a window of 0 loses answers: P(a,1) on the stream A(b,0), A(a,1)" in lossy.err
    assert sh(*args, "--window", "0", "--strict", stdin=stream).code == 2
    assert sh(*args, "--window", "-1", stdin=stream).code == 2


def test_a_window_that_is_proved_for_some_input_checks_the_input(sh: Shell) -> None:
    # R follows from Q if Q is derived; a fact of Q alone would need the longer rule.
    rules = "Q(X, T) :- A(X, T).\nP(X, T) :- A(X, T).\nP(X, T) :- Q(X, T), Q(_Y, T-1).\n"
    args = ("stream", sh.write("proved.tdl", rules), "--query", "P", "--input", "-", "--window", "0")
    assert sh(*args, stdin="A(b)@0\nA(a)@1\n").out == "P(b)@0\nP(a)@1\n"
    refused = sh(*args, stdin="Q(b)@0\nQ(a)@1\n")
    assert (refused.code, "TL606" in refused.err) == (2, True)
    gone = "P(T) :- A(T-5).\n"
    lossy = sh(
        "stream", sh.write("gone.tdl", gone), "--query", "P", "--input", "-", "--window", "3", stdin="A@0\nA@9\n"
    )
    assert (lossy.code, lossy.out, "TL607" in lossy.err) == (0, "", True)


def test_undefined_operations_are_counted(sh: Shell) -> None:
    rules = sh.write("ratio.dmtl", "Ratio(M, D / N) :- Done(M, D), Tried(M, N).\n")
    stream = "Done(m,1)@0\nTried(m,0)@0\nDone(m,1)@1\nTried(m,2)@1\n"
    ran = sh("stream", rules, "--query", "Ratio", "--input", "-", "--stats", "stats.jsonl", stdin=stream)
    undefined = "1 row had an undefined operation, or text where a sum needs a number\n"
    assert ran == CommandResult(0, "Ratio(m,0.5)@1\n", undefined)
    steps = [json.loads(line) for line in (sh.folder / "stats.jsonl").read_text().splitlines()]
    assert steps[-1]["undefined"] == 1


@pytest.mark.parametrize("step", ["1/4", "1", "500ms", "4", "1h"])
def test_the_answers_do_not_depend_on_the_step(sh: Shell, rules: str, step: str) -> None:
    assert sh("stream", rules, *QUERY, "-", "--step", step, stdin=STREAM).out == ANSWERS


def test_json_lines(sh: Shell, rules: str) -> None:
    ran = sh("stream", rules, *QUERY, "-", "--json", stdin="B(a)@0\nB(a)@7\n")
    assert [json.loads(line) for line in ran.out.splitlines()] == [
        {"fact": "A(a)", "start": "0", "end": "2", "closed": "both", "predicate": "A", "args": ["a"]},
        {"fact": "A(a)", "start": "7", "end": "7", "closed": "both", "predicate": "A", "args": ["a"]},
    ]
    assert sh("stream", rules, *QUERY, "-", "--format", "jsonl", stdin="B(a)@0\nB(a)@7\n") == ran


def test_dates_come_back_as_dates(sh: Shell, rules: str) -> None:
    stream = "B(a)@2026-01-31T10:00:00Z\nB(a)@2026-01-31T11:00:00Z\n"
    ran = sh("stream", rules, *QUERY, "-", stdin=stream)
    assert ran.out == "A(a)@[2026-01-31T10:00:00Z,2026-01-31T10:00:02Z]\nA(a)@2026-01-31T11:00:00Z\n"
    ran = sh("stream", rules, *QUERY, "-", "--time", "number", stdin=stream)
    assert ran.out == "A(a)@[1769853600,1769853602]\nA(a)@1769857200\n"
    assert sh("stream", rules, *QUERY, "-", "--time", "iso", stdin="B(a)@1\n").out == "A(a)@1970-01-01T00:00:01Z\n"


def test_the_integer_timeline_is_a_choice(sh: Shell) -> None:
    rules = sh.write("join.dmtl", "P :- Q.")
    stream = "Q@[0,1]\nQ@[2,3]\nQ@9\n"
    assert sh("stream", rules, "--query", "P", "--input", "-", stdin=stream).out == "P@[0,1]\nP@[2,3]\nP@9\n"
    ran = sh("stream", rules, "--query", "P", "--input", "-", "--timeline", "integer", stdin=stream)
    assert ran.out == "P@[0,3]\nP@9\n"


def test_temporal_datalog(sh: Shell) -> None:
    rules = sh.write("next.tdl", "Q(X, T+1) :- P(X, T).")
    assert (
        sh("stream", rules, "--query", "Q", "--input", "-", stdin="P(a,3)\nP(a)@5\nP(a,9)\n").out == "Q(a)@4\nQ(a)@6\n"
    )


def test_time_stops_where_it_is_told_to(sh: Shell, rules: str) -> None:
    assert sh("stream", rules, *QUERY, "-", "--until", "20", stdin=STREAM).out == (
        "A(a)@[0,3]\nA(b)@[5,7]\nA(a)@[9,11]\nA(b)@[19/2,23/2]\n"
    )
    assert sh("stream", rules, *QUERY, "-", "--until", "6", stdin=STREAM).out == "A(a)@[0,3]\nA(b)@[5,6]\n"
    assert sh("stream", rules, *QUERY, "-", "--until", "-1", stdin=STREAM).out == ""


def test_an_empty_stream_has_no_answers(sh: Shell, rules: str) -> None:
    assert sh("stream", rules, *QUERY, "-", stdin="") == CommandResult(0, "", "")
    assert sh("stream", rules, *QUERY, "-", stdin="% nothing\n\n") == CommandResult(0, "", "")


# Background


def test_facts_without_a_time_before_the_first_with_one_are_background(sh: Shell, beats: str) -> None:
    stream = "Node(a)\n% and\nNode(b)\nBeat(a)@0\nBeat(b)@1\nBeat(a)@9\n"
    ran = sh("stream", beats, "--query", "Down", "--input", "-", "--at", "every:1", stdin=stream)
    assert ran.out == "Down(b)@0\nDown(a)@6\nDown(a)@7\nDown(b)@7\nDown(a)@8\nDown(b)@8\nDown(b)@9\n"


def test_background_from_a_file_and_from_the_stream(sh: Shell, beats: str) -> None:
    more = sh.write("nodes.facts", "Node(b)\n")
    args = ("stream", beats, "--query", "Down", "--input", "-", "--background", more, "--at", "input")
    assert sh(*args, stdin="Node(a)\nBeat(a)@0\nBeat(b)@4\n").out == "Down(b)@0\n"
    table = sh.write("Node.csv", "name\nc\n")
    assert sh(*args, "--background", table, stdin="Beat(b)@4\n").out == "Down(b)@4\nDown(c)@4\n".replace(
        "Down(b)@4\n", ""
    )


def test_absence_fires_when_its_time_is_over(sh: Shell, beats: str) -> None:
    ran = sh("stream", beats, "--query", "Down", "--input", "-", "--until", "30", stdin="Node(a)\nBeat(a)@0\n")
    assert ran.out == "Down(a)@(-inf,0)\nDown(a)@(5,30]\n"


# Late facts


def test_facts_may_come_late_within_the_delay(sh: Shell, rules: str) -> None:
    shuffled = "B(a)@1\nB(a)@0\nB(b)@5\nB(b)@9.5\nB(a)@9\n"
    assert sh("stream", rules, *QUERY, "-", "--delay", "1", stdin=shuffled) == CommandResult(0, ANSWERS, "")
    assert sh("stream", rules, *QUERY, "-", "--delay", "B=1s", stdin=shuffled) == CommandResult(0, ANSWERS, "")


def test_what_is_later_is_counted_and_kept(sh: Shell, rules: str) -> None:
    stream = "B(a)@10\nB(late)@8\nB(b)@9\nB(late)@[7,8)\n"
    ran = sh("stream", rules, *QUERY, "-", "--delay", "1", "--late", "late.facts", stdin=stream)
    assert ran == CommandResult(0, "A(a)@10\nA(b)@[9,10]\n", "2 facts came too late; they are in late.facts\n")
    assert (sh.folder / "late.facts").read_text() == "B(late)@8\nB(late)@[7,8)\n"
    ran = sh("stream", rules, *QUERY, "-", "--delay", "2", "--late", "late.facts", stdin="B(a)@10\nB(late)@7\n")
    assert ran.err == "1 fact came too late; they are in late.facts\n".replace("they are", "it is")
    assert (sh.folder / "late.facts").read_text() == "B(late)@7\n"
    assert "--late FILE" in sh("stream", rules, *QUERY, "-", stdin=stream).err


def test_each_predicate_may_have_its_own_delay(sh: Shell) -> None:
    rules = sh.write("two.dmtl", "A(X) :- B(X).\nA(X) :- C(X).\n")
    stream = "B(x)@10\nB(late)@9\nC(c)@5\nC(late)@4\n"
    ran = sh("stream", rules, *QUERY, "-", "--delay", "C=5", stdin=stream)
    assert ran.out == "A(c)@5\nA(x)@10\n"
    assert ran.err.startswith("2 facts came too late")
    assert sh("stream", rules, *QUERY, "-", "--delay", "5", "--delay", "C=6", stdin=stream).err == ""


# Figures


def test_figures_of_every_step(sh: Shell, rules: str) -> None:
    sh("stream", rules, *QUERY, "-", "--stats", "stats.jsonl", stdin=STREAM)
    steps = [json.loads(line) for line in (sh.folder / "stats.jsonl").read_text().splitlines()]
    assert {tuple(step) for step in steps} == {("t", "facts_in", "window_facts", "history_atoms", "answers", "seconds")}
    assert [step["t"] for step in steps][:5] == ["0", "1", "5", "9", "19/2"]
    assert sum(step["facts_in"] for step in steps) == 5
    assert sum(step["answers"] for step in steps) == 4
    assert all(step["seconds"] >= 0 for step in steps)


# Reading


def test_nothing_depends_on_where_pieces_end(sh: Shell, rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["B(bg)", "% Größe", "", *(f'C("ü{i % 7}",{i % 3})@{i}/2  # {i}' for i in range(60))]
    rules = sh.write("two.dmtl", "A(X) :- Diamondminus[0,2] C(X, 1).\nA(X) :- B(X).\n")
    data = sh.write("b.facts", "\r\n".join(lines))
    whole = sh("stream", rules, *QUERY, data)
    assert whole.code == 0
    assert len(whole.out.splitlines()) > 20
    for size in (1, 2, 7, 50):
        monkeypatch.setattr(stream_reader, "MIN_BLOCK", size)
        monkeypatch.setattr(stream_reader, "MAX_BLOCK", size)
        assert sh("stream", rules, *QUERY, data) == whole


def test_pieces_of_a_large_file_are_small(sh: Shell) -> None:
    line = "Signal(sensor,12345678)@1\n"
    data = sh.write("large.facts", line * (3 * stream_reader.MAX_BLOCK // len(line)))
    counts = [len(piece.data) for piece in stream_reader.read_pieces(data)]
    assert sum(counts) == 3 * stream_reader.MAX_BLOCK // len(line)
    assert max(counts) <= stream_reader.MAX_BLOCK // len(line) + 1


def test_the_last_line_need_not_end(sh: Shell, rules: str) -> None:
    assert sh("stream", rules, *QUERY, "-", stdin="\ufeffB(a)@0\nB(a)@7").out == "A(a)@[0,2]\nA(a)@7\n"


def test_packed_files_and_tables(sh: Shell, rules: str) -> None:
    (sh.folder / "b.facts.gz").write_bytes(gzip.compress(STREAM.encode()))
    assert sh("stream", rules, *QUERY, "b.facts.gz") == CommandResult(0, ANSWERS, "")
    table = sh.write("B.csv", "x,time\na,0\na,1\nb,5\na,9\nb,9.5\n")
    assert sh("stream", rules, *QUERY, table) == CommandResult(0, ANSWERS, "")
    assert sh("stream", rules, *QUERY, f"B={sh.write('rows.jsonl', '')}").code == 0
    (sh.folder / "b.facts.gz").write_bytes(gzip.compress(STREAM.encode())[:-9])
    ran = sh("stream", rules, *QUERY, "b.facts.gz")
    assert ran.code == 2
    assert "cannot unpack b.facts.gz" in ran.err


def test_a_bad_line_is_named_after_the_answers_before_it(sh: Shell, rules: str) -> None:
    ran = sh("stream", rules, *QUERY, "-", stdin="B(a)@0\nB(a)@7\nB(a@8\nB(a)@9\nB(@\n")
    assert (ran.code, ran.out) == (2, "A(a)@[0,2]\n")
    assert "<stdin>:3:4: error[TL201]" in ran.err
    assert ran.err.count("error[") == 2  # all bad lines that were read are named


def test_bytes_that_are_no_text_are_named(sh: Shell, rules: str) -> None:
    (sh.folder / "b.facts").write_bytes(b"B(a)@0\nB(a)@7\nB(\xff)@8\n")
    ran = sh("stream", rules, *QUERY, "b.facts")
    assert (ran.code, ran.out) == (2, "A(a)@[0,2]\n")
    assert "b.facts:3:3: error[TL010]" in ran.err


@pytest.mark.parametrize(
    "args",
    [
        ("stream",),
        ("stream", "rules.dmtl", "--query", "A"),
        ("stream", "rules.dmtl", "--input", "-"),
        ("stream", "rules.dmtl", *QUERY, "nowhere.facts"),
        ("stream", "rules.dmtl", *QUERY, "."),
        ("stream", "nowhere.dmtl", *QUERY, "-"),
        ("stream", "-", *QUERY, "-"),
        ("stream", "rules.dmtl", "--query", "Nobody", "--input", "-"),
        ("stream", "rules.dmtl", *QUERY, "-", "--step", "0"),
        ("stream", "rules.dmtl", *QUERY, "-", "--step", "-1"),
        ("stream", "rules.dmtl", *QUERY, "-", "--at", "noon"),
        ("stream", "rules.dmtl", *QUERY, "-", "--at", "every:0"),
        ("stream", "rules.dmtl", *QUERY, "-", "--at", "every:"),
        ("stream", "rules.dmtl", *QUERY, "-", "--at", "every:2+soon"),
        ("stream", "rules.dmtl", *QUERY, "-", "--at", "every:2+"),
        ("stream", "rules.dmtl", *QUERY, "-", "--at", "file:"),
        ("stream", "rules.dmtl", *QUERY, "-", "--at", "file:no-such.times"),
        ("stream", "rules.dmtl", *QUERY, "-", "--at", "file:-"),
        ("stream", "rules.dmtl", *QUERY, "-", "--delay", "soon"),
        ("stream", "rules.dmtl", *QUERY, "-", "--delay", "=5"),
        ("stream", "rules.dmtl", *QUERY, "-", "--delay", "5", "--delay", "6"),
        ("stream", "rules.dmtl", *QUERY, "-", "--until", "inf"),
        ("stream", "rules.dmtl", *QUERY, "-", "--until", "x"),
        ("stream", "rules.dmtl", *QUERY, "-", "--memory", "none"),
        ("stream", "rules.dmtl", *QUERY, "-", "--late", "no/such/folder"),
        ("stream", "rules.dmtl", *QUERY, "-", "--state", "no/such/folder"),
        ("stream", "rules.dmtl", *QUERY, "-", "--continues"),
        ("stream", "rules.dmtl", *QUERY, "-", "--background", "nowhere.facts"),
        ("state", "nowhere.state"),
        ("state", "rules.dmtl"),
    ],
)
def test_bad_input_ends_with_2_and_a_message(sh: Shell, rules: str, args: tuple[str, ...]) -> None:
    ran = sh(*args, stdin="B(a)@1\n" if rules in args else "")
    assert ran.code == 2
    assert ran.err
    assert "Traceback" not in ran.err


# Live


def read_line(process: subprocess.Popen[bytes]) -> str:
    """The next line that a process prints, within a minute."""
    assert process.stdout
    assert select.select([process.stdout], [], [], 60)[0], "no answer came"
    return process.stdout.readline().decode()


def say(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin
    process.stdin.write(text.encode())
    process.stdin.flush()


@pytest.mark.slow
def test_a_live_stream_is_answered_as_it_comes(sh: Shell, rules: str) -> None:
    process = start_command(sh.folder, "stream", rules, *QUERY, "-")
    say(process, "B(a)@0\nB(a)@7\nB(b")
    assert read_line(process) == "A(a)@[0,2]\n"
    say(process, ")@20\n")
    assert read_line(process) == "A(a)@[7,9]\n"
    say(process, "B(b)@21\nB(b)@21.5")
    out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == (b"A(b)@[20,43/2]\n", b"", 0)


@pytest.mark.slow
def test_a_live_stream_ends_at_until(sh: Shell, rules: str) -> None:
    process = start_command(sh.folder, "stream", rules, *QUERY, "-", "--until", "8", "--delay", "1")
    # What comes after 9 may be from 8 on, also if nothing after 8 matters; what comes after 10 does not.
    say(process, "B(a)@7\nB(b)@9\nB(b)@6\nB(b)@8\nB(c)@10\nB(d)@8\n")
    assert [read_line(process) for _ in range(2)] == ["A(a)@[7,8]\n", "A(b)@8\n"]
    assert process.wait(60) == 0
    assert b"1 fact came too late" in process.communicate()[1]


@pytest.mark.slow
def test_a_named_pipe_is_a_live_stream_too(sh: Shell, rules: str) -> None:
    os.mkfifo(sh.folder / "pipe")
    process = start_command(sh.folder, "stream", rules, *QUERY, "pipe")
    with open(sh.folder / "pipe", "wb", buffering=0) as pipe:
        pipe.write(b"B(a)@0\nB(a)@7\n")
        assert read_line(process) == "A(a)@[0,2]\n"
    out, _ = process.communicate(timeout=60)
    assert out == b"A(a)@7\n"


# States


def random_stream(seed: int, count: int = 120) -> list[str]:
    """Facts that come up to 3 too late."""
    dice = random.Random(seed)
    times = sorted(((time := dice.randint(0, 200), time + 3 * dice.random()) for _ in range(count)), key=lambda t: t[1])
    return [f"B({dice.choice('abc')})@{time}\n" for time, _ in times]


def run_in_parts(sh: Shell, parts: list[str], *args: str) -> str:
    """The answers of runs over parts of a stream, all but the last of which say that the stream continues."""
    out = []
    for number, part in enumerate(parts):
        more = () if number == len(parts) - 1 else ("--continues",)
        ran = sh("stream", *args, *more, stdin=part)
        assert (ran.code, ran.err) == (0, "")
        out.append(ran.out)
    return "".join(out)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("more", [(), ("--at", "input"), ("--at", "every:1/2", "--step", "5"), ("--memory", "generic")])
def test_a_stream_in_parts_is_the_stream(sh: Shell, seed: int, more: tuple[str, ...]) -> None:
    rules = sh.write(
        "r.dmtl", "A(X) :- Diamondminus[0,2] B(X), not Diamondminus(2,9] B(X).\nA(X) :- Boxminus[0,1] A(X).\n"
    )
    lines = random_stream(seed)
    args = (rules, *QUERY, "-", "--delay", "3", *more)
    whole = sh("stream", *args, stdin="".join(lines))
    assert (whole.code, whole.err) == (0, "")
    assert whole.out.count("\n") > 10
    cuts = sorted(random.Random(seed).sample(range(len(lines)), 3))
    parts = ["".join(lines[lo:hi]) for lo, hi in zip([0, *cuts], [*cuts, len(lines)], strict=True)]
    assert run_in_parts(sh, parts, *args, "--state", "s.state") == whole.out


def test_what_was_printed_at_the_end_of_a_run_is_not_printed_again(sh: Shell, rules: str) -> None:
    args = ("stream", rules, *QUERY, "-", "--state", "s.state", "--at", "input")
    assert sh(*args, stdin="B(a)@0\nB(a)@1\n").out == "A(a)@0\nA(a)@1\n"
    assert sh(*args, stdin="B(b)@1\nB(c)@2\n").out == "A(b)@1\nA(a)@2\nA(b)@2\nA(c)@2\n"
    again = ("stream", rules, *QUERY, "-", "--state", "t.state")
    assert sh(*again, stdin="B(a)@0\nB(b)@9\n").out == "A(a)@[0,2]\nA(b)@9\n"
    assert sh(*again, stdin="B(b)@10\nB(a)@20\n").out == "A(b)@[9,12]\nA(a)@20\n"


def test_options_are_those_of_the_state(sh: Shell, rules: str) -> None:
    args = ("stream", rules, *QUERY, "-", "--state", "s.state", "--continues")
    sh(*args, "--delay", "2", "--at", "input", stdin="B(a)@10\n")
    before = (sh.folder / "s.state").read_bytes()
    for more in (("--delay", "3"), ("--at", "every:1"), ("--memory", "bounded"), ("--timeline", "integer")):
        ran = sh(*args, *more, stdin="B(a)@11\n")
        assert (ran.code, ran.out) == (2, "")
        assert f"error[TL403]: s.state belongs to a stream with another {more[0]}" in ran.err
    ran = sh("stream", rules, "--query", "B", *args[4:], stdin="B(a)@11\n")
    assert ran.code == 2
    assert "another --query: A, not B" in ran.err
    assert (sh.folder / "s.state").read_bytes() == before
    assert sh(*args[:-1], stdin="B(b)@8\nB(a)@11\n").out == "A(b)@8\nA(a)@10\nA(b)@10\nA(a)@11\n"


def test_background_facts_are_in_the_state(sh: Shell, beats: str) -> None:
    args = ("stream", beats, "--query", "Down", "--input", "-", "--state", "s.state", "--at", "input")
    assert sh(*args, stdin="Node(a)\nNode(b)\nBeat(a)@0\n").out == "Down(b)@0\n"
    assert sh(*args, stdin="Beat(a)@9\n").out == "Down(b)@9\n"
    assert sh(*args, stdin="Node(b)\nNode(a)\nBeat(a)@18\n").out == "Down(b)@18\n"
    ran = sh(*args, stdin="Node(c)\nBeat(a)@20\n")
    assert (ran.code, ran.out) == (2, "")
    assert "background facts are not those of the state" in ran.err


def test_changed_rules_are_refused_unless_asked_for(sh: Shell, rules: str) -> None:
    args = (*QUERY, "-", "--state", "s.state", "--continues")
    sh("stream", rules, *args, stdin="B(a)@10\n")
    other = sh.write("other.dmtl", "A(X) :- Diamondminus[0,3] B(X).\n")
    ran = sh("stream", other, *args, stdin="B(b)@11\n")
    assert (ran.code, ran.out) == (2, "")
    assert "error[TL403]" in ran.err
    assert "--changed-rules" in ran.err
    ran = sh("stream", other, *args, "--changed-rules", stdin="B(b)@11\nB(b)@30\n")
    assert ran.code == 0
    assert "A(b)@[11,14]\n" in ran.out
    assert ran.err.startswith("s.state: ")


@pytest.mark.parametrize(
    "options",
    [
        ("--late", "in.facts"),
        ("--stats", "rules.dmtl"),
        ("--state", "in.facts"),
        ("--late", "new", "--stats", "./new"),
        ("--state", "new", "--stats", "new"),
        ("--background", "more.facts", "--late", "more.facts"),
    ],
)
def test_a_file_that_is_written_to_is_used_for_nothing_else(sh: Shell, rules: str, options: tuple[str, ...]) -> None:
    files = {name: sh.write(name, "B(a)@10\nB(a)@1\nB(a)@20\n") for name in ("in.facts", "more.facts")}
    before = {file.name: file.read_bytes() for file in sh.folder.iterdir()}
    ran = sh("stream", rules, *QUERY, files["in.facts"], *options)
    assert (ran.code, ran.out) == (2, "")
    assert "would be overwritten" in ran.err
    assert {file.name: file.read_bytes() for file in sh.folder.iterdir()} == before


def test_a_delay_of_a_predicate_that_is_misspelt(sh: Shell, rules: str) -> None:
    ran = sh("stream", rules, *QUERY, "-", "--delay", "BB=5s", stdin="B(a)@10\nB(a)@8\n")
    assert (ran.code, ran.out) == (2, "")
    assert "error[TL302]: --delay BB=5: no rule mentions BB" in ran.err
    assert "name a predicate of the rules" in ran.err


def test_time_does_not_stop_before_the_time_of_a_state(sh: Shell, rules: str) -> None:
    args = ("stream", rules, *QUERY, "-", "--state", "s.state", "--continues")
    sh(*args, stdin="B(a)@10\n")
    ran = sh(*args, "--until", "9", stdin="")
    assert (ran.code, ran.out) == (2, "")
    assert "--until 9 is before 10, the time of s.state" in ran.err
    assert sh(*args, "--until", "10", stdin="").code == 0


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc, a folder in which nobody can write")
def test_a_state_that_cannot_be_saved_is_refused_before_anything_is_read(sh: Shell, rules: str) -> None:
    ran = sh("stream", rules, *QUERY, "-", "--state", "/proc/s.state", stdin="B(a)@10\nB(a)@30\n")
    assert (ran.code, ran.out) == (2, "")
    assert "--state /proc/s.state: cannot write there" in ran.err


def test_a_damaged_state_is_refused_and_left_alone(sh: Shell, rules: str) -> None:
    sh("stream", rules, *QUERY, "-", "--state", "s.state", stdin="B(a)@10\n")
    damaged = bytearray((sh.folder / "s.state").read_bytes())
    damaged[-1] ^= 1
    (sh.folder / "s.state").write_bytes(damaged)
    ran = sh("stream", rules, *QUERY, "-", "--state", "s.state", stdin="B(a)@11\n")
    assert (ran.code, ran.out) == (2, "")
    assert "error[TL401]: s.state is damaged" in ran.err
    assert (sh.folder / "s.state").read_bytes() == bytes(damaged)


def test_the_state_is_saved_before_a_bad_line(sh: Shell, rules: str) -> None:
    args = ("stream", rules, *QUERY, "-", "--state", "s.state")
    ran = sh(*args, stdin="B(a)@0\nB(a)@7\nB(a@8\nB(a)@9\n")
    assert (ran.code, ran.out) == (2, "A(a)@[0,2]\n")
    assert sh(*args, stdin="B(a)@8\nB(a)@9\nB(b)@20\n").out == "A(a)@[7,11]\nA(b)@20\n"


def test_what_the_reasoner_refuses_comes_after_the_answers_and_is_behind_the_state(sh: Shell) -> None:
    rules = sh.write("one.dmtl", "A(X) :- B(X).\nBottom :- B(X), Off(X).\n")
    args = ("stream", rules, *QUERY, "-", "--state", "s.state")
    sh(*args, "--continues", stdin="B(a)@0\n")
    ran = sh(*args, stdin="B(a)@1\nB(a)@2\nOff(a)@2\nB(a)@3\n")
    assert ran.code == 2
    assert ran.out == "A(a)@0\nA(a)@1\n"
    assert "error[TL303]" in ran.err
    assert sh(*args, stdin="B(a)@3\n") == CommandResult(0, "A(a)@2\nA(a)@3\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_state(sh: Shell, rules: str, number: signal.Signals) -> None:
    args = ("stream", rules, *QUERY, "-", "--state", "s.state")
    process = start_command(sh.folder, *args)
    say(process, "B(a)@0\nB(a)@7\nB(x)@")
    assert read_line(process) == "A(a)@[0,2]\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == (b"", 128 + number)
    assert err.endswith(b"stopped after line 2 of <stdin>; the state is in s.state\n")
    assert sh(*args, stdin="B(a)@8\nB(b)@20\n").out == "A(a)@[7,10]\nA(b)@20\n"


def test_late_facts_and_figures_go_on_in_their_files(sh: Shell, rules: str) -> None:
    args = ("stream", rules, *QUERY, "-", "--state", "s.state", "--late", "late.facts", "--stats", "stats.jsonl")
    for time in (10, 20):
        ran = sh(*args, "--continues", stdin=f"B(a)@{time}\nB(a)@{time - 1}\n")
        assert ran.err == "1 fact came too late; it is in late.facts\n"
    assert (sh.folder / "late.facts").read_text() == "B(a)@9\nB(a)@19\n"
    assert (sh.folder / "stats.jsonl").read_text().count("\n") >= 2


def test_state_says_what_is_in_it(sh: Shell, beats: str) -> None:
    args = ("stream", beats, "--query", "Down", "--input", "-", "--state", "s.state", "--delay", "Beat=2")
    sh(*args, stdin="Node(a)\nNode(b)\nBeat(a)@2026-01-31\nBeat(b)@2026-01-31T00:00:01Z\n")
    shown = json.loads(sh("state", "s.state", "--json").out)
    assert shown["query"] == "Down"
    assert shown["program"] == Path(beats).read_text()
    assert shown["time"] == "2026-01-31T00:00:01Z"
    assert shown["held"]["Node"] == 2
    assert shown["held_between"] == 2  # where the two heartbeats count: Diamondminus[0,5] Beat
    assert shown["delay"] == {"": "0", "Beat": "2"}
    assert shown["facts_in"] == 4
    assert shown["size"] == (sh.folder / "s.state").stat().st_size
    page = sh("state", "s.state").out
    for words in ("Down(X) :- Node(X)", "2026-01-31T00:00:01Z", "Beat=2", "4, and 0 too late", "by tidelog"):
        assert words in page


# Several inputs


def test_several_inputs_are_merged_by_time(sh: Shell, rules: str) -> None:
    lines = STREAM.splitlines(keepends=True)
    for split in range(2 ** len(lines)):
        left = sh.write("left.facts", "".join(line for i, line in enumerate(lines) if split >> i & 1))
        right = sh.write("right.facts", "".join(line for i, line in enumerate(lines) if not split >> i & 1))
        assert sh("stream", rules, *QUERY, left, "--input", right) == CommandResult(0, ANSWERS, "")


def test_inputs_of_different_forms_are_merged(sh: Shell, rules: str) -> None:
    sh.write("B.csv", "x,time\na,0\na,1\nb,5\n")
    table = sh.write("more.jsonl", '{"x": "a", "time": 9}\n')
    rest = "B(b)@9.5\n"
    ran = sh("stream", rules, *QUERY, "B.csv", "--input", f"B={table}", "--input", "-", stdin=rest)
    assert ran == CommandResult(0, ANSWERS, "")


@pytest.mark.parametrize("block", [1, 7, 40])
def test_an_input_may_be_out_of_order_within_the_delay(
    sh: Shell, rules: str, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(stream_reader, "MIN_BLOCK", block)
    one = sh.write("one.facts", "B(a)@1\nB(a)@0\nB(a)@9\n")
    two = sh.write("two.facts", "B(b)@9.5\nB(b)@5\nB(b)@20\n")
    ran = sh("stream", rules, *QUERY, one, "--input", two, "--delay", "5", "--until", "9.5")
    assert ran == CommandResult(0, ANSWERS, "")


def test_temporal_datalog_facts_are_merged_by_their_last_argument(sh: Shell) -> None:
    sh.write("rules.tdl", "Twice(X, T+1) :- On(X, T), On(X, T+1).\n")
    sh.write("a.facts", "On(a,0).\nOn(a,1).\nOn(a,6).\n")
    sh.write("b.facts", "On(b,1).\nOn(b,2).\n")
    ran = sh("stream", "rules.tdl", "--query", "Twice", "--input", "a.facts", "--input", "b.facts")
    assert ran == CommandResult(0, "Twice(a)@1\nTwice(b)@2\n", "")


def test_a_bad_line_of_one_input_ends_the_stream_after_what_came_before_it(sh: Shell, rules: str) -> None:
    one = sh.write("one.facts", "B(a)@0\nB(a)@1\nB(b)@5\nB(a@9\n")
    two = sh.write("two.facts", "B(c)@2\nB(c)@100\n")
    ran = sh("stream", rules, *QUERY, one, "--input", two)
    assert (ran.code, ran.out) == (2, "A(a)@[0,3]\nA(c)@[2,4]\n")
    assert "one.facts:4:" in ran.err


def test_standard_input_can_be_only_one_input(sh: Shell, rules: str) -> None:
    ran = sh("stream", rules, *QUERY, "-", "--input", "-", stdin="")
    assert ran.code == 2
    assert "standard input (-) can be read only once" in ran.err
