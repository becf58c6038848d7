"""Rule files in their standard form, with the comments that are in them.

Every rule, fact and directive comes on a line of its own, in the order of the file. A comment on its own line stays
where it is, one behind a rule stays behind it, and one inside a rule comes before it. Of blank lines one is left.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from tidelog.language.printer import format_rule, format_temporal_rule
from tidelog.language.program import Program
from tidelog.language.tokens import grammar, split

if TYPE_CHECKING:
    from lark import Token


def formatted(text: str, *, syntax: str = "dmtl", source: str = "<text>") -> str:
    """The text in standard form; raises what is wrong with it.

    >>> print(formatted("A(X):-B(X)  % why\\n\\n\\n% and\\nC:-D"), end="")
    A(X) :- B(X).  % why
    <BLANKLINE>
    % and
    C :- D.
    """
    program = Program.parse(text, syntax=syntax, source=source)
    comment = re.compile(r"%[^\n]*" if syntax == "tdl" else r"[%#][^\n]*")
    items = list(split(grammar("tdl" if syntax == "tdl" else "grammar", syntax != "tdl").lex(text)))
    lines: list[str] = []
    at = 0
    for item, shown in zip(items, _shown(program, items), strict=True):
        start, end = item[0].start_pos or 0, item[-1].end_pos or 0
        _between(text[at:start], comment, lines)
        lines += [line for gap in _gaps(text, item) for line in map(str.rstrip, comment.findall(gap))]
        lines.append(shown)
        at = end
    _between(text[at:], comment, lines)
    while lines and not lines[-1]:
        lines.pop()
    return "".join(f"{line}\n" for line in lines)


def _shown(program: Program, items: list[list[Token]]) -> list[str]:
    """Each item of a file as it is printed."""
    if program.temporal is None:
        return [format_rule(rule) for rule in program.rules]
    rules = {
        (rule.place.line, rule.place.column): format_temporal_rule(rule)
        for rule in (*program.temporal.rules, *program.temporal.facts)
        if rule.place
    }
    return [
        _directive(item) if item[0].type == "DIRECTIVE" else rules[item[0].line or 0, item[0].column or 0]
        for item in items
    ]


def _directive(item: list[Token]) -> str:
    signatures = "".join(", " if token.type == "_COMMA" else str(token) for token in item[1:] if token.type != "_DOT")
    return f"{item[0]} {signatures}."


def _gaps(text: str, item: list[Token]) -> list[str]:
    """What stands between the tokens of an item."""
    return [text[one.end_pos or 0 : two.start_pos or 0] for one, two in pairwise(item)]


def _between(gap: str, comment: re.Pattern[str], lines: list[str]) -> None:
    """Adds what stands between two items: the comment behind the first, and then comments and blank lines."""
    first, *rest = gap.split("\n")
    if found := comment.search(first):
        if lines:
            lines[-1] += f"  {found[0].rstrip()}"
        else:
            lines.append(found[0].rstrip())
    # The last line is what stands before the next item.
    for line in rest[:-1]:
        found = comment.search(line)
        if found:
            lines.append(found[0].rstrip())
        elif lines and lines[-1]:
            lines.append("")
    if rest and (found := comment.search(rest[-1])):
        lines.append(found[0].rstrip())
