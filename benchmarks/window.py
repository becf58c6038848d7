"""How the time for exact windows grows with objects, radius and rules, and where it stops being practical.

    python benchmarks/window.py            a few minutes of CPU time
    python benchmarks/window.py --quick    the small sizes only

Every row is one search: the size of a state in bits, the windows found, and CPU seconds. A row that takes longer than
--limit seconds ends its series.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import tidelog as tl
from tidelog.windows.loss_search import SearchProgress

INTRUSION = (Path(__file__).parent.parent / "examples" / "intrusion" / "blacklist.tdl").read_text()


@dataclass(frozen=True)
class Case:
    size: int
    rules: str
    query: str
    objects: list[str]


def intrusion(sizes: Iterable[int]) -> Iterable[Case]:
    """The intrusion query over more and more nodes and levels."""
    for size in sizes:
        yield Case(size, INTRUSION, "Black", [f"o{i}" for i in range(1, size)] + ["max"])


def radius(sizes: Iterable[int]) -> Iterable[Case]:
    """A blacklist after N attacks in a row, which the grey list makes redundant."""
    for size in sizes:
        body = ", ".join(f"Attk(X, Y, T-{back})" for back in range(size + 1))
        longer = INTRUSION.replace(
            "Black(X, T+2)   :- Attk(X, Y, T), Attk(X, Y, T+1), Attk(X, Y, T+2).", f"Black(X, T) :- {body}."
        )
        yield Case(size, longer, "Black", ["a", "max"])


def kinds(sizes: Iterable[int]) -> Iterable[Case]:
    """N kinds of attack on one machine, of which three in a row are never needed."""
    for size in sizes:
        rules = ["Alarm(X, T+1) :- Alarm(X, T)."]
        for i in range(size):
            rules += [
                f"Attk{i}(X, T) :- Sig{i}(X, T-1), Sig{(i + 1) % size}(X, T).",
                f"Grey(X, T) :- Attk{i}(X, T).",
                f"Alarm(X, T) :- Grey(X, T), Sig{i}(X, T).",
                f"Alarm(X, T) :- Attk{i}(X, T), Attk{i}(X, T-1), Attk{i}(X, T-2).",
            ]
        yield Case(size, "\n".join(rules), "Alarm", ["a"])


def tokens(sizes: Iterable[int]) -> Iterable[Case]:
    """A loss after N steps: a token that has to be passed on through places."""
    for size in sizes:
        rules = [f"P{i + 1}(X, T+1) :- P{i}(X, T), Go(X, T+1)." for i in range(size)]
        rules += [
            "P0(X, T) :- In(X, T).",
            f"Out(X, T) :- P{size}(X, T), In(X, T).",
            f"Out(X, T) :- P{size}(X, T-2), Go(X, T).",
        ]
        yield Case(size, "\n".join(rules), "Out", ["a", "b"])


SERIES = {
    "objects": (intrusion, [2, 3, 4, 5, 6, 7, 8, 9], 4),
    "radius": (radius, [1, 2, 4, 8, 16, 32], 4),
    "rules": (kinds, [1, 2, 4, 8, 16, 32], 4),
    "steps": (tokens, [1, 2, 4, 8, 16, 32], 8),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the small sizes only")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one search")
    options = parser.parse_args()
    for name, (series, sizes, quick) in SERIES.items():
        print(f"{name}: {(series.__doc__ or '').strip()}")
        for case in series([size for size in sizes if not options.quick or size <= quick]):
            program = tl.Program.parse(case.rules, syntax="tdl")
            reports: list[SearchProgress] = []
            began = process_time()
            report = tl.window(program, case.query, case.objects, timeout=options.limit, progress=reports.append)
            seconds = process_time() - began
            bits = max((p.bits for p in reports), default=0)
            windows = f"radius {report.radius:2}, uniform {report.uniform:2}, exact {report.exact}"
            print(f"  {case.size:3}  {bits:4} bits  {windows:40} {seconds:8.2f} s", flush=True)
            if isinstance(report.exact, tuple):
                break


if __name__ == "__main__":
    main()
