"""Charts of the facts that streams hold and of step times: `make pictures` draws them into build/pictures.

They are the charts of the literature on stream reasoning with DatalogMTL: facts that arrive and facts held over time,
step times over time, and how the facts held grow with the density of the stream. The docs show some charts of generated
data, copied to docs/img; charts of real streams are not part of the project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

import streaming
from locations import ROOT, TRAFFIC_DATA
from run import CANDIDATES
from streaming import SCIENTISTS, SHORT_STOP, Query, Run, Series, run
from tidelog.generate import lubm

BUILD = ROOT / "build" / "pictures"
#: Colours that everybody can tell apart, also in print.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#7a4fa3")
SIZES = (250_000, 500_000, 750_000, 1_000_000)
DENSITIES = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Line:
    """One line of a chart; without a label, it is not in the legend. Dashed lines show numbers of other systems."""

    label: str
    x: Sequence[float] | Series
    y: Sequence[float] | Series
    colour: str | None = None
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One chart. Scales are linear from 0 unless `logarithmic`."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    logarithmic: bool = False
    marked: bool = False


@dataclass(frozen=True)
class Bar:
    """The bars of one kind, one per group. Hollow bars show numbers of other systems."""

    label: str
    values: Sequence[float]
    colour: str
    hollow: bool = False


@dataclass(frozen=True)
class BarPanel:
    """A chart of bars in groups, with their numbers, on a logarithmic scale."""

    title: str
    y: str
    groups: tuple[str, ...]
    bars: tuple[Bar, ...]


def draw(path: Path, *panels: Panel | BarPanel) -> None:
    """Draw panels side by side into a file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    width = sum(7.4 if isinstance(panel, BarPanel) else 5.4 for panel in panels)
    figure, axes = pyplot.subplots(1, len(panels), figsize=(width, 3.7), squeeze=False, layout="constrained")
    for panel, axis in zip(panels, axes[0], strict=True):
        axis.set_title(panel.title, loc="left", fontsize=10.5)
        axis.set_ylabel(panel.y)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
        axis.grid(axis="y", color="#dddddd", lw=0.7)
        axis.set_axisbelow(True)
        if isinstance(panel, BarPanel):
            _draw_bars(axis, panel)
        else:
            _draw_lines(axis, panel)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100, metadata={"Software": None})
    pyplot.close(figure)


