"""Compiles the engine into its cache, so that tests that run side by side find it there."""

from __future__ import annotations

import tidelog as tl

RULES = """
P(X) :- Q(X), Diamondminus[0,2] Q(X), not Boxminus[0,1] N(X).
R(X, Y) :- Q(X), E(X, Y), X < Y.
S(X) :- Q(X) Since[0,3] P(X).
S(X) :- Diamondminus[1,1] S(X).
"""


def facts(count: int) -> tl.Dataset:
    lines = (f"Q(x{n})@{n % 50}\nE(x{n},x{n + 1})\nN(x{n})@[{n % 50},{n % 50 + 3}]\n" for n in range(count))
    return tl.Dataset.parse("".join(lines), ordered=True)


def main() -> None:
    program = tl.Program.parse(RULES)
    for between in ((0, 60), None):
        model = tl.materialise(program, facts(30_000), between=between)
        for iso in (False, True):
            model.render("text", iso=iso)
            model.render("jsonl", iso=iso)
    tl.Dataset.load("examples/language/Installed.csv", "examples/language/door.facts")
    for at in (None, "input"):
        reasoner = tl.Reasoner(program, "S", background=tl.Dataset.parse("E(a,b)"), at=at)
        for step in reasoner.feed(facts(1_000)):
            step.answers.render()
        tl.Reasoner.load(reasoner.save()).finish()


if __name__ == "__main__":
    main()
