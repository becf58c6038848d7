"""A session as bytes, and back: what is open, what was given, and what may come twice."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from hashlib import blake2b
from operator import itemgetter
from typing import Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.hypothetical.compiled import GroundFact
from tidelog.hypothetical.general import General
from tidelog.hypothetical.regular import Regular


def fingerprint(*parts: object) -> str:
    """What a session was made of."""
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def check(found: Any, wanted: str) -> None:
    if found != wanted:
        law = "a state goes on with the rules, the query and the options that made it"
        message = "this is the state of another query, or of none with hypothetical answers"
        raise TidelogError(Diagnostic("TL403", message, law=law))


def dump(store: General | Regular) -> dict[str, Any]:
    """What JSON can say of a store; the same for stores that are the same."""
    if isinstance(store, Regular):
        return {
            "tau": store.tau,
            "tables": [
                [ends, time, [[_out(objects), mask] for objects, mask in masks.items()]]
                for ends, tables in sorted(store.tables.items(), key=itemgetter(0))
                for time, masks in sorted(tables.masks.items())
            ],
        }
    return {
        "tau": store.tau,
        "states": [[number, mask, _out(binding), first] for (number, mask, binding), first in store.states.items()],
        "seen": [[deadline, _sorted(facts)] for deadline, facts in sorted(store.seen.items())],
        "answered": [[_out(theta), tau] for theta, tau in store.answered.items()],
        "given": sorted(([_out(theta), _sorted(evidence)] for theta, evidence in store.given), key=repr),
    }


def restore(store: General | Regular, state: dict[str, Any]) -> None:
    """Fill a new store with what another one held."""
    store.tau = state["tau"]
    if isinstance(store, Regular):
        for ends, time, masks in state["tables"]:
            store.tables_of(tuple(ends)).masks[time] = {_in(objects): mask for objects, mask in masks}
        return
    for number, mask, binding, first in state["states"]:
        bound = _in(binding)
        store.add((number, mask, bound), store.schemas[number].answered(bound), first)
    for deadline, facts in state["seen"]:
        for fact in facts:
            store.note_fact(_fact(fact), deadline)
    for theta, tau in state["answered"]:
        store.give(_in(theta), tau)
    store.given = {(_in(theta), frozenset(map(_fact, evidence))) for theta, evidence in state["given"]}


def _sorted(facts: Iterable[GroundFact]) -> list[Any]:
    return sorted(map(_out, facts), key=repr)


def _fact(found: Any) -> GroundFact:
    predicate, args, time = _in(found)
    return predicate, args, time


def _out(value: Any) -> Any:
    """Tuples are lists, and fractions are texts in a list of their own kind."""
    if isinstance(value, tuple):
        return [_out(part) for part in value]
    return {"fraction": str(value)} if isinstance(value, Fraction) else value


def _in(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_in(part) for part in value)
    return Fraction(value["fraction"]) if isinstance(value, dict) else value
