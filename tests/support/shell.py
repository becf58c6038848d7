"""Run `tidelog` commands, in this process or in one of their own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from locations import ROOT
from tidelog.cli.main import run


@dataclass(frozen=True)
class CommandResult:
    code: int
    out: str
    err: str


class Shell:
    """Runs commands in this process, in a temporary folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        monkeypatch.chdir(folder)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def __call__(self, *args: str, stdin: str = "") -> CommandResult:
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = run(args)
        captured = self._capsys.readouterr()
        return CommandResult(code, captured.out, drop_compilation_notice(captured.err.encode()).decode())


def start_command(folder: Path, *args: str) -> subprocess.Popen[bytes]:
    """Start a command in a group of processes of its own."""
    script = "from tidelog.cli.main import main; main()"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", script, *args]
    return subprocess.Popen(command, cwd=folder, env=env, stdin=pipe, stdout=pipe, stderr=pipe, process_group=0)


def drop_compilation_notice(err: bytes) -> bytes:
    """Drop the line with which a first compilation is announced from standard error."""
    return b"".join(line for line in err.splitlines(True) if not line.startswith(b"tidelog: compiling the engine"))
