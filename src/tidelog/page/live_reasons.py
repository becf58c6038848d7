"""Why alerts of a running stream hold: the rule and the conditions, found in the facts that the stream holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tidelog.data.dataset import Dataset
from tidelog.errors import TidelogError
from tidelog.language.fact_text import FactStyle
from tidelog.language.syntax import Fact
from tidelog.page.written_durations import find_written_durations, write_durations
from tidelog.proofs.explainer import Explainer
from tidelog.proofs.proof_tree import format_condition, format_source_rule
from tidelog.streaming.fact_log import find_held_facts
from tidelog.timeline.interval import INF, Bound, Interval

if TYPE_CHECKING:
    from tidelog.proofs.proof_step import Condition, ProofStep
    from tidelog.streaming.reasoner import Reasoner

#: The most facts in which reasons are looked for, and the most facts that are listed for a condition.
_MOST_HELD = 2_000
_MOST_FACTS = 3


def find_reasons(reasoner: Reasoner, alerts: Sequence[Fact], known: Bound, dates: bool) -> list[dict[str, Any] | None]:
    """Return the rule and the conditions of each alert; None where the facts that it follows from are not held.

    `known` is up to when the stream is answered.
    """
    if not alerts or sum(reasoner.count_held_atoms().values()) > _MOST_HELD:
        return [None] * len(alerts)
    # The alerts are held, too; as given facts they would be their own reasons.
    facts = Dataset.from_facts(f for f in find_held_facts(reasoner.evaluation) if f.predicate != reasoner.query)
    facts.dates = reasoner.dates
    timeline = reasoner.evaluation.grid.timeline
    try:
        explainer = Explainer(reasoner.program, facts, query=(reasoner.query,), timeline=timeline)
        style = replace(explainer.style, dates=dates)
        return [_find_reason(explainer, alert, known, style) for alert in alerts]
    except TidelogError:  # undecided, or what is held contradicts itself
        return [None] * len(alerts)


def _find_reason(explainer: Explainer, alert: Fact, known: Bound, style: FactStyle) -> dict[str, Any] | None:
    """Explain all of the interval, or else its latest tick: the facts behind its beginning may be forgotten."""
    for interval in (alert.interval, _find_latest_tick(explainer, alert.interval, known)):
        step = explainer.step(Fact(alert.predicate, alert.args, interval))
        while step is not None and step.kind == "pieces":
            step = explainer.step(step.parts[-1])
        if step is not None and step.rule is not None:
            return _describe_step(step, style)
    return None


def _find_latest_tick(explainer: Explainer, interval: Interval, known: Bound) -> Interval:
    end, included = known
    if included or isinstance(end, float):
        return Interval(end, end) if abs(end) != INF else interval
    start = end - Fraction(1, explainer.model.grid.denominator)
    return Interval(start, end, False, False) if start > interval.lo else interval


def _describe_step(step: ProofStep, style: FactStyle) -> dict[str, Any]:
    assert step.rule is not None
    rule = format_source_rule(step.rule)
    written = find_written_durations(rule)
    lines = [write_durations(line, written) for condition in step.conditions for line in _lines(condition, style)]
    return {"rule": rule, "because": lines}


def _lines(condition: Condition, style: FactStyle) -> Iterator[str]:
    """Yield a line for a condition, and after it those for the facts that make it hold."""
    if condition.kind != "fact":
        yield format_condition(condition, style.dates)
    for fact in condition.facts[:_MOST_FACTS]:
        yield style.fact(fact)
    if len(condition.facts) > _MOST_FACTS:
        yield f"and {len(condition.facts) - _MOST_FACTS} more facts"
