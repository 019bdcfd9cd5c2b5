"""Play a night of two teams, walk every page of the dashboard in Chromium, and record what it showed."""

import time
from argparse import ArgumentParser
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from trainmaster_client.report import Report

from demos.stage import approved_pages, chromium, first_rows, night, photographs, recording
from demos.stage.approved_pages import ApprovedPages
from demos.stage.command import Telling, run
from demos.stage.dashboard_tab import Dashboard, running_dashboard
from demos.stage.dashboard_walk import DashboardWalk, Opening
from demos.stage.evidence import Document
from demos.stage.twin_stage import temporary_folder
from demos.stage.two_teams import running_world


def _options(parser: ArgumentParser) -> None:
    parser.add_argument("--keep", action="store_true", help="leave twin and dashboard up, and print a link")
    parser.add_argument("--images", type=Path, help="where reduced copies of the pictures go (docs/images)")
    parser.add_argument(
        "--approve", action="store_true", help="keep the pictures as those that later ones are compared with"
    )


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
            opening = Opening(browser=browser, dashboard=dashboard, now=world.now())
            walk = DashboardWalk(world, opening, pictures=telling.path.with_suffix(""))
            report.facts["pages"] = walk.pages()
            film = recording.record(opening.tab, walk.paths)
            report.facts["first_row"] = first_rows.measure(world, opening)
        check(report)
        pages = ApprovedPages(thumbnails=walk.thumbnails, browser=browser.version)
        check_pictures(report, pages, is_approval=telling.options.approve)
        if (images := telling.options.images) is not None:
            photographs.keep_copies(report.facts["pages"], images)
            recording.keep(film, images)
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


def check(report: Report) -> None:
    pages: list[Document] = report.facts["pages"]
    listed = [page for page in pages if page["rows_of_the_api"] is not None]
    unlike = {page["page"]: page["rows"] for page in listed if page["rows"] != page["rows_of_the_api"]}
    report.check("rows-are-the-api-s", expected={}, actual=unlike)
    report.check(
        "console-errors", expected=[], actual=[error for page in pages for error in page["console_errors"]]
    )
    violations = [violation for page in pages for violation in page["policy_violations"]]
    report.check("policy-violations", expected=[], actual=violations)
    if (why := chromium.why_no_axe()) is not None:
        report.skip("axe", reason=why)
    else:
        findings = [(page["page"], page["view"], finding) for page in pages for finding in page["axe"] or ()]
        grave = [(page, view, finding["id"]) for page, view, finding in findings if chromium.grave([finding])]
        report.check("axe", expected=[], actual=grave)
        report.facts["axe_findings"] = dict(Counter(finding["id"] for _, _, finding in findings))
    unreached = [(page["page"], page["view"], page["keyboard"]) for page in pages if page["keyboard"]]
    report.check("keyboard-walk", expected=[], actual=unreached)
    unready = [page["page"] for page in pages if page["state"] != "ready"]
    report.check("every-page-is-ready", expected=[], actual=unready)
    report.check(
        "every-page-has-a-heading",
        expected=[],
        actual=[page["page"] for page in pages if not page["structure"]["headings"]],
    )
    for timing in report.facts["first_row"]:
        first_rows.note(report, timing)


def check_pictures(report: Report, pages: ApprovedPages, *, is_approval: bool) -> None:
    """Compare the pages with the approved pictures, or approve them."""
    if is_approval:
        approved_pages.approve(pages)
        report.skip(
            "pictures", reason=f"approved now: {len(pages.thumbnails)} in {approved_pages.SHEET.name}"
        )
        return
    approved = approved_pages.read()
    changes = [str(change) for change in approved.changes(pages.thumbnails)]
    report.facts["pictures"] = {
        "compared": len(pages.thumbnails),
        "changed": changes,
        "browser": pages.browser,
    }
    if not changes:
        report.check("pictures-are-the-approved-ones", expected=[], actual=[])
    elif approved.browser != pages.browser:
        versions = f"Chromium {pages.browser} made them, {approved.browser} the approved ones"
        reason = f"{versions}; look at them, then {approved_pages.APPROVE}"
        report.skip("pictures-are-the-approved-ones", reason="; ".join([reason, *changes]))
    else:
        remedy = f"none; if they are meant, look at build/dashboard, then {approved_pages.APPROVE}"
        report.check("pictures-are-the-approved-ones", expected=remedy, actual=changes, ok=False)


if __name__ == "__main__":
    raise SystemExit(run(tell, __doc__, report="dashboard", options=_options))
