"""What is in a page, read back from its HTML, by the definitions and not by the code that wrote it."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from struct import unpack
from typing import Any

from tidelog.language.fact_text import format_fact, parse_fact
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import INF, Interval, Time

GIVEN, DERIVED, AWAITED, FROM_EVER, FOR_EVER = 1, 2, 4, 8, 16
_LETTERS = {"u1": ("B", 1), "u2": ("H", 2), "u4": ("I", 4), "i8": ("q", 8)}


def extract_data(html: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    found: dict[str, Any] = json.loads(text)
    return found


def numbers(column: dict[str, str]) -> list[int]:
    letter, size = _LETTERS[column["type"]]
    raw = b64decode(column["data"])
    return [number + int(column["base"]) for number in unpack(f"<{len(raw) // size}{letter}", raw)]


def interval(lo: int, hi: int, flags: int, denominator: int) -> Interval:
    left: Time = -INF if flags & FROM_EVER else Fraction(lo // 2, denominator)
    right: Time = INF if flags & FOR_EVER else Fraction((hi + 1) // 2, denominator)
    return Interval(left, right, left != -INF and lo % 2 == 0, right != INF and hi % 2 == 0)


@dataclass(frozen=True)
class Page:
    """A report: its facts, each with its kind and the parts of it that were given."""

    data: dict[str, Any]
    facts: list[Fact]
    kinds: list[int]
    parts: list[list[Interval]]

    @staticmethod
    def read(html: str | Path) -> Page:
        data = extract_data(html.read_text(encoding="utf-8") if isinstance(html, Path) else html)
        timeline = data["timeline"]
        atoms = read_atoms(timeline)
        facts, kinds = [], []
        for of, when, flags in read_spans(timeline["rows"], int(timeline["denominator"])):
            facts.append(Fact(*atoms[of], when))
            kinds.append(flags & (GIVEN | DERIVED | AWAITED))
        parts: list[list[Interval]] = [[] for _ in facts]
        for of, when, _ in read_spans(timeline["given"], int(timeline["denominator"])):
            parts[of].append(when)
        return Page(data, facts, kinds, parts)

    def lines(self, kind: int = GIVEN | DERIVED | AWAITED) -> list[str]:
        shown = zip(self.facts, self.kinds, strict=True)
        return [format_fact(fact, self.data["timeline"]["dates"]) for fact, own in shown if own & kind]

    def proof(self, row: int) -> tuple[str, ...] | None:
        """The rule of an interval and the facts that it follows from; None if the page has no proof of it."""
        proofs = self.data["proofs"]
        if proofs is None:
            return None
        roots = dict(zip(numbers(proofs["roots"]["row"]), numbers(proofs["roots"]["node"]), strict=True))
        if row not in roots:
            return None
        node = roots[row]
        firsts, below, below_facts = (numbers(proofs[name]) for name in ("conditions", "below", "facts"))
        rule = numbers(proofs["rule"])[node] - 1
        found = [
            self.node(fact)
            for condition in range(firsts[node], firsts[node + 1])
            for fact in below_facts[below[condition] : below[condition + 1]]
        ]
        return (self.data["rules"][rule] if rule >= 0 else proofs["words"][str(node)], *found)

    def node(self, node: int) -> str:
        """A fact of a proof."""
        proofs, timeline = self.data["proofs"], self.data["timeline"]
        of, when, _ = read_spans(proofs["nodes"], int(timeline["denominator"]))[node]
        if of == 0:
            return str(proofs["others"][str(node)])
        return format_fact(Fact(*read_atoms(timeline)[of - 1], when), timeline["dates"])


def read_spans(columns: dict[str, Any], denominator: int) -> list[tuple[int, Interval, int]]:
    rows = zip(*(numbers(columns[name]) for name in ("of", "lo", "hi", "flags")), strict=True)
    return [(of, interval(lo, hi, flags, denominator), flags) for of, lo, hi, flags in rows]


def read_atoms(timeline: dict[str, Any]) -> list[tuple[str, tuple[Any, ...]]]:
    args = iter(numbers(timeline["atoms"]["args"]))
    found = []
    for number in numbers(timeline["atoms"]["predicate"]):
        predicate = timeline["predicates"][number]
        texts = [timeline["constants"][next(args)] for _ in range(predicate["arity"])]
        fact, _ = parse_fact(f"P({','.join(texts)})" if texts else "P")
        found.append((predicate["name"], fact.args))
    return found
