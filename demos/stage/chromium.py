"""Chromium as Debian installs it, driven by Playwright; the checks of axe-core in it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

Document = dict[str, Any]

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
AXE = Path(__file__).parents[2] / "tests/browser/node_modules/axe-core/axe.min.js"
GRAVE = frozenset({"serious", "critical"})
"""Impacts of axe-core's findings that no page may have."""
_AXE_RULES = """async () => {
    const found = await axe.run(document, {resultTypes: ["violations"]});
    return found.violations.map((one) => ({
        id: one.id, impact: one.impact, help: one.help,
        nodes: one.nodes.slice(0, 5).map(
            (node) => ({html: node.html.slice(0, 200), why: node.failureSummary})),
    }));
}"""


def program() -> str | None:
    """Return the browser of this machine; None if there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name)) is not None), None)


def why_not() -> str | None:
    """Say why no page can be opened here; None if one can."""
    if program() is None:
        return f"no browser: none of {', '.join(PROGRAMS)} is on the PATH (apt-get install chromium)"
    return None


def why_no_axe() -> str | None:
    if not AXE.exists():
        return "axe-core is not installed: make tests/browser/node_modules/.ready, which needs npm"
    return None


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Raises RuntimeError where there is none."""
    if (why := why_not()) is not None:
        raise RuntimeError(why)
    options = ["--disable-dev-shm-usage"] + (["--no-sandbox"] if os.geteuid() == 0 else [])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=options)
        try:
            yield browser
        finally:
            browser.close()


def axe_findings(page: Page) -> list[Document]:
    """Return axe-core's findings on the page as shown. Its program bypasses the page's policy for scripts."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    findings: list[Document] = page.evaluate(_AXE_RULES)
    return findings


def grave(findings: list[Document]) -> list[Document]:
    return [finding for finding in findings if finding["impact"] in GRAVE]
