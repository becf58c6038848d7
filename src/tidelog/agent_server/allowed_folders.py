"""Which files an agent may name: those inside some folders, after all links are followed, and not too large."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from tidelog.data.schema import SCHEMA_FILE
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import read_text
from tidelog.language.wording import join_words, plural
from tidelog.rule_tests.case_reader import find_rules_file, find_test_files, split_sections

#: The most test files of one call.
MAX_TEST_FILES = 200


class AllowedFolders:
    """Folders in which files may be read. Relative paths start from the first folder."""

    def __init__(self, folders: Sequence[str], max_bytes: int) -> None:
        self.folders = [Path(folder).resolve(strict=True) for folder in folders]
        self.max_bytes = max_bytes
        self._read = 0

    def start_call(self) -> None:
        """Start to count the bytes of the files of one call."""
        self._read = 0

    def resolve_file(self, name: str) -> str:
        """Return the path of a file that may be read; raise TL914 or TL913 if it is outside or too large."""
        path = self._locate(name)
        try:
            found = os.stat(path)
        except OSError as error:
            raise TidelogError(Diagnostic("TL010", f"cannot read {name}: {error.strerror}")) from None
        if not stat.S_ISREG(found.st_mode):
            raise TidelogError(Diagnostic("TL914", f"{name} is not a file"))
        self._read += found.st_size
        if self._read > self.max_bytes:
            message = f"the files of this call have more than {plural(self.max_bytes, 'byte')}"
            raise TidelogError(Diagnostic("TL913", message))
        return path

    def resolve_rules(self, name: str) -> str:
        """Return the path of a rule file; the schema beside it, which commands read, is checked, too."""
        path = self.resolve_file(name)
        schema = Path(path).parent / SCHEMA_FILE
        if schema.exists():
            self.resolve_file(str(schema))
        return path

    def resolve_data(self, name: str) -> str:
        """Return a data file, which may be `Predicate=file`, with its path resolved."""
        predicate, equals, path = name.rpartition("=")
        return f"{predicate}{equals}{self.resolve_file(path)}"

    def resolve_tests(self, names: Sequence[str]) -> list[str]:
        """Return the test files in the given files and folders, after checking all files that they read."""
        found = find_test_files([self._locate(name) for name in names])
        if len(found) > MAX_TEST_FILES:
            raise TidelogError(Diagnostic("TL913", f"these are {len(found)} test files; at most {MAX_TEST_FILES} run"))
        for name in found:
            self._check_test(self.resolve_file(name))
        return found

    def _check_test(self, name: str) -> None:
        try:
            sections = list(split_sections(read_text(name), name))
            self.resolve_rules(find_rules_file(name, sections))
        except TidelogError as error:
            if error.diagnostics[0].code in ("TL913", "TL914"):
                raise
            return  # The run reports it, before it opens another file.
        folder = Path(name).parent
        for section in sections:
            if section.word == "given":
                for data in section.value.split():
                    self.resolve_file(str(folder / data.rpartition("=")[2]))

    def _locate(self, name: str) -> str:
        """Return an absolute path to what a name means; raise TL914 unless it is inside the folders."""
        if not name or name.startswith("-") or "\0" in name:
            raise TidelogError(Diagnostic("TL914", f"`{name}` is not the path of a file"))
        path = self.folders[0] / name
        resolved = Path(os.path.realpath(path))
        if not any(resolved.is_relative_to(folder) for folder in self.folders):
            where = join_words(map(str, self.folders), "or")
            raise TidelogError(Diagnostic("TL914", f"{name} is not in a folder that may be read", help=f"use {where}"))
        # The folder is resolved, but a link keeps its own name: the name of a table is its predicate.
        return str(Path(os.path.realpath(path.parent)) / path.name) if path.name not in ("", "..") else str(resolved)


def resolve_report(folder: str | None, name: str) -> str:
    """Return the path of a page to write: a new name, or an old page, directly in the folder for reports."""
    if folder is None:
        help = "start the server with --reports FOLDER"
        raise TidelogError(Diagnostic("TL914", "this server may not write reports", help=help))
    if Path(name).name != name or not name.endswith(".html") or name.startswith(("-", ".")):
        help = "name a page without a folder, like report.html"
        raise TidelogError(Diagnostic("TL914", f"`{name}` is not the name of a page", help=help))
    path = Path(folder).resolve(strict=True) / name
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise TidelogError(Diagnostic("TL914", f"{name} is a link or a folder; nothing is written through it"))
    return str(path)
