"""A whole proof: the steps from a fact down to what is given, as a tree for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidelog.language.facts import format_fact
from tidelog.language.printer import format_rule
from tidelog.language.syntax import Fact, Rule
from tidelog.language.times import format_iso
from tidelog.proofs.steps import Condition, Step
from tidelog.timeline.interval import Interval, Time, format_time

#: Lines of one kind below one line before the rest is only counted.
_WIDTH = 12
#: Levels of nested objects; readers of JSON seldom take many more.
_NESTED = 150


@dataclass(frozen=True)
class Proof:
    """A fact, and a step for it and for every fact that it rests on, as deep as was asked for.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] High(X).")
    >>> print(tl.explain(program, tl.Dataset.parse("High(t1)@3"), "Hot(t1)@7"), end="")
    Hot(t1)@7  by Hot(X) :- Diamondminus[0,5] High(X). (line 1)
    └─ Diamondminus[0,5] High(t1) at 7
       └─ High(t1)@3  given
    """

    fact: Fact
    steps: dict[Fact, Step]
    iso: bool = False

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in _lines(self))

    def as_json(self) -> dict[str, object]:
        """The proof as nested objects; see docs/howto/explain.md."""
        return _node(self, self.fact, set(), 0)


# For machines


def _node(proof: Proof, fact: Fact, above: set[Fact], level: int) -> dict[str, object]:
    step = proof.steps.get(fact) if level < _NESTED else None
    node: dict[str, object] = {"fact": format_fact(fact, proof.iso)}
    if step is None:
        return node | {"kind": "not shown"}
    if fact in above and step.kind != "given":
        return node | {"kind": "see above"}
    above.add(fact)
    node["kind"] = step.kind
    if step.source is not None:
        node["source"] = step.source
    if step.rule is not None:
        node |= {"rule": rule_text(step.rule), "line": step.line}
    if step.every is not None:
        node["every"] = format_time(step.every)
    if step.anchor is not None:
        node["beyond"] = shown_time(step.anchor, proof.iso)
    children = [_node(proof, part, above, level + 1) for part in step.parts]
    for condition in step.conditions:
        if condition.kind == "fact":
            children += [_node(proof, premise, above, level + 1) for premise in condition.facts]
        else:
            below = [_node(proof, premise, above, level + 1) for premise in condition.facts]
            text = {"condition": condition.text, "at": shown(condition.when, proof.iso), "kind": condition.kind}
            children.append(text | {"premises": below})
    return node | {"premises": children}


# For people


def _lines(proof: Proof) -> Iterator[str]:
    """Each fact on a line with how it comes about, and what it rests on below it."""
    above: set[Fact] = set()
    # Deep proofs would exceed the depth to which Python calls functions, so the lines to come are kept in a list.
    waiting: list[tuple[Fact | Condition | str, str, str]] = [(proof.fact, "", "")]
    while waiting:
        item, lead, indent = waiting.pop()
        below: list[Fact | Condition | str] = []
        if isinstance(item, str):
            yield lead + item
        elif isinstance(item, Condition):
            yield lead + _condition(item, proof.iso)
            below = list(item.facts)
        else:
            step = proof.steps.get(item)
            yield lead + format_fact(item, proof.iso) + _reason(step, item in above, proof.iso)
            if step is not None and item not in above:
                below = [*step.parts, *_below(step)]
            above.add(item)
        if len(below) > _WIDTH + 1:
            below[_WIDTH:] = [f"... and {len(below) - _WIDTH} more"]
        for place, child in reversed(list(enumerate(below))):
            last = place == len(below) - 1
            waiting.append((child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  ")))


def _below(step: Step) -> Iterator[Fact | Condition]:
    for condition in step.conditions:
        if condition.kind == "fact":
            yield from condition.facts
        else:
            yield condition


def _reason(step: Step | None, again: bool, iso: bool) -> str:
    if step is None:
        return "  ..."
    if step.kind == "given":
        return f"  given in {step.source}" if step.source else "  given"
    if again:
        return "  see above"
    if step.kind == "derived":
        assert step.rule is not None
        return f"  by {rule_text(step.rule)}" + (f" (line {step.line})" if step.line else "")
    if step.kind == "pieces":
        return f"  in {len(step.parts)} pieces"
    if step.kind == "repeats":
        return f"  {_repetition(step, iso)}, as here:"
    return "  derived, but from more facts than can be shown"


def _repetition(step: Step, iso: bool) -> str:
    assert step.anchor is not None
    anchor = shown_time(step.anchor, iso)
    side = "before" if step.fact.interval.hi < step.anchor else "from"
    if step.every is None:
        return f"nothing changes any more {side} {anchor}{' on' if side == 'from' else ''}"
    return f"repeats every {format_time(step.every)} {side} {anchor}"


def _condition(condition: Condition, iso: bool) -> str:
    when = shown(condition.when, iso)
    where = f"at {when}" if condition.when.is_point() else f"in {when}" if condition.kind == "absent" else f"on {when}"
    return condition.text if condition.kind == "comparison" else f"{condition.text} {where}"


def rule_text(rule: Rule) -> str:
    """A rule as the user wrote it, on one line."""
    return " ".join((rule.text or format_rule(rule)).split())


def shown_time(time: Time, iso: bool) -> str:
    return format_iso(time) if iso else format_time(time)


def shown(interval: Interval, iso: bool) -> str:
    """An interval as facts show it."""
    return format_fact(Fact("", (), interval), iso)[1:]
