"""Generate random propositional programs and data for tests of stable models."""

from __future__ import annotations

from random import Random

BACK = ("Diamondminus", "Boxminus")


def interval(rng: Random, most: int = 2) -> str:
    lo = rng.choice((0, 0, 1, 1, 2))
    if rng.random() < 0.15:
        return f"[{lo},inf)"
    return f"[{lo},{min(max(most, lo), lo + rng.choice((0, 0, 1, 2)))}]"


def formula(rng: Random, atoms: str, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.35:
        return rng.choice(atoms)
    if kind < 0.85:
        return f"{rng.choice(BACK)}{interval(rng)} {operand(rng, atoms, depth - 1)}"
    return f"{operand(rng, atoms, depth - 1)} Since{interval(rng)} {operand(rng, atoms, depth - 1)}"


def operand(rng: Random, atoms: str, depth: int) -> str:
    inner = formula(rng, atoms, depth)
    return f"({inner})" if "Since" in inner else inner


def rule(rng: Random, heads: str, atoms: str) -> str:
    body = []
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        depth = rng.choice((0, 1, 1, 1, 2))
        body.append(("not " if rng.random() < 0.45 else "") + formula(rng, atoms, depth))
    head = "Bottom" if rng.random() < 0.12 else rng.choice(heads)
    if head != "Bottom" and rng.random() < 0.12:
        head = f"Boxplus{interval(rng)} {head}"
    return f"{head} :- {', '.join(body)}."


def program(rng: Random, heads: str = "PQ", others: str = "E") -> str:
    return "\n".join(rule(rng, heads, heads + others) for _ in range(rng.choice((1, 2, 2, 3))))


def facts(rng: Random, atoms: str = "PQEE") -> str:
    found = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        lo = rng.randrange(2)
        kind = rng.random()
        if kind < 0.1:
            found.append(rng.choice(atoms))
        elif kind < 0.2:
            found.append(f"{rng.choice(atoms)}@[{lo},inf)")
        else:
            found.append(f"{rng.choice(atoms)}@[{lo},{lo + rng.randrange(2)}]")
    return "\n".join(found)


def generate_two_way_program(rng: Random) -> str:
    """Generate a program that looks back and ahead, in which each rule needs E at the time of its body."""
    # A choice, so that there is often more than one model.
    found = ["P :- not Q, E.", "Q :- not P, E."] if rng.random() < 0.5 else []
    for _ in range(rng.choice((1, 2, 3))):
        text = rule(rng, "PQ", "PQE").split("Boxplus")[-1]
        head, _, body = text[:-1].partition(" :- ")
        parts = body.split(", ")
        head = head.split()[-1]
        turned = [
            part.replace("minus", "plus").replace("Since", "Until") if rng.random() < 0.5 else part for part in parts
        ]
        found.append(f"{head} :- {', '.join(turned)}, E.")
    return "\n".join(found)
