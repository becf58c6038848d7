"""Stream under the assumption that all objects are known, with the least window proved for them.

Rules with a larger radius than that window are dropped. This is sound only for the input that the proof covers, so
every fact is checked: its predicate is not derived by any rule, it mentions only the known objects, and if it is rigid,
it holds at all times. (When a stream begins does not matter, since rules are the same at all times; nor does a fact
without a beginning, since an answer needs only finitely many facts.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import format_value
from tidelog.language.program import Program
from tidelog.language.syntax import Value
from tidelog.language.tdl_translation import translate_to_mtl
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.windows.forward_query import ForwardQuery, build_forward_query
from tidelog.windows.validity import Objects, ProgressCallback, window

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset

#: Seconds for the proof; afterwards the best window proved so far is used.
PROOF_SECONDS = 60.0


@dataclass(frozen=True)
class ClosedDomain:
    """A program for a query over known objects, without the rules that its window makes unnecessary, and the original
    program."""

    program: Program
    original: Program
    query: ForwardQuery
    objects: frozenset[Value]
    window: int


def assume_objects(
    program: Program, query: str, objects: Objects, progress: ProgressCallback | None = None
) -> ClosedDomain:
    """Return the program for a query whose input facts mention only the given objects."""
    program = program.with_temporal_query(query)
    report = window(program, query, objects, timeout=PROOF_SECONDS, progress=progress)
    proved = report.exact[1] if isinstance(report.exact, tuple) else report.exact
    assert proved is not None
    assert report.objects is not None
    assert program.temporal is not None
    forward_query = build_forward_query(program, query)
    unnecessary = [rule.source for rule in forward_query.rules if rule.radius > proved and rule.source]
    kept = tuple(rule for rule in program.temporal.rules if not any(rule is other for other in unnecessary))
    temporal = replace(program.temporal, rules=kept)
    rules, facts = translate_to_mtl(temporal)
    return ClosedDomain(
        replace(program, rules=rules, facts=facts, temporal=temporal),
        program,
        forward_query,
        frozenset(report.objects),
        proved,
    )


def require_domain_facts(domain: ClosedDomain, data: Dataset) -> None:
    """Raise for the first fact that the proof does not cover."""
    query = domain.query
    known = np.array([data.symbols.value(i) in domain.objects for i in range(len(data.symbols))], bool)
    for (name, _), relation in data.relations.items():
        if name not in query.arities or not len(relation):
            continue
        if name not in query.inputs:
            raise _domain_error(f"the input has a fact of {name}, which rules derive", "leave out --objects")
        unknown = np.flatnonzero(~known[relation.args].all(axis=0)) if relation.arity else np.empty(0, np.int64)
        if len(unknown):
            values = [data.symbols.value(int(i)) for i in relation.args[:, unknown[0]]]
            other = next(value for value in values if value not in domain.objects)
            message = f"a fact of {name} mentions {format_value(other)}, which is not among the objects"
            raise _domain_error(message, f"add {format_value(other)} to --objects")
        if name not in query.temporal and bool(((relation.lo > NEG_INF) | (relation.hi < POS_INF)).any()):
            message = f"a fact of {name}, which is rigid, has a time"
            raise _domain_error(message, "pass it without a time, as background")


def _domain_error(message: str, help: str) -> TidelogError:
    return TidelogError(Diagnostic("TL606", message, help=help))
