"""Choose the grid: the coarsest that all times of rules, data and question lie on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import lcm

from tidelog.analysis.rule_ranges import range_ends
from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.validate import choose_timeline
from tidelog.language.program import Program
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import TimelineName


def choose_grid(compiled: CompiledProgram) -> CompiledProgram:
    """Pass: choose the grid for ranges and times."""
    target = compiled.target
    timeline: TimelineName | None = "integer" if target.engine == "stable" else target.timeline
    return replace(compiled, grid=find_grid(compiled.source, timeline, [target.denominator]))


def find_grid(program: Program, timeline: TimelineName | None, denominators: Iterable[int] = ()) -> Grid:
    """Return the coarsest grid for the ranges of a program and for times with the given denominators."""
    if choose_timeline(program, timeline) == "integer":
        return Grid(dense=False)
    return Grid(True, lcm(*denominators, *(end.denominator for end in range_ends(program))))
