"""Rename predicates in all files that belong together, and variables within a rule."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tidelog.data.schema import SCHEMA_FILE, load_schema
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.calendar_predicates import is_calendar
from tidelog.language_server.diagnosis import diagnose_file
from tidelog.language_server.occurrences import NAME, Span, find_kind, find_occurrences, split_tokens, token_span
from tidelog.language_server.project import RULE_KINDS, Project, ProjectFile

_TABLE_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".pq")


def find_variable(file: ProjectFile, line: int, column: int) -> tuple[str, list[Span]] | None:
    """Find the variable at a position of a rule file, and all its spans in the same rule."""
    if file.kind not in RULE_KINDS:
        return None
    predicates = {found.span for found in file.occurrences}
    for rule in split_tokens(file.text, file.kind):
        names = [(str(token), token_span(token)) for token in rule if token.type == "NAME"]
        names = [(name, span) for name, span in names if span not in predicates and is_variable(name)]
        for name, span in names:
            if span.contains(line, column) and name != "_":
                return name, [other for text, other in names if text == name]
    return None


def is_variable(name: str) -> bool:
    """Return whether a term that is written like this is a variable."""
    return name[0].isupper() or name[0] == "_"


def rename_at(project: Project, file: ProjectFile, line: int, column: int, new: str) -> dict[str, list[Span]]:
    """Return the spans to replace by the new name, by file. Raises TL912 if the rules would change their meaning."""
    if not re.fullmatch(NAME, new):
        raise _refuse(f"`{new}` is not a name", "a name has letters, digits and `_`, and does not begin with a digit")
    occurrence = file.find_at(line, column)
    if occurrence is not None:
        return _rename_predicate(project, file, occurrence.name, new)
    variable = find_variable(file, line, column)
    if variable is None:
        raise _refuse("there is no predicate or variable here")
    _, spans = variable
    if not is_variable(new):
        raise _refuse(f"`{new}` would be a constant", "variables begin with a capital letter or `_`")
    if new in _names_of_rule(file, spans[0]):
        raise _refuse(f"the rule has the name {new} already")
    edits = {file.path: spans}
    _require_same_meaning(project, [file], edits, new)
    return edits


def _rename_predicate(project: Project, file: ProjectFile, name: str, new: str) -> dict[str, list[Span]]:
    if is_calendar(name):
        raise _refuse(f"tidelog generates {name}, under this name only")
    related = project.related_files(file, name) or [file]
    taken = next((at.path for at in related for found in at.occurrences if found.name == new), None)
    if taken is not None and new != name:
        raise _refuse(f"there is a predicate {new} already, in {os.path.basename(taken)}")
    table = _find_table_of(related, name)
    if table is not None:
        help = f"rename the file too, or declare `[schema.{name}]` with its `file` in {SCHEMA_FILE} first"
        raise _refuse(f"the name of the table {table} says that it holds facts of {name}", help)
    unread = _find_unread_facts(project, related)
    if unread is not None:
        raise _refuse(f"{unread}, which a test reads, is too large to be changed, and may have facts of {name}")
    edits = {at.path: [found.span for found in at.occurrences if found.name == name] for at in related}
    edits = {path: spans for path, spans in edits.items() if spans}
    _require_same_meaning(project, related, edits, new)
    return edits


def _find_table_of(files: Iterable[ProjectFile], name: str) -> str | None:
    """Find a table whose file name gives the predicate: the editor cannot rename it together with the rules."""
    for file in files:
        folder = Path(file.path).parent
        if file.kind not in (*RULE_KINDS, "test"):
            continue
        schema = folder / SCHEMA_FILE
        if schema.is_file() and _declares_file(schema, name):
            continue
        beside = [str(folder / f"{name}{suffix}") for suffix in _TABLE_SUFFIXES]
        for path in (*beside, *file.data):
            is_table = Path(path).stem == name and Path(path).suffix in _TABLE_SUFFIXES
            if is_table and os.path.exists(path):
                return os.path.basename(path)
    return None


def _find_unread_facts(project: Project, files: Iterable[ProjectFile]) -> str | None:
    """Find a file of fact text that a test reads and that the editor cannot change."""
    for file in files:
        for path in file.data:
            if find_kind(path) == "facts" and os.path.exists(path) and project.file(path) is None:
                return os.path.basename(path)
    return None


def _declares_file(schema: Path, name: str) -> bool:
    try:
        table = load_schema(schema).tables.get(name)
    except TidelogError:
        return False
    return table is not None and (table.file or table.topic) is not None


def _names_of_rule(file: ProjectFile, span: Span) -> set[str]:
    for rule in split_tokens(file.text, file.kind):
        if any(token_span(token) == span for token in rule):
            return {str(token) for token in rule if token.type == "NAME"}
    return set()


def _require_same_meaning(
    project: Project, files: Sequence[ProjectFile], edits: dict[str, list[Span]], new: str
) -> None:
    """Raise TL912 if a file would have other problems or other predicates: `not` is a name, but not of a predicate."""
    for file in files:
        if file.path not in edits or file.kind not in RULE_KINDS:
            continue
        text = apply_edits(file.text, edits[file.path], new)
        trial = Project()
        trial.open_text(file.path, text)
        changed = trial.file(file.path)
        assert changed is not None
        before = sorted(found.code for found in diagnose_file(project, file))
        after = sorted(found.code for found in diagnose_file(trial, changed))
        same_count = len(find_occurrences(text, file.kind)) == len(file.occurrences)
        if before != after or not same_count:
            raise _refuse(f"with the name `{new}`, the rules would be read in another way")


def apply_edits(text: str, spans: Iterable[Span], new: str) -> str:
    """Replace spans of a text by a name.

    >>> apply_edits("A(X) :- B(X).", [Span(0, 0, 1)], "Hot")
    'Hot(X) :- B(X).'
    """
    lines = text.split("\n")
    for span in sorted(spans, key=lambda found: (found.line, found.start), reverse=True):
        line = lines[span.line]
        lines[span.line] = line[: span.start] + new + line[span.end :]
    return "\n".join(lines)


def _refuse(message: str, help: str | None = None) -> TidelogError:
    return TidelogError(Diagnostic("TL912", message, help=help))
