"""The rules of a report as the user wrote them: the alternatives and groups of one rule appear as that rule, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.language.printer import format_rule

if TYPE_CHECKING:
    from tidelog.language.program import Program
    from tidelog.language.syntax import Rule


@dataclass(frozen=True)
class WrittenRules:
    """The texts of rules, and the number of the text for each rule of a program."""

    texts: tuple[str, ...]
    numbers: dict[Rule, int]


def list_written_rules(program: Program) -> WrittenRules:
    """List each rule that the user wrote.

    >>> from tidelog.language.program import Program
    >>> list_written_rules(Program.parse("P(X) :- A(X) or B(X). Q :- C.")).texts
    ('P(X) :- A(X) or B(X).', 'Q :- C.')
    """
    texts: list[str] = []
    numbers: dict[Rule, int] = {}
    known: dict[object, int] = {}
    for rule in program.rules:
        text = rule.text or format_rule(rule)
        key = (text, rule.place) if rule.place else rule
        if key not in known:
            known[key] = len(texts)
            texts.append(text)
        numbers[rule] = known[key]
    return WrittenRules(tuple(texts), numbers)
