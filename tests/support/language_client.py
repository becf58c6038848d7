"""A client of the language server that speaks the protocol over pipes, with nothing in between."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from pathlib import Path
from typing import IO, Any

from shell import start_command


class LanguageClient:
    """Starts `tidelog lsp` in a folder, initialises it, and asks questions by file name."""

    def __init__(self, folder: Path, timeout: float = 120) -> None:
        self.folder = folder
        self.timeout = timeout
        self.notifications: list[dict[str, Any]] = []
        self._process: subprocess.Popen[bytes] = start_command(folder, "lsp")
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._answers: dict[int, dict[str, Any]] = {}
        self._number = 0
        self._versions: dict[str, int] = {}
        assert self._process.stdout is not None
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()
        folders = [{"uri": folder.as_uri(), "name": folder.name}]
        result = self.request(
            "initialize",
            {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}, "workspaceFolders": folders},
        )
        self.capabilities: dict[str, Any] = result["capabilities"]
        self.notify("initialized", {})

    def _read(self, stream: IO[bytes]) -> None:
        while True:
            length = 0
            while line := stream.readline().strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not length:
                self._messages.put(None)
                return
            self._messages.put(json.loads(stream.read(length)))

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def notify(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: object) -> dict[str, Any]:
        """Send a request and return the whole answer, which may be an error."""
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": params})
        self._wait(lambda: number in self._answers)
        return self._answers.pop(number)

    def request(self, method: str, params: object) -> Any:
        answer = self.ask(method, params)
        assert "error" not in answer, answer
        return answer["result"]

    def _wait(self, done: Any) -> None:
        stop = time.monotonic() + self.timeout
        while not done():
            message = self._messages.get(timeout=max(0.1, stop - time.monotonic()))
            assert message is not None, "the server has ended"
            if "id" in message and "method" not in message:
                self._answers[message["id"]] = message
            elif "id" in message:
                self._send({"id": message["id"], "result": None})
            else:
                self.notifications.append(message)

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str | None = None) -> list[dict[str, Any]]:
        """Open a file, with its text on disk unless another is given, and return the diagnostics of the server."""
        if text is None:
            text = (self.folder / name).read_text(encoding="utf-8")
        self._versions[name] = 1
        document = {"uri": self.uri(name), "languageId": name.rpartition(".")[2], "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return self.diagnostics(name)

    def change(self, name: str, text: str) -> list[dict[str, Any]]:
        """Replace the text of an open file and return the diagnostics of the server."""
        self._versions[name] += 1
        document = {"uri": self.uri(name), "version": self._versions[name]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        return self.diagnostics(name)

    def diagnostics(self, name: str) -> list[dict[str, Any]]:
        """Wait for the next diagnostics of a file."""
        uri = self.uri(name)

        def find() -> list[dict[str, Any]]:
            return [
                found
                for found in self.notifications
                if found["method"] == "textDocument/publishDiagnostics" and found["params"]["uri"] == uri
            ]

        self._wait(find)
        message = find()[0]
        self.notifications.remove(message)
        result: list[dict[str, Any]] = message["params"]["diagnostics"]
        return result

    def at(self, name: str, line: int, character: int) -> dict[str, Any]:
        return {"textDocument": {"uri": self.uri(name)}, "position": {"line": line, "character": character}}

    def close(self) -> None:
        self.request("shutdown", None)
        self.notify("exit", None)
        assert self._process.wait(timeout=30) == 0
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
