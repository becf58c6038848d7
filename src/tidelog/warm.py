"""Compile all parts of the engine ahead of time, into the cache on disk.

Kernels are compiled when they are first used, each for the types of its arguments. So `compile_engine` uses all of
them: it reasons over small data in every way that commands do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from tidelog.jit import background_compiler, compiled_cache, generated_cache
from tidelog.jit.kernel_functions import Kernel

_RULES = """
P(X) :- Q(X), Diamondminus[0,2] Q(X), not Boxminus[0,1] N(X).
R(X, Y) :- Q(X), E(X, Y), X < Y.
S(X) :- Q(X) Since[0,3] P(X).
S(X) :- Diamondminus[1,1] S(X).
T(X) :- Q(X), not Diamondminus[0,5] N(X), Boxplus[0,1] Q(X).
U(X) :- Diamondminus[0,1] P(X).
"""

_NUMBERS = """
Sum(X, V / 3 + 2) :- B(X, _), V = sum{ A : B(X, A) }.
Mean(X, V) :- B(X, _), V = avg[0,5]{ A : B(X, A) }.
Many(X) :- count[0,5]{ B(X, _) } >= 2, count{ distinct A : B(X, A) } < 9.
Least(X, V) :- B(X, _), V = min{ A : B(X, A) }.
Most(X, V) :- B(X, _), V = max[0,5]{ A : B(X, A) }.
First(X, V) :- B(X, _), V = first[0,5]{ A : B(X, A) }.
Last(X, V) :- B(X, _), V = last[0,inf){ A : B(X, A) }.
Long(X) :- duration[0,5]{ B(X, _) } >= 2.
Begun(X, T) :- B(X, _), T = start{ B(X, _) }.
Raised(X) :- B(X, A), A * 2 - 1 > 3, A mod 2 = 0, floor(A) <= 30, not Diamondminus[1,9] Raised(X).
"""


def compile_engine() -> Iterator[str]:
    """Compile the engine part by part; yield the name of each part once it is compiled."""
    parts: dict[str, Callable[[], None]] = {
        "fact text and batch reasoning": _warm_batch,
        "streams": _warm_streams,
        "numbers": _warm_numbers,
        "corrections": _warm_corrections,
        "late facts, and states that are resumed": _warm_states,
        "CSV, JSON Lines and Parquet": _warm_tables,
        "dataframes": _warm_frames,
        "bytes that pass between Spark's workers": _warm_wire_format,
    }
    with _compiled_from_the_start():
        for name, warm in parts.items():
            warm()
            yield name
    compiled_cache.mark_complete(_list_sources())


@contextmanager
def _compiled_from_the_start() -> Iterator[None]:
    """Let no kernel be interpreted, however little it has to do, and no second process compile the same kernels."""
    with _set_variables(TIDELOG_KERNELS="compiled", TIDELOG_JOINS="machine"):
        yield


@contextmanager
def _set_variables(**values: str) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _list_sources() -> list[str]:
    """List the modules that define kernels, as files of tidelog."""
    modules = {
        value.__module__
        for module in list(sys.modules.values())
        for value in vars(module).values()
        if isinstance(value, Kernel)
    }
    own = [name.split(".")[1:] for name in modules if name.startswith("tidelog.")]
    return sorted("/".join(path) + ".py" for path in own)


def _make_text(count: int, dated: bool = False) -> str:
    def at(n: int) -> str:
        return f"2026-01-31T10:{n:02}:00Z" if dated else str(n)

    lines = (f"Q(x{n})@{at(n % 50)}\nE(x{n},{n + 1})\nN(x{n})@[{at(n % 50)},{at(n % 50 + 3)})\n" for n in range(count))
    return "".join(lines)


def _warm_batch() -> None:
    import tidelog as tl

    program = tl.Program.parse(_RULES)
    for count, dated in ((3_000, False), (100, True)):
        for ordered in (False, True):
            data = tl.Dataset.parse(_make_text(count, dated), ordered=ordered)
            model = tl.materialise(program, data, between=("0", "60") if not dated else None)
            for form in ("text", "jsonl"):
                for iso in (False, True):
                    model.render(form, iso=iso)
                    tl.materialise(program, tl.Dataset.parse("Q(a)@1/2\nQ(b)@[1,2)\nE(a,0.5)\nN(a)@1min")).render(
                        form, iso=iso
                    )
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


def _warm_numbers() -> None:
    import tidelog as tl

    program = tl.Program.parse(_NUMBERS)
    lines = (f"B(x{n % 3},{n}/7)@{n}\nB(x{n % 3},{n + 1})@[{n},{n + 4})\n" for n in range(40))
    text = "".join(lines)
    tl.materialise(program, tl.Dataset.parse(text)).render()
    for predicate in sorted({rule.text.partition("(")[0] for rule in program.rules}):
        reasoner = tl.Reasoner(program, predicate)
        for step in reasoner.feed(tl.Dataset.parse(text, ordered=True)):
            step.answers.render()
        tl.Reasoner.load(reasoner.save()).finish()


def _warm_corrections() -> None:
    import tidelog as tl

    view = tl.View(tl.Program.parse(_RULES), _make_text(500))
    for number in range(3):
        facts = f"Q(x{number})@{number}/2\nQ(new{number})@7\nE(new{number},7)"
        view.update(insert=facts)
        view.update(delete=facts).added.render()


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


def _warm_frames() -> None:
    import pyarrow as pa

    import tidelog as tl

    texts = ["a", "a text that is longer than a view holds", "a"]
    for type in (pa.string(), pa.large_string(), pa.string_view()):
        tl.Dataset.from_arrow({"Q": pa.table({"x": pa.array(texts, type), "time": [1, 2, 3]})})
    for type in (pa.int32(), pa.uint32(), pa.int64()):
        numbers = pa.array([1, 2, 1], type)
        far = pa.array([1, 1 << 30, 5], type)
        words = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], type), pa.array(["a", "b"]))
        values = {"d": [0.5, 1.0, 2.0], "b": [True, False, True]}
        columns = {"n": numbers, "f": far, "w": words, **values, "time": pa.array([1, 2, 3], type)}
        model = tl.materialise(tl.Program.parse("P(W) :- Q(N, F, W, D, B)."), {"Q": pa.table(columns)})
        model.to_arrow()


def _warm_wire_format() -> None:
    import tidelog as tl
    from tidelog.data import wire_format

    data = tl.Dataset.parse("Q(a)@1\nQ(b)@[2,3)\nE(a,b)\nE(b,7)@4\n")
    wire_format.to_dataset(map(wire_format.unpack, wire_format.pack_dataset(data)))
    wire_format.compute_buckets(data.symbols, 3)
    for relation in data.relations.values():
        list(wire_format.split_by_bucket(data.symbols, relation, 0, 3))


def _compile_in_background() -> None:
    """Compile the engine in a process that `background_compiler` has started."""
    lock = background_compiler.take_over()
    if lock is not None:
        with lock:
            for _part in compile_engine():
                pass


def compile_joins(file: Path) -> None:
    """Compile the joins of a stream whose generated source is in a file, for the types of a small stream."""
    import tidelog as tl
    from tidelog.engine import stream_kernel
    from tidelog.engine.generated_kernel import make_take

    source = file.read_text(encoding="utf-8")
    with _compiled_from_the_start():
        reasoner = tl.Reasoner(tl.Program.parse("P(X) :- Q(X)."), "P")
        reasoner.push(0, ["Q(a)"])
    common, made = cast(Kernel, stream_kernel.take), cast(Kernel, make_take(source))
    for types in common.dispatcher.signatures:
        made.dispatcher.compile(types)
    generated_cache.mark_compiled(source)


if __name__ == "__main__":
    if sys.argv[1:]:
        os.nice(10)
        compile_joins(Path(sys.argv[1]))
    else:
        _compile_in_background()
