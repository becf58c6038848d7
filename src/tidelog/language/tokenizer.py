"""Cut rule text into the tokens of one rule after another.

Two features of the language need more than a context-free grammar: the name of an operator may also be the name of a
predicate, and rules need not end with a dot. Both are resolved here, on tokens:

- `retype_tokens` makes `Diamondminus` an operator where a range follows, `not` a negation where a literal follows,
  `or` and `and` connectives between literals, and so on.
- `expression_tokens` finds the arithmetic in rules.
- `split_rules` starts a new rule at a line whose first token may begin a rule, if the token before it may end one.
  Inside a rule two such tokens are never neighbours: a comma, an operator or a bracket is between them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tidelog.errors import Place
from tidelog.language.expression_tokens import is_aggregate, retype_expressions
from tidelog.language.table_parser import TableParser, Token

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
_ENDS_RULE = frozenset(
    {"NAME", "_RPAR", "_RBRACE", "RSQB", "NUMBER", "DURATION", "STRING", "TOP", "BOTTOM", "BAD_NUMBER", "OPEN_STRING"}
)
_AFTER_NAME = frozenset({"_COMMA", "_RPAR", "_DOT", "_IF", "COMPARE", "_BARS", "SIGN", "TIMES", "SLASH", "CONCAT"})


@dataclass(frozen=True)
class SourceText:
    """A text with its name and lines, from which places are made; temporal Datalog has no operators and groups."""

    name: str
    text: str
    lines: tuple[str, ...]
    operators: bool = True

    @staticmethod
    def of(text: str, name: str, *, operators: bool = True) -> SourceText:
        return SourceText(name, text, tuple(text.split("\n")), operators)

    def place(self, token: Token, last: Token | None = None) -> Place:
        """Return the place of a token, or of the span up to `last`, as far as it is on the same line."""
        line, column = token.line, token.column
        end = token if last is None or last.line != line else last
        return Place(self.name, line, column, end.end_column - column, self.lines[line - 1])

    def after(self, token: Token) -> Place:
        """Return the place just after a token."""
        return Place(self.name, token.end_line, token.end_column, 1, self.lines[token.end_line - 1])

    def between(self, first: Token, last: Token) -> str:
        """Return the text from one token to another, as the user wrote it."""
        return self.text[first.start_pos : last.end_pos]


@cache
def load_parser(*, operators: bool) -> TableParser:
    """Load the parser of `grammar.lark`, or of `tdl.lark` without operators, from the tables beside it."""
    path = Path(__file__).with_name("grammar.json" if operators else "tdl.json")
    return TableParser(json.loads(path.read_text(encoding="utf-8")))


def tokenize_rules(text: str, *, operators: bool) -> Iterator[list[Token]]:
    """Yield the tokens of each rule in a text; temporal Datalog has no operators."""
    tokens = retype_tokens(load_parser(operators=operators).lex(text), operators)
    # Rule by rule: a bracket that is not closed must not reach into the next rule.
    found = (token for rule in split_rules(tokens) for token in retype_expressions(rule)) if operators else tokens
    return split_rules(found)


def retype_tokens(tokens: list[Token], operators: bool) -> list[Token]:
    """Change, in place, the types of the tokens whose kind depends on their neighbours."""
    last = len(tokens) - 1
    for i, token in enumerate(tokens):
        if token.type not in ("NAME", "SYMBOL"):
            continue
        word = token.lower()
        after = tokens[i + 1].type if i < last else "_DOT"
        if word in OPERATOR_WORDS:
            if operators and _retype_range(tokens, i + 1, token.type == "SYMBOL"):
                token.type = "INFIX" if word in INFIX_WORDS else "PREFIX"
        elif operators and is_aggregate(tokens, i):
            _retype_range(tokens, i + 1, False)
            token.type = "AGGREGATE"
        elif operators and word in ("or", "and") and _joins_literals(tokens, i):
            token.type = word.upper()
        elif word == "not" and after not in _AFTER_NAME and (token == "not" or after != "_LPAR"):
            token.type = "NOT"
        elif word in ("top", "bottom") and after != "_LPAR":
            token.type = word.upper()
    return tokens


def _joins_literals(tokens: list[Token], at: int) -> bool:
    """Return whether `or` or `and` stands between literals, where no name can.

    At the beginning of a line, `Or` may also be the predicate of the next rule.
    """
    if at == 0 or at + 1 == len(tokens) or tokens[at + 1].type in _AFTER_NAME:
        return False
    before, token = tokens[at - 1], tokens[at]
    return before.type in _ENDS_RULE and (_line(before) == _line(token) or token in ("or", "and"))


def _retype_range(tokens: list[Token], start: int, symbol: bool) -> bool:
    """If a range begins at `start`, retype its brackets or its bare number, and return whether one does.

    A round bracket opens a range only if the text up to its end reads as one: `Always(X)` is an atom.
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


def split_rules(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each rule, its final dot included."""
    rule: list[Token] = []
    depth = 0
    stream = list(tokens)
    for i, token in enumerate(stream):
        if rule and begins_rule(rule[-1], token):
            yield rule
            rule, depth = [], 0
        rule.append(token)
        if token.type in ("_LPAR", "_GROUP", "OPEN", "LSQB", "_LBRACE", "_VALUES"):
            depth += 1
        elif token.type in ("_RPAR", "CLOSE", "RSQB", "_RBRACE"):
            depth -= 1
        # A dot inside brackets, as in P(www.x.org), ends the rule only at the end of a line.
        ends_line = i + 1 == len(stream) or _line(stream[i + 1]) > _line(token)
        if token.type == "_DOT" and (depth <= 0 or ends_line):
            yield rule
            rule, depth = [], 0
    if rule:
        yield rule


def begins_rule(before: Token, token: Token) -> bool:
    """Return whether a token begins a new rule after a token on a line before."""
    return _line(token) > _line(before) and token.type in _BEGINS_RULE and before.type in _ENDS_RULE


def _line(token: Token) -> int:
    return token.line or 0
