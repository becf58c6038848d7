"""Rules and facts as values for JSON, and back: the tree itself, also with names that no text can have.

What takes no part in equality (places, the user's text) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from tidelog.language import syntax
from tidelog.language.syntax import Fact, Rule
from tidelog.timeline.interval import INF, Interval

_NODES: dict[str, Any] = {
    node.__name__: node
    for node in (
        syntax.Variable,
        syntax.Constant,
        syntax.Atom,
        syntax.Top,
        syntax.Bottom,
        syntax.Unary,
        syntax.Binary,
        syntax.Literal,
        syntax.Comparison,
        Rule,
        Fact,
        Interval,
    )
}
_OPERATORS = {op.value: op for kind in (syntax.UnaryOp, syntax.BinaryOp) for op in kind}


def to_tree(nodes: Iterable[Rule | Fact]) -> list[Any]:
    """Rules or facts as lists, texts and numbers."""
    return [_given(node) for node in nodes]


def rules_of(tree: list[Any]) -> tuple[Rule, ...]:
    return tuple(_node(part) for part in tree)


def facts_of(tree: list[Any]) -> tuple[Fact, ...]:
    return tuple(_node(part) for part in tree)


def _given(node: Any) -> Any:
    """A node is a list that begins with its kind; text and truth values are themselves."""
    if is_dataclass(node):
        return [type(node).__name__, *(_given(getattr(node, field.name)) for field in fields(node) if field.compare)]
    if isinstance(node, tuple):
        return ["", *map(_given, node)]
    if isinstance(node, syntax.UnaryOp | syntax.BinaryOp):
        return ["op", node.value]
    if isinstance(node, Fraction | float):
        return ["number", str(node)]
    assert isinstance(node, str | bool), node
    return node


def _node(tree: Any) -> Any:
    if not isinstance(tree, list):
        return tree
    kind, *rest = tree
    if kind == "op":
        return _OPERATORS[rest[0]]
    if kind == "number":
        return {"inf": INF, "-inf": -INF}.get(rest[0]) or Fraction(rest[0])
    parts = tuple(map(_node, rest))
    return _NODES[kind](*parts) if kind else parts
