"""What an editor shows about the word under the cursor."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tidelog.analysis.time_reach import compute_retention as compute_written_retention
from tidelog.check_report import find_problems, find_recursive_groups, find_visible_strata
from tidelog.data.schema import Schema, find_schema_file, load_schema
from tidelog.errors import TidelogError
from tidelog.language.fact_text import format_fact
from tidelog.language.tokenizer import OPERATOR_WORDS
from tidelog.language_server.completion import FUNCTION_TEXTS, OPERATOR_TEXTS, describe_calendar, find_shapes
from tidelog.language_server.occurrences import Occurrence, Span
from tidelog.language_server.project import RULE_KINDS, Project, ProjectFile
from tidelog.language_server.rule_runs import EXAMPLE_BYTES
from tidelog.rule_tests.case_reader import RuleTest, parse_tests
from tidelog.timeline.interval import INF, Time, format_time

_WORD = re.compile(r"[^\W\d]\w*|◇⁻|◇⁺|⊟|⊞")
_TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".facts")
#: Finds a fact of a predicate in a data file; gets the path, the schema file and the predicate.
ExampleFinder = Callable[[str, str | None, str], str | None]


def describe_at(
    project: Project, file: ProjectFile, line: int, column: int, find_example: ExampleFinder
) -> tuple[str, Span] | None:
    """Describe the predicate or the operator at a position, in Markdown; None if there is nothing to say."""
    occurrence = file.find_at(line, column)
    if occurrence is not None and (calendar := describe_calendar(occurrence.name)):
        return calendar, occurrence.span
    if occurrence is not None:
        return "\n\n".join(_describe_predicate(project, file, occurrence, find_example)), occurrence.span
    lines = file.text.split("\n")
    if file.kind not in RULE_KINDS or line >= len(lines):
        return None
    for found in _WORD.finditer(lines[line]):
        span = Span(line, found.start(), found.end())
        if span.contains(line, column):
            word = OPERATOR_WORDS.get(found[0].lower(), found[0])
            said = OPERATOR_TEXTS.get(word) or FUNCTION_TEXTS.get(word)
            return (f"**{word}**: {said}", span) if said else None
    return None


def _describe_predicate(
    project: Project, file: ProjectFile, occurrence: Occurrence, find_example: ExampleFinder
) -> Iterator[str]:
    name = occurrence.name
    related = project.related_files(file, name)
    programs = [found for found in related if found.kind in RULE_KINDS]
    programs.sort(key=lambda found: found.path not in (file.path, file.rules))
    rules = programs[0] if programs else None
    schema = _load_schema(rules.path) if rules else None
    columns = schema.column_names(name) if schema else None
    shape = f"{name}({', '.join(columns)})" if columns else find_shapes(rules or file).get(name, name)
    yield f"```dmtl\n{shape}\n```"
    if rules is not None:
        comment = find_comment(rules, name)
        if comment:
            yield comment
        yield from _describe_analysis(project, rules, name)
    examples = (fact for program in programs if (fact := _find_fact(project, program, name)))
    example = next(examples, None) or (_search_data(rules, schema, name, find_example) if rules else None)
    if example:
        yield f"Example: `{example}`"


def _describe_analysis(project: Project, rules: ProjectFile, name: str) -> Iterator[str]:
    """Yield how long facts are kept, the stratum and recursion, as `tidelog check` reports them."""
    from tidelog.windows.memory_report import compute_retention

    try:
        program = project.load_program(rules.path)
        program.require_times()
        if find_problems(program, None):
            retention = compute_written_retention(program, program.timeline)
        else:
            retention = compute_retention(program)
        strata = find_visible_strata(program, program.timeline) or ()
    except TidelogError:
        return
    kept = retention.get(name)
    if kept is not None:
        yield _describe_retention(kept)
    stratum = _find_stratum(strata, name)
    if stratum is not None:
        yield stratum
    if any(name in group for group in find_recursive_groups(program)):
        yield "Recursive: it depends on itself."


def _describe_retention(kept: Time) -> str:
    if kept == INF:
        return "Retention: its facts are kept for ever; some rule looks back without limit."
    if kept == 0:
        return "Retention: 0; no rule looks back at its facts."
    return f"Retention: {format_time(kept)}, the farthest that a rule looks back at its facts."


def _find_stratum(strata: tuple[tuple[str, ...], ...], name: str) -> str | None:
    for number, group in enumerate(strata, 1):
        if name in group:
            return f"Stratum {number} of {len(strata)}."
    return None


def find_comment(file: ProjectFile, name: str) -> str:
    """Return the comment lines directly above the first rule of a predicate that has any, without comment signs.

    >>> project = Project()
    >>> project.open_text("hot.dmtl", "% Above 80.\\nHot(T) :- Reading(T, C), C > 80.")
    >>> find_comment(project.file("hot.dmtl"), "Hot")
    'Above 80.'
    """
    lines = file.text.split("\n")
    for found in file.occurrences:
        if found.name != name or found.role != "head":
            continue
        at = found.span.line
        block: list[str] = []
        while at > 0 and lines[at - 1].lstrip().startswith(("%", "#")):
            at -= 1
            block.insert(0, lines[at].strip().lstrip("%# "))
        if block:
            return "\n".join(block)
    return ""


def _find_fact(project: Project, rules: ProjectFile, name: str) -> str | None:
    """Return a fact that a test of the rules expects or gives."""
    for file in project.tests_of(rules.path):
        try:
            tests: list[RuleTest] = parse_tests(file.text, file.path, project.load_program)
        except TidelogError:
            continue
        for test in tests:
            found = next((fact for fact in (*test.expected, *test.given) if fact.predicate == name), None)
            if found is not None:
                return format_fact(found, test.dates)
    return None


def _search_data(rules: ProjectFile, schema: Schema | None, name: str, find_example: ExampleFinder) -> str | None:
    """Return a fact from the table that the schema names, or from a file beside the rules with the predicate's name."""
    folder = Path(rules.path).parent
    table = schema.tables.get(name) if schema else None
    names = [table.file] if table and table.file else [f"{name}{suffix}" for suffix in _TABLE_SUFFIXES]
    for path in (folder / file for file in names):
        if path.is_file() and os.path.getsize(path) <= EXAMPLE_BYTES:
            try:
                return find_example(str(path), find_schema_file(rules.path), name)
            except TidelogError:
                return None
    return None


def _load_schema(rules: str) -> Schema | None:
    path = find_schema_file(rules)
    try:
        return load_schema(path) if path else None
    except TidelogError:
        return None
