"""One page of HTML with everything in it: the bundle, the style and the data. It asks the network for nothing.

The page forbids itself to load or send anything (a content security policy), and to run any script but the bundle. The
data are JSON in which no character can end the element that they are in.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

#: What a browser may do with a page, besides its own script and style.
_NOTHING_ELSE = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"


def static(name: str) -> str:
    """A file of the bundle."""
    return files("tidelog.page").joinpath("static", name).read_text(encoding="utf-8")


def in_script(data: Mapping[str, Any]) -> str:
    r"""JSON that can stand inside a script element.

    >>> in_script({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Only strings can hold these characters, and there an escape is the same. The last two end lines in old scripts.
    for char in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def page(data: Mapping[str, Any]) -> str:
    """The whole page for these data, which have a `title`."""
    script, style = static("bundle.js"), static("bundle.css")
    policy = f"{_NOTHING_ELSE}; script-src {_source(script)}; style-src {_source(style)}; connect-src {_reach(data)}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="tidelog">
<title>{escape(data["title"])}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<noscript>This page draws timelines with JavaScript, which is turned off here.</noscript>
<main id="app"></main>
<script type="application/json" id="data">{in_script(data)}</script>
<script>{script}</script>
</body>
</html>
"""


def _source(text: str) -> str:
    digest = b64encode(sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _reach(data: Mapping[str, Any]) -> str:
    """A page of a running stream asks the server that it came from; a report asks nobody."""
    return "'self'" if data["kind"] == "live" else "'none'"
