"""What `tidelog check` says about a program, as data, as text and as JSON.

The analyses themselves are elsewhere (`fragments`, `components`, `horizon`); here they are put together, for the
whole program or for the part of it that a query needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tidelog.analysis.components import components, is_constraint, needed, negative_cycles, strata
from tidelog.analysis.distribution import Distribution, as_json, distribution, in_words
from tidelog.analysis.fragments import FRAGMENTS, syntactic_fragments
from tidelog.analysis.horizon import CONSTRAINT, LookAhead, look_ahead, retention
from tidelog.analysis.memory import Memory, Stream, memory
from tidelog.analysis.queries import known_predicates, require_known
from tidelog.errors import Diagnostic
from tidelog.language.program import Program
from tidelog.language.syntax import Rule
from tidelog.timeline.interval import Time, format_time


@dataclass(frozen=True)
class Report:
    """The analysis of one program. Predicates that the translation of a `.tdl` file adds are left out.

    >>> from tidelog.language.program import Program
    >>> check(Program.parse("A(X) :- Diamondminus[1,2] A(X), B(X).")).recursive
    (('A',),)
    """

    source: str
    timeline: str
    query: str | None
    rules: int
    predicates: dict[str, int]
    fragments: tuple[str, ...]
    recursive: tuple[tuple[str, ...], ...]
    strata: tuple[tuple[str, ...], ...]
    retention: dict[str, Time]
    look_ahead: LookAhead
    constraints: tuple[str, ...]
    #: How the program would be split over a cluster; None where it cannot run at all.
    distribution: Distribution | None
    problems: tuple[Diagnostic, ...]
    #: How much a stream reasoner holds at most; only for a query.
    memory: Memory | None

    def to_json(self) -> dict[str, Any]:
        """The object that `tidelog check --json` prints; times are text, since they may be fractions."""
        return {
            "source": self.source,
            "timeline": self.timeline,
            "query": self.query,
            "rules": self.rules,
            "predicates": self.predicates,
            "fragments": list(self.fragments),
            "recursive": [list(group) for group in self.recursive],
            "strata": [list(group) for group in self.strata],
            "retention": {predicate: format_time(back) for predicate, back in self.retention.items()},
            "look_ahead": format_time(self.look_ahead.distance),
            "look_ahead_rule": _shown(self.look_ahead.rule) if self.look_ahead.rule else None,
            "memory": self.memory.to_json() if self.memory else None,
            "constraints": list(self.constraints),
            "distribution": as_json(self.distribution) if self.distribution else None,
            "problems": [
                {"code": found.code, "message": found.message, "place": str(found.place) if found.place else None}
                for found in self.problems
            ],
        }

    def __str__(self) -> str:
        names = [f"{predicate}/{arity}" for predicate, arity in self.predicates.items()]
        rows: list[tuple[str, list[str]]] = [
            ("program", [f"{self.source}, {_count(self.rules, 'rule')}, {self.timeline} timeline"]),
            ("query", [self.query] if self.query else []),
            ("predicates", [", ".join(names) or "none"]),
            ("fragments", [", ".join(self.fragments) or "none"]),
            ("recursion", [", ".join(group) for group in self.recursive] or ["none"]),
            ("strata", [f"{number}: {', '.join(group)}" for number, group in enumerate(self.strata, 1)]),
            ("retention", _columns({name: format_time(back) for name, back in self.retention.items()})),
            ("look-ahead", self._look_ahead_lines()),
            ("memory", self.memory.lines() if self.memory else []),
            ("constraints", list(self.constraints)),
            ("cluster", in_words(self.distribution) if self.distribution else []),
            ("problems", [line for found in self.problems for line in found.render().splitlines()]),
        ]
        margin = max(len(name) for name, _ in rows) + 2
        return "\n".join(
            (name if number == 0 else "").ljust(margin) + line
            for name, lines in rows
            for number, line in enumerate(lines)
        )

    def _look_ahead_lines(self) -> list[str]:
        distance = format_time(self.look_ahead.distance)
        return [f"{distance}, because of {_shown(self.look_ahead.rule)}" if self.look_ahead.rule else distance]


def check(
    program: Program, query: str | None = None, *, timeline: str | None = None, stream: Stream | None = None
) -> Report:
    """Analyse a program, or the part of it that `query` needs. An unknown query predicate raises `TidelogError`.

    With a query, the report has the memory bounds of stream reasoning, as numbers where `stream` says what they need.
    """
    arity = program.predicates.get(query, 0) if query else 0
    whole = program
    if query is not None:
        require_known([query], known_predicates(program))
        program = replace(program, rules=tuple(program.rules[i] for i in needed(program.rules, [query])))
    line = timeline or program.timeline
    problems = tuple(negative_cycles(program.rules))
    decided = {*syntactic_fragments(program, line), *(() if problems else ("stratified",))}
    arities = {name: arity for name, arity in program.predicates.items() if not _hidden(name)}
    back = retention(program, line)
    return Report(
        source=program.source,
        timeline=line,
        query=query,
        rules=len({rule.place or rule for rule in program.rules}),
        predicates=dict(sorted(arities.items())),
        fragments=tuple(name for name in FRAGMENTS if name in decided),
        recursive=_visible(found.predicates for found in components(program.rules) if found.recursive),
        strata=() if problems else _visible(strata(program.rules)),
        retention={name: back[name] for name in sorted(back) if not _hidden(name)},
        look_ahead=_farthest(look_ahead(program, line), query),
        constraints=tuple(_shown(rule) for rule in program.rules if is_constraint(rule)),
        distribution=None if problems else distribution(whole, query),
        problems=problems,
        memory=memory(program, line, stream or Stream(), arity) if query is not None else None,
    )


def _farthest(ahead: dict[str, LookAhead], query: str | None) -> LookAhead:
    asked = [found for name, found in ahead.items() if query in (None, name) or name == CONSTRAINT]
    return max(asked, key=lambda found: found.distance, default=LookAhead(Fraction(0)))


def _hidden(predicate: str) -> bool:
    """Whether the translation of temporal Datalog made the predicate up."""
    return predicate.startswith("$")


def _visible(groups: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    kept = (tuple(name for name in group if not _hidden(name)) for group in groups)
    return tuple(group for group in kept if group)


def _shown(rule: Rule) -> str:
    """The rule as the user wrote it, on one line, with its line number."""
    line = f"line {rule.place.line}: " if rule.place else ""
    return line + " ".join(rule.text.split())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _columns(pairs: dict[str, str]) -> list[str]:
    width = max((len(name) for name in pairs), default=0)
    return [f"{name.ljust(width)}  {value}" for name, value in pairs.items()]
