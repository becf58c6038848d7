"""Tables of a TOML file, read key by key: what is missing, unknown or wrong is noted, and reading goes on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.codes import suggest
from tidelog.language.times import parse_time
from tidelog.spark.toml import Entry, Path
from tidelog.streaming.times import duration
from tidelog.timeline.interval import Time

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_KINDS: dict[type, str] = {bool: "true or false", int: "a whole number", str: "text", dict: "a table", list: "a list"}


class Table:
    """One table of a file. Every method asks for a key; `finish` refuses the keys that nobody asked for."""

    def __init__(
        self, values: Mapping[str, Any], places: Mapping[Path, Entry], errors: list[Diagnostic], path: Path = ()
    ) -> None:
        self.values, self.places, self.errors, self.path = values, places, errors, path
        self._asked: dict[str, None] = {}

    def text(self, key: str, *, required: bool = False) -> str | None:
        value = self._get(key, str, required)
        if value is None:
            return None
        if not value.strip():
            self.refuse("TL805", f"`{key}` is empty", key)
            return None
        return self._filled(value, key)

    def required(self, key: str) -> str:
        """Text that must be there; what stands in for it where it is not goes no further than the error."""
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

    def number(self, key: str, least: int) -> int | None:
        value = self._get(key, int)
        if value is not None and value < least:
            self.refuse("TL805", f"`{key}` is {value}, and must be {least} or more", key)
            return None
        return None if value is None else int(value)

    def share(self, key: str) -> float | None:
        """A number from 0 to 1."""
        value = self._ask(key)
        if value is None or _is_share(value):
            return None if value is None else float(value)
        self.refuse("TL805", f"`{key}` is not a number from 0 to 1", key)
        return None

    def shares(self, key: str) -> float | dict[str, float] | None:
        """The same, or a table of such numbers."""
        value = self._ask(key)
        if not isinstance(value, dict):
            return self.share(key)
        for name, part in value.items():
            if not _is_share(part):
                self._note("TL805", f"`{name}` is not a number from 0 to 1", (*self.path, key, name), value=True)
        return {name: float(part) for name, part in value.items() if _is_share(part)}

    def duration(self, key: str) -> Fraction | None:
        """A length of time, as in rules: `5s`, or a number."""
        value = self._ask(key)
        if value is None:
            return None
        try:
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ValueError
            return duration(str(value))
        except (TidelogError, ValueError):
            self.refuse("TL805", f"`{key}` is not a length of time", key, help='write "5s", "10min", or a number')
            return None

    def time(self, key: str) -> Time | None:
        """A time, as in facts: a date, or a number."""
        value = self._ask(key)
        if value is None:
            return None
        try:
            return parse_time(str(value))[0]
        except TidelogError as problem:
            self.refuse("TL805", f"`{key}` is not a time", key, law=problem.diagnostics[0].law)
            return None

    def times(self, key: str) -> tuple[Time, ...]:
        """A list of times."""
        value = self._get(key, list)
        try:
            return tuple(parse_time(str(item))[0] for item in value or ())
        except TidelogError as problem:
            self.refuse("TL805", f"`{key}` is not a list of times", key, law=problem.diagnostics[0].law)
            return ()

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, or a single one."""
        value = self._ask(key)
        items = [value] if isinstance(value, str) else value
        if items is None:
            return ()
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            self.refuse("TL805", f"`{key}` must be a list of texts", key)
            return ()
        return tuple(self._filled(item, key) for item in items)

    def numbers(self, key: str) -> tuple[int, ...] | None:
        """A list of whole numbers, or a single one."""
        value = self._ask(key)
        items = value if isinstance(value, list) else [value]
        if value is None:
            return None
        if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
            self.refuse("TL805", f"`{key}` must be a list of whole numbers", key)
            return None
        return tuple(items)

    def options(self, key: str) -> dict[str, str]:
        """A table of plain values, as Spark takes them: text."""
        found: dict[str, str] = {}
        for name, value in (self._get(key, dict) or {}).items():
            if isinstance(value, dict | list):
                self._note("TL805", f"`{name}` must be text, a number, true or false", (*self.path, key, name))
            elif isinstance(value, bool):
                found[name] = str(value).lower()
            else:
                found[name] = self._filled(str(value), key, name)
        return found

    def table(self, key: str, *, required: bool = False) -> Table:
        values = self._get(key, dict, required) or {}
        return Table(values, self.places, self.errors, (*self.path, key))

    def tables(self) -> Iterator[tuple[str, Table | str]]:
        """All entries of a table whose keys are names: tables, or texts that stand for one."""
        for name in self.values:
            value = self._ask(name)
            if isinstance(value, str):
                yield name, self._filled(value, name)
            else:
                yield name, self.table(name)

    def finish(self) -> None:
        """Refuse the keys that nobody asked for."""
        for key in self.values:
            if key not in self._asked:
                close = suggest(key, self._asked)
                of = f"[{'.'.join(map(str, self.path))}]" if self.path else "a pipeline"
                known = f"the keys of {of} are {', '.join(self._asked)}"
                self._note(
                    "TL803",
                    f"there is no key `{key}` here",
                    (*self.path, key),
                    known,
                    close and f"did you mean {close}?",
                )

    def refuse(self, code: str, message: str, key: str = "", law: str | None = None, help: str | None = None) -> None:
        """Note what is wrong with the value of a key, or with the whole table."""
        self._note(code, message, (*self.path, key) if key else self.path, law, help, value=bool(key))

    def place(self, key: str = "") -> Place | None:
        """Where the value of a key is, or the table itself."""
        return _of(self.places.get((*self.path, key) if key else self.path), bool(key))

    def _note(
        self, code: str, message: str, path: Path, law: str | None = None, help: str | None = None, value: bool = False
    ) -> None:
        self.errors.append(Diagnostic(code, message, _of(self.places.get(path), value), law, help))

    def _ask(self, key: str) -> Any:
        self._asked[key] = None
        return self.values.get(key)

    def _get(self, key: str, kind: type, required: bool = False) -> Any:
        value = self._ask(key)
        if value is None:
            if required:
                of = f"[{'.'.join(map(str, self.path))}]" if self.path else "the file"
                self._note("TL804", f"{of} has no `{key}`", self.path)
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.refuse("TL805", f"`{key}` must be {_KINDS[kind]}", key)
            return None
        return value

    def _filled(self, text: str, *keys: str) -> str:
        """A text with the values of `${NAME}` from the environment, where secrets and host names belong."""
        for name in _VARIABLE.findall(text):
            if name not in os.environ:
                path = (*self.path, *keys)
                self._note("TL805", f"there is no environment variable {name}", path, value=True)
        return _VARIABLE.sub(lambda found: os.environ.get(found[1], ""), text)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _of(entry: Entry | None, value: bool) -> Place | None:
    if entry is None:
        return None
    return entry.value if value else entry.key
