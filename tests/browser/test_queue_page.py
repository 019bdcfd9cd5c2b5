"""The page Now in Chromium: why a job waits, ten thousand rows, an empty queue, cards on a phone."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Route

from demos.stage import chromium, night
from demos.stage.dashboard_tab import Tab
from tests.browser.conftest import OpenTab, Stage, unless_there
from tests.browser.test_timeline_page import seconds_of_tasks

pytestmark = pytest.mark.thorough

QUEUE = "**/ui/data/queue?*"
MANY = 10_000
MOST_ROWS_IN_THE_DOCUMENT = 100
SECONDS_TO_DRAW = 1
"""Of the page's own thread, from the answer to the first rows and through a scroll over all of them."""
_IN_SIGHT = """() => [...document.querySelectorAll("main tbody tr[data-key]")].filter((row) => {
    const { top, bottom } = row.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
}).length"""
_FOCUSED_ROW = "document.activeElement.closest('tr')?.dataset.key ?? ''"
Document = dict[str, Any]


def rewritten(tab: Tab, change: Callable[[Document], Document]) -> None:
    """Have the page read another queue than there is."""

    def answer(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=json.dumps(change(response.json())))

    tab.page.route(QUEUE, answer)


def with_many_rows(document: Document) -> Document:
    like = next(row for row in document["rows"] if row["phase"] == "waiting" and row["name"])

    def sweep(number: int) -> Document:
        name = f"sweep-{number:05d}"
        cells = {**like["cells"], "job": name, "position": str(number)}
        return {**like, "key": f"p5 {name}", "name": name, "cells": cells, "searched": f"{name}\nvision"}

    return {**document, "rows": [sweep(number) for number in range(MANY)]}


def waiting_job(stage: Stage) -> str:
    """Name a job of team language that waits for instances: other tests hold some of the night's."""
    jobs = stage.world.teams["language"].jobs(limit="100")["jobs"]
    name: str = next(
        job["name"]
        for job in jobs
        if job["name"] and job["state"] == "pending" and job["waiting"]["code"] in {"ahead", "capacity"}
    )
    return name


def row_of(tab: Tab, name: str) -> Any:
    return tab.page.locator("main tbody tr", has=tab.page.locator(f"a[href*='{name}']"))


def test_one_click_says_who_holds_what_a_job_waits_for_and_what_would_help(
    open_tab: OpenTab, stage: Stage
) -> None:
    tab = open_tab(stage.changing)
    row_of(tab, waiting_job(stage)).locator("td.state").click()
    drawer = tab.page.locator("aside.drawer")
    drawer.get_by_text("What would help").wait_for()
    said = drawer.inner_text()
    assert night.URGENT.name in said.partition("In use by")[2].partition("Ahead of it")[0]
    assert "until" in said
    assert "p90" not in said
    assert "UTC" not in said
    buttons = drawer.get_by_role("button").all_inner_texts()
    assert buttons[0] == "Close"
    unless_there(chromium.why_no_axe())
    assert chromium.grave(chromium.axe_findings(tab.page)) == []


def test_other_instances_are_tried_by_a_dry_run_before_a_copy_is_submitted(
    open_tab: OpenTab, stage: Stage
) -> None:
    tab = open_tab(stage.changing)
    row_of(tab, waiting_job(stage)).locator("td.state").click()
    tab.page.locator("aside.drawer").get_by_role("button", name="Other instances").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_label("of", exact=True).select_option("ml.g5.12xlarge")
    dialog.get_by_text("would likely start").or_(dialog.get_by_text("is unknown")).first.wait_for()
    before = len(stage.world.api.jobs(limit="100")["jobs"])
    tab.page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert len(stage.world.api.jobs(limit="100")["jobs"]) == before


def test_the_keyboard_opens_a_row_and_gets_back_to_it(tab: Tab) -> None:
    tab.page.focus("main tbody tr[tabindex='0']")
    tab.page.keyboard.press("ArrowDown")
    row = tab.page.evaluate(_FOCUSED_ROW)
    tab.page.keyboard.press("Enter")
    tab.page.locator("aside.drawer").get_by_role("button", name="Close").wait_for()
    assert tab.page.evaluate("document.activeElement.className") == "drawer"
    tab.page.keyboard.press("Escape")
    tab.page.locator("aside.drawer").wait_for(state="hidden")
    assert tab.page.evaluate(_FOCUSED_ROW) == row


