"""A whole proof: the steps from a fact down to given facts, as a tree of text or of JSON objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tidelog.language.fact_text import FactStyle, format_fact, json_value
from tidelog.language.printer import format_formula, format_rule
from tidelog.language.substitution import substitute_formula
from tidelog.language.syntax import Constant, Fact, Group, Rule, Variable
from tidelog.language.time_text import format_iso
from tidelog.proofs.proof_step import AggregateValue, Condition, CountedRow, ProofStep
from tidelog.timeline.interval import Interval, Time, format_time

#: Number of lines directly below one line; further ones are only counted.
_MOST_CHILDREN = 12
#: A line of a proof's text.
_Item = Fact | Condition | CountedRow | str
#: Levels of nested JSON objects; few JSON readers accept many more.
_MOST_LEVELS = 150


@dataclass(frozen=True)
class Proof:
    """A fact, with a step for it and for every fact that it depends on, down to a given depth; see `explain`."""

    fact: Fact
    steps: dict[Fact, ProofStep]
    style: FactStyle = field(default_factory=FactStyle)
    #: The groups in brackets that hidden predicates stand for.
    groups: Mapping[str, Group] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in _lines(self))

    def as_json(self) -> dict[str, object]:
        """Return the proof as nested objects; see docs/howto/explain.md."""
        return _node(self, self.fact, set(), 0)

    def format_fact(self, fact: Fact) -> str:
        """Write a fact; one of a hidden predicate as the group that it stands for."""
        group = self.groups.get(fact.predicate)
        if group is None:
            return self.style.fact(fact)
        by = {v: Constant(c) for v, c in zip(group.args, fact.args, strict=True) if isinstance(v, Variable)}
        return f"{format_formula(substitute_formula(group, by))}@{self.style.interval(fact.interval)}"


# JSON


def _node(proof: Proof, fact: Fact, above: set[Fact], level: int) -> dict[str, object]:
    """Return the object of a fact, with the objects of its premises down to `_MOST_LEVELS`."""
    step = proof.steps.get(fact) if level < _MOST_LEVELS else None
    node: dict[str, object] = {"fact": proof.format_fact(fact)}
    if step is None:
        return node | {"kind": "not shown"}
    if fact in above and step.kind != "given":
        return node | {"kind": "see above"}
    above.add(fact)
    node["kind"] = step.kind
    if step.source is not None:
        node["source"] = step.source
    if step.rule is not None:
        node |= {"rule": format_source_rule(step.rule), "line": step.line}
    if step.every is not None:
        node["every"] = format_time(step.every)
    if step.anchor is not None:
        node["beyond"] = format_point(step.anchor, proof.style.dates)
    children = [_node(proof, part, above, level + 1) for part in step.parts]
    for condition in step.conditions:
        if condition.kind == "fact":
            children += [_node(proof, premise, above, level + 1) for premise in condition.facts]
            continue
        text: dict[str, object] = {
            "condition": condition.text,
            "at": proof.style.interval(condition.when),
            "kind": condition.kind,
        }
        if condition.value is not None:
            text |= value_to_json(condition.value, proof.style)
        below = [_node(proof, premise, above, level + 1) for premise in condition.facts]
        children.append(text | {"premises": below})
    return node | {"premises": children}


def value_to_json(value: AggregateValue, style: FactStyle) -> dict[str, object]:
    """Return the least and greatest value of an aggregate, and the rows that count."""
    rows = [
        {
            "binding": {name: json_value(row.binding[name]) for name in row.binding if name[0] not in "_$"},
            "at": style.interval(row.when),
            "facts": [style.fact(fact) for fact in row.facts],
        }
        for row in value.rows
    ]
    ends = (value.least, value.greatest)
    least, greatest = (None if end is None else json_value(end) for end in ends)
    return {"least": least, "greatest": greatest, "rows": rows, "more_rows": value.hidden}


# Text


def _lines(proof: Proof) -> Iterator[str]:
    """Yield a line per fact with the reason why it holds, above the facts that it depends on."""
    above: set[Fact] = set()
    # Deep proofs would exceed Python's recursion limit, so an explicit stack holds the lines to come.
    waiting: list[tuple[_Item, str, str]] = [(proof.fact, "", "")]
    while waiting:
        item, lead, indent = waiting.pop()
        below: list[_Item] = []
        most = _MOST_CHILDREN
        if isinstance(item, str):
            yield lead + item
        elif isinstance(item, CountedRow):
            yield lead + format_row(item, proof.style)
            below = list(item.facts)
        elif isinstance(item, Condition):
            yield lead + format_condition(item, proof.style.dates)
            below, most = list(item.facts), _MOST_CHILDREN
            if item.value is not None:
                below, most = list(_row_items(item.value)), len(item.value.rows) + 1
        else:
            step = proof.steps.get(item)
            yield lead + proof.format_fact(item) + _format_reason(step, item in above, proof.style.dates)
            if step is not None and item not in above:
                below = [*step.parts, *_children(step)]
            above.add(item)
        if len(below) > most + 1:
            below[most:] = [f"... and {len(below) - most} more"]
        for position, child in reversed(list(enumerate(below))):
            last = position == len(below) - 1
            waiting.append((child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  ")))


def _row_items(value: AggregateValue) -> Iterator[_Item]:
    """Yield the rows of an aggregate; one that is a single fact is represented by it."""
    for row in value.rows:
        if row.text:
            yield row
        else:
            yield from row.facts
    if value.hidden:
        yield f"... and {value.hidden} more"


def format_row(row: CountedRow, style: FactStyle) -> str:
    """Write a row of an aggregate, and when it holds."""
    return f"{row.text} {'at' if row.when.is_point() else 'on'} {style.interval(row.when)}"


def _children(step: ProofStep) -> Iterator[Fact | Condition]:
    """Yield the conditions of a step; one that is a plain fact is represented by its fact."""
    for condition in step.conditions:
        if condition.kind == "fact":
            yield from condition.facts
        else:
            yield condition


def _format_reason(step: ProofStep | None, again: bool, iso: bool) -> str:
    """Write why a fact holds, as the end of its line."""
    if step is None:
        return "  ..."
    if step.kind == "given":
        return f"  given in {step.source}" if step.source else "  given"
    if again:
        return "  see above"
    if step.kind == "derived":
        assert step.rule is not None
        return f"  by {format_source_rule(step.rule)}" + (f" (line {step.line})" if step.line else "")
    if step.kind == "pieces":
        return f"  in {len(step.parts)} pieces"
    if step.kind == "repeats":
        return f"  {_format_repetition(step, iso)}, as here:"
    return "  derived, but from more facts than can be shown"


def _format_repetition(step: ProofStep, iso: bool) -> str:
    """Write with which period, and before or after which time, a fact repeats."""
    assert step.anchor is not None
    anchor = format_point(step.anchor, iso)
    side = "before" if step.fact.interval.hi < step.anchor else "from"
    if step.every is None:
        return f"nothing changes any more {side} {anchor}{' on' if side == 'from' else ''}"
    return f"repeats every {format_time(step.every)} {side} {anchor}"


def format_condition(condition: Condition, iso: bool) -> str:
    """Write a condition, and when it holds."""
    when = format_interval(condition.when, iso)
    where = f"at {when}" if condition.when.is_point() else f"in {when}" if condition.kind == "absent" else f"on {when}"
    comma = "," if condition.kind == "aggregate" and ", needs" in condition.text else ""
    return condition.text if condition.kind in ("comparison", "computed") else f"{condition.text}{comma} {where}"


def format_source_rule(rule: Rule) -> str:
    """Write a rule as the user wrote it, on one line."""
    return " ".join((rule.text or format_rule(rule)).split())


def format_point(time: Time, iso: bool) -> str:
    """Write a time as a number or as an ISO 8601 date."""
    return format_iso(time) if iso else format_time(time)


def format_interval(interval: Interval, iso: bool) -> str:
    """Write an interval as in facts."""
    return format_fact(Fact("", (), interval), iso)[1:]
