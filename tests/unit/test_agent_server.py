"""`tidelog mcp` over its protocol: the official client, a real server process, and thirty conditions in plain words."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters

from locations import ROOT
from shell import start_command

pytestmark = pytest.mark.usefixtures("kernels")

CONDITIONS = ROOT / "tests" / "conditions"
NAMES = sorted(path.stem for path in CONDITIONS.glob("*.dmtl"))
COMMAND = "from tidelog.cli.main import main; main()"


class Agent:
    """A client of one server process; tools are called by name."""

    def __init__(self, portal: Any, client: Client) -> None:
        self._portal, self._client = portal, client

    def tools(self) -> list[Any]:
        found: list[Any] = self._portal.call(self._client.list_tools).tools
        return found

    def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        result = self._portal.call(self._client.call_tool, name, arguments)
        assert not result.is_error, result.content
        content: dict[str, Any] = result.structured_content
        return content

    def refusal(self, name: str, **arguments: Any) -> str:
        result = self._portal.call(self._client.call_tool, name, arguments)
        assert result.is_error, result.structured_content
        text: str = result.content[0].text
        return text


@contextmanager
def start_agent(*args: str) -> Iterator[Agent]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    server = StdioServerParameters(command=sys.executable, args=["-c", COMMAND, "mcp", *args], env=env)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:
        yield Agent(portal, client)


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    with start_agent(str(CONDITIONS), "--seconds", "300") as agent:
        yield agent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that may be read, beside one that may not."""
    top = tmp_path_factory.mktemp("agent")
    inside, outside, reports = top / "inside", top / "outside", top / "reports"
    for made in (inside, outside, reports, inside / "linked_schema", inside / "tests"):
        made.mkdir()
    (inside / "hot.dmtl").write_text("Hot(T) :- Reading(T, C), C > 80.\n")
    (inside / "Reading.csv").write_text("turbine,celsius,time\nt1,84,10\nt2,70,10\n")
    (inside / "events.jsonl").write_text('{"who": "ann", "at": "2026-01-31T10:00:00Z"}\n')
    (outside / "secret.dmtl").write_text("Secret(X) :- Key(X).\n")
    (outside / "secret.facts").write_text("Key(k1)@0\n")
    (inside / "link.dmtl").symlink_to(outside / "secret.dmtl")
    (inside / "away").symlink_to(outside)
    (inside / "Also.csv").symlink_to(inside / "Reading.csv")
    (inside / "linked_schema" / "hot.dmtl").write_text("Hot(T) :- Reading(T, C), C > 80.\n")
    (inside / "linked_schema" / "tidelog.toml").symlink_to(outside / "secret.facts")
    test = "test: x\nexpect: Hot(t1)@10\n"
    (inside / "tests" / "rules.test").write_text(f"rules: ../../outside/secret.dmtl\n{test}")
    (inside / "tests" / "given.test").write_text(f"rules: ../hot.dmtl\ngiven: ../../outside/secret.facts\n{test}")
    (inside / "tests" / "named.test").write_text(f"rules: ../hot.dmtl\ngiven: Reading=../away/secret.facts\n{test}")
    os.mkfifo(inside / "pipe.facts")
    return top


@pytest.fixture(scope="module")
def guarded(folder: Path) -> Iterator[Agent]:
    with start_agent(
        str(folder / "inside"), "--reports", str(folder / "reports"), "--max-input", "1", "--seconds", "300"
    ) as agent:
        yield agent


def test_there_are_thirty_conditions() -> None:
    assert len(NAMES) == 30


@pytest.mark.parametrize("name", NAMES)
def test_a_condition_in_plain_words_is_checked_and_its_tests_pass(agent: Agent, name: str) -> None:
    sentence = (CONDITIONS / f"{name}.dmtl").read_text().partition("\n")[0]
    assert sentence.startswith("% ")
    assert sentence.endswith(".")
    checked = agent("check", rules=f"{name}.dmtl")
    assert (checked["valid"], checked["warnings"]) == (True, "")
    tested = agent("test", paths=[f"{name}.test"])
    assert tested["failed"] == 0
    assert tested["passed"] >= 1
    assert all(outcome["streamed"] for outcome in tested["tests"])


