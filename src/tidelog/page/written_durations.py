"""Durations on pages as the rules write them: `Diamondminus[0,10min]`, where explanations print `[0,600]`.

The syntax tree has numbers only, so the spelling is taken from the text of the rule that a condition belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from tidelog.language.syntax import AggregateFunction, BinaryOp, UnaryOp
from tidelog.language.time_text import UNITS, read_number

_TEXT = r'"(?:\\.|[^"\\])*"'
_UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
_WRITTEN = re.compile(rf"{_TEXT}|(?<![\w.])(\d+(?:\.\d+|\s*/\s*\d+)?(?:{_UNIT}))(?!\w)")
_NAMES = "|".join(name.value for names in (UnaryOp, BinaryOp, AggregateFunction) for name in names)
_NUMBER = r"[\d./]+"
_RANGE = re.compile(rf"{_TEXT}|\b((?:{_NAMES})[\[(])({_NUMBER}),({_NUMBER}|inf)(?=[\])])|(, needs \S+ )({_NUMBER})")


def find_written_durations(rule: str) -> dict[Fraction, str]:
    """Find the durations with a unit in the text of a rule; of several spellings of one, the first.

    >>> find_written_durations("P(X) :- Boxminus[2h,1d] Q(X).")
    {Fraction(7200, 1): '2h', Fraction(86400, 1): '1d'}
    """
    written: dict[Fraction, str] = {}
    for match in _WRITTEN.finditer(rule):
        length = read_number(match[1], units=True) if match[1] else None
        if length is not None:
            written.setdefault(length, match[1])
    return written


def write_durations(condition: str, written: Mapping[Fraction, str]) -> str:
    """Write the ranges of operators and aggregates in a condition with the durations of its rule.

    >>> write_durations("Boxminus[7200,86400] Q(a)", find_written_durations("P(X) :- Boxminus[2h,1d] Q(X)."))
    'Boxminus[2h,1d] Q(a)'
    """

    def spell(number: str) -> str:
        value = read_number(number)
        return number if value is None else written.get(value, number)

    def replace_range(match: re.Match[str]) -> str:
        if match[1]:
            return f"{match[1]}{spell(match[2])},{spell(match[3])}"
        return f"{match[4]}{spell(match[5])}" if match[4] else match[0]

    return _RANGE.sub(replace_range, condition) if written else condition
