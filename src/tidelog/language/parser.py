"""DatalogMTL text to its syntax tree, rule by rule, with every error that can be found.

Cutting into rules is in `tokens`, the grammar in `grammar.lark`, the words for errors in `complaints`; here parse trees
become syntax, and MeTeoR's words (`SOMETIME`, `ALWAYS`, `UNTIL` with negative ranges) become the operators they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from tidelog.errors import Diagnostic
from tidelog.language.complaints import grammar_error, lexical_error, nesting_error
from tidelog.language.facts import unquote
from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
    BodyLiteral,
    Bottom,
    Comparison,
    Constant,
    Formula,
    Literal,
    Rule,
    Term,
    Top,
    Unary,
    UnaryOp,
    Variable,
)
from tidelog.language.times import BITS_HELP, BITS_LAW, MAX_DIGITS, fits, read_number
from tidelog.language.tokens import OPERATOR_WORDS, Source, grammar, split
from tidelog.timeline.interval import INF, Interval, Time

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "=": "!=", "!=": "="}

#: What a word means with a range in the past and in the future; all other words know their direction.
_DIRECTED = {
    "Sometime": ("Diamondminus", "Diamondplus"),
    "Always": ("Boxminus", "Boxplus"),
    "Until": ("Since", "Until"),
}


def parse_rules(text: str, source_name: str) -> tuple[list[Rule], list[Diagnostic]]:
    """All rules that read well, and what is wrong with the others."""
    source = Source.of(text, source_name)
    lark = grammar("grammar", operators=True)
    rules: list[Rule] = []
    errors: list[Diagnostic] = []
    previous: Sequence[Token] = ()
    for tokens in split(lark.lex(text)):
        tree = parse_tree(lark, tokens, source)
        if isinstance(tree, Diagnostic):
            errors.append(tree)
        elif lost := _lost_comma(previous, tokens, source):
            errors.append(lost)
        else:
            builder = RuleBuilder(tokens, source)
            rule = builder.rule(tree)
            errors.extend(builder.errors)
            if not builder.errors:
                rules.append(rule)
        previous = tokens
    return rules, errors


def parse_tree(lark: Lark, tokens: Sequence[Token], source: Source) -> Tree[Token] | Diagnostic:
    """The parse tree of one rule's tokens, or why there is none."""
    from lark import UnexpectedToken

    wrong = lexical_error(tokens, source) or nesting_error(tokens, source)
    if wrong:
        return wrong
    parser: Any = lark.parse_interactive("")
    at = 0
    try:
        while at < len(tokens):
            parser.feed_token(tokens[at])
            at += 1
        return cast("Tree[Token]", parser.feed_eof(tokens[-1]))
    except UnexpectedToken:
        return grammar_error(tokens, at, parser.accepts(), source)


def _lost_comma(previous: Sequence[Token], tokens: Sequence[Token], source: Source) -> Diagnostic | None:
    """A line that is indented under a rule without a dot, and is no rule itself, was meant to be part of that rule."""
    if not previous or previous[-1].type == "_DOT" or any(token.type == "_IF" for token in tokens):
        return None
    if not any(token.type == "_IF" for token in previous) or (tokens[0].column or 0) <= (previous[0].column or 0):
        return None
    law = "the literals of a body are separated by `,`"
    help = "end the line before with `,` if this belongs to its rule, or with `.` if not"
    return Diagnostic("TL001", "an indented line that continues no rule", source.place(tokens[0]), law, help)


@dataclass(frozen=True)
class _Range:
    """A range as written: signs and all."""

    interval: Interval
    text: str
    first: Token
    last: Token


