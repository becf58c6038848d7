"""The outcomes of rule tests as text, as `tidelog test` prints them."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.language.fact_text import format_fact
from tidelog.language.wording import plural
from tidelog.rule_tests.case_runner import Outcome


def format_outcome(outcome: Outcome) -> Iterator[str]:
    """Yield the lines of one outcome: whether the test passed, and each wrong fact with its reason."""
    test = outcome.test
    how = "" if outcome.streamed else f" (in batch only{': ' + outcome.note if outcome.note else ''})"
    yield f"{'ok  ' if outcome.passed else 'FAIL'} {test.source}:{test.line} {test.name}{how}"
    for mismatch in outcome.mismatches:
        sign = "- expected, but missing" if mismatch.missing else "+ not expected, but there"
        where = " in the stream" if mismatch.mode == "stream" else ""
        yield f"     {sign}{where}: {format_fact(mismatch.fact, test.dates)}"
        for line in mismatch.reason.splitlines():
            yield f"       {line}"


def format_summary(count: int, failed: int) -> str:
    """Say how many of the tests failed, or that all passed."""
    return f"{failed} of {plural(count, 'test')} failed" if failed else f"{plural(count, 'test')} passed"
