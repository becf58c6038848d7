"""All checks of rules: heads, the form of conditions, safe variables, and one arity per predicate.

A variable is safe if something binds it: a positive atom, an equation `V = E` whose other variables are bound, or, for
a group variable, the braces of an aggregate. Local variables are bound inside their braces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tidelog.errors import Diagnostic
from tidelog.language.aggregate_checks import body_aggregates, diagnose_durations, explain_duration
from tidelog.language.bindings import (
    WITH_ZERO,
    atom_variables,
    bound_anywhere,
    bound_outside,
    expression_variables,
    find_equations,
    find_unbound,
    group_variables,
    literal_variables,
    outer_variables,
    rule_aggregates,
)
from tidelog.language.calendar_predicates import diagnose_calendars
from tidelog.language.comparisons import FLIPPED, OPERATORS, compare
from tidelog.language.groups import ExpandedRule
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.left_operands import explain_left_operand
from tidelog.language.patterns import PatternError, parse_pattern
from tidelog.language.syntax import (
    Aggregate,
    Atom,
    BodyLiteral,
    Comparison,
    Condition,
    Constant,
    Group,
    Literal,
    Rule,
    Variable,
)
from tidelog.language.validation import (
    BindingNeed,
    body_atoms,
    diagnose_arities,
    diagnose_head,
    diagnose_unbound,
    formula_atoms,
    rule_atoms,
    unsafe_variable,
)

_HELP_IN_GROUP = (
    "inside the brackets, and in each alternative of `or`, add a positive literal that mentions it: "
    "a group is evaluated by itself, and its variables have one value throughout"
)


def diagnose_rules(rules: Iterable[ExpandedRule]) -> list[Diagnostic]:
    """Return all problems with the meaning of these rules, each once."""
    rules = tuple(rules)
    problems = [problem for expanded in rules for problem in _diagnose_expanded(expanded)]
    problems += diagnose_arities(
        (atom.predicate, len(atom.args), atom.place)
        for expanded in rules
        for rule in expanded.rules
        for atom in rule_atoms(rule)
    )
    return list({(problem.code, problem.message, problem.place): problem for problem in reversed(problems)}.values())


def _diagnose_expanded(expanded: ExpandedRule) -> Iterator[Diagnostic]:
    yield from expanded.problems
    yield from _diagnose_absent_values(expanded)
    for rule in expanded.rules:
        yield from diagnose_head(rule.head)
        yield from diagnose_calendars(rule)
        malformed = [*diagnose_conditions(rule.body), *_diagnose_bare_variables(rule)]
        for problem in malformed or diagnose_safety(rule):
            name = problem.message.split()[1] if problem.code == "TL101" else ""
            help = (explain_left_operand(rule, name) or explain_duration(rule.body, name)) if name else None
            if help is None and expanded.chosen and not _is_group(rule) and _is_bound_in_any(expanded, name):
                help = "each alternative of `or` has to bind it"
            yield problem if help is None else replace(problem, help=help)


def _diagnose_absent_values(expanded: ExpandedRule) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each variable that only the braces of a group bind, and other literals beside the group.

    A group is evaluated by itself, so it does not hold for values without a row, where the user might expect a 0.
    """
    for rule in filter(_is_group, expanded.rules):
        others = (other for other in expanded.rules if other is not rule)
        beside = atom_variables(literal for other in others for literal in other.body if not _is_grouped(literal))
        given = bound_outside(rule)
        for literal in rule.body:
            if isinstance(literal, Condition) and _may_hold_of_zero(literal):
                for aggregate in body_aggregates([literal]):
                    for variable in group_variables(aggregate, rule):
                        if aggregate.function in WITH_ZERO and variable in beside and variable not in given:
                            yield unsafe_variable(variable, "a group", aggregate.place, help=_HELP_IN_GROUP)


def _is_grouped(literal: BodyLiteral) -> bool:
    """Return whether a literal reads a group, which mentions all of its variables without binding them."""
    return isinstance(literal, Literal) and any(isinstance(atom, Group) for atom in formula_atoms(literal.formula))


def _may_hold_of_zero(condition: Condition) -> bool:
    """Return whether a condition may hold where an aggregate has no rows: unless a constant says that it does not."""
    left, op, right = condition.left, condition.op, condition.right
    if isinstance(left, Constant):
        left, op, right = right, FLIPPED.get(op, op), left
    if isinstance(left, Aggregate) and isinstance(right, Constant) and op in OPERATORS:
        return compare(op, 0, right.value)
    return True


def _is_bound_in_any(expanded: ExpandedRule, name: str) -> bool:
    """Return whether some alternative of a rule binds a variable."""
    rules = (rule for rule in expanded.rules if not _is_group(rule))
    return any(variable.name == name for rule in rules for variable in bound_anywhere(rule))


def _is_group(rule: Rule) -> bool:
    """Return whether a rule says when a group holds."""
    return isinstance(rule.head, Atom) and is_hidden(rule.head.predicate)


