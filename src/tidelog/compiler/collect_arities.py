"""Collect all predicates, visible and hidden, with their number of arguments."""

from __future__ import annotations

from dataclasses import replace

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.validate import program_arities
from tidelog.language.hidden_predicates import ALWAYS


def collect_arities(compiled: CompiledProgram) -> CompiledProgram:
    """Pass: collect the predicates that the engine stores.

    A stream stores nothing for predicates that no rule of its query reads. Batch evaluation knows all predicates of
    rules, data and question.
    """
    target = compiled.target
    arities = dict(program_arities(compiled.source)) if target.engine == "batch" else {}
    for rule in compiled.rules:
        for name, arity in rule.atoms():
            arities.setdefault(name, arity)
    for step in compiled.steps:
        for atom in (step.head, step.input):
            arities.setdefault(atom.predicate, len(atom.args))
    if target.engine == "batch":
        for name, arity in target.arities.items():
            arities.setdefault(name, arity)
        arities.setdefault(ALWAYS, 0)
    known = compiled.source.predicates
    for name in target.queries:
        arities.setdefault(name, known.get(name, 0))
    return replace(compiled, arities=arities)
