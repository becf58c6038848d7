"""How a program is split over the buckets of a cluster, in stages with a shuffle before each.

Within a stage every predicate is hashed on one argument or copied to all buckets, such that every rule of the stage is
local (`analysis.locality`). Where nothing else is sound, a stage has a single bucket. Whatever the plan, the union of
what the buckets derive is what one engine derives from all the facts. Which of the sound plans is taken, and how it is
searched for, is said in `analysis.splitting`.

Input facts of a predicate go to the stages that read it or, if rules derive it too, to the stage that derives it. From
there they go on, with what was derived, to the stages that read it. A copied predicate leaves a stage from one bucket.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidelog.analysis.components import head_atom
from tidelog.analysis.locality import Key, Shape, alias, guard, needs_guard, rule_terms
from tidelog.analysis.splitting import Part, Split, Unit, split
from tidelog.language.program import Program
from tidelog.language.syntax import Variable


@dataclass(frozen=True)
class Stage:
    """A part of a program that is evaluated bucket by bucket, with no exchange between the buckets."""

    #: The rules that are evaluated here: their places in `program.rules`.
    rules: tuple[int, ...]
    #: Every predicate read or derived here: the hashed argument (from 0), or None: copied to all buckets.
    key: Mapping[str, int | None]
    #: One bucket only, since nothing else is sound.
    single: bool
    #: Predicates that come in: from the input, or from earlier stages.
    receives: tuple[str, ...]
    #: Those of them that come from the input.
    inputs: tuple[str, ...]
    #: Predicates that later stages, or the user, read.
    gives: tuple[str, ...]
    #: The same rules as the user counts them, from 1; of temporal Datalog, the rules of the file.
    numbers: tuple[int, ...]
    #: In words: why this key, or why one bucket.
    reason: str
    #: Copied predicates that some rules here read hashed as well: the name for that, and the predicate. Facts of the
    #: predicate come in under both names, by the key of each.
    aliases: Mapping[str, str]
    #: Predicates that rules derive here; input facts of them come in, too.
    derives: tuple[str, ...]
    #: What the stage is split by, and what each hashed predicate goes by, in the words of the rules.
    by: str
    arguments: Mapping[str, str]
    #: Each predicate that comes in and is copied although it is no background, with the rule that needs it everywhere.
    copies: Mapping[str, str]


@dataclass(frozen=True)
class Distribution:
    """The stages of a program, each after those that it receives facts from."""

    stages: tuple[Stage, ...]

    def source(self, predicate: str) -> int | None:
        """The number of the stage that gives a predicate to others; None if it comes from the input only."""
        return next((number for number, stage in enumerate(self.stages) if predicate in stage.gives), None)


def distribution(
    program: Program,
    query: str | None = None,
    *,
    background: Collection[str] = frozenset(),
    endless: Collection[str] = frozenset(),
) -> Distribution:
    """How to split the rules that a query (without one: any predicate of a head) needs, and the constraints.

    `background` names the predicates whose facts hold always and are known before the stream begins. `endless` names
    derived predicates that cannot be handed from one stage to another, as in batch reasoning those that repeat for
    ever: all that reads them stays in the stage that derives them.

    >>> rules = "Monit(X, Z) :- Flag(Y, Z), Connect(X, Y). Flag(X, Z) :- Monit(X, Z), Diamondminus[0,2] Signal(Z)."
    >>> plan = distribution(Program.parse(rules), "Flag")
    >>> sorted(plan.stages[0].key.items())
    [('Connect', None), ('Flag', 1), ('Monit', 1), ('Signal', 0)]
    """
    heads = (head_atom(rule) for rule in program.rules)
    wanted = tuple(dict.fromkeys([head.predicate for head in heads if head] if query is None else [query]))
    found = split(program, wanted, background, endless)
    words = _Words(program, found)
    stages: list[Stage] = []
    for part in found.parts:
        stages.append(_stage(found, part, wanted, stages, words))
    return Distribution(tuple(stages))


def _stage(found: Split, part: Part, wanted: tuple[str, ...], earlier: list[Stage], words: _Words) -> Stage:
    units = [found.units[number] for number in part.units]
    own = dict.fromkeys(name for unit in units for name in unit.own)
    names = dict.fromkeys((*own, *sorted({name for unit in units for name in unit.reads} - set(own))))
    key: dict[str, int | None] = {**dict.fromkeys(names), **part.key}
    single = all(position is None for position in key.values())
    here, derived = set(own) & found.derived, found.derived
    elsewhere = {
        name for number, unit in enumerate(found.units) if number not in part.units for name in unit.reads & derived
    }
    shapes = sorted((s for unit in units for s in unit.shapes), key=lambda s: s.number)
    aliases = _aliases(shapes, key, here)
    given = [name for name in names if name in here or name not in derived]
    by = "" if single else words.by(shapes, key)
    return Stage(
        rules=tuple(s.number for s in shapes),
        key={**key, **{name: at for name, (_, at) in aliases.items()}},
        single=single,
        receives=(*names, *aliases),
        inputs=(*given, *(name for name, (predicate, _) in aliases.items() if predicate in given)),
        gives=tuple(name for name in own if name in elsewhere or name in wanted),
        aliases={name: predicate for name, (predicate, _) in aliases.items()},
        numbers=tuple(sorted({words.numbers[s.number] for s in shapes})),
        reason=words.one_bucket(units) if single else words.reason(by, shapes, key, earlier),
        derives=tuple(name for name in own if name in derived),
        by=by,
        arguments={name: words.argument(name, at, shapes) for name, at in key.items() if at is not None},
        copies={} if single else words.copies(shapes, key, here),
    )


def _aliases(shapes: Iterable[Shape], key: Key, own: Collection[str]) -> dict[str, tuple[str, int]]:
    """The copied predicates that guard a rule: the name that they have there, the predicate, the hashed argument."""
    guards = [guard(s, key, own) for s in shapes if needs_guard(s, key)]
    return {
        alias(found.atom.predicate, found.position): (found.atom.predicate, found.position)
        for found in guards
        if found is not None and found.atom is not None
    }


class _Words:
    """What is said of a plan, in terms of the rules as the user numbered them."""

    def __init__(self, program: Program, found: Split) -> None:
        self.found = found
        self.numbers: dict[int, int] = {}
        places: dict[object, int] = {}
        for number, rule in enumerate(program.rules):
            self.numbers[number] = places.setdefault(rule.place or number, len(places) + 1)

    def rule(self, s: Shape) -> str:
        line = f" (line {s.rule.place.line})" if s.rule.place else ""
        return f"rule {self.numbers[s.number]}{line}"

    def argument(self, predicate: str, position: int, shapes: Iterable[Shape]) -> str:
        """An argument by the name that rules give it, if they all give it the same; else by its number."""
        terms = {
            atom.args[position]
            for s in shapes
            for atom in (*s.body, *([s.head] if s.head else []))
            if atom.predicate == predicate
        }
        names = {t.name.lower() for t in terms if isinstance(t, Variable) and not t.anonymous}
        return names.pop() if len(names) == 1 else f"argument {position + 1}"

    def by(self, shapes: Iterable[Shape], key: Key) -> str:
        """What a stage is split by: the variable that most of its rules have as their key."""
        keys = (term for s in shapes for term in rule_terms(s, key))
        names = Counter(term.name.lower() for term in keys if isinstance(term, Variable) and not term.anonymous)
        if names:
            return names.most_common(1)[0][0]
        return next(f"argument {at + 1} of {name}" for name, at in key.items() if at is not None)

    def reason(self, by: str, shapes: Iterable[Shape], key: Key, earlier: list[Stage]) -> str:
        """The key of a stage and, if there are stages before it, the first rule that needs another key than they."""
        before = {name: stage.key[name] for stage in earlier for name in stage.key}
        handed = {name for stage in earlier for name in stage.gives}
        for names in (handed, before.keys()):
            for s in shapes:
                for atom in s.body:
                    if atom.predicate in names and before[atom.predicate] != key[atom.predicate]:
                        return f"by {by} because of {self.rule(s)}"
        return f"by {by}"

    def one_bucket(self, units: list[Unit]) -> str:
        """Why a stage has one bucket: the first unit in it that cannot be split."""
        unit = next((unit for unit in units if not unit.splits), None)
        if unit is None:
            return "since nothing here reads a stream"
        own = _listed([name for name in unit.own if not name.startswith("$")])
        if not unit.shapes:
            return f"since no rule says what {own} could be split by"
        known = self.found.choosing
        streamed = [s for s in unit.shapes if not {atom.predicate for atom in s.body} <= known.background]
        if not any(atom.args for s in streamed for atom in s.body):
            return f"because of {self.rule(streamed[0])}: what it reads has no arguments to split by"
        if unit.own and not any(known.arities.get(name) for name in unit.own):
            return f"because of {self.rule(streamed[0])}: {own} has no argument to split by"
        for end, s in enumerate(unit.shapes, 1):
            if self._splits(unit, unit.shapes[:end]):
                continue
            if not self._splits(unit, (s,)):
                kept = f"no argument of {own} goes through it unchanged" if s.head else "its atoms share no argument"
                return f"because of {self.rule(s)}: {kept}"
            return f"because of {self.rule(s)}: no argument of {own} goes through it and the rules before it unchanged"
        raise AssertionError("a unit that cannot be split has a rule that is the reason")

    def _splits(self, unit: Unit, shapes: tuple[Shape, ...]) -> bool:
        """Whether there is a way to split some rules of a unit."""
        own = tuple(name for name in unit.own if any(name in s.predicates for s in shapes))
        return any(self.found.choosing.choices(own, shapes))

    def copies(self, shapes: Iterable[Shape], key: Key, own: Collection[str]) -> dict[str, str]:
        """The streams that are copied to all buckets, each with the first rule that needs it in all of them."""
        found: dict[str, Shape] = {}
        for s in shapes:
            for name in {atom.predicate for atom in s.body} - self.found.choosing.background - set(own):
                if key[name] is None and not any(s.positions(name, term) for term in rule_terms(s, key)):
                    found.setdefault(name, s)
        return {name: self.rule(s) for name, s in found.items()}


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 5 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def in_words(plan: Distribution, buckets: int | None = None) -> list[str]:
    """A plan as sentences: one a stage, and what limits it.

    >>> program = Program.parse("Hot(X) :- Temp(X, V), High(V).")
    >>> print(*in_words(distribution(program, background={"High"}), 16), sep="\\n")
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
            lines.append((f"{title}{stage.reason}: " if several else "") + "; ".join(_moves(plan, stage, buckets)))
    keys = list(dict.fromkeys(stage.by for stage in plan.stages if not stage.single))
    if keys:
        one = " or ".join(keys)
        limit = f"the {one} with the most facts limits how far more buckets help"
        lines.append(f"facts with the same {one} meet in one bucket: {limit}")
    return lines


