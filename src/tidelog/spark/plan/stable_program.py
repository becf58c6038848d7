"""A program as a job over stable models takes it."""

from __future__ import annotations

from dataclasses import replace

from tidelog.compiler.compiled_program import Target
from tidelog.compiler.passes import check_program
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Atom, Literal, Rule, Variable
from tidelog.stable.clingo_control import create_control
from tidelog.stable.problem import require_integer_timeline, require_no_numbers
from tidelog.timeline.interval import TimelineName


def check_stable_program(program: Program, timeline: TimelineName | None) -> None:
    """Raise on the driver what workers would raise for a program of any data."""
    require_integer_timeline(timeline)
    require_no_numbers(program)
    check_program(program, Target("stable"))
    create_control()


def derive_query(program: Program, query: str, arity: int) -> Program:
    """Return the program with a rule for the query, if there is none: its facts are then sent to buckets, too."""
    if any(head.predicate == query for rule in program.rules if (head := head_atom(rule)) is not None):
        return program
    atom = Atom(query, tuple(Variable(f"X{i}") for i in range(arity)))
    return replace(program, rules=(*program.rules, Rule(atom, (Literal(atom),))))
