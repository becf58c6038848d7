"""The page on commands and the command line agree: the tables name options that exist, and describe them in words."""

from __future__ import annotations

import re

import click
import pytest

from locations import ROOT
from tidelog.cli.main import cli

PAGE = ROOT / "docs" / "reference" / "commands.md"
COMMANDS = cli.list_commands(click.Context(cli))
ROW = re.compile(r"^\| (`-.*?) \| (.*) \|$", re.MULTILINE)


def _sections() -> dict[str, str]:
    """Return the sections of the page by the command that they describe."""
    parts = re.split(r"^## (.*)\n", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {name: text for name, text in zip(parts[::2], parts[1::2], strict=True) if name in COMMANDS}


@pytest.mark.parametrize("name", sorted(_sections()))
def test_tables_of_options_name_options_that_exist(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, click.Command)
    known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    for options, _ in ROW.findall(_sections()[name]):
        named = set(re.findall(r"`(-[-\w]+)", options))
        assert named <= known, f"{sorted(named - known)} of {name}"


@pytest.mark.parametrize("name", sorted(_sections()))
def test_tables_of_options_describe_them_in_words(name: str) -> None:
    """Examples of data stand above the table: in a cell, JSON looks like a value of the option."""
    for options, meaning in ROW.findall(_sections()[name]):
        assert '{"' not in options + meaning, f"{name}: the row of {options} contains JSON"