def test_ten_thousand_rows_are_drawn_scrolled_and_searched_without_a_stall(tab: Tab) -> None:
    tab.go("policy")
    rewritten(tab, with_many_rows)
    metrics = tab.context.new_cdp_session(tab.page)
    metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = seconds_of_tasks(metrics.send("Performance.getMetrics"))
    tab.go("now")
    tab.page.locator("main tbody a", has_text="-00000").first.wait_for()
    widths = tab.page.eval_on_selector_all(
        "main tbody tr[data-key]:nth-child(5) td", "all => all.map((one) => one.offsetWidth)"
    )
    assert min(widths) > 40, "a row above or below what is seen does not narrow the columns"
    for at in (0.3, 0.6, 1):
        tab.page.evaluate("(at) => scrollTo(0, at * document.body.scrollHeight)", at)
        tab.page.wait_for_function(f"() => ({_IN_SIGHT})() > 5")
        drawn = tab.page.locator("main tbody tr[data-key]").count()
        assert drawn <= MOST_ROWS_IN_THE_DOCUMENT
    assert seconds_of_tasks(metrics.send("Performance.getMetrics")) - before <= SECONDS_TO_DRAW
    tab.page.evaluate("scrollTo(0, 0)")
    tab.page.get_by_label("Find (/)").fill("sweep-0999")
    tab.page.get_by_text(f"10 of {MANY:,} jobs").wait_for()
    tab.page.get_by_label("Find (/)").fill("")
    tab.page.get_by_text(f"{MANY:,} jobs", exact=True).wait_for()
    tab.page.focus("main tbody tr[tabindex='0']")
    tab.page.keyboard.press("End")
    assert tab.page.evaluate(_FOCUSED_ROW) == f"p5 sweep-{MANY - 1:05d}"
    assert tab.page.locator("main table").get_attribute("aria-rowcount") == str(MANY + 1)


def test_a_search_in_a_part_of_the_queue_does_not_say_that_there_is_nothing(tab: Tab) -> None:
    rewritten(tab, lambda document: {**document, "is_partial": True})
    tab.page.keyboard.press("r")
    tab.page.get_by_text("reading the rest of the queue").first.wait_for()
    tab.page.get_by_label("Find (/)").fill("no job is called this")
    tab.page.get_by_text("0 found so far; reading the rest of the queue").wait_for()
    assert "0 of" not in tab.page.locator(".queue-bar").inner_text()


@pytest.mark.parametrize(
    ("most_pools", "command"), [(5, "trainmaster submit"), (0, "trainmaster policy apply")]
)
def test_an_empty_queue_teaches_one_command(most_pools: int, command: str, tab: Tab) -> None:
    rewritten(tab, lambda document: {**document, "rows": [], "pools": document["pools"][:most_pools]})
    tab.page.keyboard.press("r")
    tab.page.locator(".first-use code", has_text=command).wait_for()
    assert tab.page.locator("main code").count() == 1
    assert tab.page.locator("main table").is_hidden()


def test_on_a_phone_a_job_is_a_card_and_the_drawer_fits(open_tab: OpenTab, stage: Stage) -> None:
    tab = open_tab(viewport={"width": 400, "height": 800}, has_touch=True)
    name = waiting_job(stage)
    card = row_of(tab, name)
    card.scroll_into_view_if_needed()
    box = card.bounding_box()
    assert box is not None
    assert box["width"] <= 400
    assert 60 <= box["height"] <= 120
    assert tab.page.locator("main thead").is_hidden()
    card.locator("td.state").tap()
    drawer = tab.page.locator("aside.drawer")
    drawer.get_by_text("In use by").wait_for()
    place = drawer.bounding_box()
    assert place is not None
    assert place["x"] >= 0
    assert place["x"] + place["width"] <= 400
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_strip_says_what_is_ahead_of_its_pool_on_the_readers_clock(open_tab: OpenTab) -> None:
    tab = open_tab(timezone_id="Europe/Berlin")
    ahead = {
        "calendar": ["from 2027-01-10 08:00 UTC on 1x ml.p5.48xlarge"],
        "plans": ["plan night: next window 2027-01-11 08:00 to 2027-01-12 08:30 UTC"],
        "reservations": ["reservation demo, 2027-01-13 08:00 UTC to 2027-01-13 09:00 UTC: 1x ml.p5.48xlarge"],
    }
    rewritten(tab, lambda document: {**document, "pools": [{**document["pools"][0], **ahead}]})
    tab.page.keyboard.press("r")
    strip = tab.page.locator("section.strip")
    strip.get_by_text("reservation demo").wait_for()
    said = strip.inner_text()
    assert "UTC" not in said
    for instant in ("10 Jan 2027 09:00", "11 Jan 2027 09:00 to 12 Jan 2027 09:30", "13 Jan 2027 10:00"):
        assert instant in said


def test_rows_have_one_height_whatever_is_in_them(tab: Tab) -> None:
    rewritten(
        tab,
        lambda document: {
            **document,
            "rows": [
                {**row, "cells": {**row["cells"], "job": "x" * 300, "short": "y " * 60, "team": "t" * 60}}
                for row in document["rows"]
            ],
        },
    )
    tab.page.keyboard.press("r")
    tab.page.locator("main tbody td.team", has_text="tttt").first.wait_for()
    heights = tab.page.eval_on_selector_all(
        "main tbody tr[data-key]", "rows => rows.map((row) => Math.round(row.getBoundingClientRect().height))"
    )
    assert max(heights) - min(heights) <= 1
