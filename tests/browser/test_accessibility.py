"""axe-core on every page, dark and light; and the keyboard alone."""

import pytest
from playwright.sync_api import Page

from demos.stage import chromium, keyboard, night, sweep
from demos.stage.dashboard_tab import PAGES
from tests.browser.conftest import OpenTab, Stage, unless_there

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "path", [*PAGES, f"jobs/{night.LLAMA.name}", f"jobs/{night.BROKEN.name}", f"arrays/{sweep.NAME}"]
)
def test_axe_finds_nothing_serious(path: str, scheme: str, open_tab: OpenTab, stage: Stage) -> None:
    unless_there(chromium.why_no_axe())
    tab = open_tab(stage.changing if path.startswith("jobs/") else None, color_scheme=scheme)
    tab.go(path)
    assert chromium.grave(chromium.axe_findings(tab.page)) == []


def test_the_checker_finds_what_is_wrong(open_tab: OpenTab) -> None:
    unless_there(chromium.why_no_axe())
    tab = open_tab()
    tab.page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert [one["id"] for one in chromium.grave(chromium.axe_findings(tab.page))] == ["button-name"]


def test_every_page_is_reached_by_g_and_a_letter(open_tab: OpenTab) -> None:
    tab = open_tab()
    for path in reversed(PAGES):
        said = tab.page.locator(f"nav a[href='#/{path}']").get_attribute("title") or ""
        tab.page.keyboard.press("g")
        tab.page.keyboard.press(said.removeprefix("Keys: g "))
        tab.page.wait_for_selector(f"main[data-page='{path}']:not([data-state='loading'])")


@pytest.mark.parametrize("path", PAGES)
def test_the_tab_key_reaches_whatever_can_be_pressed_and_shows_where_it_is(
    path: str, open_tab: OpenTab, stage: Stage
) -> None:
    tab = open_tab(stage.changing)
    tab.go(path)
    assert keyboard.pressable(tab.page)
    assert keyboard.findings(tab.page) == []


def test_an_action_is_confirmed_with_its_consequence_and_taken_by_the_keyboard_alone(
    open_tab: OpenTab, stage: Stage
) -> None:
    job = next(one for one in night.WAITING if one.team == "language")
    tab = open_tab(stage.changing)
    tab.go(f"jobs/{job.name}")
    walk_to(tab.page, "button hold")
    tab.page.keyboard.press("Enter")
    dialog = tab.page.get_by_role("dialog")
    dialog.wait_for()
    assert job.name in dialog.inner_text()
    tab.page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert stage.world.state(job.name) == "pending", "Escape is no yes"
    walk_to(tab.page, "button hold")
    tab.page.keyboard.press("Enter")
    dialog.wait_for()
    walk_to(tab.page, "button hold")
    tab.page.keyboard.press("Enter")
    stage.world.wait("it is held", lambda: stage.world.state(job.name) == "held")


def test_the_reading_dashboard_has_no_action(open_tab: OpenTab) -> None:
    tab = open_tab()
    tab.go(f"jobs/{night.LLAMA.name}")
    names = [one.lower() for one in tab.page.locator("main button:enabled").all_inner_texts()]
    assert not [one for one in names if one.startswith(("cancel", "hold", "release", "priority", "pause"))]


def walk_to(page: Page, name: str) -> None:
    """Press Tab until what has the focus is called so, whatever its case."""
    for _ in range(keyboard.MOST_TABS):
        if keyboard.focused(page).lower().startswith(name):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the Tab key does not reach {name!r}")
