"""Three use cases on dirty CSV, JSON Lines and Parquet, in batch, as a stream and live: right answers, no row lost."""

from __future__ import annotations

import csv
import io
import json
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from pyarrow import parquet

from shell import CommandResult, Shell, start_command
from use_cases import USE_CASES, Answer, UseCase, iso, read_time

pytestmark = [pytest.mark.usefixtures("kernels"), pytest.mark.slow]

#: A bad row at the end of live inputs, which shows that all rows before it have been read.
LAST = "the end"


@pytest.fixture(params=[(name, seed) for name in USE_CASES for seed in (1, 2)], ids=lambda p: f"{p[0]}-{p[1]}")
def case(request: pytest.FixtureRequest, sh: Shell) -> UseCase:
    name, seed = request.param
    return USE_CASES[name](sh.folder, random.Random(f"{name}{seed}"))


def read_json(text: str) -> set[Answer]:
    rows = [json.loads(line) for line in text.splitlines()]
    return {(tuple(row["args"]), read_time(row["start"]), read_time(row["end"])) for row in rows}


def check_bad_rows(case: UseCase, ran: CommandResult, file: str) -> None:
    """Every bad row is kept with its file and line, and counted; nothing else is."""
    rows = [json.loads(line) for line in (case.folder / file).read_text().splitlines()]
    assert sorted((Path(row["file"]).name, row["line"]) for row in rows) == sorted(case.bad)
    for name in {name for name, _ in case.bad}:
        count = sum(file == name for file, _ in case.bad)
        assert f"{name}: {count} row" in ran.err
    assert "warning" not in ran.err
    assert "late" not in ran.err


def test_batch_and_stream_give_the_answers_computed_by_hand(case: UseCase, sh: Shell) -> None:
    tables = [*case.background, *case.tables]
    until = ("--until", iso(case.until))
    batch = sh("materialise", "rules.dmtl", *tables, "--query", case.query, *until, "--bad-rows", "a", "--json")
    assert batch.code == 0, batch.err
    assert read_json(batch.out) == case.answers
    check_bad_rows(case, batch, "a")
    inputs = [argument for table in case.tables for argument in ("--input", table)]
    inputs += [argument for table in case.background for argument in ("--background", table)]
    stream = sh("stream", "rules.dmtl", "--query", case.query, *inputs, *until, "--bad-rows", "b", "--json")
    assert stream.code == 0, stream.err
    assert read_json(stream.out) == case.answers
    check_bad_rows(case, stream, "b")


def test_without_a_place_for_bad_rows_nothing_is_answered(case: UseCase, sh: Shell) -> None:
    ran = sh("materialise", "rules.dmtl", *case.background, *case.tables, "--query", case.query)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("error[TL") == min(20, sum(file == Path(case.tables[0]).name for file, _ in case.bad))


def test_tables_of_answers_have_the_columns_of_the_schema(case: UseCase, sh: Shell) -> None:
    names = {"Overdue": ["order", "step"], "Silent": ["device", "site"], "Suspicious": ["card", "reason"]}[case.query]
    columns = ["predicate", *names, "start", "end", "closed"]
    tables = [*case.background, *case.tables, "--bad-rows", "bad"]
    ran = sh("materialise", "rules.dmtl", *tables, "--query", case.query, "--format", "csv", "--until", iso(case.until))
    batch = list(csv.DictReader(io.StringIO(ran.out)))
    assert list(batch[0]) == columns
    assert {(tuple(row[name] for name in names), read_time(row["start"]), read_time(row["end"])) for row in batch} == (
        case.answers
    )
    inputs = [argument for table in case.tables for argument in ("--input", table)]
    inputs += [argument for table in case.background for argument in ("--background", table)]
    command = ("stream", "rules.dmtl", "--query", case.query, *inputs, "--bad-rows", "bad", "--until", iso(case.until))
    ran = sh(*command, "-o", "answers.parquet")
    assert ran.code == 0, ran.err
    table = parquet.read_table("answers.parquet")
    assert table.column_names == columns
    assert {(tuple(row[name] for name in names), row["start"], row["end"]) for row in table.to_pylist()} == case.answers


