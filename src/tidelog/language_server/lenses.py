"""Code lenses: the commands that an editor shows above the lines of a test file."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.language_server.occurrences import read_sections
from tidelog.language_server.project import ProjectFile

RUN_TESTS = "tidelog.runTests"
EXPLAIN_FACT = "tidelog.explainFact"


@dataclass(frozen=True)
class Lens:
    """A command above a line (counted from 0), with its title and the line that it is about (counted from 1)."""

    line: int
    title: str
    command: str
    about: int | None


def find_lenses(file: ProjectFile) -> list[Lens]:
    """Return the lenses of a test file: run all tests, run each test, explain each expected fact."""
    if file.kind != "test":
        return []
    sections = read_sections(file.text, file.path)
    lenses: list[Lens] = []
    for section in sections:
        line = section.place.line
        if section.word == "test":
            if not lenses:
                lenses.append(Lens(line - 1, "Run all tests", RUN_TESTS, None))
            lenses.append(Lens(line - 1, "Run test", RUN_TESTS, line))
        elif section.word.startswith("expect") and lenses:
            numbers = [*([line] if section.value else []), *(number for number, _ in section.lines)]
            title = "Why not?" if section.word == "expect not" else "Explain"
            lenses += [Lens(number - 1, title, EXPLAIN_FACT, number) for number in numbers]
    return lenses
