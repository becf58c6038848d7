"""Explain why a rule does not parse.

The parser knows at which token it stopped and which tokens it would have accepted. Typical mistakes are recognised from
the tokens around that place; for all others the message lists what would have been accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidelog.errors import Diagnostic
from tidelog.language.expression_errors import explain_brace, explain_expression_error
from tidelog.language.foreign_words import explain_foreign_word, explain_or, suggest_duration
from tidelog.language.table_parser import Token
from tidelog.language.time_text import read_number
from tidelog.language.tokenizer import OPERATOR_WORDS, SourceText
from tidelog.language.wording import join_words, suggest

#: The most operators in one literal: recursion over formulas must end, and deeper ones are generated nonsense.
MAX_OPERATORS = 200

_OPERATOR_NAMES = sorted(set(OPERATOR_WORDS.values()))
#: How terminals are called in messages, in the order in which messages list them.
_TERMINAL_NAMES = {
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
    "_RBRACE": "`}`",
    "_COLON": "`:`",
    "_SLASH": "`/`",
    "_DOT": "`.`",
    "$END": "the end of the rule",
}
_OPENING = frozenset({"_LPAR", "OPEN", "_LBRACE", "_VALUES"})
_CLOSING = frozenset({"_RPAR", "CLOSE", "_RBRACE"})
#: Tokens that each make a formula or an expression deeper.
_NESTING = frozenset({"PREFIX", "INFIX", "SIGN", "TIMES", "SLASH", "MOD", "CONCAT", "FUNCTION", "_GROUP"})
#: Tokens that make brackets a group, unless they hold the arguments of an atom or a function.
_IN_GROUP = frozenset({"_COMMA", "OR", "AND", "NOT"})
#: A group takes as much recursion as several operators.
_GROUP_WEIGHT = 5
_BEFORE_ARGUMENTS = ("NAME", "FUNCTION", "TEXT_TEST")
#: What to write instead of a character that the language does not have.
_REPLACEMENTS = {
    "'": 'strings take double quotes: "abc"',
    ";": "for `or` write `or`; for `and` write `,`",
    "|": "for `or` write `or`; between the value and the body of an aggregate write `:`",
    "^": "there are no powers: write X * X",
    "}": "braces belong to aggregates: count{ P(X) }",
    "&": "for `and` write `,`",
    "∧": "for `and` write `,`",
    "∨": "write `or`",
    "!": "for a negation write `not`, for unequal `!=`",
    "~": "for a negation write `not`",
    "¬": "for a negation write `not`",
    "\\": "for a negation write `not`",
    "←": "write `:-`",
    ":": "between head and body write `:-`, in a comparison `=`",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "≠": "write `!=`",
    "∞": "write `inf`",
    "⊤": "write `Top`",
    "⊥": "write `Bottom`",
    "◇": "write Diamondminus (◇⁻) or Diamondplus (◇⁺)",
    "□": "write Boxminus (⊟) or Boxplus (⊞)",
    "@": "facts with times belong in a data file; rules refer to time by operators",
    "$": "names consist of letters, digits and `_`, and may have a prefix (`a1:Scientist`)",
    "#": "directives are `#temporal P/3.` and `#rigid Succ/2.`; comments start with `%`",
}


def find_lexical_error(tokens: Sequence[Token], source: SourceText) -> Diagnostic | None:
    """Report the first token of a rule that the language does not have, or None."""
    for i, token in enumerate(tokens):
        place = source.place(token)
        if token.type == "BAD":
            if brace := explain_brace(tokens, i, source):
                return brace
            help = _REPLACEMENTS.get(str(token))
            if token in ("|", "∨", ";") and any(before.type == "_IF" for before in tokens[:i]):
                help = "write `or`: A(X) or B(X)" if source.operators else f"for `or` {explain_or(tokens, i, source)}"
                help += "; for `and` write `,`" if token == ";" else ""
            if token == "/" and tokens[i - 1].type == "NUMBER":
                help = "a fraction is one whole number over another, such as 3/4"
            return Diagnostic("TL002", f"unexpected character {_quote_token(token)}", place, help=help)
        if token.type == "OPEN_STRING":
            return Diagnostic("TL003", "this quote is not closed", place)
        if token.type == "BAD_NUMBER":
            meant = suggest_duration(str(token))
            help = f"did you mean {meant}?" if meant else f'put it in quotes if it is a name: "{token}"'
            return Diagnostic("TL007", f"{_quote_token(token)} is neither a number nor a name", place, help=help)
    return None


def find_nesting_error(tokens: Sequence[Token], source: SourceText) -> Diagnostic | None:
    """Report a literal with more than `MAX_OPERATORS` operators, where a group counts as several, or None."""
    operators = 0
    before = ""
    #: For each open bracket, whether it may still turn out to be a group of several literals.
    brackets: list[bool] = []
    for token in tokens:
        if token.type in _CLOSING and brackets:
            brackets.pop()
        if token.type in _NESTING:
            operators += 1
        elif brackets and brackets[-1] and token.type in _IN_GROUP:
            brackets[-1] = False
            operators += _GROUP_WEIGHT
        elif token.type == "_IF" or (token.type == "_COMMA" and not brackets):
            operators = 0
        if token.type in _OPENING:
            brackets.append(token.type == "_LPAR" and before not in _BEFORE_ARGUMENTS)
        before = token.type
        if operators > MAX_OPERATORS:
            message = f"more than {MAX_OPERATORS} operators in one literal"
            return Diagnostic("TL008", message, source.place(token))
    return None


def explain_grammar_error(tokens: Sequence[Token], at: int, accepts: Iterable[str], source: SourceText) -> Diagnostic:
    """Explain why parsing stopped at token `at`, or at the end of the rule if there is no such token."""
    before = tokens[at - 1] if at else None
    if at == len(tokens):
        assert before is not None
        return Diagnostic("TL001", f"the rule ends too early: expected {_list_accepted(accepts)}", source.after(before))
    token = tokens[at]
    place = source.place(token)
    known = (
        explain_foreign_word(tokens, at, source)
        or explain_expression_error(tokens, at, source)
        or _find_operator_error(tokens, at, source)
        or (_find_head_error(tokens, at, source) if not any(t.type == "_IF" for t in tokens[:at]) else None)
        or _find_body_error(tokens, at, source)
    )
    if known:
        return known
    return Diagnostic("TL001", f"unexpected {_quote_token(token)}: expected {_list_accepted(accepts)}", place)


def _find_operator_error(tokens: Sequence[Token], at: int, source: SourceText) -> Diagnostic | None:
    token = tokens[at]
    before = tokens[at - 1] if at else None
    if token.type == "INFIX" and any(t.type == "INFIX" for t in _literal_before(tokens, at)):
        help = f"write (A {token}[0,1] B) {token}[0,1] C"
        return Diagnostic("TL006", f"a second {token} in one literal", source.place(token), help=help)
    for name, bracket in zip(tokens[max(0, at - 1) : at + 1], tokens[at : at + 2], strict=False):
        if name.type == "NAME" and bracket.type == "LSQB":
            return _report_unknown_operator(name, source, certain=True)
    for candidate in (token, before):
        if candidate is not None and candidate.type == "NAME" and candidate.lower() in OPERATOR_WORDS:
            return _report_missing_range(candidate, source)
    if before is not None and (before.type == "PREFIX" or "OPEN" in [t.type for t in tokens[max(0, at - 4) : at]]):
        law = "a range is [a,b], (a,b], [a,b) or (a,b), of numbers, durations and inf; [a] or a bare number is [a,a]"
        meant = suggest_duration(f"{before}{token}") or f"{before}{token}"
        spaced = before.type == "NUMBER" and token.type == "NAME" and read_number(meant, units=True) is not None
        message = f"unexpected {_quote_token(token)} in a range"
        unit = f"write the unit next to the number: {meant}" if spaced else None
        return Diagnostic("TL001", message, source.place(token), law, unit)
    if before is not None and before.type == "NAME" and token.type in ("NUMBER", "DURATION"):
        return _report_unknown_operator(before, source, certain=False)
    if before is not None and before.type == "_RPAR":
        opening = max((i for i in range(at) if tokens[i].type == "_LPAR"), default=0)
        inside = {t.type for t in tokens[opening + 1 : at - 1]}
        if opening and tokens[opening - 1].type == "NAME" and inside <= {"NUMBER", "_COMMA"}:
            return _report_unknown_operator(tokens[opening - 1], source, certain=False)
    return None


def _report_missing_range(token: Token, source: SourceText) -> Diagnostic:
    word = OPERATOR_WORDS[token.lower()]
    help = f"write A {word}[0,5] B" if word in ("Since", "Until") else f"write {word}[0,5] P(X)"
    return Diagnostic("TL005", f"{word} needs a range", source.place(token), help=help)


def _report_unknown_operator(token: Token, source: SourceText, certain: bool) -> Diagnostic | None:
    """Report a misspelt operator. Unless `certain`, an operator with a similar name must exist."""
    if certain and token.lower() in OPERATOR_WORDS:
        law = "in temporal Datalog times are arguments: P(X, T+1)"
        help = "rules with operators belong in a .dmtl file"
        return Diagnostic("TL004", "temporal Datalog has no operators", source.place(token), law, help)
    meant = suggest(str(token), _OPERATOR_NAMES)
    if meant is None and not certain:
        return None
    question = f"did you mean {meant}?" if meant else None
    return Diagnostic("TL004", f"there is no operator `{token}`", source.place(token), help=question)


def _find_head_error(tokens: Sequence[Token], at: int, source: SourceText) -> Diagnostic | None:
    token = tokens[at]
    place = source.place(token)
    if token.type == "_COMMA":
        if any(t.type == "_IF" for t in tokens[at:]) and not source.operators:
            law = "a rule of temporal Datalog has one head"
            return Diagnostic("TL001", "a second head", place, law, "write one rule for each head")
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


def _find_body_error(tokens: Sequence[Token], at: int, source: SourceText) -> Diagnostic | None:
    token, before = tokens[at], tokens[at - 1]
    place = source.place(token)
    if token.type == "_IF":
        if any(t.type == "_IF" for t in tokens[:at]):
            help = "end the rule before this one with `.`, or begin this one on its own line, with no `,` before it"
            return Diagnostic("TL001", "a second `:-` in one rule", place, "a rule is `head :- body.`", help)
        return None
    if token.type == "NOT" and before.type not in ("_RPAR", "NAME"):
        help = "write brackets around it: Boxminus[0,5] (not A(X))"
        return Diagnostic("TL001", "`not` under an operator", place, "`not` negates a whole literal", help)
    if token.type in ("NAME", "PREFIX", "NOT") and before.type in ("_RPAR", "NAME", "NUMBER", "STRING"):
        law = "the literals of a body are separated by `,`"
        return Diagnostic("TL001", f"unexpected {_quote_token(token)}", place, law, "a `,` is missing before it")
    return None


def _literal_before(tokens: Sequence[Token], at: int) -> list[Token]:
    """Return the tokens of the same literal before `at`, without those in brackets."""
    before: list[Token] = []
    depth = 0
    for token in reversed(tokens[:at]):
        depth += (token.type in ("_RPAR", "CLOSE")) - (token.type in ("_LPAR", "OPEN"))
        if depth < 0 or (depth == 0 and token.type in ("_COMMA", "_IF", "_BARS")):
            break
        if depth == 0:
            before.append(token)
    return before


def _quote_token(token: Token) -> str:
    text = str(token)
    if not text.isprintable():
        return f"U+{ord(text[0]):04X}"
    return f"`{text}`" if len(text) <= 40 else f"`{text[:37]}...`"


def _list_accepted(accepts: Iterable[str]) -> str:
    """List the accepted terminals in words, in a fixed order."""
    accepted = set(accepts)
    if "DURATION" in accepted or "AT" in accepted:
        accepted.add("NUMBER")
    words = [label for kind, label in _TERMINAL_NAMES.items() if kind in accepted]
    return join_words(words or ["an operand"], "or")
