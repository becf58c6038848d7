"""Parse DatalogMTL text into syntax trees, rule by rule, and find every error on the way.

`tokenizer` splits the text into rules, `grammar.lark` is the grammar, and `syntax_errors` words the errors. Here parse
trees become syntax, and MeTeoR's names (`SOMETIME`, `ALWAYS`, `UNTIL` with negative ranges) become the operators they
mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from tidelog.errors import Diagnostic, Place
from tidelog.language.aggregate_checks import diagnose_aggregate
from tidelog.language.bindings import literal_variables
from tidelog.language.comparisons import OPPOSITE
from tidelog.language.expression_errors import find_modulo_comment
from tidelog.language.expression_tokens import FUNCTIONS
from tidelog.language.fact_text import unquote
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    Atom,
    Binary,
    BinaryOp,
    BodyLiteral,
    Bottom,
    Comparison,
    Condition,
    Constant,
    Expression,
    Formula,
    Group,
    Literal,
    Operation,
    Rule,
    Term,
    Top,
    Unary,
    UnaryOp,
    Variable,
)
from tidelog.language.syntax_errors import explain_grammar_error, find_lexical_error, find_nesting_error
from tidelog.language.table_parser import Token, Tree, UnexpectedToken
from tidelog.language.time_text import MAX_DIGITS, fits_63_bits, read_number
from tidelog.language.tokenizer import OPERATOR_WORDS, SourceText, load_parser, tokenize_rules
from tidelog.language.wording import plural
from tidelog.timeline.interval import INF, Interval, Time

#: The meaning of a name with a range in the past and in the future; all other names have a fixed direction.
_DIRECTED = {
    "Sometime": ("Diamondminus", "Diamondplus"),
    "Always": ("Boxminus", "Boxplus"),
    "Until": ("Since", "Until"),
}


def parse_rules(text: str, source_name: str) -> tuple[list[Rule], list[Diagnostic]]:
    """Parse rules; return those that could be parsed, and the errors of the others."""
    source = SourceText.of(text, source_name)
    rules: list[Rule] = []
    errors: list[Diagnostic] = []
    previous: Sequence[Token] = ()
    for tokens in tokenize_rules(text, operators=True):
        tree = parse_tree(tokens, source)
        if isinstance(tree, Diagnostic):
            errors.append(tree)
        elif missing := _find_missing_comma(previous, tokens, source) or find_modulo_comment(tokens, source):
            errors.append(missing)
        else:
            builder = RuleBuilder(tokens, source)
            rule = builder.rule(tree)
            errors.extend(builder.errors)
            if not builder.errors:
                rules.append(rule)
        previous = tokens
    return rules, errors


def parse_tree(tokens: Sequence[Token], source: SourceText) -> Tree | Diagnostic:
    """Parse the tokens of one rule; return the parse tree, or the error."""
    wrong = find_lexical_error(tokens, source) or find_nesting_error(tokens, source)
    if wrong:
        return wrong
    try:
        return load_parser(operators=source.operators).parse(tokens)
    except UnexpectedToken as unexpected:
        return explain_grammar_error(tokens, unexpected.at, unexpected.accepted, source)


def _find_missing_comma(previous: Sequence[Token], tokens: Sequence[Token], source: SourceText) -> Diagnostic | None:
    """Report a line that was meant to continue a rule: indented under a rule without a dot, and no rule itself."""
    if not previous or previous[-1].type == "_DOT" or any(token.type == "_IF" for token in tokens):
        return None
    if not any(token.type == "_IF" for token in previous) or tokens[0].column <= previous[0].column:
        return None
    law = "the literals of a body are separated by `,`"
    help = "end the line before with `,` if this belongs to its rule, or with `.` if not"
    return Diagnostic("TL001", "an indented line that continues no rule", source.place(tokens[0]), law, help)


@dataclass(frozen=True)
class _Range:
    """A range as written, signs included."""

    interval: Interval
    text: str
    first: Token
    last: Token


class RuleBuilder:
    """Build the syntax of one rule from its parse tree, and collect the errors of its numbers and ranges.

    Every method builds the node that it is named after.
    """

    def __init__(self, tokens: Sequence[Token], source: SourceText) -> None:
        self.tokens, self.source = tokens, source
        self.errors: list[Diagnostic] = []
        self._names_in_use = {str(token) for token in tokens if token.type == "NAME"}
        self._anonymous = 0
        #: Expressions in the head, as conditions on the variables that stand for them; None outside of a head.
        self._computed: list[Condition] | None = None

    def rule(self, start: Tree) -> Rule:
        tree = as_tree(start.children[0])
        parts = [as_tree(child) for child in tree.children]
        place = self.source.place(self.tokens[0])
        computed = self._computed = []
        head: Formula = Bottom(place) if tree.data == "constraint" else self.heads(parts.pop(0))
        self._computed = None
        body = (*(self.body(parts[0]) if parts else ()), *computed)
        text = self.source.between(self.tokens[0], self.tokens[-1])
        return Rule(head, body, text, place)

    def heads(self, tree: Tree) -> Formula:
        if tree.data != "heads":
            return self.formula(tree)
        formulas = [self.formula(as_tree(part)) for part in tree.children]
        if len(formulas) == 1:
            return formulas[0]
        return build_group([Literal(formula, False, formula.place) for formula in formulas], formulas[0].place)

    def body(self, tree: Tree) -> tuple[BodyLiteral, ...]:
        literals: list[BodyLiteral] = []
        for child in map(as_tree, tree.children):
            if child.data == "denied":
                formulas = [self.formula(as_tree(part)) for part in child.children]
                literals += [Literal(formula, True, formula.place) for formula in formulas]
            elif child.data == "both":
                literals += self.joined_literals(child)
            else:
                literals.append(self.literal(child))
        return tuple(literals)

    def joined_literals(self, tree: Tree) -> list[BodyLiteral]:
        """Build the literals that `or` or `and` joins; the words are tokens between them."""
        return [self.literal(as_tree(part)) for part in tree.children if hasattr(part, "data")]

    def literal(self, tree: Tree) -> BodyLiteral:
        parts = tree.children
        match tree.data:
            case "either" | "both":
                literals, place = self.joined_literals(tree), self.source.place(first_token(tree), last_token(tree))
                return Literal(build_group(literals, place, alternatives=tree.data == "either"), False, place)
            case "positive":
                formula = self.formula(as_tree(parts[0]))
                return Literal(formula, False, formula.place)
            case "negative":
                return Literal(self.formula(as_tree(parts[1])), True, self.source.place(as_token(parts[0])))
            case "text_test" | "denied_text_test":
                left, right = (self.expression(as_tree(part)) for part in parts[-2:])
                name = as_token(parts[-3])
                op = f"not {name}" if tree.data == "denied_text_test" else str(name)
                return Condition(op, left, right, place=self.source.place(name, last_token(tree)))
            case _:
                return self.condition(tree, negated=tree.data == "denied_comparison")

    def comparison(self, tree: Tree, negated: bool = False) -> Comparison:
        left, sign, right = tree.children[-3:]
        op = "=" if sign == "==" else str(sign)
        place = self.source.place(first_token(as_tree(left)), last_token(as_tree(right)))
        return Comparison(OPPOSITE[op] if negated else op, self.term(as_tree(left)), self.term(as_tree(right)), place)

    def condition(self, tree: Tree, negated: bool = False) -> Comparison | Condition:
        left, right = (self.expression(as_tree(part)) for part in (tree.children[-3], tree.children[-1]))
        op = "=" if tree.children[-2] == "==" else str(tree.children[-2])
        op = OPPOSITE[op] if negated else op
        place = self.source.place(first_token(as_tree(tree.children[-3])), last_token(tree))
        if isinstance(left, Variable | Constant) and isinstance(right, Variable | Constant):
            return Comparison(op, left, right, place)
        return Condition(op, left, right, place=place)

    def expression(self, tree: Tree) -> Expression:
        """Build an expression; signs of numbers and quotients of two numbers are computed."""
        parts, place = tree.children, self.source.place(first_token(tree), last_token(tree))
        match tree.data:
            case "operation":
                left, right = self.expression(as_tree(parts[0])), self.expression(as_tree(parts[2]))
                numbers = [e.value for e in (left, right) if isinstance(e, Constant) and isinstance(e.value, Fraction)]
                if parts[1] == "/" and len(numbers) == 2 and numbers[1]:
                    return Constant(numbers[0] / numbers[1])
                return Operation(str(parts[1]), (left, right), place)
            case "signed":
                value = self.expression(as_tree(parts[1]))
                if parts[0] == "+":
                    return value
                if isinstance(value, Constant) and isinstance(value.value, Fraction):
                    return Constant(-value.value)
                return Operation("-", (value,), place)
            case "call":
                args = tuple(self.expression(as_tree(part)) for part in parts[1:])
                name = str(parts[0])
                if len(args) != FUNCTIONS[name]:
                    message = f"{name} takes {plural(FUNCTIONS[name], 'argument')}, not {len(args)}"
                    self.errors.append(Diagnostic("TL116", message, place))
                return Operation(name, args, place)
            case "aggregate":
                return self.aggregate(tree)
            case _:
                return self.term(tree)

    def aggregate(self, tree: Tree) -> Aggregate:
        function = AggregateFunction(str(tree.children[0]))
        place = self.source.place(as_token(tree.children[0]))
        interval: Interval | None = None
        values: tuple[Expression, ...] = ()
        body: tuple[BodyLiteral, ...] = ()
        distinct = False
        for part in tree.children[1:]:
            if not hasattr(part, "data"):
                distinct = True
            elif as_tree(part).data == "values":
                values = tuple(self.expression(as_tree(child)) for child in as_tree(part).children)
            elif as_tree(part).data == "body":
                body = self.body(as_tree(part))
            else:
                _, interval = self.resolve_direction(as_token(tree.children[0]), self.window(as_tree(part), function))
        found = Aggregate(function, values, body, interval, distinct, place)
        self.errors += diagnose_aggregate(found)
        return found

    def window(self, tree: Tree, function: AggregateFunction) -> _Range:
        """Build the range of an aggregate, which has two ends: a single time is hardly ever what was meant."""
        written = self.range(tree)
        if tree.data != "span":
            time = written.text.strip("[]() ")
            help = f"write {function.value}[0,{time}] for all times since {time} ago"
            self._range_error("TL118", f"the range {written.text} is a single time", written, help)
        return written

    def formula(self, tree: Tree) -> Formula:
        while tree.data == "group" and len(tree.children) == 1 and as_tree(tree.children[0]).data == "positive":
            tree = as_tree(as_tree(tree.children[0]).children[0])
        parts = tree.children
        match tree.data:
            case "atom":
                name = as_token(parts[0])
                args = tuple(self.argument_term(as_tree(part)) for part in parts[1:])
                return Atom(str(name), args, self.source.place(name))
            case "top":
                return Top(self.source.place(as_token(parts[0])))
            case "bottom":
                return Bottom(self.source.place(as_token(parts[0])))
            case "group":
                return self.group(tree)
            case "unary":
                token = as_token(parts[0])
                word, interval = self.resolve_direction(token, self.range(as_tree(parts[1])))
                return Unary(UnaryOp(word), interval, self.formula(as_tree(parts[2])), self.source.place(token))
            case _:
                left, token = self.formula(as_tree(parts[0])), as_token(parts[1])
                word, interval = self.resolve_direction(token, self.range(as_tree(parts[2])))
                right = self.formula(as_tree(parts[3]))
                return Binary(BinaryOp(word), interval, left, right, self.source.place(token))

    def group(self, tree: Tree) -> Formula:
        """Build what brackets hold: a group of literals, or alternatives."""
        literals = self.body(tree)
        first = literals[0]
        if len(literals) == 1 and isinstance(first, Literal) and not first.negated:
            return first.formula
        return build_group(literals, self.source.place(first_token(tree), last_token(tree)))

    def argument_term(self, tree: Tree) -> Term:
        """Build an argument of an atom; in the head, a variable stands for an expression."""
        found = self.expression(tree)
        if isinstance(found, Variable | Constant):
            return found
        place = self.source.place(first_token(tree), last_token(tree))
        if isinstance(found, Operation) and found.name == "/" and all(map(_is_number, found.args)):
            self.errors.append(Diagnostic("TL007", "a number that divides by zero", place))
            return Constant(Fraction(0))
        if self._computed is None:
            help = "compute it beside the atom: V = X + 1, and write V in the atom"
            self.errors.append(Diagnostic("TL117", "an expression inside an atom of a body", place, help=help))
            return Constant(Fraction(0))
        variable = Variable(f"${len(self._computed) + 1}")
        self._computed.append(Condition("=", variable, found, True, place))
        return variable

    def term(self, tree: Tree) -> Term:
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
        """Make a new variable for an `_`, with a name that the rule does not use."""
        self._anonymous += 1
        while f"_{self._anonymous}" in self._names_in_use:
            self._anonymous += 1
        return Variable(f"_{self._anonymous}", anonymous=True)

    def number(self, token: Token, negative: bool = False) -> Fraction:
        value = read_number(str(token), units=True)
        if value is None:
            reason = f"has more than {MAX_DIGITS} digits" if len(token) > MAX_DIGITS else "divides by zero"
            self.errors.append(Diagnostic("TL007", f"a number that {reason}", self.source.place(token)))
            return Fraction(0)
        return -value if negative else value

    def range(self, tree: Tree) -> _Range:
        tokens = list(tree.tokens())
        first, last = tokens[0], tokens[-1]
        text = self.source.between(first, last)
        if tree.data == "at":
            time: Time = self.number(last, negative=first == "-")
            return _Range(Interval(time, time), text, first, last)
        bounds = [self.bound(child) for child in map(as_tree, tree.children[1:-1])]
        lo, hi = bounds[0], bounds[-1]
        return _Range(Interval(lo, hi, first == "[" and lo != -INF, last == "]" and hi != INF), text, first, last)

    def bound(self, tree: Tree) -> Time:
        token, negative = as_token(tree.children[-1]), tree.children[0] == "-"
        if token.type == "INF":
            return -INF if negative else INF
        return self.number(token, negative)

    def resolve_direction(self, token: Token, written: _Range) -> tuple[str, Interval]:
        """Return the operator, and its range as distances from now, for a name and a range as written."""
        word, interval = OPERATOR_WORDS.get(token.lower(), str(token)), written.interval
        past, future = _DIRECTED.get(word, (word, word))
        if interval.is_empty() or interval.lo == INF or interval.hi == -INF:
            self._range_error("TL105", f"the range {written.text} is empty", written, _suggest_order(interval))
        elif not all(isinstance(end, float) or fits_63_bits(end) for end in (interval.lo, interval.hi)):
            self._range_error("TL204", f"the range {written.text} does not fit into 63 bits", written)
        elif interval.lo >= 0:
            return future, interval
        elif past == word:
            self._range_error("TL104", f"a negative range for {word}", written, _suggest_positive(word, interval))
        elif interval.hi > 0:
            message = f"the range {written.text} spans past and future"
            self._range_error("TL106", message, written, _suggest_parts(word, interval))
        else:
            return past, mirror(interval)
        return future, interval

    def _range_error(self, code: str, message: str, written: _Range, help: str | None = None) -> None:
        place = self.source.place(written.first, written.last)
        self.errors.append(Diagnostic(code, message, place, help=help))


def build_group(literals: Sequence[BodyLiteral], place: Place | None, alternatives: bool = False) -> Group:
    """Build a group as written: without a predicate, its variables as arguments."""
    variables = dict.fromkeys(v for literal in literals for v in literal_variables(literal))
    return Group("", tuple(variables), place, tuple(literals), alternatives)


def mirror(interval: Interval) -> Interval:
    """Mirror an interval at 0: (-2,-1] becomes [1,2)."""
    return Interval(-interval.hi, -interval.lo, interval.hi_closed, interval.lo_closed)


def _suggest_order(interval: Interval) -> str | None:
    if interval.hi < interval.lo:
        return f"write {Interval(interval.hi, interval.lo, interval.hi_closed, interval.lo_closed).with_brackets()}"
    if interval.lo == interval.hi and abs(interval.lo) != INF:
        return f"write {Interval(interval.lo, interval.hi).with_brackets()} for that one point"
    return None


def _suggest_positive(word: str, interval: Interval) -> str | None:
    if interval.hi > 0:
        return None
    return f"write {word}{mirror(interval).with_brackets()}: {word} has a fixed direction"


def _suggest_parts(word: str, interval: Interval) -> str:
    past, future = _DIRECTED[word]
    before = mirror(Interval(interval.lo, Fraction(0), interval.lo_closed, True)).with_brackets()
    after = Interval(Fraction(0), interval.hi, True, interval.hi_closed).with_brackets()
    if word == "Always":
        return f"write both: {past}{before} A, {future}{after} A"
    left, right = ("", "A") if word == "Sometime" else ("A ", "B")
    return f"write two rules, one with {left}{past}{before} {right}, one with {left}{future}{after} {right}"


def _is_number(expression: Expression) -> bool:
    return isinstance(expression, Constant) and isinstance(expression.value, Fraction)


def as_tree(node: Tree | Token) -> Tree:
    return cast(Tree, node)


def first_token(tree: Tree) -> Token:
    return next(tree.tokens())


def last_token(tree: Tree) -> Token:
    return list(tree.tokens())[-1]


def as_token(node: Tree | Token) -> Token:
    return cast(Token, node)
