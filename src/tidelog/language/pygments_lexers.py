"""Colours for rules and facts: lexers for Pygments, which MkDocs, Sphinx, Jupyter and many others ask by name.

A lexer goes on where a parser would stop, so that a rule that is being written has colours, too.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups, include, words
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

_NAME = r"[^\W\d]\w*(?::[^\W\d]\w*)*"
_NUMBER = r"[0-9]+(?:\.[0-9]+|[ \t]*/[ \t]*[0-9]+(?!\w|\.[0-9]))?"
#: What makes the name of an operator one: a range behind it. A round bracket may be that of an atom.
_RANGE = r"(?=\s*(?:\[|[-+]?[0-9]|\(\s*[-+]?(?:[0-9]|inf\b)[^()\[\]]*,[^()\[\]]*[)\]]))"
_WORDS = r"(?i:Diamondminus|Boxminus|Diamondplus|Boxplus|Sometime|Always|Since|Until)"
_NOT = r"(?:not\b|(?i:not)\b(?!\s*\())(?!\s*(?:,|\)|\.|:-|\|\||<|>|=|!=|[-+*/]|$))"
#: Between literals on one line, or after the indentation of a line, in front of another literal.
_JOIN = (
    r"(?:(?<=[\w)\]}\"][ \t])(?:(?:or|and)(?=\()|(?i:or|and)\b(?=\s+[\w(\"⊟⊞◇]|\s*(?:[%#]|$)))"
    r"|(?:^|(?<=^\s)|(?<=\s\s))(?:or|and)\b(?=\s+[\w(\"⊟⊞◇]|\s*(?:[%#]|$)))"
)
_COMPARE = r"<=|>=|!=|==|=|<|>"
_UPPER = r"[A-Z_]\w*"
#: An aggregate has braces, possibly after a range; a function has arguments.
_AGGREGATE = r"(?:count|sum|min|max|avg|last|first|duration|start)\b(?=\s*(?:[\[(][^\[\](){}]*[\])]\s*)?\{)"
_FUNCTION = r"abs|floor|ceil|min|max|lower|upper|length|starts_with|ends_with|contains|matches"
_ARITHMETIC = r"\+\+|[-+*/]"

_COMMON: list[Any] = [
    (r"\s+", Whitespace),
    (r'"(?:\\.|[^"\\\n])*"', String.Double),
    (r'"[^\n]*', String.Double),
    (rf"({_COMPARE})(\s*)({_UPPER})(?!\w*\s*\()", bygroups(Operator, Whitespace, Name.Variable)),
    (_COMPARE, Operator),
    (r":-|\|\|", Operator.Word),
    (r"[0-9]+(?:\.[0-9]+|/[0-9]+)?(?:ms|s|min|h|d|w)\b", Number),
    (_NUMBER, Number),
]
#: Predicates with their arguments, and variables that are compared.
_ATOMS: list[Any] = [
    (rf"({_NAME})(\s*)(\()", bygroups(Name.Function, Whitespace, Punctuation), "arguments"),
    (rf"{_UPPER}(?=\s*(?:{_COMPARE}))", Name.Variable),
    (_NAME, Name.Function),
]
#: Arithmetic and aggregates of DatalogMTL: in bodies, and as arguments of heads.
_EXPRESSIONS: list[Any] = [
    (_AGGREGATE, Name.Builtin),
    (rf"({_FUNCTION})(\s*)(\()", bygroups(Name.Builtin, Whitespace, Punctuation), "arguments"),
    (rf"(distinct)(\s+)({_UPPER})(?=[^{{}}()]*:)", bygroups(Name.Builtin, Whitespace, Name.Variable)),
    (rf"({_ARITHMETIC}|\bmod\b)(\s*)({_UPPER})(?!\w*\s*\()", bygroups(Operator, Whitespace, Name.Variable)),
    (rf"{_UPPER}(?=\s*(?:{_ARITHMETIC}|mod\b|:(?![-\w])))", Name.Variable),
    (r"mod\b(?=\s*[\w(\"])", Operator.Word),
    (_ARITHMETIC, Operator),
]
_ARGUMENTS: list[Any] = [
    (r"\)", Punctuation, "#pop"),
    (r"\(", Punctuation, "#push"),
    (_UPPER, Name.Variable),
    (_NAME, Name.Constant),
    (r"[,.+\-/:]", Punctuation),
    (r".", Text),
]


class DmtlLexer(RegexLexer):  # type: ignore[misc,unused-ignore]
    """Rules of DatalogMTL (`.dmtl`)."""

    name = "DatalogMTL"
    aliases: ClassVar[list[str]] = ["dmtl", "datalogmtl"]
    filenames: ClassVar[list[str]] = ["*.dmtl"]
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"[%#][^\n]*", Comment.Single),
            (_WORDS + r"\b" + _RANGE, Keyword),
            (words(("◇⁻", "◇⁺", "⊟", "⊞")), Keyword),
            (_NOT, Keyword),
            (_JOIN, Keyword),
            (r"(?i:Top|Bottom)\b(?!\s*\()", Keyword.Constant),
            (r"(?i:inf)\b", Keyword.Constant),
            *_COMMON,
            *_EXPRESSIONS,
            *_ATOMS,
            (r"[\[\](){},.:]", Punctuation),
            (r".", Text),
        ],
        "arguments": [
            (r"[%#][^\n]*", Comment.Single),
            (r"\{", Punctuation, "braces"),
            *_COMMON,
            *_EXPRESSIONS,
            *_ARGUMENTS,
        ],
        "braces": [(r"\}", Punctuation, "#pop"), include("root")],
    }


class TdlLexer(RegexLexer):  # type: ignore[misc,unused-ignore]
    """Rules of temporal Datalog (`.tdl`)."""

    name = "Temporal Datalog"
    aliases: ClassVar[list[str]] = ["tdl", "temporal-datalog"]
    filenames: ClassVar[list[str]] = ["*.tdl"]
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"%[^\n]*", Comment.Single),
            (r"#\w+", Keyword.Declaration),
            (_NOT, Keyword),
            (r"(?i:Bottom)\b(?!\s*\()", Keyword.Constant),
            *_COMMON,
            *_ATOMS,
            (r"[(),./+\-]", Punctuation),
            (r".", Text),
        ],
        "arguments": [(r"%[^\n]*", Comment.Single), *_COMMON, *_ARGUMENTS],
    }


class FactsLexer(RegexLexer):  # type: ignore[misc,unused-ignore]
    """Facts as text (`.facts`)."""

    name = "Facts of tidelog"
    aliases: ClassVar[list[str]] = ["facts", "tidelog-facts"]
    filenames: ClassVar[list[str]] = ["*.facts"]
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"[%#][^\n]*", Comment.Single),
            (r"\s+", Whitespace),
            (r"(@)(\s*)([\[(]?)", bygroups(Operator, Whitespace, Punctuation), "time"),
            (rf"({_NAME})(\s*)(\()", bygroups(Name.Function, Whitespace, Punctuation), "arguments"),
            (_NAME, Name.Function),
            (r"[(),.]", Punctuation),
            (r".", Text),
        ],
        "time": [
            (r"[%#][^\n]*|\n", Comment.Single, "#pop"),
            (r"[ \t\r]+", Whitespace),
            (r"[-+]?inf\b", Keyword.Constant),
            (r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?", Number.Date),
            (r"[-+]?[0-9]+(?:[./][0-9]+)?", Number),
            (r"[\])]", Punctuation, "#pop"),
            (r"[,.]", Punctuation),
            (r".", Text),
        ],
        "arguments": [
            (r"\s+", Whitespace),
            (r'"(?:\\.|[^"\\\n])*"', String.Double),
            (r"[-+]?[0-9]+(?:[./][0-9]+)?(?![^,)\s])", Number),
            (r"\)", Punctuation, "#pop"),
            (r",", Punctuation),
            (r"[^\s,()\"]+", Name.Constant),
            (r".", Text),
        ],
    }
