"""Rows of the benchmark table about single questions to many facts: what they cost relative to the whole model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import hierarchies
import tidelog as tl
from table_rows import Row, measure

GOAL = "5 %"
REPEATS = 5


class Seconds(Protocol):
    """What a process took."""

    @property
    def cpu(self) -> float: ...
    @property
    def wall(self) -> float: ...


def measure_questions(rules: Path, facts: Path, time_process: Callable[[list[str]], Seconds]) -> Iterator[Row]:
    """Measure the model of all facts, and questions about one person in it: in memory, and in a fresh process."""
    program, data = tl.Program.load(rules), tl.Dataset.load(facts)
    count, about = len(data), f"{len(hierarchies.list_rules())} rules, "
    model, whole, wall = measure(partial(tl.materialise, program, data), 2)
    yield Row(f"{about}the whole model (facts in memory)", count, whole, wall, "100 %", "", f"{len(model):,} facts")
    senior = next(fact for fact in model if fact.predicate == "Senior")
    person = str(senior.args[0])
    del model
    query = f'Senior("{person}")'
    questions: dict[str, Callable[[], Any]] = {
        f"materialise {query}": partial(tl.materialise, program, data, query=query),
        f'materialise affiliatedWith("{person}", X)': partial(
            tl.materialise, program, data, query=f'affiliatedWith("{person}",X)'
        ),
        'materialise partOf(X, "ID5") in [100,110]': partial(
            tl.materialise, program, data, query='partOf(X,"ID5")', between=(100, 110)
        ),
        f"entails Senior({person})": partial(tl.entails, program, data, senior),
        f"explain Senior({person})": partial(tl.explain, program, data, senior),
        f"explain Busy({person}), which does not hold": partial(tl.explain, program, data, f'Busy("{person}")@1000'),
        f"explain Senior({person}), which does not hold": partial(tl.explain, program, data, f'Senior("{person}")@100'),
    }
    for what, ask in questions.items():
        ask()
        _, cpu, wall = measure(ask, REPEATS)
        yield Row(f"{about}{what}", count, cpu, wall, f"{cpu / whole:.1%}", GOAL, "of the whole model")
    _, answer, _ = measure(questions[f"materialise {query}"], REPEATS)
    files, start = [str(rules), str(facts)], ["-c", "from tidelog.cli.main import main; main()"]
    everything = time_process([*start, "materialise", *files, "-o", os.devnull, "--format", "facts"])
    process = f"{about}a fresh process: "
    yield Row(f"{process}materialise", count, everything.cpu, everything.wall, "100 %")
    asked = time_process([*start, "materialise", *files, "--query", query])
    note = f"nearly all to start and to read the facts; the answer takes {answer:.3f} s"
    share = f"{asked.cpu / everything.cpu:.0%}"
    yield Row(f"{process}materialise --query '{query}'", count, asked.cpu, asked.wall, share, "", note)