def diagnose_safety(rule: Rule) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each variable that nothing binds."""
    bound = bound_anywhere(rule)
    reported = dict(bound)
    for aggregate in rule_aggregates(rule):
        yield from _diagnose_braces(aggregate, rule, bound)
        # One problem with a group variable is enough.
        reported |= dict.fromkeys(group_variables(aggregate, rule))
    needed = {term for terms, _, _ in _outer_needs(rule) for term in terms if isinstance(term, Variable)}
    blamed = _find_blamed(needed - reported.keys(), rule.body)
    if blamed and not any(find_unbound(aggregate, rule, bound) for aggregate in rule_aggregates(rule)):
        help = _HELP_IN_GROUP if _is_group(rule) else None
        yield from diagnose_unbound(_outer_needs(rule), needed - blamed, bodiless=not rule.body, help=help)


def _find_blamed(unbound: set[Variable], body: Iterable[BodyLiteral]) -> set[Variable]:
    """Return the unbound variables to report: not those that are computed from others, if there are others."""
    computed = {v for v, expression in find_equations(body) if v not in expression_variables(expression, braces=False)}
    return unbound - computed or unbound


def _outer_needs(rule: Rule) -> Iterator[BindingNeed]:
    """Yield the variables outside braces that need a binding."""
    for literal in rule.body:
        if isinstance(literal, Condition) and literal.in_head:
            yield tuple(literal_variables(literal, braces=False)), "the head", literal.place
    for atom in formula_atoms(rule.head):
        yield atom.args, "a group" if _is_group(rule) else "the head", atom.place
    yield from _body_needs(rule.body)


def _body_needs(body: Iterable[BodyLiteral]) -> Iterator[BindingNeed]:
    for literal in body:
        if isinstance(literal, Comparison | Condition):
            where = "a comparison" if literal.op in OPERATORS else "a test"
            yield tuple(literal_variables(literal, braces=False)), where, literal.place
        elif literal.negated:
            for atom in formula_atoms(literal.formula):
                yield atom.args, "a negated literal", atom.place


def _diagnose_braces(aggregate: Aggregate, rule: Rule, given: dict[Variable, None]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each variable of an aggregate that is bound neither inside nor outside of its braces."""
    unbound = _find_blamed(set(find_unbound(aggregate, rule, given)), aggregate.body)
    values: BindingNeed = (
        tuple(v for value in aggregate.values for v in expression_variables(value)),
        f"the value of {aggregate.function.value}",
        aggregate.place,
    )
    reported: set[Variable] = set()
    for terms, where, place in (values, *_body_needs(aggregate.body), *_operand_needs(aggregate.body)):
        for variable in terms:
            if isinstance(variable, Variable) and variable in unbound and variable not in reported:
                reported.add(variable)
                yield unsafe_variable(variable, where, place, help=_help_inside(variable, aggregate, rule))


def _operand_needs(body: Iterable[BodyLiteral]) -> Iterator[BindingNeed]:
    """Yield the variables of positive literals: left operands of Since and Until bind nothing."""
    for literal in body:
        if isinstance(literal, Literal) and not literal.negated:
            for atom in formula_atoms(literal.formula):
                yield atom.args, "a left operand inside braces", atom.place


def _help_inside(variable: Variable, aggregate: Aggregate, rule: Rule) -> str | None:
    if variable.anonymous:
        return None
    if variable in group_variables(aggregate, rule):
        return f"add a positive literal that mentions {variable.name}, inside the braces or outside"
    return f"add a positive literal that mentions {variable.name} inside the braces of {aggregate.function.value}"


def diagnose_conditions(body: Iterable[BodyLiteral]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each condition of a body, also inside braces, whose form has no meaning."""
    for literal in body:
        if isinstance(literal, Condition):
            yield from diagnose_durations(literal)
            yield from _diagnose_pattern(literal)
            for aggregate in body_aggregates([literal]):
                yield from diagnose_conditions(aggregate.body)


def _diagnose_bare_variables(rule: Rule) -> Iterator[Diagnostic]:
    """Yield a diagnostic for `count{X}`, where X is a variable elsewhere: here it would be a predicate."""
    names = {v.name for literal in rule.body for v in literal_variables(literal)} | {
        v.name for v in outer_variables(rule)
    }
    for aggregate in rule_aggregates(rule):
        for atom, _ in body_atoms(aggregate.body):
            if not atom.args and atom.predicate in names:
                message = f"{atom.predicate} is read as a predicate inside the braces"
                help = f"write a body: count{{ P({atom.predicate}) }}"
                yield Diagnostic("TL118", message, atom.place, help=help)


def _diagnose_pattern(condition: Condition) -> Iterator[Diagnostic]:
    pattern = condition.right
    if condition.op.endswith("matches") and isinstance(pattern, Constant) and isinstance(pattern.value, str):
        try:
            parse_pattern(pattern.value)
        except PatternError as error:
            message = f"the pattern {pattern.value} is not RE2: {error}"
            yield Diagnostic("TL120", message, condition.place)
