"""The report of `tidelog check` on a program, as data, as text and as JSON.

It combines the checks of the compiler with the analyses in `analysis`, for a whole program or for the rules that a
query needs. Problems are those of the whole program, since any of them keeps every query from running.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidelog.analysis.distribution import Distribution, describe_distribution, distribution_to_json, plan_distribution
from tidelog.analysis.fragments import FRAGMENTS, find_fragments
from tidelog.analysis.memory_bounds import MemoryBounds, StreamProfile, compute_memory_bounds
from tidelog.analysis.predicate_graph import find_predicate_components, find_strata, restrict_to_query
from tidelog.analysis.program_warnings import find_program_warnings
from tidelog.analysis.query_names import known_predicates, require_known_predicates
from tidelog.analysis.temporal_recursion import find_unordered_negation
from tidelog.analysis.time_reach import CONSTRAINT, LookAhead, compute_look_ahead, compute_retention
from tidelog.compiler.compiled_program import Target
from tidelog.compiler.passes import check_program
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.program import Program, require_program
from tidelog.language.rule_heads import is_constraint
from tidelog.language.syntax import Rule
from tidelog.language.wording import plural
from tidelog.timeline.interval import Time, TimelineName, format_time


@dataclass(frozen=True)
class CheckReport:
    """The analysis of one program, without hidden predicates.

    >>> from tidelog.language.program import Program
    >>> check(Program.parse("A(X) :- Diamondminus[1,2] A(X), B(X).")).recursive
    (('A',),)
    """

    source: str
    timeline: TimelineName
    query: str | None
    rules: int
    predicates: dict[str, int]
    fragments: tuple[str, ...]
    recursive: tuple[tuple[str, ...], ...]
    strata: tuple[tuple[str, ...], ...]
    retention: dict[str, Time]
    look_ahead: LookAhead
    constraints: tuple[str, ...]
    #: How the program would be split over a cluster; None if it cannot run at all.
    distribution: Distribution | None
    problems: tuple[Diagnostic, ...]
    #: How many facts a stream reasoner holds at most; only for a query.
    memory: MemoryBounds | None
    #: Which facts a reasoner keeps and which it leaves out, in sentences; None unless asked for.
    keeps: tuple[str, ...] | None = None
    #: What is allowed in the rules, but probably a mistake.
    warnings: tuple[Diagnostic, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the object that `tidelog check --json` prints; times are text, since they may be fractions."""
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
            "look_ahead_rule": _show_rule(self.look_ahead.rule) if self.look_ahead.rule else None,
            "memory": self.memory.to_json() if self.memory else None,
            **({} if self.keeps is None else {"keeps": list(self.keeps)}),
            "constraints": list(self.constraints),
            "distribution": distribution_to_json(self.distribution) if self.distribution else None,
            "problems": [_diagnostic_to_json(problem) for problem in self.problems],
            "warnings": [_diagnostic_to_json(warning) for warning in self.warnings],
        }

    def __str__(self) -> str:
        names = [f"{predicate}/{arity}" for predicate, arity in self.predicates.items()]
        rows: list[tuple[str, list[str]]] = [
            ("program", [f"{self.source}, {plural(self.rules, 'rule')}, {self.timeline} timeline"]),
            ("query", [self.query] if self.query else []),
            ("predicates", [", ".join(names) or "none"]),
            ("fragments", [", ".join(self.fragments) or "none"]),
            ("recursion", [", ".join(group) for group in self.recursive] or ["none"]),
            ("strata", [f"{number}: {', '.join(group)}" for number, group in enumerate(self.strata, 1)]),
            ("retention", _align({name: format_time(back) for name, back in self.retention.items()})),
            ("look-ahead", self._look_ahead_lines()),
            ("memory", self.memory.lines() if self.memory else []),
            ("keeps", list(self.keeps or ())),
            ("constraints", list(self.constraints)),
            ("cluster", describe_distribution(self.distribution) if self.distribution else []),
            ("problems", [line for problem in self.problems for line in problem.render().splitlines()]),
        ]
        margin = max(len(name) for name, _ in rows) + 2
        return "\n".join(
            (name if number == 0 else "").ljust(margin) + line
            for name, lines in rows
            for number, line in enumerate(lines)
        )

    def _look_ahead_lines(self) -> list[str]:
        distance = format_time(self.look_ahead.distance)
        return [f"{distance}, because of {_show_rule(self.look_ahead.rule)}" if self.look_ahead.rule else distance]


