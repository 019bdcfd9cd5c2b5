"""The API away, slow, throttled, expired credentials: said in a line, the picture kept, no click lost."""

import json
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Route

from demos.stage import night
from demos.stage.dashboard_tab import PAGES, Tab
from tests.browser.conftest import OpenTab, Stage

pytestmark = pytest.mark.thorough

SLOW_SECONDS = 5
API = "**/api/**"
LOCAL = "**/ui/data/**"
TROUBLES = {
    "unreachable": (503, "The queue's API gives no answer."),
    "throttled": (429, "Too many requests."),
    "credentials": (401, "The credentials have expired."),
}


@pytest.fixture
def troubled(open_tab: OpenTab) -> Iterator[Tab]:
    """Its console may say what the network refused."""
    tab = open_tab()
    yield tab
    assert tab.violations() == []
    assert tab.errors == []


@pytest.mark.parametrize("kind", TROUBLES)
@pytest.mark.parametrize("path", PAGES)
def test_trouble_is_one_line_the_picture_is_kept_and_comes_back_by_itself(
    path: str, kind: str, troubled: Tab
) -> None:
    troubled.go(path)
    before = troubled.page.locator("main h1").inner_text()
    refuse(troubled, kind)
    troubled.page.keyboard.press("r")
    troubled.wait("stale")
    banner = troubled.page.locator("#banner")
    assert "stale since" in banner.inner_text()
    assert banner.locator(f"[data-trouble={kind}]").count() == 1
    assert troubled.page.locator("main h1").inner_text() == before
    troubled.page.unroute(API)
    troubled.page.unroute(LOCAL)
    banner.get_by_role("button").press("Enter")
    troubled.wait("ready")
    assert banner.is_hidden()


def test_a_page_that_never_had_an_answer_says_why_and_recovers(troubled: Tab) -> None:
    refuse(troubled, "unreachable")
    troubled.page.evaluate("location.hash = '#/jobs'")
    troubled.wait("error")
    assert "gives no answer" in troubled.page.locator("main").inner_text()
    troubled.page.unroute(API)
    troubled.page.unroute(LOCAL)
    troubled.page.get_by_role("button", name="Try now").press("Enter")
    troubled.wait("ready")


def test_expired_credentials_name_the_remedy(troubled: Tab) -> None:
    troubled.go("now")
    refuse(troubled, "credentials")
    troubled.page.keyboard.press("r")
    troubled.wait("stale")
    assert "aws sso login" in troubled.page.locator("#banner").inner_text()


def test_while_an_answer_takes_five_seconds_the_page_is_there_and_can_be_left(troubled: Tab) -> None:
    troubled.go("now")
    rows = troubled.names()

    def late(route: Route) -> None:
        time.sleep(SLOW_SECONDS)
        route.continue_()

    troubled.page.route(f"{API}jobs*", late, times=1)
    troubled.page.keyboard.press("r")
    assert troubled.names() == rows
    troubled.page.evaluate("location.hash = '#/policy'")
    troubled.page.wait_for_selector("main[data-page='policy']")
    troubled.go("now")
    assert troubled.names() == rows


def test_a_click_during_trouble_is_done_once_or_said_to_have_failed(open_tab: OpenTab, stage: Stage) -> None:
    job = [one for one in night.WAITING if one.team == "language"][-1]
    tab = open_tab(stage.changing)
    tab.go(f"jobs/{job.name}")
    changes: list[str] = []

    def refused(route: Route) -> None:
        if route.request.method == "GET" or "dry_run" in route.request.url:
            route.continue_()
            return
        changes.append(route.request.method)
        status, detail = TROUBLES["unreachable"]
        if len(changes) == 1:
            route.fulfill(status=status, body=json.dumps({"detail": detail}), content_type="application/json")
        else:
            route.continue_()

    tab.page.route(API, refused)
    tab.page.get_by_role("button", name="Hold", exact=False).first.click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Hold", exact=False).click()
    stage.world.wait("the click counted", lambda: has_counted(tab, stage, job.name))


def has_counted(tab: Tab, stage: Stage, name: str) -> bool:
    """By the job's state, or by a line that says it did not; a line that may be pressed again is pressed."""
    tab.page.wait_for_timeout(200)
    if stage.world.state(name) == "held":
        return True
    again = tab.page.get_by_role("dialog").get_by_role("button", name="again", exact=False)
    if again.count():
        again.first.click()
    return False


def refuse(tab: Tab, kind: str) -> None:
    status, detail = TROUBLES[kind]

    def answer(route: Route) -> None:
        route.fulfill(
            status=status,
            body=json.dumps({"detail": detail}),
            content_type="application/problem+json",
            headers={"retry-after": "30"},
        )

    tab.page.route(API, answer)
    tab.page.route(LOCAL, answer)
