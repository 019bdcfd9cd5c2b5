"""A walk over every page of the dashboard in every window: what each showed, said and looked like."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser

from demos.stage import approved_pages, chromium, keyboard, photographs
from demos.stage.dashboard_tab import Dashboard, Tab, new_tab
from demos.stage.evidence import Document
from demos.stage.patience import STANDSTILL_SECONDS
from demos.stage.photographs import VIEWS, View
from demos.stage.two_teams import World

WALL = View(width=3840, height=2160, scheme="light")
"""A window that is photographed, and compared with nothing."""
_PATIENCE_MS = 1000 * STANDSTILL_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Opens tabs on a dashboard."""

    browser: Browser
    dashboard: Dashboard
    now: datetime
    """Instant at which the tabs' clocks stand still."""

    @contextmanager
    def blank(self, **options: Any) -> Iterator[Tab]:  # noqa: ANN401  of a browser's context
        """Open a tab that shows nothing yet."""
        with new_tab(self.browser, now=self.now, patience_ms=_PATIENCE_MS, **options) as tab:
            yield tab

    @contextmanager
    def tab(self, **options: Any) -> Iterator[Tab]:  # noqa: ANN401  of a browser's context
        """Open a tab on the first page."""
        with self.blank(**options) as tab:
            tab.open(self.dashboard.link())
            yield tab


class DashboardWalk:
    """Looks at each page in each window.

    Args:
        world: Whose jobs the pages show.
        opening: Opens the tabs.
        pictures: Folder for the pictures.
    """

    def __init__(self, world: World, opening: Opening, *, pictures: Path) -> None:
        self._world, self._opening, self._pictures = world, opening, pictures
        self.thumbnails: dict[str, Image.Image] = {}
        """Pictures as they are compared, by page and window."""
        self.paths = dict(photographs.PHOTOGRAPHED)
        """Path of each page; What-if has the result of a replay."""

    def pages(self) -> list[Document]:
        """Return what each page showed in each window."""
        self._pictures.mkdir(parents=True, exist_ok=True)
        with self._opening.tab() as tab:
            self.paths["what-if"] = photographs.replayed(tab, patience_ms=_PATIENCE_MS)
        return [page for view in (*VIEWS, WALL) for page in self._pages(view)]

    def _pages(self, view: View) -> Iterator[Document]:
        with self._opening.tab(**view.options) as tab:
            for name, path in self.paths.items():
                photographs.show(tab, path)
                yield self._page(tab, name, view)

    def _page(self, tab: Tab, name: str, view: View) -> Document:
        picture = self._pictures / f"{name}-{view.name}.png"
        tab.page.screenshot(path=picture)
        if view is not WALL:
            self.thumbnails[picture.stem] = approved_pages.thumbnail(picture)
        is_looked_at_closely = view.is_of_the_documents or view.width < VIEWS[-1].width
        facts = {
            "page": name,
            "view": view.name,
            "picture": str(picture),
            "state": tab.state,
            "refused": list(tab.refused),
            "rows": tab.names(),
            "rows_of_the_api": self._jobs() if name in {"now", "jobs"} else None,
            "console_errors": list(tab.errors),
            "policy_violations": tab.violations(),
            "structure": photographs.structure(tab),
            "axe": _axe(tab) if is_looked_at_closely else None,
            "keyboard": keyboard.findings(tab.page) if view.is_of_the_documents else [],
        }
        tab.errors.clear()
        tab.refused.clear()
        return facts

    def _jobs(self) -> list[str]:
        return [str(job["name"]) for job in self._world.api.jobs(limit="100")["jobs"]]


def _axe(tab: Tab) -> list[Document] | None:
    return chromium.axe_findings(tab.page) if chromium.why_no_axe() is None else None
