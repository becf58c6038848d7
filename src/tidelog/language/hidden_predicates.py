"""Names of hidden predicates: those that tidelog adds for subformulas, constraints and translations.

A hidden name starts with `$`, which no name in a rule file can. Every module that asks whether a predicate is hidden,
or makes a hidden name, does so through this module. Saved states contain these names, so a name keeps its meaning.
"""

from __future__ import annotations

_PREFIX = "$"


def is_hidden(predicate: str) -> bool:
    """Return whether a predicate was made by tidelog rather than written by the user."""
    return predicate.startswith(_PREFIX)


def hidden_name(text: str) -> str:
    """Make the name of a hidden predicate."""
    return _PREFIX + text


#: Holds at all times; it has no arguments.
ALWAYS = hidden_name("true")
#: Holds of the natural number n at time n; the translation of temporal Datalog uses it for times that are constants.
CLOCK = hidden_name("at")
#: Holds of a constant in its own bucket only; guards the rules of a stage that are split by a constant.
HERE = hidden_name("here")
#: Holds of a number that is different in every bucket; parts of an aggregate carry it.
BUCKET = hidden_name("bucket")
#: Carries the stream's own times to every bucket of a Spark job that is asked for answers at these times.
TIMES = hidden_name("time")

#: Carries all the predicates that a stage gives to others. It is asked for as a query, so it is not a hidden one; `#`
#: keeps users from writing it.
STAGE_OUTPUT = "#out"

#: Names of the predicates that hold where a constraint is violated begin with this.
_VIOLATION = hidden_name("bottom")


def violation_name(rule: int, way: int) -> str:
    """Make the name of the predicate that holds where a constraint is violated, in one of the ways to do so."""
    return f"{_VIOLATION}{rule}.{way}"


def is_violation(predicate: str) -> bool:
    """Return whether a predicate holds where a constraint is violated."""
    return predicate.startswith(_VIOLATION)


def is_internal(predicate: str) -> bool:
    """Return whether no user can write this predicate: it is hidden, or the output of a stage."""
    return is_hidden(predicate) or predicate == STAGE_OUTPUT
