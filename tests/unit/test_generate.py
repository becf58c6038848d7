"""Generator data: the same for the same seed, as many facts as asked for, and good enough to reason over."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

import tidelog as tl
from locations import EXAMPLES
from shell import Shell
from tidelog.batch import materialise
from tidelog.data.dataset import Dataset
from tidelog.generate import lubm, signals, traffic, turbines
from tidelog.generate.catalogue import CATALOGUE
from tidelog.generate.rule_files import read_rules
from tidelog.generate.time_order import sort_by_time
from tidelog.language.fact_text import parse_fact
from tidelog.language.program import Program


def test_lubm_is_deterministic_and_exact_in_number(tmp_path: Path) -> None:
    first = list(lubm.generate_facts(20_000, seed=3))
    assert first == list(lubm.generate_facts(20_000, seed=3))
    assert first != list(lubm.generate_facts(20_000, seed=4))
    assert len(first) == 20_000
    lubm.write_facts(tmp_path / "lubm.facts", 20_000, seed=3)
    assert (tmp_path / "lubm.facts").read_text().splitlines() == first


def test_lubm_is_in_the_order_of_time_so_that_a_stream_drops_nothing() -> None:
    data = tl.Dataset.parse("\n".join(lubm.generate_facts(3_000)), ordered=True)
    reasoner = tl.Reasoner(tl.Program.parse("A(X) :- Department(X)."), "A")
    for step in reasoner.feed(data):
        assert not len(step.late)


def test_facts_are_sorted_whatever_fits_into_memory() -> None:
    lines = [f"A({number})@{number * 7 % 10}" for number in range(50)]
    assert list(sort_by_time(lines, buffer=8)) == list(sort_by_time(lines))


def test_lubm_has_the_proportions_of_lubm() -> None:
    counts = Counter(line.partition("(")[0] for line in lubm.generate_facts(100_000))
    assert len(counts) == 30
    assert counts["takesCourse"] == max(counts.values())
    faculty = sum(counts[kind] for kind in ("FullProfessor", "AssociateProfessor", "AssistantProfessor", "Lecturer"))
    assert 400 < faculty < 700
    assert counts["doctoralDegreeFrom"] == faculty


def test_traffic_has_jams_and_short_stops_at_any_seed() -> None:
    program = Program.parse(read_rules("traffic.dmtl"))
    for seed in range(3):
        model = materialise(program, Dataset.from_facts(traffic.generate_facts(seed=seed)))
        found = {fact.predicate for fact in model}
        assert {"ShortStop", "Stuck", "Jam", "Warned"} <= found
        jams = [fact for fact in model if fact.predicate == "Jam"]
        assert {fact.args for fact in jams} == {("r0",)}, "only the blocked road is jammed"


def test_signals_travel() -> None:
    model = materialise(
        Program.parse(read_rules("signals.dmtl")), Dataset.from_facts(signals.generate_facts()), query="Flag"
    )
    assert len({fact.args[0] for fact in model}) > 1


@pytest.mark.parametrize("name", ["signals.dmtl", "turbines.tdl"])
def test_rules_are_those_of_the_examples(name: str) -> None:
    example = EXAMPLES / name.partition(".")[0] / name
    assert read_rules(CATALOGUE[name.partition(".")[0]].file) == example.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_set_is_exact_in_number_and_deterministic(name: str) -> None:
    chosen = CATALOGUE[name]
    for count in (1, 7, 3_000):
        first = list(chosen.facts(count, chosen.size, 3))
        assert len(first) == count
        assert first == list(chosen.facts(count, chosen.size, 3))
    assert first != list(chosen.facts(3_000, chosen.size, 4))
    program = Program.parse(read_rules(chosen.file), syntax=chosen.file.rpartition(".")[2])
    assert chosen.query in program.predicates


@pytest.mark.parametrize("name", ["traffic", "signals"])
def test_streams_come_in_the_order_of_time(name: str) -> None:
    chosen = CATALOGUE[name]
    begins = [parse_fact(line)[0].interval.lo for line in chosen.facts(5_000, chosen.size, 0)]
    assert begins == sorted(begins)


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_memory_does_not_grow_with_the_facts(name: str) -> None:
    chosen = CATALOGUE[name]
    peaks = []
    for count in (20_000, 80_000):
        tracemalloc.start()
        for _ in chosen.facts(count, chosen.size, 0):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 100_000


def test_no_reading_is_later_than_its_delay() -> None:
    late = [arrival - int(fact.rpartition(",")[2][:-1]) for arrival, fact in islice(turbines.generate_arrivals(), 500)]
    assert set(late) == set(range(turbines.DELAY + 1))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("form", ["text", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize("name", ["traffic", "turbines"])
def test_every_form_holds_the_same_facts(name: str, form: str, sh: Shell) -> None:
    ran = sh("generate", name, "--facts", "1500", "--format", form, "-o", "out/")
    assert ran.code == 0
    said = ran.out.splitlines()[1].split()
    assert said[:2] == ["tidelog", "materialise"]
    found = sh(*said[1:])
    plain = sh.write("plain.facts", sh("generate", name, "--facts", "1500").out)
    assert found.code == 0
    assert found == sh("materialise", said[2], plain, *said[-2:])
    assert found.out


def test_what_cannot_be_generated_is_refused(sh: Shell) -> None:
    for args, said in (
        (("lubm", "--size", "3"), "no --size"),
        (("traffic", "--format", "csv"), "name a folder"),
        (("traffic", "--arrivals"), "for turbines only"),
    ):
        ran = sh("generate", *args)
        assert ran.code == 2
        assert said in ran.err
