"""Parse temporal Datalog (`.tdl`) text.

The last argument of a temporal predicate is its time. Which predicates are temporal follows from their use, so parsing
takes two steps: rules with plain arguments first, then `tdl_time_arguments` finds, over all rules together, the
arguments that are times.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.expression_errors import find_numbers
from tidelog.language.parser import RuleBuilder, as_token, as_tree, parse_tree
from tidelog.language.syntax import (
    Comparison,
    TemporalAtom,
    TemporalProgram,
    Term,
)
from tidelog.language.table_parser import Token, Tree
from tidelog.language.tdl_time_arguments import (
    Declarations,
    PlainAtom,
    PlainRule,
    Shifted,
    build_atom,
    build_program,
    diagnose_arguments,
    diagnose_time_arguments,
    find_time_variables,
    infer_temporal_predicates,
)
from tidelog.language.time_text import fits_63_bits
from tidelog.language.tokenizer import SourceText, tokenize_rules
from tidelog.language.wording import suggest


def parse_temporal(text: str, source_name: str) -> tuple[TemporalProgram | None, list[Diagnostic]]:
    """Parse a program; return its rules and facts that could be parsed, and the errors of the others.

    There is no program if it is unclear which arguments are times.
    """
    source = SourceText.of(text, source_name, operators=False)
    declared = Declarations()
    rules: list[PlainRule] = []
    errors: list[Diagnostic] = []
    for tokens in tokenize_rules(text, operators=False):
        tree = parse_tree(tokens, source)
        if isinstance(tree, Diagnostic):
            errors.append(find_numbers(tokens, source) or tree)
        elif tokens[0].type == "DIRECTIVE":
            errors += _read_directive(as_tree(tree.children[0]), source, declared)
        else:
            builder = _PlainBuilder(tokens, source)
            rule = builder.plain_rule(as_tree(tree.children[0]))
            errors += builder.errors
            if not builder.errors:
                rules.append(rule)
    temporal = infer_temporal_predicates(rules, declared)
    contradictions = diagnose_time_arguments(rules, declared, temporal)
    return None if contradictions else build_program(rules, declared, temporal), errors + contradictions


class _PlainBuilder(RuleBuilder):
    """Build plain rules from parse trees of temporal Datalog; terms and comparisons are those of DatalogMTL."""

    def plain_rule(self, tree: Tree) -> PlainRule:
        parts = [as_tree(child) for child in tree.children]
        head = None
        if tree.data != "constraint":
            first = parts.pop(0)
            head = self.plain_atom(first) if first.data == "atom" else None
        body = tuple(self.plain_literal(as_tree(child)) for child in parts[0].children) if parts else ()
        text = self.source.between(self.tokens[0], self.tokens[-1])
        return PlainRule(head, body, text, self.source.place(self.tokens[0]))

    def plain_literal(self, tree: Tree) -> tuple[PlainAtom, bool] | Comparison:
        if tree.data in ("positive", "negative"):
            return self.plain_atom(as_tree(tree.children[-1])), tree.data == "negative"
        return self.comparison(tree, negated=tree.data == "denied_comparison")

    def plain_atom(self, tree: Tree) -> PlainAtom:
        name = as_token(tree.children[0])
        arguments = [as_tree(child) for child in tree.children[1:]]
        places = (self.source.place(as_token(a.children[0]), as_token(a.children[-1])) for a in arguments)
        args = tuple(map(self.argument, arguments))
        return PlainAtom(str(name), args, self.source.place(name), tuple(places))

    def argument(self, tree: Tree) -> Term | Shifted:
        if tree.data != "shifted":
            return self.term(tree)
        name, sign, written = map(as_token, tree.children)
        offset = self.number(written)
        if not (name[0] == "_" or name[0].isupper()) or name == "_":
            self._report_time_error(name, f"`{name}` is not a variable")
        if offset.denominator != 1:
            self._report_time_error(written, f"`{written}` is not a whole number of steps")
        elif not fits_63_bits(offset):
            message = f"the offset {written} does not fit into 63 bits"
            self.errors.append(Diagnostic("TL204", message, self.source.place(written)))
        return Shifted(str(name), -int(offset) if sign == "-" else int(offset))

    def _report_time_error(self, token: Token, message: str) -> None:
        self.errors.append(Diagnostic("TL110", message, self.source.place(token)))


def _suggest_query(predicate: str, arity: int, temporal: bool) -> str:
    names = [f"X{i + 1}" for i in range(arity - temporal)] if arity - temporal != 1 else ["X"]
    return f"write {predicate}({', '.join([*names, 'T'] if temporal else names)})"


def parse_query(text: str, program: TemporalProgram, source_name: str = "<query>") -> TemporalAtom:
    """Parse a single atom like `Malf(X, T)`, with the time of a temporal predicate as its last argument.

    >>> program, _ = parse_temporal("Malf(X, T-2) :- Shdn(X, T).", "<text>")
    >>> parse_query("Malf(X, T)", program)
    TemporalAtom(predicate='Malf', args=(Variable(name='X', anonymous=False),), time=TimeTerm(variable='T', offset=0))
    """
    source = SourceText.of(text, source_name, operators=False)
    parts = list(tokenize_rules(text, operators=False))
    tree = parse_tree(parts[0], source) if len(parts) == 1 else None
    law = "a query is one atom: Malf(X, T)"
    if isinstance(tree, Diagnostic):
        raise TidelogError(tree)
    item = as_tree(tree.children[0]) if tree else None
    if item is None or item.data != "rule" or len(item.children) != 1 or as_tree(item.children[0]).data != "atom":
        raise TidelogError(Diagnostic("TL001", f"`{text}` is not a single atom", law=law))
    builder = _PlainBuilder(parts[0], source)
    atom = builder.plain_atom(as_tree(item.children[0]))
    arities = {name: arity + 1 for name, arity in program.temporal} | dict(program.rigid)
    timed = {(name, arity + 1) for name, arity in program.temporal}
    errors = list(builder.errors)
    if atom.predicate not in arities:
        close = suggest(atom.predicate, arities)
        help = f"did you mean {close}?" if close else f"the predicates are {', '.join(sorted(arities))}"
        errors.append(Diagnostic("TL302", f"{atom.predicate} does not occur in the rules", atom.place, law, help))
    elif len(atom.args) != arities[atom.predicate]:
        time = ", time included" if (atom.predicate, arities[atom.predicate]) in timed else ""
        message = f"{atom.predicate} has {arities[atom.predicate]} arguments{time}, not {len(atom.args)}"
        errors.append(
            Diagnostic(
                "TL102", message, atom.place, law, _suggest_query(atom.predicate, arities[atom.predicate], bool(time))
            )
        )
    else:
        times = find_time_variables(PlainRule(atom, ()), timed)
        errors += diagnose_arguments(
            atom, times, Declarations(rigid=dict.fromkeys(program.rigid)), dict.fromkeys(timed)
        )
    if errors:
        raise TidelogError(errors)
    return build_atom(atom, timed)


def _read_directive(tree: Tree, source: SourceText, declared: Declarations) -> Iterator[Diagnostic]:
    word = as_token(tree.children[0])
    tables = {"#temporal": declared.temporal, "#rigid": declared.rigid}
    if word not in tables:
        meant = suggest(str(word), tables)
        help = f"did you mean {meant}?" if meant else "comments start with `%` in temporal Datalog"
        law = "the directives are `#temporal P/3.` and `#rigid Succ/2.`"
        yield Diagnostic("TL009", f"there is no directive `{word}`", source.place(word), law, help)
        return
    for child in tree.children[1:]:
        name, number = map(as_token, as_tree(child).children)
        place = source.place(name, number)
        if not number.isdigit() or len(number) > 9 or (word == "#temporal" and int(number) == 0):
            law = "a directive counts all arguments, and a temporal predicate has at least one: its time"
            yield Diagnostic("TL009", f"`{number}` is not a number of arguments", source.place(number), law)
            continue
        signature = (str(name), int(number))
        tables[str(word)][signature] = place
        if signature in declared.temporal and signature in declared.rigid:
            yield Diagnostic("TL107", f"{name} is declared both temporal and rigid", place)
