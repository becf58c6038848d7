"""What negation must satisfy so that certain and possible answers are known exactly; everything else is refused.

An answer is certain if it holds in every continuation of the stream. If no fact that a schema awaits can block the same
answer, then an answer is certain exactly if one of its schemas has all its facts and nothing can block it any more:
otherwise, facts that block its schemas, one by one, are a continuation in which it does not hold. And a fact that is
awaited blocks no schema of the same answer, so a schema is possible exactly if nothing that has arrived blocks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidelog.errors import Diagnostic, TidelogError
from tidelog.hypothetical.comparison_constraints import is_satisfiable
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.schemas import (
    Blocker,
    Schema,
    apply_to_atom,
    apply_to_comparison,
    apply_to_term,
    atom_variables,
    term_variables,
)
from tidelog.hypothetical.unification import compose_unifier, unify, unify_pairs
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.syntax import TemporalAtom, Term, TimeTerm, Variable

_WITHOUT = "reason over all data with `tidelog materialise`, which decides every stratified `not`"
_EXACT_LAW = "an answer is reported as certain exactly if it holds in every continuation of the stream"


def nested_negation_error(outer: TemporalAtom, inner: TemporalAtom) -> TidelogError:
    """Return the error for a negated predicate that depends on negation itself."""
    shown = "`not`" if is_hidden(inner.predicate) else f"`not {inner.predicate}`"
    name = "what it is a condition of" if is_hidden(outer.predicate) else outer.predicate
    message = f"{shown} is not supported by hypothetical answers: {name} is negated itself"
    help = f"describe it without `not`, or {_WITHOUT}"
    return TidelogError(Diagnostic("TL702", message, inner.place or outer.place, _EXACT_LAW, help))


def _name_negation(blocker: Blocker) -> str:
    name = blocker.atom.predicate
    return "`not`" if is_hidden(name) else f"`not {name}`"


def require_decidable_absence(schemas: Sequence[Schema], delays: Delays, confidence: bool = False) -> None:
    """Raise unless what schemas with blockers wait for can be decided fact by fact, or if a confidence is asked for."""
    if confidence:
        message = "answers that wait for facts not to arrive have no confidence"
        help = "leave out --probability, --chances, --min-confidence and --max-open"
        raise TidelogError(Diagnostic("TL702", message, help=help))
    errors = [error for schema in schemas for error in _find_problems(schema, delays)]
    errors += [
        _conflict(blocker, premise)
        for schema in schemas
        for blocker in schema.blockers
        for other in schemas
        if (premise := find_conflict(schema, blocker, other)) is not None
    ]
    if errors:
        raise TidelogError(list(dict.fromkeys(errors)))


def _find_problems(schema: Schema, delays: Delays) -> Iterator[Diagnostic]:
    if not schema.blockers:
        return
    bound = {name for atom in schema.premises for name in atom_variables(atom)}
    times = {atom.time.variable for atom in schema.premises if atom.time and atom.time.variable}
    answered = {name for term in schema.answer for name in term_variables(term)}
    for blocker in schema.blockers:
        negated = _name_negation(blocker)
        place = blocker.atom.place
        free = {name for term in blocker.outer for name in term_variables(term)} | answered
        if free - bound:
            message = f"{negated} needs a fact of the stream that binds {', '.join(sorted(free - bound))}"
            law = "what must not arrive has a known time and known arguments"
            yield Diagnostic("TL702", message, place, law, "add a positive literal about the stream that has them")
        if len(times) > 1:
            message = f"{negated} is not supported where facts at unrelated times are awaited"
            help = "let the positive literals of the rule share one time variable: T, T-1, T-2"
            yield Diagnostic("TL702", message, place, _EXACT_LAW, help)
        yield from _find_inner_problems(blocker, delays)


def _find_inner_problems(blocker: Blocker, delays: Delays) -> Iterator[Diagnostic]:
    inner = blocker.schema
    known = {name for term in inner.answer for name in term_variables(term)}
    names = [name for atom in inner.premises for name in atom_variables(atom) if name not in known]
    names += [t.name for c in inner.comparisons for t in (c.left, c.right) if isinstance(t, Variable)]
    for atom in inner.premises:
        if atom.time and atom.time.variable and atom.time.variable not in known:
            message = f"{_name_negation(blocker)} is not supported: {atom.predicate} may be at any time"
            help = f"give {atom.predicate} a time at a fixed distance from what it is a condition of: T, T-1"
            yield Diagnostic("TL702", message, blocker.atom.place, "what must not arrive has a known time", help)
        joined = any(names.count(name) > 1 for name in atom_variables(atom))
        if joined and delays.uniform_delay(atom.predicate) is None:
            message = f"{_name_negation(blocker)} is not supported with several delays of {atom.predicate}"
            help = f"give {atom.predicate} one delay for all its facts"
            yield Diagnostic("TL702", message, blocker.atom.place, _EXACT_LAW, help)


def find_conflict(schema: Schema, blocker: Blocker, other: Schema) -> TemporalAtom | None:
    """Return a premise of another schema that may be a fact that blocks the same answer."""
    apart = _rename(other, "$other ")
    inner = _rename(blocker.schema, "$inner ")
    pairs = [*zip(schema.answer, apart.answer, strict=True), *zip(blocker.outer, inner.answer, strict=True)]
    steps = unify_pairs(pairs)
    if steps is None:
        return None
    by = compose_unifier(steps)
    for premise, shown in zip(apart.premises, other.premises, strict=True):
        for atom in inner.premises:
            steps = unify(apply_to_atom(premise, by), apply_to_atom(atom, by))
            if steps is not None:
                both = compose_unifier(steps)
                among = (*schema.comparisons, *apart.comparisons, *inner.comparisons)
                if is_satisfiable(apply_to_comparison(apply_to_comparison(c, by), both) for c in among):
                    return shown
    return None


def _rename(schema: Schema, prefix: str) -> Schema:
    by: dict[str, Term | TimeTerm] = {}
    for atom in schema.premises:
        by |= {t.name: Variable(prefix + t.name) for t in atom.args if isinstance(t, Variable)}
        if atom.time and atom.time.variable:
            by[atom.time.variable] = TimeTerm(prefix + atom.time.variable, 0)
    for term in schema.answer:
        if isinstance(term, Variable):
            by[term.name] = Variable(prefix + term.name)
        elif isinstance(term, TimeTerm) and term.variable:
            by[term.variable] = TimeTerm(prefix + term.variable, 0)
    premises = tuple(apply_to_atom(atom, by) for atom in schema.premises)
    comparisons = tuple(apply_to_comparison(comparison, by) for comparison in schema.comparisons)
    return Schema(tuple(apply_to_term(term, by) for term in schema.answer), premises, comparisons)


def _conflict(blocker: Blocker, premise: TemporalAtom) -> Diagnostic:
    negated = _name_negation(blocker)
    message = f"a fact of {premise.predicate} may both support an answer and, by {negated}, prevent it"
    help = "ask for two predicates, one for each way to the answer"
    return Diagnostic("TL702", message, blocker.atom.place, _EXACT_LAW, help)
