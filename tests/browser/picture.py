"""Makes docs/img/report.png anew: `python tests/browser/picture.py`, with what `make test-browser` installs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from browsing import chromium, pages

from locations import ROOT
from tidelog.cli.main import run


def main() -> None:
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser, pages(browser) as opened:
        file = Path(folder) / "report.html"
        assert run(["report", "examples/language/door.dmtl", "examples/language/door.facts", "-o", str(file)]) == 0
        page = opened(file)
        page.set_viewport_size({"width": 1120, "height": 600})
        page.focus("canvas")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        page.evaluate("document.activeElement.blur()")
        page.wait_for_timeout(300)
        page.screenshot(path=str(ROOT / "docs/img/report.png"))


if __name__ == "__main__":
    main()
