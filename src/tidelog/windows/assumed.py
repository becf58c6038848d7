"""Reasoning under the assumption that all objects are known: with the least window that was proved for them.

The rules of a greater radius are left out. That is right as long as the input is what the proof speaks of, so every
fact is looked at: it is of a predicate that no rule derives, mentions only the objects, and if it is rigid, it holds at
all times. (When a stream begins does not matter, since rules are the same at all times; nor does a fact without a
beginning, since an answer needs only finitely many facts.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.facts import format_value
from tidelog.language.program import Program
from tidelog.language.syntax import Value
from tidelog.language.translation import to_mtl
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.windows.query import Query, forward_query
from tidelog.windows.validity import Objects, Report, window

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset

#: Seconds for the proof; what is proved by then is used.
PROOF = 60.0

_LAW = "with --objects, input facts are of predicates that no rule derives, and mention only these objects"


@dataclass(frozen=True)
class Assumed:
    """A program for a query over known objects, without the rules that its window makes needless; and the one that
    it was made of."""

    program: Program
    original: Program
    query: Query
    objects: frozenset[Value]
    window: int


def assuming(program: Program, query: str, objects: Objects, progress: Report | None = None) -> Assumed:
    """The program for a query if input facts mention only some objects."""
    report = window(program, query, objects, timeout=PROOF, progress=progress)
    proved = report.exact[1] if isinstance(report.exact, tuple) else report.exact
    assert proved is not None
    assert report.objects is not None
    assert program.temporal is not None
    asked = forward_query(program, query)
    needless = [rule.source for rule in asked.rules if rule.radius > proved and rule.source]
    kept = tuple(rule for rule in program.temporal.rules if not any(rule is other for other in needless))
    temporal = replace(program.temporal, rules=kept)
    rules, facts = to_mtl(temporal)
    return Assumed(
        replace(program, rules=rules, facts=facts, temporal=temporal),
        program,
        asked,
        frozenset(report.objects),
        proved,
    )


def refuse_others(assumed: Assumed, data: Dataset) -> None:
    """Raises for facts that the proof does not speak of."""
    query = assumed.query
    known = np.array([data.symbols.value(i) in assumed.objects for i in range(len(data.symbols))], bool)
    for (name, _), relation in data.relations.items():
        if name not in query.arities or not len(relation):
            continue
        if name not in query.inputs:
            raise _refused(f"a fact of {name} came in, which rules derive", "leave --objects out")
        strange = np.flatnonzero(~known[relation.args].all(axis=0)) if relation.arity else np.empty(0, np.int64)
        if len(strange):
            values = [data.symbols.value(int(i)) for i in relation.args[:, strange[0]]]
            other = next(value for value in values if value not in assumed.objects)
            raise _refused(f"a fact of {name} mentions {format_value(other)}, which is not among the objects", "add it")
        if name not in query.temporal and bool(((relation.lo > NEG_INF) | (relation.hi < POS_INF)).any()):
            raise _refused(f"a fact of {name}, which is rigid, came with a time", "give it without one, as background")


def _refused(message: str, help: str) -> TidelogError:
    return TidelogError(Diagnostic("TL606", message, law=_LAW, help=help))
