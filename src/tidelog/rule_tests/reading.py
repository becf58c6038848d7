"""Test files: what rules must make of facts, in plain text beside the rules.

A file is sections, each begun by a word and a colon at the start of a line; facts stand one a line, as in fact files.
What comes before the first `test:` is common to all tests of the file.

    rules: door.dmtl                   the rules; unless given, the file of the same name beside this one
    given: doors.facts                 facts, from files and from the lines below
    test: a guard keeps it quiet       begins a test, by its name
    expect:                            these facts hold
    expect only:                       these hold, and nothing else of their predicates
    expect not:                        these hold at no time of their intervals
    query: Alarm                       predicates of which nothing holds but what `expect only:` says
    until: 20                          only what happens up to this time counts
    timeline: integer                  also `delay: 5s` and `stream: no`
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.codes import suggest
from tidelog.language.facts import parse_fact
from tidelog.language.program import Program, read_text
from tidelog.language.syntax import Fact
from tidelog.language.times import parse_time, read_number

#: How the names of test files end.
SUFFIX = ".test"

_SECTIONS = ("rules", "given", "test", "expect", "expect only", "expect not", "query", "until", "timeline", "delay")
_WORDS = (*_SECTIONS, "stream")
_HEADING = re.compile(r"([a-z][a-z ]*?)[ \t]*:(?:[ \t]+(.*?))?[ \t]*$")
_LAW = "a test file has sections: " + ", ".join(f"`{word}:`" for word in _WORDS)


@dataclass(frozen=True)
class RuleTest:
    """One test: facts that are given, what must follow, and what must not."""

    name: str
    source: str
    line: int
    program: Program
    given: tuple[Fact, ...] = ()
    files: tuple[str, ...] = ()
    expected: tuple[Fact, ...] = ()
    unwanted: tuple[Fact, ...] = ()
    #: Predicates of which only what is expected may hold.
    closed: frozenset[str] = frozenset()
    until: Fraction | None = None
    timeline: str | None = None
    delay: Fraction = Fraction(0)
    stream: bool = True
    dates: bool = False

    @property
    def queries(self) -> tuple[str, ...]:
        """The predicates that the test is about."""
        named = {fact.predicate for fact in (*self.expected, *self.unwanted)}
        return tuple(sorted(named | self.closed))


@dataclass
class _Section:
    word: str
    value: str
    place: Place
    lines: list[tuple[int, str]] = field(default_factory=list)


def test_files(paths: Iterable[str]) -> list[str]:
    """The test files among paths: files as they are, folders searched through."""
    found: list[str] = []
    for name in paths:
        path = Path(name)
        if path.is_dir():
            inside = (p for p in path.rglob(f"*{SUFFIX}") if p.is_file())
            found += sorted(
                str(p) for p in inside if not any(part.startswith(".") for part in p.relative_to(path).parts)
            )
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def read_tests(name: str) -> list[RuleTest]:
    """The tests of a file; raises a TidelogError with everything that is wrong with it."""
    sections = list(_sections(read_text(name), name))
    starts = [number for number, section in enumerate(sections) if section.word == "test"]
    if not starts:
        place = Place(name, 1, 1)
        raise TidelogError(
            Diagnostic("TL901", "there is no test in this file", place, _LAW, "begin one: test: its name")
        )
    common = sections[: starts[0]]
    program = _program(name, common)
    errors: list[Diagnostic] = []
    base = _filled(RuleTest("", name, 0, program), common, errors)
    tests: list[RuleTest] = []
    for start, stop in zip(starts, [*starts[1:], len(sections)], strict=True):
        heading, *own = sections[start:stop]
        test = replace(base, name=heading.value or f"line {heading.place.line}", line=heading.place.line)
        test = _filled(test, own, errors)
        if not test.queries:
            errors.append(
                Diagnostic("TL901", "this test expects nothing", heading.place, _LAW, "add expect: and facts")
            )
        tests.append(test)
    if errors:
        raise TidelogError(errors)
    return tests


def _sections(text: str, source: str) -> Iterator[_Section]:
    """The sections of a text. Lines that are no heading belong to the section before them."""
    current: _Section | None = None
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
            raise TidelogError(Diagnostic("TL901", "a line before the first section", place, _LAW))
        word = heading[1]
        if word not in _WORDS:
            close = suggest(word, _WORDS)
            help = f"did you mean `{close}:`?" if close else None
            raise TidelogError(Diagnostic("TL901", f"there is no section `{word}:`", place, _LAW, help))
        if current is not None:
            yield current
        current = _Section(word, heading[2] or "", place)
    if current is not None:
        yield current


def _program(name: str, common: Iterable[_Section]) -> Program:
    """The rules of a test file: those that it names, or those of the same name beside it."""
    folder = Path(name).parent
    for section in common:
        if section.word == "rules":
            return Program.load(folder / section.value)
    stem = Path(name).name.removesuffix(SUFFIX)
    for suffix in (".dmtl", ".tdl"):
        if (folder / f"{stem}{suffix}").exists():
            return Program.load(folder / f"{stem}{suffix}")
    place = Place(name, 1, 1)
    message = f"there are no rules to test: neither {stem}.dmtl nor {stem}.tdl is beside this file"
    raise TidelogError(Diagnostic("TL901", message, place, _LAW, "name them: rules: FILE"))


def _filled(test: RuleTest, sections: Iterable[_Section], errors: list[Diagnostic]) -> RuleTest:
    """A test with what its sections say."""
    for section in sections:
        try:
            test = _with(test, section)
        except TidelogError as error:
            errors += error.diagnostics
    return test


def _with(test: RuleTest, section: _Section) -> RuleTest:
    word, value = section.word, section.value
    facts, dated = _facts(section, test)
    if facts and word not in ("given", "expect", "expect only", "expect not"):
        raise _wrong(section, f"`{word}:` takes no facts")
    test = replace(test, dates=test.dates or dated)
    match word:
        case "given":
            folder = Path(test.source).parent
            files = tuple(_beside(folder, name) for name in value.split())
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
                raise _wrong(section, f"`{value}` is no time point")
            return replace(test, until=until)
        case "timeline":
            return replace(test, timeline=value)
        case "delay":
            delay = read_number(value, units=True)
            if delay is None or delay < 0:
                raise _wrong(section, f"`{value}` is no length of time, like 5, 1/2 or 10min")
            return replace(test, delay=delay)
        case "stream":
            if value not in ("yes", "no"):
                raise _wrong(section, f"`stream:` is yes or no, not `{value}`")
            return replace(test, stream=value == "yes")
        case _:
            return test


def _beside(folder: Path, name: str) -> str:
    """A data file as its test names it, `Predicate=file` included, from the folder of the test."""
    predicate, equals, path = name.rpartition("=")
    return f"{predicate}{equals}{folder / path}"


def _facts(section: _Section, test: RuleTest) -> tuple[tuple[Fact, ...], bool]:
    temporal = test.program.temporal.temporal if test.program.temporal else frozenset()
    if section.value and section.word.startswith("expect"):
        section = replace(section, lines=[(section.place.line, section.value), *section.lines], value="")
    read = [parse_fact(line, test.source, number, temporal) for number, line in section.lines]
    return tuple(fact for fact, _ in read), any(dated for _, dated in read)


def _wrong(section: _Section, message: str) -> TidelogError:
    return TidelogError(Diagnostic("TL901", message, section.place, _LAW))
