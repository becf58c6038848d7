"""`tidelog lsp` over its protocol: a real server process, and messages as editors send them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tidelog as tl
from language_client import LanguageClient
from locations import ROOT
from tidelog.check_report import check
from tidelog.language.calendar_predicates import CALENDAR_UNITS
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.validation import rule_atoms
from tidelog.language_server.completion import CALENDAR_TEXTS
from tidelog.language_server.occurrences import find_kind, find_occurrences
from tidelog.language_server.project import Project
from tidelog.language_server.rename import apply_edits, rename_at

pytestmark = pytest.mark.usefixtures("kernels")

RULES = """\
% A reading above 80 degrees is hot.
Hot(T) :- Reading(T, C), C > 80.

% A turbine is overheated once it has been hot for 30 seconds.
Overheated(T) :- Boxminus[0,30s] Hot(T), not Diamondminus[0,1h] Quiet.
Quiet :- Maintenance.
"""
TESTS = """\
given:
  Reading(t1, 90)@[0,60]
  Maintenance@100
test: half a minute
expect only:
  Overheated(t1)@[30,60]
test: too early
expect:
  Overheated(t1)@10
until: 70
"""
SCHEMA = """\
[schema.Reading]
file = "data.csv"
columns = { turbine = "text", celsius = "number", at = "time" }
time = "at"

