"""A session as bytes, and back: what is open, what was given, and what may come twice."""

from __future__ import annotations

from fractions import Fraction
from hashlib import blake2b
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
    """What JSON can say of a store."""
    if isinstance(store, Regular):
        return {
            "tau": store.tau,
            "tables": [
                [time, [[_out(objects), mask] for objects, mask in table.items()]]
                for time, table in store.tables.items()
            ],
        }
    return {
        "tau": store.tau,
        "states": [[number, mask, _out(binding), first] for (number, mask, binding), first in store.states.items()],
        "seen": [[deadline, [_out(fact) for fact in facts]] for deadline, facts in store.seen.items()],
        "answered": [[_out(theta), tau] for theta, tau in store.answered.items()],
        "given": [[_out(theta), [_out(fact) for fact in evidence]] for theta, evidence in store.given],
    }


def restore(store: General | Regular, state: dict[str, Any]) -> None:
    """Fill a new store with what another one held."""
    store.tau = state["tau"]
    if isinstance(store, Regular):
        store.tables = {time: {_in(objects): mask for objects, mask in table} for time, table in state["tables"]}
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
