"""Compile all parts of the engine ahead of time, into the cache on disk.

Kernels are compiled when they are first used, each for the types of its arguments. So `compile_engine` uses all of
them: it reasons over small data in every way that commands do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

_RULES = """
P(X) :- Q(X), Diamondminus[0,2] Q(X), not Boxminus[0,1] N(X).
R(X, Y) :- Q(X), E(X, Y), X < Y.
S(X) :- Q(X) Since[0,3] P(X).
S(X) :- Diamondminus[1,1] S(X).
T(X) :- Q(X), not Diamondminus[0,5] N(X), Boxplus[0,1] Q(X).
"""


def compile_engine() -> Iterator[str]:
    """Compile the engine part by part; yield the name of each part once it is compiled."""
    parts: dict[str, Callable[[], None]] = {
        "fact text and batch reasoning": _warm_batch,
        "streams": _warm_streams,
        "late facts, and states that are resumed": _warm_states,
        "CSV, JSON Lines and Parquet": _warm_tables,
        "bytes that pass between Spark's workers": _warm_wire_format,
    }
    for name, warm in parts.items():
        warm()
        yield name


def _make_text(count: int, dated: bool = False) -> str:
    def at(n: int) -> str:
        return f"2026-01-31T10:{n:02}:00Z" if dated else str(n)

    lines = (f"Q(x{n})@{at(n % 50)}\nE(x{n},{n + 1})\nN(x{n})@[{at(n % 50)},{at(n % 50 + 3)})\n" for n in range(count))
    return "".join(lines)


def _warm_batch() -> None:
    import tidelog as tl

    program = tl.Program.parse(_RULES)
    for count, dated in ((30_000, False), (100, True)):
        for ordered in (False, True):
            data = tl.Dataset.parse(_make_text(count, dated), ordered=ordered)
            model = tl.materialise(program, data, between=("0", "60") if not dated else None)
            for form in ("text", "jsonl"):
                for iso in (False, True):
                    model.render(form, iso=iso)
                    tl.materialise(program, tl.Dataset.parse("Q(a)@1/2\nQ(b)@[1,2)\nE(a,0.5)")).render(form, iso=iso)
    integer = tl.materialise(program, tl.Dataset.parse(_make_text(100)), timeline="integer")
    integer.render("text")
    tl.entails(program, tl.Dataset.parse(_make_text(100)), "P(x1)@1")


def _warm_streams() -> None:
    import tidelog as tl

    program = tl.Program.parse(_RULES)
    for query in ("S", "T", "P"):
        for at in (None, "input", "every:2"):
            for timeline in ("rational", "integer"):
                reasoner = tl.Reasoner(program, query, background=tl.Dataset.parse("E(a,2)"), at=at, timeline=timeline)
                for step in reasoner.feed(tl.Dataset.parse(_make_text(500), ordered=True)):
                    step.answers.render()
                reasoner.push(99, ["Q(a)"])
                reasoner.advance(100)
                reasoner.finish()


def _warm_states() -> None:
    import tidelog as tl

    program = tl.Program.parse(_RULES)
    for query in ("S", "T", "P"):
        reasoner = tl.Reasoner(program, query, delay="5s")
        text = "Q(a)@3\nN(a)@1\nQ(b)@9\nQ(a)@2\n"
        for step in reasoner.feed(tl.Dataset.parse(text, ordered=True)):
            step.answers.render()
        again = tl.Reasoner.load(reasoner.save())
        again.push(30, ["Q(a)@29"])
        tl.Reasoner.load(again.save()).finish(40)


def _warm_tables() -> None:
    import tidelog as tl

    with TemporaryDirectory() as folder:
        for name in ("time", "start"):
            ends = "time" if name == "time" else "start,end"
            for dated in (False, True):
                at = "2026-01-31T10:00:00Z" if dated else "7"
                cells = at if name == "time" else f"{at},{at}"
                csv = Path(folder) / f"Q{name}{dated}.csv"
                csv.write_text(f"x,n,{ends}\na,1,{cells}\nb,0.5,{cells}\n")
                keys = ends.split(",")
                values = ", ".join(f'"{key}": "{at}"' for key in keys)
                csv.with_suffix(".jsonl").write_text(f'{{"x": "a", "n": 1, {values}}}\n')
                data = tl.Dataset.load(str(csv), str(csv.with_suffix(".jsonl")))
                str(data)
                _write_parquet(csv, dated)
                str(tl.Dataset.load(str(csv.with_suffix(".parquet"))))


def _write_parquet(csv: Path, dated: bool) -> None:
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    parquet.write_table(arrow_csv.read_csv(csv), csv.with_suffix(".parquet"))


def _warm_wire_format() -> None:
    import tidelog as tl
    from tidelog.data import wire_format

    data = tl.Dataset.parse("Q(a)@1\nQ(b)@[2,3)\nE(a,b)\nE(b,7)@4\n")
    wire_format.to_dataset(map(wire_format.unpack, wire_format.pack_dataset(data)))
    wire_format.compute_buckets(data.symbols, 3)
    for relation in data.relations.values():
        list(wire_format.split_by_bucket(data.symbols, relation, 0, 3))
