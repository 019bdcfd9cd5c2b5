"""Play a night of two teams, walk every page of the dashboard in Chromium, and record what it showed."""

import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser
from trainmaster_client.report import Report

from demos.stage import chromium, night, photographs
from demos.stage.command import Telling, run
from demos.stage.dashboard_tab import Dashboard, Tab, new_tab, running_dashboard
from demos.stage.evidence import Document
from demos.stage.patience import STANDSTILL_SECONDS
from demos.stage.twin_stage import temporary_folder
from demos.stage.two_teams import World, WorldJob, running_world

SIZES = (50, 2000)
"""Waiting jobs, with which the seconds to the first row are noted."""
WIDTHS = (400, 1280, 1920, 3840)
MOST_SECONDS_AFTER_THE_ANSWER = 1.0
"""Most seconds between the API's first answer and the first row; the API's own time is the twin's."""
_SUBMITTERS = 4
_PATIENCE_MS = 1000 * STANDSTILL_SECONDS
_ROW = "main tbody tr a[href^='#/jobs/']"


def _options(parser: ArgumentParser) -> None:
    parser.add_argument("--keep", action="store_true", help="leave twin and dashboard up, and print a link")
    parser.add_argument("--images", type=Path, help="where reduced copies of the pictures go (docs/images)")


def tell(telling: Telling) -> int:
    report = telling.report
    if (why := chromium.why_not()) is not None:
        report.skip("chromium", reason=why)
        return telling.finish()
    with temporary_folder() as folder, ExitStack() as until_the_end:
        world = until_the_end.enter_context(running_world(folder))
        telling.screen.say(
            f"The twin is up at {world.twin.ready['endpoint_url']}; a night passes on its clock."
        )
        night.play(world)
        telling.screen.reached = "the night of two teams is over"
        exports = world.environment_of(None)
        dashboard = until_the_end.enter_context(
            running_dashboard(folder / "dashboard", exports, "--allow-changes")
        )
        with chromium.running_browser() as browser:
            report.facts |= _Walk(telling, world, dashboard, browser).facts()
        check(report)
        code = telling.finish()
        if telling.options.keep:
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
    def __init__(self, telling: Telling, world: World, dashboard: Dashboard, browser: Browser) -> None:
        self._world, self._dashboard, self._browser = world, dashboard, browser
        self._pictures, self._images = telling.path.with_suffix(""), telling.options.images

    def facts(self) -> Document:
        self._pictures.mkdir(parents=True, exist_ok=True)
        facts: Document = {"pages": self._pages(), "first_row": []}
        self._widths()
        for size in SIZES:
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
        picture = self._pictures / f"{name}-{scheme}.png"
        tab.page.screenshot(path=picture)
        structure = photographs.structure(tab)
        if (folder := self._images) is not None:
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
        return [str(job["name"]) for job in self._world.api.jobs(limit="100")["jobs"]]

    def _widths(self) -> None:
        for width in WIDTHS:
            viewport = {"width": width, "height": 2160 if width > 2000 else 860}  # noqa: PLR2004  4k
            with self._tab(viewport=viewport) as tab:
                for name, path in photographs.PHOTOGRAPHED.items():
                    tab.go(path)
                    tab.page.screenshot(path=self._pictures / f"{name}-{width}.png")

    def _fill(self, size: int) -> None:
        """Submit jobs until this many wait."""
        there = sum(pool["waiting"] for pool in self._world.api.pools()["pools"])
        jobs = [
            WorldJob(name=f"sweep-{number:04d}", team="vision" if number % 2 else "language", hours=2)
            for number in range(there, size)
        ]
        print(f"{len(jobs)} more jobs are submitted.")
        with ThreadPoolExecutor(_SUBMITTERS) as submitters:
            list(submitters.map(self._world.add, jobs))
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


def check(report: Report) -> None:
    pages: list[Document] = report.facts["pages"]
    listed = [page for page in pages if page["rows_of_the_api"] is not None]
    report.check(
        "rows-are-the-api-s",
        expected=[page["rows_of_the_api"] for page in listed],
        actual=[page["rows"] for page in listed],
    )
    report.check(
        "console-errors", expected=[], actual=[error for page in pages for error in page["console_errors"]]
    )
    violations = [violation for page in pages for violation in page["policy_violations"]]
    report.check("policy-violations", expected=[], actual=violations)
    if any(page["axe"] is None for page in pages):
        report.skip("axe", reason="axe-core is not installed: npm ci --prefix tests/browser")
    else:
        findings = [(page["page"], page["scheme"], finding) for page in pages for finding in page["axe"]]
        grave = [
            (page, scheme, finding["id"])
            for page, scheme, finding in findings
            if finding["impact"] in chromium.GRAVE
        ]
        report.check("axe", expected=[], actual=grave)
        report.facts["axe_findings"] = dict(Counter(finding["id"] for _, _, finding in findings))
    unready = [page["page"] for page in pages if page["state"] != "ready"]
    report.check("every-page-is-ready", expected=[], actual=unready)
    report.check(
        "every-page-has-a-heading",
        expected=[],
        actual=[page["page"] for page in pages if not page["structure"]["headings"]],
    )
    for timing in report.facts["first_row"]:
        _note_time(report, timing)


def _note_time(report: Report, timing: Document) -> None:
    """Report a time that is too long; it fails nothing, as the machine may have had more to do."""
    after = timing["seconds"] - (timing["seconds_until_the_api_answered"] or 0)
    expected = f"at most {MOST_SECONDS_AFTER_THE_ANSWER} s after the API's answer"
    actual = f"{after:.2f} s, {timing['seconds']:.2f} s after the link was opened"
    name = f"first-row-of-{timing['waiting']}"
    if after <= MOST_SECONDS_AFTER_THE_ANSWER:
        report.check(name, expected=expected, actual=actual, ok=True)
    else:
        report.skip(name, reason=f"warning: {actual}; {expected} where nothing else runs")


if __name__ == "__main__":
    raise SystemExit(run(tell, __doc__, report="dashboard", options=_options))
