"""Check that queries name predicates of the rules or of the data."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.program import Program
from tidelog.language.wording import suggest


def known_predicates(program: Program, data: Iterable[str] = ()) -> frozenset[str]:
    """Return the predicates that the user wrote, in rules or in `data`."""
    return frozenset(name for name in (*program.predicates, *data) if not is_hidden(name))


def require_known_predicates(queries: Iterable[str], known: Collection[str]) -> None:
    """Raise TL302 for every query predicate that occurs nowhere: an empty answer would hide the misspelt name."""
    unknown = [name for name in queries if name not in known]
    if unknown:
        raise TidelogError(_report_unknown(name, known) for name in unknown)


def _report_unknown(name: object, known: Collection[str]) -> Diagnostic:
    help = f"the predicates are {', '.join(sorted(known))}" if known else "there are no predicates at all"
    if not isinstance(name, str):
        problem = f"the query is an object of type {type(name).__name__}, which is no name of a predicate"
        return Diagnostic("TL302", problem, help=help)
    if close := suggest(name, known):
        help = f"did you mean {close}?"
    return Diagnostic("TL302", f"the query predicate {name} occurs neither in the rules nor in the data", help=help)
