"""Find the expressions among the tokens of a rule, and retype their tokens.

A bracket may group a formula or an expression, `min(X)` may be an atom, a function or the beginning of an aggregate,
and `1/3` is one number in a range but a division in `X / 1/3`. What a token means follows from where it stands: the
arguments of an atom, the values of an aggregate, and every literal with a comparison outside brackets are expressions.
"""

from __future__ import annotations

from tidelog.language.table_parser import Token

#: The functions of expressions, each with its number of arguments.
FUNCTIONS = {"abs": 1, "floor": 1, "ceil": 1, "min": 2, "max": 2, "lower": 1, "upper": 1, "length": 1}
TEXT_TESTS = ("starts_with", "ends_with", "contains", "matches")
AGGREGATE_WORDS = ("count", "sum", "min", "max", "avg", "last", "first", "duration", "start")

_OPENING = frozenset({"_LPAR", "_GROUP", "LSQB", "OPEN", "_LBRACE", "_VALUES"})
_CLOSING = frozenset({"_RPAR", "RSQB", "CLOSE", "_RBRACE"})
_ENDS_LITERAL = frozenset({"_COMMA", "_IF", "_BARS", "_DOT", "OR", "AND"})
#: A literal begins after one of these; in formulas, a bracket that is no atom's begins a group.
_BEFORE_LITERAL = frozenset({"_COMMA", "_IF", "_BARS", "NOT", "OR", "AND", "_LPAR"})
#: Tokens of the longest range, its closing bracket included.
_LONGEST_RANGE = 12
#: Braces that are nested more deeply are not looked into; no such rule is accepted.
_DEEPEST_BRACES = 50
_ENDS_OPERAND = frozenset({"NAME", "NUMBER", "DURATION", "STRING", "_RPAR", "_RBRACE"})


def retype_expressions(tokens: list[Token]) -> list[Token]:
    """Return the tokens of a rule, with those of expressions retyped and fractions in expressions split."""
    _split_values(tokens)
    scan = _Scan(tokens)
    scan.formulas(0, len(tokens))
    return scan.found


def is_aggregate(tokens: list[Token], at: int) -> bool:
    """Return whether the name at a position begins an aggregate: braces follow, possibly after a range."""
    if tokens[at].type != "NAME" or tokens[at] not in AGGREGATE_WORDS or at + 1 >= len(tokens):
        return False
    if tokens[at + 1].type in ("LSQB", "_LPAR"):
        closing = _find_closing(tokens, at + 1, at + 2 + _LONGEST_RANGE)
        return closing + 1 < len(tokens) and tokens[closing + 1].type == "_LBRACE"
    return tokens[at + 1].type == "_LBRACE"


