"""Parts of a program that can be evaluated for some constants alone.

The theory is that of a cluster (`analysis.rule_locality`): if every predicate is hashed on one argument or copied, and
every rule is local, a bucket derives exactly its share. For a view, the constants that a change touches are one bucket,
and all others another one, which the change does not reach. For a large batch problem, every thread has a bucket.

Stages hand nothing to each other: a derived predicate is derived in the stage that reads it. A stage is keyed if at
least one predicate is hashed and its rules need nothing but their own atoms to stay within a bucket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidelog.analysis.rule_locality import Guard, Key, RuleShape, find_guard, needs_guard
from tidelog.analysis.split_search import search_split
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom
from tidelog.language.validation import rule_atoms


@dataclass(frozen=True)
class KeyStage:
    """Rules that are evaluated together, the predicates asked of them, and the hashed argument of each predicate.

    Without a hashed argument (None) a predicate is copied: a change of it concerns all constants.
    """

    program: Program
    queries: tuple[str, ...]
    key: Mapping[str, int | None]

    @property
    def keyed(self) -> bool:
        """Whether anything can be evaluated for some constants alone."""
        return any(position is not None for position in self.key.values())


def plan_stages(program: Program, queries: tuple[str, ...]) -> tuple[KeyStage, ...]:
    """Divide the rules that the queries and the constraints need into stages that share no derived predicate.

    >>> rules = "Hot(X) :- Temp(X, V), High(V), not Off(X). Any :- Hot(X)."
    >>> [(stage.queries, dict(stage.key)) for stage in plan_stages(Program.parse(rules), ("Hot",))]
    [(('Hot',), {'High': None, 'Hot': 0, 'Off': 0, 'Temp': 0})]
    """
    derived = {head.predicate for rule in program.rules if (head := head_atom(rule)) is not None}
    split = search_split(program, queries, frozenset(), derived)
    stages: list[KeyStage] = []
    for draft in split.stages:
        units = [split.units[number] for number in draft.units]
        own = {name for unit in units for name in unit.own}
        shapes = sorted((shape for unit in units for shape in unit.shapes), key=lambda shape: shape.number)
        names = own.union(*(unit.reads for unit in units))
        key: dict[str, int | None] = {**dict.fromkeys(sorted(names)), **draft.key}
        if not all(_is_guarded(shape, key, own & split.derived) for shape in shapes):
            key = dict.fromkeys(key)
        rules = tuple(shape.rule for shape in shapes)
        asked = tuple(name for name in queries if name in own)
        stages.append(KeyStage(replace(program, rules=rules), asked, key))
    return tuple(stages)


def _is_guarded(shape: RuleShape, key: Key, own: set[str]) -> bool:
    """Return whether a rule derives nothing for other constants than those whose facts it reads."""
    return not needs_guard(shape, key) or find_guard(shape, key, own) == Guard()


def plan_whole(program: Program, queries: tuple[str, ...]) -> KeyStage:
    """Return all rules as one stage in which nothing is hashed."""
    names = {atom.predicate for rule in program.rules for atom in rule_atoms(rule)}
    return KeyStage(program, queries, dict.fromkeys(sorted(names.union(queries))))
