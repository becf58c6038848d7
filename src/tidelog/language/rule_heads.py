"""The head of a rule, without the boxes around it."""

from __future__ import annotations

from tidelog.language.syntax import Atom, Bottom, Formula, Rule, Unary


def head_atom(rule: Rule) -> Atom | None:
    """Return the atom under the boxes of a head; None for Top and Bottom."""
    head = _without_boxes(rule)
    return head if isinstance(head, Atom) else None


def is_constraint(rule: Rule) -> bool:
    """Return whether the head is Bottom, possibly under boxes."""
    return isinstance(_without_boxes(rule), Bottom)


def _without_boxes(rule: Rule) -> Formula:
    head = rule.head
    while isinstance(head, Unary):
        head = head.arg
    return head