class _Scan:
    """One pass over tokens; `found` are the tokens so far."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.closing = _match_brackets(tokens)
        self.found: list[Token] = []
        self.braces = 0

    def formulas(self, at: int, stop: int) -> None:
        """Take rules, or the body of an aggregate: literal by literal."""
        fresh = True
        while at < stop:
            token = self.tokens[at]
            if fresh and token.type != "NOT":
                end = self.end_of_comparison(at, stop)
                if end:
                    self.expression(at, end)
                    at, fresh = end, False
                    continue
                if token in TEXT_TESTS and self.type_at(at + 1) == "_LPAR":
                    token.type = "TEXT_TEST"
            fresh = token.type in _BEFORE_LITERAL
            if token.type in ("NAME", "TEXT_TEST") and self.type_at(at + 1) == "_LPAR":
                closing = min(self.closing[at + 1], stop)
                self.found += self.tokens[at : at + 2]
                self.expression(at + 2, closing)
                at = closing
                continue
            if token.type in ("_LBRACE", "_RBRACE", "_COLON"):
                token.type = "BAD"
            self.found.append(token)
            at += 1

    def end_of_comparison(self, at: int, stop: int) -> int:
        """Return where a literal ends if it has a comparison outside brackets, else 0."""
        compared = False
        while at < stop:
            kind = self.tokens[at].type
            if kind in _ENDS_LITERAL or kind in _CLOSING:
                return at if compared else 0
            compared = compared or kind == "COMPARE"
            at = self.closing.get(at, at) + 1
        return stop if compared else 0

    def expression(self, at: int, stop: int) -> None:
        """Take the tokens of an expression, of a comparison, or of several with commas between them."""
        while at < stop:
            token = self.tokens[at]
            before = self.found[-1].type if self.found else ""
            if token.type == "AGGREGATE":
                at = self.aggregate(at, stop)
                continue
            if token.type == "NAME" and self.type_at(at + 1) == "_LPAR" and token in FUNCTIONS:
                token.type = "FUNCTION"
            elif token.type == "NAME" and token == "mod" and before in _ENDS_OPERAND:
                token.type = "MOD"
            elif token.type == "_LPAR" and before not in ("FUNCTION", "NAME"):
                token.type = "_GROUP"
            if token.type == "NUMBER" and "/" in token:
                self.found += _split_fraction(token)
            else:
                self.found.append(token)
            at += 1

    def aggregate(self, at: int, stop: int) -> int:
        """Take an aggregate; return where it ends."""
        if self.braces == _DEEPEST_BRACES:
            self.found += self.tokens[at:stop]
            return stop
        self.braces += 1
        while at < stop and self.tokens[at].type != "_LBRACE":
            self.found.append(self.tokens[at])
            at += 1
        self.found.append(self.tokens[at])
        closing = self.closing.get(at, len(self.tokens))
        colon = _find_colon(self.tokens, at + 1, closing)
        at += 1
        if colon:
            self.found[-1].type = "_VALUES"
            if self.tokens[at] == "distinct" and self.type_at(at + 1) != "_COLON":
                self.tokens[at].type = "DISTINCT"
            self.expression(at, colon)
            self.found.append(self.tokens[colon])
            at = colon + 1
        self.formulas(at, closing)
        if closing < len(self.tokens):
            self.found.append(self.tokens[closing])
        self.braces -= 1
        return closing + 1

    def type_at(self, at: int) -> str:
        return self.tokens[at].type if at < len(self.tokens) else ""


def _split_values(tokens: list[Token]) -> None:
    """Split `A:Open`, which reads as a name with a prefix, where it has to be a value and the body's first atom."""
    opening: list[int] = []
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.type == "_LBRACE") - (token.type == "_RBRACE")
        if token.type == "_LBRACE" and depth <= _DEEPEST_BRACES:
            opening.append(i)
    for start in reversed(opening):
        stop = _find_closing(tokens, start)
        if _find_colon(tokens, start + 1, stop):
            continue
        for i in range(start + 1, stop):
            token = tokens[i]
            value, colon, _ = token.partition(":")
            if token.type == "NAME" and colon and (value[0] == "_" or value[0].isupper()):
                tokens[i : i + 1] = [
                    token.cut(0, len(value), "NAME"),
                    token.cut(len(value), len(value) + 1, "_COLON"),
                    token.cut(len(value) + 1, len(token), "NAME"),
                ]
                break


def _find_colon(tokens: list[Token], at: int, stop: int) -> int:
    """Return the position of a colon outside further brackets, or 0."""
    depth = 0
    for i in range(at, stop):
        if depth == 0 and tokens[i].type == "_COLON":
            return i
        depth += (tokens[i].type in _OPENING) - (tokens[i].type in _CLOSING)
    return 0


def _match_brackets(tokens: list[Token]) -> dict[int, int]:
    """Return the position of each opening bracket with that of its closing one, or with the number of tokens."""
    closing: dict[int, int] = {}
    open: list[int] = []
    for i, token in enumerate(tokens):
        if token.type in _OPENING:
            open.append(i)
            closing[i] = len(tokens)
        elif token.type in _CLOSING and open:
            closing[open.pop()] = i
    return closing


def _find_closing(tokens: list[Token], at: int, stop: int | None = None) -> int:
    """Return the position of the bracket that closes the one at a position, or the number of tokens.

    With `stop`, a bracket that is not closed before that position counts as one that is not closed.
    """
    depth = 0
    for i in range(at, len(tokens) if stop is None else min(stop, len(tokens))):
        depth += (tokens[i].type in _OPENING) - (tokens[i].type in _CLOSING)
        if depth == 0:
            return i
    return len(tokens)


def _split_fraction(token: Token) -> list[Token]:
    slash = token.index("/")
    above, below = len(token[:slash].rstrip()), len(token) - len(token[slash + 1 :].lstrip())
    return [
        token.cut(0, above, "NUMBER"),
        token.cut(slash, slash + 1, "SLASH"),
        token.cut(below, len(token), "NUMBER"),
    ]
