"""What the user sees: answers and possible answers, each with its evidence and what it waits for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

from tidelog.hypothetical.comparisons import order
from tidelog.hypothetical.schemas import Query, Schema, apply_atom, is_anonymous
from tidelog.language.facts import format_value
from tidelog.language.printer import format_term, format_time_term
from tidelog.language.syntax import Constant, TemporalAtom, Term, TimeTerm, Variable

#: A constant as Python and JSON have it: whole numbers are `int`.
Shown = str | int | Fraction


@dataclass(frozen=True)
class SupportedAnswer:
    """An answer, certain or still possible.

    `bindings` has the variables of the query that are known, `evidence` the facts that have come, `hypotheses` those
    that are awaited, in the order of their deadlines; both are minimal. At `decided_by` it is settled at the latest;
    None if no time is known. `confidence` is the likelihood that all awaited facts come, where one was asked for;
    `conditions` are what variables that are still open have to keep to, like `X != Y`.
    """

    bindings: dict[str, Shown]
    evidence: tuple[str, ...]
    hypotheses: tuple[str, ...] = ()
    decided_by: int | None = None
    confidence: float | None = None
    conditions: tuple[str, ...] = ()

    @property
    def certain(self) -> bool:
        return not self.hypotheses

    def to_json(self) -> dict[str, Any]:
        bindings = {name: str(v) if isinstance(v, Fraction) else v for name, v in self.bindings.items()}
        found: dict[str, Any] = {
            "bindings": bindings,
            "evidence": list(self.evidence),
            "hypotheses": list(self.hypotheses),
            "decided_by": self.decided_by,
        }
        if self.confidence is not None:
            found["confidence"] = round(self.confidence, 6)
        if self.conditions:
            found["conditions"] = list(self.conditions)
        return found


@dataclass(frozen=True)
class Moment:
    """What is known at one time point: the answers that became certain at it, and what is still possible after it."""

    tau: int
    answers: Sequence[SupportedAnswer]
    hypothetical: Sequence[SupportedAnswer]

    def to_json(self) -> str:
        """One line, as `tidelog hypothesise --json` prints it."""
        parts = {
            "tau": self.tau,
            "answers": [entry.to_json() for entry in self.answers],
            "hypothetical": [entry.to_json() for entry in self.hypothetical],
        }
        return json.dumps(parts, ensure_ascii=False)

    def to_text(self, query: Query) -> str:
        """One line for every answer and every possible one, as `tidelog hypothesise` prints them."""
        lines = [f"{self.tau}: certain {_asked(query, entry)}{_since(entry)}" for entry in self.answers]
        for entry in self.hypothetical:
            decided = "" if entry.decided_by is None else f"; decided by {entry.decided_by}"
            likely = "" if entry.confidence is None else f"; confidence {entry.confidence:.3g}"
            where = f" where {', '.join(entry.conditions)}" if entry.conditions else ""
            awaits = f"{_since(entry)} awaits {', '.join(entry.hypotheses)}{where}{decided}{likely}"
            lines.append(f"{self.tau}: possible {_asked(query, entry)}{awaits}")
        return "".join(line + "\n" for line in lines)


def _since(entry: SupportedAnswer) -> str:
    return f" since {', '.join(entry.evidence)}" if entry.evidence else ""


def _asked(query: Query, entry: SupportedAnswer) -> str:
    """The query's atom with what is known of its variables."""
    by: dict[str, Term | TimeTerm] = {}
    time = query.atom.time.variable if query.atom.time else None
    for name, value in entry.bindings.items():
        if name == time:
            assert isinstance(value, int)
            by[name] = TimeTerm(None, value)
        else:
            by[name] = Constant(Fraction(value) if isinstance(value, int) else value)
    by |= {t.name: Variable("_") for t in query.atom.args if isinstance(t, Variable) and t.anonymous}
    if time and is_anonymous(time):
        by[time] = TimeTerm("_", 0)
    return format_atom(apply_atom(query.atom, by))


class Entries(Sequence[SupportedAnswer]):
    """A sequence of entries that are made when they are looked at."""

    def __init__(self, parts: Sequence[Any], make: Callable[[Any], SupportedAnswer]) -> None:
        self._parts = parts
        self._make = make

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, index: int) -> SupportedAnswer: ...
    @overload
    def __getitem__(self, index: slice) -> Entries: ...
    def __getitem__(self, index: int | slice) -> SupportedAnswer | Entries:
        if isinstance(index, slice):
            return Entries(self._parts[index], self._make)
        return self._make(self._parts[index])

    def __iter__(self) -> Iterator[SupportedAnswer]:
        return map(self._make, self._parts)

    def __repr__(self) -> str:
        return repr(list(self))


def in_order(entries: Sequence[SupportedAnswer]) -> list[SupportedAnswer]:
    """Sorted by what the variables stand for, then by the evidence and what is awaited."""
    return sorted(entries, key=entry_order)


def entry_order(entry: SupportedAnswer) -> tuple[Any, ...]:
    return [(name, order(value)) for name, value in entry.bindings.items()], entry.evidence, entry.hypotheses


def fact_key(atom: TemporalAtom) -> tuple[Any, ...]:
    """Facts are sorted by predicate, arguments and time; variables come last."""
    args = tuple((0, order(t.value)) if isinstance(t, Constant) else (1, (0, t.name)) for t in atom.args)
    time = atom.time or TimeTerm(None, 0)
    return atom.predicate, args, time.variable is not None, time.variable or "", time.offset


def conditions(variables: Sequence[str], whole: Schema) -> tuple[str, ...]:
    """What the open variables of a schema have to keep to: variables of the query that are the same, and comparisons
    that cannot be judged yet."""
    pairs = zip(variables, whole.answer, strict=True)
    same = [f"{name} = {_open_term(term)}" for name, term in pairs if _is_open(term) and _open_term(term) != name]
    judged = [
        f"{_open_term(c.left)} {c.op} {_open_term(c.right)}"
        for c in whole.comparisons
        if _is_open(c.left) or _is_open(c.right)
    ]
    return (*same, *judged)


def _is_open(term: Term | TimeTerm) -> bool:
    return term.variable is not None if isinstance(term, TimeTerm) else isinstance(term, Variable)


def _open_term(term: Term | TimeTerm) -> str:
    """A term beside open variables: names that would read as variables are in quotes."""
    if isinstance(term, TimeTerm):
        return format_time_term(term)
    return term.name if isinstance(term, Variable) else format_term(term)


def format_atom(atom: TemporalAtom) -> str:
    """A fact, or one with variables; then names that would read as variables are in quotes.

    >>> from tidelog.language.syntax import TimeTerm
    >>> format_atom(TemporalAtom("Temp", (Constant("ID1"), Constant("n/a")), TimeTerm(None, 3)))
    'Temp(ID1,"n/a",3)'
    >>> format_atom(TemporalAtom("Temp", (Constant("ID1"), Constant("n/a")), TimeTerm("T", 1)))
    'Temp("ID1","n/a",T+1)'
    """
    is_open = (atom.time is not None and _is_open(atom.time)) or any(map(_is_open, atom.args))
    args = [
        format_value(term.value) if isinstance(term, Constant) and not is_open else _open_term(term)
        for term in atom.args
    ]
    if atom.time is not None:
        args.append(format_time_term(atom.time))
    return atom.predicate + (f"({','.join(args)})" if args else "")
