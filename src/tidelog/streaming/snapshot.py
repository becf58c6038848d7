"""A reasoner's whole state as data, and back; also onto rules that have changed in the meantime.

What is held of a predicate means the same under changed rules if its definition, the rules that it depends on, is the
same. So facts of the input and of predicates with an unchanged definition are kept, all others are derived anew from
them, and what cannot be had any more (facts that the old rules had forgotten already) is said.
"""

from __future__ import annotations

from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidelog.analysis.components import dependencies, head_atom
from tidelog.engine.steps import REPORTED
from tidelog.engine.store import Rows, Store
from tidelog.engine.tables import LENGTH, PRED
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.printer import format_rule
from tidelog.language.program import Program
from tidelog.language.syntax import Term
from tidelog.streaming.standing import Standing, standing
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import format_time

if TYPE_CHECKING:
    from tidelog.streaming.reasoner import Reasoner

Meta = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def taken(reasoner: Reasoner) -> tuple[Meta, Arrays]:
    """Everything that a reasoner is, as JSON and arrays."""
    form, store, output = reasoner._form, reasoner._engine.store, reasoner._output
    arrays: Arrays = store.held()
    arrays["names"], arrays["names.at"] = reasoner._symbols.texts()
    lengths = np.bincount(arrays["atoms"][:, PRED], arrays["atoms"][:, LENGTH], len(form.names)).astype(np.int64)
    meta: Meta = {
        "program": str(reasoner.program),
        "syntax": "tdl" if reasoner.program.temporal else "dmtl",
        "source": reasoner.program.source,
        "query": reasoner.query,
        "timeline": "rational" if form.grid.dense else "integer",
        "memory": reasoner.memory,
        "bounded": reasoner._bounded,
        "form": _fingerprint(form),
        "delays": [[name, str(delay)] for name, delay in reasoner._delays.items()],
        "at": None if output is None else output.state(),
        "clock": format_time(reasoner.stats.t),
        "denominator": form.grid.denominator,
        "positions": reasoner._at[: REPORTED + 1].tolist(),
        "dates": reasoner.dates,
        "late": reasoner.late,
        "taken": reasoner.taken,
        "predicates": [[name, form.arities[name], int(lengths[i])] for i, name in enumerate(form.names)],
    }
    return meta, arrays


def put_back(reasoner: Reasoner, meta: Meta, arrays: Arrays, changed: bool) -> tuple[str, ...]:
    """Gives a new reasoner the state of an old one; returns notes on what could not be kept."""
    reasoner._grid = Grid(reasoner._dense, meta["denominator"])
    reasoner._at[: REPORTED + 1] = meta["positions"]
    reasoner.dates, reasoner.late, reasoner.taken = meta["dates"], meta["late"], meta["taken"]
    reasoner._make()
    ids = reasoner._symbols.merge_texts(arrays["names"], arrays["names.at"])
    reasoner._rank()
    if not changed:
        if _fingerprint(reasoner._form) != meta["form"]:
            raise _other("this version of tidelog evaluates the program in another way than the one that saved it")
        reasoner._take_over(arrays, ids)
        return ()
    store = Store([arity for _, arity, _ in meta["predicates"]], reasoner._dense, np.zeros(1, np.int64))
    store.put(arrays, ids)
    held = {name: store.rows(i) for i, (name, _, _) in enumerate(meta["predicates"])}
    old = Program.parse(meta["program"], syntax=meta["syntax"])
    before = standing(old, meta["query"], reasoner._grid, meta["bounded"])
    kept, lost = _sorted_out(held, before, reasoner._form, old, reasoner.program)
    reasoner._derive(kept)
    return tuple(_notes(reasoner._form, before, lost, kept))


