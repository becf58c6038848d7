"""The IPython extension: cells of rules, completion of predicates, and the live view of a reasoner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import tidelog as tl

pytestmark = pytest.mark.usefixtures("kernels")

READINGS = {"sensor": ["t1", "t2"], "value": [85, 70], "time": [1, 2]}
HOT = "Hot(X) :- Diamondminus[0,5] Reading(X, V), V > 80."


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.chdir(tmp_path)
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "tidelog")
    shell.user_ns["frame"] = pl.DataFrame(READINGS)
    yield shell
    shell.run_line_magic("unload_ext", "tidelog")
    InteractiveShell.clear_instance()


def run(shell: Any, cell: str) -> tuple[Any, str]:
    """Run a cell; return its result and what it printed on standard error."""
    with capture_output() as captured:
        done = shell.run_cell(cell)
    return done, captured.stderr


def test_a_cell_of_rules_gives_a_model_with_timeline_and_table(shell: Any) -> None:
    done, _ = run(shell, f"%%tidelog Reading=frame\n{HOT}")
    assert str(done.result) == "Hot(t1)@[1,6]\n"
    html = done.result._repr_html_()
    assert "<svg" in html
    assert "<table>" in html


def test_variables_with_the_names_of_predicates_are_the_data(shell: Any) -> None:
    shell.user_ns |= {"Reading": shell.user_ns["frame"], "Hot": 7}
    assert str(run(shell, f"%%tidelog\n{HOT}")[0].result) == "Hot(t1)@[1,6]\n"


def test_options_of_a_cell(shell: Any) -> None:
    done, _ = run(shell, f"%%tidelog Reading=frame --query Reading --between 2,9 --to found\n{HOT}")
    assert done.result is None
    assert str(shell.user_ns["found"]) == "Reading(t2,70)@2\n"
    until, _ = run(shell, f"%%tidelog Reading=frame --until 3\n{HOT}")
    assert str(until.result) == "Hot(t1)@[1,3]\n"
    assert "--between" in shell.magics_manager.magics["cell"]["tidelog"].__doc__


def test_datasets_mappings_files_and_schemas_are_data(shell: Any, tmp_path: Path) -> None:
    shell.user_ns["facts"] = tl.Dataset.parse("Reading(t3,99)@7")
    shell.user_ns["tables"] = {"Reading": shell.user_ns["frame"]}
    done, _ = run(shell, f"%%tidelog facts tables\n{HOT}")
    assert str(done.result) == "Hot(t1)@[1,6]\nHot(t3)@[7,12]\n"
    (tmp_path / "readings.csv").write_text("id,v,at\n007,85,3\n")
    columns = 'columns = { id = "text", v = "number", at = "time" }\ntime = "at"\n'
    (tmp_path / "tidelog.toml").write_text(f"[schema.Reading]\n{columns}")
    done, _ = run(shell, f"%%tidelog Reading=readings.csv\n{HOT}")
    assert str(done.result) == 'Hot("007")@[3,8]\n'
    (tmp_path / "other.toml").write_text(f'[schema.Reading]\n{columns}unit = "s"\n')
    done, _ = run(shell, f"%%tidelog Reading=readings.csv --schema other.toml\n{HOT}")
    assert str(done.result).startswith('Hot("007")@[1970-01-01T00:00:03Z')


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%tidelog Reading=frame\nHot(X) :- Reading(Y, V).", "<cell>:1:5: error[TL101]"),
        ("%%tidelog Reading=nothing\nHot(X) :- Reading(X, V).", "no variable and no file `nothing`"),
        ("%%tidelog number\nHot(X) :- Reading(X, V).", "`number` is an object of type int"),
        ("%%tidelog Reading=frame --between 3\nHot(X) :- Reading(X, V).", "`--between 3` is not a range"),
        ("%%tidelog --wrong\nHot(X) :- Reading(X, V).", "unrecognized arguments"),
    ],
)
def test_a_mistake_is_an_error_without_a_traceback(shell: Any, cell: str, message: str) -> None:
    shell.user_ns["number"] = 7
    done, printed = run(shell, cell)
    assert not done.success
    assert message in printed
    assert "Traceback" not in printed


def test_a_cell_prints_warnings(shell: Any) -> None:
    _, printed = run(shell, "%%tidelog Reading=frame\nHot(X) :- Reding(X, V), Reading(X, V).")
    assert "<cell>:1:11: warning[TL112]: Reding has neither rules nor facts\n" in printed


def complete(shell: Any, cell: str) -> list[str]:
    with provisionalcompleter():
        return [found.text for found in shell.Completer.completions(cell, len(cell))]


def test_predicates_and_operators_are_completed(shell: Any) -> None:
    shell.user_ns |= {"Reader": shell.user_ns["frame"], "facts": tl.Dataset.parse("Ready(a)@1")}
    cell = "%%tidelog\nReduced(X) :- Reading(X, V), Alarm.\nHot(X) :- "
    assert complete(shell, f"{cell}Re") == ["Reader", "Reading", "Ready", "Reduced"]
    assert complete(shell, f"{cell}Al") == ["Alarm"]
    assert complete(shell, f"{cell}dia") == ["Diamondminus", "Diamondplus"]
    assert "Diamondminus" not in complete(shell, "Dia")


def test_an_extension_that_is_unloaded_leaves_nothing(shell: Any) -> None:
    shell.run_line_magic("unload_ext", "tidelog")
    assert "tidelog" not in shell.magics_manager.magics["cell"]
    assert complete(shell, "%%tidelog\nDia") == []
    shell.run_line_magic("load_ext", "tidelog")


def test_a_live_view_shows_what_holds_now_and_the_latest_answers(shell: Any) -> None:
    view = tl.notebook.LiveView(tl.Reasoner(tl.Program.parse(HOT), "Hot"), latest=2, every=0)
    with capture_output() as captured:
        view.show()
        for t in (0, 20, 40):
            view.push(t, [f"Reading(t{t},85)"])
        view.push(42, {"Reading": pl.DataFrame({"sensor": ["<b>"], "value": [99]})})
        view.advance(44)
    holding = ['holds now: Hot("<b>") since 42', "holds now: Hot(t40) since 40"]
    assert str(view).splitlines() == ["Hot at 44: 4 facts, 2 answers, 0 late", *holding]
    html = captured.outputs[-1].data["text/html"]
    assert html.index("&lt;b&gt;") < html.index("Hot(t40)") < html.index("Hot(t20)")
    assert '<b>"' not in html
    assert [answer.args for answer in view.finish()] == [("<b>",), ("t40",)]


def test_a_live_view_feeds_and_shows_dates() -> None:
    view = tl.notebook.LiveView(tl.Reasoner(tl.Program.parse(HOT), "Hot", at="input"))
    frame = pl.DataFrame({"sensor": ["t1"], "value": [85], "time": [1769853600]})
    frame = frame.with_columns(pl.from_epoch("time", time_unit="s"))
    steps = list(view.feed({"Reading": frame}))
    assert len(steps) == 1
    view.finish()
    assert str(view) == "Hot at 2026-01-31T10:00:00Z: 1 fact, 1 answer, 0 late"


def test_a_live_view_is_up_to_date_at_the_end_of_a_cell(shell: Any) -> None:
    shell.user_ns["view"] = tl.notebook.LiveView(tl.Reasoner(tl.Program.parse(HOT), "Hot"), every=3600)
    with capture_output() as captured:
        shell.run_cell("view.show()")
        shell.run_cell("view.push(0, ['Reading(a,85)']); view.push(1); view.push(2);")
    assert "Hot at 2: 1 fact" in captured.outputs[-1].data["text/html"]
