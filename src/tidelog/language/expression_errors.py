"""Explain typical mistakes in arithmetic, comparisons and aggregates: `X => 3`, `X ** 2`, `SUM{...}`, `count(X)`.

Each function looks at the token where parsing stopped and at its neighbours, and returns None if the mistake is not of
its kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tidelog.errors import Diagnostic
from tidelog.language.aggregate_checks import example_aggregate
from tidelog.language.expression_tokens import AGGREGATE_WORDS, FUNCTIONS, TEXT_TESTS
from tidelog.language.table_parser import Token
from tidelog.language.time_text import UNITS
from tidelog.language.tokenizer import SourceText
from tidelog.language.wording import suggest

_Tokens = Sequence["Token"]

_OPENING = frozenset({"_LPAR", "_GROUP", "LSQB", "OPEN", "_LBRACE", "_VALUES"})
_CLOSING = frozenset({"_RPAR", "RSQB", "CLOSE", "_RBRACE"})
_BRACES = frozenset({"_LBRACE", "_VALUES"})
_CALCULATES = frozenset({"COMPARE", "SIGN", "TIMES", "SLASH", "CONCAT", "MOD"})
_ENDS_OPERAND = frozenset({"NAME", "NUMBER", "DURATION", "STRING", "_RPAR", "_RBRACE"})
#: Operators of other languages, by the pair of tokens that they are read as.
_FOREIGN_PAIRS = {
    "=>": "for `greater or equal` write `>=`",
    "=<": "for `less or equal` write `<=`",
    "<>": "for `unequal` write `!=`",
    "><": "for `unequal` write `!=`",
    ":=": "for `is` write `=`: V = X + 1",
    "**": "there are no powers: write X * X",
    "//": "for an integer quotient write floor(X / Y)",
    "<-": "between head and body write `:-`",
}
#: Functions of other languages.
_FOREIGN_FUNCTIONS = {
    "mod": "write X mod Y",
    "round": "write floor(X + 1/2)",
    "trunc": "write floor(X) or ceil(X)",
    "int": "write floor(X)",
    "len": "write length(X)",
    "concat": "write X ++ Y",
    "least": "write min(X, Y)",
    "greatest": "write max(X, Y)",
    "pow": "there are no powers: write X * X",
    "power": "there are no powers: write X * X",
    "ceiling": "write ceil(X)",
}


def explain_expression_error(tokens: _Tokens, at: int, source: SourceText) -> Diagnostic | None:
    """Explain a mistake in an expression, a comparison or an aggregate, where parsing stopped; None for others."""
    finders: tuple[Callable[[_Tokens, int, SourceText], Diagnostic | None], ...] = (
        _find_foreign_pair,
        _find_misspelt_aggregate,
        _find_unknown_function,
        _find_test_arity,
        _find_mistake_in_braces,
        _find_split_number,
        _find_misplaced_comparison,
        _find_foreign_operator,
    )
    return next((found for finder in finders if (found := finder(tokens, at, source))), None)


def explain_brace(tokens: _Tokens, at: int, source: SourceText) -> Diagnostic | None:
    """Explain a `{` outside of every comparison, which is not a character of a body."""
    if tokens[at] != "{":
        return None
    word = _word_before_braces(tokens, at)
    if word is None or word.lower() not in AGGREGATE_WORDS:
        help = "braces belong to aggregates, which are values: N = count{ P(X) }"
        return Diagnostic("TL002", "unexpected character `{`", source.place(tokens[at]), help=help)
    if tokens[at - 1].type in ("PREFIX", "CLOSE") and any(token.type == "PREFIX" for token in tokens[:at]):
        help = "operators apply to formulas: write them inside the braces"
    else:
        help = f"compare it: {example_aggregate(word.lower())} >= 3, or name it: N = {example_aggregate(word.lower())}"
    return Diagnostic("TL118", "an aggregate is a value, not a literal", source.place(word), help=help)


def find_numbers(tokens: _Tokens, source: SourceText) -> Diagnostic | None:
    """Report arithmetic or an aggregate in a rule of temporal Datalog, which has none of them."""
    compared = False
    for before, token, following in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        sign = token in ("+", "-", "/") and before is not None and before.type != "COMPARE"
        function = token in FUNCTIONS and following is not None and following.type == "_LPAR"
        if token == "{":
            return Diagnostic("TL121", "temporal Datalog has no aggregates", source.place(token))
        if token == "*" or (compared and (sign or function)):
            return Diagnostic("TL121", "temporal Datalog has no arithmetic", source.place(token))
        compared = token.type == "COMPARE" or (compared and token.type != "_COMMA")
    return None


def find_modulo_comment(tokens: _Tokens, source: SourceText) -> Diagnostic | None:
    """Report a rule that ends with a comparison and a `%` that begins a comment, though `mod` was meant."""
    last = tokens[-1]
    end = last.end_pos
    line = source.text[end:].partition("\n")[0]
    comment = re.match(r"[ \t]*%[ \t]*\(?([0-9]+|[A-Z_]\w*)[ \t]*(?:[-+*/=<>!.,)].*)?$", line)
    if last.type not in _ENDS_OPERAND or not comment or not any(t.type == "COMPARE" for t in tokens):
        return None
    help = f"for a remainder write mod: {last} mod {comment[1]}; or end the rule with `.`"
    return Diagnostic("TL001", "`%` begins a comment", source.after(last), help=help)


def _find_foreign_pair(tokens: _Tokens, at: int, source: SourceText) -> Diagnostic | None:
    for first in (at - 1, at):
        if 0 <= first < len(tokens) - 1 and tokens[first].end_pos == tokens[first + 1].start_pos:
            pair = tokens[first][-1:] + tokens[first + 1][:1]
            if pair in _FOREIGN_PAIRS and len(tokens[first]) == 1:
                place = source.place(tokens[first], tokens[first + 1])
                return Diagnostic("TL001", f"unexpected `{pair}`", place, help=_FOREIGN_PAIRS[pair])
    return None


def _find_misspelt_aggregate(tokens: _Tokens, at: int, source: SourceText) -> Diagnostic | None:
    """Explain `SUM{...}`, `median{...}`, `sum(...)`, `sum[...]` and `count distinct {...}`."""
    token, before = tokens[at], tokens[at - 1] if at else None
    if token.type in _BRACES:
        misspelt = _word_before_braces(tokens, at)
        return _report_unknown_aggregate(misspelt, source) if misspelt is not None else None
    for name, following in ((before, token), (token, tokens[at + 1] if at + 1 < len(tokens) else None)):
        if name is None or following is None or name.type not in ("NAME", "FUNCTION"):
            continue
        word = name.lower()
        opens_range = following.type == "LSQB" and _finds_brace_after(tokens, following)
        if opens_range and (word in AGGREGATE_WORDS or suggest(word, AGGREGATE_WORDS)):
            return _report_unknown_aggregate(name, source)
        if word in AGGREGATE_WORDS and (
            following.type in ("_LPAR", "LSQB", "_GROUP", "NUMBER", "DURATION") or following == "distinct"
        ):
            help = "write count{ distinct X : P(X) }" if following == "distinct" else f"write {example_aggregate(word)}"
            return Diagnostic("TL118", f"{word} takes braces", source.place(name), help=help)
    return None


def _report_unknown_aggregate(word: Token, source: SourceText) -> Diagnostic:
    place, known = source.place(word), word.lower()
    if known in AGGREGATE_WORDS:
        message = f"aggregates are written in lower case, not {word}"
        return Diagnostic("TL118", message, place, help=f"write {example_aggregate(known)}")
    meant = suggest(known, AGGREGATE_WORDS)
    help = f"did you mean {meant}?" if meant else None
    return Diagnostic("TL118", f"there is no aggregate `{word}`", place, help=help)


def _find_unknown_function(tokens: _Tokens, at: int, source: SourceText) -> Diagnostic | None:
    token = tokens[at]
    name = None
    if at and token.type == "_LPAR" and tokens[at - 1].type == "NAME":
        name = tokens[at - 1]
    elif at and token.type in _CALCULATES and tokens[at - 1].type == "_RPAR":
        opening = _find_opening(tokens, at - 1)
        if opening and tokens[opening - 1].type == "NAME":
            name = tokens[opening - 1]
    if name is None or not _is_in_body(tokens, at):
        return None
    place, word = source.place(name), name.lower()
    if word in _FOREIGN_FUNCTIONS or word in FUNCTIONS:
        help = _FOREIGN_FUNCTIONS.get(word, f"functions are written in lower case: {word}")
        return Diagnostic("TL116", f"there is no function `{name}`", place, help=help)
    if word in TEXT_TESTS:
        return Diagnostic("TL116", f"{word} is a test, not a value", place, help=f'write {word}(X, "a") as a literal')
    if name[0].isupper():
        help = f"a predicate has no value: add an argument for it, {name}(X, V), and compute with V"
        return Diagnostic("TL116", f"{name} is not a function", place, help=help)
    meant = suggest(word, FUNCTIONS)
    help_meant = f"did you mean {meant}?" if meant else None
    return Diagnostic("TL116", f"there is no function `{name}`", place, help=help_meant)


def _find_test_arity(tokens: _Tokens, at: int, source: SourceText) -> Diagnostic | None:
    opening = _innermost(tokens, at)
    if opening is None or not opening or tokens[opening - 1].type != "TEXT_TEST":
        return None
    name = tokens[opening - 1]
    if tokens[at].type not in ("_RPAR", "_COMMA"):
        return None
    return Diagnostic("TL116", f"{name} takes 2 arguments", source.place(name), help=f'write {name}(X, "a")')


def _find_mistake_in_braces(tokens: _Tokens, at: int, source: SourceText) -> Diagnostic | None:
    opening = _innermost(tokens, at)
    if opening is None or tokens[opening].type not in _BRACES:
        return None
    token, before = tokens[at], tokens[at - 1]
    word = _word_before_braces(tokens, opening)
    name = "count" if word is None else word.lower()
    place = source.place(token)
    if at == opening + 1 and token.type == "_RBRACE":
        return Diagnostic("TL118", "empty braces", place, help=f"write {example_aggregate(name)}")
    if token.type == "_DOT":
        return Diagnostic("TL118", "the `{` is not closed", source.place(tokens[opening]), help="write `}` at its end")
    if token.type == "NAME" and before.type in _ENDS_OPERAND and not _has_colon(tokens, opening, at):
        help = f"between value and body write `:`, as in {example_aggregate(name)}; between literals `,`"
        return Diagnostic("TL118", f"unexpected `{token}` inside braces", place, help=help)
    return None


def _find_split_number(tokens: _Tokens, at: int, source: SourceText) -> Diagnostic | None:
    token, before = tokens[at], tokens[at - 1] if at else None
    opening = _innermost(tokens, at)
    in_range = opening is not None and tokens[opening].type == "OPEN"
    if token in UNITS and before is not None and before.type == "NUMBER" and not in_range:
        place = source.place(before, token)
        help = f"write the unit next to the number: {before}{token}"
        return Diagnostic("TL007", f"`{before} {token}` is not a number", place, help=help)
    if token.type == "_DOT" and before is not None and before.type in _CALCULATES:
        decimals = re.match(r"\.[0-9]+", source.text[token.start_pos :])
        if decimals:
            message = f"`{decimals[0]}` is not a number"
            return Diagnostic("TL007", message, source.place(token), help=f"write 0{decimals[0]}")
    return None


def _find_misplaced_comparison(tokens: _Tokens, at: int, source: SourceText) -> Diagnostic | None:
    token = tokens[at]
    place = source.place(token)
    literal = _literal_of(tokens, at)
    if token.type == "COMPARE" and any(t.type == "COMPARE" for t in literal):
        help = "write one comparison after the other: 1 < X, X < 3"
        return Diagnostic("TL001", f"a second comparison, `{token}`", place, "a comparison has two sides", help)
    under = any(t.type == "PREFIX" for t in literal)
    opening = _innermost(tokens, at)
    grouped = opening is not None and tokens[opening].type == "_LPAR"
    if token.type in _CALCULATES and _is_in_body(tokens, at) and (under or grouped):
        where = "under an operator" if under else "in brackets"
        law = "operators and brackets apply to formulas; a comparison is a literal of its own"
        return Diagnostic(
            "TL001", f"unexpected `{token}` {where}", place, law, "write the comparison beside it, after `,`"
        )
    if token.type == "AGGREGATE" and under:
        help = "write the operator inside the braces: count{ Diamondminus[0,5] P(X) }"
        return Diagnostic("TL118", f"{token} under an operator", place, help=help)
    if token.type in ("_COMMA", "_DOT", "_RBRACE") and any(
        t.type in _CALCULATES or t.type == "FUNCTION" for t in literal
    ):
        first = literal[-1]
        if not any(t.type == "COMPARE" for t in literal) and tokens[at - 1].type in _ENDS_OPERAND:
            help = "compare it, X + 1 > 3, or give it a name, V = X + 1"
            law = "a literal is a formula or a comparison"
            return Diagnostic("TL001", "an expression is not a literal", source.place(first, tokens[at - 1]), law, help)
    return None


def _find_foreign_operator(tokens: _Tokens, at: int, source: SourceText) -> Diagnostic | None:
    token, before = tokens[at], tokens[at - 1] if at else None
    if token.type == "NAME" and token.lower() == "mod" and token != "mod":
        return Diagnostic("TL001", f"unexpected `{token}`", source.place(token), help="write mod, in lower case")
    if before is not None and before.type == "_BARS" and token.type in ("STRING", "NUMBER"):
        help = "to join two texts write `++`"
        return Diagnostic("TL001", "unexpected `||`", source.place(before), help=help)
    return None


def _word_before_braces(tokens: _Tokens, at: int) -> Token | None:
    """Return the name in front of braces, and of the range between them, if there is one."""
    before = at - 1
    if before > 0 and tokens[before].type in ("RSQB", "CLOSE", "_RPAR"):
        before = _find_opening(tokens, before) - 1
    if before >= 0 and tokens[before].type in ("NAME", "AGGREGATE", "FUNCTION"):
        return tokens[before]
    return None


def _finds_brace_after(tokens: _Tokens, opening: Token) -> bool:
    """Return whether a brace follows the square bracket that closes another."""
    at = next(i for i, token in enumerate(tokens) if token is opening)
    closing = next((i for i in range(at, len(tokens)) if tokens[i].type in ("RSQB", "CLOSE")), len(tokens))
    return closing + 1 < len(tokens) and tokens[closing + 1] == "{"


def _find_opening(tokens: _Tokens, closing: int) -> int:
    """Return the position of the bracket that another closes, or 0."""
    depth = 0
    for i in range(closing, -1, -1):
        depth += (tokens[i].type in _CLOSING) - (tokens[i].type in _OPENING)
        if depth == 0:
            return i
    return 0


def _innermost(tokens: _Tokens, at: int) -> int | None:
    """Return the position of the last bracket that is open before a token."""
    open_at: list[int] = []
    for i in range(at):
        if tokens[i].type in _OPENING:
            open_at.append(i)
        elif tokens[i].type in _CLOSING and open_at:
            open_at.pop()
    return open_at[-1] if open_at else None


def _has_colon(tokens: _Tokens, opening: int, at: int) -> bool:
    return any(tokens[i].type == "_COLON" and _innermost(tokens, i) == opening for i in range(opening + 1, at))


def _literal_of(tokens: _Tokens, at: int) -> list[Token]:
    """Return the tokens of the same literal before one, the last one first, without those in brackets."""
    found: list[Token] = []
    depth = 0
    for i in range(at - 1, -1, -1):
        token = tokens[i]
        depth += (token.type in _CLOSING) - (token.type in _OPENING)
        if depth < 0 or (depth == 0 and token.type in ("_COMMA", "_IF", "_BARS", "_COLON")):
            break
        if depth == 0:
            found.append(token)
    return found


def _is_in_body(tokens: _Tokens, at: int) -> bool:
    return any(token.type == "_IF" for token in tokens[:at])
