"""The parser that runs the tables of the grammars, judged by Lark, which makes them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from lark import Lark, Token, UnexpectedToken
from lark import Tree as LarkTree

from locations import ROOT
from tidelog.language import grammar_tables, table_parser
from tidelog.language.tokenizer import load_parser, tokenize_rules

LANGUAGE = ROOT / "src" / "tidelog" / "language"
RULES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").rglob("*.dmtl"))]
TEMPORAL = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").rglob("*.tdl"))]
HARD = """\
P(X), Q(X) :- not (A(X) or B(X) and C), count[0,5]{V : D(X, V)} > 1/3 * (X + 2) mod 2, starts_with(X, "a\\"b") || E.
⊟[1,2] A :- ◇⁻(0,inf) B Since[0,1) C, X != -3, Y = upper("é") ++ "x"
:- Boxminus 5 A(x:y, 1.5, 3ms, 7e), "open
"""


@cache
def load_lark(name: str) -> Any:
    text = (LANGUAGE / f"{name}.lark").read_text(encoding="utf-8")
    hook: Any = grammar_tables.KeepTerminals()
    return Lark(text, lexer="basic", parser="lalr", postlex=hook, maybe_placeholders=False, import_paths=[LANGUAGE])


@pytest.mark.parametrize("name", grammar_tables.GRAMMARS)
def test_the_tables_are_those_of_the_grammar(name: str) -> None:
    found = json.loads(Path(LANGUAGE / f"{name}.json").read_text(encoding="utf-8"))
    assert found == grammar_tables.build_tables(name), "the grammar has changed: run `make grammar`"


@pytest.mark.parametrize("name, texts", [("grammar", [*RULES, HARD]), ("tdl", [*TEMPORAL, HARD])])
def test_tokens_are_those_of_lark(name: str, texts: list[str]) -> None:
    fields = ("type", "start_pos", "end_pos", "line", "column", "end_line", "end_column")
    for text in texts:
        found = [(str(token), *(getattr(token, field) for field in fields)) for token in parser_of(name).lex(text)]
        assert found == [
            (str(token), *(getattr(token, field) for field in fields)) for token in load_lark(name).lex(text)
        ]
        assert found


@pytest.mark.parametrize("name, texts", [("grammar", [*RULES, HARD]), ("tdl", TEMPORAL)])
def test_trees_and_mistakes_are_those_of_lark(name: str, texts: list[str]) -> None:
    """Compare rules as they are, and with tokens left out, doubled and exchanged."""
    rng = Random(0)
    rules = [rule for text in texts for rule in tokenize_rules(text, operators=name == "grammar")]
    parsed = refused = 0
    for rule in rng.sample(rules, min(60, len(rules))):
        for tokens in [rule, *(change(rule, rng) for _ in range(10))]:
            found = parse(name, tokens)
            assert found == parse_with_lark(name, tokens)
            parsed, refused = parsed + isinstance(found, list), refused + isinstance(found, tuple)
    assert parsed > 20
    assert refused > 20


def parser_of(name: str) -> table_parser.TableParser:
    return load_parser(operators=name == "grammar")


def change(tokens: list[table_parser.Token], rng: Random) -> list[table_parser.Token]:
    """Leave one token out, repeat it, or put another one there."""
    at = rng.randrange(len(tokens))
    middle = rng.choice([[], [tokens[at]] * 2, [rng.choice(tokens)]])
    return [*tokens[:at], *middle, *tokens[at + 1 :]]


def parse(name: str, tokens: list[table_parser.Token]) -> Any:
    """Return the tree as lists, or the position of a mistake and the types that were accepted there."""
    try:
        return to_lists(parser_of(name).parse(tokens))
    except table_parser.UnexpectedToken as mistake:
        return mistake.at, mistake.accepted


def parse_with_lark(name: str, tokens: list[table_parser.Token]) -> Any:
    parser = load_lark(name).parse_interactive("")
    at = 0
    try:
        while at < len(tokens):
            parser.feed_token(Token(tokens[at].type, str(tokens[at])))
            at += 1
        return to_lists(parser.feed_eof())
    except UnexpectedToken:
        return at, frozenset(parser.accepts())


def to_lists(node: Any) -> Any:
    if isinstance(node, LarkTree | table_parser.Tree):
        return [str(node.data), *map(to_lists, node.children)]
    return (node.type, str(node))
