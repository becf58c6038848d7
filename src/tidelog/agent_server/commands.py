"""The tools as commands of the command line, with paths and sizes checked, in a process with limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tidelog.agent_server.allowed_folders import AllowedFolders, resolve_report
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.wording import plural
from tidelog.worker_process import WorkerProcess


@dataclass(frozen=True)
class CommandResult:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


#: Runs a command with a text as standard input; must be importable, since it runs in the worker.
CommandRunner = Callable[[Sequence[str], str], CommandResult]

#: Exit codes: bad input, and a question that could not be decided.
_BAD_INPUT, _UNDECIDED = 2, 3
_ANSWERS = {0: "yes", 1: "no", _UNDECIDED: "unknown"}


@dataclass(frozen=True)
class Limits:
    """What one call may use: seconds, bytes of input files, characters of output, and bytes of memory."""

    seconds: float = 30
    input_bytes: int = 50_000_000
    output_characters: int = 50_000
    memory: int | None = 8 << 30


class CommandTools:
    """The commands that an agent may run over files in some folders."""

    def __init__(
        self, folders: Sequence[str], run: CommandRunner, limits: Limits | None = None, reports: str | None = None
    ) -> None:
        self.limits = limits or Limits()
        self.folders = AllowedFolders(folders, self.limits.input_bytes)
        self.reports = reports
        self.worker = WorkerProcess(self.limits.memory)
        self._run = run

    def check(self, rules: str | None, text: str | None, query: str | None) -> dict[str, Any]:
        """Check rules in a file or as text; mistakes are part of the answer."""
        source, text = self._take_rules(rules, text)
        options = ["--json", *_option("query", query)]
        done = self._call(["check", *options, "--", source], text)
        if done.code == _BAD_INPUT:
            return {"valid": False, "errors": self._cut(done.err)}
        report = json.loads(done.out)
        return {"valid": not report["problems"], "warnings": self._cut(done.err), "report": report}

    def infer(self, data: Sequence[str]) -> dict[str, Any]:
        """Infer a schema of tables."""
        self.folders.start_call()
        done = self._require(self._call(["infer", "--", *map(self.folders.resolve_data, data)]))
        return {"schema": self._cut(done.out)}

    def run(
        self,
        rules: str | None,
        text: str | None,
        data: Sequence[str],
        queries: Sequence[str],
        until: str | None,
    ) -> dict[str, Any]:
        """Derive all facts of some predicates from data files."""
        source, text = self._take_rules(rules, text)
        options = [f"--query={query}" for query in queries] + _option("until", until)
        files = list(map(self.folders.resolve_data, data))
        done = self._require(self._call(["materialise", *options, "--", source, *files], text))
        if done.code == _UNDECIDED:
            raise TidelogError(Diagnostic("TL913", done.err.strip()))
        return {
            "facts": self._cut(done.out),
            "count": sum(not line.startswith("%") for line in done.out.splitlines()),
            "warnings": self._cut(done.err),
        }

    def test(self, paths: Sequence[str]) -> dict[str, Any]:
        """Run rule tests in files and folders."""
        self.folders.start_call()
        files = self.folders.resolve_tests(paths)
        if not files:
            raise TidelogError(Diagnostic("TL901", f"there are no tests in {', '.join(paths)}"))
        done = self._require(self._call(["test", "--json", "--", *files]))
        result: dict[str, Any] = json.loads(done.out)
        return result | {"warnings": self._cut(done.err)}

    def explain(self, rules: str | None, text: str | None, data: Sequence[str], fact: str) -> dict[str, Any]:
        """Explain why a fact holds, or why it does not."""
        source, text = self._take_rules(rules, text)
        files = list(map(self.folders.resolve_data, data))
        done = self._require(self._call(["explain", "--", source, *files, fact], text))
        return {"answer": _ANSWERS[done.code], "explanation": self._cut(done.out), "warnings": self._cut(done.err)}

    def report(self, rules: str, data: Sequence[str], queries: Sequence[str], output: str) -> dict[str, Any]:
        """Write a page with timelines and proofs into the folder for reports."""
        page = resolve_report(self.reports, output)
        source, _ = self._take_rules(rules, None)
        options = [f"--query={query}" for query in queries] + [f"--output={page}"]
        files = list(map(self.folders.resolve_data, data))
        done = self._require(self._call(["report", *options, "--", source, *files]))
        return {"file": page, "summary": self._cut(done.out), "warnings": self._cut(done.err)}

    def close(self) -> None:
        """End the process of the commands."""
        self.worker.close()

    def _take_rules(self, rules: str | None, text: str | None) -> tuple[str, str]:
        """Return the rules as an argument of a command, and the text for its standard input."""
        self.folders.start_call()
        if (rules is None) == (text is None):
            raise TidelogError(Diagnostic("TL914", "give the rules either as a file or as text"))
        if text is not None:
            if len(text) > self.limits.input_bytes:
                raise TidelogError(Diagnostic("TL913", "the rules are too long"))
            return "-", text
        assert rules is not None
        return self.folders.resolve_rules(rules), ""

    def _call(self, args: Sequence[str], text: str = "") -> CommandResult:
        return self.worker.call(self.limits.seconds, self._run, list(args), text)

    def _require(self, done: CommandResult) -> CommandResult:
        """Raise the errors of a command that got bad input, as they were printed."""
        if done.code == _BAD_INPUT:
            raise CommandError(self._cut(done.err))
        return done

    def _cut(self, text: str) -> str:
        limit = self.limits.output_characters
        if len(text) <= limit:
            return text
        shown = text[:limit].rpartition("\n")[0] or text[:limit]
        left = plural(text.count("\n") - shown.count("\n"), "line")
        return f"{shown}\n... {left} left out; ask for fewer predicates or a shorter time"


class CommandError(Exception):
    """A command refused its input; the text is what it printed."""


def _option(name: str, value: str | None) -> list[str]:
    return [] if value is None else [f"--{name}={value}"]
