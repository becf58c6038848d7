"""Random programs without recursion, random streams for them, and a comparison of sessions with the definitions."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import partial
from itertools import product

from hypothetical_oracle import AnswerValues, Domain, Ground, Support, compute_hypothetical, parse_printed_fact
from tidelog.hypothetical import Hypotheses, HypothesisOptions
from tidelog.hypothetical.supported_answers import SupportedAnswer
from tidelog.language.program import Program
from tidelog.language.tdl_parser import parse_query

EXTENSIONAL = {"e": 0, "f": 1, "g": 2}
CONSTANTS = ("a", "b")
LAST = 4
DOMAIN = Domain(("a", "b", "c"), range(LAST + 3), range(-8, LAST + 10))
#: The times of answers that are compared. The oracle misses some at the edges, where rules look beyond its times.
COMPARED = range(-3, LAST + 5)


@dataclass(frozen=True)
class Case:
    program: str
    query: str
    delays: tuple[str, ...]
    arrivals: tuple[tuple[int, str], ...]

    def __str__(self) -> str:
        arrivals = " ".join(f"{tau}:{fact}" for tau, fact in self.arrivals)
        return f"{self.program}query {self.query}\ndelays {self.delays}\narrivals {arrivals}"


def random_case(seed: int, *, recursive: bool = False) -> Case:
    """Return a case; if it is `recursive`, one predicate depends on itself."""
    rng = random.Random(seed)
    known = dict(EXTENSIONAL)
    lines: list[str] = []
    for level in range(rng.choice([1, 1, 2])):
        name, arity = f"i{level}", rng.choice([0, 1, 1, 2])
        for _ in range(rng.choice([1, 1, 2])):
            lines.append(_rule(rng, name, arity, known))
        if recursive and not level:
            lines.append(_rule(rng, name, arity, known | {name: arity}, also=name))
        known[name] = arity
    if rng.random() < 0.2:
        lines.append(_fact(rng, rng.choice(list(EXTENSIONAL)), 0, 2) + ".")
    lines += [f"#temporal {name}/{arity + 1}." for name, arity in known.items()]
    names = ["X", "Y"][: known[name]]
    if rng.random() < 0.2:
        names = [rng.choice(["X", "a", "_"]) for _ in names]
    query = f"{name}({','.join([*names, rng.choice(['T', 'T', 'T', 'T+1', '2', '_'])])})"
    late = rng.random() < 0.75
    delays = tuple(f"{name}={rng.choice([0, 0, 1, 2]) if late else 0}" for name in EXTENSIONAL)
    if late and rng.random() < 0.3:
        delays += (f"g({rng.choice(['a,_', '_,b', 'a,b'])})={rng.choice([0, 1, 3])}",)
    return Case("\n".join(lines) + "\n", query, delays, _arrivals(rng, delays))


def _rule(rng: random.Random, name: str, arity: int, known: dict[str, int], also: str | None = None) -> str:
    times = ["T"] if rng.random() < 0.8 else ["T", "S"]
    body: list[str] = []
    variables: set[str] = set()
    for _ in range(rng.choice([1, 2, 2, 3])):
        predicate = also if also and not body else rng.choice(list(known))
        args = [rng.choice(["X", "Y", "X", "Z", "a", "b"]) for _ in range(known[predicate])]
        variables |= {arg for arg in args if arg.isupper()}
        time = rng.choice(times) + rng.choice(["", "", "+1", "-1", "+2"])
        body.append(f"{predicate}({','.join([*args, time if rng.random() < 0.93 else str(rng.randrange(3))])})")
    choice = [*sorted(variables), rng.choice(CONSTANTS)]
    head = [rng.choice(choice) for _ in range(arity)]
    if variables and rng.random() < 0.2:
        left = rng.choice(sorted(variables))
        body.append(f"{left} {rng.choice(['!=', '<', '<=', '='])} {rng.choice([*sorted(variables), 'a', 'b'])}")
    time = rng.choice(["T", "T", "T", "T+1", "T-2", "1"])
    return f"{name}({','.join([*head, time])}) :- {', '.join(body)}."


def _fact(rng: random.Random, name: str, lo: int, hi: int) -> str:
    args = [rng.choice(CONSTANTS) for _ in range(EXTENSIONAL[name])]
    return f"{name}({','.join([*args, str(rng.randint(lo, hi))])})"


def _arrivals(rng: random.Random, delays: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    found = []
    for _ in range(rng.randrange(3, 12)):
        fact = _fact(rng, rng.choice(list(EXTENSIONAL)), 0, LAST)
        delay = delay_of(parse_printed_fact(fact), delays)
        found.append((parse_printed_fact(fact)[2] + rng.randint(0, delay), fact))
    return tuple(sorted(found, key=lambda pair: pair[0]))


def delay_of(fact: Ground, delays: tuple[str, ...]) -> int:
    """Return the delay of a fact; a pattern with constants takes precedence if it matches."""
    found = 0
    for text in delays:
        name, _, amount = text.rpartition("=")
        predicate, _, rest = name.partition("(")
        if predicate == fact[0]:
            wanted = rest.removesuffix(")").split(",") if rest else []
            if all(w in ("_", a) for w, a in zip(wanted, fact[1], strict=bool(wanted))):
                found = int(amount)
    return found


def compare_with_definitions(case: Case, **options: object) -> int:
    """Compare every moment of a case with the definitions; return the number of supported answers."""
    program = Program.parse(case.program, syntax="tdl")
    assert program.temporal is not None
    query = parse_query(case.query, program.temporal)
    session = Hypotheses(program, case.query, delay=case.delays, options=HypothesisOptions(**options))  # type: ignore[arg-type]
    arrived: set[Ground] = set()
    before: dict[AnswerValues, object] = {}
    delay = partial(delay_of, delays=case.delays)
    start = compute_hypothetical(program.temporal, query, arrived, delay, -1, DOMAIN)
    earlier, count = start, 0
    for tau in range(LAST + 4):
        batch = [fact for arrival, fact in case.arrivals if arrival == tau]
        answers = list(session.push(tau, batch))
        arrived |= {parse_printed_fact(fact) for fact in batch}
        truth = compute_hypothetical(program.temporal, query, arrived, delay, tau, DOMAIN)
        truth = {theta: entries for theta, entries in truth.items() if dict(theta).get("T", 0) in COMPARED}
        certain = {theta: entries[frozenset()] for theta, entries in truth.items() if frozenset() in entries}
        possible = {theta: entries for theta, entries in truth.items() if theta not in certain}
        new = {theta: evidence for theta, evidence in certain.items() if theta not in before}
        before |= dict(certain)
        hypothetical = session.hypothetical()
        _check_answers(answers, new, certain, tau, case)
        unsupported = [entry for entry in hypothetical if not entry.evidence]
        assert bool(options.get("unsupported")) or not unsupported
        _check_hypothetical(hypothetical, possible, certain, arrived, tau, case, bool(options.get("unsupported")))
        for entry in unsupported:
            _check_in_time(entry, tau, case)
        for entry in hypothetical:
            _check_shrunk(entry, start, arrived, case)
            _check_shrunk(entry, earlier, {parse_printed_fact(fact) for fact in batch}, case)
        earlier = truth
        count += len(answers) + len(hypothetical)
    assert not session.rejected, (session.rejected, str(case))
    return count


def _check_answers(
    given: list[SupportedAnswer],
    new: dict[AnswerValues, set[Support]],
    certain: dict[AnswerValues, set[Support]],
    tau: int,
    case: Case,
) -> None:
    assert all(entry.decided_by == tau and not entry.hypotheses for entry in given)
    found: dict[AnswerValues, set[Support]] = {}
    for entry in given:
        evidence = frozenset(map(parse_printed_fact, entry.evidence))
        for theta in _instances(entry, case):
            found.setdefault(theta, set())
            # An answer for all times may be known before at some of them, or have more evidence than they need.
            if "T" in _query_variables(case) and "T" not in entry.bindings and evidence not in new.get(theta, ()):
                assert any(less <= evidence for less in certain[theta]), (tau, entry, str(case))
            else:
                found[theta].add(evidence)
    assert {theta: sets for theta, sets in found.items() if sets} == new, (tau, found, new, str(case))
    texts = [(str(e.bindings), e.evidence) for e in given]
    assert len(set(texts)) == len(texts), (tau, "twice", texts, str(case))


def _instances(entry: SupportedAnswer, case: Case) -> list[AnswerValues]:
    """Return the bindings that an answer represents: an open variable represents all times."""
    missing = [name for name in _query_variables(case) if name not in entry.bindings]
    assert missing in ([], ["T"]), entry
    ways = [{**entry.bindings, **dict(zip(missing, way, strict=True))} for way in product(*[COMPARED] * len(missing))]
    return [tuple(sorted(way.items())) for way in ways if way.get("T", 0) in COMPARED]


def _check_hypothetical(
    given: list[SupportedAnswer],
    possible: dict[AnswerValues, dict[Support, set[Support]]],
    certain: dict[AnswerValues, set[Support]],
    arrived: set[Ground],
    tau: int,
    case: Case,
    unsupported: bool = False,
) -> None:
    due = {
        (theta, awaited, evidence)
        for theta, entries in possible.items()
        for awaited, sets in entries.items()
        for evidence in sets
        if evidence or unsupported
    }
    covered = set()
    for entry in given:
        instances = list(_ground_instances(entry, case))
        for theta, awaited, evidence in instances:
            # Some hypotheses of an instance of an open entry may have arrived, or be more than it needs.
            if any(tau >= fact[2] + delay_of(fact, case.delays) for fact in awaited):
                assert _open_names(entry, case), (tau, "too late", entry, str(case))
                continue
            if (theta, awaited, evidence) in due:
                covered.add((theta, awaited, evidence))
                continue
            assert _open_names(entry, case), (tau, "not by definition", entry, str(case))
            least = [frozenset()] if theta in certain else list(possible.get(theta, {}))
            assert any(some <= awaited - arrived for some in least), (tau, "unsound", entry, theta, awaited, str(case))
    assert covered == due, (tau, "missing", due - covered, str(case))
    texts = [(str(e.bindings), e.evidence, e.hypotheses) for e in given]
    assert len(set(texts)) == len(texts), (tau, "twice", str(case))


def _check_shrunk(
    entry: SupportedAnswer, before: dict[AnswerValues, dict[Support, set[Support]]], since: set[Ground], case: Case
) -> None:
    """Check that an entry awaits what an earlier hypothetical answer awaited, without the facts that arrived since
    (propositions 3 and 4)."""
    if not _open_names(entry, case):
        for theta, awaited, _ in _ground_instances(entry, case):
            assert any(some - since == awaited for some in before[theta]), (entry, str(case))


def _query_variables(case: Case) -> list[str]:
    return sorted(set(re.findall(r"\b[XYT]\b", case.query)))


def _open_names(entry: SupportedAnswer, case: Case) -> list[str]:
    found = re.findall(r"[(,]([A-Z_]\w*)", " ".join(entry.hypotheses))
    conditions = re.findall(r"\b[A-Z_]\w*", " ".join(entry.conditions))
    return sorted({*found, *conditions, *(name for name in _query_variables(case) if name not in entry.bindings)})


def _ground_instances(entry: SupportedAnswer, case: Case) -> list[tuple[AnswerValues, Support, Support]]:
    """Return all instances of an entry within the domain."""
    names = _open_names(entry, case)
    text = " ".join(entry.hypotheses)
    is_time = {name: name == "T" or bool(re.search(rf"[(,]{name}([+-]\d+)?\)", text)) for name in names}
    found = []
    evidence = frozenset(map(parse_printed_fact, entry.evidence))
    for values in product(*(DOMAIN.times if is_time[name] else DOMAIN.constants for name in names)):
        by: dict[str, object] = dict(zip(names, values, strict=True))
        awaited = [_instance(text, by) for text in entry.hypotheses]
        if all(fact[2] in DOMAIN.facts for fact in awaited) and all(
            _condition_holds(text, by) for text in entry.conditions
        ):
            theta = {name: entry.bindings.get(name, by.get(name)) for name in _query_variables(case)}
            if theta.get("T", 0) not in COMPARED:
                continue
            found.append((tuple(sorted(theta.items())), frozenset(awaited), evidence))
    return found


def _condition_holds(condition: str, by: dict[str, object]) -> bool:
    left, op, right = condition.split()
    if op == ">=":
        return int(str(by[left])) >= int(right)
    a, b = (str(by.get(part, part)) for part in (left, right))
    return {"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b}[op]


def _check_in_time(entry: SupportedAnswer, tau: int, case: Case) -> None:
    """Check that the conditions of an entry without evidence leave out facts that can no longer arrive."""
    for _, awaited, _ in _ground_instances(entry, case):
        for fact in awaited:
            longest = max(int(text.rpartition("=")[2]) for text in case.delays if text.startswith(fact[0]))
            assert tau < fact[2] + longest, (tau, entry, str(case))


def _instance(text: str, by: dict[str, object]) -> Ground:
    name, _, rest = text.partition("(")
    *args, time = rest.removesuffix(")").split(",")
    match = re.fullmatch(r"(\w+?)([+-]\d+)?", time)
    assert match is not None
    start = by[match[1]] if match[1] in by else int(match[1])
    assert isinstance(start, int)
    return name, tuple(by.get(arg, arg) for arg in args), start + int(match[2] or 0)  # type: ignore[misc]
