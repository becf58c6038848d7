"""The facts of a stream, kept for a while so that its answers can be explained.

Reasoning forgets what no rule can need any more, often at once. Who wants reasons asks a reasoner to remember: the
facts that came are then kept for so long, beside all else, and proofs are found in them as in batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tidelog.data.dataset import Dataset
from tidelog.language.facts import parse_fact
from tidelog.language.syntax import Fact
from tidelog.language.times import format_iso
from tidelog.reasoning import Answer
from tidelog.timeline.interval import INF, Interval, Time, format_time

if TYPE_CHECKING:
    from tidelog.proofs.explanation import Explanation
    from tidelog.streaming.answers import Step
    from tidelog.streaming.evaluation import Evaluation
    from tidelog.streaming.reasoner import Reasoner

_HELD = "what the stream holds"


class Remembered:
    """Facts as they came, in portions; a portion is forgotten as a whole, `length` after the last time in it."""

    def __init__(self, length: Time) -> None:
        self.length = length
        self.portions: list[tuple[Time, Dataset]] = []
        #: Facts that came too late: they do not count.
        self.late: set[Fact] = set()
        #: Everything that ended before this time may have been forgotten.
        self.since: Time = -INF

    def take(self, clock: Time, data: Dataset, step: Step | None = None) -> None:
        """Facts came when the clock was at a time, in a step."""
        if step is not None:
            self.leave_out(step.late)
        if len(data):
            finite = (t for fact in data for t in (fact.interval.lo, fact.interval.hi) if t != -INF)
            self.portions.append((max(finite, default=INF), data))
        old = clock - self.length
        kept = [(last, portion) for last, portion in self.portions if last >= old]
        if len(kept) < len(self.portions):
            self.portions, self.since = kept, max(self.since, old)

    def leave_out(self, late: Iterable[Fact]) -> None:
        self.late.update(late)


def explained_by(reasoner: Reasoner, fact: str | Fact, depth: int | None) -> Explanation:
    """Why a fact of a stream holds or not, from what was remembered or is still held."""
    from tidelog.proofs.explanation import Explanation, explain

    if isinstance(fact, str):
        temporal = reasoner.program.temporal.temporal if reasoner.program.temporal else frozenset()
        fact, _ = parse_fact(fact, "<fact>", temporal=temporal)
    memory, timeline = reasoner.remembered, reasoner.evaluation.grid.timeline
    if memory is None:
        facts = list(_held(reasoner.evaluation))
        sources = [(_HELD, Dataset.from_facts(facts))]
        forgotten = (
            "what the rules cannot need any more has been forgotten; a reasoner with remember= keeps facts for this"
        )
    else:
        clock = reasoner.stats.t
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


def _held(evaluation: Evaluation) -> Iterable[Fact]:
    """The facts of the user's predicates in the store."""
    symbols, grid, store = evaluation.symbols, evaluation.grid, evaluation.store
    for number, name in enumerate(evaluation.form.names):
        if not name.startswith("$"):
            rows = store.rows(number)
            for place in range(len(rows)):
                args = tuple(symbols.value(int(a)) for a in rows.args[:, place])
                when: Interval = grid.interval(int(rows.lo[place]), int(rows.hi[place]))
                yield Fact(name, args, when)
