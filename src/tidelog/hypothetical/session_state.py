"""Convert the store of a session to JSON and back: open hypotheses, answers given, and facts that may arrive twice."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from hashlib import blake2b
from operator import itemgetter
from typing import Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.hypothetical.absence_hypotheses import AbsenceHypotheses
from tidelog.hypothetical.general_hypotheses import GeneralHypotheses
from tidelog.hypothetical.ground_facts import GroundFact
from tidelog.hypothetical.regular_hypotheses import RegularHypotheses


def fingerprint(*parts: object) -> str:
    """Return a hash of everything that a session was made of."""
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def require_fingerprint(found: Any, wanted: str) -> None:
    """Raise if a state was saved by a session with another fingerprint."""
    if found != wanted:
        raise _other_session_error()


def require_origin(meta: dict[str, Any], program: dict[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of the session that saved a state; raise if there are none or its program is another."""
    origin: dict[str, Any] | None = meta.get("origin")
    if origin is None or "hypotheses" not in meta or (program is not None and program != origin["program"]):
        raise _other_session_error()
    return origin


def _other_session_error() -> TidelogError:
    message = "this is the state of another query, or not of a session of hypothetical answers"
    return TidelogError(Diagnostic("TL403", message))


def dump_store(store: GeneralHypotheses | RegularHypotheses | AbsenceHypotheses) -> dict[str, Any]:
    """Return the contents of a store as JSON values; equal stores give equal values."""
    if isinstance(store, AbsenceHypotheses):
        return {
            "tau": store.tau,
            "premises": dump_store(store.premises),
            "complete": [[number, mask, _to_json(binding)] for number, mask, binding in store.complete],
            "facts": [
                [predicate, time, sorted(map(_to_json, args), key=repr)]
                for predicate, times in sorted(store.facts.items())
                for time, args in sorted(times.items())
            ],
            "answered": [[_to_json(values), last] for values, last in store.answered.items()],
        }
    if isinstance(store, RegularHypotheses):
        return {
            "tau": store.tau,
            "tables": [
                [ends, time, [[_to_json(objects), mask] for objects, mask in masks.items()]]
                for ends, tables in sorted(store.tables.items(), key=itemgetter(0))
                for time, masks in sorted(tables.masks.items())
            ],
        }
    return {
        "tau": store.tau,
        "states": [
            [number, mask, _to_json(binding), first] for (number, mask, binding), first in store.first_deadlines.items()
        ],
        "seen": [[deadline, _sort_facts(facts)] for deadline, facts in sorted(store.arrived.items())],
        "answered": [[_to_json(theta), tau] for theta, tau in store.answer_times.items()],
        "given": sorted(([_to_json(theta), _sort_facts(evidence)] for theta, evidence in store.given_now), key=repr),
    }


def restore_store(store: GeneralHypotheses | RegularHypotheses | AbsenceHypotheses, state: dict[str, Any]) -> None:
    """Fill a new store with the contents of a saved one."""
    store.tau = state["tau"]
    if isinstance(store, AbsenceHypotheses):
        restore_store(store.premises, state["premises"])
        store.complete = {(number, mask, _from_json(binding)): None for number, mask, binding in state["complete"]}
        for predicate, time, args in state["facts"]:
            store.facts.setdefault(predicate, {})[time] = set(map(_from_json, args))
        store.answered = {_from_json(values): last for values, last in state["answered"]}
        return
    if isinstance(store, RegularHypotheses):
        for ends, time, masks in state["tables"]:
            store.tables_of(tuple(ends)).masks[time] = {_from_json(objects): mask for objects, mask in masks}
        return
    for number, mask, binding, first in state["states"]:
        bound = _from_json(binding)
        store.add_hypothesis((number, mask, bound), store.schemas[number].answer_values(bound), first)
    for deadline, facts in state["seen"]:
        for fact in facts:
            store.record_fact(_read_fact(fact), deadline)
    for theta, tau in state["answered"]:
        store.record_answer(_from_json(theta), tau)
    store.given_now = {(_from_json(theta), frozenset(map(_read_fact, evidence))) for theta, evidence in state["given"]}


def _sort_facts(facts: Iterable[GroundFact]) -> list[Any]:
    return sorted(map(_to_json, facts), key=repr)


def _read_fact(found: Any) -> GroundFact:
    predicate, args, time = _from_json(found)
    return predicate, args, time


def _to_json(value: Any) -> Any:
    """Convert tuples to lists, and fractions to objects with their text."""
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    return {"fraction": str(value)} if isinstance(value, Fraction) else value


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_from_json(part) for part in value)
    return Fraction(value["fraction"]) if isinstance(value, dict) else value
