"""The passes of the compiler, in order.

Each pass is a pure function from a `CompiledProgram` to a `CompiledProgram` that fills in its part, or raises a
`TidelogError` that says which rule is wrong and why. Passes that concern one engine only leave the others' programs as
they are. Their order matters: the grid is needed to flatten, hidden predicates exist only after flattening, and the
normal form for streams must be there before memory can be bounded. Which facts stand depends on the components.

Two further steps depend on how many facts there are, and run once for each component when that is known:
`order_joins.order_joins` chooses the order in which a rule's body is joined, and `encode.encode_plans` writes the table
that the plan machine reads.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.compiler.bound_memory import bound_memory
from tidelog.compiler.choose_grid import choose_grid
from tidelog.compiler.collect_arities import collect_arities
from tidelog.compiler.compiled_program import CompiledProgram, Target
from tidelog.compiler.flatten import flatten
from tidelog.compiler.group_components import group_components
from tidelog.compiler.normalise_streams import normalise_for_streams
from tidelog.compiler.prune import prune_to_query
from tidelog.compiler.standing_facts import choose_standing
from tidelog.compiler.stratify import stratify
from tidelog.compiler.validate import validate
from tidelog.language.program import Program

Pass = Callable[[CompiledProgram], CompiledProgram]

#: The passes that only check: they leave the program as it is, or raise.
CHECKS: tuple[Pass, ...] = (validate, stratify)

PASSES: tuple[Pass, ...] = (
    *CHECKS,
    choose_grid,
    flatten,
    prune_to_query,
    normalise_for_streams,
    collect_arities,
    group_components,
    bound_memory,
    choose_standing,
)


def compile_program(program: Program, target: Target) -> CompiledProgram:
    """Run all passes.

    >>> program = Program.parse("Hot(X) :- Boxminus[0,2] High(X). Cold(X) :- Low(X).")
    >>> print(compile_program(program, Target("batch", ("Hot",))))
    Hot(X) :- Boxminus[0,2] High(X).
    """
    return _run_passes(PASSES, program, target)


def check_program(program: Program, target: Target) -> None:
    """Run the checks alone; raise where a program cannot be compiled for a target, whatever its data and query."""
    _run_passes(CHECKS, program, target)


def _run_passes(passes: tuple[Pass, ...], program: Program, target: Target) -> CompiledProgram:
    compiled = CompiledProgram(program, target)
    for run_pass in passes:
        compiled = run_pass(compiled)
    return compiled
