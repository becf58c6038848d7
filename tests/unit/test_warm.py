"""All kernels are compiled in the background or by `tidelog warm`, and later commands compile nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kernel_ways import run_kernels
from locations import ROOT, SOURCES
from tidelog import warm
from tidelog.cache_folder import find_cache_folder
from tidelog.jit import background_compiler, compiled_cache

COMMANDS = (
    ("materialise", "rules.dmtl", "data.facts"),
    ("materialise", "rules.dmtl", "data.facts", "--format", "jsonl", "--timeline", "integer"),
    ("materialise", "rules.dmtl", "Q.csv"),
    ("materialise", "rules.dmtl", "Q.jsonl"),
    ("materialise", "rules.dmtl", "Q.parquet"),
    ("entails", "rules.dmtl", "data.facts", "A(a)@1"),
    ("stream", "rules.dmtl", "--query", "A", "--input", "data.facts", "--state", "a.state"),
    ("stream", "rules.dmtl", "--query", "A", "--input", "more.facts", "--state", "a.state"),
    ("stream", "rules.dmtl", "--query", "A", "--input", "data.facts", "--delay", "3", "--at", "input"),
)


def _run(folder: Path, *args: str, kernels: str = "compiled") -> tuple[str, str]:
    """Run a command with a cache of its own; return what it prints, and what it prints on standard error."""
    own = {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT / "src"), "TIDELOG_KERNELS": kernels}
    env = {name: value for name, value in os.environ.items() if name != "CI"} | own
    script = "from tidelog.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", script, *args], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with rules and data; the process that compiles into its cache ends with the test."""
    (tmp_path / "rules.dmtl").write_text("A(X) :- Q(X), not Diamondminus(0,2] Q(X).\n")
    (tmp_path / "data.facts").write_text("Q(a)@1\nQ(b)@[2,3]\nQ(a)@5\n")
    (tmp_path / "more.facts").write_text("Q(a)@9\n")
    (tmp_path / "Q.csv").write_text("x,time\na,1\nb,2\n")
    (tmp_path / "Q.jsonl").write_text('{"x": "a", "time": 1}\n')
    yield tmp_path
    lock = tmp_path / "cache" / "tidelog-compiling.lock"
    pids = [line for line in lock.read_text().splitlines() if line.isdigit()] if lock.exists() else []
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def _copy_compiled_kernels(cache: Path) -> None:
    """Copy the kernels that are compiled already: to compile all of them takes minutes, and `make kernels` does it."""
    from numba.core.caching import _CacheLocator

    locator: Any = _CacheLocator
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    for file in (Path(chosen) if chosen else SOURCES).rglob("*.nb[ci]"):
        name = file.parent.name if chosen else locator.get_suitable_cache_subpath(file.parent.parent / "x.py")
        (cache / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, cache / name)


@pytest.mark.slow
@pytest.mark.usefixtures("kernels")
def test_the_first_command_answers_and_compiles_everything_for_later_ones(folder: Path) -> None:
    from pyarrow import Table, parquet

    _copy_compiled_kernels(folder / "cache")
    missing = list((folder / "cache").rglob("scan_kernels.scatter-*.nbi"))
    for file in missing:
        file.unlink()
    parquet.write_table(Table.from_pydict({"x": ["a", "b"], "time": [1, 2]}), folder / "Q.parquet")
    answers, said = _run(folder, *COMMANDS[0], kernels="auto")
    assert answers.splitlines()[0] == "A(a)@1"
    assert "in the background" in said
    assert _run(folder, *COMMANDS[0], kernels="auto") == (answers, "")
    for _ in range(3000):
        if list((folder / "cache").glob("*.compiled")):
            break
        time.sleep(0.2)
    assert any(file.exists() for file in missing)
    for command in COMMANDS:
        assert _run(folder, *command)[1] == "", " ".join(command)
    assert "compiling" not in _run(folder, "warm")[1]