def _sorted_out(
    held: dict[str, Rows], before: Standing, after: Standing, old: Program, new: Program
) -> tuple[dict[str, Rows], list[str]]:
    """What is held, under the names of the new form, and the names of what means something else now."""
    meanings = {_meaning(after, name): name for name in after.names if name.startswith("$")}
    kept: dict[str, Rows] = {}
    lost: list[str] = []
    for name, rows in held.items():
        if not len(rows):
            continue
        below = [n for n in _below(before, name) if not n.startswith("$")]
        same = all(_definition(old, n) == _definition(new, n) for n in below)
        now = meanings.get(_meaning(before, name)) if name.startswith("$") else name
        if same and now in after.arities:
            kept[now] = rows
        else:
            lost.append(name)
    return kept, lost


def _meaning(form: Standing, name: str, above: frozenset[str] = frozenset()) -> str:
    """What a hidden predicate stands for, whatever its name: its rules, with hidden predicates spelt out."""
    if not name.startswith("$") or name in above:
        return name if name not in above else "itself"
    inner = above | {name}
    rules = []
    for rule in form.rules:
        if rule.predicate == name:
            body = [
                (_meaning(form, b.predicate, inner), _shape(b.args, rule.args), b.op, b.range, b.negated)
                for b in rule.body
            ]
            rules.append(repr((rule.range, body, rule.comparisons)))
    return "{" + ";".join(sorted(rules)) + "}"


def _shape(args: tuple[Term, ...], head: tuple[Term, ...]) -> tuple[object, ...]:
    return tuple(head.index(a) if a in head else a for a in args)


def _below(form: Standing, name: str) -> set[str]:
    """A predicate and all that it depends on."""
    found, frontier = {name}, {name}
    while frontier:
        frontier = {b.predicate for r in form.rules if r.predicate in frontier for b in r.body} - found
        found |= frontier
    return found


def program_of(meta: Meta) -> Program:
    """The program that a state was saved with."""
    return Program.parse(meta["program"], syntax=meta["syntax"], source=meta["source"])


def is_changed(meta: Meta, program: Program, query: str) -> bool:
    return (str(program), query) != (meta["program"], meta["query"])


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


def _notes(form: Standing, before: Standing, lost: list[str], kept: dict[str, Rows]) -> list[str]:
    notes = []
    anew = sorted(name for name in lost if not name.startswith("$") and name in form.arities)
    if anew:
        notes.append(f"derived anew from now on, since their rules have changed: {', '.join(anew)}")
    forgotten = {n for name in lost if name.startswith("$") for n in _below(before, name) if not n.startswith("$")}
    unsure = sorted(name for name in forgotten if name in form.arities and name not in kept)
    if unsure:
        notes.append(
            f"what operators remembered of {', '.join(unsure)} is lost: answers that depend on it may be missing, or "
            "given under `not` although they do not hold, until the new rules have seen as much as they look back"
        )
    for name in sorted(set(kept) & set(before.arities)):
        longer, shorter = form.bounds.retention[name], max(before.bounds.retention[name], 0)
        if longer > shorter and not name.startswith("$"):
            scale = form.grid.tick * form.grid.denominator
            notes.append(
                f"{name} was kept for {format_time(Fraction(shorter, scale))}, the new rules look back "
                f"{format_time(Fraction(longer, scale))}: answers that need what is forgotten already are missed"
            )
    new = sorted(n for n in form.names if n not in before.arities and not n.startswith("$"))
    if new:
        notes.append(f"seen from now on only: {', '.join(new)}")
    return notes


def _definition(program: Program, name: str) -> frozenset[str]:
    """The rules that a predicate depends on, as text."""
    needed, frontier, found = {name}, {name}, set()
    while frontier:
        below: set[str] = set()
        for rule in program.rules:
            head = head_atom(rule)
            if head is not None and head.predicate in frontier:
                found.add(format_rule(rule))
                below |= {atom.predicate for atom, _ in dependencies(rule)}
        frontier = below - needed
        needed |= frontier
    return frozenset(found)


def _fingerprint(form: Standing) -> str:
    return blake2b(repr(form.rules).encode(), digest_size=16).hexdigest()
