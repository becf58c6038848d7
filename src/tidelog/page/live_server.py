"""A small server for the page of a running stream, for this machine only unless told otherwise.

It serves the page and the figures, and accepts no input. Other sites cannot read from it: it allows no other origin,
and answers only requests that are addressed to an IP address or to a name of this machine, so that a foreign name that
resolves to this machine (DNS rebinding) gets nothing.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from tidelog.errors import Diagnostic, TidelogError
from tidelog.page.html_document import render_page
from tidelog.page.live_board import LiveBoard
from tidelog.version import __version__

#: The port unless another is asked for; if it is taken, any free one.
PORT = 8787

_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@contextmanager
def serve_board(board: LiveBoard, title: str, *, host: str = "127.0.0.1", port: int | None = None) -> Iterator[str]:
    """Serve the board while the context lasts; the context's value is the address."""
    document = render_page({"kind": "live", "title": title, "version": __version__}).encode()
    server = _bind_server(host, port, board, document)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, name="tidelog-ui", daemon=True).start()
    url_host = f"[{host}]" if ":" in host else host
    try:
        yield f"http://{url_host}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def _bind_server(host: str, port: int | None, board: LiveBoard, document: bytes) -> _Server:
    try:
        return _Server((host, PORT if port is None else port), board, document)
    except OSError as problem:
        if port is None and not isinstance(problem, socket.gaierror):
            return _Server((host, 0), board, document)
        message = f"cannot listen on {host}, port {PORT if port is None else port}: {problem.strerror}"
        raise TidelogError(Diagnostic("TL405", message)) from None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # When the stream ends, do not wait for a browser that keeps a connection open.
    block_on_close = False

    def __init__(self, address: tuple[str, int], board: LiveBoard, document: bytes) -> None:
        self.board, self.document = board, document
        self.names = {"localhost", address[0].lower(), socket.gethostname().lower()}
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that disconnect in the middle of a request."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "tidelog"
    sys_version = ""
    #: Seconds that a connection may be idle.
    timeout = 30

    def do_GET(self) -> None:
        if not self._is_allowed():
            self._answer(403, "text/plain", b"this server only answers its own page\n")
        elif self.path == "/":
            self._answer(200, "text/html; charset=utf-8", self.server.document)
        elif self.path == "/status":
            body = json.dumps(self.server.board.status(), ensure_ascii=False).encode("utf-8", "replace")
            self._answer(200, "application/json", body)
        else:
            self._answer(404, "text/plain", b"there is nothing here\n")

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal belongs to the stream."""

    def _is_allowed(self) -> bool:
        """Return whether the request is addressed to this machine, and not sent by the page of another site."""
        try:
            name = urlsplit("//" + self.headers.get("Host", "")).hostname
        except ValueError:
            return False
        site = self.headers.get("Sec-Fetch-Site", "none")
        is_own_page = site in ("none", "same-origin") or (
            self.path == "/" and self.headers.get("Sec-Fetch-Mode") == "navigate"
        )
        return name is not None and is_own_page and (name in self.server.names or _is_address(name))

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **_HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
