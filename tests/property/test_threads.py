"""Work that is divided over threads gives what one thread gives: reading, reasoning, printing and streams.

Limits are lowered, so that small inputs are divided, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, note, settings

import tidelog as tl
from behaviour import Behaviour, load_cases, sort_repeats
from examine import examine, format_as_behaviour
from keyed_programs import keyed_cases
from shell import Shell
from strategies import Case, Features
from test_batch import PARTS
from tidelog.data import data_files, fact_printer, range_scanner
from tidelog.data.packed_rows import Columns
from tidelog.engine import bucket_threads
from tidelog.local_threads import choose_threads, count_threads, map_ahead, restore_threads
from tidelog.streaming import stream_reader

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[bool]]:
    """Let three threads divide every problem; count the problems by whether they were divided."""
    for name in ("FEWEST_FACTS", "FEWEST_IN_RECURSION", "FACTS_PER_SQUARED_RULES", "LEAST_DIVIDED"):
        monkeypatch.setattr(bucket_threads, name, 0)
    for name in ("MOST_COPIED", "LARGEST_SHARE"):
        monkeypatch.setattr(bucket_threads, name, 1e9)
    monkeypatch.setattr(fact_printer, "_FEWEST_ROWS", 2)
    solve, seen = bucket_threads.solve_in_buckets, Counter[bool]()

    def count(*args: object) -> object:
        found = solve(*args)  # type: ignore[arg-type]
        seen[found is not None] += 1
        return found

    monkeypatch.setattr("tidelog.batch.solve_in_buckets", count)
    before = choose_threads(3)
    yield seen
    restore_threads(before)


# Batch


def test_behaviour(divided: Counter[bool]) -> None:
    for case in load_cases():
        run_behaviour(case)
    assert divided[True] >= 30, divided


def run_behaviour(case: Behaviour) -> None:
    program, data = tl.Program.parse(case.rules, syntax=case.syntax), tl.Dataset.parse(case.facts)
    queries = list(case.queries) or None
    if case.inconsistent is not None:
        with pytest.raises(tl.errors.Inconsistent) as raised:
            tl.materialise(program, data, timeline=case.timeline)
        assert all(words in str(raised.value) for words in case.inconsistent), case.name
    if case.expect is not None:
        model = tl.materialise(program, data, query=queries, between=case.between, timeline=case.timeline)
        assert sort_repeats(model.render().decode().splitlines()) == sort_repeats(case.expect), case.name


@pytest.mark.slow
def test_random_programs_agree_with_the_oracle(divided: Counter[bool]) -> None:
    for part in PARTS.values():
        agree(part)
    assert divided[True] >= 12, divided


def agree(part: Features) -> None:
    @settings(max_examples=5)
    @given(keyed_cases(part))
    def judge(case: Case) -> None:
        found = next(examine(case), None)
        if found:
            note(format_as_behaviour(found, case))
        assert not found

    judge()


def test_parts_of_printed_rows_need_no_other_compiled_code() -> None:
    args = np.arange(40, dtype=np.int32).reshape(2, 20)
    parts = fact_printer._divide(Columns(args, np.arange(20), np.arange(20)), 3)
    assert [part.args[0].tolist() for part in parts] == [[*range(6)], [*range(6, 13)], [*range(13, 20)]]
    assert all(part.args.flags.c_contiguous for part in parts)


# Reading


def write_facts(path: Path, seed: int, count: int = 300) -> list[str]:
    """Write facts of several forms and predicates, with constants that come again in other parts of the file."""
    dice = Random(seed)
    forms = ("P(a{0})@{1}", "Q(a{0},{2})@[{1},{1}.5)", 'P("ü {0}")@{1}', "% a comment", "R@{1}", "R@{1}/7")
    lines = [
        dice.choice(forms).format(dice.randrange(40), dice.randrange(100), dice.randrange(10, 30)) for _ in range(count)
    ]
    path.write_text("\n".join(lines) + "\n" * (seed % 2), encoding="utf-8-sig" if seed % 3 == 0 else "utf-8")
    return lines


@pytest.mark.parametrize("seed", range(6))
def test_a_file_in_ranges_is_the_file(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "stream.facts"
    write_facts(path, seed)
    whole = tl.Dataset.load(path, ordered=True)
    monkeypatch.setattr(range_scanner, "FEWEST_BYTES", 0)
    monkeypatch.setattr(range_scanner, "_CHUNK", 500)
    before = choose_threads(2 + seed % 4)
    assert range_scanner.scan_in_ranges(str(path), tl.Dataset().symbols, "file") is not None
    parts = tl.Dataset.load(path, ordered=True)
    restore_threads(before)
    assert str(parts) == str(whole)
    assert [parts.symbols.value(i) for i in range(len(parts.symbols))] == [
        whole.symbols.value(i) for i in range(len(whole.symbols))
    ]
    for key, relation in whole.relations.items():
        other = parts.relations[key]
        assert relation.order is not None
        assert other.order is not None
        assert np.array_equal(other.order, relation.order)
        assert np.array_equal(other.args, relation.args)


def test_errors_have_the_lines_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "stream.facts"
    lines = write_facts(path, 1)
    lines[250] = "P(a@3"
    path.write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(range_scanner, "FEWEST_BYTES", 0)
    before = choose_threads(3)
    with pytest.raises(tl.TidelogError) as raised:
        tl.Dataset.load(path)
    restore_threads(before)
    assert [found.place.line for found in raised.value.diagnostics if found.place] == [251]


# Streams

RULES = "A(X) :- Diamondminus[0,2] B(X), not Diamondminus(2,9] B(X).\nA(X) :- Boxminus[0,1] A(X).\n"


@pytest.mark.parametrize("bad", [False, True], ids=["to the end", "to a bad line"])
def test_a_stream_that_is_read_ahead_is_the_stream(sh: Shell, bad: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = Random(3)
    lines = [f"B({dice.choice('abcdef')})@{time / 2}\n" for time in range(400)]
    if bad:
        lines[300] = "B(a@7\n"
    rules, facts = sh.write("r.dmtl", RULES), sh.write("b.facts", "".join(lines))
    command = ("stream", rules, "--query", "A", "--input", facts, "--state")
    one = sh(*command, "one.state", "--threads", "1")
    read: list[int] = []
    monkeypatch.setattr(stream_reader, "LONG_FILE", 0)
    monkeypatch.setattr(stream_reader, "MIN_BLOCK", 64)
    monkeypatch.setattr(stream_reader, "MAX_BLOCK", 512)

    def note_threads(*args: object) -> object:
        read.append(count_threads())
        return map_ahead(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(stream_reader, "map_ahead", note_threads)
    two = sh(*command, "two.state", "--threads", "2")
    assert read == [2]
    assert one.code == (2 if bad else 0)
    assert (two.code, two.out, two.err.replace("two.state", "one.state")) == (one.code, one.out, one.err)
    assert (sh.folder / "two.state").read_bytes() == (sh.folder / "one.state").read_bytes()


@pytest.mark.parametrize("bad", [False, True], ids=["to the end", "to a bad row"])
def test_a_table_that_is_read_ahead_is_the_table(sh: Shell, bad: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = Random(4)
    lines = [f"{dice.choice('abcdef')},{time / 2}\n" for time in range(400)]
    if bad:
        lines[300] = "a,soon\n"
    rules, facts = sh.write("r.dmtl", RULES), sh.write("B.csv", "".join(["x,time\n", *lines]))
    monkeypatch.setattr(data_files, "CHUNK", 256)
    command = ("stream", rules, "--query", "A", "--input", facts)
    one = sh(*command, "--threads", "1")
    monkeypatch.setattr(stream_reader, "LONG_FILE", 0)
    two = sh(*command, "--threads", "2")
    assert one.code == (2 if bad else 0)
    assert one.out
    assert two == one


def test_the_number_of_threads_is_chosen(sh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELOG_THREADS", "5")
    assert count_threads() == 5
    rules, facts = sh.write("r.dmtl", RULES), sh.write("b.facts", "B(a)@1\n")
    assert sh("materialise", rules, facts, "--threads", "3").code == 0
    assert count_threads() == 5
    assert sh("materialise", rules, facts, "--threads", "0").code == 2
    monkeypatch.setenv("TIDELOG_THREADS", "")
    monkeypatch.setenv("PYTHON_WORKER_FACTORY_PORT", "1")
    assert count_threads() == 1
