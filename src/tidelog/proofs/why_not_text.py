"""Write why a fact does not hold, as a tree of text or of JSON objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidelog.language.fact_text import FactStyle
from tidelog.language.syntax import Literal
from tidelog.language.wording import plural
from tidelog.proofs.numeric_conditions import FailingValue
from tidelog.proofs.proof_tree import format_row, format_source_rule, value_to_json
from tidelog.proofs.why_not import BlockedRule, WhyNot
from tidelog.timeline.interval import Interval


def format_why_not(why_not: WhyNot, style: FactStyle) -> Iterator[str]:
    """Yield the lines of the tree."""
    line = f"{style.fact(why_not.fact)} does not hold"
    yield line + (f"; it holds on {format_intervals(why_not.nearest, style)}" if why_not.nearest else "")
    branches = [[_format_blocked(blocked, style), *_tree(_details(blocked, style))] for blocked in why_not.blocked]
    yield from _tree(branches)


def format_intervals(intervals: Iterable[Interval], style: FactStyle) -> str:
    """Write a list of intervals as in facts."""
    return " and ".join(style.interval(interval) for interval in intervals)


def describe_blocked(blocked: BlockedRule, style: FactStyle) -> tuple[str, list[list[str]]]:
    """Return which condition of a rule fails and when, and the branches of lines below it."""
    return f"{blocked.text} fails{_format_times(blocked, style)}", _details(blocked, style)


def _tree(branches: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of branches, each drawn below its first line."""
    for position, (first, *rest) in enumerate(branches):
        last = position == len(branches) - 1
        yield ("└─ " if last else "├─ ") + first
        for line in rest:
            yield ("   " if last else "│  ") + line


def _format_blocked(blocked: BlockedRule, style: FactStyle) -> str:
    line = blocked.rule.place.line if blocked.rule.place else None
    numbered = f" (line {line})" if line else ""
    return f"not by {format_source_rule(blocked.rule)}{numbered}: {describe_blocked(blocked, style)[0]}"


def _format_times(blocked: BlockedRule, style: FactStyle) -> str:
    """Write when a condition fails, and for how many other bindings."""
    if not isinstance(blocked.failing, Literal) and not _find_aggregates(blocked):
        return ""
    others = ""
    if blocked.other_bindings:
        satisfy = "satisfies" if blocked.other_bindings == 1 else "satisfy"
        others = f", also for {plural(blocked.other_bindings, 'other binding')} that {satisfy} the conditions before it"
    points = all(interval.is_point() for interval in blocked.when)
    return f" {'at' if points else 'throughout'} {format_intervals(blocked.when, style)}{others}"


def _details(blocked: BlockedRule, style: FactStyle) -> list[list[str]]:
    """Return the branches below a blocked rule."""
    branches = [_format_failing_value(value, style) for value in blocked.values]
    if blocked.blockers:
        branches.append([f"since {', '.join(style.fact(fact) for fact in blocked.blockers)}"])
    if blocked.nearest:
        branches.append([f"it holds on {format_intervals(blocked.nearest, style)}"])
    elif isinstance(blocked.failing, Literal) or _find_aggregates(blocked):
        branches.append(["it never holds"])
    if blocked.others:
        branches.append([f"at that time there is {', '.join(text for text, _ in blocked.others)}"])
    if blocked.because is not None:
        branches.append(list(format_why_not(blocked.because, style)))
    return branches


def _find_aggregates(blocked: BlockedRule) -> bool:
    """Tell whether the failing condition depends on time, since it contains an aggregate."""
    return any(value.value is not None for value in blocked.values)


def _format_failing_value(failing: FailingValue, style: FactStyle) -> list[str]:
    """Write the value of an aggregate or an operation, and the rows of the aggregate below it."""
    if failing.value is None:
        return [failing.text]
    rows = [
        [format_row(row, style)] if row.text else [style.fact(fact) for fact in row.facts] for row in failing.value.rows
    ]
    more = [[f"... and {failing.value.hidden} more"]] if failing.value.hidden else []
    return [failing.text, *_tree([*(row for row in rows if row), *more])]


def why_not_to_json(why_not: WhyNot, style: FactStyle) -> dict[str, object]:
    """Return nested objects; see docs/howto/explain.md."""
    return {
        "fact": style.fact(why_not.fact),
        "nearest": [style.interval(interval) for interval in why_not.nearest],
        "rules": [_blocked_to_json(blocked, style) for blocked in why_not.blocked],
    }


def _blocked_to_json(blocked: BlockedRule, style: FactStyle) -> dict[str, object]:
    result: dict[str, object] = {
        "rule": format_source_rule(blocked.rule),
        "line": blocked.rule.place.line if blocked.rule.place else None,
        "met": list(blocked.satisfied),
        "failing": blocked.text,
        "at": [style.interval(interval) for interval in blocked.when],
        "nearest": [style.interval(interval) for interval in blocked.nearest],
        "others": [text for text, _ in blocked.others],
    }
    if blocked.values:
        result["values"] = [
            {"text": value.text} | ({} if value.value is None else value_to_json(value.value, style))
            for value in blocked.values
        ]
    if blocked.blockers:
        result["blockers"] = [style.fact(fact) for fact in blocked.blockers]
    if blocked.because is not None:
        result["because"] = why_not_to_json(blocked.because, style)
    return result
