"""Which schemas are needless, since others ask for less and give the same answers.

A schema makes another one needless if one of its instances has the same answer and asks for no more, which is
theta-subsumption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidelog.hypothetical.comparisons import implied
from tidelog.hypothetical.schemas import Schema, applied, apply_comparison
from tidelog.hypothetical.unification import match_term, matches, unify
from tidelog.language.syntax import Comparison, Constant, TemporalAtom, Term, TimeTerm, Variable


def instances(
    general: Schema, special: Schema, premises: Sequence[TemporalAtom] | None = None
) -> Iterator[tuple[dict[str, Term | TimeTerm], frozenset[int]]]:
    """The substitutions that turn the general schema into one with the special one's answer and some of its premises
    (or of those that are given), and the places of these."""
    start: dict[str, Term | TimeTerm] = {}
    for a, b in zip(general.answer, special.answer, strict=True):
        if not match_term(a, b, start):
            return
    among = special.premises if premises is None else premises
    for found, places in matches(general.premises, among, start):
        if all(_follows(apply_comparison(c, found), special.comparisons) for c in general.comparisons):
            yield found, places


def subsumes(general: Schema, special: Schema) -> bool:
    return any(True for _ in instances(general, special))


def condensed(schema: Schema) -> Schema:
    """The least schema that means the same: premises that others make needless are gone."""
    for place in range(len(schema.premises)):
        rest = schema.premises[:place] + schema.premises[place + 1 :]
        for found, _ in instances(schema, schema, rest):
            return condensed(applied(schema, found))
    return schema


def minimal(schemas: Iterable[Schema]) -> list[Schema]:
    """The schemas that no other one subsumes; of those that are the same but for names, the first."""
    kept: list[Schema] = []
    index = PremiseIndex()
    for schema in sorted(map(condensed, schemas), key=lambda schema: len(schema.premises)):
        if not any(subsumes(kept[number], schema) for number in index.candidates(schema.premises)):
            index.add(len(kept), schema)
            kept.append(schema)
    return _without_instances(kept, index)


def _without_instances(schemas: list[Schema], index: PremiseIndex) -> list[Schema]:
    """Without those that a later one subsumes."""
    return [
        schema
        for number, schema in enumerate(schemas)
        if not any(other > number and subsumes(schemas[other], schema) for other in index.candidates(schema.premises))
    ]


class PremiseIndex:
    """Finds the schemas whose first premise can become one of some atoms, by the constants in it."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, int], dict[tuple[int, ...], dict[tuple[Term, ...], list[int]]]] = {}
        self._without: list[int] = []

    def add(self, number: int, schema: Schema) -> None:
        if not schema.premises:
            self._without.append(number)
            return
        first = schema.premises[0]
        fixed = tuple(i for i, term in enumerate(first.args) if isinstance(term, Constant))
        tables = self._tables.setdefault((first.predicate, len(first.args)), {})
        tables.setdefault(fixed, {}).setdefault(tuple(first.args[i] for i in fixed), []).append(number)

    def candidates(self, atoms: Iterable[TemporalAtom]) -> list[int]:
        """Numbers of schemas, in order."""
        found = dict.fromkeys(self._without)
        for atom in atoms:
            for fixed, table in self._tables.get((atom.predicate, len(atom.args)), {}).items():
                found.update(dict.fromkeys(table.get(tuple(atom.args[i] for i in fixed), ())))
        return sorted(found)


def may_coincide(schema: Schema) -> bool:
    """Whether two premises can become the same fact."""
    atoms = schema.premises
    return any(unify(atoms[i], atoms[j]) is not None for i in range(len(atoms)) for j in range(i))


def may_compete(schemas: Sequence[Schema], most: int = 100) -> bool:
    """Whether an instance of one schema can make one of another needless; more than `most` are not looked at."""
    if any(map(may_coincide, schemas)) or len(schemas) > most:
        return True
    apart = [_renamed(schema) for schema in schemas]
    return any(
        a is not b and all(any(unify(p, q) is not None for q in apart[j].premises) for p in a.premises)
        for a in schemas
        for j, b in enumerate(schemas)
    )


def _renamed(schema: Schema) -> Schema:
    """The schema with variables that no user can write."""
    renamed: dict[str, Term | TimeTerm] = {}
    for atom in schema.premises:
        for term in atom.args:
            if isinstance(term, Variable):
                renamed[term.name] = Variable(f"${term.name}")
        if atom.time and atom.time.variable:
            renamed[atom.time.variable] = TimeTerm(f"${atom.time.variable}", 0)
    return Schema((), applied(Schema((), schema.premises), renamed).premises)


def _follows(wanted: Comparison, given: Sequence[Comparison]) -> bool:
    return wanted in given or implied(wanted, given)
