"""Convert programs to JSON values and back, for saved states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tidelog.language.program import Program
from tidelog.language.syntax_json import facts_from_json, nodes_to_json, rules_from_json


def program_to_json(program: Program) -> dict[str, Any]:
    """Return a program as JSON values: its text, and its own rules and facts, which need not be all of the text."""
    return {
        "program": str(program),
        "rules": nodes_to_json(program.rules),
        "written": None if program.written is None else nodes_to_json(program.written),
        "facts": nodes_to_json(program.facts),
        "syntax": "tdl" if program.temporal else "dmtl",
        "source": program.source,
    }


def program_from_json(state: Mapping[str, Any]) -> Program:
    """Restore a program from `program_to_json`, possibly among other keys."""
    rules, facts = rules_from_json(state["rules"]), facts_from_json(state["facts"])
    if state["syntax"] == "tdl":
        return replace(Program.parse(state["program"], syntax="tdl", source=state["source"]), rules=rules, facts=facts)
    written = state.get("written")
    as_written = None if written is None else rules_from_json(written)
    return Program(rules, "rational", facts, source=state["source"], written=as_written)
