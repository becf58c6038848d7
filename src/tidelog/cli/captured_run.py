"""Run a command in this process and keep what it prints, for servers."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from tidelog.agent_server.commands import CommandResult


def run_captured(args: Sequence[str], text: str) -> CommandResult:
    """Run a command with a text as standard input; return its exit code and what it printed."""
    from tidelog.cli.main import run

    before = sys.stdin, sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
    try:
        code = run(args)
        return CommandResult(code, out.getvalue().decode(), err.getvalue().decode())
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
