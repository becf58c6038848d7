"""Read tables of a TOML file key by key: collect missing, unknown and wrong keys as errors, and continue."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.time_like import to_duration
from tidelog.language.time_text import parse_time
from tidelog.language.toml_places import Entry, KeyPath
from tidelog.language.wording import suggest
from tidelog.timeline.interval import Time

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_KINDS: dict[type, str] = {bool: "true or false", int: "a whole number", str: "text", dict: "a table", list: "a list"}


class TomlTable:
    """One table of a file. Every method reads a key; `finish` refuses the keys that were not read."""

    def __init__(
        self,
        values: Mapping[str, Any],
        places: Mapping[KeyPath, Entry],
        errors: list[Diagnostic],
        path: KeyPath = (),
        file_kind: str = "a pipeline",
    ) -> None:
        self.values, self.places, self.errors, self.path = values, places, errors, path
        self.file_kind = file_kind
        self._read_keys: dict[str, None] = {}

    def text(self, key: str, *, required: bool = False) -> str | None:
        value = self._get(key, str, required)
        if value is None:
            return None
        if not value.strip():
            self.refuse("TL805", f"`{key}` is empty", key)
            return None
        return self._expand(value, key)

    def required_text(self, key: str) -> str:
        """Read text that is required; if it is missing, note an error and return an empty string."""
        return self.text(key, required=True) or ""

    def choice(self, key: str, options: tuple[str, ...]) -> str | None:
        value = self.text(key)
        if value is None or value in options:
            return value
        close = suggest(value, options)
        self.refuse(
            "TL805",
            f"`{key}` cannot be `{value}`",
            key,
            law=f"`{key}` is one of {', '.join(options)}",
            help=f"did you mean {close}?" if close else None,
        )
        return None

    def flag(self, key: str) -> bool:
        return bool(self._get(key, bool))

    def optional_flag(self, key: str) -> bool | None:
        """Read true or false; None if the key is not there."""
        value = self._get(key, bool)
        return None if value is None else bool(value)

    def number(self, key: str, least: int) -> int | None:
        value = self._get(key, int)
        if value is not None and value < least:
            self.refuse("TL805", f"`{key}` is {value}, and must be {least} or more", key)
            return None
        return None if value is None else int(value)

    def probability(self, key: str) -> float | None:
        """Read a number from 0 to 1."""
        value = self._lookup(key)
        if value is None or _is_probability(value):
            return None if value is None else float(value)
        self.refuse("TL805", f"`{key}` is not a number from 0 to 1", key)
        return None

    def probabilities(self, key: str) -> float | dict[str, float] | None:
        """Read a number from 0 to 1, or a table of such numbers."""
        value = self._lookup(key)
        if not isinstance(value, dict):
            return self.probability(key)
        for name, part in value.items():
            if not _is_probability(part):
                self._note("TL805", f"`{name}` is not a number from 0 to 1", (*self.path, key, name), value=True)
        return {name: float(part) for name, part in value.items() if _is_probability(part)}

    def duration(self, key: str) -> Fraction | None:
        """Read a length of time, as in rules: `5s`, or a number."""
        value = self._lookup(key)
        if value is None:
            return None
        try:
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ValueError
            return to_duration(str(value))
        except (TidelogError, ValueError):
            self.refuse("TL805", f"`{key}` is not a length of time", key, help='write "5s", "10min", or a number')
            return None

    def time(self, key: str) -> Time | None:
        """Read a time, as in facts: a date, or a number."""
        value = self._lookup(key)
        if value is None:
            return None
        try:
            return parse_time(str(value))[0]
        except TidelogError as problem:
            self.refuse("TL805", f"`{key}` is not a time", key, law=problem.diagnostics[0].law)
            return None

    def times(self, key: str) -> tuple[Time, ...]:
        """Read a list of times."""
        value = self._get(key, list)
        try:
            return tuple(parse_time(str(item))[0] for item in value or ())
        except TidelogError as problem:
            self.refuse("TL805", f"`{key}` is not a list of times", key, law=problem.diagnostics[0].law)
            return ()

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of texts, or a single text."""
        value = self._lookup(key)
        items = [value] if isinstance(value, str) else value
        if items is None:
            return ()
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            self.refuse("TL805", f"`{key}` must be a list of texts", key)
            return ()
        return tuple(self._expand(item, key) for item in items)

    def numbers(self, key: str) -> tuple[int, ...] | None:
        """Read a list of whole numbers, or a single one."""
        value = self._lookup(key)
        items = value if isinstance(value, list) else [value]
        if value is None:
            return None
        if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
            self.refuse("TL805", f"`{key}` must be a list of whole numbers", key)
            return None
        return tuple(items)

    def options(self, key: str) -> dict[str, str]:
        """Read a table of plain values as text, the form that Spark takes."""
        found: dict[str, str] = {}
        for name, value in (self._get(key, dict) or {}).items():
            if isinstance(value, dict | list):
                self._note("TL805", f"`{name}` must be text, a number, true or false", (*self.path, key, name))
            elif isinstance(value, bool):
                found[name] = str(value).lower()
            else:
                found[name] = self._expand(str(value), key, name)
        return found

    def table(self, key: str, *, required: bool = False) -> TomlTable:
        values = self._get(key, dict, required) or {}
        return TomlTable(values, self.places, self.errors, (*self.path, key), self.file_kind)

    def tables(self) -> Iterator[tuple[str, TomlTable | str]]:
        """Yield all entries of a table whose keys are names: tables, or texts that stand for one."""
        for name in self.values:
            value = self._lookup(name)
            if isinstance(value, str):
                yield name, self._expand(value, name)
            else:
                yield name, self.table(name)

    def finish(self) -> None:
        """Note an error for every key that was not read."""
        for key in self.values:
            if key not in self._read_keys:
                close = suggest(key, self._read_keys)
                of = f"[{'.'.join(map(str, self.path))}]" if self.path else self.file_kind
                known = f"the keys of {of} are {', '.join(self._read_keys)}"
                self._note(
                    "TL803",
                    f"there is no key `{key}` here",
                    (*self.path, key),
                    known,
                    close and f"did you mean {close}?",
                )

    def refuse(self, code: str, message: str, key: str = "", law: str | None = None, help: str | None = None) -> None:
        """Note an error in the value of a key, or in the whole table."""
        self._note(code, message, (*self.path, key) if key else self.path, law, help, value=bool(key))

    def place(self, key: str = "") -> Place | None:
        """Return the place of the value of a key, or of the table itself."""
        return _place_of(self.places.get((*self.path, key) if key else self.path), bool(key))

    def _note(
        self,
        code: str,
        message: str,
        path: KeyPath,
        law: str | None = None,
        help: str | None = None,
        value: bool = False,
    ) -> None:
        self.errors.append(Diagnostic(code, message, _place_of(self.places.get(path), value), law, help))

    def _lookup(self, key: str) -> Any:
        self._read_keys[key] = None
        return self.values.get(key)

    def _get(self, key: str, kind: type, required: bool = False) -> Any:
        value = self._lookup(key)
        if value is None:
            if required:
                of = f"[{'.'.join(map(str, self.path))}]" if self.path else "the file"
                self._note("TL804", f"{of} has no `{key}`", self.path)
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.refuse("TL805", f"`{key}` must be {_KINDS[kind]}", key)
            return None
        return value

    def _expand(self, text: str, *keys: str) -> str:
        """Replace `${NAME}` in a text by the environment variable, where secrets and host names belong."""
        for name in _VARIABLE.findall(text):
            if name not in os.environ:
                path = (*self.path, *keys)
                self._note("TL805", f"there is no environment variable {name}", path, value=True)
        return _VARIABLE.sub(lambda found: os.environ.get(found[1], ""), text)


def _is_probability(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _place_of(entry: Entry | None, value: bool) -> Place | None:
    if entry is None:
        return None
    return entry.value if value else entry.key
