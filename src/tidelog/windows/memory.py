"""What a program makes a reasoner remember, in sentences: how much of each predicate, because of which rules, and which
rules are left out since they follow from others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tidelog.analysis.components import needed
from tidelog.analysis.horizon import reads
from tidelog.errors import TidelogError
from tidelog.language.printer import format_rule
from tidelog.language.program import Program
from tidelog.language.syntax import Rule
from tidelog.timeline.interval import Time, format_time
from tidelog.windows.query import forward_query
from tidelog.windows.redundant import kept_rules, reasons
from tidelog.windows.uniform import uniform_window


def memory(program: Program, query: str | None = None, timeline: str | None = None) -> tuple[str, ...]:
    """What is remembered for a program, or for the part of it that a query needs, in sentences."""
    line = timeline or program.timeline
    numbers = _numbers(program.rules)
    if query is not None:
        wanted = {program.rules[number] for number in needed(program.rules, [query])}
        numbers = [number for number, rule in zip(numbers, program.rules, strict=True) if rule in wanted]
        program = _for_query(program, query)
    found = reasons(program, line)
    kept = [pair for place, pair in enumerate(zip(numbers, program.rules, strict=True)) if place not in found]
    followed = (
        f"{_listed([numbers[place]])} follows from {_listed(sorted({numbers[other] for other in others}))}"
        " and is left out"
        for place, others in found.items()
    )
    return *_retained(kept, line), *followed, *_windows(program, query)


def retained(program: Program, query: str | None = None, timeline: str | None = None) -> dict[str, Time]:
    """For each predicate that some rule reads which is not left out, how far back it is read at most."""
    line = timeline or program.timeline
    part = program if query is None else _for_query(program, query)
    return dict(sorted(_farthest(kept_rules(part, line), line).items()))


def saved(program: Program, used: Program, query: str, timeline: str | None = None) -> dict[str, Any] | None:
    """What is saved for a query by reasoning with `used` instead of all rules of a program, and leaving out what
    follows from others: the rules, and the predicates that are kept for less; None for nothing."""
    line = timeline or program.timeline
    every = _for_query(program, query).rules
    kept = [rule for rule in kept_rules(used, line) if rule in set(every)]
    less = [rule for rule in every if rule not in set(kept)]
    if not less:
        return None
    before, after = _farthest(every, line), _farthest(kept, line)
    pairs = {name: [back, after.get(name, Fraction(0))] for name, back in before.items()}
    return {
        "rules": list(map(_text, less)),
        "retention": {name: list(map(format_time, pair)) for name, pair in pairs.items() if pair[0] != pair[1]},
    }


def _for_query(program: Program, query: str) -> Program:
    wanted = {program.rules[number] for number in needed(program.rules, [query])}
    return replace(program, rules=tuple(rule for rule in program.rules if rule in wanted))


def _numbers(rules: Iterable[Rule]) -> list[int]:
    """The user's number of each rule: what the translation of one rule adds has the same number."""
    places: dict[object, int] = {}
    return [places.setdefault(rule.place or number, len(places) + 1) for number, rule in enumerate(rules)]


def _farthest(rules: Iterable[Rule], timeline: str) -> dict[str, Time]:
    """How far back each predicate of the user's is read."""
    back: dict[str, Time] = {}
    for rule in rules:
        for predicate, lo, _ in reads(rule, timeline):
            if not predicate.startswith("$"):
                back[predicate] = max(back.get(predicate, Fraction(0)), -lo)
    return back


def _retained(rules: Sequence[tuple[int, Rule]], timeline: str) -> Iterator[str]:
    """Why each predicate is kept, and how much less would do without the rules that are to blame."""
    for predicate, most in sorted(_farthest((rule for _, rule in rules), timeline).items()):
        if most <= 0:
            continue
        forcing = {n for n, rule in rules if any(p == predicate and -lo == most for p, lo, _ in reads(rule, timeline))}
        less = _farthest((rule for n, rule in rules if n not in forcing), timeline).get(predicate, Fraction(0))
        sentence = f"{predicate} is kept for {format_time(most)} because of {_listed(sorted(forcing))}"
        if less > 0:
            sentence += f"; {format_time(less)} would do without {'it' if len(forcing) == 1 else 'them'}"
        yield sentence


def _windows(program: Program, query: str | None) -> Iterator[str]:
    """For a forward-propagating query over temporal Datalog, its windows."""
    if program.temporal is None or query is None:
        return
    try:
        asked = forward_query(program, query)
    except TidelogError:
        return
    radius, window = asked.radius, uniform_window(asked)
    if window < radius:
        yield f"{query} looks back {radius}, but a window of {window} is enough, whatever the data"
    elif window:
        yield f"{query} needs a window of {window}; less may do if all objects are known: tidelog window --objects"


def _listed(numbers: Sequence[int]) -> str:
    """`rule 2`, `rules 3 and 9`."""
    if len(numbers) == 1:
        return f"rule {numbers[0]}"
    return f"rules {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _text(rule: Rule) -> str:
    line = f"line {rule.place.line}: " if rule.place else ""
    return line + (" ".join(rule.text.split()) or format_rule(rule))
