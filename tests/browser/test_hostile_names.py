"""Markup, escapes and control characters in whatever the API says are text on every page."""

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import Error, Route

from demos.stage import night
from demos.stage.dashboard_tab import PAGES
from tests.browser.conftest import OpenTab, Stage

pytestmark = pytest.mark.thorough

CORPUS = (
    "<img src=x onerror=alert(1) data-injected>",
    "<script data-injected>alert(2)</script>",
    "<svg onload=alert(3) data-injected></svg>",
    "\"'><b data-injected>bold</b>",
    "javascript:alert(4)",
    "{{constructor.constructor('alert(5)')()}}",
    "${alert(6)}",
    "\x1b[31mred\x1b[0m\x07\x00\x9b2J",
    "&lt;i data-injected&gt;",
    "a\u202egnp.exe\u2066\u200b",
    '=HYPERLINK("https://example.com")',
    "x" * 300,
)
FREE = frozenset(
    {
        *(
            "name",
            "job",
            "team",
            "user",
            "submitted_by",
            "preempted_by",
            "by",
            "principal",
            "model_name",
            "key",
        ),
        *("shown", "short", "help", "place", "searched"),
        *("message", "detail", "what", "why", "todo", "undo", "hint", "label", "advice", "evidence", "value"),
    }
)
"""Members of answers that hold what people wrote."""
LOCAL = re.compile(r"/ui/data/(queue|jobs/)")
"""What the dashboard's own process makes of the API's answers: rows, waits, curves, logs."""


@pytest.mark.parametrize("hostile", CORPUS, ids=[f"corpus-{number}" for number in range(len(CORPUS))])
def test_what_people_wrote_is_text_on_every_page(hostile: str, open_tab: OpenTab, stage: Stage) -> None:
    tab = open_tab(stage.changing)
    requested: list[str] = []
    tab.page.on("request", lambda one: requested.append(one.url))

    def answer(route: Route) -> None:
        response = route.fetch()
        if "json" in response.headers.get("content-type", "") and response.ok:
            document = replaced(response.json(), hostile)
            route.fulfill(response=response, body=json.dumps(document))
        else:
            route.fulfill(response=response)

    def answer_unless_left(route: Route) -> None:
        with suppress(Error):  # the page was left meanwhile, and its answer is gone
            answer(route)

    tab.page.route("**/api/**", answer_unless_left)
    tab.page.route(LOCAL, answer_unless_left)
    for path in (*PAGES, f"jobs/{night.BROKEN.name}"):
        tab.go(path)
        assert tab.page.locator("[data-injected]").count() == 0, path
        assert tab.page.locator("a[href^='javascript:' i]").count() == 0, path
    assert (tab.dialogs, tab.violations()) == ([], [])
    assert not [one for one in requested if not one.startswith(("http://127.0.0.1", "blob:", "data:"))]
    assert tab.errors == []


def test_the_names_are_there_as_they_were_written(open_tab: OpenTab, stage: Stage) -> None:
    tab = open_tab()
    hostile = CORPUS[0]

    def answer(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=json.dumps(replaced(response.json(), hostile)))

    tab.page.route(LOCAL, answer)
    tab.go("jobs")
    tab.page.locator("main tbody a").first.wait_for()
    assert tab.page.get_by_text(hostile).count() > 0 or hostile in tab.page.content().replace(
        "&lt;", "<"
    ).replace("&gt;", ">")


def replaced(value: Any, hostile: str, key: str = "") -> Any:
    """The document with the hostile text behind each free text of it, but for the keys of its columns."""
    if key == "columns":
        return value
    if isinstance(value, dict):
        return {name: replaced(one, hostile, name) for name, one in value.items()}
    if isinstance(value, list):
        return [replaced(one, hostile, key) for one in value]
    return f"{value}{hostile}" if isinstance(value, str) and key in FREE else value
