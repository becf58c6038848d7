"""The facts of a stream, kept for a while so that its answers can be explained.

A reasoner forgets facts that no rule can need any more, often at once. To get explanations, create it with `remember=`:
the facts that arrive are then kept for that length of time as well, and proofs are found in them as in batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from tidelog.data.dataset import Dataset
from tidelog.data.deletions import remove_deleted
from tidelog.errors import TidelogError
from tidelog.language.calendar_predicates import is_calendar
from tidelog.language.fact_text import FactStyle
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.syntax import Fact
from tidelog.language.time_text import format_iso
from tidelog.model import Answer
from tidelog.streaming.answer_changes import AnswerChange
from tidelog.timeline.interval import INF, Interval, Time, TimelineName, format_time

if TYPE_CHECKING:
    from tidelog.language.program import Program
    from tidelog.proofs.explanation import Explanation
    from tidelog.streaming.answers import StreamStep
    from tidelog.streaming.query_evaluation import Evaluation
    from tidelog.streaming.reasoner import Reasoner

_HELD = "facts held by the stream"


class FactLog:
    """Facts in portions, as they arrived; a portion is forgotten as a whole, `length` after the last time in it."""

    def __init__(self, length: Time) -> None:
        self.length = length
        self.portions: list[tuple[Time, Dataset]] = []
        #: Facts that arrived too late and do not count.
        self.late: set[Fact] = set()
        #: Everything that ended before this time may have been forgotten.
        self.since: Time = -INF
        #: With corrections: the changes of answers, and what was corrected in the same step.
        self.changes: list[tuple[AnswerChange, tuple[str, ...]]] = []

    def add_changes(self, changes: Iterable[Fact], causes: Iterable[str]) -> None:
        """Add the changes of a step, and the late facts and deletions in it."""
        told = tuple(causes)
        self.changes += [(change, told) for change in changes if isinstance(change, AnswerChange)]

    def describe_changes(self, fact: Fact, style: FactStyle) -> Iterator[str]:
        """Say when answers with the atom and a time of a fact were added and taken back, and what caused it."""
        for change, causes in self.changes:
            if (change.predicate, change.args) == (fact.predicate, fact.args) and _overlap(change, fact):
                when = format_iso(change.known) if style.dates else format_time(change.known)
                verb = "added" if change.change == "+" else "taken back"
                cause = f", after {' and '.join(causes)}" if causes else ""
                yield f"{style.fact(change.fact)} was {verb} at {when}{cause}"

    def add(self, clock: Time, data: Dataset, step: StreamStep | None = None) -> None:
        """Add the facts of a step that arrived when the clock was at a time."""
        if step is not None:
            self.exclude(step.late)
        if len(data):
            finite = (t for fact in data for t in (fact.interval.lo, fact.interval.hi) if t != -INF)
            self.portions.append((max(finite, default=INF), data))
        old = clock - self.length
        kept = [(last, portion) for last, portion in self.portions if last >= old]
        if len(kept) < len(self.portions):
            self.portions, self.since = kept, max(self.since, old)
            self.changes = [one for one in self.changes if one[0].known >= old]

    def exclude(self, late: Iterable[Fact]) -> None:
        self.late.update(late)


def explain_from_log(reasoner: Reasoner, fact: str | Fact, depth: int | None) -> Explanation:
    """Explain why a fact of a stream holds or not, from the log or else from the facts still held."""
    from tidelog.proofs.explanation import Explanation, explain

    fact = reasoner.program.to_fact(fact)
    memory, timeline = reasoner.fact_log, reasoner.evaluation.grid.timeline
    if memory is None:
        facts = list(find_held_facts(reasoner.evaluation))
        sources = [(_HELD, Dataset.from_facts(facts))]
        forgotten = "facts that no rule needs any more were forgotten; to keep them, create the reasoner with remember="
    else:
        clock = reasoner.last_step.time
        came = (one for _, portion in memory.portions for one in portion)
        in_time = (one for one in came if one not in memory.late and one.interval.lo <= clock)
        facts = list(in_time if reasoner.corrections is None else remove_deleted(in_time))
        sources, forgotten = [], ""
        if memory.since > -INF:
            since = format_iso(memory.since) if reasoner.dates else format_time(memory.since)
            forgotten = f"facts that ended before {since} have been forgotten"
    data = Dataset.from_facts(facts)
    data.dates = reasoner.dates
    found = explain(reasoner.program, data, fact, timeline=timeline, depth=depth, sources=sources)
    if memory is not None:
        found = replace(found, notes=(*found.notes, *memory.describe_changes(fact, found.style)))
    if not forgotten:
        return found
    if found.proof is None:
        return Explanation(fact, Answer.UNKNOWN, notes=(forgotten,), style=found.style)
    conditions = (condition for step in found.proof.steps.values() for condition in step.conditions)
    doubt = ", and what is absent here may be among them" if any(c.kind == "absent" for c in conditions) else ""
    return replace(found, notes=(*found.notes, f"{forgotten}{doubt}"))


def explain_history(
    program: Program, data: Dataset, fact: str | Fact, timeline: TimelineName | None, depth: int | None
) -> Explanation:
    """Explain why a fact holds or not, from insertions and deletions in their order of arrival.

    The notes say which change made answers about it appear or disappear, if the rules can be run over a stream.
    """
    from tidelog.proofs.explanation import explain
    from tidelog.streaming.reasoner import Reasoner

    asked = program.to_fact(fact)
    times = [t for one in data for t in (one.interval.lo, one.interval.hi) if isinstance(t, Fraction)]
    try:
        length = max(times, default=Fraction(0)) - min(times, default=Fraction(0)) + 1
        reasoner = Reasoner(program, asked.predicate, corrections=length, remember="inf", timeline=timeline)
        for _ in reasoner.feed(data):
            pass
        log = reasoner.fact_log
        style = FactStyle(data.dates, program.time_arguments)
        notes = [] if log is None else list(log.describe_changes(asked, style))
    except TidelogError:
        notes = []
    standing = Dataset.from_facts(list(remove_deleted(data)))
    standing.dates = data.dates
    found = explain(program, standing, asked, timeline=timeline, depth=depth)
    return replace(found, notes=(*found.notes, *notes))


def _overlap(one: Fact, other: Fact) -> bool:
    """Return whether two facts have a time in common, or touch."""
    return one.interval.lo <= other.interval.hi and other.interval.lo <= one.interval.hi


def find_held_facts(evaluation: Evaluation) -> Iterable[Fact]:
    """Yield the facts of the user's predicates in the store."""
    symbols, grid, store = evaluation.symbols, evaluation.grid, evaluation.store
    for number, name in enumerate(evaluation.form.names):
        if not is_hidden(name) and not is_calendar(name):
            rows = store.rows(number)
            for place in range(len(rows)):
                args = tuple(symbols.value(int(a)) for a in rows.args[:, place])
                when: Interval = grid.to_interval(int(rows.lo[place]), int(rows.hi[place]))
                yield Fact(name, args, when)
