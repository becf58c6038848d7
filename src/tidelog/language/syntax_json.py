"""Convert rules and facts to JSON values and back.

Saved states use this instead of rule text, since hidden predicates have names that no text can have. Fields that take
no part in equality (places, the user's text) are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from tidelog.language import syntax
from tidelog.language.syntax import Fact, Rule, Value
from tidelog.timeline.interval import INF, Interval

_NODES: dict[str, Any] = {
    node.__name__: node
    for node in (
        syntax.Variable,
        syntax.Constant,
        syntax.Atom,
        syntax.Group,
        syntax.Top,
        syntax.Bottom,
        syntax.Unary,
        syntax.Binary,
        syntax.Literal,
        syntax.Comparison,
        syntax.Operation,
        syntax.Aggregate,
        syntax.Condition,
        Rule,
        Fact,
        Interval,
    )
}
_ENUMS = (syntax.UnaryOp, syntax.BinaryOp, syntax.AggregateFunction)
_OPERATORS = {op.value: op for kind in _ENUMS for op in kind}


def nodes_to_json(nodes: Iterable[Rule | Fact]) -> list[Any]:
    """Convert rules or facts to lists, texts and numbers."""
    return [_node_to_json(node) for node in nodes]


def rules_from_json(tree: list[Any]) -> tuple[Rule, ...]:
    """Convert JSON values of `nodes_to_json` back to rules."""
    return tuple(_node_from_json(part) for part in tree)


def facts_from_json(tree: list[Any]) -> tuple[Fact, ...]:
    """Convert JSON values of `nodes_to_json` back to facts."""
    return tuple(_node_from_json(part) for part in tree)


def value_to_json(value: Value) -> Any:
    """Convert a constant: a name as it is, a number as a list with one text."""
    return value if isinstance(value, str) else [str(value)]


def value_from_json(value: Any) -> Value:
    """Restore a constant from `value_to_json`."""
    return value if isinstance(value, str) else Fraction(value[0])


def _node_to_json(node: Any) -> Any:
    """Convert a node to a list that begins with its kind; text and truth values stay as they are."""
    if is_dataclass(node):
        return [
            type(node).__name__,
            *(_node_to_json(getattr(node, field.name)) for field in fields(node) if field.compare),
        ]
    if isinstance(node, tuple):
        return ["", *map(_node_to_json, node)]
    if isinstance(node, _ENUMS):
        return ["op", node.value]
    if isinstance(node, Fraction | float):
        return ["number", str(node)]
    assert isinstance(node, str | bool | None), node
    return node


def _node_from_json(tree: Any) -> Any:
    if not isinstance(tree, list):
        return tree
    kind, *rest = tree
    if kind == "op":
        return _OPERATORS[rest[0]]
    if kind == "number":
        return {"inf": INF, "-inf": -INF}.get(rest[0]) or Fraction(rest[0])
    parts = tuple(map(_node_from_json, rest))
    if not kind:
        return parts
    node = _NODES[kind]
    return node(**dict(zip((field.name for field in fields(node) if field.compare), parts, strict=True)))
