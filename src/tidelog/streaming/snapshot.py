"""A reasoner's whole state as data, and back; also onto rules that have changed in the meantime (see `changed`)."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidelog.data.columns import refined
from tidelog.data.dataset import Dataset
from tidelog.engine.steps import EVALUATED, FRONTIER, LAST, NOW, REPORTED
from tidelog.engine.store import Rows, Store
from tidelog.engine.tables import LENGTH, PRED
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import Program
from tidelog.language.tree import facts_of, rules_of, to_tree
from tidelog.streaming import given
from tidelog.streaming.changed import Old, notes, sorted_out
from tidelog.streaming.evaluation import finer
from tidelog.streaming.standing import Standing, standing
from tidelog.streaming.state import unpack
from tidelog.timeline.interval import format_time

if TYPE_CHECKING:
    from tidelog.streaming.reasoner import Reasoner

Meta = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def taken(reasoner: Reasoner) -> tuple[Meta, Arrays]:
    """Everything that a reasoner is, as JSON and arrays."""
    evaluation = reasoner.evaluation
    form, output = evaluation.form, evaluation.output
    arrays: Arrays = evaluation.store.held()
    arrays["names"], arrays["names.at"] = evaluation.symbols.texts()
    lengths = np.bincount(arrays["atoms"][:, PRED], arrays["atoms"][:, LENGTH], len(form.names)).astype(np.int64)
    meta: Meta = {
        "program": str(reasoner.program),
        "rules": to_tree(reasoner.program.rules),
        "facts": to_tree(reasoner.program.facts),
        "syntax": "tdl" if reasoner.program.temporal else "dmtl",
        "source": reasoner.program.source,
        "query": reasoner.query,
        "timeline": "rational" if form.grid.dense else "integer",
        "memory": reasoner.memory,
        "parts": reasoner.parts,
        "bounded": evaluation.bounded,
        "form": _fingerprint(form),
        "delays": [[name, str(delay)] for name, delay in evaluation.delays.items()],
        "at": None if output is None else output.state(),
        "clock": format_time(reasoner.stats.t),
        "denominator": form.grid.denominator,
        "positions": evaluation.at[: REPORTED + 1].tolist(),
        "dates": reasoner.dates,
        "late": reasoner.late,
        "taken": reasoner.taken,
        "predicates": [[name, form.arities[name], int(lengths[i])] for i, name in enumerate(form.names)],
    }
    return meta, arrays


def put_back(
    reasoner: Reasoner, meta: Meta, arrays: Arrays, changed: bool, background: Dataset | None = None
) -> tuple[str, ...]:
    """Gives a new reasoner the state of an old one; returns notes on what could not be kept.

    `background` is what changed rules may read of it; what the state holds of it stays as it is.
    """
    evaluation = reasoner.evaluation
    reasoner.dates, reasoner.late, reasoner.taken = meta["dates"], meta["late"], meta["taken"]
    known = given.known(reasoner.program, background)
    factor = 1
    if changed and evaluation.grid.dense:  # the new rules, or what they read, may need a finer grid
        denominator = lcm(meta["denominator"], evaluation.grid.denominator, known.denominator)
        factor = denominator // meta["denominator"]
    at = [finer(position, factor) for position in meta["positions"]]
    ids = evaluation.stand(factor * meta["denominator"], at, (arrays["names"], arrays["names.at"]))
    if not changed:
        if _fingerprint(evaluation.form) != meta["form"]:
            raise _other("this version of tidelog evaluates the program in another way than the one that saved it")
        evaluation.take_over(arrays, ids)
        return ()
    store = Store([arity for _, arity, _ in meta["predicates"]], evaluation.grid.dense, np.zeros(1, np.int64))
    store.put(arrays, ids)
    # Records that wait for their time are as true as what is held.
    waiting = store.deferred()
    held = {}
    for i, (name, arity, _) in enumerate(meta["predicates"]):
        rows = Rows.joined([store.rows(i), *([waiting[i]] if i in waiting else [])], arity)
        held[name] = Rows(rows.args, *refined(rows.lo, rows.hi, factor))
    old = program_of(meta)
    before = standing(old, meta["query"], evaluation.grid, meta["bounded"])
    state = Old(
        old,
        before,
        meta["query"],
        held,
        min(at[FRONTIER], at[EVALUATED]) if before.negations else at[FRONTIER],
        max(at[NOW], at[LAST]),
    )
    kept = sorted_out(state, reasoner.program, evaluation.form, frozenset(name for name, _ in known.relations))
    reasoner.taken += evaluation.derive(kept.rows, known)
    return tuple(notes(state, evaluation.form, kept, reasoner.query, reasoner.dates))


def program_of(meta: Meta) -> Program:
    """The program that a state was saved with; its own rules, which need not be all that its text has."""
    rules, facts = rules_of(meta["rules"]), facts_of(meta["facts"])
    if meta["syntax"] == "tdl":
        return replace(Program.parse(meta["program"], syntax="tdl", source=meta["source"]), rules=rules, facts=facts)
    return Program(rules, "rational", facts, source=meta["source"])


def is_changed(meta: Meta, program: Program, query: str) -> bool:
    now = str(program), to_tree(program.rules), query
    return now != (meta["program"], meta["rules"], meta["query"])


def differs(state: bytes, program: Program, query: str) -> bool:
    """Whether a state was saved with other rules."""
    return is_changed(unpack(state)[0], program, query)


def other_program(meta: Meta, program: Program) -> TidelogError:
    mine, theirs = set(str(program).splitlines()), set(meta["program"].splitlines())
    new, gone = sorted(mine - theirs), sorted(theirs - mine)
    shown = "; ".join([f"new: {rule}" for rule in new[:2]] + [f"gone: {rule}" for rule in gone[:2]])
    return _other(f"the state was saved with other rules ({shown or 'another query'})")


def _other(reason: str) -> TidelogError:
    return TidelogError(
        Diagnostic(
            "TL403",
            reason,
            law="a state goes on with the rules that it was saved with, unless told to take what it can",
            help="ask for the change (`--changed-rules`, or `changed=True` in Python), or start without the state",
        )
    )


def _fingerprint(form: Standing) -> str:
    return blake2b(repr(form.rules).encode(), digest_size=16).hexdigest()
