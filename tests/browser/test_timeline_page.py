"""The timeline in Chromium: what ran is on it, by keyboard too, and thirty days of it are drawn at once."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Route

from demos.stage import night
from demos.stage.dashboard_tab import Tab
from tests.browser.conftest import Stage

pytestmark = pytest.mark.thorough

TYPE = "ml.p5.48xlarge"
ROWS = 8
ATTEMPTS = 500
SECONDS_TO_DRAW = 1
"""Of the page's own thread, so that other work on the machine does not count."""


def thirty_days(pool: str, now: datetime) -> dict[str, Any]:
    """Attempts one behind the other on eight instances, the last of them live."""
    begin = now - timedelta(days=28)
    hours = 28 * 24 * ROWS / ATTEMPTS
    attempts = []
    for number in range(ATTEMPTS):
        turn, row = divmod(number, ROWS)
        claimed = begin + timedelta(hours=turn * hours, minutes=row)
        ended = claimed + timedelta(hours=hours * 0.9)
        is_live = ended >= now
        attempts.append(
            {
                "job": f"job-{number}",
                "attempt": number % 3,
                "team": f"team-{number % 5}",
                "pool": pool,
                "instances": {TYPE: 1},
                "capacity_type": "on-demand",
                "claimed_at": claimed.isoformat(),
                "training_since": (claimed + timedelta(minutes=5)).isoformat(),
                "ended_at": None if is_live else ended.isoformat(),
                "end": None if is_live else ("preemption", "completed", "gpu-oom")[number % 3],
                "preempted_by": None,
                "preempted_by_team": None,
                "warm_start": False,
                "lost_seconds": 60,
            }
        )
    capacity = {"at": begin.isoformat(), "pool": pool, "capacity": {TYPE: ROWS}, "spot_capacity": {}}
    since = begin.isoformat()
    return {"attempts": attempts, "capacity": [capacity], "warm": [], "since": since, "next_token": None}


def test_what_ran_is_on_the_timeline_and_in_its_table(tab: Tab, stage: Stage) -> None:
    tab.go("timeline?span=6")
    tab.page.wait_for_selector("svg.timeline-track rect.bar")
    tab.page.get_by_text("The same as a table").click()
    written = tab.page.locator(".timeline-table tbody").inner_text()
    assert night.TRANSLATE.name in written
    attempts = stage.world.api.timeline()["attempts"]
    assert tab.page.locator(".timeline-table tbody tr").count() == len(attempts)


def test_the_keyboard_alone_goes_from_attempt_to_attempt_and_to_its_job(tab: Tab) -> None:
    tab.go("timeline?span=6")
    tab.page.wait_for_selector("svg.timeline-track rect.bar")
    tab.page.focus(".timeline")
    tab.page.keyboard.press("ArrowDown")
    said = tab.page.locator(".timeline-chosen")
    first = said.inner_text()
    assert "attempt" in first
    tab.page.keyboard.press("ArrowDown")
    assert said.inner_text() != first
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("main[data-page='job']")


def test_shift_and_drag_zoom_to_what_was_brushed(tab: Tab) -> None:
    tab.go("timeline?span=24")
    chart = tab.page.locator(".timeline")
    tab.page.wait_for_selector("svg.timeline-track rect.bar")
    box = chart.bounding_box()
    assert box is not None
    tab.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 60)
    tab.page.keyboard.down("Shift")
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 0.65 * box["width"], box["y"] + 70, steps=4)
    assert tab.page.locator(".timeline-brush").is_visible()
    tab.page.mouse.up()
    tab.page.keyboard.up("Shift")
    tab.page.wait_for_function("() => /span=6/.test(location.hash)")
    assert tab.page.locator(".timeline-brush").is_hidden()


def test_thirty_days_of_500_attempts_are_drawn_within_a_second(tab: Tab, stage: Stage) -> None:
    def answer(route: Route) -> None:
        route.fulfill(json=thirty_days("p5", stage.world.now()))

    tab.page.route("**/api/timeline?*", answer)
    tab.go("now")
    metrics = tab.context.new_cdp_session(tab.page)
    metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = seconds_of_tasks(metrics.send("Performance.getMetrics"))
    tab.go("timeline?span=720")
    tab.page.wait_for_function("document.querySelectorAll('svg.timeline-track rect.bar').length > 400")
    spent = seconds_of_tasks(metrics.send("Performance.getMetrics")) - before
    assert spent <= SECONDS_TO_DRAW


def seconds_of_tasks(answered: dict[str, Any]) -> float:
    measured = {one["name"]: one["value"] for one in answered["metrics"]}
    return float(measured["TaskDuration"])
