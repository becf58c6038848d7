"""The catalogue of diagnostics: complete, in step with the code and the documentation, with examples that are true."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import tidelog as tl
from locations import ROOT, SOURCES
from shell import Shell
from tidelog.diagnostics.catalogue import CATALOGUE, format_entry
from tidelog.diagnostics.entry import DiagnosticEntry
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.tokenizer import OPERATOR_WORDS
from tidelog.rule_tests.case_reader import SECTIONS, read_tests
from tidelog.spark.pipeline.pipeline_file import load_pipeline

pytestmark = pytest.mark.usefixtures("kernels")

RULES = "Alarm(X) :- Diamondminus[0,5] Smoke(X).\n"
FACTS = "Smoke(hall)@3\n"
PIPELINE = """
rules = "rules.dmtl"
query = "Alarm"
checkpoint = "checkpoint"

[sources.readings]
format = "json"
path = "readings"
schema = "room STRING, time BIGINT"
time = "time"

[facts]
Smoke = "SELECT room FROM readings"

[sinks.answers]
format = "json"
path = "answers"
"""


@pytest.fixture
def sh(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, capsys, monkeypatch)


def of_kind(*kinds: str) -> list[pytest.param]:  # type: ignore[valid-type]
    return [pytest.param(entry, id=entry.code) for entry in CATALOGUE.values() if entry.example.kind in kinds]


def test_every_code_that_is_used_is_in_the_catalogue() -> None:
    sources = [path for path in SOURCES.rglob("*.py") if "diagnostics" not in path.parts]
    used = {code for path in sources for code in re.findall(r'"(TL\d+)"', path.read_text(encoding="utf-8"))}
    assert used == CATALOGUE.keys()


def test_codes_are_in_order_and_titles_differ() -> None:
    assert list(CATALOGUE) == sorted(CATALOGUE)
    assert len({entry.title for entry in CATALOGUE.values()}) == len(CATALOGUE)


def test_every_code_is_documented_by_its_title() -> None:
    text = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| (TL\d{3}) \| (.*) \|$", text, re.MULTILINE)
    assert shown == [(entry.code, entry.title) for entry in CATALOGUE.values()]


def test_laws_list_what_the_code_accepts() -> None:
    for word in OPERATOR_WORDS.values():
        assert word in (CATALOGUE["TL004"].law or "")
    for word in SECTIONS:
        assert f"`{word}:`" in (CATALOGUE["TL901"].law or "")


def test_law_and_help_come_from_the_catalogue_unless_given() -> None:
    entry = CATALOGUE["TL301"]
    assert (Diagnostic("TL301", "m").law, Diagnostic("TL301", "m").help) == (entry.law, entry.help)
    own = Diagnostic("TL301", "m", law="mine", help="so")
    assert (own.law, own.help) == ("mine", "so")
    assert Diagnostic("TL001", "m").law is None


def codes(caught: pytest.ExceptionInfo[TidelogError]) -> set[str]:
    return {found.code for found in caught.value.diagnostics}


@pytest.mark.parametrize("entry", of_kind("dmtl", "tdl"))
def test_rule_examples_give_their_code(entry: DiagnosticEntry) -> None:
    syntax = entry.example.kind
    with pytest.raises(TidelogError) as caught:
        tl.materialise(tl.Program.parse(entry.example.text, syntax=syntax), tl.Dataset.parse(""))
    assert codes(caught) == {entry.code}
    tl.materialise(tl.Program.parse(entry.example.correction, syntax=syntax), tl.Dataset.parse(""))


@pytest.mark.parametrize("entry", of_kind("facts"))
def test_fact_examples_give_their_code(entry: DiagnosticEntry) -> None:
    with pytest.raises(TidelogError) as caught:
        tl.Dataset.parse(entry.example.text)
    assert codes(caught) == {entry.code}
    assert len(tl.Dataset.parse(entry.example.correction)) == 1


@pytest.mark.parametrize("entry", of_kind("csv"))
def test_table_examples_give_their_code(entry: DiagnosticEntry, tmp_path: Path) -> None:
    table = tmp_path / "Smoke.csv"
    table.write_text(entry.example.text)
    with pytest.raises(TidelogError) as caught:
        tl.Dataset.load(table)
    assert codes(caught) == {entry.code}
    table.write_text(entry.example.correction)
    assert len(tl.Dataset.load(table)) == 1


@pytest.mark.parametrize("entry", of_kind("pipeline"))
def test_pipeline_examples_give_their_code(entry: DiagnosticEntry, tmp_path: Path) -> None:
    (tmp_path / "rules.dmtl").write_text(RULES)
    file = tmp_path / "pipeline.toml"
    file.write_text(_with_keys(entry.example.text))
    with pytest.raises(TidelogError) as caught:
        load_pipeline(file)
    assert codes(caught) == {entry.code}
    file.write_text(_with_keys(entry.example.correction))
    load_pipeline(file)


def _with_keys(example: str) -> str:
    """Return a pipeline file in which the example stands instead of the keys or the table of the same name."""
    first = example.partition("\n")[0]
    if first.startswith("["):
        before, _, after = PIPELINE.partition(first + "\n")
        return f"{before}{example}\n\n{after.partition(chr(10) * 2)[2]}"
    key = first.partition(" ")[0]
    kept = [line for line in PIPELINE.splitlines() if not line.startswith(f"{key} ")]
    return "\n".join([example, *kept])


@pytest.mark.parametrize("entry", of_kind("test"))
def test_test_file_examples_give_their_code(entry: DiagnosticEntry, tmp_path: Path) -> None:
    (tmp_path / "rules.dmtl").write_text(RULES)
    file = tmp_path / "alarm.test"
    file.write_text(entry.example.text)
    with pytest.raises(TidelogError) as caught:
        list(read_tests(str(file)))
    assert codes(caught) == {entry.code}
    file.write_text(entry.example.correction)
    assert len(list(read_tests(str(file)))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("entry", of_kind("command"))
def test_command_examples_give_their_code(entry: DiagnosticEntry, sh: Shell) -> None:
    sh.write("rules.dmtl", RULES)
    sh.write("data.facts", FACTS)
    *preparations, command = entry.example.text.split("\n")
    for line in preparations:
        assert line.startswith("printf ")
        subprocess.run(line, shell=True, check=True, cwd=sh.folder)
    name, *args = shlex.split(command)
    ran = sh(*args)
    assert name == "tidelog"
    assert (ran.code, set(re.findall(r"error\[(TL\d+)\]", ran.err))) == (2, {entry.code})


def test_a_code_is_explained_in_any_letter_case(sh: Shell) -> None:
    ran = sh("explain-code", "tl101")
    assert ran.code == 0
    assert ran.out == format_entry(CATALOGUE["TL101"]) + "\n"
    assert "Alarm(X, Y) :- Smoke(X)." in ran.out


def test_a_code_is_explained_as_json(sh: Shell) -> None:
    found = json.loads(sh("explain-code", "TL301", "--json").out)
    assert (found["code"], found["title"], found["example"]["kind"]) == ("TL301", "negation in a cycle", "dmtl")


def test_an_unknown_code_is_refused_with_a_suggestion(sh: Shell) -> None:
    ran = sh("explain-code", "TL8O5")
    assert ran.code == 2
    assert "did you mean TL805?" in ran.err
    assert "the codes are TL001 to TL914" in sh("explain-code", "x").err


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=CATALOGUE.keys())
def test_every_entry_has_a_page(entry: DiagnosticEntry) -> None:
    page = format_entry(entry)
    assert page.startswith(f"{entry.code}: {entry.title}\n")
    assert entry.example.correction.split("\n")[0].split()[0] in page
