"""Keep only the rules that a query needs."""

from __future__ import annotations

from dataclasses import replace

from tidelog.analysis.predicate_graph import reachable
from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.language.hidden_predicates import is_violation


def prune_to_query(compiled: CompiledProgram) -> CompiledProgram:
    """Pass: leave out rules that neither the queries nor the constraints depend on.

    Stable models need all rules: a part without a model leaves the whole program without one.
    """
    if compiled.target.engine == "stable":
        return compiled
    needed = needed_predicates(compiled)
    return replace(
        compiled,
        rules=tuple(rule for rule in compiled.rules if rule.predicate in needed),
        calculations=tuple(step for step in compiled.calculations if step.head.predicate in needed),
        aggregations=tuple(step for step in compiled.aggregations if step.head.predicate in needed),
    )


def needed_predicates(compiled: CompiledProgram) -> set[str]:
    """Return the predicates that the queries and the constraints depend on."""
    rules = compiled.rules
    below: dict[str, set[str]] = {}
    for rule in rules:
        below.setdefault(rule.predicate, set()).update(literal.predicate for literal in rule.body)
    for head, source in compiled.numeric_edges:
        below.setdefault(head, set()).add(source)
    constraints = (rule.predicate for rule in rules if is_violation(rule.predicate))
    return reachable([*compiled.target.queries, *constraints], lambda name: below.get(name, ()))
