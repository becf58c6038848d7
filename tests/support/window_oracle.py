"""Windows computed from their definition, by an explicit search over all inputs; and small random queries to compare.

It shares no code with `tidelog.windows`. Rules are ground over all constants. The streaming algorithm runs with a set
of facts as its memory, once with the whole past that any rule reads and once cut to the window, on every background and
every input at every time, until no new pair of memories appears. With a window, rules that look back further are not
applied, which makes a difference where they negate what is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, product
from random import Random

from tidelog.language.syntax import (
    Comparison,
    Constant,
    TemporalAtom,
    TemporalLiteral,
    TemporalProgram,
    Value,
    Variable,
)

#: A ground fact with its time relative to the present (0, -1, ...), or None for a rigid fact.
RelativeFact = tuple[str, tuple[Value, ...], int | None]
Memory = frozenset[RelativeFact]


@dataclass(frozen=True)
class GroundRule:
    head: RelativeFact
    body: frozenset[RelativeFact]
    negated: frozenset[RelativeFact] = frozenset()

    @property
    def radius(self) -> int:
        return max((-time for _, _, time in self.body | self.negated if time is not None), default=0)


def ground_rules(program: TemporalProgram, query: str, objects: list[Value]) -> list[GroundRule]:
    """Return all instances of the rules that a query depends on, with times relative to the time of the head."""
    needed = {query}
    for _ in program.rules:
        needed |= {a.predicate for r in program.rules if r.head and r.head.predicate in needed for a in _atoms(r)}
    terms = [t for r in (*program.rules, *program.facts) for a in _atoms(r) for t in a.args]
    values = list(dict.fromkeys([*objects, *(t.value for t in terms if isinstance(t, Constant))]))
    rules = []
    for rule in program.rules:
        head = rule.head
        assert head is not None
        if head.predicate not in needed:
            continue
        literals = [literal for literal in rule.body if isinstance(literal, TemporalLiteral)]
        body = [literal.atom for literal in literals]
        variables = sorted({t.name for a in (head, *body) for t in a.args if isinstance(t, Variable)})
        for choice in product(values, repeat=len(variables)):
            bound = dict(zip(variables, choice, strict=True))
            if not all(_comparison_holds(part, bound) for part in rule.body if isinstance(part, Comparison)):
                continue
            shift = head.time.offset if head.time else 0
            positive, negated = (
                frozenset(_to_relative_fact(part.atom, bound, shift) for part in literals if part.negated is sign)
                for sign in (False, True)
            )
            rules.append(GroundRule(_to_relative_fact(head, bound, shift), positive, negated))
    return rules


def _atoms(rule: object) -> Iterator[TemporalAtom]:
    yield rule.head  # type: ignore[attr-defined]
    yield from (part.atom for part in rule.body if isinstance(part, TemporalLiteral))  # type: ignore[attr-defined]


def _to_relative_fact(atom: TemporalAtom, bound: dict[str, Value], shift: int) -> RelativeFact:
    args = tuple(t.value if isinstance(t, Constant) else bound[t.name] for t in atom.args)
    return atom.predicate, args, atom.time.offset - shift if atom.time else None


def _comparison_holds(part: Comparison, bound: dict[str, Value]) -> bool:
    left, right = (str(t.value if isinstance(t, Constant) else bound[t.name]) for t in (part.left, part.right))
    return {"<": left < right, "!=": left != right, "=": left == right}[part.op]


def order_by_negation(rules: list[GroundRule]) -> list[list[GroundRule]]:
    """Return the rules in strata: what a rule negates, if it is rigid or of the present, belongs to an earlier one."""
    level = {name: 0 for rule in rules for name, _, _ in (rule.head, *rule.body, *rule.negated)}
    for _ in range(len(level) ** 2 + 1):
        for rule in rules:
            below = [level[name] for name, _, time in rule.body if not time]
            below += [level[name] + 1 for name, _, time in rule.negated if not time]
            level[rule.head[0]] = max([level[rule.head[0]], *below])
    assert max(level.values(), default=0) <= len(level), "the rules are not stratified"
    return [[r for r in rules if level[r.head[0]] == n] for n in range(max(level.values(), default=0) + 1)]


def derive_all(strata: list[list[GroundRule]], facts: Memory, window: int | None = None) -> Memory:
    """Return the facts and everything that follows from them, by rules within the window, and is rigid or holds now."""
    held = set(facts)
    for stratum in strata:
        rules = [rule for rule in stratum if window is None or rule.radius <= window]
        while new := {rule.head for rule in rules if rule.body <= held and not rule.negated & held} - held:
            held |= new
    return frozenset(held)


def advance_memory(memory: Memory, window: int) -> Memory:
    """Return the memory one time point later: the facts at -window are removed before the time passes."""
    later = [(name, args, None if time is None else time - 1) for name, args, time in memory]
    return frozenset(fact for fact in later if fact[2] is None or fact[2] >= -window)


def subsets(facts: list[RelativeFact]) -> Iterator[Memory]:
    return map(frozenset, chain.from_iterable(combinations(facts, n) for n in range(len(facts) + 1)))


def find_first_loss(
    program: TemporalProgram, query: str, objects: list[Value], window: int, wrong: bool = False
) -> int | None:
    """Return after how many time points the streaming algorithm with this window can first lose an answer (or give a
    wrong one), or None."""
    strata = order_by_negation(ground_rules(program, query, objects))
    radius = max((rule.radius for stratum in strata for rule in stratum), default=0)
    derived = {rule.head.predicate for rule in program.rules if rule.head}
    rigid: list[RelativeFact] = [
        (n, args, None) for n, k in program.rigid if n not in derived for args in product(objects, repeat=k)
    ]
    timed: list[RelativeFact] = [
        (n, args, 0) for n, k in program.temporal if n not in derived for args in product(objects, repeat=k)
    ]
    given = frozenset(_to_relative_fact(fact.head, {}, 0) for fact in program.facts if fact.head)
    states = {(given | background, given | background) for background in subsets(rigid)}
    seen = set(states)
    steps = 0
    while states:
        steps += 1
        following = set()
        for full, cut in states:
            for arriving in subsets(timed):
                whole, part = derive_all(strata, full | arriving), derive_all(strata, cut | arriving, window)
                more, less = (part, whole) if wrong else (whole, part)
                if any(fact[0] == query and fact[2] == 0 for fact in more - less):
                    return steps
                following.add((advance_memory(whole, radius), advance_memory(part, window)))
        states = following - seen
        seen |= states
    return None


def find_answers(
    program: TemporalProgram, query: str, window: int, facts: list[RelativeFact], last: int
) -> set[tuple[tuple[Value, ...], int]]:
    """Return what the streaming algorithm with this window gives at each time from 0 to the last."""
    strata = order_by_negation(ground_rules(program, query, list({value for _, args, _ in facts for value in args})))
    given = frozenset(_to_relative_fact(fact.head, {}, 0) for fact in program.facts if fact.head)
    memory = given | {fact for fact in facts if fact[2] is None}
    found = set()
    for t in range(last + 1):
        arriving = {(name, args, 0) for name, args, time in facts if time == t}
        held = derive_all(strata, frozenset(memory | arriving), window)
        found |= {(args, t) for name, args, time in held if name == query and time == 0}
        memory = advance_memory(held, window)
    return found


def loses(
    program: TemporalProgram,
    query: str,
    window: int,
    facts: list[RelativeFact],
    lost: RelativeFact,
    wrong: bool = False,
) -> bool:
    """Return whether the streaming algorithm with this window misses one answer (or gives it wrongly) on an input whose
    times begin at 0."""
    strata = order_by_negation(ground_rules(program, query, list({v for _, args, _ in [*facts, lost] for v in args})))
    radius = max((rule.radius for stratum in strata for rule in stratum), default=0)
    given = frozenset(_to_relative_fact(fact.head, {}, 0) for fact in program.facts if fact.head)
    full = cut = given | {fact for fact in facts if fact[2] is None}
    last = lost[2] or 0
    for t in range(last + 1):
        arriving = {(name, args, 0) for name, args, time in facts if time == t}
        whole = derive_all(strata, frozenset(full | arriving))
        part = derive_all(strata, frozenset(cut | arriving), window)
        full, cut = advance_memory(whole, radius), advance_memory(part, window)
    answer = query, lost[1], None if lost[2] is None else 0
    return (answer in whole, answer in part) == (not wrong, wrong)


def random_query(random: Random, most: int = 2, negation: bool = False) -> tuple[str, list[str]]:
    """Return the text of a small query for G, and its objects; with negation, it may be one that is not stratified."""
    objects = ["a", "b", "c"][: random.choice([1, 1, most])]
    # The arity of each predicate, not counting time, and whether it is temporal; A, B and R are input.
    predicates = {"A": (0, True), "B": (1, True), "R": (1, False), "S": (1, False), "P": (0, True), "Q": (1, True)}
    usable = random.sample(["A", "B", "R"], random.choice([1, 2, 2, 3] if len(objects) == 1 else [1, 2]))
    if not {"A", "B"} & set(usable):
        usable.append("A")
    heads = random.sample(["P", "Q", "G"] + (["S"] if "R" in usable else []), random.choice([1, 2, 2, 3]))
    heads = sorted({*heads, "G"})
    predicates["G"] = (random.choice([0, 1]), True)
    rules: list[str] = []
    for _ in range(random.randint(max(2, len(heads)), 6)):
        head = random.choice(heads) if len(rules) >= len(heads) else heads[len(rules)]
        arity, timed = predicates[head]
        body = []
        for _ in range(random.choice([1, 1, 2, 2, 3])):
            known = [n for n in (*usable, *heads) if predicates[n][1] or not timed or n in ("R", "S")]
            name = random.choice([n for n in known if timed or not predicates[n][1]] or ["R"])
            body.append((name, random.choice([0, 0, 1, 1, 2]) if predicates[name][1] else None))
        if timed and all(lag is None for _, lag in body):
            body.append((random.choice([n for n in usable if n in ("A", "B")]), random.choice([0, 1, 2])))
        names = [random.choice(["X", "X", "Y", "a"]) for _ in body]
        written = [_format_atom(n, predicates[n][0], name, lag) for (n, lag), name in zip(body, names, strict=True)]
        bound = [x for (n, _), x in zip(body, names, strict=True) if predicates[n][0] and x != "a"]
        for _ in range(random.choice([0, 1, 1, 2]) if negation else 0):
            name = random.choice([n for n in known if timed or not predicates[n][1]] or ["R"])
            lag = random.choice([0, 1, 2]) if predicates[name][1] else None
            written.append("not " + _format_atom(name, predicates[name][0], random.choice(bound or ["a"]), lag))
        if bound and random.random() < 0.2:
            written.append(
                random.choice([f"{bound[0]} < b", f"{bound[0]} != a", f"{bound[-1]} = b", f"a < {bound[0]}"])
            )
        rules.append(
            f"{_format_atom(head, arity, random.choice(bound or ['a']), 0 if timed else None)} :- {', '.join(written)}."
        )
    used = {n: predicates[n] for n in predicates if any(f"{n}(" in rule for rule in rules)}
    kinds = [f"#temporal {n}/{k + 1}." if timed else f"#rigid {n}/{k}." for n, (k, timed) in used.items()]
    return "\n".join([*kinds, *rules]), objects


def _format_atom(name: str, arity: int, arg: str, lag: int | None) -> str:
    args = [arg] * arity + ([] if lag is None else [f"T-{lag}" if lag else "T"])
    return f"{name}({', '.join(args)})"
