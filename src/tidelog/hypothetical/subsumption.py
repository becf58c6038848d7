"""Remove schemas that are subsumed by others: those that have the same answers and need no more facts.

One schema subsumes another if one of its instances has the same answer and a subset of the premises: theta-subsumption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidelog.hypothetical.comparison_constraints import is_implied
from tidelog.hypothetical.schemas import Schema, apply_to_blocker, apply_to_comparison, apply_to_schema
from tidelog.hypothetical.unification import find_matches, match_term, unify
from tidelog.language.syntax import Comparison, Constant, TemporalAtom, Term, TimeTerm, Variable


def find_instances(
    general: Schema, special: Schema, premises: Sequence[TemporalAtom] | None = None
) -> Iterator[tuple[dict[str, Term | TimeTerm], frozenset[int]]]:
    """Yield the substitutions that give the general schema the answer of the special one and map its premises to some
    premises of the special one (or of `premises`), with the indices of these."""
    start: dict[str, Term | TimeTerm] = {}
    for a, b in zip(general.answer, special.answer, strict=True):
        if not match_term(a, b, start):
            return
    among = special.premises if premises is None else premises
    for found, indices in find_matches(general.premises, among, start):
        if all(apply_to_blocker(blocker, found) in special.blockers for blocker in general.blockers) and all(
            _is_implied_by(apply_to_comparison(c, found), special.comparisons) for c in general.comparisons
        ):
            yield found, indices


def subsumes(general: Schema, special: Schema) -> bool:
    """Return whether the general schema makes the special one redundant."""
    return any(True for _ in find_instances(general, special))


def condense(schema: Schema) -> Schema:
    """Return the smallest equivalent schema, without redundant premises."""
    for index in range(len(schema.premises)):
        rest = schema.premises[:index] + schema.premises[index + 1 :]
        for found, _ in find_instances(schema, schema, rest):
            return condense(apply_to_schema(schema, found))
    return schema


def remove_subsumed(schemas: Iterable[Schema]) -> list[Schema]:
    """Return the schemas that no other schema subsumes; of those that differ only in names, the first."""
    kept: list[Schema] = []
    index = PremiseIndex()
    for schema in sorted(map(condense, schemas), key=lambda schema: len(schema.premises)):
        if not any(subsumes(kept[number], schema) for number in index.candidates(schema.premises)):
            index.add(len(kept), schema)
            kept.append(schema)
    return _drop_instances(kept, index)


def _drop_instances(schemas: list[Schema], index: PremiseIndex) -> list[Schema]:
    """Drop the schemas that a later one subsumes."""
    return [
        schema
        for number, schema in enumerate(schemas)
        if not any(other > number and subsumes(schemas[other], schema) for other in index.candidates(schema.premises))
    ]


class PremiseIndex:
    """Finds the schemas whose first premise may match one of some atoms, by its constants."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, int], dict[tuple[int, ...], dict[tuple[Term, ...], list[int]]]] = {}
        #: Schemas without premises, which always may match.
        self._without_premises: list[int] = []

    def add(self, number: int, schema: Schema) -> None:
        """Add a schema under a number."""
        if not schema.premises:
            self._without_premises.append(number)
            return
        first = schema.premises[0]
        fixed = tuple(i for i, term in enumerate(first.args) if isinstance(term, Constant))
        tables = self._tables.setdefault((first.predicate, len(first.args)), {})
        tables.setdefault(fixed, {}).setdefault(tuple(first.args[i] for i in fixed), []).append(number)

    def candidates(self, atoms: Iterable[TemporalAtom]) -> list[int]:
        """Return the numbers of the schemas that may match, in order."""
        found = dict.fromkeys(self._without_premises)
        for atom in atoms:
            for fixed, table in self._tables.get((atom.predicate, len(atom.args)), {}).items():
                found.update(dict.fromkeys(table.get(tuple(atom.args[i] for i in fixed), ())))
        return sorted(found)


def may_coincide(schema: Schema) -> bool:
    """Return whether two premises can become the same fact."""
    atoms = schema.premises
    return any(unify(atoms[i], atoms[j]) is not None for i in range(len(atoms)) for j in range(i))


def may_compete(schemas: Sequence[Schema], most: int = 100) -> bool:
    """Return whether an instance of one schema may subsume an instance of another.

    More than `most` schemas are not compared: the result is True."""
    if any(map(may_coincide, schemas)) or len(schemas) > most:
        return True
    apart = [_rename_apart(schema) for schema in schemas]
    return any(
        a is not b and all(any(unify(p, q) is not None for q in apart[j].premises) for p in a.premises)
        for a in schemas
        for j, b in enumerate(schemas)
    )


def _rename_apart(schema: Schema) -> Schema:
    """Return the schema with variables that no user can write."""
    renamed: dict[str, Term | TimeTerm] = {}
    for atom in schema.premises:
        for term in atom.args:
            if isinstance(term, Variable):
                renamed[term.name] = Variable(f"${term.name}")
        if atom.time and atom.time.variable:
            renamed[atom.time.variable] = TimeTerm(f"${atom.time.variable}", 0)
    return Schema((), apply_to_schema(Schema((), schema.premises), renamed).premises)


def _is_implied_by(wanted: Comparison, given: Sequence[Comparison]) -> bool:
    return wanted in given or is_implied(wanted, given)
