"""Print rule files in standard form and keep their comments.

Every rule, fact and directive gets a line of its own, in the order of the file. A comment on its own line stays where
it is, a comment after a rule stays after it, and a comment inside a rule moves before it. Several blank lines in a row
become one. Durations keep their units: `10min` is not rewritten as 600.
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise

from tidelog.language.printer import format_rule, format_temporal_rule
from tidelog.language.program import Program
from tidelog.language.table_parser import Token
from tidelog.language.time_text import read_number
from tidelog.language.tokenizer import tokenize_rules

_NUMBERS = ("NUMBER", "DURATION")


def format_source(text: str, *, syntax: str = "dmtl", source: str = "<text>") -> str:
    """Return rule text in standard form. Raises `TidelogError` if it is not a valid program.

    >>> print(format_source("A(X):-B(X)  % why\\n\\n\\n% and\\nC:-D"), end="")
    A(X) :- B(X).  % why
    <BLANKLINE>
    % and
    C :- D.
    """
    program = Program.parse(text, syntax=syntax, source=source)
    comment = re.compile(r"%[^\n]*" if syntax == "tdl" else r"[%#][^\n]*")
    items = list(tokenize_rules(text, operators=syntax != "tdl"))
    lines: list[str] = []
    at = 0
    for item, line in zip(items, _format_items(program, items), strict=True):
        start, end = item[0].start_pos, item[-1].end_pos
        _append_gap(text[at:start], comment, lines)
        lines += [inner.rstrip() for gap in _inner_gaps(text, item) for inner in comment.findall(gap)]
        lines.append(line)
        at = end
    _append_gap(text[at:], comment, lines)
    while lines and not lines[-1]:
        lines.pop()
    return "".join(f"{line}\n" for line in lines)


def _format_items(program: Program, items: list[list[Token]]) -> list[str]:
    """Format each rule, fact and directive of a file."""
    if program.temporal is None:
        return [
            _restore_durations(format_rule(rule), item) for rule, item in zip(program.written_rules, items, strict=True)
        ]
    rules = {
        (rule.place.line, rule.place.column): format_temporal_rule(rule)
        for rule in (*program.temporal.rules, *program.temporal.facts)
        if rule.place
    }
    return [
        _format_directive(item) if item[0].type == "DIRECTIVE" else rules[item[0].line, item[0].column]
        for item in items
    ]


def _restore_durations(printed: str, item: list[Token]) -> str:
    """Write the numbers of a printed rule as its source does, where it gives them a unit.

    Numbers keep their order, except in ranges that count backwards in the source (`SOMETIME[-b,-a]`), and `[5min]` is
    printed with two ends. So each printed number takes the next spelling of its value, and the last one serves again.
    """
    if all(token.type != "DURATION" for token in item):
        return printed
    spellings: dict[Fraction | None, list[Token]] = {}
    for token in item:
        if token.type in _NUMBERS:
            spellings.setdefault(_read_value(token), []).append(token)
    parts, at = [], 0
    for token in next(iter(tokenize_rules(printed, operators=True))):
        written = spellings.get(_read_value(token)) if token.type in _NUMBERS else None
        if written:
            spelling = written.pop(0) if len(written) > 1 else written[0]
            if spelling.type == "DURATION":
                parts += [printed[at : token.start_pos], str(spelling)]
                at = token.end_pos
    return "".join([*parts, printed[at:]])


def _read_value(token: Token) -> Fraction | None:
    return read_number(str(token), units=True)


def _format_directive(item: list[Token]) -> str:
    signatures = "".join(", " if token.type == "_COMMA" else str(token) for token in item[1:] if token.type != "_DOT")
    return f"{item[0]} {signatures}."


def _inner_gaps(text: str, item: list[Token]) -> list[str]:
    """Return the texts between the tokens of an item."""
    return [text[one.end_pos : two.start_pos] for one, two in pairwise(item)]


def _append_gap(gap: str, comment: re.Pattern[str], lines: list[str]) -> None:
    """Append the text between two items: the comment after the first, then comments and blank lines."""
    first, *rest = gap.split("\n")
    if match := comment.search(first):
        if lines:
            lines[-1] += f"  {match[0].rstrip()}"
        else:
            lines.append(match[0].rstrip())
    # The last line of the gap is the indentation of the next item.
    for line in rest[:-1]:
        match = comment.search(line)
        if match:
            lines.append(match[0].rstrip())
        elif lines and lines[-1]:
            lines.append("")
    if rest and (match := comment.search(rest[-1])):
        lines.append(match[0].rstrip())
