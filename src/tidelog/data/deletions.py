"""Deletions among facts: a deletion of `P(a)@3` is kept as a row of the relation `-P`, which no rule can name.

So deletions pass through every reader, merger and printer of facts as they are, in their order of arrival, and are told
apart only where facts are taken (`tidelog.streaming.corrections`) or refused (`tidelog.compiler.prepare_facts`).
"""

from __future__ import annotations

from dataclasses import replace

from tidelog.data.relation import Columns, Key, Relation

#: The first character of the relation that holds the deletions of a predicate, and of a deletion as text.
DELETION_MARK = "-"


def is_deletion(predicate: str) -> bool:
    """Return whether a relation holds deletions.

    >>> is_deletion("-P"), is_deletion("P")
    (True, False)
    """
    return predicate.startswith(DELETION_MARK)


def name_deletions(predicate: str) -> str:
    """Return the name of the relation that holds the deletions of a predicate."""
    return DELETION_MARK + predicate


def strip_mark(predicate: str) -> str:
    """Return the predicate that a relation is about, whether it holds facts or deletions.

    >>> strip_mark("-P"), strip_mark("P")
    ('P', 'P')
    """
    return predicate.removeprefix(DELETION_MARK)


def has_deletions(relations: dict[Key, Relation]) -> bool:
    """Return whether there is a deletion among facts."""
    return any(is_deletion(predicate) and len(relation) for (predicate, _), relation in relations.items())


def mark_deletions(columns: Columns, deleted: list[bool]) -> Columns:
    """Move the rows of a table that are deletions to the relation of deletions; rows keep their order."""
    import numpy as np

    if not any(deleted):
        return columns
    mask = np.array(deleted)
    relations: dict[Key, Relation] = {}
    for (predicate, arity), relation in columns.relations.items():
        order = np.arange(len(relation)) if relation.order is None else relation.order
        ordered = replace(relation, order=order)
        if not mask.all():
            relations[predicate, arity] = ordered.select(~mask)
        name = name_deletions(predicate)
        relations[name, arity] = replace(ordered.select(mask), predicate=name)
    return replace(columns, relations=relations)
