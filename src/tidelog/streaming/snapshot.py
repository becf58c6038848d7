"""Dump the whole state of a reasoner, and restore it, also onto changed rules (see `state_migration`)."""

from __future__ import annotations

from hashlib import blake2b
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.prepare_facts import with_program_facts
from tidelog.data.data_frames import DataLike
from tidelog.data.relation import finer, refine_pairs
from tidelog.engine.fact_store import Int32s, Rows, Store
from tidelog.engine.store_tables import LENGTH, PRED
from tidelog.engine.stream_kernel import EVALUATED, FRONTIER, LAST, NOW, REPORTED
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import Program
from tidelog.language.program_json import program_from_json, program_to_json
from tidelog.language.syntax_json import nodes_to_json
from tidelog.streaming.compiled_query import compile_query
from tidelog.streaming.correction_state import dump_corrections, restore_corrections
from tidelog.streaming.output_times import OutputTimesLike
from tidelog.streaming.state_format import unpack
from tidelog.streaming.state_migration import SavedState, describe_migration, select_kept_facts
from tidelog.timeline.interval import format_time

if TYPE_CHECKING:
    from tidelog.streaming.reasoner import Reasoner

Meta = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def dump_reasoner(reasoner: Reasoner) -> tuple[Meta, Arrays]:
    """Return the whole state of a reasoner, as JSON values and arrays."""
    if reasoner.corrections is None:
        return _dump_evaluation(reasoner)
    kept, more = dump_corrections(reasoner.corrections)
    with reasoner.corrections.at_oldest_checkpoint():
        meta, arrays = _dump_evaluation(reasoner)
    return meta | {"corrections": kept}, arrays | more


def _dump_evaluation(reasoner: Reasoner) -> tuple[Meta, Arrays]:
    evaluation = reasoner.evaluation
    form, output = evaluation.form, evaluation.output
    arrays: Arrays = evaluation.store.held()
    if evaluation.numbers is not None:
        arrays |= evaluation.numbers.state()
    arrays["names"], arrays["names.at"] = evaluation.symbols.texts()
    lengths = np.bincount(arrays["atoms"][:, PRED], arrays["atoms"][:, LENGTH], len(form.names)).astype(np.int64)
    meta: Meta = {
        **program_to_json(reasoner.program),
        "query": reasoner.query,
        "timeline": "rational" if form.grid.dense else "integer",
        "memory": reasoner.memory,
        "parts": reasoner.partial,
        "bounded": evaluation.bounded,
        "standing": True,
        "form": _fingerprint(form),
        "delays": [[name, str(delay)] for name, delay in evaluation.delays.items()],
        "at": None if output is None else output.state(),
        "clock": format_time(reasoner.last_step.time),
        "denominator": form.grid.denominator,
        "positions": evaluation.at[: REPORTED + 1].tolist(),
        "dates": reasoner.dates,
        "late": reasoner.late_count,
        "taken": reasoner.facts_taken,
        "predicates": [[name, form.arities[name], int(lengths[i])] for i, name in enumerate(form.names)],
    }
    if evaluation.calendar.active:
        meta["calendar"] = evaluation.calendar.to_json()
    return meta, arrays


def restore_reasoner(
    reasoner: Reasoner,
    meta: Meta,
    arrays: Arrays,
    changed: bool,
    background: DataLike | None = None,
    at: OutputTimesLike | None = None,
) -> tuple[str, ...]:
    """Give a new reasoner a saved state; return notes on what could not be kept.

    `background` holds facts that only the changed rules read; background in the state stays as it is. Output times that
    were given one by one have to be given again as `at`.
    """
    ids, notes = _restore_evaluation(reasoner, meta, arrays, changed, background)
    if meta["at"] is not None:
        reasoner.evaluation.restore_times(meta["at"], at)
    if reasoner.corrections is not None:
        restore_corrections(reasoner.corrections, meta["corrections"], arrays, ids, changed)
    return notes


