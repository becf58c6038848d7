"""Most general unifiers of atoms, and one-way matching.

The only function symbol adds a number to a time. So a time variable is bound to another time variable with an offset,
or to a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tidelog.hypothetical.schemas import Substitution, apply_to_object, apply_to_time
from tidelog.language.syntax import TemporalAtom, Term, TimeTerm, Variable


def unify(goal: TemporalAtom, clause: TemporalAtom) -> dict[str, Term | TimeTerm] | None:
    """Return a most general unifier of two atoms in triangular form, or None if there is none.

    A variable may be bound to a term with variables that are bound themselves (see `compose_unifier`). Variables of the
    clause are bound in preference to those of the goal, so that the names in the user's query survive."""
    return _combine_atoms(goal, clause, {}, unify_terms, _unify_times)


def unify_pairs(pairs: Iterable[tuple[Term | TimeTerm, Term | TimeTerm]]) -> dict[str, Term | TimeTerm] | None:
    """Return a most general unifier of the terms of each pair in triangular form, or None if there is none."""
    found: dict[str, Term | TimeTerm] = {}
    for a, b in pairs:
        if isinstance(a, TimeTerm) and isinstance(b, TimeTerm):
            if not _unify_times(a, b, found):
                return None
        elif isinstance(a, TimeTerm) or isinstance(b, TimeTerm) or not unify_terms(a, b, found):
            return None
    return found


def compose_unifier(steps: Substitution) -> dict[str, Term | TimeTerm]:
    """Return a triangular unifier as a substitution that binds all variables at once."""
    return {
        name: _resolve_time(term, steps) if isinstance(term, TimeTerm) else _resolve_term(term, steps)
        for name, term in steps.items()
    }


def unify_terms(goal: Term, clause: Term, found: dict[str, Term | TimeTerm]) -> bool:
    """Extend a unifier such that two terms become equal; return False if that is impossible."""
    a, b = _resolve_term(goal, found), _resolve_term(clause, found)
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
    a, b = _resolve_time(goal, found), _resolve_time(clause, found)
    if a.variable == b.variable:
        return a.offset == b.offset
    if b.variable is not None:
        found[b.variable] = TimeTerm(a.variable, a.offset - b.offset)
    else:
        assert a.variable is not None
        found[a.variable] = TimeTerm(None, b.offset - a.offset)
    return True


def _resolve_term(term: Term, steps: Substitution) -> Term:
    while (found := apply_to_object(term, steps)) != term:
        term = found
    return term


def _resolve_time(time: TimeTerm, steps: Substitution) -> TimeTerm:
    while (found := apply_to_time(time, steps)) != time:
        time = found
    return time


# Matching binds only variables of the general side; the variables of the special side act as constants.


def match_term(general: Term | TimeTerm, special: Term | TimeTerm, found: dict[str, Term | TimeTerm]) -> bool:
    """Extend a substitution such that the general term becomes the special one; return False if that is impossible."""
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
    """Return the substitution extended such that the general atom becomes the special one, or None."""
    return _combine_atoms(general, special, dict(by), match_term, match_term)


def _combine_atoms(
    one: TemporalAtom,
    other: TemporalAtom,
    found: dict[str, Term | TimeTerm],
    combine_terms: Callable[[Term, Term, dict[str, Term | TimeTerm]], bool],
    combine_times: Callable[[TimeTerm, TimeTerm, dict[str, Term | TimeTerm]], bool],
) -> dict[str, Term | TimeTerm] | None:
    """Extend a substitution by every pair of terms of two atoms; return it, or None if a pair does not fit."""
    if one.predicate != other.predicate or len(one.args) != len(other.args):
        return None
    if not all(combine_terms(a, b, found) for a, b in zip(one.args, other.args, strict=True)):
        return None
    if one.time and other.time and not combine_times(one.time, other.time, found):
        return None
    return found


def find_matches(
    general: Sequence[TemporalAtom], special: Sequence[TemporalAtom], by: Substitution
) -> Iterator[tuple[dict[str, Term | TimeTerm], frozenset[int]]]:
    """Yield every substitution that maps all general atoms to some of the special ones, with the indices of these."""
    if not general:
        yield dict(by), frozenset()
        return
    for index, atom in enumerate(special):
        found = match_atom(general[0], atom, by)
        if found is not None:
            for whole, indices in find_matches(general[1:], special, found):
                yield whole, indices | {index}
