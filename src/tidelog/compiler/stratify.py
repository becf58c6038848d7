"""Check recursion: no predicate may depend on its own negation at the same time, or create values without end.

Stable models give a meaning to negation in cycles, so for them this pass checks nothing.
"""

from __future__ import annotations

from functools import lru_cache

from tidelog.analysis.temporal_recursion import find_unordered_negation
from tidelog.analysis.value_growth import find_endless_values
from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.validate import choose_timeline
from tidelog.errors import TidelogError
from tidelog.language.program import Program
from tidelog.timeline.interval import TimelineName


def stratify(compiled: CompiledProgram) -> CompiledProgram:
    """Pass: raise for every recursion without a meaning or an end, with the cycle by name."""
    if compiled.target.engine != "stable":
        require_strata(compiled.source, choose_timeline(compiled.source, compiled.target.timeline))
    return compiled


@lru_cache(maxsize=16)
def require_strata(program: Program, timeline: TimelineName) -> None:
    """Raise for every recursion through negation that does not go back in time, and for one that creates values."""
    problems = [*find_unordered_negation(program.rules, timeline), *find_endless_values(program.rules)]
    if problems:
        raise TidelogError(problems)
