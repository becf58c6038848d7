"""Supported answers, as the user sees them: certain or possible, with the evidence and the facts that are awaited."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

from tidelog.hypothetical.ground_facts import Scalar, to_value
from tidelog.hypothetical.schemas import (
    Blocker,
    Query,
    Schema,
    apply_answer,
    apply_to_atom,
    apply_to_schema,
    is_anonymous,
)
from tidelog.language.comparisons import constant_order
from tidelog.language.fact_text import format_value
from tidelog.language.printer import format_term, format_time_term
from tidelog.language.syntax import Constant, TemporalAtom, Term, TimeTerm, Variable


@dataclass(frozen=True, slots=True)
class SupportedAnswer:
    """An answer, certain or still possible.

    `bindings` has the known variables of the query, `evidence` the facts that have arrived, `hypotheses` the facts that
    are awaited, in the order of their deadlines; both sets are minimal. At `decided_by` the answer is settled at the
    latest; None if no time is known. `confidence` is the likelihood that all awaited facts arrive, if requested.
    `conditions` are constraints on variables that are still open, like `X != Y`.
    """

    bindings: dict[str, Scalar]
    evidence: tuple[str, ...]
    hypotheses: tuple[str, ...] = ()
    decided_by: int | None = None
    confidence: float | None = None
    conditions: tuple[str, ...] = ()

    @property
    def certain(self) -> bool:
        """Whether no fact is awaited."""
        return not self.hypotheses

    def to_json(self) -> dict[str, Any]:
        """Return the answer as an object for JSON."""
        bindings = {name: str(v) if isinstance(v, Fraction) else v for name, v in self.bindings.items()}
        result: dict[str, Any] = {
            "bindings": bindings,
            "evidence": list(self.evidence),
            "hypotheses": list(self.hypotheses),
            "decided_by": self.decided_by,
        }
        if self.confidence is not None:
            result["confidence"] = round(self.confidence, 6)
        if self.conditions:
            result["conditions"] = list(self.conditions)
        return result


@dataclass(frozen=True)
class Moment:
    """One time point: the answers that became certain at it, and those that are still possible after it."""

    tau: int
    answers: Sequence[SupportedAnswer]
    hypothetical: Sequence[SupportedAnswer]

    def to_json(self) -> str:
        """Return one line of JSON, as `tidelog hypothesise --json` prints it."""
        parts = {
            "tau": self.tau,
            "answers": [answer.to_json() for answer in self.answers],
            "hypothetical": [answer.to_json() for answer in self.hypothetical],
        }
        return json.dumps(parts, ensure_ascii=False)

    def to_text(self, query: Query) -> str:
        """Return a line for each certain and each possible answer, as `tidelog hypothesise` prints them."""
        format_answer = make_answer_formatter(query)
        lines = [f"{self.tau}: certain {format_answer(answer)}{_format_evidence(answer)}\n" for answer in self.answers]
        lines += [
            f"{self.tau}: possible {format_answer(answer)}{format_support(answer)}\n" for answer in self.hypothetical
        ]
        return "".join(lines)


def format_support(answer: SupportedAnswer, *, with_deadline: bool = True) -> str:
    """Format what an answer rests on and what it awaits: ` since P(0) awaits P(1); decided by 1`."""
    awaits = f" awaits {', '.join(answer.hypotheses)}" if answer.hypotheses else ""
    where = f" where {', '.join(answer.conditions)}" if answer.conditions else ""
    decided = "" if answer.decided_by is None or not with_deadline else f"; decided by {answer.decided_by}"
    likely = "" if answer.confidence is None else f"; confidence {answer.confidence:.3g}"
    return f"{_format_evidence(answer)}{awaits}{where}{decided}{likely}"


def _format_evidence(answer: SupportedAnswer) -> str:
    return f" since {', '.join(answer.evidence)}" if answer.evidence else ""


def make_answer_formatter(query: Query) -> Callable[[SupportedAnswer], str]:
    """Return a function that formats the atom of the query with the values of an answer."""
    atom = query.atom
    time = atom.time.variable if atom.time else None
    names = [term.name for term in atom.args if isinstance(term, Variable)]
    is_plain = len(names) == len(atom.args) and time is not None and atom.time is not None and atom.time.offset == 0
    cached: dict[tuple[Scalar, ...], str] = {}

    def format_answer(answer: SupportedAnswer) -> str:
        known = answer.bindings
        if not is_plain or len(known) != len(names) + 1:
            return _format_answer(query, answer)
        args = tuple([known[name] for name in names])
        text = cached.get(args)
        if text is None:
            text = "".join(format_value(to_value(value)) + "," for value in args)
            text = cached[args] = f"{atom.predicate}({text}"
        return f"{text}{known[time or '']})"

    return format_answer


def _format_answer(query: Query, answer: SupportedAnswer) -> str:
    """Return the atom of the query with the known values of its variables."""
    by: dict[str, Term | TimeTerm] = {}
    time = query.atom.time.variable if query.atom.time else None
    for name, value in answer.bindings.items():
        if name == time:
            assert isinstance(value, int)
            by[name] = TimeTerm(None, value)
        else:
            by[name] = Constant(Fraction(value) if isinstance(value, int) else value)
    by |= {t.name: Variable("_") for t in query.atom.args if isinstance(t, Variable) and t.anonymous}
    if time and is_anonymous(time):
        by[time] = TimeTerm("_", 0)
    return format_atom(apply_to_atom(query.atom, by))


class LazyAnswers(Sequence[SupportedAnswer]):
    """A sequence of supported answers that are built on access."""

    def __init__(self, parts: Sequence[Any], make: Callable[[Any], SupportedAnswer]) -> None:
        self._parts = parts
        self._make = make

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, index: int) -> SupportedAnswer: ...
    @overload
    def __getitem__(self, index: slice) -> LazyAnswers: ...
    def __getitem__(self, index: int | slice) -> SupportedAnswer | LazyAnswers:
        if isinstance(index, slice):
            return LazyAnswers(self._parts[index], self._make)
        return self._make(self._parts[index])

    def __iter__(self) -> Iterator[SupportedAnswer]:
        return map(self._make, self._parts)

    def __repr__(self) -> str:
        return repr(list(self))


def sort_answers(answers: Sequence[SupportedAnswer]) -> list[SupportedAnswer]:
    """Sort answers by their bindings, then by evidence and awaited facts."""
    return sorted(answers, key=answer_sort_key)


def answer_sort_key(answer: SupportedAnswer) -> tuple[Any, ...]:
    """Return the key that `sort_answers` sorts by."""
    return (
        [(name, constant_order(value)) for name, value in answer.bindings.items()],
        answer.evidence,
        answer.hypotheses,
    )


def fact_sort_key(atom: TemporalAtom) -> tuple[Any, ...]:
    """Return the key that sorts facts by predicate, arguments and time; variables come last."""
    args = tuple((0, constant_order(t.value)) if isinstance(t, Constant) else (1, (0, t.name)) for t in atom.args)
    time = atom.time or TimeTerm(None, 0)
    return atom.predicate, args, time.variable is not None, time.variable or "", time.offset


def format_conditions(variables: Sequence[str], whole: Schema) -> tuple[str, ...]:
    """Return the constraints on open variables: query variables that must be equal, and undecided comparisons."""
    equal = [
        f"{name} = {_format_open_term(term)}"
        for name, term in zip(variables, whole.answer, strict=True)
        if _is_open(term) and _format_open_term(term) != name
    ]
    undecided = [
        f"{_format_open_term(c.left)} {c.op} {_format_open_term(c.right)}"
        for c in whole.comparisons
        if _is_open(c.left) or _is_open(c.right)
    ]
    return (*equal, *undecided)


def format_blocker(blocker: Blocker) -> str:
    """Return what must not arrive, under the values that `outer` has: `not Ack(a,3)`."""
    by: dict[str, Term | TimeTerm] = {}
    for term, value in zip(blocker.schema.answer, blocker.outer, strict=True):
        if isinstance(term, Variable):
            by[term.name] = value
        elif isinstance(term, TimeTerm) and term.variable and isinstance(value, TimeTerm):
            by[term.variable] = TimeTerm(value.variable, value.offset - term.offset)
    found = apply_to_schema(Schema((), blocker.schema.premises, blocker.schema.comparisons), by)
    parts = [*_format_premises(found), *_format_comparisons(found)]
    return f"not {parts[0]}" if len(parts) == 1 else f"not ({', '.join(parts)})"


def schema_to_json(query: Query, schema: Schema) -> dict[str, Any]:
    """Return a schema as an object for JSON: the answer, and the facts that make it, with their variables."""
    found: dict[str, Any] = {"answer": format_atom(apply_answer(query, schema)), "awaits": _format_premises(schema)}
    if schema.blockers:
        found["awaits"] += map(format_blocker, schema.blockers)
    if schema.comparisons:
        found["conditions"] = _format_comparisons(schema)
    return found


def schema_to_text(query: Query, schema: Schema) -> str:
    """Return a schema as a rule of temporal Datalog: the answer follows from exactly these facts."""
    body = ", ".join([*_format_premises(schema), *map(format_blocker, schema.blockers), *_format_comparisons(schema)])
    return f"{format_atom(apply_answer(query, schema))}{' :- ' if body else ''}{body}."


def _format_premises(schema: Schema) -> list[str]:
    return [format_atom(atom) for atom in sorted(schema.premises, key=fact_sort_key)]


def _format_comparisons(schema: Schema) -> list[str]:
    return [f"{_format_open_term(c.left)} {c.op} {_format_open_term(c.right)}" for c in schema.comparisons]


def _is_open(term: Term | TimeTerm) -> bool:
    return term.variable is not None if isinstance(term, TimeTerm) else isinstance(term, Variable)


def _format_open_term(term: Term | TimeTerm) -> str:
    """Return a term of an atom with variables, where names that look like variables are quoted."""
    if isinstance(term, TimeTerm):
        return format_time_term(term)
    return term.name if isinstance(term, Variable) else format_term(term)


def format_atom(atom: TemporalAtom) -> str:
    """Return an atom as text; if it has variables, names that look like variables are quoted.

    >>> from tidelog.language.syntax import TimeTerm
    >>> format_atom(TemporalAtom("Temp", (Constant("ID1"), Constant("n/a")), TimeTerm(None, 3)))
    'Temp(ID1,"n/a",3)'
    >>> format_atom(TemporalAtom("Temp", (Constant("ID1"), Constant("n/a")), TimeTerm("T", 1)))
    'Temp("ID1","n/a",T+1)'
    """
    is_open = (atom.time is not None and _is_open(atom.time)) or any(map(_is_open, atom.args))
    args = [
        format_value(term.value) if isinstance(term, Constant) and not is_open else _format_open_term(term)
        for term in atom.args
    ]
    if atom.time is not None:
        args.append(format_time_term(atom.time))
    return atom.predicate + (f"({','.join(args)})" if args else "")
