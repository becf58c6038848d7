"""Most general unifiers of atoms, and one-way matching.

The only function is adding a number to a time, so that a time variable stands for another one shifted, or for a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidelog.hypothetical.schemas import Substitution, apply_term, apply_time
from tidelog.language.syntax import TemporalAtom, Term, TimeTerm, Variable


def unify(goal: TemporalAtom, clause: TemporalAtom) -> dict[str, Term | TimeTerm] | None:
    """A most general unifier of two atoms, step by step: what a variable stands for may hold variables that stand for
    something themselves (see `solved`). Variables of the clause are bound rather than those of the goal, so that the
    names that the user asked with are the ones that stay."""
    if goal.predicate != clause.predicate or len(goal.args) != len(clause.args):
        return None
    found: dict[str, Term | TimeTerm] = {}
    for a, b in zip(goal.args, clause.args, strict=True):
        if not unify_terms(a, b, found):
            return None
    if goal.time and clause.time and not _unify_times(goal.time, clause.time, found):
        return None
    return found


def solved(steps: Substitution) -> dict[str, Term | TimeTerm]:
    """A unifier as a substitution that binds all variables at once."""
    return {
        name: _walk_time(term, steps) if isinstance(term, TimeTerm) else _walk(term, steps)
        for name, term in steps.items()
    }


def unify_terms(goal: Term, clause: Term, found: dict[str, Term | TimeTerm]) -> bool:
    """Extends a unifier such that two terms are the same; false if there is no way."""
    a, b = _walk(goal, found), _walk(clause, found)
    if a == b:
        return True
    if isinstance(b, Variable):
        found[b.name] = a
    elif isinstance(a, Variable):
        found[a.name] = b
    else:
        return False
    return True


def _unify_times(goal: TimeTerm, clause: TimeTerm, found: dict[str, Term | TimeTerm]) -> bool:
    a, b = _walk_time(goal, found), _walk_time(clause, found)
    if a.variable == b.variable:
        return a.offset == b.offset
    if b.variable is not None:
        found[b.variable] = TimeTerm(a.variable, a.offset - b.offset)
    else:
        assert a.variable is not None
        found[a.variable] = TimeTerm(None, b.offset - a.offset)
    return True


def _walk(term: Term, steps: Substitution) -> Term:
    while (found := apply_term(term, steps)) != term:
        term = found
    return term


def _walk_time(time: TimeTerm, steps: Substitution) -> TimeTerm:
    while (found := apply_time(time, steps)) != time:
        time = found
    return time


# Matching: only variables of the first side are bound; to the second side's variables they are constants.


def match_term(general: Term | TimeTerm, special: Term | TimeTerm, found: dict[str, Term | TimeTerm]) -> bool:
    """Extends a substitution of the general side such that it becomes the special one; false if there is no way."""
    if isinstance(general, TimeTerm):
        if not isinstance(special, TimeTerm):
            return False
        if general.variable is None:
            return general == special
        wanted = TimeTerm(special.variable, special.offset - general.offset)
        return found.setdefault(general.variable, wanted) == wanted
    if isinstance(general, Variable):
        return found.setdefault(general.name, special) == special
    return general == special


def match_atom(general: TemporalAtom, special: TemporalAtom, by: Substitution) -> dict[str, Term | TimeTerm] | None:
    if general.predicate != special.predicate or len(general.args) != len(special.args):
        return None
    found = dict(by)
    for a, b in zip(general.args, special.args, strict=True):
        if not match_term(a, b, found):
            return None
    if general.time and special.time and not match_term(general.time, special.time, found):
        return None
    return found


def matches(
    general: Sequence[TemporalAtom], special: Sequence[TemporalAtom], by: Substitution
) -> Iterator[tuple[dict[str, Term | TimeTerm], frozenset[int]]]:
    """Every way in which all general atoms become some of the special ones, with the places of those."""
    if not general:
        yield dict(by), frozenset()
        return
    for place, atom in enumerate(special):
        found = match_atom(general[0], atom, by)
        if found is not None:
            for whole, places in matches(general[1:], special, found):
                yield whole, places | {place}
