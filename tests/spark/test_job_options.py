"""The options of a job, as keywords and as one object, without a Spark session."""

from __future__ import annotations

import ast
from dataclasses import fields
from fractions import Fraction

import pytest

from locations import SOURCES
from tidelog.errors import TidelogError
from tidelog.spark.job.options import JobKeywords, JobOptions, require_applicable, to_options

#: The packages of `tidelog.spark`; each imports only from itself and those before it.
ORDER = ("plan", "worker", "awaiting", "job", "pipeline")


def test_keywords_are_the_fields_of_the_options() -> None:
    assert set(JobKeywords.__annotations__) == {field.name for field in fields(JobOptions)} - {"awaiting"}


def test_keywords_replace_fields_of_the_options() -> None:
    assert to_options(JobOptions(buckets=2, delay=1), {"delay": "5s"}) == JobOptions(buckets=2, delay="5s")
    with pytest.raises(TypeError, match="did you mean 'buckets'"):
        to_options(None, {"bucket": 2})  # type: ignore[typeddict-unknown-key]


def test_options_of_another_kind_of_job_are_refused() -> None:
    require_applicable("streaming", JobOptions(delay=3, heartbeat=Fraction(1), clocked=frozenset()))
    with pytest.raises(TidelogError, match="`delay`, `heartbeat` are not for a batch job"):
        require_applicable("batch", JobOptions(delay=3, heartbeat=Fraction(1)))
    with pytest.raises(TidelogError, match="`between` is not for a streaming job"):
        require_applicable("streaming", JobOptions(between=(0, 1)))


@pytest.mark.parametrize("package", ORDER)
def test_imports_between_the_packages_of_spark_go_one_way(package: str) -> None:
    later = ORDER[ORDER.index(package) + 1 :]
    for file in sorted((SOURCES / "spark" / package).glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tidelog.spark."):
                assert (node.module or "").split(".")[2] not in later, f"{file.name} imports {node.module}"
