"""A small server for the page of a running stream, for this machine only unless told otherwise.

It serves the page and the figures, and accepts no input. Other sites cannot read from it: it allows no other origin,
and answers only requests that are addressed to an IP address or to a name of this machine, so that a foreign name that
resolves to this machine (DNS rebinding) gets nothing.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

from tidelog.page.html_document import render_page
from tidelog.page.live_board import LiveBoard
from tidelog.stream_server import Request, Response, serve_requests
from tidelog.version import __version__

#: The port unless another is asked for; if it is taken, any free one.
PORT = 8787

_HEADERS = {
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
    names = {"localhost", host.lower(), socket.gethostname().lower()}

    def respond(request: Request) -> Response:
        if not _is_allowed(request, names):
            return Response(403, "text/plain", b"this server only answers its own page\n", _HEADERS)
        if request.path == "/":
            return Response(200, "text/html; charset=utf-8", document, _HEADERS)
        if request.path == "/status":
            body = json.dumps(board.status(), ensure_ascii=False).encode("utf-8", "replace")
            return Response(200, "application/json", body, _HEADERS)
        return Response(404, "text/plain", b"there is nothing here\n", _HEADERS)

    with serve_requests(respond, host, PORT if port is None else port, any_port=port is None) as address:
        yield address


def _is_allowed(request: Request, names: set[str]) -> bool:
    """Return whether a request is addressed to this machine, and not sent by the page of another site."""
    try:
        name = urlsplit("//" + request.headers.get("Host", "")).hostname
    except ValueError:
        return False
    site = request.headers.get("Sec-Fetch-Site", "none")
    is_own_page = site in ("none", "same-origin") or (
        request.path == "/" and request.headers.get("Sec-Fetch-Mode", "") == "navigate"
    )
    return name is not None and is_own_page and (name in names or _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