def as_json(plan: Distribution) -> dict[str, Any]:
    """The plan as `tidelog check --json` prints it: arguments and rules are counted from 1."""

    def visible(names: Iterable[str]) -> list[str]:
        return [name for name in names if not name.startswith("$")]

    return {
        "stages": [
            {
                "rules": list(stage.numbers),
                "hashed": {name: at + 1 for name, at in stage.key.items() if at is not None and visible([name])},
                "copied": [name for name in visible(stage.key) if not stage.single and stage.key[name] is None],
                "single": stage.single,
                "receives": visible(stage.receives),
                "gives": visible(stage.gives),
                "reason": stage.reason,
            }
            for stage in plan.stages
        ],
        "words": in_words(plan),
    }


def _moves(plan: Distribution, stage: Stage, buckets: int | None) -> Iterator[str]:
    """What goes where before a stage. Derived predicates are named only if no others are hashed, and those that
    translation made up never."""
    coming = [name for name in stage.receives if name not in stage.derives and not name.startswith("$")]
    if not any(name in stage.arguments for name in coming):
        coming = [*(name for name in stage.derives if not name.startswith("$")), *coming]
    where = f"to {buckets} buckets" if buckets else "to the buckets"
    groups: dict[str, list[str]] = {}
    for name in coming:
        if name in stage.arguments:
            origin = "" if name in stage.inputs else f" (from stage {(plan.source(name) or 0) + 1})"
            groups.setdefault(stage.arguments[name], []).append(name + origin)
    for argument, names in groups.items():
        yield f"facts of {', '.join(names)} go by {argument} {where}"
    for name in coming:
        if name not in stage.arguments:
            reason = f", because of {stage.copies[name]}" if name in stage.copies else ""
            yield f"{name} is copied to all{reason}"