class RuleBuilder:
    """Makes the syntax of one rule from its parse tree, and collects what is wrong with its numbers and ranges."""

    def __init__(self, tokens: Sequence[Token], source: Source) -> None:
        self.tokens, self.source = tokens, source
        self.errors: list[Diagnostic] = []
        self._taken = {str(token) for token in tokens if token.type == "NAME"}
        self._anonymous = 0

    def rule(self, start: Tree[Token]) -> Rule:
        tree = as_tree(start.children[0])
        parts = [as_tree(child) for child in tree.children]
        place = self.source.place(self.tokens[0])
        head: Formula = Bottom(place) if tree.data == "constraint" else self.formula(parts.pop(0))
        body = self.body(parts[0]) if parts else ()
        text = self.source.between(self.tokens[0], self.tokens[-1])
        return Rule(head, body, text, place)

    def body(self, tree: Tree[Token]) -> tuple[BodyLiteral, ...]:
        literals: list[BodyLiteral] = []
        for child in map(as_tree, tree.children):
            if child.data == "denied":
                formulas = [self.formula(as_tree(part)) for part in child.children]
                literals += [Literal(formula, True, formula.place) for formula in formulas]
            else:
                literals.append(self.literal(child))
        return tuple(literals)

    def literal(self, tree: Tree[Token]) -> BodyLiteral:
        parts = tree.children
        match tree.data:
            case "positive":
                formula = self.formula(as_tree(parts[0]))
                return Literal(formula, False, formula.place)
            case "negative":
                return Literal(self.formula(as_tree(parts[1])), True, self.source.place(as_token(parts[0])))
            case "comparison":
                return self.comparison(tree)
            case _:
                return self.comparison(tree, negated=True)

    def comparison(self, tree: Tree[Token], negated: bool = False) -> Comparison:
        left, sign, right = tree.children[-3:]
        op = "=" if sign == "==" else str(sign)
        place = self.source.place(as_token(as_tree(left).children[0]), as_token(as_tree(right).children[-1]))
        return Comparison(OPPOSITE[op] if negated else op, self.term(as_tree(left)), self.term(as_tree(right)), place)

    def formula(self, tree: Tree[Token]) -> Formula:
        parts = tree.children
        match tree.data:
            case "atom":
                name = as_token(parts[0])
                args = tuple(self.term(as_tree(part)) for part in parts[1:])
                return Atom(str(name), args, self.source.place(name))
            case "top":
                return Top(self.source.place(as_token(parts[0])))
            case "bottom":
                return Bottom(self.source.place(as_token(parts[0])))
            case "unary":
                token = as_token(parts[0])
                word, interval = self.directed(token, self.range(as_tree(parts[1])))
                return Unary(UnaryOp(word), interval, self.formula(as_tree(parts[2])), self.source.place(token))
            case _:
                left, token = self.formula(as_tree(parts[0])), as_token(parts[1])
                word, interval = self.directed(token, self.range(as_tree(parts[2])))
                right = self.formula(as_tree(parts[3]))
                return Binary(BinaryOp(word), interval, left, right, self.source.place(token))

    def term(self, tree: Tree[Token]) -> Term:
        token = as_token(tree.children[-1])
        if tree.data == "string":
            return Constant(unquote(token))
        if tree.data == "number":
            return Constant(self.number(token, negative=tree.children[0] == "-"))
        if token == "_":
            return self.anonymous()
        if token[0] == "_" or token[0].isupper():
            return Variable(str(token))
        return Constant(str(token))

    def anonymous(self) -> Variable:
        """A variable of its own for every `_`, with a name that the rule does not use."""
        self._anonymous += 1
        while f"_{self._anonymous}" in self._taken:
            self._anonymous += 1
        return Variable(f"_{self._anonymous}", anonymous=True)

    def number(self, token: Token, negative: bool = False) -> Fraction:
        value = read_number(str(token), units=True)
        if value is None:
            reason = f"has more than {MAX_DIGITS} digits" if len(token) > MAX_DIGITS else "divides by zero"
            self.errors.append(Diagnostic("TL007", f"a number that {reason}", self.source.place(token)))
            return Fraction(0)
        return -value if negative else value

    def range(self, tree: Tree[Token]) -> _Range:
        tokens = list(tree.scan_values(lambda value: True))
        first, last = tokens[0], tokens[-1]
        text = self.source.between(first, last)
        if tree.data == "at":
            time: Time = self.number(last, negative=first == "-")
            return _Range(Interval(time, time), text, first, last)
        bounds = [self.bound(child) for child in map(as_tree, tree.children[1:-1])]
        lo, hi = bounds[0], bounds[-1]
        return _Range(Interval(lo, hi, first == "[" and lo != -INF, last == "]" and hi != INF), text, first, last)

    def bound(self, tree: Tree[Token]) -> Time:
        token, negative = as_token(tree.children[-1]), tree.children[0] == "-"
        if token.type == "INF":
            return -INF if negative else INF
        return self.number(token, negative)

    def directed(self, token: Token, written: _Range) -> tuple[str, Interval]:
        """The operator and the range counted away from now, for a word and a range as written."""
        word, interval = OPERATOR_WORDS[token.lower()], written.interval
        past, future = _DIRECTED.get(word, (word, word))
        if interval.is_empty() or interval.lo == INF or interval.hi == -INF:
            law = "a range holds at least one number, and its first end is not after its second"
            self._range_error("TL105", f"the range {written.text} is empty", written, law, _order_help(interval))
        elif not all(isinstance(end, float) or fits(end) for end in (interval.lo, interval.hi)):
            self._range_error("TL204", f"the range {written.text} leaves 63 bits", written, BITS_LAW, BITS_HELP)
        elif interval.lo >= 0:
            return future, interval
        elif past == word:
            law = "a range counts away from now, [a,b] with 0 <= a <= b; the operator says in which direction"
            self._range_error("TL104", f"a negative range for {word}", written, law, _positive_help(word, interval))
        elif interval.hi > 0:
            law = f"the range of {token} lies in the past (up to 0) or in the future (from 0), not in both"
            message = f"the range {written.text} spans past and future"
            self._range_error("TL106", message, written, law, _parts_help(word, interval))
        else:
            return past, mirrored(interval)
        return future, interval

    def _range_error(self, code: str, message: str, written: _Range, law: str, help: str | None) -> None:
        place = self.source.place(written.first, written.last)
        self.errors.append(Diagnostic(code, message, place, law, help))


