"""Say in words why it could not be decided how a recursion continues: the rule, the reason, and what can be decided."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import FlatRule
from tidelog.errors import Diagnostic, Undecided
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.printer import format_rule
from tidelog.language.syntax import Rule
from tidelog.language.validation import body_atoms
from tidelog.language.wording import join_words
from tidelog.timeline.grid import LIMIT
from tidelog.timeline.interval import format_time


def describe_undecided(compiled: CompiledProgram, predicates: Collection[str]) -> Undecided:
    """Build the error for predicates without a known repetition, and for those that depend on them."""
    inside = set(predicates)
    rules = [rule for rule in compiled.rules if rule.predicate in inside]
    looping = [rule for rule in rules if any(literal.predicate in inside for literal in rule.body)]
    blamed = max(looping or rules, key=_find_reach, default=None)
    names = [name for name in predicates if not is_hidden(name)] or _name_bodies(compiled, inside)
    message = f"it could not be decided how {', '.join(names)} continues forever"
    if blamed is None:
        return Undecided(Diagnostic("TL304", message, help=_RANGE))
    source = compiled.source.rules[blamed.origin]
    reason, help = _explain(compiled, blamed, bool(looping))
    return Undecided(Diagnostic("TL304", f"{message}: {_show(source)} {reason}", source.place, help=help))


_RANGE = "ask for a range of times with --between LO,HI, which is decided in most cases"


def _explain(compiled: CompiledProgram, rule: FlatRule, loops: bool) -> tuple[str, str]:
    """Return the reason why a rule is hard to decide, and what would be decidable."""
    reach = _find_reach(rule)
    if not loops:
        source = compiled.source.rules[rule.origin]
        read = join_words(dict.fromkeys(atom.predicate for atom, _ in body_atoms(source.body)))
        reason = f"computes with {read}, and what follows from that did not repeat within the search"
        decided = "where these facts end, or their periods have a small common multiple"
        return reason, f"{_RANGE}; {decided}, it is decided for all time"
    if reach >= LIMIT:
        reason = "is recursive and looks over an unbounded range"
        return reason, f"give its operators ranges that end, or {_RANGE}"
    distance = format_time(Fraction(reach, compiled.grid.tick * compiled.grid.denominator))
    reason = f"is recursive over distances of up to {distance}, and what it derives did not repeat within the search"
    decided = "over shorter distances, or multiples of one, and with facts that begin and end closer together"
    return reason, f"{_RANGE}; {decided}, repetitions are found for all time"


def _find_reach(rule: FlatRule) -> int:
    """Return the largest distance over which a rule looks."""
    ranges = (rule.range, *(literal.range for literal in rule.body))
    return max(min(abs(end), LIMIT) for pair in ranges for end in pair)


def _name_bodies(compiled: CompiledProgram, inside: Collection[str]) -> list[str]:
    """Name the rules whose bodies hidden predicates stand for."""
    origins = {rule.origin for rule in compiled.rules if rule.predicate in inside}
    origins |= {step.origin for step in compiled.steps if step.head.predicate in inside}
    return [f"the body of {_show(compiled.source.rules[origin])}" for origin in sorted(origins)]


def _show(rule: Rule) -> str:
    return f"`{rule.text or format_rule(rule)}`"
