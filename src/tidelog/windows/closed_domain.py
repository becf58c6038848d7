"""Stream with a window: the least one that is proved for known objects, or one that the user chooses.

Rules with a larger radius than the window are dropped: what is left is the query that algorithm 1 of the paper answers
with this window (theorem 8). If that is proved to lose no answer only for some input, every fact is checked. This is
sound only for the input that the proof covers: the predicate of a fact is not derived by any rule, it mentions only
the known objects, and if it is rigid, it holds at all times. (When a stream begins does not matter, since rules are
the same at all times; nor does a fact without a beginning, since an answer needs only finitely many facts.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import format_value
from tidelog.language.program import Program
from tidelog.language.syntax import TemporalLiteral, TemporalRule, Value
from tidelog.language.tdl_translation import translate_to_mtl
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.windows.forward_query import ForwardQuery, build_forward_query
from tidelog.windows.loss_search import ProgressCallback
from tidelog.windows.object_names import Objects
from tidelog.windows.open_containment import find_obstacle
from tidelog.windows.validity import WindowCheck, WindowReport, window
from tidelog.windows.witness import format_timed_fact

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset

#: Seconds for the proof; afterwards the best window proved so far is used.
PROOF_SECONDS = 60.0


@dataclass(frozen=True)
class ClosedDomain:
    """A program for a query without the rules that look back further than its window, and the original program.

    `objects` are those that facts may mention; None for any. `checked` says whether facts are checked."""

    program: Program
    original: Program
    query: ForwardQuery
    objects: frozenset[Value] | None
    window: int
    checked: bool = True


def assume_objects(
    program: Program, query: str, objects: Objects, progress: ProgressCallback | None = None
) -> ClosedDomain:
    """Return the program for a query whose input facts mention only the given objects."""
    program = program.with_temporal_query(query)
    report = window(program, query, objects, timeout=PROOF_SECONDS, progress=progress)
    proved = report.exact[1] if isinstance(report.exact, tuple) else report.exact
    assert proved is not None
    return _restrict_to_window(program, report, proved)


def assume_window(
    program: Program,
    query: str,
    chosen: int,
    objects: Objects | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[ClosedDomain, Diagnostic | None]:
    """Return the program for a query with a chosen window, and a warning unless that window is proved valid.

    Facts are checked only if the proof depends on them: a uniformly valid window is valid for any input.
    """
    program = program.with_temporal_query(query)
    report = window(program, query, objects, check=chosen, timeout=PROOF_SECONDS, progress=progress)
    assert report.check is not None
    valid = report.check.valid
    domain = _restrict_to_window(program, report, chosen)
    warning = None if valid else _describe_unproved(report.check, domain.query)
    return replace(domain, checked=bool(valid) and chosen < report.uniform), warning


def _restrict_to_window(program: Program, report: WindowReport, chosen: int) -> ClosedDomain:
    """Return the program without the rules that look back further than a window."""
    assert program.temporal is not None
    forward_query = build_forward_query(program, report.query)
    longer = [rule.source for rule in forward_query.rules if rule.radius > chosen and rule.source]
    kept = tuple(rule for rule in program.temporal.rules if not any(rule is other for other in longer))
    if longer and not any(rule.head and rule.head.predicate == report.query for rule in kept):
        kept += tuple(_make_idle(rule) for rule in longer if rule.head and rule.head.predicate == report.query)[:1]
    temporal = replace(program.temporal, rules=kept)
    rules, facts = translate_to_mtl(temporal)
    objects = None if report.objects is None else frozenset(report.objects)
    restricted = replace(program, rules=rules, facts=facts, temporal=temporal)
    return ClosedDomain(restricted, program, forward_query, objects, chosen)


def _make_idle(rule: TemporalRule) -> TemporalRule:
    """Return a rule that derives nothing new, so that a query without other rules is still known."""
    assert rule.head is not None
    return replace(rule, body=(TemporalLiteral(rule.head),))


def _describe_unproved(check: WindowCheck, query: ForwardQuery) -> Diagnostic:
    if check.witness is None:
        message = f"a window of {check.window} is not proved valid: {check.reason}; answers may be lost"
        obstacle = find_obstacle(query, query.restrict_to(check.window))
        if obstacle is None:
            return Diagnostic("TL607", message, severity="warning")
        help = "name all objects with --objects, which decides it, or choose the window that `tidelog window` prints"
        return Diagnostic("TL607", message, obstacle.place, help=help, severity="warning")
    facts = ", ".join(map(format_timed_fact, (*check.witness.background, *check.witness.stream)))
    answer = format_timed_fact(check.witness.lost)
    effect = "gives wrong answers" if check.witness.wrong else "loses answers"
    message = f"a window of {check.window} {effect}: {answer} on the stream {facts}"
    return Diagnostic("TL607", message, severity="warning")


def require_domain_facts(domain: ClosedDomain, data: Dataset) -> None:
    """Raise for the first fact that the proof does not cover."""
    if not domain.checked:
        return
    query, objects = domain.query, domain.objects
    values = map(data.symbols.value, range(len(data.symbols)))
    known = np.array([objects is None or value in objects for value in values], bool)
    for (name, _), relation in data.relations.items():
        if name not in query.arities or not len(relation):
            continue
        if name not in query.inputs:
            raise _domain_error(
                f"the input has a fact of {name}, which rules derive", "leave out --objects and --window"
            )
        unknown = np.flatnonzero(~known[relation.args].all(axis=0)) if relation.arity else np.empty(0, np.int64)
        if len(unknown):
            named = [data.symbols.value(int(i)) for i in relation.args[:, unknown[0]]]
            other = next(value for value in named if objects is not None and value not in objects)
            message = f"a fact of {name} mentions {format_value(other)}, which is not among the objects"
            raise _domain_error(message, f"add {format_value(other)} to --objects")
        if name not in query.temporal and bool(((relation.lo > NEG_INF) | (relation.hi < POS_INF)).any()):
            message = f"a fact of {name}, which is rigid, has a time"
            raise _domain_error(message, "pass it without a time, as background")


def _domain_error(message: str, help: str) -> TidelogError:
    return TidelogError(Diagnostic("TL606", message, help=help))