def _draw_lines(axis: Any, panel: Panel) -> None:
    from matplotlib.ticker import EngFormatter

    for line, colour in zip(panel.lines, cycle(COLOURS)):
        axis.plot(
            line.x,
            line.y,
            label=line.label,
            color=line.colour or colour,
            lw=1.0 if line.dashed else 1.6,
            ls="--" if line.dashed else "-",
            marker="o" if panel.marked else None,
            ms=4,
        )
    axis.set_xlabel(panel.x)
    if panel.logarithmic:
        axis.set_xscale("log")
        axis.set_yscale("log")
    else:
        axis.margins(x=0.02, y=0.1)
        axis.set_ylim(bottom=0)
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.yaxis.set_major_formatter(EngFormatter(sep=""))
    if len(panel.lines) > 3:
        axis.legend(frameon=False, fontsize=9, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    elif len(panel.lines) > 1:
        axis.legend(frameon=False, fontsize=9)


def _draw_bars(axis: Any, panel: BarPanel) -> None:
    from matplotlib.ticker import EngFormatter

    width = 0.8 / len(panel.bars)
    places = np.arange(len(panel.groups))
    for number, bar in enumerate(panel.bars):
        left = places + (number - (len(panel.bars) - 1) / 2) * width
        drawn = axis.bar(
            left,
            bar.values,
            width * 0.9,
            label=bar.label,
            color="white" if bar.hollow else bar.colour,
            edgecolor=bar.colour,
            lw=1.2,
        )
        axis.bar_label(drawn, [f"{value:,.0f}" for value in bar.values], padding=2, fontsize=7, rotation=90)
    axis.set_yscale("log")
    highest = max(max(bar.values) for bar in panel.bars)
    # Room for the numbers on the bars and for the legend above them.
    axis.set_ylim(1, highest**1.5)
    axis.set_xticks(places, panel.groups)
    axis.yaxis.set_major_formatter(EngFormatter(sep=""))
    axis.legend(frameon=False, fontsize=8, ncols=2, loc="upper left")


def draw_universities(folder: Path) -> Iterator[Path]:
    """Draw the facts held over time, for a query without and one with recursion, as streams get denser."""
    plain = Query("\n".join(CANDIDATES), "AssociateProfessorCandidate", step=Fraction(1, 2))
    recursive = Query(SCIENTISTS, "Scientist", step=Fraction(1, 2))
    texts = {f"{count / 1e6:g} M facts": "\n".join(lubm.generate_facts(count)) for count in SIZES}
    panels = []
    for title, query in (("University data, not recursive", plain), ("University data, recursive", recursive)):
        found = {label: run(query, text, ordered=False) for label, text in texts.items()}
        lines = tuple(Line(label, one.clock, one.held) for label, one in reversed(found.items()))
        panels.append(Panel(title, "time in the stream", "facts held", lines))
    draw(folder / "university-held.png", *panels)
    yield folder / "university-held.png"


def draw_traffic(folder: Path, name: str, streams: dict[str, str]) -> Iterator[Path]:
    """Draw facts that arrive, facts held and step times for short stops."""
    query = Query(SHORT_STOP, "ShortStop", at="input")
    found = {label: run_steadily(query, text) for label, text in streams.items()}
    for what, title, y, series in (
        ("facts", "Facts that arrive", "facts per second", lambda one: one.arrived),
        ("held", "Facts held", "facts held", lambda one: one.held),
        ("steps", "Time of a step", "microseconds per step", lambda one: one.steps * 1e6),
    ):
        path = folder / f"{name}-{what}.png"
        draw(path, Panel(f"{title}, short stops", "seconds of the stream", y, build_lines(found, series)))
        yield path


def run_steadily(query: Query, text: str, repeats: int = 5) -> Run:
    """Run several times and keep the least time of each step: other work on the machine disturbs some."""
    runs = [run(query, text, ordered=True) for _ in range(repeats + 1)][1:]
    runs[0].steps = np.min([one.steps for one in runs], axis=0)
    return runs[0]


def build_lines(found: dict[str, Run], series: Callable[[Run], Series]) -> tuple[Line, ...]:
    return tuple(Line(label, one.clock, series(one)) for label, one in found.items())


def draw_density(folder: Path) -> Iterator[Path]:
    """Draw how the most facts held grow with the density of the stream, for both memory modes."""
    lines = []
    for memory in ("generic", "bounded"):
        most = [
            run(
                Query(streaming.NEAR, "Q", at="input", memory=memory), streaming.generate_readings(dense), True
            ).most_held
            for dense in DENSITIES
        ]
        lines.append(Line(f"--memory {memory}", DENSITIES, most))
    title = "20 sensors, a rule that looks back 3 seconds"
    path = folder / "density.png"
    draw(path, Panel(title, "readings per second and sensor", "most facts held", tuple(lines), True, True))
    yield path


def draw_soak(
    path: Path, facts: Sequence[float], megabytes: Sequence[float], steps: Mapping[str, Sequence[float]]
) -> None:
    """Draw the memory of the process and percentiles of step times over a long run."""
    x = "facts so far"
    draw(
        path,
        Panel("Memory of the process", x, "megabytes", (Line("memory", facts, megabytes),)),
        Panel("Time of a step", x, "microseconds", tuple(Line(label, facts, times) for label, times in steps.items())),
    )


def main() -> None:
    run(Query(SHORT_STOP, "ShortStop", at="input"), streaming.generate_traffic(5, 20), True)  # loads kernels
    generated = {f"{n} vehicles": streaming.generate_traffic(n) for n in (390, 115)}
    drawn = [draw_density(BUILD), draw_traffic(BUILD, "traffic", generated), draw_universities(BUILD)]
    real = {f"S{n}": TRAFFIC_DATA / f"traffic-S{n}.txt" for n in (2, 1)}
    if all(path.exists() for path in real.values()):
        texts = {label: path.read_text(encoding="utf-8") for label, path in real.items()}
        drawn.append(draw_traffic(BUILD, "real-traffic", texts))
    else:
        print("the real traffic streams are missing (set TIDELOG_DATA): no charts of them")
    for paths in drawn:
        for path in paths:
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
