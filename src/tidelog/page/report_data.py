"""The data of a report: timeline, rules, proofs, possible answers, and the steps of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.analysis.query_names import known_predicates
from tidelog.batch import materialise
from tidelog.data.dataset import Dataset
from tidelog.errors import Undecided
from tidelog.language.time_like import TimeLike
from tidelog.language.wording import plural
from tidelog.page.predicate_roles import Question, describe_predicates, find_query_predicates
from tidelog.page.timeline_builder import FactColumns, build_timeline
from tidelog.page.timeline_data import DERIVED, Timeline
from tidelog.page.written_rules import list_written_rules
from tidelog.timeline.interval import INF, Time, TimelineName
from tidelog.version import __version__

if TYPE_CHECKING:
    from tidelog.language.program import Program
    from tidelog.model import Model

#: The most intervals on a page; with more of them it would be slow to open.
LIMIT = 250_000
#: The most proof steps on a page; finding that many takes some seconds.
PROOFS = 10_000


@dataclass(frozen=True)
class Heading:
    """The heading of a page: its title, lines on where the data come from, and the command that explains a fact."""

    title: str
    about: tuple[tuple[str, str], ...] = ()
    command: str | None = None


@dataclass(frozen=True)
class ReportTimeline:
    """A timeline, with notes on what it leaves out."""

    timeline: Timeline
    notes: tuple[str, ...]


def materialise_timeline(
    program: Program,
    data: Dataset,
    *,
    query: Iterable[str] | None = None,
    between: tuple[TimeLike, TimeLike] | None = None,
    timeline: TimelineName | None = None,
    limit: int = LIMIT,
) -> ReportTimeline:
    """Compute all facts that hold, given or derived, for every predicate of rules and data, or for those of `query`."""
    present = {name for name, _ in data.relations} | {fact.predicate for fact in program.facts}
    names = sorted(known_predicates(program, present)) if query is None else list(query)
    model = materialise(program, data, query=names, between=between, timeline=timeline)
    given = materialise_given(program, data, [name for name in names if name in present], between, timeline)
    # A calendar is given, too, as proofs say.
    calendar = (part for part in model.relations() if part[0].predicate in program.calendars)
    all_given = FactColumns((*given.relations(), *calendar), model.symbols)
    made, more = build_timeline(_to_columns(model), all_given, model.repeats, data.dates, limit)
    notes = []
    if more:
        notes.append(
            f"Left out: {plural(more, 'interval')} with a later start. Choose a time range with --between, or "
            "predicates with --query."
        )
    return ReportTimeline(made, tuple(notes))


def materialise_given(
    program: Program,
    data: Dataset,
    names: Sequence[str],
    between: tuple[TimeLike, TimeLike] | None,
    timeline: TimelineName | None,
) -> Model:
    """Compute the maximal intervals of the given facts: what holds without any rules."""
    return materialise(replace(program, rules=()), data, query=names, between=between, timeline=timeline)


def build_proofs(
    program: Program,
    data: Dataset,
    found: ReportTimeline,
    limit: int,
    timeline: TimelineName | None,
    *,
    query: Sequence[str] = (),
    until: Time | None = INF,
) -> tuple[dict[str, Any] | None, ReportTimeline]:
    """Build the proofs of the derived intervals with at most `limit` steps; add a note if that is not enough.

    Proofs refer to the model for all time. Where that is undecided, there are none, and a note says so. With them comes
    why intervals are missing, up to the time `until` (None: nowhere), first of the predicates `query`.
    """
    from tidelog.page.gap_columns import collect_gaps
    from tidelog.page.proof_columns import collect_proofs
    from tidelog.proofs.explainer import Explainer

    derived = int(np.count_nonzero(found.timeline.kinds & DERIVED))
    if not limit or not (derived or found.timeline.repeats):
        return None, found
    try:
        explainer = Explainer(program, data, timeline=timeline)
    except Undecided as undecided:
        note = f"There are no proofs on this page: {undecided.diagnostics[0].message}."
        return None, replace(found, notes=(*found.notes, note))
    proofs = collect_proofs(program, explainer, found.timeline, limit)
    if until is not None:
        proofs["gaps"] = collect_gaps(program, explainer.model, found.timeline, query, until)
    if derived <= limit:
        return proofs, found
    note = f"The page has proofs of the first {limit:,} of {derived:,} derived intervals; --proofs N asks for more."
    return proofs, replace(found, notes=(*found.notes, note))


def _to_columns(model: Model) -> FactColumns:
    return FactColumns(tuple(model.relations()), model.symbols)


def build_report(
    program: Program,
    found: ReportTimeline,
    heading: Heading,
    *,
    proofs: dict[str, Any] | None = None,
    awaited: Sequence[dict[str, Any]] = (),
    steps: dict[str, Any] | None = None,
    question: Question | None = None,
) -> dict[str, Any]:
    """Build the JSON object that the page of a report reads."""
    question = question or Question(find_query_predicates(program))
    predicates = describe_predicates(program, found.timeline, question)
    return {
        "kind": "report",
        "title": heading.title,
        "version": __version__,
        "about": list(heading.about),
        "command": heading.command,
        "rules": list(list_written_rules(program).texts),
        "notes": list(found.notes),
        "timeline": {**found.timeline.to_json(), "predicates": predicates},
        "proofs": proofs,
        "awaited": list(awaited),
        "steps": steps,
    }
