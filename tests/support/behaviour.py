"""The behaviour suite: small cases as text, one per file in `tests/behaviour/`, that every engine must pass.

A case begins with comment lines that say what it shows. Sections follow, each after a line `--- name`:

- `rules` (or `rules tdl` for temporal Datalog) and `facts`;
- `options`, lines `timeline: integer`, `between: 0,10`, `query: P` (the last may be repeated);
- `expect`, the output of `materialise`; lines about repetition may come in any order;
- `entails`, lines `yes FACT` or `no FACT`;
- `inconsistent` instead of `expect`: the facts violate a constraint, and the message contains each line of the section.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from locations import CASES
from tidelog.timeline.interval import TimelineName

SECTIONS = {"rules", "facts", "options", "expect", "entails", "inconsistent"}


@dataclass(frozen=True)
class Behaviour:
    """One case of the suite."""

    name: str
    rules: str
    facts: str
    syntax: str = "dmtl"
    timeline: TimelineName | None = None
    between: tuple[Fraction, Fraction] | None = None
    queries: tuple[str, ...] = ()
    expect: tuple[str, ...] | None = None
    entails: tuple[tuple[str, str], ...] = ()
    inconsistent: tuple[str, ...] | None = None


def parse_case(name: str, text: str) -> Behaviour:
    """Parse the text of a case."""
    sections: dict[str, list[str]] = defaultdict(list)
    syntax, current = "dmtl", ""
    for line in text.splitlines():
        if heading := re.fullmatch(r"--- (\w+)( tdl)?", line):
            current = heading[1]
            assert current in SECTIONS, f"{name}: no section is called {current}"
            syntax = "tdl" if heading[2] else syntax
            sections[current] = []
        elif current:
            sections[current].append(line)
    options = [line.split(": ", 1) for line in sections.pop("options", [])]
    single = dict(options)
    assert single.keys() <= {"timeline", "between", "query"}, f"{name}: unknown option"
    between = None
    if "between" in single:
        lo, hi = single["between"].split(",")
        between = Fraction(lo), Fraction(hi)
    return Behaviour(
        name,
        rules="\n".join(sections["rules"]) + "\n",
        facts="\n".join(sections["facts"]) + "\n",
        syntax=syntax,
        timeline=cast("TimelineName | None", single.get("timeline")),
        between=between,
        queries=tuple(value for key, value in options if key == "query"),
        expect=tuple(sections["expect"]) if "expect" in sections else None,
        entails=tuple((line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in sections.get("entails", [])),
        inconsistent=tuple(sections["inconsistent"]) if "inconsistent" in sections else None,
    )


def load_cases() -> list[Behaviour]:
    return [parse_case(path.stem, path.read_text(encoding="utf-8")) for path in sorted(CASES.glob("*.case"))]


def sort_repeats(lines: Iterable[str]) -> list[str]:
    """Sort printed lines for comparison: facts in their order, then lines about repetition, sorted."""
    lines = list(lines)
    facts = [line for line in lines if not line.startswith("%")]
    return facts + sorted(line for line in lines if line.startswith("%"))


def format_case(note: str, rules: str, facts: str, *, timeline: TimelineName, expect: Iterable[str] = ()) -> str:
    """Format a case as text."""
    option = ["--- options", "timeline: integer"] if timeline == "integer" else []
    lines = [f"% {note}", "--- rules", rules.strip(), "--- facts", facts.strip(), *option, "--- expect", *expect]
    return "\n".join(lines) + "\n"