def test_warming_up_compiles_even_what_has_little_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreting it first would leave it uncompiled, and start a second process that compiles the same."""
    ways = []
    monkeypatch.setenv("TIDELOG_KERNELS", "auto")
    for name in [name for name in vars(warm) if name.startswith("_warm_")]:
        monkeypatch.setattr(warm, name, lambda: ways.append(os.environ["TIDELOG_KERNELS"]))
    monkeypatch.setattr(compiled_cache, "mark_complete", lambda _: None)
    assert len(list(warm.compile_engine())) == len(ways)
    assert set(ways) == {"compiled"}
    assert os.environ["TIDELOG_KERNELS"] == "auto"


def _make_frames() -> Iterator[Any]:
    """Make tables of every type of column."""
    import pyarrow as pa

    whole = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
    texts = [pa.string(), pa.large_string(), pa.string_view()]
    for type in (*whole, pa.float32(), pa.float64(), pa.decimal128(9, 2)):
        yield pa.table({"x": pa.array([1, 2, 100], type), "time": pa.array([1, 2, 3], type)})
    for type in whole:
        entries = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], type), ["a", "b"])
        yield pa.table({"x": pa.chunked_array([entries, entries[1:]]), "time": [1, 2, 3, 4, 5]})
        yield pa.table({"x": pa.array([1, 2, 100], type)[1:], "start": [1, 2], "end": [3, 4]})
    for type in texts:
        for values in (["a", "b"], ["1", "a text that is longer than a view holds"]):
            yield pa.table({"x": pa.array(values, type), "time": pa.array(["1", "1/3"], type)})
            yield pa.table(
                {"x": pa.array(values, type), "time": pa.array(["2026-01-31", "2026-01-31T10:00:00Z"], type)}
            )
    for unit in ("s", "ms", "us", "ns"):
        moments = pa.array([1, 2], pa.timestamp(unit, "Europe/Berlin"))
        yield pa.table({"x": moments, "time": moments})
    yield pa.table({"x": pa.array([1, 2], pa.date32()), "y": [True, False], "time": pa.array([1, 2], pa.date32())})


def test_warming_up_covers_dataframes_of_every_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled for the types of their arguments, and none may be left for the first call of a user."""
    from numba import typeof

    import tidelog as tl
    from tidelog.jit.kernel_functions import Kernel

    called: set[tuple[object, ...]] = set()
    call = Kernel.__call__

    def record(self: Kernel, *args: Any) -> Any:
        called.add((self.__module__, self.__name__, *map(typeof, args)))
        return call(self, *args)

    monkeypatch.setattr(Kernel, "__call__", record)
    with run_kernels("interpreted"):
        for warmed in (warm._warm_tables, warm._warm_frames):
            warmed()
        covered = frozenset(called)
        for frame in _make_frames():
            tl.Dataset.from_arrow({"Q": frame})
    assert called == covered


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, for the functions that look for it in this process."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    caches = (find_cache_folder, compiled_cache._find_mark)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()


def test_one_process_is_started_and_announced_once(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: started.append(command))
    assert not background_compiler.is_running()
    background_compiler.start()
    assert background_compiler.is_running()  # as good as: it has just been started
    background_compiler.start()
    assert [command[1:] for command in started] == [["-P", "-m", "tidelog.warm"]]
    assert capsys.readouterr().err.count("in the background") == 1


def test_no_process_is_started_where_one_runs_or_all_is_compiled(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: started.append(command))
    monkeypatch.setattr(os, "nice", lambda _: 0)
    lock = background_compiler.take_over()
    assert lock
    with lock:
        assert background_compiler.is_running()
        assert background_compiler.take_over() is None
        background_compiler.start()
    compiled_cache.mark_complete(["jit/interpreter.py"])
    assert compiled_cache.is_complete()
    assert background_compiler.take_over() is None
    background_compiler.start()
    assert not started


def test_a_changed_source_makes_the_cache_incomplete(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_cache / "module.py").write_text("x = 1\n")
    monkeypatch.setattr(compiled_cache, "_PACKAGE", own_cache)
    assert not compiled_cache.is_complete()
    compiled_cache.mark_complete(["module.py"])
    assert compiled_cache.is_complete()
    (own_cache / "module.py").write_text("x = 10\n")
    assert not compiled_cache.is_complete()


@pytest.mark.parametrize(
    ("name", "value"), [("CI", "true"), ("TIDELOG_BACKGROUND", "off"), ("PYTHON_WORKER_FACTORY_PORT", "4040")]
)
def test_where_no_process_may_be_started(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    assert background_compiler.is_allowed()
    monkeypatch.setenv(name, value)
    assert not background_compiler.is_allowed()
