"""From text to the tokens of one rule after another.

Two things in the language need more than a context-free grammar: an operator's name is also a good name for a
predicate, and rules need not end with a dot. Both are settled here, on tokens:

- `sharpen` makes `Diamondminus` an operator where a range follows, `not` a negation where a literal follows, and so on.
- `split` starts a new rule at a line whose first token may begin a rule, if the token before it may end one. Inside a
  rule two such tokens never follow each other: a comma, an operator or a bracket stands between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidelog.errors import Place

if TYPE_CHECKING:
    from lark import Lark, Token

PREFIX_WORDS: dict[str, str] = {
    "diamondminus": "Diamondminus",
    "boxminus": "Boxminus",
    "diamondplus": "Diamondplus",
    "boxplus": "Boxplus",
    "sometime": "Sometime",
    "always": "Always",
    "◇⁻": "Diamondminus",
    "⊟": "Boxminus",
    "◇⁺": "Diamondplus",
    "⊞": "Boxplus",
}
INFIX_WORDS: dict[str, str] = {"since": "Since", "until": "Until"}
OPERATOR_WORDS: dict[str, str] = PREFIX_WORDS | INFIX_WORDS

_NUMBERS = frozenset({"NUMBER", "DURATION", "BAD_NUMBER"})
_IN_RANGE = _NUMBERS | {"SIGN", "NAME", "_COMMA"}
_BEGINS_RULE = frozenset({"NAME", "PREFIX", "TOP", "BOTTOM", "DIRECTIVE"})
_ENDS_RULE = frozenset({"NAME", "_RPAR", "RSQB", "NUMBER", "STRING", "TOP", "BOTTOM", "BAD_NUMBER", "OPEN_STRING"})
_AFTER_NAME = frozenset({"_COMMA", "_RPAR", "_DOT", "_IF", "COMPARE", "_BARS"})


@dataclass(frozen=True)
class Source:
    """A text with its name and its lines, for places."""

    name: str
    text: str
    lines: tuple[str, ...]

    @staticmethod
    def of(text: str, name: str) -> Source:
        return Source(name, text, tuple(text.split("\n")))

    def place(self, token: Token, last: Token | None = None) -> Place:
        """Where a token stands; with `last`, the stretch up to it, as far as it lies on the same line."""
        line, column = token.line or 1, token.column or 1
        end = token if last is None or last.line != line else last
        return Place(self.name, line, column, (end.end_column or column + 1) - column, self.lines[line - 1])

    def after(self, token: Token) -> Place:
        """Just behind a token."""
        line = token.end_line or 1
        return Place(self.name, line, token.end_column or 1, 1, self.lines[line - 1])

    def between(self, first: Token, last: Token) -> str:
        """The text from one token to another, as the user wrote it."""
        return self.text[first.start_pos or 0 : last.end_pos or 0]


class Sharpener:
    """Lark's hook between cutting and parsing. `operators` is false for temporal Datalog, which has none."""

    #: Terminals that the grammars do not use and that must be cut all the same.
    always_accept = ("LSQB", "RSQB", "SYMBOL", "DURATION", "_BARS", "BAD", "BAD_NUMBER", "OPEN_STRING")

    def __init__(self, operators: bool) -> None:
        self.operators = operators

    def process(self, stream: Iterable[Token]) -> Iterator[Token]:
        return iter(sharpen(list(stream), self.operators))


@cache
def grammar(name: str, operators: bool) -> Lark:
    """The parser of `name`.lark, built once; lark is imported only here, so that importing tidelog stays light."""
    from lark import Lark

    room = Path(__file__).parent
    text = (room / f"{name}.lark").read_text(encoding="utf-8")
    sharpener: Any = Sharpener(operators)
    return Lark(
        text, parser="lalr", lexer="basic", postlex=sharpener, maybe_placeholders=False, import_paths=[str(room)]
    )


def sharpen(tokens: list[Token], operators: bool) -> list[Token]:
    """Retype the tokens whose kind depends on their neighbours, in place."""
    last = len(tokens) - 1
    for i, token in enumerate(tokens):
        if token.type not in ("NAME", "SYMBOL"):
            continue
        word = token.lower()
        after = tokens[i + 1].type if i < last else "_DOT"
        if word in OPERATOR_WORDS:
            if operators and _sharpen_range(tokens, i + 1, token.type == "SYMBOL"):
                token.type = "INFIX" if word in INFIX_WORDS else "PREFIX"
        elif word == "not" and after not in _AFTER_NAME and (token == "not" or after != "_LPAR"):
            token.type = "NOT"
        elif word in ("top", "bottom") and after != "_LPAR":
            token.type = word.upper()
    return tokens


def _sharpen_range(tokens: list[Token], start: int, symbol: bool) -> bool:
    """If a range begins at `start`, retype its brackets, or its bare number, and say so.

    A round bracket opens a range only if it reads as one to its end: `Always(X)` is an atom.
    """
    kinds = [token.type for token in tokens[start : start + 12]] + ["", ""]
    if kinds[0] in _NUMBERS or (kinds[0] == "SIGN" and kinds[1] in _NUMBERS):
        number = tokens[start + (kinds[0] == "SIGN")]
        number.type = "BAD_NUMBER" if number.type == "BAD_NUMBER" else "AT"
        return True
    if kinds[0] not in ("LSQB", "_LPAR"):
        return symbol
    length = 1
    while kinds[length] in _IN_RANGE:
        length += 1
    inside, closing = tokens[start + 1 : start + length], kinds[length]
    if kinds[0] == "_LPAR" and not _reads_as_range(inside, closing):
        return symbol
    tokens[start].type = "OPEN"
    for token in inside:
        if token.type == "NAME" and token.lower() == "inf":
            token.type = "INF"
    if closing in ("RSQB", "_RPAR"):
        tokens[start + length].type = "CLOSE"
    return True


def _reads_as_range(inside: list[Token], closing: str) -> bool:
    names = [token for token in inside if token.type == "NAME"]
    commas = sum(token.type == "_COMMA" for token in inside)
    return closing in ("RSQB", "_RPAR") and commas == 1 and all(name.lower() == "inf" for name in names)


def split(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """The tokens of each rule, its final dot included."""
    rule: list[Token] = []
    depth = 0
    stream = list(tokens)
    for i, token in enumerate(stream):
        if rule and _line(token) > _line(rule[-1]) and token.type in _BEGINS_RULE and rule[-1].type in _ENDS_RULE:
            yield rule
            rule, depth = [], 0
        rule.append(token)
        if token.type in ("_LPAR", "OPEN", "LSQB"):
            depth += 1
        elif token.type in ("_RPAR", "CLOSE", "RSQB"):
            depth -= 1
        # A dot inside brackets, as in P(www.x.org), ends the rule only where a line ends, too.
        ends_line = i + 1 == len(stream) or _line(stream[i + 1]) > _line(token)
        if token.type == "_DOT" and (depth <= 0 or ends_line):
            yield rule
            rule, depth = [], 0
    if rule:
        yield rule


def _line(token: Token) -> int:
    return token.line or 0
