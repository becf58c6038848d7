"""`make paper` on a small part of its facts: the files that it writes agree with counts made here, fact by fact."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from locations import ROOT
from tidelog.generate import lubm

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("kernels")]

HORIZON = 300
SIZES = {"D5": 20_000, "D10": 40_000, "D15": 60_000, "D20": 80_000}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run it without the real traffic streams, so that it is the same everywhere."""
    folder = tmp_path_factory.mktemp("paper")
    command = [sys.executable, str(ROOT / "benchmarks" / "paper.py"), "--small", "--folder", str(folder)]
    env = {**os.environ, "TIDELOG_DATA": str(folder / "missing"), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "traffic-S1.txt is missing (set TIDELOG_DATA): generated traffic takes its place" in done.stderr
    assert sorted(done.stdout.split()) == sorted(str(path) for path in folder.iterdir())
    return folder


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def generate_points(count: int) -> dict[str, set[tuple[str, int]]]:
    """The facts of each predicate as first argument and time; universities hold where their interval begins."""
    facts: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for line in lubm.generate_facts(count):
        atom, _, times = line.partition("@")
        name, _, args = atom.rstrip(")").partition("(")
        facts[name].add((args, int(times.strip("[]").partition(",")[0])))
    return facts


def test_every_table_and_figure_is_an_image_and_a_csv(results: Path) -> None:
    for name in ("table-2", *(f"figure-{number}" for number in range(1, 7))):
        assert (results / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert len(read(results / f"{name}.csv")) > 10


def test_arrivals_are_those_of_the_data(results: Path) -> None:
    drawn: dict[str, Counter[int]] = defaultdict(Counter)
    for row in read(results / "figure-1.csv"):
        drawn[row["stream"].partition(":")[0]][int(row["time in the stream"])] += int(row["facts per time point"])
    assert {name: times.total() for name, times in drawn.items()} == SIZES
    first = Counter(time for facts in generate_points(SIZES["D5"]).values() for _, time in facts)
    assert drawn["D5"] == first


def test_facts_in_batch_are_counted_as_by_hand(results: Path) -> None:
    found = {
        (row["query"], row["dataset"]): int(row["most facts held"])
        for row in read(results / "table-2.csv")
        if row["system"] == "tidelog in batch"
    }
    for name, count in SIZES.items():
        facts = generate_points(count)
        assert found["non-recursive", name] == count_candidates(facts)
        assert found["recursive", name] == count_scientists(facts)


def count_candidates(facts: dict[str, set[tuple[str, int]]]) -> int:
    """Count the facts of the rules without recursion, given and derived."""
    assistants = {(who, time + 1) for who, time in facts["Lecturer"]}
    associates = {(who, time + 1) for who, time in assistants}
    for pair, time in facts["doctoralDegreeFrom"]:
        who, university = pair.split(",")
        if (university, time - 1) in facts["University"]:
            associates.add((who, time))
    given = (facts["Lecturer"], facts["University"], facts["doctoralDegreeFrom"])
    return sum(map(len, given)) + count_in_range(assistants) + count_in_range(associates)


def count_scientists(facts: dict[str, set[tuple[str, int]]]) -> int:
    """Count the facts of the recursive rules, given and derived, up to the horizon."""
    candidates = {(pair.split(",")[0], time + 1) for pair, time in facts["doctoralDegreeFrom"]}
    found = {("Scientist", who, time + 1) for who, time in candidates}
    found |= {("FullProfessor", who, time) for who, time in facts["FullProfessor"]}
    after = {"Scientist": "FullProfessor", "FullProfessor": "Scientist"}
    queue = list(found)
    while queue:
        kind, who, time = queue.pop()
        derived = (after[kind], who, time + 1)
        if time < HORIZON and derived not in found:
            found.add(derived)
            queue.append(derived)
    given = len(facts["doctoralDegreeFrom"])
    return given + count_in_range(candidates) + count_in_range({(f"{kind}({who})", t) for kind, who, t in found})


def count_in_range(facts: set[tuple[str, int]]) -> int:
    return sum(time <= HORIZON for _, time in facts)


@pytest.mark.parametrize(("figure", "query"), [(2, "non-recursive"), (3, "recursive")])
def test_table_2_has_the_maxima_of_the_streams_beside_published_ones(results: Path, figure: int, query: str) -> None:
    table = {
        (row["dataset"], row["source"].partition(",")[0]): int(row["most facts held"])
        for row in read(results / "table-2.csv")
        if row["query"] == query and row["system"] in ("MeTeoR-Str, published", "tidelog as a stream")
    }
    held: dict[tuple[str, str], int] = {}
    for row in read(results / f"figure-{figure}.csv"):
        published = row["time in the stream"] == "maximum"
        assert row["source"] == ("MeTeoR-Str, published, other hardware" if published else "measured here")
        key = row["stream"].partition(":")[0], "published" if published else "measured here"
        held[key] = max(held.get(key, 0), int(row["facts held"]))
    assert held == table


def test_generated_traffic_says_what_it_replaces(results: Path) -> None:
    rows = {(row["what"], row["stream"]): row for row in read(results / "traffic.csv")}
    for name, published in (("S1", "23828"), ("S2", "80124")):
        row = rows["facts in 200 seconds", f"generated in place of {name}"]
        assert row["published, other hardware"] == published
        arrived = [
            int(one["facts per second"])
            for one in read(results / "figure-4.csv")
            if f"place of {name}" in one["stream"]
        ]
        assert row["measured here"] == str(sum(arrived))
