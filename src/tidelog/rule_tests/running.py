"""Running tests of rules, in batch and as a stream, with the reason for everything that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import tidelog as tl
from tidelog.language.facts import format_fact
from tidelog.language.syntax import Fact
from tidelog.proofs.explainer import Explainer
from tidelog.proofs.explanation import explained
from tidelog.rule_tests.reading import RuleTest
from tidelog.testing import clipped, coalesced, last_time, same_answers, streamed
from tidelog.timeline.interval import INF

#: How many levels of a proof are shown for an answer that should not be there.
_LEVELS = 4


@dataclass(frozen=True)
class Wrong:
    """A fact that should hold and does not (`missing`), or should not and does; `how` is `batch` or `stream`."""

    fact: Fact
    missing: bool
    how: str
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a test went. `streamed` says whether it ran as a stream; if it could not, `note` says why."""

    test: RuleTest
    wrong: tuple[Wrong, ...] = ()
    streamed: bool = True
    note: str = ""

    @property
    def passed(self) -> bool:
        return not self.wrong

    def as_json(self) -> dict[str, object]:
        """One object for machines."""
        found: dict[str, object] = {
            "file": self.test.source,
            "line": self.test.line,
            "test": self.test.name,
            "passed": self.passed,
            "streamed": self.streamed,
        }
        wrong = [
            {
                "fact": format_fact(one.fact, self.test.dates),
                "problem": "missing" if one.missing else "unexpected",
                "in": one.how,
                "reason": one.reason,
            }
            for one in self.wrong
        ]
        return found | ({"note": self.note} if self.note else {}) | {"wrong": wrong}


def run(test: RuleTest) -> Outcome:
    """Run one test."""
    data = tl.Dataset.from_facts(test.given)
    if test.files:
        data = data | tl.Dataset.load(*test.files)
    if test.program.temporal is not None:
        data = data.timed(test.program.temporal.temporal)
    end = _end(test, data)
    found = tl.materialise(test.program, data, query=test.queries, between=(-INF, end), timeline=test.timeline)
    wrong = [Wrong(fact, missing, "batch") for fact, missing in _differences(test, list(found), end)]
    known = {(one.fact, one.missing) for one in wrong}
    note = ""
    if test.stream:
        answers: list[Fact] = []
        try:
            for query in test.queries:
                answers += streamed(test.program, data, query, end, test.timeline, test.delay, None)
        except tl.Inconsistent:
            raise
        except tl.TidelogError as problem:
            note = problem.diagnostics[0].message
        else:
            for fact, missing in _differences(test, answers, end):
                if (fact, missing) not in known:
                    wrong.append(Wrong(fact, missing, "stream"))
    return Outcome(test, tuple(_reasoned(test, data, wrong)), test.stream and not note, note)


def _end(test: RuleTest, data: tl.Dataset) -> Fraction:
    if test.until is not None:
        return test.until
    return last_time([*data, *test.program.facts, *test.expected, *test.unwanted]) + 1


def _differences(test: RuleTest, found: list[Fact], end: Fraction) -> Iterator[tuple[Fact, bool]]:
    """The facts that are missing (True), and those that are there but should not be."""
    line = test.timeline or test.program.timeline
    expected = list(clipped(test.expected, end))
    for fact in same_answers(expected, found, timeline=line).missing:
        yield fact, True
    free = same_answers(expected, (f for f in found if f.predicate in test.closed), timeline=line).unexpected
    unwanted = list(_overlap(clipped(test.unwanted, end), found, line))
    for fact in coalesced([*free, *unwanted], timeline=line):
        yield fact, False


def _overlap(unwanted: Iterable[Fact], found: list[Fact], line: str) -> Iterator[Fact]:
    """The parts of unwanted facts that are there: what is left of them without the rest."""
    for fact in unwanted:
        rest = same_answers([fact], found, timeline=line).missing
        yield from same_answers([fact], rest, timeline=line).missing


def _reasoned(test: RuleTest, data: tl.Dataset, wrong: list[Wrong]) -> Iterator[Wrong]:
    """Everything that is wrong with its reason, for the first of each atom."""
    if not wrong:
        return
    explainer = Explainer(test.program, data, query=test.queries, timeline=test.timeline)
    told: set[tuple[str, tuple[object, ...], bool]] = set()
    for one in wrong:
        atom = one.fact.predicate, one.fact.args, one.missing
        reason = "" if atom in told else str(explained(explainer, one.fact, _LEVELS))
        told.add(atom)
        yield Wrong(one.fact, one.missing, one.how, reason)
