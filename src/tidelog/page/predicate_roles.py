"""What a page says about predicates: which are asked for, which are given, which only help; and their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.analysis.predicate_graph import body_atoms
from tidelog.language.rule_heads import head_atom
from tidelog.page.timeline_data import GIVEN, Timeline

if TYPE_CHECKING:
    from tidelog.data.schema import Schema
    from tidelog.language.program import Program


@dataclass(frozen=True)
class Question:
    """What a page is about: the predicates that were asked for, and the schema of the data, if there is one."""

    query: tuple[str, ...]
    schema: Schema | None = None


def find_query_predicates(program: Program) -> tuple[str, ...]:
    """Find the predicates that a program is probably about: those that rules derive, and that rules of others ignore.

    If all of them are read by others, all of them are.
    """
    derived: dict[str, None] = {}
    read: set[str] = set()
    for rule in program.rules:
        head = head_atom(rule)
        name = head.predicate if head else ""
        if name:
            derived[name] = None
        read |= {atom.predicate for atom, _ in body_atoms(rule)} - {name}
    return tuple(name for name in derived if name not in read) or tuple(derived)


def describe_predicates(program: Program, timeline: Timeline, question: Question) -> list[dict[str, Any]]:
    """Build the JSON objects of the predicates on a timeline.

    The role of a predicate is `query`, `given` if it has facts in the data, or else `helper`.
    """
    heads = {head.predicate for rule in program.rules if (head := head_atom(rule))}
    given = set(np.unique(timeline.atoms[timeline.rows.of[(timeline.kinds & GIVEN) != 0]]).tolist())
    described = []
    for number, (name, arity) in enumerate(timeline.predicates):
        role = "query" if name in question.query else "given" if number in given or name not in heads else "helper"
        columns = question.schema.column_names(name, arity) if question.schema else None
        described.append(
            {
                "name": name,
                "arity": arity,
                "role": role,
                "derived": name in heads,
                "columns": None if columns is None else list(columns),
                "times": list(program.time_arguments.get(name, ())),
            }
        )
    return described