def mirrored(interval: Interval) -> Interval:
    """The interval seen from the other side of 0: (-2,-1] becomes [1,2)."""
    return Interval(-interval.hi, -interval.lo, interval.hi_closed, interval.lo_closed)


def _order_help(interval: Interval) -> str | None:
    if interval.hi < interval.lo:
        return f"write {Interval(interval.hi, interval.lo, interval.hi_closed, interval.lo_closed).bracketed()}"
    if interval.lo == interval.hi and abs(interval.lo) != INF:
        return f"write {Interval(interval.lo, interval.hi).bracketed()} for that one point"
    return None


def _positive_help(word: str, interval: Interval) -> str | None:
    if interval.hi > 0:
        return None
    return f"write {word}{mirrored(interval).bracketed()}: {word} knows its direction"


def _parts_help(word: str, interval: Interval) -> str:
    past, future = _DIRECTED[word]
    before = mirrored(Interval(interval.lo, Fraction(0), interval.lo_closed, True)).bracketed()
    after = Interval(Fraction(0), interval.hi, True, interval.hi_closed).bracketed()
    if word == "Always":
        return f"write both: {past}{before} A, {future}{after} A"
    left, right = ("", "A") if word == "Sometime" else ("A ", "B")
    return f"write two rules, one with {left}{past}{before} {right}, one with {left}{future}{after} {right}"


def as_tree(node: Tree[Token] | Token) -> Tree[Token]:
    return cast("Tree[Token]", node)


def as_token(node: Tree[Token] | Token) -> Token:
    return cast("Token", node)
