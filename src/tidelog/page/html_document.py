"""One HTML page with everything in it: the bundle, the style and the data. It needs no network.

A content security policy forbids the page to load or send anything, and to run any script but the bundle. The data are
JSON in which no character can end the script element around them.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

#: What a browser may load for a page, besides the script and the style in it.
_NOTHING_ELSE = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"


def read_static(name: str) -> str:
    """Read a file of the bundle."""
    return files("tidelog.page").joinpath("static", name).read_text(encoding="utf-8")


def to_script_json(data: Mapping[str, Any]) -> str:
    r"""Write JSON that is safe inside a script element.

    >>> to_script_json({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Only JSON strings contain these characters, where an escape means the same. The last two end lines in old scripts.
    for char in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def render_page(data: Mapping[str, Any]) -> str:
    """Render the whole page for these data, which have a `kind` and a `title`."""
    script, style = read_static("bundle.js"), read_static("bundle.css")
    # The page of a running stream may ask its own server; a report may ask nobody.
    connections = "'self'" if data["kind"] == "live" else "'none'"
    sources = f"script-src {_hash_source(script)}; style-src {_hash_source(style)}; connect-src {connections}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_NOTHING_ELSE}; {sources}">
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
<script type="application/json" id="data">{to_script_json(data)}</script>
<script>{script}</script>
</body>
</html>
"""


def _hash_source(text: str) -> str:
    digest = b64encode(sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
