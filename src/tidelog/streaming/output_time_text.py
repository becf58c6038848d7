"""Output times as text: `every:10s`, `every:10s+3s`, and files of times (`file:times.txt`).

A file has one time per line, in any order: a number, a duration or a date, as in facts. Empty lines, and everything
after `%` or `#`, are ignored.
"""

from __future__ import annotations

from fractions import Fraction

from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.file_errors import check_utf8, read_input
from tidelog.language.time_like import to_duration
from tidelog.language.time_text import parse_time

_EVERY, _FILE = "every:", "file:"


def parse_multiples(text: str) -> tuple[Fraction, Fraction]:
    """Parse `every:S` or `every:S+O`; return S and the least offset that means the same, which is below S.

    >>> parse_multiples("every:10s+3s"), parse_multiples("every:2+5")
    ((Fraction(10, 1), Fraction(3, 1)), (Fraction(2, 1), Fraction(1, 1)))
    """
    length, plus, offset = text.removeprefix(_EVERY).partition("+")
    every = to_duration(length.strip())
    if every == 0:
        raise TidelogError(Diagnostic("TL307", "output times need a distance greater than 0", help="write every:1"))
    return every, to_duration(offset.strip()) % every if plus else Fraction(0)


def find_times_file(text: str | None) -> str | None:
    """Return the path in `file:PATH`; None for other output times."""
    return text.removeprefix(_FILE) if text is not None and text.startswith(_FILE) else None


def read_times_file(path: str) -> list[Fraction]:
    """Read a file of times; return them in order, each once. Lines that are no finite time raise, all at once."""
    data = read_input(path)
    check_utf8(data, path)
    times: set[Fraction] = set()
    problems: list[Diagnostic] = []
    for number, line in enumerate(data.decode().splitlines(), 1):
        text = line.partition("%")[0].partition("#")[0].strip()
        if not text:
            continue
        place = Place(path, number, 1 + line.index(text), len(text), line)
        try:
            time = parse_time(text)[0]
        except TidelogError as problem:
            problems.append(Diagnostic("TL202", problem.diagnostics[0].message, place))
            continue
        if isinstance(time, float):
            problems.append(Diagnostic("TL202", f"a finite time is needed here, not {text}", place))
        else:
            times.add(time)
    if problems:
        raise TidelogError(problems)
    return sorted(times)
