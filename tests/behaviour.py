"""The behaviour suite: small cases as text, one a file in `behaviour/`, that every engine must pass.

A case begins with comment lines that say what it shows; sections follow, each after a line `--- name`:

- `rules` (or `rules tdl` for temporal Datalog) and `facts`;
- `options`, lines `timeline: integer`, `between: 0,10`, `query: P` (the last may be repeated);
- `expect`, what `materialise` prints; lines of what repeats may come in any order;
- `entails`, lines `yes FACT` or `no FACT`;
- `inconsistent` instead of `expect`: the facts break a constraint, and the message holds each line of this section.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

FOLDER = Path(__file__).parent / "behaviour"
SECTIONS = {"rules", "facts", "options", "expect", "entails", "inconsistent"}


@dataclass(frozen=True)
class Behaviour:
    """One case of the suite."""

    name: str
    rules: str
    facts: str
    syntax: str = "dmtl"
    timeline: str | None = None
    between: tuple[Fraction, Fraction] | None = None
    queries: tuple[str, ...] = ()
    expect: tuple[str, ...] | None = None
    entails: tuple[tuple[str, str], ...] = ()
    inconsistent: tuple[str, ...] | None = None


def read(name: str, text: str) -> Behaviour:
    """A case from its text."""
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
        timeline=single.get("timeline"),
        between=between,
        queries=tuple(value for key, value in options if key == "query"),
        expect=tuple(sections["expect"]) if "expect" in sections else None,
        entails=tuple((line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in sections.get("entails", [])),
        inconsistent=tuple(sections["inconsistent"]) if "inconsistent" in sections else None,
    )


def suite() -> list[Behaviour]:
    return [read(path.stem, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.case"))]


def arranged(lines: Iterable[str]) -> list[str]:
    """Printed lines for comparison: facts as they stand, then what repeats, in order."""
    lines = list(lines)
    facts = [line for line in lines if not line.startswith("%")]
    return facts + sorted(line for line in lines if line.startswith("%"))


def written(note: str, rules: str, facts: str, *, timeline: str, expect: Iterable[str] = ()) -> str:
    """The text of a case."""
    option = ["--- options", "timeline: integer"] if timeline == "integer" else []
    lines = [f"% {note}", "--- rules", rules.strip(), "--- facts", facts.strip(), *option, "--- expect", *expect]
    return "\n".join(lines) + "\n"
