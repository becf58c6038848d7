"""The gallery is complete: every condition has its sentence, rule, data, answer, picture and test.

The commands of the pages are run by `test_docs`, which also compares the pictures with what the rules give.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from locations import ROOT
from tidelog.rule_tests.case_reader import read_tests

GALLERY = ROOT / "docs" / "gallery"
PAGES = sorted(page for page in GALLERY.glob("*.md") if page.name != "index.md")


def test_there_are_ten_conditions_and_the_index_lists_them() -> None:
    assert len(PAGES) == 10
    assert {page.stem for page in PAGES} == {folder.name for folder in GALLERY.iterdir() if folder.is_dir()}
    listed = re.findall(r"^\| \[.*?\]\((\w+)\.md\) \| (.*) \|$", (GALLERY / "index.md").read_text(), re.MULTILINE)
    assert sorted(name for name, _ in listed) == [page.stem for page in PAGES]
    for name, sentence in listed:
        assert f"\n> {sentence}\n" in (GALLERY / f"{name}.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_all_its_parts(page: Path) -> None:
    text, folder = page.read_text(encoding="utf-8"), page.with_suffix("")
    sentence = re.search(r"^> (.*)$", text, re.MULTILINE)
    assert sentence is not None
    comment = re.findall(r"^% (.*)$", (folder / "rules.dmtl").read_text(), re.MULTILINE)
    assert " ".join(comment).startswith(sentence[1])
    assert re.findall("^## (.*)$", text, re.MULTILINE) == ["The rule", "The data", "The answer", "The test"]
    for file in folder.iterdir():
        assert f"$ cat docs/gallery/{page.stem}/{file.name}\n" in text
    assert f"$ tidelog materialise docs/gallery/{page.stem}/rules.dmtl" in text
    assert f"(../img/gallery-{page.stem}.svg)" in text
    assert (ROOT / "docs" / "img" / f"gallery-{page.stem}.svg").exists()
    assert len(read_tests(str(folder / "rules.test"))) >= 2
