"""A report of a stream: what came, what was answered, and the figures of the steps.

What is shown is kept while the stream runs, up to a number of intervals; of longer streams the page has the last ones.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace
from math import floor, lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.data.columns import Columns, Relation, refined
from tidelog.data.dataset import Dataset
from tidelog.errors import TidelogError
from tidelog.language.syntax import Fact
from tidelog.page.report import Heading, Shown, given_facts, proved, report
from tidelog.page.steps import Figures
from tidelog.page.timeline import Holds, timeline
from tidelog.timeline.interval import INF, Time

if TYPE_CHECKING:
    from tidelog.data.symbols import Symbols
    from tidelog.language.program import Program
    from tidelog.streaming.answers import Step
    from tidelog.streaming.reasoner import Reasoner

#: So many facts that came, and so many answers, are kept.
LIMIT = 100_000
#: What was kept is shown.
_ALL = 1 << 62


class StreamReport:
    """Looks on while a stream is reasoned over, and makes a page of it."""

    def __init__(self, program: Program, query: str, timeline: str | None, *, points: bool, whole: bool) -> None:
        """`points` where answers are points in time rather than intervals; `whole` where the stream is seen from its
        beginning, so that answers can be proved."""
        self._program, self._query, self._timeline = program, query, timeline
        self._points, self._whole = points, whole
        self._pieces: deque[Dataset] = deque()
        self._kept = self._forgotten = self._answered = 0
        self._late: Counter[Fact] = Counter()
        self._answers: deque[Fact] = deque(maxlen=LIMIT)
        self._figures = Figures()
        self._end: Time = -INF

    def facts(self, data: Dataset) -> None:
        """Facts have come; background facts, too."""
        self._pieces.append(data)
        self._kept += len(data)
        while self._kept > LIMIT and len(self._pieces) > 1:
            self._kept -= len(self._pieces[0])
            self._forgotten += len(self._pieces.popleft())

    def step(self, step: Step) -> None:
        self._figures.add(step)
        self._end = max(self._end, step.t)
        self._answered += len(step.answers)
        self._answers.extend(step.answers)
        if len(step.late):
            self._late.update(step.late)

    def pause(self, reasoner: Reasoner) -> None:
        """Nothing is asked of the reasoner."""

    def data(self, heading: Heading, proofs: int) -> dict[str, Any]:
        """What the page reads."""
        given = self._given()
        notes = []
        if self._forgotten:
            notes.append(f"{self._forgotten:,} facts that came earlier are not shown.")
        if self._answered > len(self._answers):
            notes.append(f"{self._answered - len(self._answers):,} earlier answers are not shown.")
        found = replace(self._shown(given), notes=tuple(notes))
        steps = None
        if self._whole and not self._forgotten:
            try:
                steps, found = proved(self._program, _begun(given, self._end), found, proofs, self._timeline)
            except TidelogError as problem:  # facts that contradict each other prove nothing
                message = f"There are no proofs: {problem.diagnostics[0].message}."
                found = replace(found, notes=(*found.notes, message))
        return report(self._program, found, heading, proofs=steps, steps=self._figures.to_json(given.dates))

    def _given(self) -> Dataset:
        """What came in time; of a fact that came twice, once too late, the other one counts."""
        data = Dataset()
        for piece in self._pieces:
            data = data | piece
        if not self._late:
            return data
        came = Counter(data) - self._late
        kept = Dataset.from_facts(list(came))
        return Dataset(kept.symbols, Columns(kept.denominator, data.dates, kept.relations))

    def _shown(self, given: Dataset) -> Shown:
        """Answers as they were given, and what came, up to where time stopped."""
        present = {name for name, _ in given.relations} | {fact.predicate for fact in self._program.facts}
        came = given_facts(self._program, given, sorted(present), (-INF, self._end), self._timeline)
        symbols = came.symbols
        answers = self._told(symbols)
        others = tuple((r, step) for r, step in came.relations() if r.predicate != self._query)
        mine = [(r, step) for r, step in came.relations() if r.predicate == self._query and len(r)]
        parts = tuple(_common(ours, answer) for ours in mine for answer in answers)
        made, _ = timeline(
            Holds((*answers, *others), symbols), Holds((*parts, *others), symbols), (), given.dates, _ALL
        )
        return Shown(made, ())

    def _told(self, symbols: Symbols) -> tuple[tuple[Relation, int], ...]:
        """The answers, with the numbers that their constants have in a dictionary. Points stay points, but an interval
        that was told in parts is one."""
        data = Dataset.from_facts(self._answers)
        if not len(data):
            return ()
        found = [(relation, data.denominator) for relation in data.relations.values()]
        if not self._points:
            model = given_facts(replace(self._program, facts=()), data, [self._query], None, self._timeline)
            data, found = Dataset(model.symbols), list(model.relations())
        ids = symbols.merge(data.symbols)
        return tuple((replace(relation, args=ids[relation.args], order=None), step) for relation, step in found)


def _begun(data: Dataset, end: Time) -> Dataset:
    """What begins no later than the end: the stream did not take more."""
    if isinstance(end, float):
        return data
    last = floor(2 * end * data.denominator)
    relations = {}
    for key, relation in data.relations.items():
        keep = relation.lo <= last
        args, lo, hi = relation.args[:, keep], relation.lo[keep], relation.hi[keep]
        relations[key] = replace(relation, args=args, lo=lo, hi=hi, order=None)
    return Dataset(data.symbols, Columns(data.denominator, data.dates, relations))


def _common(given: tuple[Relation, int], answers: tuple[Relation, int]) -> tuple[Relation, int]:
    """The parts of answers that were given, as far as they were answered."""
    step = lcm(given[1], answers[1])
    ours, theirs = (
        (relation, *(end.tolist() for end in refined(relation.lo, relation.hi, step // own)))
        for relation, own in (given, answers)
    )
    spans: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for args, lo, hi in zip(ours[0].args.T.tolist(), *ours[1:], strict=True):
        spans.setdefault(tuple(args), []).append((lo, hi))
    found = [
        (args, max(lo, first), min(hi, last))
        for args, lo, hi in zip(theirs[0].args.T.tolist(), *theirs[1:], strict=True)
        for first, last in spans.get(tuple(args), ())
        if first <= hi and lo <= last
    ]
    args = np.array([args for args, _, _ in found], np.int32).reshape(len(found), given[0].arity).T
    lo, hi = (np.array([span[end] for span in found], np.int64) for end in (1, 2))
    return Relation(given[0].predicate, given[0].arity, args, lo, hi), step
