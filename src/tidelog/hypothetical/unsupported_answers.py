"""Answers without evidence: what could still come true although none of its facts has arrived.

There are infinitely many of them, one for each choice of constants and of a time to come. So they are shown as schemas:
variables stay open, and conditions say from which time on their facts can still arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tidelog.hypothetical.compiled_schemas import CompiledSchema, to_ground_args
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.general_hypotheses import OpenHypothesis
from tidelog.hypothetical.ground_facts import AwaitedFact, GroundFact
from tidelog.language.syntax import TemporalAtom


def find_unsupported(
    schemas: Iterable[CompiledSchema], delays: Delays, tau: int, has_arrived: Callable[[GroundFact, int], bool]
) -> Iterator[OpenHypothesis]:
    """Yield the schemas whose facts can all still arrive after `tau`, as hypotheses without evidence.

    `has_arrived` says of a fact with its deadline whether it has arrived: then the hypothesis has evidence."""
    for schema in schemas:
        if schema.premises and all(_is_awaited(fact, delays, tau, has_arrived) for fact in _premise_facts(schema)):
            yield schema.number, 0, schema.unbound


def _premise_facts(schema: CompiledSchema) -> Iterator[AwaitedFact]:
    for premise in schema.premises:
        yield premise.predicate, premise.args(schema.unbound), premise.time(schema.unbound)


def _is_awaited(fact: AwaitedFact, delays: Delays, tau: int, has_arrived: Callable[[GroundFact, int], bool]) -> bool:
    predicate, args, time = fact
    if time is None:
        return True
    deadline = time + delays.of(predicate, args)
    return tau < deadline and (None in args or not has_arrived((predicate, to_ground_args(args), time), deadline))


def find_earliest_times(
    atoms: Sequence[TemporalAtom], awaited: Sequence[AwaitedFact], delays: Delays, tau: int
) -> tuple[str, ...]:
    """Return a condition for each time variable of awaited atoms: the first time at which all of them can arrive."""
    earliest: dict[str, int] = {}
    for atom, (predicate, args, _) in zip(atoms, awaited, strict=True):
        if atom.time is not None and atom.time.variable:
            first = max(0, tau + 1 - delays.of(predicate, args)) - atom.time.offset
            earliest[atom.time.variable] = max(first, earliest.get(atom.time.variable, first))
    return tuple(f"{name} >= {first}" for name, first in earliest.items())
