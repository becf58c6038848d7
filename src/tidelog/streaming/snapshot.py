"""A reasoner's whole state as data, and back; also onto rules that have changed in the meantime (see `changed`)."""

from __future__ import annotations

from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tidelog.engine.store import Rows
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import Program
from tidelog.language.syntax import Value
from tidelog.streaming.changed import Old, notes, sorted_out, with_deferred
from tidelog.streaming.standing import Standing, standing
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import format_time

if TYPE_CHECKING:
    from tidelog.streaming.reasoner import Reasoner

Meta = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
#: The positions of a reasoner: where its clock, its input, its rules and its answers stand.
POSITIONS = ("_now", "_last", "_closed", "_frontier", "_evaluated", "_reported")


def taken(reasoner: Reasoner) -> tuple[Meta, Arrays]:
    """Everything that a reasoner is, as JSON and arrays."""
    form, store, output = reasoner._form, reasoner._engine.store, reasoner._output
    rows = {name: store.rows(i) for i, name in enumerate(form.names)}
    meta: Meta = {
        "program": str(reasoner.program),
        "syntax": "tdl" if reasoner.program.temporal else "dmtl",
        "source": reasoner.program.source,
        "query": reasoner.query,
        "timeline": "rational" if form.grid.dense else "integer",
        "memory": reasoner.memory,
        "parts": reasoner.parts,
        "bounded": reasoner._bounded,
        "form": _fingerprint(form),
        "delays": [[name, str(delay)] for name, delay in reasoner._delays.items()],
        "at": None if output is None else output.state(),
        "clock": format_time(reasoner.stats.t),
        "denominator": form.grid.denominator,
        "positions": [getattr(reasoner, position) for position in POSITIONS],
        "dates": reasoner.dates,
        "late": reasoner.late,
        "taken": reasoner.taken,
        "symbols": [_written(reasoner._symbols.value(i)) for i in range(len(reasoner._symbols))],
        "predicates": [[name, len(r.args), len(r)] for name, r in rows.items()],
    }
    arrays: Arrays = {"later": store.later[: store.later_end].copy()}
    for number, part in enumerate(rows.values()):
        arrays |= {f"{number}.args": part.args, f"{number}.lo": part.lo, f"{number}.hi": part.hi}
    return meta, arrays


def put_back(reasoner: Reasoner, meta: Meta, arrays: Arrays, changed: bool) -> tuple[str, ...]:
    """Gives a new reasoner the state of an old one; returns notes on what could not be kept."""
    for text in meta["symbols"]:
        reasoner._symbols.intern(_read(text))
    reasoner._grid = Grid(reasoner._dense, meta["denominator"])
    for position, at in zip(POSITIONS, meta["positions"], strict=True):
        setattr(reasoner, position, at)
    reasoner.dates, reasoner.late, reasoner.taken = meta["dates"], meta["late"], meta["taken"]
    reasoner._make()
    held = {
        name: Rows(arrays[f"{i}.args"], arrays[f"{i}.lo"], arrays[f"{i}.hi"])
        for i, (name, _, _) in enumerate(meta["predicates"])
    }
    if not changed:
        if _fingerprint(reasoner._form) != meta["form"]:
            raise _other("this version of tidelog evaluates the program in another way than the one that saved it")
        reasoner._put(held, arrays["later"])
        return ()
    old = Program.parse(meta["program"], syntax=meta["syntax"])
    before = standing(old, meta["query"], reasoner._grid, meta["bounded"])
    positions = dict(zip(POSITIONS, meta["positions"], strict=True))
    base = min(positions["_frontier"], positions["_evaluated"]) if before.negations else positions["_frontier"]
    state = Old(
        old,
        before,
        meta["query"],
        with_deferred(before, held, arrays["later"]),
        base,
        max(positions["_now"], positions["_last"]),
    )
    kept = sorted_out(state, reasoner.program, reasoner._form)
    reasoner._derive(kept.rows)
    return tuple(notes(state, reasoner._form, kept, reasoner.query, reasoner.dates))


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


def _fingerprint(form: Standing) -> str:
    return blake2b(repr(form.rules).encode(), digest_size=16).hexdigest()


def _written(value: Value) -> list[str]:
    return ["s" if isinstance(value, str) else "n", str(value)]


def _read(text: list[str]) -> Value:
    return text[1] if text[0] == "s" else Fraction(text[1])