def _restore_evaluation(
    reasoner: Reasoner, meta: Meta, arrays: Arrays, changed: bool, background: DataLike | None
) -> tuple[Int32s | None, tuple[str, ...]]:
    """Give the evaluation of a new reasoner a saved state; return new numbers of constants, if any, and the notes."""
    evaluation = reasoner.evaluation
    reasoner.evaluation.dates = meta["dates"]
    reasoner.dates, reasoner.late_count, reasoner.facts_taken = meta["dates"], meta["late"], meta["taken"]
    known = with_program_facts(reasoner.program, background)
    factor = 1
    if changed and evaluation.grid.dense:  # the new rules, or what they read, may need a finer grid
        denominator = lcm(meta["denominator"], evaluation.grid.denominator, known.denominator)
        factor = denominator // meta["denominator"]
    at = [finer(position, factor) for position in meta["positions"]]
    ids = evaluation.stand(factor * meta["denominator"], at, (arrays["names"], arrays["names.at"]))
    if evaluation.calendar.active:
        evaluation.calendar.restore(meta.get("calendar"))
    if not changed:
        if _fingerprint(evaluation.form) != meta["form"]:
            raise _other_rules_error(
                "this version of tidelog evaluates the rules differently from the one that saved the state"
            )
        evaluation.take_over(arrays, ids)
        return ids, ()
    store = Store([arity for _, arity, _ in meta["predicates"]], evaluation.grid.dense, np.zeros(1, np.int64))
    store.put(arrays, ids)
    # Deferred records are as true as the facts that are held.
    waiting = store.deferred()
    held = {}
    for i, (name, arity, _) in enumerate(meta["predicates"]):
        rows = Rows.concatenate([store.rows(i), *([waiting[i]] if i in waiting else [])], arity)
        held[name] = Rows(rows.args, *refine_pairs(rows.lo, rows.hi, factor))
    old = program_from_json(meta)
    # States saved before facts could stand hold other facts of the predicates that such facts follow from.
    before = compile_query(old, meta["query"], evaluation.grid, meta["bounded"], meta.get("standing", False))
    state = SavedState(
        old,
        before,
        meta["query"],
        held,
        min(at[FRONTIER], at[EVALUATED]) if before.waiting else at[FRONTIER],
        max(at[NOW], at[LAST]),
    )
    kept = select_kept_facts(state, reasoner.program, evaluation.form, frozenset(name for name, _ in known.relations))
    reasoner.facts_taken += evaluation.derive(kept.rows, known)
    return ids, tuple(describe_migration(state, evaluation.form, kept, reasoner.query, reasoner.dates))


def is_changed(meta: Meta, program: Program, query: str) -> bool:
    now = str(program), nodes_to_json(program.rules), query
    return now != (meta["program"], meta["rules"], meta["query"])


def has_other_rules(state: bytes, program: Program, query: str) -> bool:
    """Return whether a state was saved with other rules or another query."""
    return is_changed(unpack(state)[0], program, query)


def changed_rules_error(meta: Meta, program: Program) -> TidelogError:
    mine, theirs = set(str(program).splitlines()), set(meta["program"].splitlines())
    new, gone = sorted(mine - theirs), sorted(theirs - mine)
    shown = "; ".join([f"new: {rule}" for rule in new[:2]] + [f"gone: {rule}" for rule in gone[:2]])
    return _other_rules_error(f"the state was saved with other rules ({shown or 'another query'})")


def _other_rules_error(reason: str) -> TidelogError:
    return TidelogError(
        Diagnostic(
            "TL403",
            reason,
            law="a state continues with the rules that it was saved with, unless a change is asked for",
            help="ask for the change (`--changed-rules`, or `changed=True` in Python), or start without the state",
        )
    )


def _fingerprint(form: CompiledProgram) -> str:
    steps = repr(form.steps) if form.numeric else ""
    return blake2b((repr(form.rules) + steps).encode(), digest_size=16).hexdigest()
