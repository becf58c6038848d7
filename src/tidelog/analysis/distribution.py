"""Plan how a program is split over the buckets of a cluster, in stages with a shuffle before each.

Within a stage every predicate is hashed on one argument or copied to all buckets, such that every rule of the stage is
local (see `rule_locality`). If nothing else is sound, a stage has a single bucket. With every plan, the union of the
facts that the buckets derive equals what one engine derives from all facts. `split_search` finds the cheapest plan.

Input facts of a predicate go to the stages that read it or, if rules also derive it, to the stage that derives it. From
there they go on, together with the derived facts, to the stages that read them. A copied predicate leaves a stage from
one bucket only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidelog.analysis.predicate_graph import body_atoms
from tidelog.analysis.rule_locality import Key, RuleShape, alias_name, find_guard, find_key_terms, needs_guard
from tidelog.analysis.split_rules import describe_hidden, is_part, split_rules
from tidelog.analysis.split_search import SplitPlan, search_split
from tidelog.analysis.stage_placement import StageDraft
from tidelog.analysis.unit_choices import RuleUnit
from tidelog.language.aggregate_checks import body_aggregates
from tidelog.language.bindings import group_variables
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Variable


@dataclass(frozen=True)
class Stage:
    """A part of a program that is evaluated bucket by bucket, without exchange between the buckets."""

    #: The rules that are evaluated here, by their positions in `program.rules`.
    rules: tuple[int, ...]
    #: For every predicate read or derived here, the hashed argument, counted from 0; None if it is copied.
    key: Mapping[str, int | None]
    #: Whether the stage has only one bucket, since nothing else is sound.
    single: bool
    #: Predicates whose facts come in, from the input or from earlier stages.
    receives: tuple[str, ...]
    #: Those of them whose facts come from the input.
    inputs: tuple[str, ...]
    #: Predicates that later stages, or the user, read.
    outputs: tuple[str, ...]
    #: The same rules as the user counts them, from 1; for temporal Datalog, the rules of the file.
    rule_numbers: tuple[int, ...]
    #: A phrase that says why the stage has this key, or one bucket.
    reason: str
    #: Copied predicates that some rules here also read hashed, by the alias that they have then. Facts of the predicate
    #: come in under both names, each by its own key.
    aliases: Mapping[str, str]
    #: Predicates that rules derive here; input facts of them come in as well.
    derived: tuple[str, ...]
    #: The argument that the stage is split by, and that of each hashed predicate, by the names that rules use.
    split_by: str
    argument_names: Mapping[str, str]
    #: Each incoming predicate that is copied although it is not background, with the rule that needs it in all buckets.
    copy_reasons: Mapping[str, str]


@dataclass(frozen=True)
class Distribution:
    """The stages of a program, each after the stages that it receives facts from."""

    #: The program with the rules that the stages evaluate, which `split_rules` made of the rules as written.
    program: Program
    stages: tuple[Stage, ...]

    def find_source(self, predicate: str) -> int | None:
        """Return the number of the stage that outputs a predicate; None if it comes from the input only."""
        return next((number for number, stage in enumerate(self.stages) if predicate in stage.outputs), None)


def plan_distribution(
    program: Program,
    query: str | None = None,
    *,
    background: Collection[str] = frozenset(),
    endless: Collection[str] = frozenset(),
) -> Distribution:
    """Plan how to split the rules that a query (by default: every derived predicate) and the constraints need.

    `background` names the predicates whose facts always hold and are known before the stream begins. `endless` names
    derived predicates that cannot be handed from one stage to another, such as those that repeat forever in batch
    reasoning: all rules that read them stay in the stage that derives them.

    >>> rules = "Monit(X, Z) :- Flag(Y, Z), Connect(X, Y). Flag(X, Z) :- Monit(X, Z), Diamondminus[0,2] Signal(Z)."
    >>> plan = plan_distribution(Program.parse(rules), "Flag")
    >>> sorted(plan.stages[0].key.items())
    [('Connect', None), ('Flag', 1), ('Monit', 1), ('Signal', 0)]
    """
    heads = [head_atom(rule) for rule in program.rules]
    program = split_rules(program)
    wanted = tuple(dict.fromkeys([head.predicate for head in heads if head] if query is None else [query]))
    split = search_split(program, wanted, background, _with_hidden_readers(program, endless))
    wording = _StageWording(program, split)
    stages: list[Stage] = []
    for draft in split.stages:
        stages.append(_build_stage(split, draft, wanted, stages, wording))
    return Distribution(program, tuple(stages))


def plan_stable_distribution(program: Program, *, background: Collection[str] = frozenset()) -> Distribution:
    """Plan how to split a program such that a stable model of the whole is one stable model of each bucket.

    All rules take part: any of them may leave no model. What is derived stays in the bucket that derives it, since
    another one could not know in which of the models it holds: all derived predicates count as endless. Where models
    differ, there is a cycle of rules. Its predicates never count as background, so it is split by an argument, and each
    bucket chooses about atoms of its own; or all that is connected with it is alike in all buckets, or in one.

    >>> rules = "Free(X, P) :- Spot(X, P), not Taken(X, P). Taken(X, P) :- Spot(X, P), not Free(X, P)."
    >>> plan_stable_distribution(Program.parse(rules)).stages[0].reason
    'by x'
    >>> whole = "Bottom :- Taken(X, P), Taken(Y, P), X != Y."
    >>> plan_stable_distribution(Program.parse(f"{rules} {whole}")).stages[0].reason
    'by p'
    """
    heads = [head.predicate for rule in program.rules if (head := head_atom(rule)) is not None]
    return plan_distribution(program, background=background, endless=heads)


def _with_hidden_readers(program: Program, endless: Collection[str]) -> set[str]:
    """Return the endless predicates with the hidden ones that `split_rules` has put between them and their readers."""
    found = set(endless)
    reads = [
        (head.predicate, {atom.predicate for atom, _ in body_atoms(rule)})
        for rule in program.rules
        if (head := head_atom(rule)) is not None and is_hidden(head.predicate)
    ]
    while more := {name for name, below in reads if below & found} - found:
        found |= more
    return found


def _build_stage(
    split: SplitPlan, draft: StageDraft, wanted: tuple[str, ...], earlier: list[Stage], wording: _StageWording
) -> Stage:
    units = [split.units[number] for number in draft.units]
    own = dict.fromkeys(name for unit in units for name in unit.own)
    names = dict.fromkeys((*own, *sorted({name for unit in units for name in unit.reads} - set(own))))
    key: dict[str, int | None] = {**dict.fromkeys(names), **draft.key}
    single = all(position is None for position in key.values())
    derived_here = set(own) & split.derived
    read_elsewhere = {
        name
        for number, unit in enumerate(split.units)
        if number not in draft.units
        for name in unit.reads & split.derived
    }
    shapes = sorted((shape for unit in units for shape in unit.shapes), key=lambda shape: shape.number)
    aliases = _find_aliases(shapes, key, derived_here)
    inputs = [name for name in names if name in derived_here or name not in split.derived]
    split_by = "" if single else wording.name_key(shapes, key)
    return Stage(
        rules=tuple(shape.number for shape in shapes),
        key={**key, **{name: at for name, (_, at) in aliases.items()}},
        single=single,
        receives=(*names, *aliases),
        inputs=(*inputs, *(name for name, (predicate, _) in aliases.items() if predicate in inputs)),
        outputs=tuple(name for name in own if name in read_elsewhere or name in wanted),
        aliases={name: predicate for name, (predicate, _) in aliases.items()},
        rule_numbers=tuple(sorted({wording.numbers[shape.number] for shape in shapes})),
        reason=(
            wording.explain_single_bucket(units) if single else wording.explain_key(split_by, shapes, key, earlier)
        ),
        derived=tuple(name for name in own if name in split.derived),
        split_by=split_by,
        argument_names=_name_arguments(key, shapes),
        copy_reasons={} if single else wording.explain_copies(shapes, key, derived_here),
    )


def _find_aliases(shapes: Iterable[RuleShape], key: Key, own: Collection[str]) -> dict[str, tuple[str, int]]:
    """Return the copied predicates that guard a rule, by alias: the predicate and the hashed argument."""
    guards = [find_guard(shape, key, own) for shape in shapes if needs_guard(shape, key)]
    return {
        alias_name(guard.atom.predicate, guard.position): (guard.atom.predicate, guard.position)
        for guard in guards
        if guard is not None and guard.atom is not None
    }


def _name_arguments(key: Key, shapes: Iterable[RuleShape]) -> dict[str, str]:
    """Name each hashed argument by the variable that all rules have there, or by its number if they differ."""
    names: dict[str, set[str]] = {name: set() for name, position in key.items() if position is not None}
    for shape in shapes:
        for atom in (*shape.body, *([shape.head] if shape.head else [])):
            position = key.get(atom.predicate)
            if position is not None:
                term = atom.args[position]
                if isinstance(term, Variable) and not term.anonymous:
                    names[atom.predicate].add(term.name.lower())
    return {
        name: found.pop() if len(found) == 1 else f"argument {(key[name] or 0) + 1}" for name, found in names.items()
    }


class _StageWording:
    """Words for the reasons of a plan, with rules numbered as the user counts them."""

    def __init__(self, program: Program, split: SplitPlan) -> None:
        self.split = split
        self.numbers: dict[int, int] = {}
        places: dict[object, int] = {}
        for number, rule in enumerate(program.rules):
            self.numbers[number] = places.setdefault(rule.place or number, len(places) + 1)

    def name_rule(self, shape: RuleShape) -> str:
        """Name a rule by its number and line."""
        line = f" (line {shape.rule.place.line})" if shape.rule.place else ""
        return f"rule {self.numbers[shape.number]}{line}"

    def name_key(self, shapes: Iterable[RuleShape], key: Key) -> str:
        """Name the key of a stage: the variable that most of its rules have as their key."""
        keys = (term for shape in shapes for term in find_key_terms(shape, key))
        names = Counter(term.name.lower() for term in keys if isinstance(term, Variable) and not term.anonymous)
        if names:
            return names.most_common(1)[0][0]
        return next(f"argument {at + 1} of {name}" for name, at in key.items() if at is not None)

    def explain_key(self, by: str, shapes: Iterable[RuleShape], key: Key, earlier: list[Stage]) -> str:
        """Name the key of a stage and, if earlier stages have another key, the first rule that needs this one."""
        before = {name: stage.key[name] for stage in earlier for name in stage.key}
        handed = {name for stage in earlier for name in stage.outputs}
        for names in (handed, before.keys()):
            for shape in shapes:
                for atom in shape.body:
                    if atom.predicate in names and before[atom.predicate] != key[atom.predicate]:
                        return f"by {by} because of {self.name_rule(shape)}"
        return f"by {by}"

    def explain_single_bucket(self, units: list[RuleUnit]) -> str:
        """Say why a stage has one bucket, by the first unit in it that cannot be split."""
        unit = next((unit for unit in units if not unit.can_be_split), None)
        if unit is None:
            return "since nothing here reads a stream"
        shown = [describe_hidden(name) or name for name in unit.own]
        own = _list_names([name for name in shown if not is_hidden(name)])
        if not unit.shapes:
            return f"since no rule says what {own} could be split by"
        finder = self.split.finder
        streamed = [shape for shape in unit.shapes if not {atom.predicate for atom in shape.body} <= finder.background]
        if not any(atom.args for shape in streamed for atom in shape.body):
            return f"because of {self.name_rule(streamed[0])}: what it reads has no arguments to split by"
        if (
            unit.own
            and not any(finder.arities.get(name) for name in unit.own)
            and not any(map(_reads_all_rows, streamed))
        ):
            return f"because of {self.name_rule(streamed[0])}: {own} has no argument to split by"
        for end, shape in enumerate(unit.shapes, 1):
            if self._can_split(unit, unit.shapes[:end]):
                continue
            if _reads_all_rows(shape):
                problem = "its aggregate has no group to split by"
                if any(is_part(atom.predicate) for atom in shape.body):
                    problem = "its aggregate has no group, so it merges the parts that the buckets compute"
            elif self._can_split(unit, (shape,)):
                problem = f"no argument of {own} goes through it and the rules before it unchanged"
            elif shape.head:
                problem = f"no argument of {own} goes through it unchanged"
            else:
                problem = "its atoms share no argument"
            return f"because of {self.name_rule(shape)}: {problem}"
        raise AssertionError("a unit that cannot be split has a rule that is the reason")

    def _can_split(self, unit: RuleUnit, shapes: tuple[RuleShape, ...]) -> bool:
        """Return whether some rules of a unit, taken alone, can be split."""
        own = tuple(name for name in unit.own if any(name in shape.predicates for shape in shapes))
        return any(self.split.finder.find_choices(own, shapes))

    def explain_copies(self, shapes: Iterable[RuleShape], key: Key, own: Collection[str]) -> dict[str, str]:
        """Return the streams that are copied to all buckets, each with the first rule that needs it in all of them."""
        needing: dict[str, RuleShape] = {}
        for shape in shapes:
            for name in {atom.predicate for atom in shape.body} - self.split.finder.background - set(own):
                if key[name] is None and not any(shape.positions(name, term) for term in find_key_terms(shape, key)):
                    needing.setdefault(name, shape)
        return {name: self.name_rule(shape) for name, shape in needing.items()}


def _reads_all_rows(shape: RuleShape) -> bool:
    """Return whether a rule has an aggregate without a group, other than the part of a bucket."""
    aggregates = body_aggregates(shape.rule.body)
    return not shape.part and any(not group_variables(aggregate, shape.rule) for aggregate in aggregates)


def _list_names(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 5 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def describe_distribution(plan: Distribution, buckets: int | None = None) -> list[str]:
    """Describe a plan in sentences: one per stage, and what limits it.

    >>> program = Program.parse("Hot(X) :- Temp(X, V), High(V).")
    >>> print(*describe_distribution(plan_distribution(program, background={"High"}), 16), sep="\\n")
    facts of Temp go by x to 16 buckets; High is copied to all
    facts with the same x meet in one bucket: the x with the most facts limits how far more buckets help
    """
    several = len(plan.stages) > 1
    lines = []
    for number, stage in enumerate(plan.stages, 1):
        title = f"stage {number} " if several else ""
        if stage.single:
            lines.append(f"{title or 'all '}in one bucket, {stage.reason}")
        else:
            lines.append(
                (f"{title}{stage.reason}: " if several else "") + "; ".join(_describe_moves(plan, stage, buckets))
            )
    keys = list(dict.fromkeys(stage.split_by for stage in plan.stages if not stage.single))
    if keys:
        one = " or ".join(keys)
        limit = f"the {one} with the most facts limits how far more buckets help"
        lines.append(f"facts with the same {one} meet in one bucket: {limit}")
    return lines


def distribution_to_json(plan: Distribution) -> dict[str, Any]:
    """Convert a plan to the object that `tidelog check --json` prints; arguments and rules are counted from 1."""

    def visible(names: Iterable[str]) -> list[str]:
        return [name for name in names if not is_hidden(name)]

    return {
        "stages": [
            {
                "rules": list(stage.rule_numbers),
                "hashed": {name: at + 1 for name, at in stage.key.items() if at is not None and visible([name])},
                "copied": [name for name in visible(stage.key) if not stage.single and stage.key[name] is None],
                "single": stage.single,
                "receives": visible(stage.receives),
                "gives": visible(stage.outputs),
                "reason": stage.reason,
            }
            for stage in plan.stages
        ],
        "words": describe_distribution(plan),
    }


def _describe_moves(plan: Distribution, stage: Stage, buckets: int | None) -> Iterator[str]:
    """Describe which facts go where before a stage.

    Derived predicates are named only if no others are hashed, and hidden predicates only if they are rows or parts.
    """
    hidden = {name: words for name in stage.receives if (words := describe_hidden(name)) is not None}
    coming = [name for name in stage.receives if name not in stage.derived and (name in hidden or not is_hidden(name))]
    if not any(name in stage.argument_names for name in coming):
        coming = [*(name for name in stage.derived if not is_hidden(name)), *coming]
    where = f"to {buckets} buckets" if buckets else "to the buckets"
    groups: dict[tuple[str, bool], list[str]] = {}
    for name in coming:
        if name in stage.argument_names:
            origin = "" if name in stage.inputs else f" (from stage {(plan.find_source(name) or 0) + 1})"
            groups.setdefault((stage.argument_names[name], name in hidden), []).append(hidden.get(name, name) + origin)
    for (argument, described), names in groups.items():
        yield f"{'' if described else 'facts of '}{', '.join(dict.fromkeys(names))} go by {argument} {where}"
    for name in coming:
        if name not in stage.argument_names:
            reason = f", because of {stage.copy_reasons[name]}" if name in stage.copy_reasons else ""
            yield f"{hidden[name]} are copied to all{reason}" if name in hidden else f"{name} is copied to all{reason}"
    for words in dict.fromkeys(hidden[name] for name in stage.derived if is_part(name)):
        yield f"the {words} are computed there"
