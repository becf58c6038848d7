"""`tidelog stream --follow`: files that grow, are replaced or cut, and a clock that runs on while nothing arrives."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from pathlib import Path

import pytest

from shell import Shell, start_command

pytestmark = [pytest.mark.usefixtures("kernels"), pytest.mark.slow]


def read_line(process: subprocess.Popen[bytes], error: bool = False) -> str:
    pipe = process.stderr if error else process.stdout
    assert pipe is not None
    assert select.select([pipe], [], [], 60)[0]
    return pipe.readline().decode().rstrip("\n")


def append(path: str, text: str) -> None:
    with open(path, "a") as file:
        file.write(text)


def stop(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGINT)
    return process.wait(60)


@pytest.fixture
def rules(sh: Shell) -> str:
    return sh.write("rules.dmtl", "A(X) :- Diamondminus[0,2] B(X).\n")


def test_a_file_that_grows_is_followed_and_continued_from_a_state(sh: Shell, rules: str) -> None:
    sh.write("b.facts", "B(a)@0\nB(b)@5\nB(c)@")
    command = ("stream", rules, "--query", "A", "--input", "b.facts", "--follow", "--state", "s.state")
    with start_command(sh.folder, *command) as process:
        assert read_line(process) == "A(a)@[0,2]"
        append(str(sh.folder / "b.facts"), "9\n")
        assert read_line(process) == "A(b)@[5,7]"
        assert stop(process) == 128 + signal.SIGINT
        assert process.stderr is not None
        assert b"stopped after line 3 of b.facts; the state is in s.state" in process.stderr.read()
    append(str(sh.folder / "b.facts"), "B(d)@20\n")
    with start_command(sh.folder, *command) as process:
        assert read_line(process) == "A(c)@[9,11]"
        os.rename(sh.folder / "b.facts", sh.folder / "old.facts")
        Path(sh.folder, "b.facts").write_text("B(e)@30\n")
        assert read_line(process, error=True) == "b.facts was replaced; it is read from its beginning"
        assert read_line(process) == "A(d)@[20,22]"
        assert stop(process) == 128 + signal.SIGINT


def test_absence_is_noticed_while_nothing_arrives(sh: Shell) -> None:
    sh.write("rules.dmtl", "Quiet(X) :- Node(X), not Diamondminus[0,1] Beat(X).\n")
    sh.write("beats.facts", "Node(a)\nBeat(a)@100\n")
    sh.write("more.facts", "")
    command = ("stream", "rules.dmtl", "--query", "Quiet", "--input", "beats.facts", "--input", "more.facts")
    with start_command(sh.folder, *command, "--follow", "--heartbeat", "200ms", "--changes") as process:
        assert "Quiet(a)" in read_line(process)
        assert stop(process) == 128 + signal.SIGINT


SCHEMA = """
[schema.B]
columns = { x = "text", at = "time" }
time = "at"
"""


def test_tables_are_followed_with_their_header_and_from_a_state(sh: Shell, rules: str) -> None:
    sh.write("B.csv", "x,time\na,0\nb,5\nc,")
    command = ("stream", rules, "--query", "A", "--input", "B.csv", "--follow", "--state", "s.state")
    with start_command(sh.folder, *command) as process:
        assert read_line(process) == "A(a)@[0,2]"
        append(str(sh.folder / "B.csv"), "9\n")
        assert read_line(process) == "A(b)@[5,7]"
        assert stop(process) == 128 + signal.SIGINT
    append(str(sh.folder / "B.csv"), "d,20\n")
    with start_command(sh.folder, *command, "--bad-rows", "bad.jsonl") as process:
        assert read_line(process) == "A(c)@[9,11]"
        append(str(sh.folder / "B.csv"), 'e,soon\n"f,21\ng\nh,30\n')
        assert read_line(process) == "A(d)@[20,22]"
        assert stop(process) == 128 + signal.SIGINT
        assert process.stderr is not None
        assert b"B.csv: 3 rows could not be read" in process.stderr.read()
    bad = [json.loads(line) for line in (sh.folder / "bad.jsonl").read_text().splitlines()]
    assert sorted((row["line"], row["row"]) for row in bad) == [(6, "e,soon"), (7, '"f,21'), (8, "g")]


def test_json_lines_are_followed_with_a_schema(sh: Shell, rules: str) -> None:
    sh.write("tidelog.toml", SCHEMA)
    sh.write("B.jsonl", '{"x": 7, "at": 0}\n{"at": 5, "more": [1], "x": "b"}\n')
    bad = ("--bad-rows", "bad.jsonl")
    with start_command(sh.folder, "stream", rules, "--query", "A", "--input", "B.jsonl", "--follow", *bad) as process:
        assert read_line(process) == 'A("7")@[0,2]'
        append(str(sh.folder / "B.jsonl"), '{"at": 6}\n')
        append(str(sh.folder / "B.jsonl"), '{"x": "c", "at": \n{"x": "d", "at": 20}\n')
        assert read_line(process) == "A(b)@[5,7]"
        assert stop(process) == 128 + signal.SIGINT
    reasons = [json.loads(line) for line in (sh.folder / "bad.jsonl").read_text().splitlines()]
    assert [row["line"] for row in reasons] == [3, 4]
    assert reasons[0]["reason"] == "there is no value for `x`"
    sh.write("tidelog.toml", SCHEMA.replace("schema.B", "schema.C"))
    ran = sh("stream", rules, "--query", "A", "--input", "B.jsonl", "--follow")
    assert ran.code == 2
    assert "live JSON needs a schema" in ran.err


def test_standard_input_and_a_file_are_followed_together(sh: Shell) -> None:
    sh.write("rules.dmtl", "A(X) :- B(X), not Diamondminus[0,2] C(X).\n")
    sh.write("c.facts", "C(a)@0\n")
    command = ("stream", "rules.dmtl", "--query", "A", "--input", "B=-.csv", "--input", "c.facts", "--follow")
    with start_command(sh.folder, *command, "--heartbeat", "300ms", "--changes", "start") as process:
        assert process.stdin is not None
        process.stdin.write(b"x,time\na,1\nb,2\n")
        process.stdin.flush()
        assert "A(b)" in read_line(process)
        append(str(sh.folder / "c.facts"), "C(b)@1000\n")
        process.stdin.write(b"b,1001\nc,1001")
        process.stdin.close()
        assert "A(c)" in read_line(process)
        assert stop(process) == 128 + signal.SIGINT


def test_a_silent_input_does_not_hold_back_a_busy_one_for_ever(sh: Shell, rules: str) -> None:
    sh.write("busy.facts", "B(a)@0\n")
    sh.write("silent.facts", "")
    command = ("stream", rules, "--query", "A", "--input", "busy.facts", "--input", "silent.facts", "--follow")
    with start_command(sh.folder, *command, "--heartbeat", "1s") as process:
        assert process.stdout is not None
        for k in range(1, 600):  # a line every tenth of a second, so that the stream as a whole is never idle
            append(str(sh.folder / "busy.facts"), f"B(b)@{k * 10}\n")
            if select.select([process.stdout], [], [], 0.1)[0]:
                break
        assert read_line(process) == "A(a)@[0,2]"
        assert stop(process) == 128 + signal.SIGINT


def test_tables_on_standard_input_are_read_as_they_arrive(sh: Shell, rules: str) -> None:
    sh.write("tidelog.toml", SCHEMA)
    command = ("stream", rules, "--query", "A", "--input", "B=-.jsonl")
    with start_command(sh.folder, *command) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"x": "a", "at": 1}\n{"x": "a", "at": 9}\n')
        process.stdin.flush()
        assert read_line(process) == "A(a)@[1,3]"
        process.stdin.close()
        assert read_line(process) == "A(a)@9"
    ran = sh("materialise", rules, "B=-.csv", "--schema", "tidelog.toml", stdin="x,at\n1,1\n")
    assert ran.out == 'A("1")@[1,3]\n'
    ran = sh("materialise", rules, "B=-.csv", "-", stdin="x,at\n1,1\n")
    assert "standard input (-) can be read only once" in ran.err


def test_what_cannot_be_followed_is_refused(sh: Shell, rules: str) -> None:
    sh.write("B.parquet", "")
    ran = sh("stream", rules, "--query", "A", "--input", "B.parquet", "--follow")
    assert ran.code == 2
    assert "B.parquet cannot be read while it grows" in ran.err
    ran = sh("stream", rules, "--query", "A", "--input", "B.csv", "--heartbeat", "1s")
    assert ran.code == 2
    assert "--heartbeat needs --follow" in ran.err
