"""Cut text into tokens and parse them, with the tables that Lark makes of a grammar (`grammar_tables`).

Lark itself is not needed for that: importing it and loading its parser takes longer than a small command does.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

#: The type of the token behind the last one.
END = "$END"


class Token(str):
    """A piece of text with its type and its place; lines and columns count from 1, positions from 0."""

    __slots__ = ("column", "end_column", "end_line", "end_pos", "line", "start_pos", "type")

    type: str
    start_pos: int
    end_pos: int
    line: int
    column: int
    end_line: int
    end_column: int

    def cut(self, start: int, end: int, type: str) -> Token:
        """Return a part of a token, which must be on one line, as a token of this type."""
        part = Token(self[start:end])
        part.type, part.line, part.end_line = type, self.line, self.end_line
        part.start_pos, part.end_pos = self.start_pos + start, self.start_pos + end
        part.column, part.end_column = self.column + start, self.column + end
        return part


class Tree:
    """A node of a parse tree; `data` is the name of its rule in the grammar, or that behind `->`."""

    __slots__ = ("children", "data")

    def __init__(self, data: str, children: list[Tree | Token]) -> None:
        self.data, self.children = data, children

    def tokens(self) -> Iterator[Token]:
        """Yield the tokens below this node, from left to right."""
        for child in self.children:
            if isinstance(child, Tree):
                yield from child.tokens()
            else:
                yield child


class UnexpectedToken(Exception):
    """The token at position `at`, or the end, cannot follow those before it; tokens of the types `accepted` could."""

    def __init__(self, at: int, accepted: frozenset[str]) -> None:
        super().__init__(f"token {at} is none of {', '.join(sorted(accepted))}")
        self.at, self.accepted = at, accepted


class GrammarRule(NamedTuple):
    """A rule of a grammar: how many symbols it reads, and the node that it makes of them."""

    origin: str
    size: int
    #: The name of the node.
    data: str
    #: Whether a single child stands for the node.
    expands_single: bool
    #: The symbols that become children.
    kept: list[int]
    #: Those of them whose own children do.
    inlined: list[int]

    def build(self, symbols: list[Tree | Token]) -> Tree | Token:
        """Build the node of this rule, or its only child where that stands for it."""
        children: list[Tree | Token] = []
        for i in self.kept:
            symbol = symbols[i]
            if i in self.inlined and isinstance(symbol, Tree):
                children += symbol.children
            else:
                children.append(symbol)
        return children[0] if self.expands_single and len(children) == 1 else Tree(self.data, children)


class TableParser:
    """The terminals of a grammar, and its LALR(1) automaton."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self._match = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in tables["terminals"])).match
        self._ignored = frozenset(tables["ignored"])
        #: By state and symbol: the state to go to, or -1 minus the number of the rule to apply.
        self._actions: list[dict[str, int]] = tables["actions"]
        self._start: int = tables["start"]
        self._end: int = tables["end"]
        self._rules = [GrammarRule(*rule) for rule in tables["rules"]]

    def lex(self, text: str) -> list[Token]:
        """Return the tokens of a text; the grammar has a terminal for every character."""
        lines = [0, *(found.end() for found in re.finditer("\n", text))]
        tokens: list[Token] = []
        at = 0
        while at < len(text):
            found = self._match(text, at)
            assert found is not None, f"no terminal for {text[at]!r}"
            start, at, kind = at, found.end(), str(found.lastgroup)
            if kind in self._ignored:
                continue
            token = Token(found[0])
            token.type, token.start_pos, token.end_pos = kind, start, at
            token.line, token.end_line = bisect_right(lines, start), bisect_right(lines, at)
            token.column, token.end_column = start - lines[token.line - 1] + 1, at - lines[token.end_line - 1] + 1
            tokens.append(token)
        return tokens

    def parse(self, tokens: Sequence[Token]) -> Tree:
        """Return the parse tree of some tokens; raise `UnexpectedToken` if the grammar has none."""
        states: list[int] = [self._start]
        values: list[Tree | Token] = []
        for at, token in enumerate(tokens):
            if not self._take(token.type, states, values):
                raise UnexpectedToken(at, self._find_accepted(states))
            values.append(token)
        if not self._take(END, states, values):
            raise UnexpectedToken(len(tokens), self._find_accepted(states))
        tree = values[0]
        assert isinstance(tree, Tree)
        return tree

    def _take(self, kind: str, states: list[int], values: list[Tree | Token] | None = None) -> bool:
        """Apply all rules that end before a symbol, and then go on to it; return whether that is possible."""
        actions = self._actions
        while True:
            action = actions[states[-1]].get(kind)
            if action is None:
                return False
            if action >= 0:
                states.append(action)
                return True
            rule = self._rules[-1 - action]
            first = len(states) - rule.size
            if values is not None:
                values[first - 1 :] = [rule.build(values[first - 1 :])]
            del states[first:]
            states.append(actions[states[-1]][rule.origin])
            if kind == END and states[-1] == self._end:
                return True

    def _find_accepted(self, states: list[int]) -> frozenset[str]:
        """Return the types of the tokens that can follow."""
        kinds = [kind for kind in self._actions[states[-1]] if kind.isupper()]
        return frozenset(kind for kind in kinds if self._take(kind, states.copy()))
