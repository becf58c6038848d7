"""Violated constraints in words: the rule, the binding and the time."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.errors import Diagnostic
from tidelog.language.printer import format_rule
from tidelog.language.syntax import Value, Variable
from tidelog.timeline.interval import Interval


def describe_violation(compiled: CompiledProgram, name: str, values: Sequence[Value], when: Interval) -> Diagnostic:
    """Describe a violation: an atom of the hidden predicate `name`, with its arguments."""
    rule = next(rule for rule in compiled.rules if rule.predicate == name)
    source = compiled.source.rules[rule.origin]
    binding = ", ".join(
        f"{variable.name} = {value}"
        for variable, value in zip(rule.args, values, strict=True)
        if isinstance(variable, Variable) and not variable.anonymous
    )
    with_binding = f" with {binding}" if binding else ""
    return Diagnostic(
        "TL303", f"a constraint is violated at {when}{with_binding}: {source.text or format_rule(source)}", source.place
    )
