"""Completion in `%%tidelog` cells: predicates of the rules and of the data, operators and functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tidelog.data.dataset import Dataset
from tidelog.language.calendar_predicates import CALENDAR_PREFIX, CALENDAR_UNITS
from tidelog.language.expression_tokens import AGGREGATE_WORDS

_MAGIC = re.compile(r"%%tidelog\b")
_PREDICATE = re.compile(
    r"(?<![\w\"])([A-Za-z_][\w:]*)\s*\(|(?:^|:-|,|\bnot\b)\s*([A-Z]\w*)\s*(?=[.,]|:-|$)", re.MULTILINE
)
_OPERATORS = ("Diamondminus", "Diamondplus", "Boxminus", "Boxplus", "Since", "Until", "not", "or")
_CALENDARS = (f"{CALENDAR_PREFIX}{unit}" for unit in CALENDAR_UNITS)
_WORDS = {
    **dict.fromkeys(_OPERATORS, "operator"),
    **dict.fromkeys(AGGREGATE_WORDS, "function"),
    **dict.fromkeys(_CALENDARS, "predicate"),
}


def make_matcher(shell: Any) -> Any:
    """Make the matcher that IPython asks for completions in cells of a shell."""
    from IPython.core.completer import SimpleCompletion, context_matcher

    def match_predicates(context: Any) -> dict[str, Any]:
        if not _MAGIC.match(context.full_text) or context.cursor_line == 0:
            return {"completions": []}
        found = find_words(context.full_text.partition("\n")[2], context.token, shell.user_ns)
        completions = [SimpleCompletion(text, type=kind) for text, kind in found]
        return {"completions": completions, "suppress": True}

    return context_matcher()(match_predicates)


def find_words(rules: str, begun: str, variables: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the words that begin with some letters, each with its kind: predicates first, then the language's own.

    >>> list(find_words("Hot(X) :- Reading(X, V).", "Re", {"Rea": 7}))
    [('Reading', 'predicate')]
    """
    predicates = {name for pair in _PREDICATE.findall(rules) for name in pair if name and name not in _WORDS}
    for name, value in variables.items():
        if isinstance(value, Dataset):
            predicates |= {predicate for predicate, _ in value.relations}
        elif hasattr(value, "__arrow_c_stream__") and not name.startswith("_") and not isinstance(value, type):
            predicates.add(name)
    predicates.discard(begun)
    yield from ((name, "predicate") for name in sorted(predicates) if name.startswith(begun))
    yield from ((word, kind) for word, kind in _WORDS.items() if word.lower().startswith(begun.lower()))
