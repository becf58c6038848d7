"""Make the tables of the parsers from the grammars, with Lark: `python -m tidelog.language.grammar_tables`.

The tables are files beside the grammars, `grammar.json` and `tdl.json`. Make them again after changing a grammar
(`make grammar`); a test compares them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tidelog.language.table_parser import GrammarRule

GRAMMARS = ("grammar", "tdl")
_FOLDER = Path(__file__).parent
#: Terminals that the grammars do not use but the lexer must produce.
_ALWAYS_ACCEPTED = ("LSQB", "RSQB", "SYMBOL", "DURATION", "_BARS", "BAD", "BAD_NUMBER", "OPEN_STRING", "_COLON")


class KeepTerminals:
    """Lark's hook between lexing and parsing, which keeps terminals that the grammar does not use."""

    always_accept = _ALWAYS_ACCEPTED

    def process(self, stream: Any) -> Any:
        return stream


def build_tables(name: str) -> dict[str, Any]:
    """Build the tables of `name`.lark, as `TableParser` takes them."""
    from lark import Lark

    text = (_FOLDER / f"{name}.lark").read_text(encoding="utf-8")
    hook: Any = KeepTerminals()
    lark: Any = Lark(
        text, lexer="basic", parser="lalr", postlex=hook, maybe_placeholders=False, import_paths=[str(_FOLDER)]
    )
    lexer = lark.parser.lexer.lexer
    terminals = [[terminal.name, terminal.pattern.to_regexp()] for terminal in lexer.scanner.terminals]
    assert not lexer.callback, "terminals that share text need Lark's own lexer"
    table = lark.parser.parser._parse_table
    start, end = table.start_states["start"], table.end_states["start"]
    rules = sorted(lark.rules, key=lambda rule: (rule.origin.name, [symbol.name for symbol in rule.expansion]))
    numbers = {rule: number for number, rule in enumerate(rules)}
    states = _order_states(table.states, start)
    places = {state: place for place, state in enumerate(states)}
    actions = [
        {symbol: -1 - numbers[to] if to in numbers else places[to] for symbol, (_, to) in _sort(table.states[state])}
        for state in states
    ]
    return {
        "terminals": terminals,
        "ignored": sorted(lexer.ignore_types),
        "start": places[start],
        "end": places[end],
        "rules": [list(_describe_rule(rule)) for rule in rules],
        "actions": actions,
    }


def _order_states(actions: dict[int, Any], start: int) -> list[int]:
    """Return the states in the order in which they are reached: Lark numbers them differently each time."""
    found = {start: None}
    for state in (waiting := [start]):
        for _, (_, to) in _sort(actions[state]):
            if isinstance(to, int) and to not in found:
                found[to] = None
                waiting.append(to)
    return list(found)


def _sort(actions: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(actions.items())


def _describe_rule(rule: Any) -> GrammarRule:
    symbols = list(enumerate(rule.expansion))
    kept = [i for i, symbol in symbols if not (symbol.is_term and symbol.filter_out)]
    inlined = [i for i, symbol in symbols if not symbol.is_term and symbol.name.startswith("_")]
    origin = str(rule.origin.name)
    single = bool(rule.options.expand1) and not rule.alias
    return GrammarRule(origin, len(symbols), str(rule.alias or origin), single, kept, inlined)


def format_tables(tables: dict[str, Any]) -> str:
    """Return tables as text, with one line per state and per rule."""
    parts = []
    for name, value in tables.items():
        if name in ("rules", "actions", "terminals"):
            lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in value)
            parts.append(f'"{name}": [\n{lines}\n]')
        else:
            parts.append(f'"{name}": {json.dumps(value)}')
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    for grammar in GRAMMARS:
        (_FOLDER / f"{grammar}.json").write_text(format_tables(build_tables(grammar)), encoding="utf-8")
