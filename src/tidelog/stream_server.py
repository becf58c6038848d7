"""A small HTTP server beside a running stream: it answers GET and HEAD, logs nothing, and ends with the stream.

The live page and the metrics use it. Each gives a function that answers a request.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Protocol

from tidelog.errors import Diagnostic, TidelogError


class Headers(Protocol):
    """The headers of a request, by names in any letter case."""

    def get(self, name: str, default: str) -> str:
        """Return the value of a header, or the default."""


@dataclass(frozen=True)
class Request:
    """A request: its path, with everything behind a `?`, and its headers."""

    path: str
    headers: Headers


@dataclass(frozen=True)
class Response:
    """The answer to a request; `headers` come in addition to type, length and the one against caches."""

    code: int
    kind: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Respond = Callable[[Request], Response]


@contextmanager
def serve_requests(
    respond: Respond, host: str, port: int, *, any_port: bool = False, help: str | None = None
) -> Iterator[str]:
    """Serve while the context lasts; the context's value is the address.

    With `any_port`, another port is used if this one is taken. `help` is for the error that it is taken.
    """
    server = _bind_server(respond, host, port, any_port, help)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, name="tidelog-server", daemon=True).start()
    url_host = f"[{host}]" if ":" in host else host
    try:
        yield f"http://{url_host}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def _bind_server(respond: Respond, host: str, port: int, any_port: bool, help: str | None) -> StreamServer:
    try:
        return StreamServer((host, port), respond)
    except OSError as problem:
        if any_port and not isinstance(problem, socket.gaierror):
            return StreamServer((host, 0), respond)
        message = f"cannot listen on {host}, port {port}: {problem.strerror}"
        raise TidelogError(Diagnostic("TL405", message, help=help)) from None


class StreamServer(ThreadingHTTPServer):
    """A server with a thread per request."""

    daemon_threads = True
    # When the stream ends, do not wait for a client that keeps a connection open.
    block_on_close = False

    def __init__(self, address: tuple[str, int], respond: Respond) -> None:
        self.respond = respond
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect in the middle of a request."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: StreamServer
    protocol_version = "HTTP/1.1"
    server_version = "tidelog"
    sys_version = ""
    #: Seconds that a connection may be idle.
    timeout = 30

    def do_GET(self) -> None:
        response = self.server.respond(Request(self.path, self.headers))
        self.send_response(response.code)
        fixed = {
            "Content-Type": response.kind,
            "Content-Length": str(len(response.body)),
            "Cache-Control": "no-store",
        }
        for name, value in {**fixed, **response.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal belongs to the stream."""
