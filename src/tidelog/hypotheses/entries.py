"""What the user sees: answers and possible answers, each with its evidence and what it waits for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

from tidelog.hypotheses.comparisons import order
from tidelog.language.facts import format_value
from tidelog.language.printer import format_term, format_time_term
from tidelog.language.syntax import Constant, TemporalAtom, Variable

#: A constant as Python and JSON have it: whole numbers are `int`.
Shown = str | int | Fraction


@dataclass(frozen=True)
class SupportedAnswer:
    """An answer, certain or still possible.

    `bindings` has the variables of the query that are known, `evidence` the facts that have come, `hypotheses` those
    that are awaited, in the order of their deadlines; both are minimal. At `decided_by` it is settled at the latest; None
    if no time is known. `confidence` is the likelihood that all awaited facts come, where one was asked for.
    """

    bindings: dict[str, Shown]
    evidence: tuple[str, ...]
    hypotheses: tuple[str, ...] = ()
    decided_by: int | None = None
    confidence: float | None = None

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
    return sorted(
        entries,
        key=lambda e: ([(n, order(v)) for n, v in e.bindings.items()], e.evidence, e.hypotheses),
    )


def fact_key(atom: TemporalAtom) -> tuple[Any, ...]:
    """Facts are sorted by predicate, arguments and time; variables come last."""
    args = tuple((0, order(t.value)) if isinstance(t, Constant) else (1, (0, t.name)) for t in atom.args)
    time = (0, "", 0) if atom.time is None else (atom.time.variable is not None, atom.time.variable or "", atom.time.offset)
    return atom.predicate, args, time


def format_atom(atom: TemporalAtom) -> str:
    """A fact, or one with variables; then names that would read as variables are in quotes.

    >>> from tidelog.language.syntax import TimeTerm
    >>> format_atom(TemporalAtom("Temp", (Constant("ID1"), Constant("n/a")), TimeTerm(None, 3)))
    'Temp(ID1,"n/a",3)'
    >>> format_atom(TemporalAtom("Temp", (Constant("ID1"), Constant("n/a")), TimeTerm("T", 1)))
    'Temp("ID1","n/a",T+1)'
    """
    is_open = (atom.time is not None and atom.time.variable) or any(isinstance(term, Variable) for term in atom.args)
    args = [
        term.name if isinstance(term, Variable) else format_term(term) if is_open else format_value(term.value)
        for term in atom.args
    ]
    if atom.time is not None:
        args.append(format_time_term(atom.time))
    return atom.predicate + (f"({','.join(args)})" if args else "")
