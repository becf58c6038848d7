"""A standing query, compiled; and the choice between generic and bounded memory."""

from __future__ import annotations

from functools import lru_cache

from tidelog.compiler.bound_memory import compute_bounds
from tidelog.compiler.compiled_program import CompiledProgram, Memory, Target
from tidelog.compiler.flat_rules import FlatRule, Op, Pair
from tidelog.compiler.normalise_streams import SINCE_PART
from tidelog.compiler.passes import compile_program
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.hidden_predicates import hidden_name, is_hidden
from tidelog.language.printer import format_rule
from tidelog.language.program import Program
from tidelog.timeline.grid import Grid
from tidelog.windows.redundant_rules import drop_redundant_rules


@lru_cache(maxsize=16)
def compile_query(program: Program, query: str, grid: Grid, bounded: bool, standing: bool = True) -> CompiledProgram:
    """Compile a standing query; raise if it cannot be answered over a stream.

    Rules that follow from others are left out: the reasoner would keep facts for them, and they derive nothing new.
    `standing` says whether facts may stand, as they do in every run now.
    """
    as_written = program.core.rules is program.rules
    rules = drop_redundant_rules(program, grid.timeline) if as_written else None
    target = Target(
        "stream", (query,), grid.timeline, grid.denominator, bounded_memory=bounded, rules=rules, standing=standing
    )
    return compile_program(program, target)


def choose_memory(program: Program, query: str, grid: Grid, memory: Memory | None) -> bool:
    """Return whether to use bounded memory, which does not grow with the density of the stream.

    Without a choice in `memory`, it is used where it applies and stores fewer predicates.
    """
    if memory not in (None, "generic", "bounded"):
        choices = "choose generic or bounded, or leave the choice to the program"
        raise TidelogError(Diagnostic("TL309", f"unsupported memory mode `{memory}`", help=choices))
    if memory == "generic":
        return False
    if memory is None and program.core.numeric:
        return False
    compiled = compile_query(program, query, grid, True, False)
    dense = _find_density_dependence(compiled)
    if dense is not None and memory == "bounded":
        origin, reason = dense
        source = program.rules[origin]
        raise TidelogError(
            Diagnostic(
                "TL309",
                f"memory cannot be bounded for every stream: {reason}, in `{source.text or format_rule(source)}`",
                source.place,
                law="bounded memory needs Diamondminus, Boxminus and Since over ranges that are longer than a point: "
                "for everything else each fact has to be kept, however many there are",
                help="write the rule with such ranges, or use --memory generic",
            )
        )
    if memory == "bounded":
        return True
    if any(_has_punctual_range(rule, grid) for rule in compiled.rules):
        return False
    generic = compile_query(program, query, grid, False, False)
    return len(_find_looked_up(compiled)) < len(_find_looked_up(generic))


def _find_density_dependence(compiled: CompiledProgram) -> tuple[int, str] | None:
    """Return the number of a rule that makes memory grow with the density of the stream, and the reason."""
    for step in compiled.steps:
        return step.origin, "it calculates or aggregates, for which each fact counts"
    for rule in compiled.rules:
        if _has_punctual_range(rule, compiled.grid):
            return rule.origin, "a range is a single point"
    # Everything else is pushed forward when it arrives. Facts that rules look back at, or that wait for later ones, are
    # kept as they are.
    # Operands of Since are kept while they touch the present, one interval of each.
    retention = compute_bounds(compiled, touch=0).retention
    kept = {name for name in compiled.names if retention[name] > 0} - set(compiled.transient)
    for rule in compiled.rules:
        if rule.predicate in kept or any(b.predicate in kept for b in rule.body):
            return rule.origin, "it looks ahead, and facts that wait for an answer are kept until then"
    return None


def _has_punctual_range(rule: FlatRule, grid: Grid) -> bool:
    """Return whether a rule has a range that is a single time point."""
    if rule.predicate.startswith(hidden_name(SINCE_PART)):
        return False
    ranges = [b.range for b in rule.body if b.op in (Op.DIAMOND, Op.BOX)]
    return any(_is_point(pair, grid) for pair in [*ranges, *([rule.range] if rule.range != (0, 0) else [])])


def _is_point(pair: Pair, grid: Grid) -> bool:
    """Return whether a range is a single time point; on the rationals a single odd position is a whole gap."""
    return pair[0] == pair[1] and pair[0] % grid.tick == 0


def _find_looked_up(compiled: CompiledProgram) -> set[str]:
    """Return the predicates that the user wrote and that are kept for rules to look back at."""
    visible = {name for name in compiled.names if not is_hidden(name)} - set(compiled.transient)
    return {name for name in visible if compiled.bounds.retention[name] > 0}
