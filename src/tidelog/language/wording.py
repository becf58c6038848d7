"""Small pieces of English that messages share: counts with their nouns, lists, and "did you mean"."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

#: With more candidates than this, those that have too few letters in common are left out in one pass over all of them.
_MANY = 200


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
    # Names of other lengths have too few letters in common with it.
    least, most = len(name) * cutoff / (2 - cutoff) - 1, len(name) * (2 - cutoff) / cutoff + 1
    by_lower = {
        candidate.lower(): candidate
        for candidate in candidates
        if least <= len(candidate) <= most and candidate != name
    }
    others: Sequence[str] = [*filter(None, by_lower)]
    if len(others) > _MANY:
        others = _leave_out_unlike(name.lower(), others, cutoff)
    close = difflib.get_close_matches(name.lower(), others, n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else None


def _leave_out_unlike(name: str, candidates: Sequence[str], cutoff: float) -> list[str]:
    """Return the candidates that have enough letters in common with a name to be similar to it, in any order.

    This is the bound of `difflib.SequenceMatcher.quick_ratio`, for all of them at once.
    """
    import numpy as np

    letters = np.frombuffer("".join(candidates).encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = np.fromiter(map(len, candidates), np.int64, len(candidates))
    starts = np.cumsum(lengths) - lengths
    common = np.zeros(len(candidates), np.int64)
    for letter, count in Counter(name).items():
        found = np.add.reduceat(letters == ord(letter), starts, dtype=np.int64)
        common += np.minimum(found, count)
    close = 2.0 * common / (lengths + len(name)) >= cutoff
    return [candidates[i] for i in np.flatnonzero(close).tolist()]