def test_a_broken_condition_fails_with_the_reason(guarded: Agent, folder: Path) -> None:
    """The tests of the conditions can fail: the same test with another limit does."""
    text = (CONDITIONS / "silent_device.dmtl").read_text().replace("5min", "6min")
    (folder / "inside" / "silent_device.dmtl").write_text(text)
    (folder / "inside" / "silent_device.test").write_text((CONDITIONS / "silent_device.test").read_text())
    tested = guarded("test", paths=["silent_device.test"])
    assert (tested["passed"], tested["failed"]) == (1, 1)
    assert "Silent(d1)" in tested["tests"][0]["wrong"][0]["reason"]


def test_the_tools_say_what_they_do(agent: Agent) -> None:
    tools = {tool.name: tool for tool in agent.tools()}
    assert set(tools) == {"check", "infer_schema", "run", "test", "explain", "report"}
    assert {name for name, tool in tools.items() if not tool.annotations.read_only_hint} == {"report"}
    assert all(tool.description for tool in tools.values())


def test_mistakes_in_rules_are_an_answer(agent: Agent) -> None:
    checked = agent("check", rules_text="Hot(X) :- Diamonminus[0,5] High(X).")
    assert not checked["valid"]
    assert "did you mean Diamondminus?" in checked["errors"]
    unordered = agent("check", rules_text="P(X) :- Q(X), not P(X).")
    assert not unordered["valid"]
    assert unordered["report"]["problems"]
    assert "TL111" in agent("check", rules_text="P(X) :- Q(X, Y).")["warnings"]


def test_rules_run_over_files_and_answers_are_explained(guarded: Agent) -> None:
    ran = guarded("run", rules="hot.dmtl", data=["Reading.csv"], queries=["Hot"])
    assert (ran["facts"], ran["count"]) == ("Hot(t1)@10\n", 1)
    rules = "Warm(T) :- Reading(T, C), C > 60."
    assert guarded("run", rules_text=rules, data=["Reading.csv"], until="20")["count"] == 2
    assert guarded("run", rules_text="W(T) :- Also(T, _).", data=["Also.csv"], queries=["W"])["count"] == 2
    why = guarded("explain", rules="hot.dmtl", data=["Reading.csv"], fact="Hot(t1)@10")
    assert why["answer"] == "yes"
    assert "84 > 80" in why["explanation"]
    assert guarded("explain", rules="hot.dmtl", data=["Reading.csv"], fact="Hot(t2)@10")["answer"] == "no"
    assert "TL" in guarded.refusal("explain", rules="hot.dmtl", data=["Reading.csv"], fact="Hot(t2@10")


def test_an_argument_with_a_wrong_name_is_refused(guarded: Agent) -> None:
    refusal = guarded.refusal("run", rules_text="A :- B.", data=[], query="A")
    assert "run has no argument query; its arguments are data, rules, rules_text, queries and until" in refusal


def test_a_schema_is_inferred(guarded: Agent) -> None:
    schema = guarded("infer_schema", data=["events.jsonl"])["schema"]
    assert 'time = "at"' in schema


