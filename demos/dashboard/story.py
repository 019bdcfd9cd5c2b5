"""The demo from start to end: the night, Chromium on every page, and what is noted of it."""

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from demos.command import Telling
from demos.dashboard import chromium, night, photographs
from demos.dashboard.checks import check
from demos.dashboard.dashboard_process import Dashboard, Tab, new_tab, running_dashboard
from demos.dashboard.world import World, WorldJob, running_world
from demos.patience import STANDSTILL_SECONDS

Document = dict[str, Any]

SIZES = (50, 2000)
"""Waiting jobs, with which the seconds to the first row are noted."""
WIDTHS = (400, 1280, 3840)
_SUBMITTERS = 4
_PATIENCE_MS = 1000 * STANDSTILL_SECONDS
_ROW = "main tbody tr a[href^='#/jobs/']"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    pictures: Path
    """Folder for the pictures."""
    keep: bool = False
    images: Path | None = None
    """Folder for reduced copies of the pictures; None makes none."""
    sizes: tuple[int, ...] = SIZES


def tell(telling: Telling, options: Options) -> int:
    """Run the demo; the exit code."""
    report = telling.report
    if (why := chromium.why_not()) is not None:
        report.skip("chromium", reason=why)
        return telling.finish()
    with (
        tempfile.TemporaryDirectory(prefix="trainmaster-dashboard-", ignore_cleanup_errors=True) as name,
        ExitStack() as until_the_end,
    ):
        world = until_the_end.enter_context(running_world(Path(name)))
        print(f"The twin is up at {world.twin.ready['endpoint_url']}; a night passes on its clock.")
        night.play(world)
        telling.screen.reached = "the night of two teams is over"
        exports = world.environment_of(None)
        dashboard = until_the_end.enter_context(
            running_dashboard(Path(name) / "dashboard", exports, "--allow-changes")
        )
        with chromium.running_browser() as browser:
            walk = _Walk(world, dashboard, browser, options)
            report.facts |= walk.facts()
        check(report)
        code = telling.finish()
        if options.keep:
            _keep(dashboard)
    return code


def _keep(dashboard: Dashboard) -> None:
    print(f"\nThe twin and its dashboard stay up until Ctrl-C. A link that is good once:\n{dashboard.link()}")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        print()


class _Walk:
    def __init__(self, world: World, dashboard: Dashboard, browser: Browser, options: Options) -> None:
        self._world = world
        self._dashboard = dashboard
        self._browser = browser
        self._options = options

    def facts(self) -> Document:
        self._options.pictures.mkdir(parents=True, exist_ok=True)
        facts: Document = {"pages": self._pages(), "first_row": []}
        self._widths()
        for size in self._options.sizes:
            self._fill(size)
            facts["first_row"].append(self._seconds_to_first_row(size))
        return facts

    def _pages(self) -> list[Document]:
        documents: list[Document] = []
        for scheme in ("dark", "light"):
            with self._tab(color_scheme=scheme, viewport=photographs.VIEWPORT) as tab:
                for name, path in photographs.PHOTOGRAPHED.items():
                    tab.go(path)
                    documents.append(self._page(tab, name, scheme))
        return documents

    def _page(self, tab: Tab, name: str, scheme: str) -> Document:
        picture = self._options.pictures / f"{name}-{scheme}.png"
        tab.page.screenshot(path=picture)
        structure = photographs.structure(tab)
        if (folder := self._options.images) is not None:
            photographs.keep_copy(picture, name=name, scheme=scheme, structure=structure, folder=folder)
        has_axe = chromium.why_no_axe() is None
        facts = {
            "page": name,
            "scheme": scheme,
            "state": tab.state,
            "refused": list(tab.refused),
            "rows": tab.names(),
            "rows_of_the_api": self._jobs() if name in {"now", "jobs"} else None,
            "console_errors": list(tab.errors),
            "policy_violations": tab.violations(),
            "axe": chromium.axe_findings(tab.page) if has_axe else None,
            "structure": structure,
        }
        tab.errors.clear()
        tab.refused.clear()
        return facts

    def _jobs(self) -> list[str]:
        return [str(job["name"]) for job in self._world.admin.jobs(limit="100")["jobs"]]

    def _widths(self) -> None:
        for width in WIDTHS:
            viewport = {"width": width, "height": 2160 if width > 2000 else 860}  # noqa: PLR2004  4k
            with self._tab(viewport=viewport) as tab:
                for name, path in photographs.PHOTOGRAPHED.items():
                    tab.go(path)
                    tab.page.screenshot(path=self._options.pictures / f"{name}-{width}.png")

    def _fill(self, size: int) -> None:
        """Submit jobs until this many wait."""
        there = sum(pool["waiting"] for pool in self._world.admin.pools()["pools"])
        jobs = [
            WorldJob(name=f"sweep-{number:04d}", team="vision" if number % 2 else "language", hours=2)
            for number in range(there, size)
        ]
        print(f"{len(jobs)} more jobs are submitted.")
        with ThreadPoolExecutor(_SUBMITTERS) as submitters:
            list(submitters.map(self._world.submit, jobs))
        self._world.clock(1)

    def _seconds_to_first_row(self, size: int) -> Document:
        """Measure from the link to a row, in a browser that was never here; and the API's part of that."""
        with new_tab(self._browser, now=self._world.now(), patience_ms=_PATIENCE_MS) as tab:
            began = time.monotonic()
            answered: list[float] = []
            tab.page.on(
                "requestfinished",
                lambda request: (
                    answered.append(time.monotonic() - began) if "/ui/data/queue" in request.url else None
                ),
            )
            tab.page.goto(self._dashboard.link(), wait_until="commit")
            tab.page.wait_for_selector(_ROW)
            seconds = time.monotonic() - began
            tab.wait()
            return {
                "waiting": size,
                "seconds": round(seconds, 2),
                "seconds_until_the_api_answered": round(answered[0], 2) if answered else None,
                "seconds_until_all_rows": round(time.monotonic() - began, 2),
                "rows_drawn": tab.page.locator(_ROW).count(),
            }

    @contextmanager
    def _tab(self, **options: Any) -> Iterator[Tab]:  # noqa: ANN401  of a browser's context
        """Open a tab on the dashboard."""
        with new_tab(self._browser, now=self._world.now(), patience_ms=_PATIENCE_MS, **options) as tab:
            tab.open(self._dashboard.link())
            yield tab
