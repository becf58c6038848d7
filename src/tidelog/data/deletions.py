"""Deletions among facts: a deletion of `P(a)@3` is kept as a row of the relation `-P`, which no rule can name.

So deletions pass through every reader, merger and printer of facts as they are, in their order of arrival, and are told
apart only where facts are taken (`tidelog.streaming.corrections`) or refused (`tidelog.compiler.prepare_facts`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from tidelog.data.relation import Columns, Key, Relation
from tidelog.language.syntax import Fact

#: The first character of the relation that holds the deletions of a predicate, and of a deletion as text.
DELETION_MARK = "-"
#: The words of a column `op`, and whether they delete; `c`, `r` and `d` are those of change data capture.
OPERATIONS = {"insert": False, "delete": True, "+": False, "-": True, "c": False, "r": False, "d": True}


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


def remove_deleted(facts: Iterable[Fact]) -> Counter[Fact]:
    """Return facts without deletions and without what these delete."""
    inserted, deleted = Counter[Fact](), Counter[Fact]()
    for fact in facts.elements() if isinstance(facts, Counter) else facts:
        if is_deletion(fact.predicate):
            deleted[replace(fact, predicate=strip_mark(fact.predicate))] += 1
        else:
            inserted[fact] += 1
    return inserted - deleted


def find_op_column(names: Sequence[str], declared: str | None, by_name: bool) -> int | None:
    """Find the column that says whether a row is inserted or deleted: the declared one, or one with the name `op`."""
    if declared is None and by_name:
        declared = next((name for name in names if name.lower() == "op"), None)
    return names.index(declared) if declared in names else None


def read_operations(words: Sequence[object]) -> list[bool | None]:
    """Return whether each word of a column `op` deletes; None for words that do not belong there.

    >>> read_operations(["insert", "D", None, "update"])
    [False, True, False, None]
    """
    meanings = {word: OPERATIONS.get(str(word or "insert").strip().lower()) for word in dict.fromkeys(words)}
    return [meanings[word] for word in words]


def mark_deletions(columns: Columns, deleted: list[bool]) -> Columns:
    """Move the rows of a table that are deletions to the relation of deletions; rows keep their order."""
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
    names = columns.names | {(name_deletions(name), arity): words for (name, arity), words in columns.names.items()}
    types = columns.types | {(name_deletions(name), arity): known for (name, arity), known in columns.types.items()}
    return replace(columns, relations=relations, names=names, types=types)
