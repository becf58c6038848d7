"""TOML with places: every key and value is found where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.errors import TidelogError
from tidelog.language.toml_places import KeyPath, read_toml

EVERYTHING = '''# a comment
a = 1
"b c".d = { x = 1, y = [1, 2,
  3], "z]" = "q]}" } # c
[t.u]
k = """
many "" lines
"""
s = \'\'\'x'\'\'\'
date = 1979-05-27 07:32:00
[[arr]]
n = 1
[arr.sub]
v = 'x'
[[arr]]
n = 2
[[arr.in]]
w = [[1],[2,{a=1}]]
'''


def paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    yield path
    if isinstance(value, dict):
        for key, part in value.items():
            yield from paths(part, (*path, key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from paths(part, (*path, number))


def test_every_value_has_a_place() -> None:
    values, places = read_toml(EVERYTHING, "f.toml")
    assert set(places) == set(paths(values))


@pytest.mark.parametrize(
    "path, line, column, length",
    [(("a",), 2, 5, 1), (("b c", "d", "z]"), 4, 14, 5), (("t", "u", "date"), 10, 8, 19), (("arr", 1, "n"), 16, 5, 1)],
)
def test_values_are_where_they_stand(path: KeyPath, line: int, column: int, length: int) -> None:
    place = read_toml(EVERYTHING, "f.toml")[1][path].value
    assert (place.line, place.column, place.length) == (line, column, length)


def test_what_is_not_toml_is_refused_with_its_place() -> None:
    with pytest.raises(TidelogError) as raised:
        read_toml("a = 1\nb = hello\n", "f.toml")
    (found,) = raised.value.diagnostics
    assert found.code == "TL802"
    assert found.place is not None
    assert (found.place.line, found.place.column) == (2, 5)


_KEY = st.text("ab_-", min_size=1, max_size=3) | st.text('x .]"#=', min_size=1, max_size=4)
_SCALAR = st.integers(-9, 9) | st.booleans() | st.text("a'\"\\#]},\n= ", max_size=6)
_VALUE = st.recursive(
    _SCALAR, lambda part: st.lists(part, max_size=3) | st.dictionaries(_KEY, part, max_size=3), max_leaves=6
)


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return "[" + ", # ]\n ".join(_written(part) for part in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)} = {_written(part)}" for key, part in value.items()) + "}"
    return str(value)


@pytest.mark.slow
@given(st.dictionaries(_KEY, _VALUE, max_size=4), st.dictionaries(_KEY, _VALUE, max_size=3))
def test_any_file_is_walked_to_its_end(top: dict[str, Any], table: dict[str, Any]) -> None:
    # Line breaks within tables in braces are not TOML, so that lists there stay on one line.
    lines = [f"{_text(key)} = {_written(value)}".replace(", # ]\n ", ", ") for key, value in top.items()]
    lines += ["[last-table]"] + [
        f"{_text(key)} = {_written(value)}".replace(", # ]\n ", ", ") for key, value in table.items()
    ]
    values, places = read_toml("\n".join(lines), "f.toml")
    assert values == {**top, "last-table": table}
    assert set(places) == set(paths(values))
