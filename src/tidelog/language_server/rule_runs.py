"""Run rule tests, explain facts and look for example facts, in the worker process.

The functions here are called in the worker. They get the texts that the editor has open, so that what runs is what the
user sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.fact_text import format_fact, parse_fact
from tidelog.language_server.project import Project
from tidelog.rule_tests.case_reader import RuleTest, parse_tests

#: How long a run may take, and a search for an example fact.
RUN_SECONDS = 60.0
EXAMPLE_SECONDS = 20.0
#: The largest table in which an example fact is looked for.
EXAMPLE_BYTES = 1_000_000


@dataclass(frozen=True)
class TestRun:
    """The outcomes of some tests, as `tidelog test` prints them and as JSON."""

    passed: int
    failed: int
    text: str
    outcomes: tuple[dict[str, Any], ...]


def run_tests(texts: dict[str, str], path: str, line: int | None) -> TestRun:
    """Run the tests of a file, or the one that begins in a line (counted from 1)."""
    from tidelog.rule_tests.case_runner import run_test
    from tidelog.rule_tests.outcome_text import format_outcome, format_summary

    tests = [test for test in _parse(texts, path) if line in (None, test.line)]
    if not tests:
        raise TidelogError(Diagnostic("TL901", "no test begins here", Place(path, line or 1, 1)))
    outcomes = [run_test(test) for test in tests]
    failed = sum(not outcome.passed for outcome in outcomes)
    lines = [text for outcome in outcomes for text in format_outcome(outcome)]
    text = "\n".join([*lines, format_summary(len(outcomes), failed)])
    return TestRun(len(outcomes) - failed, failed, text, tuple(outcome.as_json() for outcome in outcomes))


def explain_line(texts: dict[str, str], path: str, line: int) -> str:
    """Explain the expected fact in a line (counted from 1) of a test file, from the facts that its test gives."""
    from tidelog.proofs.explanation import explain
    from tidelog.rule_tests.case_runner import load_given

    tests = [test for test in _parse(texts, path) if test.line <= line]
    if not tests:
        raise TidelogError(Diagnostic("TL901", "no test begins before this line", Place(path, line, 1)))
    test = tests[-1]
    text = _read(texts, path).split("\n")[line - 1]
    fact = text.partition(":")[2] if text.lstrip().startswith("expect") and ":" in text.split("(")[0] else text
    temporal = test.program.temporal.temporal if test.program.temporal else frozenset()
    parsed, _ = parse_fact(fact.split("%")[0] if '"' not in fact else fact, path, line, temporal)
    return str(explain(test.program, load_given(test), parsed, timeline=test.timeline))


def find_example(path: str, schema: str | None, predicate: str) -> str | None:
    """Return the first fact of a predicate in a data file."""
    from tidelog.data.dataset import Dataset

    data = Dataset.load(path, schema=schema)
    found = next((fact for fact in data if fact.predicate == predicate), None)
    return None if found is None else format_fact(found, data.dates)


def _parse(texts: dict[str, str], path: str) -> list[RuleTest]:
    project = Project()
    for name, text in texts.items():
        project.open_text(name, text)
    return parse_tests(_read(texts, path), path, project.load_program)


def _read(texts: dict[str, str], path: str) -> str:
    return texts[path] if path in texts else Path(path).read_text(encoding="utf-8-sig")
