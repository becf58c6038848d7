"""What may be written at a position: predicates, variables, operators and functions; sections in tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tidelog.data.schema import TYPES, UNITS
from tidelog.language.calendar_predicates import CALENDAR_PREFIX, CALENDAR_UNITS, is_calendar
from tidelog.language.expression_tokens import AGGREGATE_WORDS, FUNCTIONS, TEXT_TESTS
from tidelog.language.tokenizer import OPERATOR_WORDS
from tidelog.language_server.occurrences import split_tokens, token_span
from tidelog.language_server.project import RULE_KINDS, Project, ProjectFile
from tidelog.language_server.rename import is_variable
from tidelog.rule_tests.case_reader import SECTIONS

#: What each operator says, for completion and hover.
OPERATOR_TEXTS = {
    "Diamondminus": "at some time in the range before now",
    "Boxminus": "at every time in the range before now",
    "Diamondplus": "at some time in the range after now",
    "Boxplus": "at every time in the range after now",
    "Since": "the right side held in the range before now, and the left side ever since",
    "Until": "the right side will hold in the range after now, and the left side until then",
    "Sometime": "at some time in the range; a negative range lies in the past",
    "Always": "at every time in the range; a negative range lies in the past",
}
#: What each aggregate and function gives.
FUNCTION_TEXTS = {
    "count": "the number of rows",
    "sum": "the sum of the values",
    "min": "the least value",
    "max": "the greatest value",
    "avg": "the average of the values",
    "last": "the value of the row that began last",
    "first": "the value of the row that began first",
    "duration": "how long the body held",
    "start": "since when the body has held",
}
#: What each calendar predicate says of a time zone.
CALENDAR_TEXTS = {
    "hour": "the hour of the day, from 0 to 23",
    "day": "the day",
    "weekday": "the day of the week, from monday to sunday",
    "week": "the week from Monday on, numbered as in ISO 8601",
    "month": "the month",
    "month_end": "the last day of a month, by its month",
    "quarter": "the quarter of the year",
    "year": "the year",
}
_SCHEMA_KEYS = ("file", "topic", "columns", "time", "start", "end", "closed", "unit", "zone", "ambiguous")


@dataclass(frozen=True)
class Completion:
    """A word to offer, what kind of word it is, a remark, and the text to insert if it differs, as a snippet."""

    label: str
    kind: Literal["predicate", "variable", "operator", "function", "keyword", "value"]
    detail: str = ""
    snippet: str | None = None


def find_completions(project: Project, file: ProjectFile, line: int, column: int) -> list[Completion]:
    """Return what may be written at a position, most specific first."""
    text = file.text.split("\n")[line][:column] if line < file.text.count("\n") + 1 else ""
    match file.kind:
        case "dmtl" | "tdl":
            return _complete_rule(project, file, line, column)
        case "test":
            if re.fullmatch(r"[a-z ]*", text) and not text.startswith(" "):
                return [Completion(f"{word}:", "keyword", "section of a test") for word in SECTIONS]
            rules = project.file(file.rules) if file.rules else None
            return _predicates(rules or file, project)
        case "schema":
            values = [Completion(word, "value", "type of a column") for word in TYPES]
            values += [Completion(word, "value", "unit of numeric times") for word in UNITS]
            return [*(Completion(key, "keyword", "key of a schema") for key in _SCHEMA_KEYS), *values]
        case "facts":
            return _predicates(file, project)


def _complete_rule(project: Project, file: ProjectFile, line: int, column: int) -> list[Completion]:
    found = [*_variables(file, line, column), *_predicates(file, project), Completion("not", "keyword", "negation")]
    if file.kind == "dmtl":
        found += _calendars(file.text.split("\n")[line][:column])
        found += [Completion("or", "keyword", "one of two literals"), Completion("and", "keyword", "two literals")]
        words = dict.fromkeys(OPERATOR_WORDS.values())
        found += [Completion(word, "operator", OPERATOR_TEXTS[word], f"{word}[$1] $0") for word in words]
        found += [Completion(word, "function", FUNCTION_TEXTS[word], f"{word}{{ $1 }}$0") for word in AGGREGATE_WORDS]
        plain = [word for word in (*FUNCTIONS, *TEXT_TESTS) if word not in AGGREGATE_WORDS]
        found += [Completion(word, "function", "function", f"{word}($1)$0") for word in plain]
    else:
        found += [Completion(word, "keyword", "directive") for word in ("#temporal", "#rigid")]
    return found


def _calendars(before: str) -> list[Completion]:
    """Return the calendar predicates, without their prefix where that is written already."""
    prefix = "" if re.search(rf"{CALENDAR_PREFIX}\w*$", before) else CALENDAR_PREFIX
    return [
        Completion(f"{prefix}{unit}", "predicate", f"calendar: {text}", f'{prefix}{unit}("$1", $2)$0')
        for unit, text in CALENDAR_TEXTS.items()
    ]


def describe_calendar(predicate: str) -> str | None:
    """Describe a calendar predicate, with an example; None for other predicates.

    >>> describe_calendar("calendar:weekday")
    'Generated by tidelog: the day of the week, from monday to sunday. Example: `calendar:weekday("UTC", wednesday)`'
    """
    unit = predicate.removeprefix(CALENDAR_PREFIX)
    if not is_calendar(predicate) or unit not in CALENDAR_TEXTS:
        return None
    example = f'{predicate}("UTC", {CALENDAR_UNITS[unit][0]})'
    return f"Generated by tidelog: {CALENDAR_TEXTS[unit]}. Example: `{example}`"


def _variables(file: ProjectFile, line: int, column: int) -> list[Completion]:
    """Return the variables of the rule around a position, without the word that is being written."""
    predicates = {found.span for found in file.occurrences}
    for rule in split_tokens(file.text, file.kind):
        first, last = rule[0].line - 1, rule[-1].end_line - 1
        if first <= line <= last:
            names = {
                str(token): None
                for token in rule
                if token.type == "NAME"
                and is_variable(str(token))
                and token_span(token) not in predicates
                and not token_span(token).contains(line, column)
            }
            return [Completion(name, "variable", "variable of this rule") for name in names if name != "_"]
    return []


def _predicates(file: ProjectFile, project: Project) -> list[Completion]:
    """Return the predicates of a file and of those that belong to it, with their arguments if they are known."""
    shapes = find_shapes(file)
    names = dict.fromkeys(found.name for found in file.occurrences)
    if file.kind in RULE_KINDS:
        names |= dict.fromkeys(found.name for test in project.tests_of(file.path) for found in test.occurrences)
    schema = next((found for found in project.files() if found.kind == "schema" and _is_beside(found, file)), None)
    if schema is not None:
        names |= dict.fromkeys(found.name for found in schema.occurrences)
    return [Completion(name, "predicate", shapes.get(name, name)) for name in names]


def find_shapes(file: ProjectFile) -> dict[str, str]:
    """Return how a file first writes each predicate, such as `Reading(T, C)`.

    >>> project = Project()
    >>> project.open_text("hot.dmtl", "Hot(T) :- Reading(T, C), C > 80.")
    >>> find_shapes(project.file("hot.dmtl"))
    {'Hot': 'Hot(T)', 'Reading': 'Reading(T, C)'}
    """
    lines = file.text.split("\n")
    shapes: dict[str, str] = {}
    for found in file.occurrences:
        rest = lines[found.span.line][found.span.start :]
        match = re.match(rf"{re.escape(found.name)}\([^()]*\)", rest)
        shapes.setdefault(found.name, match[0] if match else found.name)
    return shapes


def _is_beside(schema: ProjectFile, file: ProjectFile) -> bool:
    return schema.path.rpartition("/")[0] == file.path.rpartition("/")[0]
