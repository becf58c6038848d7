"""Run every command and example of the README and the documentation, and compare their output.

Every `console` block is a session in a copy of the project's folder, where new files do no harm. Each `$ command` is
run by a shell and must print the text that follows it, on standard output and standard error together. Every `pycon`
block is a doctest; blocks of one page share their names. `dmtl`, `tdl` and `facts` blocks must parse.
"""

from __future__ import annotations

import doctest
import inspect
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tidelog as tl
from locations import ROOT
from shell import drop_compilation_notice
from tidelog.data.dataset import Dataset
from tidelog.language.program import Program

pytestmark = pytest.mark.usefixtures("kernels")

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
NAMES = [str(page.relative_to(ROOT).with_suffix("")) for page in PAGES]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def find_blocks(page: Path, kind: str) -> list[str]:
    return [body for block_kind, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if block_kind == kind]


def split_commands(session: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def collect_sessions() -> Iterator[object]:
    for page, name in zip(PAGES, NAMES, strict=True):
        for number, session in enumerate(find_blocks(page, "console")):
            yield pytest.param(session, id=f"{name}-{number}")


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment in which `tidelog` is this checkout's command, with this interpreter."""
    command = tmp_path / "tidelog"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from tidelog.cli.main import main; main()" "$@"\n')
    command.chmod(0o755)
    paths = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    # As for users: small tasks are interpreted. Other tests need no second compiler beside them.
    kernels = {"TIDELOG_KERNELS": "auto", "TIDELOG_BACKGROUND": "off"}
    return {**os.environ, **paths, **kernels, "COLUMNS": "100"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which everything of the project's folder can be read."""
    made = tmp_path / "project"
    made.mkdir()
    for entry in ROOT.iterdir():
        (made / entry.name).symlink_to(entry)
    return made


@pytest.mark.parametrize("session", list(collect_sessions()))
def test_sessions_print_what_the_page_shows(session: str, shell: dict[str, str], folder: Path) -> None:
    for command, expected in split_commands(session):
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=shell, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600
        )
        assert drop_compilation_notice(done.stdout).decode() == expected, command


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python_examples_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = "\n".join(find_blocks(page, "pycon"))
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(verbose=False)
    report: list[str] = []
    runner.run(examples, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_programs_and_facts_parse(page: Path) -> None:
    for kind in ("dmtl", "tdl"):
        for text in find_blocks(page, kind):
            program = Program.parse(text, syntax=kind, source=page.name)
            assert program.rules
            again = Program.parse(str(program), syntax=kind, source=page.name)
            assert str(again) == str(program)
    for text in find_blocks(page, "facts"):
        assert len(Dataset.parse(text, source=page.name)) > 0


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r": (\S+\.md)$", nav, re.MULTILINE)
    others = [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    assert sorted(listed) == sorted(str(page.relative_to(ROOT)) for page in [*PAGES, *others])


def test_every_public_name_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^::: tidelog\.(?:\w+\.)*(\w+)$", text, re.MULTILINE))
    spaces = [tl.analysis, tl.hypothetical, tl.proofs, tl.stable, tl.streaming, tl.windows, tl.testing]
    public = {name for space in spaces for name in space.__all__}
    public |= {name for name in tl.__all__ if not inspect.ismodule(getattr(tl, name))}
    assert public <= shown


def test_the_grammars_are_those_of_the_parser() -> None:
    shown = find_blocks(ROOT / "docs" / "reference" / "grammar.md", "lark")
    language = ROOT / "src" / "tidelog" / "language"
    assert shown == [(language / name).read_text(encoding="utf-8") for name in ("grammar.lark", "tdl.lark")]


def test_drawings_show_what_the_rules_give() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "draw.py"))["draw_all"]()
    for name, text in drawn.items():
        assert (ROOT / "docs" / "img" / name).read_text(encoding="utf-8") == text, f"{name}: run `make drawings`"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
