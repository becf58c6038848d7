"""Test files: the answers that rules must give for some facts, in plain text beside the rules.

A file consists of sections. Each begins with a word and a colon at the start of a line; facts follow one per line, as
in fact files. Sections before the first `test:` apply to all tests of the file.

    rules: door.dmtl                   the rules; by default the rule file with the same name as this file
    given: doors.facts                 input facts, from files and from the lines below
    test: a guard keeps it quiet       begins a test with this name
    expect:                            these facts hold
    expect only:                       these facts hold, and no others of their predicates
    expect not:                        these facts hold at no time of their intervals
    query: Alarm                       predicates with no facts but those of `expect only:`
    until: 20                          ignore everything after this time
    timeline: integer                  also `delay: 5s` and `stream: no`
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import cast

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.fact_text import parse_fact
from tidelog.language.program import Program, read_text
from tidelog.language.syntax import Fact
from tidelog.language.time_arguments import read_dates
from tidelog.language.time_text import parse_time, read_number
from tidelog.language.wording import suggest
from tidelog.timeline.interval import TimelineName

#: The suffix of test files.
SUFFIX = ".test"

#: The words that begin a section of a test file.
SECTIONS = (
    "rules",
    "given",
    "test",
    "expect",
    "expect only",
    "expect not",
    "query",
    "until",
    "timeline",
    "delay",
    "stream",
)
_HEADING = re.compile(r"([a-z][a-z ]*?)[ \t]*:(?:[ \t]+(.*?))?[ \t]*$")


@dataclass(frozen=True)
class RuleTest:
    """One test: input facts, the facts that must follow, and those that must not."""

    name: str
    source: str
    line: int
    program: Program
    given: tuple[Fact, ...] = ()
    files: tuple[str, ...] = ()
    expected: tuple[Fact, ...] = ()
    unwanted: tuple[Fact, ...] = ()
    #: Predicates that may have no facts but the expected ones.
    closed: frozenset[str] = frozenset()
    until: Fraction | None = None
    timeline: TimelineName | None = None
    delay: Fraction = Fraction(0)
    stream: bool = True
    dates: bool = False

    @property
    def queries(self) -> tuple[str, ...]:
        """The predicates that the test is about."""
        mentioned = {fact.predicate for fact in (*self.expected, *self.unwanted)}
        return tuple(sorted(mentioned | self.closed))


@dataclass
class Section:
    """A heading of a test file with its value, and the lines below it with their numbers, without comments."""

    word: str
    value: str
    place: Place
    lines: list[tuple[int, str]] = field(default_factory=list)


def find_test_files(paths: Iterable[str]) -> list[str]:
    """Find test files: paths of files as they are, and the test files in folders, hidden ones excepted."""
    files: list[str] = []
    for name in paths:
        path = Path(name)
        if path.is_dir():
            inside = (p for p in path.rglob(f"*{SUFFIX}") if p.is_file())
            files += sorted(
                str(p) for p in inside if not any(part.startswith(".") for part in p.relative_to(path).parts)
            )
        else:
            files.append(name)
    return list(dict.fromkeys(files))


def read_tests(name: str) -> list[RuleTest]:
    """Read the tests of a file; raise a TidelogError that lists everything that is wrong with it."""
    return parse_tests(read_text(name), name)


def parse_tests(text: str, name: str, load: Callable[[str], Program] = Program.load) -> list[RuleTest]:
    """Read the tests in the text of a file; `load` loads the rules that they test."""
    sections = list(split_sections(text, name))
    starts = [number for number, section in enumerate(sections) if section.word == "test"]
    if not starts:
        place = Place(name, 1, 1)
        raise TidelogError(
            Diagnostic("TL901", "there is no test in this file", place, help="begin one: test: its name")
        )
    common = sections[: starts[0]]
    program = load(find_rules_file(name, common))
    errors: list[Diagnostic] = []
    base = _apply_sections(RuleTest("", name, 0, program), common, errors)
    tests: list[RuleTest] = []
    for start, stop in zip(starts, [*starts[1:], len(sections)], strict=True):
        heading, *own = sections[start:stop]
        test = replace(base, name=heading.value or f"line {heading.place.line}", line=heading.place.line)
        test = _apply_sections(test, own, errors)
        if not test.queries:
            errors.append(Diagnostic("TL901", "this test expects nothing", heading.place, help="add expect: and facts"))
        tests.append(test)
    if errors:
        raise TidelogError(errors)
    return tests


def split_sections(text: str, source: str) -> Iterator[Section]:
    """Split a text into sections. Lines that are not headings belong to the section before them."""
    current: Section | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("%")[0] if '"' not in raw else raw
        if not line.strip() or line.lstrip().startswith(("%", "#")):
            continue
        heading = _HEADING.match(line)
        if heading is None and current is not None:
            current.lines.append((number, line))
            continue
        place = Place(source, number, 1, len(line.rstrip()), raw)
        if heading is None:
            raise TidelogError(Diagnostic("TL901", "a line before the first section", place))
        word = heading[1]
        if word not in SECTIONS:
            close = suggest(word, SECTIONS)
            help = f"did you mean `{close}:`?" if close else None
            raise TidelogError(Diagnostic("TL901", f"there is no section `{word}:`", place, help=help))
        if current is not None:
            yield current
        current = Section(word, heading[2] or "", place)
    if current is not None:
        yield current


def find_rules_file(name: str, common: Iterable[Section]) -> str:
    """Find the rules of a test file: those that it names, or the rule file with the same name beside it."""
    folder = Path(name).parent
    for section in common:
        if section.word == "rules":
            return str(folder / section.value)
    stem = Path(name).name.removesuffix(SUFFIX)
    for suffix in (".dmtl", ".tdl"):
        if (folder / f"{stem}{suffix}").exists():
            return str(folder / f"{stem}{suffix}")
    place = Place(name, 1, 1)
    message = f"there are no rules to test: neither {stem}.dmtl nor {stem}.tdl is beside this file"
    raise TidelogError(Diagnostic("TL901", message, place, help="name them: rules: FILE"))


def _apply_sections(test: RuleTest, sections: Iterable[Section], errors: list[Diagnostic]) -> RuleTest:
    """Apply sections to a test; collect errors instead of stopping at the first."""
    for section in sections:
        try:
            test = _apply_section(test, section)
        except TidelogError as error:
            errors += error.diagnostics
    return test


def _apply_section(test: RuleTest, section: Section) -> RuleTest:
    """Return the test with the content of one section added; raise TL901 if the section is malformed."""
    word, value = section.word, section.value
    facts, has_dates = _parse_facts(section, test)
    if facts and word not in ("given", "expect", "expect only", "expect not"):
        raise _section_error(section, f"`{word}:` takes no facts")
    test = replace(test, dates=test.dates or has_dates)
    match word:
        case "given":
            folder = Path(test.source).parent
            files = tuple(_resolve_path(folder, name) for name in value.split())
            return replace(test, given=test.given + facts, files=test.files + files)
        case "expect" | "expect only":
            closed = frozenset(fact.predicate for fact in facts) if word == "expect only" else frozenset()
            return replace(test, expected=test.expected + facts, closed=test.closed | closed)
        case "expect not":
            return replace(test, unwanted=test.unwanted + facts)
        case "query":
            return replace(test, closed=test.closed | frozenset(value.replace(",", " ").split()))
        case "until":
            until = parse_time(value)[0]
            if not isinstance(until, Fraction):
                raise _section_error(section, f"`{value}` is not a time point")
            return replace(test, until=until)
        case "timeline":
            return replace(test, timeline=cast("TimelineName", value))
        case "delay":
            delay = read_number(value, units=True)
            if delay is None or delay < 0:
                raise _section_error(section, f"`{value}` is not a duration, like 5, 1/2 or 10min")
            return replace(test, delay=delay)
        case "stream":
            if value not in ("yes", "no"):
                raise _section_error(section, f"`stream:` is yes or no, not `{value}`")
            return replace(test, stream=value == "yes")
        case _:
            return test


def _resolve_path(folder: Path, name: str) -> str:
    """Resolve a data file, which may be `Predicate=file`, against the folder of the test file."""
    predicate, equals, path = name.rpartition("=")
    return f"{predicate}{equals}{folder / path}"


def _parse_facts(section: Section, test: RuleTest) -> tuple[tuple[Fact, ...], bool]:
    temporal = test.program.temporal.temporal if test.program.temporal else frozenset()
    if section.value and section.word.startswith("expect"):
        section = replace(section, lines=[(section.place.line, section.value), *section.lines], value="")
    parsed = [parse_fact(line, test.source, number, temporal) for number, line in section.lines]
    times = test.program.time_arguments
    facts = tuple(read_dates(fact, times.get(fact.predicate, ())) for fact, _ in parsed)
    return facts, any(has_dates for _, has_dates in parsed)


def _section_error(section: Section, message: str) -> TidelogError:
    return TidelogError(Diagnostic("TL901", message, section.place))
