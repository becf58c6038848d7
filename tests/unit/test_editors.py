"""Colours in editors: every example is coloured as the parser reads it, by the lexers and by the TextMate grammars."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from pygments.token import Error, Keyword
from test_docs import PAGES, find_blocks

from locations import ROOT
from tidelog.language.pygments_lexers import DmtlLexer, FactsLexer, TdlLexer
from tidelog.language.tokenizer import tokenize_rules

EDITOR = ROOT / "editors" / "vscode"
LEXERS: dict[str, Any] = {"dmtl": DmtlLexer, "tdl": TdlLexer, "facts": FactsLexer}
#: What the grammars say of the words that the parser takes for operators.
OPERATORS = ("keyword.operator.temporal", "keyword.operator.logical")
HARD = """\
Always(X) :- always[0,1] Always(X), not Not(X). % not [0,1]
A :- B Since(0,inf) C, X != Y, Top, Until(X, 1/2), not not, "a % b"(X).
boxminus 3 A(not) :- ⊟[0,1] B, ◇⁻2 C(Since), Diamondminus[0,10min] (D until[1,2) E)
P(x) :- Q(x) || Always(-2,-1) R(x), S(x)
N(X, -Y * 2 mod 3 + count{ R(X), not S(X) }) :- not + 1 > not, last(0,inf){ distinct V, W : not Since(V, W) } >= 10min
Or(or), And :- X > 1 or "a or b" = X and not (Or(and) OR or), or(Or), Orb or(And, B) and ⊟[0,1] C or, and
    or D(X)  and E % or F
and G or
    H, count{ Or or And(X) } > or and (or) Since[0,1] I
Or(X) :- And(X)
And (X) :- Or
M(min(X, count)) :- sum[0,1h]{ A * mod : Diamondminus[0,5] Open(X, A), not starts_with(A, "not") } / 2 != Not - not
"""


def texts(kind: str) -> Iterator[tuple[str, str]]:
    """All that there is of a kind, with a name for each."""
    files = [*ROOT.glob(f"examples/**/*.{kind}"), *ROOT.glob(f"src/tidelog/generate/*.{kind}")]
    for path in sorted(files):
        yield path.name, path.read_text(encoding="utf-8")
    for page in PAGES:
        for number, text in enumerate(find_blocks(page, kind)):
            yield f"{page.stem}-{number}", text
    if kind == "dmtl":
        yield "hard", HARD


def each_of(*kinds: str) -> list[Any]:
    return [pytest.param(kind, text, id=f"{kind}-{name}") for kind in kinds for name, text in texts(kind)]


def operators(text: str, kind: str) -> set[int]:
    """Where the parser finds operators, negations and connectives."""
    tokens = [token for rule in tokenize_rules(text, operators=kind == "dmtl") for token in rule]
    return {token.start_pos for token in tokens if token.type in ("PREFIX", "INFIX", "NOT", "OR", "AND")}


@pytest.mark.parametrize("kind, text", each_of(*LEXERS))
def test_the_lexer_keeps_the_text_and_knows_all_of_it(kind: str, text: str) -> None:
    found = list(LEXERS[kind](stripnl=False, ensurenl=False).get_tokens_unprocessed(text))
    assert "".join(value for _, _, value in found) == text
    assert not [value for _, token, value in found if token in Error]
    if kind != "facts":
        assert {at for at, token, _ in found if token is Keyword} == operators(text, kind)


@pytest.mark.parametrize("kind, text", each_of("dmtl", "tdl"))
def test_the_textmate_grammar_finds_the_operators(kind: str, text: str) -> None:
    patterns = json.loads((EDITOR / "syntaxes" / f"{kind}.tmLanguage.json").read_text(encoding="utf-8"))["patterns"]
    rules = [(re.compile(pattern["match"]), pattern["name"]) for pattern in patterns]
    found = set()
    start = 0
    for line in text.split("\n"):
        for at, scope in scopes(line, rules):
            assert scope.endswith(f".{kind}")
            if scope.rpartition(".")[0] in OPERATORS:
                found.add(start + at)
        start += len(line) + 1
    assert found == operators(text, kind)


def scopes(line: str, rules: list[tuple[re.Pattern[str], str]]) -> Iterator[tuple[int, str]]:
    """As an editor does it: of all patterns the one that matches first, and of these the one that is listed first."""
    at = 0
    while at <= len(line):
        matches = [(found, name) for rule, name in rules if (found := rule.search(line, at)) and found[0]]
        if not matches:
            return
        found, name = min(matches, key=lambda match: match[0].start())
        yield found.start(), name
        at = found.end()


def test_the_extension_names_files_that_are_there() -> None:
    manifest = json.loads((EDITOR / "package.json").read_text(encoding="utf-8"))["contributes"]
    paths = [entry["path"] for entry in manifest["grammars"]] + [
        entry["configuration"] for entry in manifest["languages"]
    ]
    for path in paths:
        assert json.loads((EDITOR / path).read_text(encoding="utf-8"))
    for entry in manifest["grammars"]:
        assert json.loads((EDITOR / entry["path"]).read_text(encoding="utf-8"))["scopeName"] == entry["scopeName"]


def test_the_client_gets_no_output_channel_without_levels() -> None:
    """Its log needs levels, as of `createOutputChannel(name, { log: true })`: without them it does not start."""
    source = (EDITOR / "src" / "extension.js").read_text(encoding="utf-8")
    assert "outputChannelName:" in source
    assert not re.search(r"outputChannel\s*:", source)


def test_pygments_finds_the_lexers_by_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, where in project["entry-points"]["pygments.lexers"].items():
        module, _, lexer = where.partition(":")
        assert name in getattr(import_module(module), lexer).aliases
