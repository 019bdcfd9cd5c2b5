"""What people come for takes few clicks and keys: counted by the browser itself, not in seconds."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from demos.stage import sweep
from demos.stage.dashboard_tab import Tab
from demos.stage.two_teams import BIG, BIG_CAPACITY
from tests.browser.conftest import OpenTab, Stage
from tests.browser.test_policy_replay import REPLAYS_MS
from tests.browser.test_queue_page import waiting_job

pytestmark = pytest.mark.thorough

_COUNTED = """() => {
    window.acts = 0;
    addEventListener("pointerdown", () => { window.acts += 1; }, true);
    addEventListener("keydown", () => { window.acts += 1; }, true);
}"""


@pytest.fixture
def acting(open_tab: OpenTab, stage: Stage) -> Iterator[Tab]:
    """A tab on Now, in which clicks and keys are counted, with --allow-changes; its console stays empty."""
    tab = open_tab(stage.changing)
    tab.page.evaluate(_COUNTED)
    yield tab
    assert (tab.errors, tab.violations()) == ([], [])


def acts(page: Page) -> int:
    counted: int = page.evaluate("window.acts")
    return counted


def test_why_a_job_waits_and_what_helps_takes_one_click(acting: Tab, stage: Stage) -> None:
    waiting = waiting_job(stage)
    acting.page.locator("main tbody tr", has=acting.page.locator(f"a[href$='{waiting}']")).click(
        position={"x": 300, "y": 12}
    )
    drawer = acting.page.locator(".drawer")
    drawer.get_by_text("In use by").wait_for()
    drawer.get_by_text("What would help").wait_for()
    assert acts(acting.page) <= 2


def test_who_used_what_this_month_takes_one_click(acting: Tab) -> None:
    acting.page.get_by_role("link", name="Money").click()
    acting.page.wait_for_selector("main[data-page='money'][data-state='ready'] table.money")
    assert acts(acting.page) <= 2


def test_a_sweep_shows_its_best_task_and_what_failed_by_class(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.go(f"arrays/{sweep.NAME}")
    tab.page.get_by_text("Best so far:").wait_for()
    assert "lr 3e-4" in tab.page.locator("main p.panel").inner_text()
    failed = tab.page.get_by_label("What failed")
    assert failed.inner_text().count(f"{sweep.FAILED}x gpu-oom") == 1
    cells = tab.page.locator("table.grid-of-values tbody td")
    assert cells.count() == len(sweep.RATES) * len(sweep.BATCHES)
    assert tab.page.locator("table.grid-of-values td.bad").count() == sweep.FAILED
    assert tab.page.get_by_role("button", name=f"Rerun {sweep.FAILED} failed").count() == 0


def test_the_failed_of_a_sweep_run_again_after_three_clicks(open_tab: OpenTab, stage: Stage) -> None:
    with_changes = open_tab(stage.changing)
    body = sweep.body(stage.world, "retried")
    stage.world.teams["language"].add_array(
        body | {"tasks": "8", "values": body["values"][8:9]}, key="retried"
    )
    stage.world.wait("it fails", lambda: _failed(stage))
    page = with_changes.page
    page.evaluate(_COUNTED)
    page.get_by_role("link", name="Arrays").click()
    row = page.locator("main tbody tr", has=page.locator("a[href$='/retried']"))
    row.get_by_role("button", name="Rerun 1 failed").click()
    page.get_by_role("button", name="Rerun them").click()
    page.wait_for_selector("main[data-page='array'][data-state='ready']")
    assert acts(page) <= 3
    again = stage.world.teams["language"].array(page.url.rpartition("/")[2])
    assert (again["rerun_of"], again["indices"]) == ("retried", "8")


def test_a_policy_with_one_more_instance_is_tried_after_two_clicks_and_shared(
    open_tab: OpenTab, stage: Stage
) -> None:
    page = (tab := open_tab()).page
    page.evaluate(_COUNTED)
    page.get_by_role("link", name="What-if").click()
    page.get_by_role("button", name=f"Replay with one more {BIG} in p5").click()
    page.wait_for_url("**replay=*")
    assert acts(page) <= 4
    page.reload()
    page.get_by_role("heading", name="What would have been different").wait_for(timeout=REPLAYS_MS)
    assert "wait shorter" in page.locator(".replay-summary").inner_text()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save it as a file").click()
    assert saved.value.suggested_filename == "trainmaster-what-if.html"
    assert "<h1" in saved.value.path().read_text("utf-8")
    assert (tab.errors, tab.refused) == ([], [])
    assert stage.world.api.policy()["policy"]["pools"][0]["capacity"] == {BIG: BIG_CAPACITY}, (
        "none is in force"
    )


def _failed(stage: Stage) -> bool:
    stage.world.clock(4)
    return str(stage.world.teams["language"].array("retried")["state"]) == "failed"
