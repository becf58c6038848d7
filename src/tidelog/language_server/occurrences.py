"""Find where a text mentions predicates: rules, rule tests, fact text and schema files.

Rules are read token by token rather than from their syntax tree, so that names are found while a rule is half written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tidelog.data.schema import SCHEMA_FILE
from tidelog.errors import TidelogError
from tidelog.language.table_parser import Token
from tidelog.language.tokenizer import tokenize_rules
from tidelog.language.toml_places import read_toml
from tidelog.rule_tests.case_reader import SUFFIX, Section, split_sections

FileKind = Literal["dmtl", "tdl", "test", "facts", "schema"]
#: What a mention does: derives facts, reads them, states one, expects one in a test, or declares columns.
Role = Literal["head", "body", "fact", "expected", "declaration"]

#: A name as rules write it.
NAME = r"[^\W\d]\w*(?::[^\W\d]\w*)*"
_FACT_NAME = re.compile(rf"\s*({NAME})")
_FACT_SECTIONS = ("given", "expect", "expect only", "expect not")
#: Tokens after which an atom may begin, and tokens that may follow an atom without arguments.
_BEFORE_ATOM = frozenset({"_IF", "NOT", "OR", "AND", "CLOSE", "AT", "_BARS", "_COLON", "_LBRACE", "_COMMA", "_LPAR"})
_AFTER_ATOM = frozenset({"_COMMA", "_IF", "_DOT", "INFIX", "OR", "AND", "_RPAR", "_RBRACE", "_BARS"})
_OPENING = frozenset({"_LPAR", "_GROUP", "_LBRACE", "_VALUES"})
_CLOSING = frozenset({"_RPAR", "_RBRACE"})


@dataclass(frozen=True, slots=True)
class Span:
    """A part of one line: the line and the columns from `start` to `end` (excluded), all counted from 0."""

    line: int
    start: int
    end: int

    def contains(self, line: int, column: int) -> bool:
        """Return whether a cursor at this position touches the span."""
        return line == self.line and self.start <= column <= self.end


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A mention of a predicate."""

    name: str
    span: Span
    role: Role


def find_kind(path: str) -> FileKind | None:
    """Tell what kind of file a path names, by its name; None for files that are not about rules."""
    if Path(path).name == SCHEMA_FILE:
        return "schema"
    suffixes: dict[str, FileKind] = {".dmtl": "dmtl", ".tdl": "tdl", SUFFIX: "test", ".facts": "facts"}
    return suffixes.get(Path(path).suffix.lower())


def find_occurrences(text: str, kind: FileKind) -> list[Occurrence]:
    """Find all mentions of predicates in a text, in order.

    >>> [(found.name, found.role) for found in find_occurrences("Hot(X) :- High(X), Now.", "dmtl")]
    [('Hot', 'head'), ('High', 'body'), ('Now', 'body')]
    """
    match kind:
        case "dmtl" | "tdl":
            return [found for rule in split_tokens(text, kind) for found in _find_in_rule(rule)]
        case "test":
            return list(_find_in_tests(text))
        case "facts":
            lines = enumerate(text.split("\n"))
            return [found for number, line in lines for found in _find_in_fact(number, line, 0, "fact")]
        case "schema":
            return list(_find_in_schema(text))


def split_tokens(text: str, kind: FileKind) -> list[list[Token]]:
    """Split rule text into the tokens of its rules, also if they contain mistakes."""
    return list(tokenize_rules(text, operators=kind != "tdl"))


def token_span(token: Token) -> Span:
    """Return the span of a token that does not go over several lines."""
    line, column = token.line, token.column
    return Span(line - 1, column - 1, column - 1 + len(token))


def _find_in_rule(tokens: list[Token]) -> Iterator[Occurrence]:
    if tokens[0].type == "DIRECTIVE":
        yield from (_build(token, "declaration") for token in tokens if token.type == "NAME")
        return
    role: Role = "head"
    #: For every open bracket, whether terms are inside: the arguments of an atom or of a function, or values.
    terms: list[bool] = []
    for i, token in enumerate(tokens):
        before = tokens[i - 1].type if i else ""
        after = tokens[i + 1].type if i + 1 < len(tokens) else "_DOT"
        if token.type == "_IF":
            role = "body"
        elif token.type in _OPENING:
            is_call = token.type == "_LPAR" and before in ("NAME", "FUNCTION", "TEXT_TEST")
            terms.append(is_call or token.type in ("_GROUP", "_VALUES"))
        elif token.type in _CLOSING and terms:
            terms.pop()
        elif token.type == "_COLON" and terms:
            terms[-1] = False
        elif token.type == "NAME" and not any(terms[-1:]):
            is_bare = (i == 0 or before in _BEFORE_ATOM) and after in _AFTER_ATOM
            if after == "_LPAR" or is_bare:
                yield _build(token, role)


def _build(token: Token, role: Role) -> Occurrence:
    return Occurrence(str(token), token_span(token), role)


def _find_in_tests(text: str) -> Iterator[Occurrence]:
    for section in read_sections(text):
        line = section.place.line - 1
        value_at = section.place.text.find(":") + 1
        if section.word == "query":
            for found in re.finditer(NAME, section.place.text[value_at:].split("%")[0]):
                yield Occurrence(found[0], Span(line, value_at + found.start(), value_at + found.end()), "expected")
        if section.word == "given":
            for found in re.finditer(rf"(?<!\S)({NAME})(?==)", section.place.text[value_at:]):
                yield Occurrence(found[1], Span(line, value_at + found.start(), value_at + found.end()), "fact")
        elif section.word in _FACT_SECTIONS and section.value:
            yield from _find_in_fact(line, section.place.text, value_at, "expected")
        if section.word in _FACT_SECTIONS:
            role: Role = "fact" if section.word == "given" else "expected"
            for number, fact in section.lines:
                yield from _find_in_fact(number - 1, fact, 0, role)


def _find_in_fact(line: int, text: str, at: int, role: Role) -> Iterator[Occurrence]:
    if found := _FACT_NAME.match(text, at):
        yield Occurrence(found[1], Span(line, found.start(1), found.end(1)), role)


def read_sections(text: str, source: str = "<test>") -> list[Section]:
    """Read the sections of a test file as far as they can be read."""
    sections: list[Section] = []
    try:
        sections.extend(split_sections(text, source))
    except TidelogError:
        return sections
    return sections


def _find_in_schema(text: str) -> Iterator[Occurrence]:
    try:
        _, places = read_toml(text, SCHEMA_FILE)
    except TidelogError:
        return
    for path, entry in places.items():
        if len(path) == 2 and path[0] == "schema":
            place = entry.key
            line = text.split("\n")[place.line - 1]
            at = line.find(str(path[1]), place.column - 1)
            if at >= 0:
                yield Occurrence(str(path[1]), Span(place.line - 1, at, at + len(str(path[1]))), "declaration")
