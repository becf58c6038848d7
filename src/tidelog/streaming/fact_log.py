"""The facts of a stream, kept for a while so that its answers can be explained.

A reasoner forgets facts that no rule can need any more, often at once. To get explanations, create it with `remember=`:
the facts that arrive are then kept for that length of time as well, and proofs are found in them as in batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tidelog.data.dataset import Dataset
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.syntax import Fact
from tidelog.language.time_text import format_iso
from tidelog.model import Answer
from tidelog.timeline.interval import INF, Interval, Time, format_time

if TYPE_CHECKING:
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

    def exclude(self, late: Iterable[Fact]) -> None:
        self.late.update(late)


def explain_from_log(reasoner: Reasoner, fact: str | Fact, depth: int | None) -> Explanation:
    """Explain why a fact of a stream holds or not, from the log or else from the facts still held."""
    from tidelog.proofs.explanation import Explanation, explain

    fact = reasoner.program.to_fact(fact)
    memory, timeline = reasoner.fact_log, reasoner.evaluation.grid.timeline
    if memory is None:
        facts = list(_find_held_facts(reasoner.evaluation))
        sources = [(_HELD, Dataset.from_facts(facts))]
        forgotten = "facts that no rule needs any more were forgotten; to keep them, create the reasoner with remember="
    else:
        clock = reasoner.last_step.time
        came = (one for _, portion in memory.portions for one in portion)
        facts = [one for one in came if one not in memory.late and one.interval.lo <= clock]
        sources, forgotten = [], ""
        if memory.since > -INF:
            since = format_iso(memory.since) if reasoner.dates else format_time(memory.since)
            forgotten = f"facts that ended before {since} have been forgotten"
    data = Dataset.from_facts(facts)
    data.dates = reasoner.dates
    found = explain(reasoner.program, data, fact, timeline=timeline, depth=depth, sources=sources)
    if not forgotten:
        return found
    if found.proof is None:
        return Explanation(fact, Answer.UNKNOWN, notes=(forgotten,), iso=reasoner.dates)
    conditions = (condition for step in found.proof.steps.values() for condition in step.conditions)
    doubt = ", and what is absent here may be among them" if any(c.kind == "absent" for c in conditions) else ""
    return replace(found, notes=(*found.notes, f"{forgotten}{doubt}"))


def _find_held_facts(evaluation: Evaluation) -> Iterable[Fact]:
    """Yield the facts of the user's predicates in the store."""
    symbols, grid, store = evaluation.symbols, evaluation.grid, evaluation.store
    for number, name in enumerate(evaluation.form.names):
        if not is_hidden(name):
            rows = store.rows(number)
            for place in range(len(rows)):
                args = tuple(symbols.value(int(a)) for a in rows.args[:, place])
                when: Interval = grid.to_interval(int(rows.lo[place]), int(rows.hi[place]))
                yield Fact(name, args, when)