def check(
    program: Program,
    query: str | None = None,
    *,
    timeline: TimelineName | None = None,
    stream: StreamProfile | None = None,
) -> CheckReport:
    """Analyse a program, or the part of it that `query` needs. An unknown query predicate raises `TidelogError`.

    With a query, the report has the memory bounds of stream reasoning, as numbers if `stream` has all they depend on.
    """
    require_program(program)
    program.require_times()
    arity = program.predicates.get(query, 0) if query else 0
    whole = program
    if query is not None:
        require_known_predicates([query], known_predicates(program))
        program = restrict_to_query(program, query)
    line = timeline or program.timeline
    problems = find_problems(whole, timeline)
    strata = find_visible_strata(program, line)
    decided = {*find_fragments(program, line), *(() if strata is None else ("stratified",))}
    arities = {name: arity for name, arity in program.predicates.items() if not is_hidden(name)}
    back = compute_retention(program, line)
    return CheckReport(
        source=program.source,
        timeline=line,
        query=query,
        rules=len({rule.place or rule for rule in program.rules}),
        predicates=dict(sorted(arities.items())),
        fragments=tuple(name for name in FRAGMENTS if name in decided),
        recursive=find_recursive_groups(program),
        strata=strata or (),
        retention={name: back[name] for name in sorted(back) if not is_hidden(name)},
        look_ahead=_farthest_look_ahead(compute_look_ahead(program, line), query),
        constraints=tuple(_show_rule(rule) for rule in program.rules if is_constraint(rule)),
        distribution=None if problems else plan_distribution(whole, query),
        problems=problems,
        memory=compute_memory_bounds(program, line, stream or StreamProfile(), arity) if query is not None else None,
        warnings=find_program_warnings(whole),
    )


def find_visible_strata(program: Program, timeline: TimelineName) -> tuple[tuple[str, ...], ...] | None:
    """Return the predicates of each stratum; None if negation runs through a cycle."""
    if any(find_unordered_negation(program.rules, timeline)):
        return None
    return _visible_groups(find_strata(program.rules))


def find_recursive_groups(program: Program) -> tuple[tuple[str, ...], ...]:
    """Return the groups of predicates that depend on each other."""
    components = find_predicate_components(program.rules)
    return _visible_groups(component.predicates for component in components if component.recursive)


def find_problems(program: Program, timeline: TimelineName | None) -> tuple[Diagnostic, ...]:
    """Return why a program cannot be compiled, as the compiler's checks report it."""
    try:
        check_program(program, Target("batch", timeline=timeline))
    except TidelogError as error:
        return tuple(error.diagnostics)
    return ()


def _farthest_look_ahead(ahead: dict[str, LookAhead], query: str | None) -> LookAhead:
    asked = [look_ahead for name, look_ahead in ahead.items() if query in (None, name) or name == CONSTRAINT]
    return max(asked, key=lambda look_ahead: look_ahead.distance, default=LookAhead(Fraction(0)))


def _visible_groups(groups: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    visible = (tuple(name for name in group if not is_hidden(name)) for group in groups)
    return tuple(group for group in visible if group)


def _diagnostic_to_json(diagnostic: Diagnostic) -> dict[str, str | None]:
    place = str(diagnostic.place) if diagnostic.place else None
    return {"code": diagnostic.code, "message": diagnostic.message, "place": place}


def _show_rule(rule: Rule) -> str:
    """Return the rule as the user wrote it, on one line, with its line number."""
    line = f"line {rule.place.line}: " if rule.place else ""
    return line + " ".join(rule.text.split())


def _align(pairs: dict[str, str]) -> list[str]:
    width = max((len(name) for name in pairs), default=0)
    return [f"{name.ljust(width)}  {value}" for name, value in pairs.items()]
