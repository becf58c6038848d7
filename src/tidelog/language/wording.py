"""Small pieces of English that messages share: counts with their nouns, lists, and "did you mean"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def plural(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless the count is 1.

    >>> plural(1, "fact"), plural(1200, "fact")
    ('1 fact', '1,200 facts')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def join_words(words: Iterable[str], conjunction: str = "and") -> str:
    """Join words into a list with a conjunction before the last.

    >>> join_words(["a", "b", "c"]), join_words(["a", "b"], "or")
    ('a, b and c', 'a or b')
    """
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def suggest(name: str, candidates: Iterable[str], cutoff: float = 0.75) -> str | None:
    """Return the candidate that `name` was probably meant to be, or None; letter case matters little.

    A lower `cutoff` accepts names that are less similar.

    >>> suggest("Diamonminus", ["Diamondminus", "Boxminus"])
    'Diamondminus'
    """
    by_lower = {candidate.lower(): candidate for candidate in candidates if candidate != name}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else None
