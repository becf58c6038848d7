"""Which predicates may be asked for: those of the rules, and those of the data."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.codes import suggest
from tidelog.language.program import Program


def known_predicates(program: Program, data: Iterable[str] = ()) -> frozenset[str]:
    """The predicates that the user wrote, in rules or in `data`."""
    return frozenset(name for name in (*program.predicates, *data) if not name.startswith("$"))


def require_known(queries: Iterable[str], known: Collection[str]) -> None:
    """Raise for every query predicate that occurs nowhere: it is misspelt, and an empty answer would hide that."""
    unknown = [name for name in queries if name not in known]
    if unknown:
        raise TidelogError(_unknown(name, known) for name in unknown)


def _unknown(name: str, known: Collection[str]) -> Diagnostic:
    close = suggest(name, known)
    if close:
        way_out = f"did you mean {close}?"
    else:
        way_out = f"the predicates are {', '.join(sorted(known))}" if known else "there are no predicates at all"
    return Diagnostic(
        "TL302",
        f"the query predicate {name} occurs neither in the rules nor in the data",
        law="a query names a predicate of the rules or of the data, without arguments",
        help=way_out,
    )
