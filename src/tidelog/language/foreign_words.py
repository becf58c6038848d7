"""Explain words and units that other languages have and rules do not: `or`, `is`, `between`, `5m`, `2hours`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidelog.errors import Diagnostic
from tidelog.language.table_parser import Token
from tidelog.language.tokenizer import SourceText

#: The units of durations, by how other languages spell them.
_UNITS = {
    "m": "min",
    "mins": "min",
    "minute": "min",
    "minutes": "min",
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "msec": "ms",
    "millis": "ms",
    "milliseconds": "ms",
    "hr": "h",
    "hrs": "h",
    "hour": "h",
    "hours": "h",
    "day": "d",
    "days": "d",
    "wk": "w",
    "week": "w",
    "weeks": "w",
}
_WORDS = ("or", "and", "in", "is", "between", "like")
_NO_OR = "a body has no `or`; a predicate with several rules holds where one of them says so"
_BETWEEN_LITERALS = "`or` stands between two literals: A(X) or B(X)"
_OPENING, _CLOSING = ("_LPAR", "OPEN", "LSQB"), ("_RPAR", "CLOSE", "RSQB")


def suggest_duration(text: str) -> str | None:
    """Return the duration that was probably meant, or None.

    >>> suggest_duration("5m"), suggest_duration("2hours"), suggest_duration("3x")
    ('5min', '2h', None)
    """
    parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([a-z]+)", text.lower())
    unit = _UNITS.get(parts[2]) if parts else None
    return f"{parts[1]}{unit}" if parts and unit else None


def explain_foreign_word(tokens: Sequence[Token], at: int, source: SourceText) -> Diagnostic | None:
    """Explain a foreign word at the token where parsing stopped, or just before it; None for other words."""
    for position in (at, at - 1):
        if 0 <= position < len(tokens) and tokens[position].type in ("NAME", "OR", "AND"):
            word = tokens[position].lower()
            if word in _WORDS:
                return _explain_word(word, tokens, position, source)
    return None


def _explain_word(word: str, tokens: Sequence[Token], position: int, source: SourceText) -> Diagnostic:
    place = source.place(tokens[position])
    law: str | None = None
    if word == "is":
        help = "write `=`: V = X + 1"
    elif word == "between":
        help = "write two comparisons: X >= 1, X <= 2"
    elif word == "like":
        help = 'write starts_with(X, "a"), contains(X, "a") or matches(X, "a.*")'
    elif word == "and" and source.operators:
        law, help = "`and` stands between two literals, as `,` does", "write A(X) and B(X), or A(X), B(X)"
    elif word == "and":
        law, help = "the literals of a body are separated by `,`", "write `,` instead of `and`"
    elif word == "in":
        law = "rules have no `in`; a set of values is a predicate of its own"
        help = "write a literal such as Allowed(X), with the facts Allowed(a) and Allowed(b), or a rule per value"
    elif any(token.type == "_IF" for token in tokens[position:]):
        law = "all atoms of a head follow from the body; a head has no `or`"
        help = "for a choice write A(X) :- C(X), not B(X).  B(X) :- C(X), not A(X). and ask `tidelog stable`"
    else:
        law = _BETWEEN_LITERALS if source.operators else _NO_OR
        help = explain_or(tokens, position, source)
    return Diagnostic("TL001", f"unexpected `{tokens[position]}`", place, law, help)


def explain_or(tokens: Sequence[Token], position: int, source: SourceText) -> str:
    """Show the rules that say what a rule with an `or` (or `;` or `|`) at some token means."""
    group = _find_group(tokens, position)
    if group is None:
        return "write two rules: A(X) :- B(X).  A(X) :- C(X)."
    texts = [source.between(tokens[first], tokens[last]) for first, last in group.alternatives]
    if group.is_operand:
        variables = dict.fromkeys(re.findall(r"\b[A-Z_]\w*\b(?!\s*[(\[])", " ".join(texts)))
        head = f"Either({', '.join(variables)})" if variables else "Either"
        rules = [f"{head} :- {text}." for text in texts]
        return f"write a rule for each, and {head} here: " + "  ".join(_tidy(rule) for rule in rules)
    before = source.between(tokens[0], tokens[group.start - 1])
    after = source.between(tokens[group.end], tokens[-1]) if group.end < len(tokens) else ""
    spaced = "" if before.endswith("(") else " "
    rules = [_tidy(f"{before}{spaced}{text}{after}") for text in texts]
    return f"write {'two rules' if len(rules) < 3 else 'one rule for each'}: " + "  ".join(rules)


@dataclass(frozen=True)
class _Group:
    """The tokens from `start` to `end` (excluded) that an `or` separates into alternatives, first to last token each.

    An operand is in brackets of its own, behind an operator or a negation.
    """

    start: int
    end: int
    alternatives: tuple[tuple[int, int], ...]
    is_operand: bool = False


def _find_group(tokens: Sequence[Token], position: int) -> _Group | None:
    """Find what the `or` at a token separates: up to the next comma, bracket or end on both sides."""
    start, end, depth = position, position + 1, 0
    while start > 0 and not (depth == 0 and tokens[start - 1].type in (*_OPENING, "_COMMA", "_IF")):
        start -= 1
        depth += (tokens[start].type in _CLOSING) - (tokens[start].type in _OPENING)
    if start == 0:
        return None  # an `or` in a head
    while end < len(tokens) and not (depth == 0 and tokens[end].type in (*_CLOSING, "_COMMA", "_DOT")):
        depth += (tokens[end].type in _OPENING) - (tokens[end].type in _CLOSING)
        end += 1
    cuts, depth = [start - 1], 0
    for i in range(start, end):
        depth += (tokens[i].type in _OPENING) - (tokens[i].type in _CLOSING)
        if depth == 0 and tokens[i].lower() in ("or", ";", "|", "∨"):
            cuts.append(i)
    alternatives = tuple((first + 1, last - 1) for first, last in pairwise([*cuts, end]))
    if any(last < first for first, last in alternatives):
        return None
    in_brackets = tokens[start - 1].type in _OPENING and end < len(tokens) and tokens[end].type in _CLOSING
    if not in_brackets or start < 2 or tokens[start - 2].type == "NAME":
        return _Group(start, end, alternatives)
    plain = tokens[start - 2].type in ("_COMMA", "_IF")
    return _Group(start - 1, end + 1, alternatives, is_operand=not plain)


def _tidy(rule: str) -> str:
    """Write a rule in one line, with one full stop."""
    return " ".join(rule.split()).removesuffix(".") + "."
