"""What is wrong with a rule that does not parse, in words that help.

The parser knows at which token it stopped and which tokens it would have taken. The typical mistakes are recognised
from the tokens around that place; for all others the message lists what would have been right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tidelog.errors import Diagnostic
from tidelog.language.codes import suggest
from tidelog.language.tokens import OPERATOR_WORDS, Source

if TYPE_CHECKING:
    from lark import Token

#: Operators in one literal, at most: deeper formulas are machine-made nonsense, and recursion over them must end.
MAX_OPERATORS = 200

_NAMES = sorted(set(OPERATOR_WORDS.values()))
_OPERATORS_LAW = f"the operators are {', '.join(_NAMES)}, each with a range: Diamondminus[0,5] P(X)"
_ORDER = {
    "NAME": "a name",
    "PREFIX": "an operator",
    "INFIX": "Since or Until",
    "NUMBER": "a number",
    "STRING": "a quoted string",
    "INF": "inf",
    "_COMMA": "`,`",
    "COMPARE": "a comparison",
    "_IF": "`:-`",
    "_LPAR": "`(`",
    "_RPAR": "`)`",
    "OPEN": "a range such as [0,5]",
    "CLOSE": "`]` or `)`",
    "NOT": "`not`",
    "_SLASH": "`/`",
    "_DOT": "`.`",
    "$END": "the end of the rule",
}
_INSTEAD = {
    "'": 'strings take double quotes: "abc"',
    ";": "for `or` write two rules; for `and` write `,`",
    "|": "for `or` write two rules",
    "&": "for `and` write `,`",
    "∧": "for `and` write `,`",
    "∨": "for `or` write two rules",
    "!": "for a negation write `not`, for unequal `!=`",
    "~": "for a negation write `not`",
    "¬": "for a negation write `not`",
    "\\": "for a negation write `not`",
    "←": "write `:-`",
    ":": "between head and body write `:-`",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "≠": "write `!=`",
    "∞": "write `inf`",
    "⊤": "write `Top`",
    "⊥": "write `Bottom`",
    "◇": "write Diamondminus (◇⁻) or Diamondplus (◇⁺)",
    "□": "write Boxminus (⊟) or Boxplus (⊞)",
    "@": "facts with times belong into a data file; in rules, time is spoken of by operators",
    "$": "names consist of letters, digits and `_`, and may have a prefix (`a1:Scientist`)",
    "#": "directives are `#temporal P/3.` and `#rigid Succ/2.`; comments start with `%`",
}


def lexical_error(tokens: Sequence[Token], source: Source) -> Diagnostic | None:
    """The first token of a rule that is no token of the language."""
    for i, token in enumerate(tokens):
        place = source.place(token)
        if token.type == "BAD":
            help = _INSTEAD.get(str(token))
            if token == "/" and tokens[i - 1].type == "NUMBER":
                help = "a fraction is one whole number over another, such as 3/4"
            return Diagnostic("TL002", f"unexpected character {_show(token)}", place, help=help)
        if token.type == "OPEN_STRING":
            law = 'a string ends on its line; inside it, \\" is a quote and \\n a line break'
            return Diagnostic("TL003", "this quote is not closed", place, law)
        if token.type == "BAD_NUMBER":
            law = "numbers are written 3, 0.5 or 1/3; durations have a unit out of ms, s, min, h, d, w: 10min"
            help = f'put it in quotes if it is a name: "{token}"'
            return Diagnostic("TL007", f"{_show(token)} is neither a number nor a name", place, law, help)
    return None


def nesting_error(tokens: Sequence[Token], source: Source) -> Diagnostic | None:
    """A literal with more operators than any reader could follow."""
    operators = brackets = 0
    for token in tokens:
        brackets += (token.type in ("_LPAR", "OPEN")) - (token.type in ("_RPAR", "CLOSE"))
        if token.type in ("PREFIX", "INFIX"):
            operators += 1
        elif token.type == "_IF" or (token.type == "_COMMA" and brackets == 0):
            operators = 0
        if operators > MAX_OPERATORS:
            message = f"more than {MAX_OPERATORS} operators in one literal"
            return Diagnostic("TL008", message, source.place(token), help="name the inner part with a rule of its own")
    return None


def grammar_error(tokens: Sequence[Token], at: int, accepts: Iterable[str], source: Source) -> Diagnostic:
    """Why the rule could not go on at token `at` (the rule's end, if there is no such token)."""
    before = tokens[at - 1] if at else None
    if at == len(tokens):
        assert before is not None
        return Diagnostic("TL001", f"the rule ends too early: expected {_list(accepts)}", source.after(before))
    token = tokens[at]
    place = source.place(token)
    known = (
        _operator_error(tokens, at, source)
        or (_head_error(tokens, at, source) if not any(t.type == "_IF" for t in tokens[:at]) else None)
        or _body_error(tokens, at, source)
    )
    if known:
        return known
    return Diagnostic("TL001", f"unexpected {_show(token)}: expected {_list(accepts)}", place)


def _operator_error(tokens: Sequence[Token], at: int, source: Source) -> Diagnostic | None:
    token = tokens[at]
    before = tokens[at - 1] if at else None
    if token.type == "INFIX" and any(t.type == "INFIX" for t in _literal_before(tokens, at)):
        law = "Since and Until do not chain; brackets say what belongs together"
        help = f"write (A {token}[0,1] B) {token}[0,1] C"
        return Diagnostic("TL006", f"a second {token} in one literal", source.place(token), law, help)
    for name, bracket in zip(tokens[max(0, at - 1) : at + 1], tokens[at : at + 2], strict=False):
        if name.type == "NAME" and bracket.type == "LSQB":
            return _unknown_operator(name, source, certain=True)
    for candidate in (token, before):
        if candidate is not None and candidate.type == "NAME" and candidate.lower() in OPERATOR_WORDS:
            return _missing_range(candidate, source)
    if before is not None and (before.type == "PREFIX" or "OPEN" in [t.type for t in tokens[max(0, at - 4) : at]]):
        law = "a range is [a,b], (a,b], [a,b) or (a,b), of numbers, durations and inf; [a] or a bare number is [a,a]"
        return Diagnostic("TL001", f"unexpected {_show(token)} in a range", source.place(token), law)
    if before is not None and before.type == "NAME" and token.type in ("NUMBER", "DURATION"):
        return _unknown_operator(before, source, certain=False)
    if before is not None and before.type == "_RPAR":
        opening = max((i for i in range(at) if tokens[i].type == "_LPAR"), default=0)
        inside = {t.type for t in tokens[opening + 1 : at - 1]}
        if opening and tokens[opening - 1].type == "NAME" and inside <= {"NUMBER", "_COMMA"}:
            return _unknown_operator(tokens[opening - 1], source, certain=False)
    return None


def _missing_range(token: Token, source: Source) -> Diagnostic:
    word = OPERATOR_WORDS[token.lower()]
    help = f"write A {word}[0,5] B" if word in ("Since", "Until") else f"write {word}[0,5] P(X)"
    return Diagnostic("TL005", f"{word} needs a range", source.place(token), _OPERATORS_LAW, help)


def _unknown_operator(token: Token, source: Source, certain: bool) -> Diagnostic | None:
    """`certain`: nothing but an operator stands in front of a square bracket."""
    if certain and token.lower() in OPERATOR_WORDS:
        law = "in temporal Datalog times are arguments: P(X, T+1)"
        help = "rules with operators belong into a .dmtl file"
        return Diagnostic("TL004", "temporal Datalog has no operators", source.place(token), law, help)
    meant = suggest(str(token), _NAMES)
    if meant is None and not certain:
        return None
    question = f"did you mean {meant}?" if meant else None
    return Diagnostic("TL004", f"there is no operator `{token}`", source.place(token), _OPERATORS_LAW, question)


def _head_error(tokens: Sequence[Token], at: int, source: Source) -> Diagnostic | None:
    token = tokens[at]
    place = source.place(token)
    if token.type == "_COMMA":
        if any(t.type == "_IF" for t in tokens[at:]):
            return Diagnostic("TL001", "a second head", place, "a rule has one head", "write one rule for each head")
        help = "if this line continues the rule above, that rule's line must end with `,`"
        return Diagnostic("TL001", "unexpected `,`: expected `:-`, `.` or the end of the line", place, help=help)
    if token.type == "NOT":
        law = "only body literals are negated"
        return Diagnostic("TL001", "`not` in a head", place, law, "write Bottom :- P(X). to forbid P")
    if token.type == "COMPARE" and token.startswith("<") and at + 1 < len(tokens) and tokens[at + 1] == "-":
        return Diagnostic("TL001", "unexpected `<-`", place, help="between head and body write `:-`")
    if token.type == "COMPARE":
        return Diagnostic("TL001", "a comparison in a head", place, "comparisons stand in bodies")
    return None


def _body_error(tokens: Sequence[Token], at: int, source: Source) -> Diagnostic | None:
    token, before = tokens[at], tokens[at - 1]
    place = source.place(token)
    if token.type == "_IF":
        if any(t.type == "_IF" for t in tokens[:at]):
            help = "end the rule before this one with `.`, or begin this one on its own line, with no `,` before it"
            return Diagnostic("TL001", "a second `:-` in one rule", place, "a rule is `head :- body.`", help)
        return None
    if token.type == "NOT" and before.type not in ("_RPAR", "NAME"):
        help = "name the negation with a rule of its own"
        return Diagnostic("TL001", "`not` under an operator", place, "`not` negates a whole literal", help)
    if token.type == "SIGN" and before.type == "NAME":
        law = "rules have no arithmetic; offsets of time such as T+1 belong to temporal Datalog (.tdl)"
        return Diagnostic("TL001", f"unexpected {_show(token)}", place, law)
    if token.type == "_COMMA" and _open_brackets(tokens[:at]) > 0:
        law = "brackets group one formula, not several"
        help = "name the conjunction with a rule of its own"
        return Diagnostic("TL001", "unexpected `,` inside brackets", place, law, help)
    if token.type in ("NAME", "PREFIX", "NOT") and before.type in ("_RPAR", "NAME", "NUMBER", "STRING"):
        law = "the literals of a body are separated by `,`"
        return Diagnostic("TL001", f"unexpected {_show(token)}", place, law, "a `,` is missing before it")
    return None


def _literal_before(tokens: Sequence[Token], at: int) -> list[Token]:
    """The tokens of the same literal, bracketed parts left out, in front of `at`."""
    found: list[Token] = []
    depth = 0
    for token in reversed(tokens[:at]):
        depth += (token.type in ("_RPAR", "CLOSE")) - (token.type in ("_LPAR", "OPEN"))
        if depth < 0 or (depth == 0 and token.type in ("_COMMA", "_IF", "_BARS")):
            break
        if depth == 0:
            found.append(token)
    return found


def _open_brackets(tokens: Sequence[Token]) -> int:
    return sum((t.type == "_LPAR") - (t.type == "_RPAR") for t in tokens)


def _show(token: Token) -> str:
    text = str(token)
    if not text.isprintable():
        return f"U+{ord(text[0]):04X}"
    return f"`{text}`" if len(text) <= 40 else f"`{text[:37]}...`"


def _list(accepts: Iterable[str]) -> str:
    """What would have been right, in words and in a fixed order."""
    taken = set(accepts)
    if "DURATION" in taken or "AT" in taken:
        taken.add("NUMBER")
    words = [label for kind, label in _ORDER.items() if kind in taken]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