def test_a_report_is_written_into_its_folder_only(guarded: Agent, agent: Agent, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    written = guarded("report", rules="hot.dmtl", data=["Reading.csv"], output="hot.html")
    page = folder / "reports" / "hot.html"
    assert written["file"] == str(page)
    assert page.read_text().startswith("<!")
    assert sorted(folder.rglob("*")) == sorted([*before, page])
    (folder / "reports" / "linked.html").symlink_to(folder / "inside" / "hot.dmtl")
    for name in ("../hot.html", "hot.dmtl", "/tmp/hot.html", ".html", "-x.html", "linked.html"):
        assert "TL914" in guarded.refusal("report", rules="hot.dmtl", data=["Reading.csv"], output=name)
    assert "--reports" in agent.refusal("report", rules="online.dmtl", data=["x"], output="x.html")


@pytest.mark.parametrize(
    "path", ["../outside/secret.dmtl", "link.dmtl", "away/secret.dmtl", "/etc/passwd", "-", "", "away/../../outside"]
)
def test_rules_outside_the_folder_are_refused(guarded: Agent, path: str) -> None:
    assert "TL914" in guarded.refusal("check", rules=path)
    assert "TL914" in guarded.refusal("run", rules=path, data=["Reading.csv"])


@pytest.mark.parametrize(
    "path", ["../outside/secret.facts", "away/secret.facts", "Key=/etc/passwd", "-.csv", "Key=-.csv"]
)
def test_data_outside_the_folder_is_refused(guarded: Agent, path: str) -> None:
    assert "TL914" in guarded.refusal("run", rules="hot.dmtl", data=[path])
    assert "TL914" in guarded.refusal("explain", rules="hot.dmtl", data=[path], fact="Hot(t1)@1")
    assert "TL914" in guarded.refusal("infer_schema", data=[path])


@pytest.mark.parametrize("name", ["rules", "given", "named"])
def test_a_test_cannot_reach_files_outside(guarded: Agent, name: str) -> None:
    refused = guarded.refusal("test", paths=[f"tests/{name}.test"])
    assert "TL914" in refused
    assert "k1" not in refused
    assert "TL914" in guarded.refusal("test", paths=["tests"])


def test_schemas_pipes_and_options_are_no_way_out(guarded: Agent) -> None:
    assert "TL914" in guarded.refusal("run", rules="linked_schema/hot.dmtl", data=["Reading.csv"])
    assert "is not a file" in guarded.refusal("run", rules="hot.dmtl", data=["pipe.facts"])
    assert "TL010" in guarded.refusal("run", rules="missing.dmtl", data=["Reading.csv"])
    refused = guarded.refusal("explain", rules="hot.dmtl", data=["Reading.csv"], fact="--schema=/etc/passwd")
    assert "root:" not in refused
    assert "TL914" in guarded.refusal("check", rules="hot.dmtl", rules_text="A :- B.")


def test_large_files_and_outputs_are_cut(guarded: Agent, folder: Path) -> None:
    (folder / "inside" / "large.facts").write_text("Reading(t1,90)@1\n" * 70_000)
    assert "TL913" in guarded.refusal("run", rules="hot.dmtl", data=["large.facts"])
    (folder / "inside" / "many.facts").write_text("".join(f"Reading(turbine{n},90)@{n}\n" for n in range(5_000)))
    ran = guarded("run", rules="hot.dmtl", data=["many.facts"], queries=["Hot"])
    assert ran["count"] == 5_000
    assert len(ran["facts"]) < 51_000
    assert ran["facts"].rstrip().splitlines()[-1].startswith("... ")


@pytest.mark.slow
def test_a_call_that_takes_too_long_is_stopped_and_the_next_one_works(folder: Path) -> None:
    endless = "Q :- N(X), N(Y), N(Z), N(W), X > Y, Y > Z, Z > W, W > X."
    (folder / "inside" / "one.facts").write_text("".join(f"N({i})@0\n" for i in range(2000)))
    with start_agent(str(folder / "inside"), "--seconds", "8") as agent:
        assert "more than 8 s" in agent.refusal("run", rules_text=endless, data=["one.facts"])
        assert agent("check", rules="hot.dmtl")["valid"]


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ImportError('not here')\n")
    process = start_command(tmp_path, "mcp", ".")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, b"")
    assert b"pip install 'tidelog[mcp]'" in err
