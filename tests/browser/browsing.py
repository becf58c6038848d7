"""A Chromium that is there, driven by Playwright; a page in it may say nothing on the console and ask for nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Open = Callable[..., Any]


@contextmanager
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is missing: use make test-browser")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("there is no Chromium, and none could be installed: pages were not tried in a browser")
    with api.sync_playwright() as driver:
        # Chromium's own sandbox cannot be had by root.
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield browser
        browser.close()


@contextmanager
def pages(browser: Any) -> Iterator[Open]:
    """Opens an address or a file; at the end nothing may have been complained of, or asked for from elsewhere."""
    complaints: list[str] = []
    asked: list[str] = []
    contexts: list[Any] = []

    def opened(where: str | Path, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 720}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        address = where.absolute().as_uri() if isinstance(where, Path) else where
        page.on("request", lambda request: None if request.url.startswith(address) else asked.append(request.url))
        page.goto(address)
        page.wait_for_selector("#app h1")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints
    assert not [url for url in asked if not url.startswith("data:")]
