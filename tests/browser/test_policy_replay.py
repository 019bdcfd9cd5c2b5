"""A policy replayed from the Policy page: by the dashboard's process, and what the page shows of it."""

import base64
import json
import zlib
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route

from demos.stage import chromium
from demos.stage.dashboard_tab import Tab
from tests.browser.conftest import OpenTab, Stage, unless_there
from tests.browser.test_hostile_names import CORPUS

HOSTILE = CORPUS[0]
REPLAYS_MS = 120_000
"""A process starts, and a night is replayed twice."""
RUNNING = {"id": "", "state": "running", "doing": "Replaying the policy in force", "share": 0.25, "error": ""}
DONE = {
    **RUNNING,
    "state": "done",
    "share": 1.0,
    "has_report": True,
    "result": {
        "notes": [f"The history has 3 days. {HOSTILE}"],
        "summary": ["12 jobs wait shorter, 2 longer", f"team that gains most: {HOSTILE}"],
        "tables": [
            {
                "title": "Waits by team",
                "columns": ["Team", "Jobs", "now", "new", "Change"],
                "rows": [[HOSTILE, "12", "1h05m", "12m", "53m shorter"], ["language", "3", "2m", "2m", ""]],
            }
        ],
        "not_in_model": [f"Users are as they were. {HOSTILE}"],
    },
}


def edited(tab: Tab, text: str | None = None) -> None:
    tab.go("policy")
    tab.page.get_by_role("button", name="Edit").click()
    if text is not None:
        tab.page.get_by_role("textbox").fill(text)


def scripted(page: Page, answers: list[dict[str, Any]], *, each_look: bool = True) -> list[dict[str, str]]:
    """Answers the page's questions about its replay, the last one again and again; what it asked with.

    ``each_look``: whoever only looks how far it is gets the next answer, too; else the one before again.
    """
    asked: list[dict[str, str]] = []
    newest = answers[0]

    def answer(route: Route) -> None:
        nonlocal newest
        path = urlsplit(route.request.url).path
        asked.append({"method": route.request.method, "path": path, **route.request.headers})
        if answers and (each_look or "trainmaster-replay" in route.request.headers):
            newest = answers.pop(0)
        found = newest
        replay_id = path.rpartition("/")[2]
        body = {"result": {}, "has_report": False, **found, "id": replay_id}
        route.fulfill(status=200, content_type="application/json", body=json.dumps(body))

    page.route("**/ui/data/replays/*", answer)
    return asked


def test_a_reading_dashboard_replays_what_is_edited_and_shows_what_would_have_been(tab: Tab) -> None:
    asked = scripted(tab.page, [dict(RUNNING), dict(DONE)])
    edited(tab, "pools: []\n")
    tab.page.get_by_role("button", name="Replay the last 14 days").click()
    tab.page.get_by_text("Replaying the policy in force 25 %").wait_for()
    assert tab.page.get_by_role("button", name="Replay the last 14 days").is_disabled()
    tab.page.get_by_role("heading", name="What would have been different").wait_for()
    first, second = asked
    assert (first["method"], first["trainmaster-replay"]) == ("GET", "start")
    assert zlib.decompress(base64.urlsafe_b64decode(first["trainmaster-policy"])) == b"pools: []\n"
    assert (second["path"], "trainmaster-replay" in second) == (first["path"], False)
    assert tab.page.get_by_role("row").filter(has_text="53m shorter").inner_text().split("\t") == [
        HOSTILE,
        *("12", "1h05m", "12m", "53m shorter"),
    ]
    assert tab.page.get_by_text("team that gains most: " + HOSTILE).count() == 1
    assert tab.page.locator("[data-injected]").count() == 0
    report = tab.page.get_by_role("link", name="The whole report")
    assert report.get_attribute("href") == f"data/replays/{first['path'].rpartition('/')[2]}/report"


def test_a_replay_is_cancelled_and_what_went_wrong_with_one_is_said(tab: Tab) -> None:
    failed = {**RUNNING, "state": "failed", "error": f"Only admins may read the history. {HOSTILE}"}
    scripted(tab.page, [dict(RUNNING), {**RUNNING, "state": "cancelled"}, failed], each_look=False)
    edited(tab)
    tab.page.get_by_role("button", name="Replay the last 14 days").click()
    tab.page.get_by_role("button", name="Cancel the replay").click()
    tab.page.get_by_text("The replay was cancelled.").wait_for()
    tab.page.get_by_role("button", name="Replay the last 14 days").click()
    assert tab.page.get_by_role("alert").inner_text() == failed["error"]


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_axe_finds_nothing_serious_in_a_replay_and_it_fits(
    width: int, scheme: str, open_tab: OpenTab
) -> None:
    unless_there(chromium.why_no_axe())
    tab = open_tab(color_scheme=scheme, viewport={"width": width, "height": 900})
    scripted(tab.page, [dict(DONE)])
    edited(tab)
    tab.page.get_by_role("button", name="Replay the last 14 days").click()
    tab.page.get_by_role("heading", name="What would have been different").wait_for()
    tab.page.get_by_text("What is not in the model").click()
    assert chromium.grave(chromium.axe_findings(tab.page)) == []
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.thorough
def test_the_night_is_replayed_by_the_scheduler_itself_and_its_report_opens(tab: Tab, stage: Stage) -> None:
    tab.go("policy")
    edited(tab)
    text = tab.page.get_by_role("textbox").input_value()
    assert "pools" in text
    tab.page.get_by_role("button", name="Replay the last 14 days").click()
    tab.page.get_by_role("heading", name="What would have been different").wait_for(timeout=REPLAYS_MS)
    assert tab.page.get_by_role("table").count() >= 1
    with tab.context.expect_page() as opened:
        tab.page.get_by_role("link", name="The whole report").click()
    report = opened.value
    report.wait_for_load_state()
    assert report.locator("h1").count() == 1
