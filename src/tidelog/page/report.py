"""The data of a report: what holds, what was given, rules, proofs, possible answers and the steps of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog import __version__
from tidelog.analysis.queries import known_predicates
from tidelog.data.dataset import Dataset
from tidelog.language.printer import format_rule
from tidelog.page.timeline import DERIVED, Holds, Timeline, timeline
from tidelog.reasoning import AnyTime, materialise

if TYPE_CHECKING:
    from tidelog.language.program import Program
    from tidelog.model import Model

#: So many intervals are shown at most; a page with more of them would be slow to open.
LIMIT = 250_000
#: So many steps of proofs, which take some seconds to find.
PROOFS = 10_000


@dataclass(frozen=True)
class Heading:
    """What a page says of itself: its title, lines about where it comes from, and the command that explains a fact."""

    title: str
    about: tuple[tuple[str, str], ...] = ()
    command: str | None = None


@dataclass(frozen=True)
class Shown:
    """A timeline with what is to be said about it."""

    timeline: Timeline
    notes: tuple[str, ...]


def holding(
    program: Program,
    data: Dataset,
    *,
    query: Iterable[str] | None = None,
    between: tuple[AnyTime, AnyTime] | None = None,
    timeline: str | None = None,
    limit: int = LIMIT,
) -> Shown:
    """All that holds, given or derived: of every predicate of rules and data, or of those asked for."""
    present = {name for name, _ in data.relations} | {fact.predicate for fact in program.facts}
    names = sorted(known_predicates(program, present)) if query is None else list(query)
    model = materialise(program, data, query=names, between=between, timeline=timeline)
    given = given_facts(program, data, [name for name in names if name in present], between, timeline)
    return shown(_holds(model), _holds(given), model, data.dates, limit)


def given_facts(
    program: Program,
    data: Dataset,
    names: Sequence[str],
    between: tuple[AnyTime, AnyTime] | None,
    timeline: str | None,
) -> Model:
    """The facts of the data as maximal intervals: what holds without any rules."""
    return materialise(replace(program, rules=()), data, query=names, between=between, timeline=timeline)


def shown(holds: Holds, given: Holds, model: Model, dates: bool, limit: int) -> Shown:
    made, more = timeline(holds, given, model.repeats, dates, limit)
    notes = []
    if more:
        notes.append(
            f"{more:,} more intervals that begin later are left out: ask for a stretch of time with --between, or for "
            "some predicates with --query."
        )
    return Shown(made, tuple(notes))


def proved(
    program: Program, data: Dataset, found: Shown, limit: int, timeline: str | None
) -> tuple[dict[str, Any] | None, Shown]:
    """The proofs of what is shown, up to a number of steps, and what is to be said where that is not enough."""
    from tidelog.page.proofs import proofs
    from tidelog.proofs.explainer import Explainer

    wanted = int(np.count_nonzero(found.timeline.kinds & DERIVED))
    if not limit or not (wanted or found.timeline.repeats):
        return None, found
    made = proofs(program, Explainer(program, data, timeline=timeline), found.timeline, limit)
    if wanted <= limit:
        return made, found
    note = f"The page has proofs of the first {limit:,} of {wanted:,} derived intervals; --proofs N asks for more."
    return made, replace(found, notes=(*found.notes, note))


def _holds(model: Model) -> Holds:
    return Holds(tuple(model.relations()), model.symbols)


def report(
    program: Program,
    found: Shown,
    heading: Heading,
    *,
    proofs: dict[str, Any] | None = None,
    awaited: Sequence[dict[str, Any]] = (),
    steps: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """What the page of a report reads."""
    return {
        "kind": "report",
        "title": heading.title,
        "version": __version__,
        "about": list(heading.about),
        "command": heading.command,
        "rules": [rule.text or format_rule(rule) for rule in program.rules],
        "notes": list(found.notes),
        "timeline": found.timeline.to_json(),
        "proofs": proofs,
        "awaited": list(awaited),
        "steps": steps,
    }
