"""Objects as users name them: all constants that input facts mention."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import parse_fact
from tidelog.language.syntax import Value

#: Names and numbers, or text that separates them by commas, as in a fact.
Objects = str | Iterable[str | Fraction | int]


def parse_objects(objects: Objects) -> tuple[Value, ...]:
    """Return distinct constants; text is parsed like the arguments of a fact."""
    if isinstance(objects, str):
        try:
            objects = parse_fact(f"O({objects})", "<objects>")[0].args
        except TidelogError as problem:
            message = f"cannot read the objects: {problem.diagnostics[0].message}"
            raise TidelogError(Diagnostic("TL602", message, problem.diagnostics[0].place)) from None
    found = dict.fromkeys(value if isinstance(value, str) else Fraction(value) for value in objects)
    if not found:
        raise TidelogError(Diagnostic("TL602", "no objects are given"))
    return tuple(found)
