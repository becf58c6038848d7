"""Calls of Arrow's functions without the module `pyarrow.compute`, which documents all of them when it is imported.

That takes longer than reading a small file.
"""

from __future__ import annotations

from typing import Any


def match_texts(column: Any, pattern: str) -> Any:
    """Return which texts of a column have a part that matches a regular expression; null where the text is null."""
    from pyarrow import _compute

    return _compute.call_function("match_substring_regex", [column], _compute.MatchSubstringOptions(pattern))


def trim_texts(column: Any, which: Any) -> Any:
    """Remove the spaces around some texts of a column."""
    from pyarrow import _compute

    return _compute.call_function("if_else", [which, _compute.call_function("utf8_trim_whitespace", [column]), column])


def cast_column(column: Any, type: Any) -> Any:
    """Convert a column to another type; raise an Arrow error where a value would be lost."""
    from pyarrow import _compute

    return column if column.type == type else _compute.call_function("cast", [column], _compute.CastOptions.safe(type))
