"""`explain`: why a fact holds, or why it does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidelog.analysis.queries import known_predicates, require_known
from tidelog.language.codes import suggest
from tidelog.language.facts import format_fact, format_value, parse_fact
from tidelog.language.program import Program
from tidelog.language.syntax import Comparison, Fact, Literal
from tidelog.proofs.explainer import Explainer
from tidelog.proofs.facts import Ids
from tidelog.proofs.tree import Proof, rule_text, shown
from tidelog.proofs.why_not import Blocked, WhyNot, why_not
from tidelog.proofs.world import World
from tidelog.reasoning import Answer, Undecided, arities_of, refuse_arities
from tidelog.timeline.grid import NEG_INF
from tidelog.timeline.interval import Interval

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset


@dataclass(frozen=True)
class Explanation:
    """The answer of `explain`: a proof, or why there is none, or (`unknown`) why that is not known.

    `holds` are the parts of the interval asked for in which the fact does hold.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] High(X).")
    >>> explanation = tl.explain(program, tl.Dataset.parse("High(t1)@3"), "Hot(t1)@9")
    >>> print(explanation, end="")
    Hot(t1)@9 does not hold; it holds on [3,8]
    └─ not by Hot(X) :- Diamondminus[0,5] High(X). (line 1): Diamondminus[0,5] High(t1) fails at 9
       └─ it holds on [3,8]
    """

    fact: Fact
    answer: Answer
    proof: Proof | None = None
    why_not: WhyNot | None = None
    holds: tuple[Interval, ...] = ()
    notes: tuple[str, ...] = ()
    iso: bool = False

    def __str__(self) -> str:
        if self.proof is not None:
            return str(self.proof) + "".join(f"{note}\n" for note in self.notes)
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        asked = format_fact(self.fact, self.iso)
        if self.answer is Answer.UNKNOWN:
            yield f"it is not known whether {asked} holds"
        elif self.holds:
            yield f"{asked} holds only on {_listed(self.holds, self.iso)}"
        if self.why_not is not None:
            yield from _why_not_lines(self.why_not, self.iso)
        yield from self.notes

    def as_json(self) -> dict[str, object]:
        """One object for machines; see docs/explain.md."""
        found: dict[str, object] = {"fact": format_fact(self.fact, self.iso), "answer": self.answer.value}
        if self.proof is not None:
            found["proof"] = self.proof.as_json()
        if self.holds:
            found["holds"] = [shown(interval, self.iso) for interval in self.holds]
        if self.why_not is not None:
            found["why_not"] = _why_not_object(self.why_not, self.iso)
        return found | ({"notes": list(self.notes)} if self.notes else {})


def explain(
    program: Program,
    data: Dataset,
    fact: str | Fact,
    *,
    timeline: str | None = None,
    depth: int | None = None,
    sources: Sequence[tuple[str, Dataset]] = (),
) -> Explanation:
    """Why a fact holds at every point of its interval, or why it does not.

    `depth` limits how far down the proof goes; `sources` are the files that the data came from, to be named.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] High(X).")
    >>> print(tl.explain(program, tl.Dataset.parse("High(t1)@3"), "Hot(t1)@7"), end="")
    Hot(t1)@7  by Hot(X) :- Diamondminus[0,5] High(X). (line 1)
    └─ Diamondminus[0,5] High(t1) at 7
       └─ High(t1)@3  given
    """
    if isinstance(fact, str):
        temporal = program.temporal.temporal if program.temporal else frozenset()
        fact, _ = parse_fact(fact, "<fact>", temporal=temporal)
    timed = data.timed(program.temporal.temporal) if program.temporal else data
    refuse_arities(dict(arities_of(program)), timed, fact)
    require_known((fact.predicate,), known_predicates(program, (name for name, _ in data.relations)))
    try:
        explainer = Explainer(program, data, query=(fact.predicate,), timeline=timeline, sources=sources)
        return explained(explainer, fact, depth)
    except Undecided as problem:
        return Explanation(fact, Answer.UNKNOWN, notes=(problem.diagnostics[0].message,), iso=data.dates)


def explained(explainer: Explainer, fact: Fact, depth: int | None = None) -> Explanation:
    """The explanation of one of the facts that an explainer knows about, or of one that does not hold."""
    iso = explainer.data.dates
    proof = explainer.proof(fact, depth)
    if proof is not None:
        return Explanation(fact, Answer.YES, proof, iso=iso)
    atom, pair = explainer.grounded(fact)
    world = explainer.world
    if pair[0] > pair[1]:
        return Explanation(fact, Answer.YES, notes=("there is no time in this interval",), iso=iso)
    missing = world.missing(atom, pair)
    held = tuple(world.grid.interval(*part) for part in world.holding(atom, pair))
    first = missing[0][0] if missing[0][0] > NEG_INF else min(missing[0][1], world.core[0])
    moment = world.near((first, first))
    notes = tuple(_notes(world, fact, atom[1]))
    if moment[0] != first:
        far, near = (shown(world.grid.interval(at, at), iso) for at in (first, moment[0]))
        notes = (f"it is the same at {far} as at {near}: so far from the data everything repeats", *notes)
    return Explanation(fact, Answer.NO, None, why_not(world, atom, moment), held, notes, iso)


def _notes(world: World, fact: Fact, ids: Ids) -> Iterator[str]:
    """What the user may have meant instead."""
    if fact.predicate not in world.clauses:
        yield f"no rule derives {fact.predicate}: it holds only where the data says so"
    known = {number for table in world.model.tables.values() for number in np.unique(table.rows.args).tolist()}
    for number, value in zip(ids, fact.args, strict=True):
        if number not in known:
            close = suggest(str(value), (str(world.wording.value(other)) for other in known))
            help = f"; did you mean {format_value(close)}?" if close else ""
            yield f"no fact mentions {format_value(value)}{help}"


# For people


def _why_not_lines(found: WhyNot, iso: bool) -> Iterator[str]:
    line = f"{format_fact(found.fact, iso)} does not hold"
    yield line + (f"; it holds on {_listed(found.nearest, iso)}" if found.nearest else "")
    for place, blocked in enumerate(found.blocked):
        last = place == len(found.blocked) - 1
        yield ("└─ " if last else "├─ ") + _blocked_line(blocked, iso)
        yield from _indented(_blocked_details(blocked, iso), "   " if last else "│  ")


def _indented(groups: Sequence[Sequence[str]], lead: str) -> Iterator[str]:
    for place, (first, *rest) in enumerate(groups):
        last = place == len(groups) - 1
        yield lead + ("└─ " if last else "├─ ") + first
        for line in rest:
            yield lead + ("   " if last else "│  ") + line


def _blocked_line(blocked: Blocked, iso: bool) -> str:
    line = blocked.rule.place.line if blocked.rule.place else None
    numbered = f" (line {line})" if line else ""
    return f"not by {rule_text(blocked.rule)}{numbered}: {blocked.text} fails{_at(blocked, iso)}"


def _at(blocked: Blocked, iso: bool) -> str:
    if isinstance(blocked.failing, Comparison):
        return ""
    ways = ""
    if blocked.ways:
        ways = (
            f", and so for {blocked.ways} other {'way' if blocked.ways == 1 else 'ways'} to meet what comes before it"
        )
    points = all(interval.is_point() for interval in blocked.when)
    return f" {'at' if points else 'throughout'} {_listed(blocked.when, iso)}{ways}"


def _blocked_details(blocked: Blocked, iso: bool) -> list[list[str]]:
    """Groups of lines, each below its first."""
    groups: list[list[str]] = []
    if blocked.blockers:
        groups.append([f"since {_listed_facts(blocked.blockers, iso)}"])
    if blocked.nearest:
        groups.append([f"it holds on {_listed(blocked.nearest, iso)}"])
    elif isinstance(blocked.failing, Literal):
        groups.append(["it never holds"])
    if blocked.others:
        groups.append([f"then there is {', '.join(text for text, _ in blocked.others)}"])
    if blocked.because is not None:
        groups.append(list(_why_not_lines(blocked.because, iso)))
    return groups


def _listed(intervals: Iterable[Interval], iso: bool) -> str:
    return " and ".join(shown(interval, iso) for interval in intervals)


def _listed_facts(facts: Iterable[Fact], iso: bool) -> str:
    return ", ".join(format_fact(fact, iso) for fact in facts)


# For machines


def _why_not_object(found: WhyNot, iso: bool) -> dict[str, object]:
    return {
        "fact": format_fact(found.fact, iso),
        "nearest": [shown(interval, iso) for interval in found.nearest],
        "rules": [_blocked_object(blocked, iso) for blocked in found.blocked],
    }


def _blocked_object(blocked: Blocked, iso: bool) -> dict[str, object]:
    found: dict[str, object] = {
        "rule": rule_text(blocked.rule),
        "line": blocked.rule.place.line if blocked.rule.place else None,
        "met": list(blocked.satisfied),
        "failing": blocked.text,
        "at": [shown(interval, iso) for interval in blocked.when],
        "nearest": [shown(interval, iso) for interval in blocked.nearest],
        "others": [text for text, _ in blocked.others],
    }
    if blocked.blockers:
        found["blockers"] = [format_fact(fact, iso) for fact in blocked.blockers]
    if blocked.because is not None:
        found["because"] = _why_not_object(blocked.because, iso)
    return found