def test_growing_files_and_standard_input_give_the_same_answers(case: UseCase, sh: Shell) -> None:
    """The text tables grow while they are read; one of them comes through standard input."""
    texts = [table for table in case.tables if not table.endswith(".parquet")]
    facts = [table for table in case.tables if table.endswith(".parquet")]
    contents = {table: (case.folder / table).read_text().splitlines(keepends=True) for table in texts}
    for table in texts:
        contents[table].append(f"{LAST}\n")
        (case.folder / table).write_text("")
    # Tables of Parquet do not grow; as fact text they can be followed.
    predicate = {"orders": "Shipped", "devices": "Repair", "cards": "Machine"}[_name(case)]
    rules = "".join(f"{predicate}2({v}) :- {predicate}({v}).\n" for v in [_variables(predicate)])
    sh.write("copy.dmtl", rules)
    copied = sh("materialise", "copy.dmtl", *facts, "--schema", "tidelog.toml", "--bad-rows", "c", "--query", predicate)
    lines = sorted(copied.out.splitlines(), key=lambda line: line.partition("@")[2].strip("[(").partition(",")[0])
    sh.write("rest.facts", "".join(f"{line}\n" for line in [*lines, LAST]))
    piped = {"orders": "Paid=-.jsonl", "devices": "Radio=-.jsonl", "cards": "Web=-.jsonl"}[_name(case)]
    inputs = ["--input", texts[0], "--input", piped, "--input", "rest.facts"]
    inputs += [argument for table in case.background for argument in ("--background", table)]
    command = ("stream", "rules.dmtl", "--query", case.query, *inputs, "--bad-rows", "d", "--json", "--follow")
    with start_command(case.folder, *command, "--until", iso(case.until), "--state", "s.state") as process:
        feeder = threading.Thread(target=_feed, args=(process, case, texts, contents))
        feeder.start()
        out, err = _read_all(process)
        feeder.join()
    assert read_json(out) <= case.answers, err
    assert "Traceback" not in err
    sh.write("none.facts", "")
    finish = ("--input", "none.facts", "--state", "s.state", "--until", iso(case.until), "--json")
    again = sh("stream", "rules.dmtl", "--query", case.query, *finish)
    assert again.code == 0, again.err
    assert read_json(out) | read_json(again.out) == case.answers
    rows = [json.loads(line) for line in (case.folder / "d").read_text().splitlines()]
    rows = [row for row in rows if row["row"] != LAST]
    found = sorted((Path(row["file"]).name, row["line"]) for row in rows)
    piped_name = Path(texts[1]).name
    expected = {("<stdin>" if name == piped_name else name, line) for name, line in case.bad}
    assert found == sorted((name, line) for name, line in expected if not name.endswith(".parquet"))


def _name(case: UseCase) -> str:
    return {"Overdue": "orders", "Silent": "devices", "Suspicious": "cards"}[case.query]


def _variables(predicate: str) -> str:
    return "C, A, L" if predicate == "Machine" else "X"


def _feed(process: subprocess.Popen[bytes], case: UseCase, texts: list[str], contents: dict[str, list[str]]) -> None:
    """Write the tables in small parts, at the same pace."""
    assert process.stdin is not None
    while not (case.folder / "d").exists() and process.poll() is None:  # the stream has not begun
        time.sleep(0.05)
    parts = 12
    for part in range(parts):
        for number, table in enumerate(texts[:2]):
            lines = contents[table]
            text = "".join(lines[len(lines) * part // parts : len(lines) * (part + 1) // parts])
            if number:
                process.stdin.write(text.encode())
                process.stdin.flush()
            else:
                with (case.folder / table).open("a") as file:
                    file.write(text)
        time.sleep(0.05)
    process.stdin.close()
    while (case.folder / "d").read_text().count(f'"row": "{LAST}"') < 3 and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)


def _read_all(process: subprocess.Popen[bytes]) -> tuple[str, str]:
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = process.stdout.read(), process.stderr.read()
    process.wait(60)
    return out.decode(), err.decode()
