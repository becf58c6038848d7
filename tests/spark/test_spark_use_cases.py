"""The use cases of `test_use_cases.py` as pipelines on Spark: the same answers, the same bad rows at the same lines."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from shell import start_command
from use_cases import USE_CASES, UseCase, iso, read_time

pytestmark = [pytest.mark.usefixtures("kernels"), pytest.mark.slow, pytest.mark.xdist_group("spark")]

PATIENCE = 900
ATTEMPTS = 4


def read_rows(folder: Path) -> list[dict[str, str]]:
    files = folder.glob("batch=*/*.json")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def run(case: UseCase) -> str:
    """Run the pipeline to its end; a busy machine may need more than the ten seconds that Spark gives to workers."""
    for _ in range(ATTEMPTS):
        with start_command(case.folder, "run", "pipeline.toml", "--until", iso(case.until)) as process:
            out, err = process.communicate(timeout=PATIENCE)
        if b"ten seconds" not in err:
            break
    assert process.returncode == 0, err.decode()
    assert "Traceback" not in err.decode()
    return (out + err).decode()


@pytest.mark.parametrize("name", list(USE_CASES))
def test_a_pipeline_gives_the_answers_computed_by_hand(name: str, tmp_path: Path) -> None:
    case = USE_CASES[name](tmp_path, random.Random(f"{name}1"))
    printed = run(case)
    columns = {"Overdue": ("order", "step"), "Silent": ("device", "site"), "Suspicious": ("card", "reason")}[case.query]
    answers = read_rows(tmp_path / "run" / "answers")
    found = [(tuple(row[c] for c in columns), read_time(row["start"]), read_time(row["end"])) for row in answers]
    assert set(found) == case.answers
    assert len(found) == len(case.answers)
    aside = [json.loads(row["row"]) for row in read_rows(tmp_path / "run" / "aside")]
    assert sorted((Path(row["file"]).name, row["line"]) for row in aside) == sorted(case.bad)
    assert "set aside" in printed
    assert not read_rows(tmp_path / "run" / "late")
