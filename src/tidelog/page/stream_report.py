"""The report of a stream: its facts, its answers, and the figures of its steps.

Facts and answers are kept while the stream runs, up to a limit; of a longer stream the page shows the latest.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import replace
from math import floor, lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.data.dataset import Dataset
from tidelog.data.deletions import has_deletions, remove_deleted
from tidelog.data.relation import Columns, Relation, refine_pairs
from tidelog.errors import TidelogError
from tidelog.language.syntax import Fact
from tidelog.language.wording import plural
from tidelog.page.predicate_roles import Question
from tidelog.page.report_data import Heading, ReportTimeline, build_proofs, build_report, materialise_given
from tidelog.page.step_charts import StepCharts
from tidelog.page.timeline_builder import FactColumns, build_timeline
from tidelog.streaming.answer_changes import AnswerChange
from tidelog.timeline.interval import INF, Time, TimelineName

if TYPE_CHECKING:
    from tidelog.data.schema import Schema
    from tidelog.data.symbol_table import Symbols
    from tidelog.language.program import Program
    from tidelog.streaming.answers import StreamStep
    from tidelog.streaming.reasoner import Reasoner

#: The most facts, and the most answers, that are kept.
LIMIT = 100_000
#: No limit: everything that was kept is shown.
_ALL = 1 << 62


class StreamReport:
    """Observes a stream while it runs, and builds its page."""

    def __init__(
        self, program: Program, query: str, timeline: TimelineName | None, *, points: bool, whole: bool
    ) -> None:
        """`points`: answers are time points rather than intervals. `whole`: the stream is seen from its beginning, so
        that answers can be proved."""
        self._program, self._query, self._timeline = program, query, timeline
        self._points, self._whole = points, whole
        self._batches: deque[Dataset] = deque()
        self._kept_facts = self._dropped_facts = self._answer_count = 0
        self._late: Counter[Fact] = Counter()
        self._answers: deque[Fact] = deque(maxlen=LIMIT)
        self._charts = StepCharts()
        self._end: Time = -INF

    def facts(self, data: Dataset) -> None:
        """Keep facts, background facts included; drop the oldest beyond the limit."""
        self._batches.append(data)
        self._kept_facts += len(data)
        while self._kept_facts > LIMIT and len(self._batches) > 1:
            self._kept_facts -= len(self._batches[0])
            self._dropped_facts += len(self._batches.popleft())

    def step(self, step: StreamStep) -> None:
        self._charts.add(step)
        self._end = max(self._end, step.time)
        for answer in step.answers:
            self._note_answer(answer)
        if len(step.late):
            self._late.update(step.late)

    def _note_answer(self, answer: Fact) -> None:
        """Keep an answer; one that is taken back is removed again."""
        if isinstance(answer, AnswerChange) and answer.change == "-":
            self._answer_count -= 1
            if answer.fact in self._answers:
                self._answers.remove(answer.fact)
            return
        self._answer_count += 1
        self._answers.append(answer.fact if isinstance(answer, AnswerChange) else answer)

    def pause(self, reasoner: Reasoner) -> None:
        """Do nothing: the report needs no state of the reasoner."""

    def build_report(self, heading: Heading, proofs: int, schema: Schema | None = None) -> dict[str, Any]:
        """Build the JSON object that the page reads, with at most `proofs` proof steps."""
        query = (self._query,)
        given = self._collect_given()
        notes = []
        if self._dropped_facts:
            notes.append(f"Not shown: {plural(self._dropped_facts, 'earlier fact')}.")
        if self._answer_count > len(self._answers):
            notes.append(f"Not shown: {plural(self._answer_count - len(self._answers), 'earlier answer')}.")
        found = replace(self._build_timeline(given), notes=tuple(notes))
        proof_data = None
        if self._whole and not self._dropped_facts:
            try:
                begun = _select_begun(given, self._end)
                until = None if self._points else self._end
                proof_data, found = build_proofs(
                    self._program, begun, found, proofs, self._timeline, query=query, until=until
                )
            except TidelogError as problem:  # facts that contradict each other prove nothing
                message = f"There are no proofs: {problem.diagnostics[0].message}."
                found = replace(found, notes=(*found.notes, message))
        steps, question = self._charts.to_json(given.dates), Question(query, schema)
        return build_report(self._program, found, heading, proofs=proof_data, steps=steps, question=question)

    def _collect_given(self) -> Dataset:
        """Combine the kept facts, without those that came too late or were deleted.

        If a fact came twice and once too late, the other one counts.
        """
        data = Dataset()
        for batch in self._batches:
            data = data | batch
        if not self._late and not has_deletions(data.relations):
            return data
        in_time = Dataset.from_facts(list(remove_deleted(Counter(data) - self._late)))
        return Dataset(in_time.symbols, Columns(in_time.denominator, data.dates, in_time.relations))

    def _build_timeline(self, given: Dataset) -> ReportTimeline:
        """Build the timeline of the answers and the given facts, up to where time stopped."""
        present = {name for name, _ in given.relations} | {fact.predicate for fact in self._program.facts}
        given_model = materialise_given(self._program, given, sorted(present), (-INF, self._end), self._timeline)
        symbols = given_model.symbols
        answers = self._answer_relations(symbols)
        others = tuple((r, step) for r, step in given_model.relations() if r.predicate != self._query)
        given_answers = [(r, step) for r, step in given_model.relations() if r.predicate == self._query and len(r)]
        parts = tuple(_intersect(facts, answer) for facts in given_answers for answer in answers)
        shown, shown_given = FactColumns((*answers, *others), symbols), FactColumns((*parts, *others), symbols)
        timeline, _ = build_timeline(shown, shown_given, (), given.dates, _ALL)
        return ReportTimeline(timeline, ())

    def _answer_relations(self, symbols: Symbols) -> tuple[tuple[Relation, int], ...]:
        """Return the answers as relations over the ids of `symbols`, each with its denominator.

        Points stay points, but an interval that was answered in parts becomes one.
        """
        data = Dataset.from_facts(self._answers)
        if not len(data):
            return ()
        found = [(relation, data.denominator) for relation in data.relations.values()]
        if not self._points:
            model = materialise_given(replace(self._program, facts=()), data, [self._query], None, self._timeline)
            data, found = Dataset(model.symbols), list(model.relations())
        ids = symbols.merge(data.symbols)
        return tuple((replace(relation, args=ids[relation.args], order=None), step) for relation, step in found)


def _select_begun(data: Dataset, end: Time) -> Dataset:
    """Select the facts that begin no later than `end`: the stream took no others."""
    if isinstance(end, float):
        return data
    last = floor(2 * end * data.denominator)
    relations = {}
    for key, relation in data.relations.items():
        relations[key] = replace(relation.select(relation.lo <= last), order=None)
    return Dataset(data.symbols, Columns(data.denominator, data.dates, relations))


def _intersect(given: tuple[Relation, int], answers: tuple[Relation, int]) -> tuple[Relation, int]:
    """Intersect the given facts with the answers: the parts of answers that were given."""
    (given_relation, given_step), (answer_relation, answer_step) = given, answers
    step = lcm(given_step, answer_step)
    given_spans: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for args, lo, hi in _rows(given_relation, step // given_step):
        given_spans.setdefault(args, []).append((lo, hi))
    common = [
        (args, max(lo, first), min(hi, last))
        for args, lo, hi in _rows(answer_relation, step // answer_step)
        for first, last in given_spans.get(args, ())
        if first <= hi and lo <= last
    ]
    arity = given_relation.arity
    all_args = np.array([args for args, _, _ in common], np.int32).reshape(len(common), arity).T
    los, his = (np.array([row[end] for row in common], np.int64) for end in (1, 2))
    return Relation(given_relation.predicate, arity, all_args, los, his), step


def _rows(relation: Relation, factor: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Yield arguments and ends of each row, on a time step that is `factor` times finer."""
    lo, hi = refine_pairs(relation.lo, relation.hi, factor)
    for args, *ends in zip(relation.args.T.tolist(), lo.tolist(), hi.tolist(), strict=True):
        yield tuple(args), ends[0], ends[1]
