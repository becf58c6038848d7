"""Run rule tests, in batch and as a stream, and explain every mismatch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import tidelog as tl
from tidelog.compiler.prepare_facts import read_time_arguments
from tidelog.data.schema import find_schema_file
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.proofs.explainer import Explainer
from tidelog.proofs.explanation import explain_fact
from tidelog.rule_tests.case_reader import RuleTest
from tidelog.testing import clip_facts, coalesce_facts, last_time, same_answers, stream_answers
from tidelog.timeline.interval import INF, TimelineName

#: How many levels of a proof are shown for an unexpected answer.
_LEVELS = 4


@dataclass(frozen=True)
class Mismatch:
    """A fact that should hold and does not (`missing`), or should not and does, in `batch` or `stream` mode."""

    fact: Fact
    missing: bool
    mode: str
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a test. `streamed` is false if it did not run as a stream; `note` then says why it could not."""

    test: RuleTest
    mismatches: tuple[Mismatch, ...] = ()
    streamed: bool = True
    note: str = ""

    @property
    def passed(self) -> bool:
        return not self.mismatches

    def as_json(self) -> dict[str, object]:
        """Build the JSON object that `tidelog test --json` prints."""
        result: dict[str, object] = {
            "file": self.test.source,
            "line": self.test.line,
            "test": self.test.name,
            "passed": self.passed,
            "streamed": self.streamed,
        }
        wrong = [
            {
                "fact": format_fact(mismatch.fact, self.test.dates),
                "problem": "missing" if mismatch.missing else "unexpected",
                "in": mismatch.mode,
                "reason": mismatch.reason,
            }
            for mismatch in self.mismatches
        ]
        return result | ({"note": self.note} if self.note else {}) | {"wrong": wrong}


def run_test(test: RuleTest) -> Outcome:
    """Run one test in batch and, unless it says `stream: no`, as a stream."""
    data = load_given(test)
    end = _find_end(test, data)
    model = tl.materialise(test.program, data, query=test.queries, between=(-INF, end), timeline=test.timeline)
    mismatches = [Mismatch(fact, missing, "batch") for fact, missing in _find_differences(test, list(model), end)]
    known = {(mismatch.fact, mismatch.missing) for mismatch in mismatches}
    note = ""
    if test.stream:
        answers: list[Fact] = []
        try:
            for query in test.queries:
                answers += stream_answers(test.program, data, query, end, test.timeline, test.delay)
        except tl.errors.Inconsistent:
            raise
        except tl.TidelogError as problem:
            note = problem.diagnostics[0].message
        else:
            for fact, missing in _find_differences(test, answers, end):
                if (fact, missing) not in known:
                    mismatches.append(Mismatch(fact, missing, "stream"))
    return Outcome(test, tuple(_add_reasons(test, data, mismatches)), test.stream and not note, note)


def load_given(test: RuleTest) -> tl.Dataset:
    """Load the facts that a test gives: those in its lines, and those of the files that it names."""
    data = tl.Dataset.from_facts(test.given)
    if test.files:
        data = data | tl.Dataset.load(*test.files, schema=find_schema_file(test.program.source))
    return read_time_arguments(test.program, data)


def _find_end(test: RuleTest, data: tl.Dataset) -> Fraction:
    if test.until is not None:
        return test.until
    return last_time([*data, *test.program.facts, *test.expected, *test.unwanted]) + 1


def _find_differences(test: RuleTest, found: list[Fact], end: Fraction) -> Iterator[tuple[Fact, bool]]:
    """Find the facts that are missing (with True), and those that hold but should not (with False)."""
    line = test.timeline or test.program.timeline
    expected = list(clip_facts(test.expected, end))
    for fact in same_answers(expected, found, timeline=line).missing:
        yield fact, True
    free = same_answers(expected, (f for f in found if f.predicate in test.closed), timeline=line).unexpected
    unwanted = list(_find_overlaps(clip_facts(test.unwanted, end), found, line))
    for fact in coalesce_facts([*free, *unwanted], timeline=line):
        yield fact, False


def _find_overlaps(unwanted: Iterable[Fact], found: list[Fact], line: TimelineName) -> Iterator[Fact]:
    """Find the parts of unwanted facts that hold: the whole without the parts that do not hold."""
    for fact in unwanted:
        rest = same_answers([fact], found, timeline=line).missing
        yield from same_answers([fact], rest, timeline=line).missing


def _add_reasons(test: RuleTest, data: tl.Dataset, mismatches: list[Mismatch]) -> Iterator[Mismatch]:
    """Add a reason to the first mismatch of each atom."""
    if not mismatches:
        return
    explainer = Explainer(test.program, data, query=test.queries, timeline=test.timeline)
    explained: set[tuple[str, tuple[object, ...], bool]] = set()
    for mismatch in mismatches:
        fact = mismatch.fact
        atom = fact.predicate, fact.args, mismatch.missing
        reason = "" if atom in explained else str(explain_fact(explainer, fact, _LEVELS))
        explained.add(atom)
        yield replace(mismatch, reason=reason)
