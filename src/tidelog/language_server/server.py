"""The protocol: answer an editor over standard input and output, with pygls."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.formatter import format_source
from tidelog.language_server.completion import Completion, find_completions
from tidelog.language_server.diagnosis import diagnose_file
from tidelog.language_server.hover import describe_at
from tidelog.language_server.lenses import EXPLAIN_FACT, RUN_TESTS, find_lenses
from tidelog.language_server.occurrences import Occurrence, Span
from tidelog.language_server.project import RULE_KINDS, Project, ProjectFile, normalise_path
from tidelog.language_server.rename import find_variable, rename_at
from tidelog.language_server.rule_runs import EXAMPLE_SECONDS, RUN_SECONDS, explain_line, find_example, run_tests
from tidelog.version import __version__
from tidelog.worker_process import WorkerProcess

#: How long the editor must be quiet before a text is checked.
_PAUSE_SECONDS = 0.1
_COMPLETION_KINDS = {
    "predicate": types.CompletionItemKind.Class,
    "variable": types.CompletionItemKind.Variable,
    "operator": types.CompletionItemKind.Operator,
    "function": types.CompletionItemKind.Function,
    "keyword": types.CompletionItemKind.Keyword,
    "value": types.CompletionItemKind.EnumMember,
}


class RuleServer(LanguageServer):
    """The server with its project, its worker, and the checks that wait for the editor to pause."""

    def __init__(self) -> None:
        super().__init__("tidelog", __version__)
        self.project = Project()
        self.worker = WorkerProcess()
        self._pending: dict[str, asyncio.Task[None]] = {}

    def locate(self, uri: str, position: types.Position) -> tuple[ProjectFile | None, int, int]:
        """Return the file at an address, and the position as line and column in characters."""
        file = self.project.file(uri_to_path(uri))
        if file is None:
            return None, position.line, position.character
        lines = file.text.splitlines(keepends=True) or [""]
        if position.line >= len(lines):
            return file, position.line, position.character
        found = self.workspace.position_codec.position_from_client_units(lines, position)
        return file, found.line, found.character

    def to_range(self, file: ProjectFile, span: Span) -> types.Range:
        """Convert a span to a range in the units of the client."""
        lines = file.text.split("\n")
        line = lines[span.line] if span.line < len(lines) else ""
        start, end = (self.workspace.position_codec.client_num_units(line[:at]) for at in (span.start, span.end))
        return types.Range(types.Position(span.line, start), types.Position(span.line, max(start, end)))

    def to_location(self, file: ProjectFile, found: Occurrence) -> types.Location:
        """Convert a mention to a location."""
        return types.Location(path_to_uri(file.path), self.to_range(file, found.span))

    def check_later(self, path: str) -> None:
        """Check a file, and the tests that use it, once the editor has been quiet for a moment."""
        waiting = self._pending.pop(path, None)
        if waiting is not None:
            waiting.cancel()
        self._pending[path] = asyncio.get_running_loop().create_task(self._check_after_pause(path))

    async def _check_after_pause(self, path: str) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        self._pending.pop(path, None)
        self.check(path)
        for other in self.project.open_texts:
            file = self.project.file(other)
            if other != path and file is not None and file.rules == path:
                self.check(other)

    def check(self, path: str) -> None:
        """Publish the diagnostics of a file."""
        file = self.project.file(path)
        if file is None:
            return
        found = [self._to_diagnostic(file, diagnostic) for diagnostic in diagnose_file(self.project, file)]
        params = types.PublishDiagnosticsParams(path_to_uri(file.path), found)
        self.text_document_publish_diagnostics(params)

    def _to_diagnostic(self, file: ProjectFile, found: Diagnostic) -> types.Diagnostic:
        place = found.place
        notes = "".join(f"\n{label}: {text}" for label, text in (("law", found.law), ("help", found.help)) if text)
        message = found.message
        if place is None:
            span = Span(0, 0, 1)
        elif normalise_path(place.source) != file.path:
            span, message = Span(0, 0, 1), f"{os.path.basename(place.source)}:{place.line}:{place.column}: {message}"
        else:
            span = Span(place.line - 1, place.column - 1, place.column - 1 + max(1, place.length))
        severity = types.DiagnosticSeverity
        return types.Diagnostic(
            self.to_range(file, span),
            message + notes,
            severity=severity.Error if found.severity == "error" else severity.Warning,
            code=found.code,
            source="tidelog",
        )


def uri_to_path(uri: str) -> str:
    """Return the path that an address of the editor names."""
    return normalise_path(to_fs_path(uri) or uri)


def path_to_uri(path: str) -> str:
    """Return the address of a path."""
    return from_fs_path(path) or path


def build_server() -> RuleServer:
    """Build the server with everything that it answers."""
    server = RuleServer()
    _add_documents(server)
    _add_navigation(server)
    _add_writing(server)
    _add_commands(server)
    return server


def _add_documents(server: RuleServer) -> None:
    @server.feature(types.INITIALIZED)
    def initialized(ls: RuleServer, params: types.InitializedParams) -> None:
        ls.project.folders = [uri_to_path(uri) for uri in ls.workspace.folders]

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders_changed(ls: RuleServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
        ls.project.folders = [uri_to_path(uri) for uri in ls.workspace.folders]

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(ls: RuleServer, params: types.DidOpenTextDocumentParams) -> None:
        take_text(ls, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(ls: RuleServer, params: types.DidChangeTextDocumentParams) -> None:
        take_text(ls, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(ls: RuleServer, params: types.DidCloseTextDocumentParams) -> None:
        path = uri_to_path(params.text_document.uri)
        ls.project.close_text(path)
        ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(types.SHUTDOWN)
    def shutdown(ls: RuleServer, params: None) -> None:
        ls.worker.close()

    def take_text(ls: RuleServer, uri: str) -> None:
        path = uri_to_path(uri)
        ls.project.open_text(path, ls.workspace.get_text_document(uri).source)
        ls.check_later(path)


def _add_navigation(server: RuleServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(ls: RuleServer, params: types.DefinitionParams) -> list[types.Location]:
        file, line, column = ls.locate(params.text_document.uri, params.position)
        found = file.find_at(line, column) if file else None
        if file is None or found is None:
            return []
        return [ls.to_location(where, at) for where, at in ls.project.definitions(file, found.name)]

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(ls: RuleServer, params: types.ReferenceParams) -> list[types.Location]:
        file, line, column = ls.locate(params.text_document.uri, params.position)
        if file is None:
            return []
        found = file.find_at(line, column)
        if found is not None:
            mentions = list(ls.project.references(file, found.name))
            if not params.context.include_declaration:
                defining = {(at.path, where.span) for at, where in ls.project.definitions(file, found.name)}
                mentions = [(at, where) for at, where in mentions if (at.path, where.span) not in defining]
            return [ls.to_location(at, where) for at, where in mentions]
        variable = find_variable(file, line, column)
        spans = variable[1] if variable else []
        return [types.Location(path_to_uri(file.path), ls.to_range(file, span)) for span in spans]

    @server.thread()
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(ls: RuleServer, params: types.HoverParams) -> types.Hover | None:
        file, line, column = ls.locate(params.text_document.uri, params.position)
        if file is None:
            return None

        def search(path: str, schema: str | None, predicate: str) -> str | None:
            return ls.worker.call(EXAMPLE_SECONDS, find_example, path, schema, predicate)

        described = describe_at(ls.project, file, line, column, search)
        if described is None:
            return None
        text, span = described
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), ls.to_range(file, span))


def _add_writing(server: RuleServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions())
    def completion(ls: RuleServer, params: types.CompletionParams) -> list[types.CompletionItem]:
        file, line, column = ls.locate(params.text_document.uri, params.position)
        found = find_completions(ls.project, file, line, column) if file else []
        return [_to_item(word, number) for number, word in enumerate(found)]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(ls: RuleServer, params: types.PrepareRenameParams) -> types.Range | None:
        file, line, column = ls.locate(params.text_document.uri, params.position)
        if file is None:
            return None
        found = file.find_at(line, column)
        if found is not None:
            return ls.to_range(file, found.span)
        variable = find_variable(file, line, column)
        spans = [span for span in variable[1] if span.contains(line, column)] if variable else []
        return ls.to_range(file, spans[0]) if spans else None

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(ls: RuleServer, params: types.RenameParams) -> types.WorkspaceEdit:
        file, line, column = ls.locate(params.text_document.uri, params.position)
        if file is None:
            return types.WorkspaceEdit()
        try:
            edits = rename_at(ls.project, file, line, column, params.new_name)
        except TidelogError as refused:
            raise _to_response_error(refused) from None
        changes: dict[str, Any] = {}
        for path, spans in edits.items():
            at = ls.project.file(path)
            assert at is not None
            changes[path_to_uri(path)] = [types.TextEdit(ls.to_range(at, span), params.new_name) for span in spans]
        return types.WorkspaceEdit(changes=changes)

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatting(ls: RuleServer, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        file = ls.project.file(uri_to_path(params.text_document.uri))
        if file is None or file.kind not in RULE_KINDS:
            return []
        try:
            text = format_source(file.text, syntax=file.kind, source=file.path)
        except TidelogError:
            return []  # The errors are shown where they are.
        if text == file.text:
            return []
        end = types.Position(file.text.count("\n") + 1, 0)
        return [types.TextEdit(types.Range(types.Position(0, 0), end), text)]

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def code_lens(ls: RuleServer, params: types.CodeLensParams) -> list[types.CodeLens]:
        file = ls.project.file(uri_to_path(params.text_document.uri))
        lenses = find_lenses(file) if file else []
        uri = params.text_document.uri
        return [
            types.CodeLens(
                types.Range(types.Position(lens.line, 0), types.Position(lens.line, 0)),
                types.Command(lens.title, lens.command, arguments=[uri, lens.about]),
            )
            for lens in lenses
        ]


def _add_commands(server: RuleServer) -> None:
    @server.thread()
    @server.command(RUN_TESTS)
    def run(ls: RuleServer, uri: str, line: int | None) -> dict[str, Any]:
        path = uri_to_path(uri)
        try:
            done = ls.worker.call(RUN_SECONDS, run_tests, ls.project.open_texts, path, line)
        except TidelogError as problem:
            show(ls, str(problem), types.MessageType.Error)
            return {"passed": 0, "failed": 0, "text": str(problem), "tests": []}
        show(ls, done.text, types.MessageType.Error if done.failed else types.MessageType.Info)
        return {"passed": done.passed, "failed": done.failed, "text": done.text, "tests": list(done.outcomes)}

    @server.thread()
    @server.command(EXPLAIN_FACT)
    def explain(ls: RuleServer, uri: str, line: int) -> dict[str, Any]:
        try:
            text = ls.worker.call(RUN_SECONDS, explain_line, ls.project.open_texts, uri_to_path(uri), line)
        except TidelogError as problem:
            text = str(problem)
        show(ls, text, types.MessageType.Info)
        return {"text": text}

    def show(ls: RuleServer, text: str, kind: types.MessageType) -> None:
        """Log the whole text, and show its first error or its last line: editors show messages in a corner."""
        ls.window_log_message(types.LogMessageParams(kind, text))
        lines = text.rstrip().split("\n")
        shown = next((line for line in lines if " error[TL" in line), lines[-1])
        ls.window_show_message(types.ShowMessageParams(kind, shown.strip()))


def _to_item(word: Completion, number: int) -> types.CompletionItem:
    item = types.CompletionItem(
        word.label, kind=_COMPLETION_KINDS[word.kind], detail=word.detail, sort_text=f"{number:04}"
    )
    if word.snippet is not None:
        item.insert_text, item.insert_text_format = word.snippet, types.InsertTextFormat.Snippet
    return item


def _to_response_error(problem: TidelogError) -> JsonRpcException:
    found = problem.diagnostics[0]
    text = f"{found.message}; {found.help}" if found.help else found.message
    return JsonRpcException(text, code=-32803)