[schema.Spare]
file = "spare.csv"
columns = { turbine = "text", at = "time" }
time = "at"
"""
OTHER = "Cold(T) :- Reading(T, C), C < 0.\nReserve(T) :- Spare(T).\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rules")
    (made / "turbines.dmtl").write_text(RULES)
    (made / "turbines.test").write_text(TESTS)
    (made / "tidelog.toml").write_text(SCHEMA)
    (made / "other.dmtl").write_text(OTHER)
    (made / "spare.csv").write_text("turbine,at\nt9,17\n")
    (made / "away").mkdir()
    (made / "away" / "far.test").write_text(
        "rules: ../turbines.dmtl\ngiven: more.facts\ntest: far\nexpect not: Hot(t1)@1\n"
    )
    (made / "away" / "more.facts").write_text("Reading(t2,70)@5\n")
    return made


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[LanguageClient]:
    client = LanguageClient(folder)
    for name in ("turbines.dmtl", "turbines.test"):
        assert client.open(name) == []
    yield client
    client.close()


def find(text: str, part: str) -> tuple[int, int]:
    """The line and the column at which a part of a text begins."""
    before = text[: text.index(part)]
    return before.count("\n"), len(before) - before.rfind("\n") - 1


def places(locations: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return sorted(
        (found["uri"].rpartition("/")[2], found["range"]["start"]["line"], found["range"]["start"]["character"])
        for found in locations
    )


BAD_TEXTS = [
    "A(X) :- B(X), .\nC(X, Y) :- D(X).\nE(X) :- Diamonminus[0,5] D(X).",
    "A(X) :- B(X, Z).",
    "P(X) :- Q(X), not P(X).",
    "A(X) :- B(X).\nA(X, Y) :- C(X, Y).",
    'A("🚢", Y) :- B(Z, Z).',
    "",
    "Fine(X) :- Boxminus[0,2] High(X).",
]


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_the_diagnostics_are_those_of_check(client: LanguageClient, text: str) -> None:
    name = "typed.dmtl"
    path = client.folder / name
    shown = client.open(name, text)
    client.notify("textDocument/didClose", {"textDocument": {"uri": client.uri(name)}})
    assert client.diagnostics(name) == []
    try:
        report = check(tl.Program.parse(text, source=str(path)))
        expected = [*report.warnings, *report.problems]
    except tl.TidelogError as error:
        expected = list(error.diagnostics)
    lines = text.split("\n")
    wanted = []
    for found in expected:
        assert found.place is not None
        before = lines[found.place.line - 1][: found.place.column - 1]
        units = len(before.encode("utf-16-le")) // 2  # what the protocol counts
        severity = 1 if found.severity == "error" else 2
        wanted.append((found.code, found.message, severity, found.place.line - 1, units))
    assert [
        (
            got["code"],
            got["message"].split("\n")[0],
            got["severity"],
            got["range"]["start"]["line"],
            got["range"]["start"]["character"],
        )
        for got in shown
    ] == wanted
    for got, found in zip(shown, expected, strict=True):
        assert found.help is None or f"help: {found.help}" in got["message"]


def test_diagnostics_follow_the_typing_also_in_the_tests_of_the_rules(client: LanguageClient) -> None:
    broken = RULES.replace("C > 80", "C > ")
    assert [found["code"] for found in client.change("turbines.dmtl", broken)] == ["TL001"]
    (found,) = client.diagnostics("turbines.test")
    assert found["message"].startswith("turbines.dmtl:2:")
    assert client.change("turbines.dmtl", RULES) == []
    assert client.diagnostics("turbines.test") == []


def test_mistakes_in_tests_and_schemas_are_shown(client: LanguageClient) -> None:
    (found,) = client.open("new.test", "rules: turbines.dmtl\ntest: x\nexpects:\n  Hot(t1)@3\n")
    assert (found["code"], found["range"]["start"]["line"]) == ("TL901", 2)
    (found,) = client.open("away/tidelog.toml", '[schema.P]\ncolumns = { a = "txt" }\n')
    assert (found["code"], found["range"]["start"]["line"]) == ("TL805", 1)


def test_definitions_are_rules_then_the_schema(client: LanguageClient) -> None:
    uses = client.request("textDocument/definition", client.at("turbines.dmtl", *find(RULES, "Hot(T), not")))
    assert places(uses) == [("turbines.dmtl", 1, 0)]
    from_test = client.request("textDocument/definition", client.at("turbines.test", *find(TESTS, "Overheated")))
    assert places(from_test) == [("turbines.dmtl", 4, 0)]
    given = client.request("textDocument/definition", client.at("turbines.dmtl", *find(RULES, "Reading(T")))
    assert places(given) == [("tidelog.toml", 0, 8)]
    assert client.request("textDocument/definition", client.at("turbines.dmtl", *find(RULES, "80"))) == []


def test_references_go_over_rules_tests_facts_and_schema(client: LanguageClient) -> None:
    params = client.at("turbines.dmtl", *find(RULES, "Reading(T")) | {"context": {"includeDeclaration": True}}
    found = places(client.request("textDocument/references", params))
    assert found == [
        ("more.facts", 0, 0),
        ("other.dmtl", 0, 11),
        ("tidelog.toml", 0, 8),
        ("turbines.dmtl", 1, 10),
        ("turbines.test", 1, 2),
    ]
    params["context"] = {"includeDeclaration": False}
    assert ("tidelog.toml", 0, 8) not in places(client.request("textDocument/references", params))
    local = client.at("turbines.dmtl", *find(RULES, "Quiet.")) | {"context": {"includeDeclaration": True}}
    assert places(client.request("textDocument/references", local)) == [
        ("turbines.dmtl", 4, 64),
        ("turbines.dmtl", 5, 0),
    ]
    variable = client.at("turbines.dmtl", *find(RULES, "C > 80")) | {"context": {"includeDeclaration": True}}
    assert places(client.request("textDocument/references", variable)) == [
        ("turbines.dmtl", 1, 21),
        ("turbines.dmtl", 1, 25),
    ]


def hover(client: LanguageClient, name: str, text: str, part: str) -> str:
    found = client.request("textDocument/hover", client.at(name, *find(text, part)))
    value: str = found["contents"]["value"]
    return value


def test_hover_shows_comment_retention_stratum_and_an_example(client: LanguageClient) -> None:
    text = hover(client, "turbines.dmtl", RULES, "Hot(T), not")
    assert "Hot(T)" in text
    assert "A reading above 80 degrees is hot." in text
    assert "Retention: 30," in text
    assert "Stratum 1 of 2." in text
    assert "Example: `Overheated(t1)@[30,60]`" in hover(client, "turbines.dmtl", RULES, "Overheated")
    given = hover(client, "turbines.dmtl", RULES, "Reading")
    assert "Reading(turbine, celsius)" in given
    assert "Example: `Reading(t1,90)@[0,60]`" in given
    assert "at every time in the range before now" in hover(client, "turbines.dmtl", RULES, "Boxminus")
    assert client.request("textDocument/hover", client.at("turbines.dmtl", 2, 0)) is None


def test_hover_takes_an_example_from_the_table_of_the_schema(client: LanguageClient) -> None:
    client.open("other.dmtl")
    assert "Example: `Spare(t9)@17`" in hover(client, "other.dmtl", OTHER, "Spare")


def edit_all(client: LanguageClient, edit: dict[str, Any]) -> dict[str, str]:
    """Apply the edits of a rename to the texts, as an editor would."""
    result = {}
    for uri, edits in edit["changes"].items():
        path = Path(uri.removeprefix("file://"))
        lines = path.read_text().split("\n")
        for found in sorted(edits, key=lambda found: found["range"]["start"]["character"], reverse=True):
            start, end = found["range"]["start"], found["range"]["end"]
            assert start["line"] == end["line"]
            line = lines[start["line"]]
            lines[start["line"]] = line[: start["character"]] + found["newText"] + line[end["character"] :]
        result[path.name] = "\n".join(lines)
    return result


def test_rename_changes_a_predicate_in_all_files(client: LanguageClient) -> None:
    place = client.at("turbines.dmtl", *find(RULES, "Reading"))
    assert client.request("textDocument/prepareRename", place)["start"] == {"line": 1, "character": 10}
    texts = edit_all(client, client.request("textDocument/rename", place | {"newName": "Measured"}))
    assert texts == {
        "turbines.dmtl": RULES.replace("Reading", "Measured"),
        "turbines.test": TESTS.replace("Reading", "Measured"),
        "tidelog.toml": SCHEMA.replace("Reading", "Measured"),
        "other.dmtl": OTHER.replace("Reading", "Measured"),
        "more.facts": "Measured(t2,70)@5\n",
    }


def test_rename_changes_a_variable_in_its_rule(client: LanguageClient) -> None:
    place = client.at("turbines.dmtl", *find(RULES, "C > 80"))
    texts = edit_all(client, client.request("textDocument/rename", place | {"newName": "Celsius"}))
    assert texts == {"turbines.dmtl": RULES.replace("(T, C), C >", "(T, Celsius), Celsius >")}


@pytest.mark.parametrize(
    "part, new, why",
    [
        ("Hot(T), not", "Overheated", "there is a predicate Overheated already"),
        ("Hot(T), not", "9lives", "is not a name"),
        ("C > 80", "celsius", "would be a constant"),
        ("C > 80", "T", "the rule has the name T already"),
        ("Quiet.", "Top", "would be read in another way"),
        ("80.", "X", "no predicate or variable here"),
    ],
)
def test_a_rename_that_changes_the_meaning_is_refused(client: LanguageClient, part: str, new: str, why: str) -> None:
    answer = client.ask("textDocument/rename", client.at("turbines.dmtl", *find(RULES, part)) | {"newName": new})
    assert why in answer["error"]["message"]


def test_a_table_that_gives_the_name_stops_a_rename(tmp_path: Path) -> None:
    (tmp_path / "Reading.csv").write_text("a,time\nx,1\n")
    project = Project([str(tmp_path)])
    path = str(tmp_path / "hot.dmtl")
    project.open_text(path, "Hot(X) :- Reading(X).")
    file = project.file(path)
    assert file is not None
    with pytest.raises(tl.TidelogError, match=r"Reading\.csv says that it holds facts of Reading"):
        rename_at(project, file, 0, 12, "Measured")
    assert apply_edits(file.text, rename_at(project, file, 0, 1, "Warm")[path], "Warm") == "Warm(X) :- Reading(X)."


def test_a_fact_file_that_is_too_large_stops_a_rename(tmp_path: Path) -> None:
    (tmp_path / "hot.dmtl").write_text("Hot(X) :- High(X).")
    (tmp_path / "hot.test").write_text("given: large.facts\ntest: x\nexpect: Hot(a)@1\n")
    (tmp_path / "large.facts").write_text("High(a)@1\n" * 100_001)
    project = Project([str(tmp_path)])
    file = project.file(str(tmp_path / "hot.dmtl"))
    assert file is not None
    with pytest.raises(tl.TidelogError, match=r"large\.facts, which a test reads, is too large"):
        rename_at(project, file, 0, 11, "Warm")


def test_folders_that_are_added_are_searched(client: LanguageClient, tmp_path: Path) -> None:
    (tmp_path / "more.test").write_text(f"rules: {client.folder / 'turbines.dmtl'}\ntest: more\nexpect not: Quiet@3\n")
    added = [{"uri": tmp_path.as_uri(), "name": "more"}]
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": []}})
    place = client.at("turbines.dmtl", *find(RULES, "Quiet.")) | {"context": {"includeDeclaration": True}}
    assert ("more.test", 2, 12) in places(client.request("textDocument/references", place))
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": added}})
    assert ("more.test", 2, 12) not in places(client.request("textDocument/references", place))


def labels(found: list[dict[str, Any]]) -> list[str]:
    return [item["label"] for item in found]


def test_completion_offers_variables_predicates_and_operators(client: LanguageClient) -> None:
    text = RULES + "Alarm(Turbine) :- "
    client.change("turbines.dmtl", text)
    found = client.request("textDocument/completion", client.at("turbines.dmtl", 6, len("Alarm(Turbine) :- ")))
    assert labels(found)[0] == "Turbine"
    assert {"Hot", "Overheated", "Reading", "Spare", "Boxminus", "Since", "not", "count", "starts_with"} <= set(
        labels(found)
    )
    assert next(item for item in found if item["label"] == "Boxminus")["insertText"] == "Boxminus[$1] $0"
    client.change("turbines.dmtl", RULES)
    sections = client.request("textDocument/completion", client.at("turbines.test", 0, 2))
    assert "expect only:" in labels(sections)
    facts = client.request("textDocument/completion", client.at("turbines.test", 5, 3))
    assert {"Overheated", "Reading"} <= set(labels(facts))


def test_calendar_predicates_are_offered_described_and_not_renamed(client: LanguageClient) -> None:
    assert CALENDAR_TEXTS.keys() == CALENDAR_UNITS.keys()
    text = 'Rest(X) :- Stop(X), calendar:weekday("Europe/Berlin", sunday).\n'
    assert client.open("rest.dmtl", text) == []
    place = client.at("rest.dmtl", *find(text, "weekday"))
    said = client.request("textDocument/hover", place)["contents"]["value"]
    assert said.startswith("Generated by tidelog: the day of the week, from monday to sunday")
    refused = client.ask("textDocument/rename", place | {"newName": "Weekday"})
    assert "tidelog generates calendar:weekday" in refused["error"]["message"]
    for begun, offered, inserted in (
        ("c", "calendar:day", 'calendar:day("$1", $2)$0'),
        ("calendar:d", "day", 'day("$1", $2)$0'),
    ):
        line = f"Late(X) :- Sent(X), {begun}"
        client.change("rest.dmtl", text + line)
        found = client.request("textDocument/completion", client.at("rest.dmtl", 1, len(line)))
        assert [item["insertText"] for item in found if item["label"] == offered] == [inserted]


def test_formatting_gives_the_standard_form_and_leaves_errors_alone(client: LanguageClient) -> None:
    client.open("form.dmtl", "% why\nA(X):-B(X)   % so\n")
    params = {"textDocument": {"uri": client.uri("form.dmtl")}, "options": {"tabSize": 4, "insertSpaces": True}}
    (edit,) = client.request("textDocument/formatting", params)
    assert edit["newText"] == "% why\nA(X) :- B(X).  % so\n"
    client.change("form.dmtl", edit["newText"])
    assert client.request("textDocument/formatting", params) == []
    client.change("form.dmtl", "A(X) :- .")
    assert client.request("textDocument/formatting", params) == []


def test_lenses_run_tests_and_explain_facts(client: LanguageClient) -> None:
    params = {"textDocument": {"uri": client.uri("turbines.test")}}
    lenses = client.request("textDocument/codeLens", params)
    assert [(lens["range"]["start"]["line"], lens["command"]["title"]) for lens in lenses] == [
        (3, "Run all tests"),
        (3, "Run test"),
        (5, "Explain"),
        (6, "Run test"),
        (8, "Explain"),
    ]
    run_all, first, explain, second, missing = [
        client.request("workspace/executeCommand", lens["command"] | {"title": ""}) for lens in lenses
    ]
    assert (run_all["passed"], run_all["failed"]) == (1, 1)
    assert (first["passed"], first["failed"]) == (1, 0)
    assert "1 test passed" in first["text"]
    assert (second["passed"], second["failed"]) == (0, 1)
    assert second["tests"][0]["wrong"][0]["fact"] == "Overheated(t1)@10"
    assert explain["text"].startswith("Overheated(t1)@[30,60]  by Overheated(T) :-")
    assert "does not hold; it holds on [30,60]" in missing["text"]


def test_lenses_run_what_the_editor_shows(client: LanguageClient) -> None:
    client.change("turbines.dmtl", RULES.replace("30s", "5s"))
    command = {"command": "tidelog.runTests", "arguments": [client.uri("turbines.test"), 7]}
    assert client.request("workspace/executeCommand", command)["failed"] == 0
    client.change("turbines.dmtl", RULES)
    assert client.request("workspace/executeCommand", command)["failed"] == 1


def written_atoms(program: tl.Program) -> set[tuple[int, int, str]]:
    """The place and the predicate of each atom as the parser reads it; a group has a predicate that nobody wrote."""
    atoms = [atom for rule in program.rules for atom in rule_atoms(rule) if not is_hidden(atom.predicate)]
    return {(atom.place.line, atom.place.column, atom.predicate) for atom in atoms if atom.place}


@pytest.mark.parametrize(
    "text",
    [
        "A, B, Boxplus[0,1] C :- D or E and F, (G or not H) Since[0,1] I, not (J, K), (L and M or N).",
        "A :- D\n  or E % why\n  and not F.",
        "Boxplus[0,1] (A(X + 1), B(X)) :- C(X), X > 1 or D(X), not (X = 2, E or F).",
        "P(X) :- R(X), count{ (S(X, Y) or T(X, Y)), U or V } > 2.",
        "Or :- And or Or, Top or B || D, E.",
    ],
)
def test_the_predicates_of_groups_alternatives_and_several_heads_are_found(text: str) -> None:
    found = {(at.span.line + 1, at.span.start + 1, at.name) for at in find_occurrences(text, "dmtl")}
    assert found == written_atoms(tl.Program.parse(text))


def test_predicates_in_groups_alternatives_and_several_heads_are_followed_and_renamed(client: LanguageClient) -> None:
    name = "groups.dmtl"
    text = "Wet, Alert :- On or Manual.\nBusy :- Diamondminus[0,5] (Alert, Manual), not (Alert or Off).\n"
    (client.folder / name).write_text(text)
    assert client.open(name) == []
    inside = client.at(name, *find(text, "Alert or"))
    assert places(client.request("textDocument/definition", inside)) == [(name, 0, 5)]
    references = client.at(name, *find(text, "Manual.")) | {"context": {"includeDeclaration": True}}
    assert places(client.request("textDocument/references", references)) == [(name, 0, 20), (name, 1, 34)]
    for old, new in (("Alert", "Alarm"), ("Manual", "Forced"), ("Off", "Out"), ("Wet", "Damp")):
        edit = client.request("textDocument/rename", client.at(name, *find(text, old)) | {"newName": new})
        assert edit_all(client, edit) == {name: text.replace(old, new)}


EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*") if find_kind(str(path)) in ("dmtl", "tdl"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_predicates_of_every_example_are_found_where_the_parser_finds_them(path: Path) -> None:
    program = tl.Program.load(path)
    kind = find_kind(str(path))
    assert kind is not None
    found = {(at.span.line + 1, at.span.start + 1, at.name) for at in find_occurrences(path.read_text(), kind)}
    if program.temporal is None:
        assert found == written_atoms(program)
    else:
        rules = (*program.temporal.rules, *program.temporal.facts)
        temporal = [a for rule in rules for a in (rule.head, *(getattr(x, "atom", None) for x in rule.body)) if a]
        assert {name for *_, name in found} == {atom.predicate for atom in temporal}


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path) -> None:
    from shell import start_command

    (tmp_path / "pygls.py").write_text("raise ImportError('not here')\n")
    process = start_command(tmp_path, "lsp")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, b"")
    assert b"pip install 'tidelog[lsp]'" in err
    assert b"TL911" in err
