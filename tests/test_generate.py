"""Generated data: the same for the same seed, as many facts as asked for, and good enough to reason over."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tidelog.data.dataset import Dataset
from tidelog.generate import lubm, signals, traffic
from tidelog.language.program import Program
from tidelog.reasoning import materialise


def test_lubm_is_deterministic_and_exact_in_number(tmp_path: Path) -> None:
    first = list(lubm.facts(20_000, seed=3))
    assert first == list(lubm.facts(20_000, seed=3))
    assert first != list(lubm.facts(20_000, seed=4))
    assert len(first) == 20_000
    lubm.write(tmp_path / "lubm.facts", 20_000, seed=3)
    assert (tmp_path / "lubm.facts").read_text().splitlines() == first


def test_lubm_has_the_proportions_of_lubm() -> None:
    counts = Counter(line.partition("(")[0] for line in lubm.facts(100_000))
    assert len(counts) == 30
    assert counts["takesCourse"] == max(counts.values())
    faculty = sum(counts[kind] for kind in ("FullProfessor", "AssociateProfessor", "AssistantProfessor", "Lecturer"))
    assert 400 < faculty < 700
    assert counts["doctoralDegreeFrom"] == faculty


def test_traffic_has_jams_and_short_stops_at_any_seed() -> None:
    program = Program.parse(traffic.program())
    for seed in range(3):
        model = materialise(program, Dataset.from_facts(traffic.facts(seed=seed)))
        found = {fact.predicate for fact in model}
        assert {"ShortStop", "Stuck", "Jam", "Warned"} <= found
        jams = [fact for fact in model if fact.predicate == "Jam"]
        assert {fact.args for fact in jams} == {("r0",)}, "only the blocked road is jammed"


def test_signals_travel() -> None:
    rules = Path(__file__).parent.parent / "examples" / "signals" / "signals.dmtl"
    model = materialise(Program.load(rules), Dataset.from_facts(signals.facts()), query="Flag")
    assert len({fact.args[0] for fact in model}) > 1
