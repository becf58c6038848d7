"""Random programs with numbers, at the limits of what a cluster splits: groups that are keys, that are not, and none.

Rules are text. Every program has rules `H`, with aggregates or arithmetic, and rules that read them; facts are few and
collide often, so that a group in two buckets, or an empty one, makes a difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hypothesis import strategies as st

import tidelog as tl
from tidelog.language.syntax import Fact, Value
from tidelog.timeline.interval import Interval

_BODIES = (
    "P({k},X,V)",
    "P({k},X,V), Q({k},X)",
    "P({k},X,V), Q(J,X)",
    "P({k},X,V), R(X)",
    "P({k},X,V), not R(X)",
    "P({k},X,V), not Q({k},X)",
    "P({k},X,V), V > 1",
    "Diamondminus[0,2] P({k},X,V)",
    "Q({k},X) Since[0,4] P({k},X,V)",
    "Q({k},X), P(J,X,V), J = {k}",
)
_RANGES = ("", "", "", "[0,2]", "(0,3]", "[1,4)", "[0,inf)")
_VALUED = ("sum", "min", "max", "avg", "sum distinct", "min distinct")
_WINDOWED = ("last", "first")
_RULES = (
    "{h}(K,N) :- N = {of_k}.",
    "{h}(K,N) :- E(K), N = {of_k}.",
    "{h}(K,N) :- E(K), N = {of_all}.",
    "{h}(K,N) :- E(K), N = {of_k} + {of_all}.",
    "{h}(K,N) :- E(K), {of_k} >= {of_k2}, N = {of_k}.",
    "{h}(K,N) :- Q(K,N), not R(N), {of_k} <= 2.",
    "{h}(X,N) :- R(X), N = {of_all} * 2.",
    "{h}(N,N) :- N = {of_all}.",
    "{h}(N,1) :- E(K), N = {of_k}.",
    "{h}(N,2) :- P(K,X,V), N = V * 2 + 1.",
    "{h}(K,V + 1) :- P(K,X,V), Q(K,X).",
    "{h}(K,V) :- P(K,_,V), duration[0,4]{{ Q(K,_) }} >= 1.",
    "{h}(K,S) :- S = start{{ Q(K,X) }}, E(K).",
    "{h}(M,K) :- N = {of_k}, M = N mod 3, E(K).",
)
_ABOVE = (
    "G(N) :- {h}(K,N), R(N).",
    "G(M) :- M = sum{{ N : {h}(K,N) }}.",
    "G(M) :- M = count[0,3]{{ {h}(K,N), E(K) }}.",
    "G(K) :- {h}(K,N), N > {of_all}.",
    "G(K) :- E(K), not {h}(K,1).",
    "G :- E(K), {of_k} > 1, {h}(K,_).",
    "Bottom :- {h}(K,N), {of_k} > 90.",
    "Bottom :- min{{ V : P(K,X,V) }} > 2, {h}(_,_).",
)


@dataclass(frozen=True)
class NumericCase:
    rules: str
    facts: tuple[Fact, ...]

    @property
    def program(self) -> tl.Program:
        return tl.Program.parse(self.rules)


@st.composite
def _aggregate(draw: st.DrawFn, key: str) -> str:
    """An aggregate whose group is the key; without a group if the key is a local variable or a constant."""
    body = draw(st.sampled_from(_BODIES)).format(k=key)
    function = draw(st.sampled_from(("count", "count", "count distinct", *_VALUED, *_WINDOWED)))
    ranges = draw(st.sampled_from(_RANGES)) or ("[0,3]" if function in _WINDOWED else "")
    name, _, distinct = function.partition(" ")
    value = "" if function == "count" else draw(st.sampled_from(("X", "V", "V"))) if name == "count" else "V"
    if name in ("sum", "max", "last") and not distinct:
        value = draw(st.sampled_from(("V", "V * 2", "V + X")))
    return f"{name}{ranges}{{ {distinct} {value} {':' if value else ''} {body} }}"


@st.composite
def numeric_cases(draw: st.DrawFn) -> NumericCase:
    rules: list[str] = []

    def add(form: str, head: str) -> None:
        of_all = draw(_aggregate(draw(st.sampled_from(("L", "L", "L", "k1")))))
        rules.append(form.format(h=head, of_k=draw(_aggregate("K")), of_k2=draw(_aggregate("K")), of_all=of_all))

    heads = [f"H{i}" for i in range(draw(st.integers(1, 2)))]
    for head in heads:
        for _ in range(draw(st.integers(1, 2))):
            add(draw(st.sampled_from(_RULES)), head)
    add(draw(st.sampled_from(_ABOVE)), draw(st.sampled_from(heads)))
    keys: st.SearchStrategy[Value] = st.sampled_from(("k1", "k2", "k3", Fraction(1)))
    items: st.SearchStrategy[Value] = st.sampled_from((Fraction(1), Fraction(2), "x"))
    values: st.SearchStrategy[Value] = st.sampled_from((Fraction(1), Fraction(2), Fraction(1, 2), Fraction(-3), "t"))
    times = st.integers(0, 8).map(Fraction)
    facts: list[Fact] = []
    columns: dict[str, tuple[st.SearchStrategy[Value], ...]] = {
        "P": (keys, items, values),
        "Q": (keys, items),
        "R": (items,),
        "E": (keys,),
    }
    for name, count in (("P", 6), ("P", 3), ("Q", 3), ("R", 2), ("E", 3)):
        for _ in range(draw(st.integers(1, count))):
            start, length = draw(times), draw(st.sampled_from((0, 0, 1, 3)))
            closed = length == 0 or draw(st.booleans())
            interval = Interval(start, start + length, True, closed)
            facts.append(Fact(name, tuple(draw(column) for column in columns[name]), interval))
    return NumericCase("\n".join(rules), tuple(dict.fromkeys(facts)))
