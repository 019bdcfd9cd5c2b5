"""`trainmaster dashboard` as a process of its own, and its pages in a browser."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Response
from trainmaster_client.gateway.gateway_files import new_ui_url

from demos.stage.processes import running_server

PAGES = ("now", "timeline", "jobs", "arrays", "money", "policy", "what-if", "events")
PATIENCE_MS = 20_000
"""Milliseconds a test waits for what a page is to show; a demo waits as long as ``STANDSTILL_SECONDS``."""
_CONTEXT = {"viewport": {"width": 1280, "height": 900}, "timezone_id": "UTC", "locale": "en-GB"}
"""Options of a browser's context, so that a page is the same on every machine."""
_REFUSED = "Failed to load resource"
"""Begin of the console's words on an answer with an error status."""
_VIOLATIONS = """
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => {
        window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
    });
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    ready: Mapping[str, Any]

    @property
    def port(self) -> int:
        return int(self.ready["endpoint_url"].split(":")[2].partition("/")[0])

    def link(self) -> str:
        """Return a link that opens the pages once."""
        url = new_ui_url(self.ready["endpoint_url"])
        if url is None:
            raise RuntimeError("the dashboard does not answer")
        return url


@contextmanager
def running_dashboard(folder: Path, exports: Mapping[str, str], *options: str) -> Iterator[Dashboard]:
    """Run one on a free port for the block.

    Raises:
        ProgramEndedError: It did not start.
        StandstillError: It says nothing and does not answer.
    """
    with running_server(folder, "dashboard", "--no-browser", *options, env=exports) as ready:
        yield Dashboard(ready=ready)


@dataclass(slots=True, kw_only=True)
class Tab:
    """A page of the dashboard in a browser of its own, with its complaints."""

    page: Page
    context: BrowserContext
    errors: list[str] = field(default_factory=list)
    """Errors of its console and scripts, without the answers that the console counts as errors."""
    refused: list[str] = field(default_factory=list)
    """Status and path of answers that were errors."""
    dialogs: list[str] = field(default_factory=list)

    def open(self, link: str) -> None:
        self.page.goto(link)
        self.wait()

    def go(self, path: str) -> None:
        """Go to another page by its hash, e.g. ``jobs/llama-7b``."""
        self.page.evaluate("(hash) => { location.hash = hash; }", f"#/{path}")
        page, _, item = path.partition("?")[0].partition("/")
        name = page.removesuffix("s") if item else page
        self.page.wait_for_selector(f"main[data-page='{name}']:not([data-state='loading'])")

    @property
    def state(self) -> str:
        """Return ``ready``; ``error`` if the first answer was one, ``stale`` if a later one was."""
        return self.page.locator("main").get_attribute("data-state") or ""

    def wait(self, state: str = "ready") -> None:
        self.page.wait_for_selector(f"main[data-state='{state}']")

    def names(self) -> list[str]:
        """Return the names of the jobs that the page links to, in its order, each once."""
        names: list[str] = self.page.eval_on_selector_all(
            "main tbody a[href^='#/jobs/']",
            "all => all.map((one) => decodeURIComponent(one.getAttribute('href').slice(7).split('?')[0]))",
        )
        return list(dict.fromkeys(names))

    def violations(self) -> list[str]:
        """Return violations of the content security policy since the document was loaded."""
        violations: list[str] = self.page.evaluate("window.violations")
        return violations


def _listen(tab: Tab) -> None:
    def said(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(_REFUSED):
            tab.errors.append(message.text)

    def answered(response: Response) -> None:
        if response.status >= HTTPStatus.BAD_REQUEST:
            tab.refused.append(f"{response.status} {urlsplit(response.url).path}")

    def dismiss(dialog: Dialog) -> None:
        tab.dialogs.append(dialog.message)
        dialog.dismiss()

    tab.page.on("console", said)
    tab.page.on("response", answered)
    tab.page.on("pageerror", lambda error: tab.errors.append(str(error)))
    tab.page.on("dialog", dismiss)


@contextmanager
def new_tab(
    browser: Browser,
    *,
    now: datetime | None = None,
    patience_ms: float = PATIENCE_MS,
    **options: Any,  # noqa: ANN401  of a context
) -> Iterator[Tab]:
    """Open a tab in a context of its own, without cookies, for the block.

    Args:
        browser: Which.
        now: Where its clock stands still.
        patience_ms: How long it waits for what a page is to show.
        options: Of the browser's context.
    """
    context = browser.new_context(**{**_CONTEXT, **options})
    context.add_init_script(_VIOLATIONS)
    page = context.new_page()
    page.set_default_timeout(patience_ms)
    if now is not None:
        context.clock.set_fixed_time(now)
    tab = Tab(page=page, context=context)
    _listen(tab)
    try:
        yield tab
    finally:
        context.close()
