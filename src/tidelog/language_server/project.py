"""The files of a project as the editor has them, and which of them belong together.

A rule file is a program of its own. With it belong the tests that name it (or have its name), the fact files that these
tests read, and the schema beside it, which it shares with the other rule files of its folder.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tidelog.data.schema import SCHEMA_FILE
from tidelog.errors import TidelogError
from tidelog.language.program import Program
from tidelog.language_server.occurrences import FileKind, Occurrence, find_kind, find_occurrences, read_sections
from tidelog.rule_tests.case_reader import find_rules_file

#: The most files of a folder of the editor that are looked at, and the most bytes of one of them.
MAX_FILES = 2_000
MAX_BYTES = 1_000_000
_SKIPPED = frozenset({"node_modules", "build", "dist", "venv", "__pycache__"})
RULE_KINDS: tuple[FileKind, ...] = ("dmtl", "tdl")


@dataclass(frozen=True)
class ProjectFile:
    """A file with its text and the predicates that it mentions; a test also has the files that it reads."""

    path: str
    kind: FileKind
    text: str
    occurrences: tuple[Occurrence, ...]
    rules: str | None = None
    data: tuple[str, ...] = ()

    def find_at(self, line: int, column: int) -> Occurrence | None:
        """Find the mention at a position."""
        return next((found for found in self.occurrences if found.span.contains(line, column)), None)


class Project:
    """The files in some folders, and the texts that an editor has open."""

    def __init__(self, folders: Iterable[str] = ()) -> None:
        self.folders = [normalise_path(folder) for folder in folders]
        self._open: dict[str, str] = {}
        self._files: dict[str, tuple[object, ProjectFile]] = {}
        self._lock = threading.RLock()

    def open_text(self, path: str, text: str) -> None:
        """Take the text of a file from the editor instead of the disk."""
        with self._lock:
            self._open[normalise_path(path)] = text

    def close_text(self, path: str) -> None:
        """Take the text of a file from the disk again."""
        with self._lock:
            self._open.pop(normalise_path(path), None)

    @property
    def open_texts(self) -> dict[str, str]:
        """The texts that the editor has, by path."""
        with self._lock:
            return dict(self._open)

    def file(self, path: str) -> ProjectFile | None:
        """Return a file, or None if it is not about rules, is too large or cannot be read."""
        path = normalise_path(path)
        kind = find_kind(path)
        if kind is None:
            return None
        with self._lock:
            text = self._open.get(path)
            version: object = text
            if text is None:
                try:
                    stat = os.stat(path)
                    version = (stat.st_mtime_ns, stat.st_size)
                except OSError:
                    return None
                if stat.st_size > MAX_BYTES:
                    return None
            known = self._files.get(path)
            if known is not None and known[0] == version:
                return known[1]
            if text is None:
                try:
                    text = Path(path).read_text(encoding="utf-8-sig")
                except (OSError, UnicodeDecodeError):
                    return None
            built = _build_file(path, kind, text)
            self._files[path] = version, built
            return built

    def files(self) -> list[ProjectFile]:
        """Return all files of the folders, and those that are open or beside open ones."""
        with self._lock:
            beside = {os.path.dirname(path) for path in self._open}
            paths = dict.fromkeys(self._open)
        for folder in self.folders:
            paths.update(dict.fromkeys(_walk(folder)))
        for folder in sorted(beside):
            paths.update(dict.fromkeys(_list(folder)))
        return [found for path in paths if (found := self.file(path)) is not None]

    def load_program(self, path: str) -> Program:
        """Load a rule file with the text that the editor has."""
        file = self.file(path)
        if file is None or file.kind not in RULE_KINDS:
            return Program.load(path)
        return Program.parse(file.text, syntax=file.kind, source=path)

    def related_files(self, file: ProjectFile, name: str) -> list[ProjectFile]:
        """Return the files in which a predicate that a file mentions is the same predicate, rule files first."""
        files = self.files()
        rules = {found.path: found for found in files if found.kind in RULE_KINDS}
        tests = [found for found in files if found.kind == "test"]
        base = set(_base_rules(file, name, rules, tests))
        schemas: dict[str, ProjectFile] = {}
        for path in list(base):
            schema = self.file(os.path.join(os.path.dirname(path), SCHEMA_FILE))
            if schema is not None and _mentions(schema, name):
                schemas[schema.path] = schema
                folder = os.path.dirname(path)
                base |= {p for p, rule in rules.items() if os.path.dirname(p) == folder and _mentions(rule, name)}
        used = [test for test in tests if test.rules in base]
        facts = dict.fromkeys(path for test in used for path in test.data if find_kind(path) == "facts")
        found = [rules[path] for path in sorted(base) if path in rules]
        return [*found, *used, *schemas.values(), *(data for path in facts if (data := self.file(path)) is not None)]

    def tests_of(self, path: str) -> list[ProjectFile]:
        """Return the tests of a rule file."""
        return [file for file in self.files() if file.kind == "test" and file.rules == normalise_path(path)]

    def references(self, file: ProjectFile, name: str) -> Iterator[tuple[ProjectFile, Occurrence]]:
        """Yield every mention of a predicate that a file mentions, in all files that belong together."""
        for related in self.related_files(file, name):
            yield from ((related, found) for found in related.occurrences if found.name == name)

    def definitions(self, file: ProjectFile, name: str) -> list[tuple[ProjectFile, Occurrence]]:
        """Find what defines a predicate: the rules that derive it, else its schema, else the facts that are given."""
        mentions = list(self.references(file, name))
        for role, kinds in (("head", RULE_KINDS), ("declaration", ("schema",)), ("fact", ("test", "facts"))):
            found = [(where, at) for where, at in mentions if at.role == role and where.kind in kinds]
            if found:
                return found
        return []


def normalise_path(path: str) -> str:
    """Return a path without `.`, `..` and relative parts; links stay, since editors name files by them."""
    return os.path.abspath(path)


def _build_file(path: str, kind: FileKind, text: str) -> ProjectFile:
    occurrences = tuple(find_occurrences(text, kind))
    if kind != "test":
        return ProjectFile(path, kind, text, occurrences)
    sections = read_sections(text, path)
    names = [name for section in sections if section.word == "given" for name in section.value.split()]
    # In `Paid=orders.csv` the predicate is written out, and the name of the table does not matter.
    data = tuple(normalise_path(str(Path(path).parent / name)) for name in names if "=" not in name)
    try:
        rules = normalise_path(find_rules_file(path, sections))
    except TidelogError:
        rules = None
    return ProjectFile(path, kind, text, occurrences, rules, data)


def _mentions(file: ProjectFile, name: str) -> bool:
    return any(found.name == name for found in file.occurrences)


def _base_rules(file: ProjectFile, name: str, rules: dict[str, ProjectFile], tests: list[ProjectFile]) -> Iterable[str]:
    """Return the rule files whose predicate a file mentions."""
    match file.kind:
        case "dmtl" | "tdl":
            return (file.path,)
        case "test":
            return (file.rules,) if file.rules else ()
        case "schema":
            folder = os.path.dirname(file.path)
            return [path for path, rule in rules.items() if os.path.dirname(path) == folder and _mentions(rule, name)]
        case "facts":
            return [test.rules for test in tests if test.rules and file.path in test.data]


def _walk(folder: str) -> Iterator[str]:
    """Yield the files of a folder that are about rules, without hidden and generated folders."""
    count = 0
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(files):
            if find_kind(name) is not None:
                count += 1
                if count > MAX_FILES:
                    return
                yield os.path.join(root, name)


def _list(folder: str) -> Iterator[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    yield from (os.path.join(folder, name) for name in names if find_kind(name) is not None)
