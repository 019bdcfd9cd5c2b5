"""The site as a reader opens it: from a folder, without a server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from playwright.sync_api import Browser, Page

from demos.stage import chromium
from tests.browser.conftest import unless_there
from tests.markdown import ROOT
from tests.site import make_site

OpenPage: TypeAlias = Callable[..., Page]
Colours: TypeAlias = Literal["light", "dark"]

PHONE = {"width": 400, "height": 800}
FIRST_HITS = {
    "preemption": "training/preemption.html",
    "preempt": "training/preemption.html",
    "why": "cli.html",
    "budget": "costs.html",
    "fine-tuning": "training/finetune.html",
    "slack": "guides/chat.html",
    "idle": "idle.html",
    "faq": "faq.html",
    "glossary": "concepts.html",
    "slurm": "guides/migrate-from-slurm.html",
    "shortest_first": "policy.html",
    "aws batch": "guides/migrate-from-aws-batch.html",
}
"""What a reader types, and the page that is about it."""
LEAST_COLOURS = 3
_COLOURS = """() => new Set([...document.querySelectorAll(".highlight code span")]
    .map((one) => getComputedStyle(one).color)).size"""
_WIDER_THAN_THE_PAGE = """() => {
    const page = document.documentElement;
    return page.scrollWidth > page.clientWidth;
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_site(ROOT, tmp_path_factory.mktemp("site"))


@pytest.fixture
def open_page(browser: Browser, site: Path) -> Iterator[OpenPage]:
    """Opens a page of the site; at the end its console was empty, and nothing came from elsewhere."""
    complaints: list[str] = []

    def listened(page: Page) -> Page:
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda line: complaints.append(line.text) if line.type in {"error", "warning"} else None,
        )
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(("file:", "data:")) else complaints.append(asked.url),
        )
        return page

    with ExitStack() as until_the_end:

        def opened(path: str = "index.html", **options: Any) -> Page:
            context = until_the_end.enter_context(browser.new_context(**options))
            page = listened(context.new_page())
            page.goto((site / path).as_uri())
            return page

        yield opened
    assert complaints == []


def first_hit(page: Page, words: str) -> str:
    page.goto(f"{page.url.partition('?')[0]}?q={words}")
    hit = page.locator(".md-search-result__item a").first
    hit.wait_for()
    return (hit.get_attribute("href") or "").partition("?")[0]


def wait_for_scheme(page: Page, name: str) -> None:
    page.locator(f"body[data-md-color-scheme={name}]").wait_for()


def test_a_reader_searches_with_the_keyboard_and_lands_on_the_page(open_page: OpenPage, site: Path) -> None:
    page = open_page("guides/deploy.html")
    page.keyboard.press("/")
    page.keyboard.type("preemption")
    page.locator(".md-search-result__item").first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{(site / FIRST_HITS['preemption']).as_uri()}?h=preemption")
    assert page.locator("h1").inner_text().startswith("Preemption")


@pytest.mark.parametrize(
    "searched",
    [
        pytest.param(("preempt", "why", "slurm"), id="a stem, a command, a title"),
        pytest.param(tuple(FIRST_HITS), id="all", marks=pytest.mark.thorough),
    ],
)
def test_the_first_hit_is_the_page_about_it(
    searched: tuple[str, ...], open_page: OpenPage, site: Path
) -> None:
    page = open_page()
    found = {words: first_hit(page, words) for words in searched}
    assert found == {words: (site / FIRST_HITS[words]).as_uri() for words in searched}


@pytest.mark.thorough
def test_an_instance_type_is_found_without_its_prefix(open_page: OpenPage) -> None:
    """People type ``p5.48xlarge``; the pages write ``ml.p5.48xlarge``."""
    pages = [
        path for path in (ROOT / "docs").rglob("*.md") if "p5.48xlarge" in path.read_text(encoding="utf-8")
    ]
    page = open_page()
    page.goto(f"{page.url.partition('?')[0]}?q=p5.48xlarge")
    page.locator(".md-search-result__item").first.wait_for()
    counted = page.locator(".md-search-result__meta").inner_text()
    assert int(counted.split()[0]) >= len(pages), counted


def test_dark_or_light_as_the_system_until_the_reader_chooses(open_page: OpenPage) -> None:
    page = open_page("policy.html", color_scheme="dark")
    wait_for_scheme(page, "slate")
    page.emulate_media(color_scheme="light")
    wait_for_scheme(page, "default")
    page.get_by_title("Switch to light mode").click()
    page.get_by_title("Switch to dark mode").click()
    wait_for_scheme(page, "slate")
    page.get_by_role("link", name="The REST API").first.click()
    page.wait_for_url("**/api.html")
    wait_for_scheme(page, "slate")


def test_code_has_colours_and_a_button_that_copies_it(open_page: OpenPage) -> None:
    page = open_page("policy.html")
    assert page.evaluate(_COLOURS) >= LEAST_COLOURS
    assert page.get_by_title("Copy to clipboard").count() == page.locator("pre > code").count()


@pytest.mark.thorough
def test_a_phone_finds_the_search_and_the_navigation(open_page: OpenPage, site: Path) -> None:
    page = open_page(viewport=PHONE, has_touch=True)
    page.locator("label[for=__search]").and_(page.locator(":visible")).first.tap()
    page.keyboard.type("preemption")
    page.locator(".md-search-result__item a").first.tap()
    page.wait_for_url(f"{(site / FIRST_HITS['preemption']).as_uri()}**")
    page.locator("label[for=__drawer]").and_(page.locator(":visible")).first.tap()
    page.get_by_role("link", name="Checkpoints", exact=True).wait_for()


@pytest.mark.thorough
def test_no_page_is_wider_than_a_phone_or_complains(open_page: OpenPage, site: Path) -> None:
    page = open_page(viewport=PHONE)
    wide = []
    for path in sorted(set(site.rglob("*.html")) - {site / "404.html"}):  # which a server shows
        page.goto(path.as_uri())
        if page.evaluate(_WIDER_THAN_THE_PAGE):
            wide.append(path.relative_to(site).as_posix())
    assert wide == []


@pytest.mark.thorough
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize(
    "path", ["index.html", "policy.html", "api.html", "dashboard.html", "ARCHITECTURE.html", "adr/index.html"]
)
def test_axe_finds_nothing_serious(path: str, colours: Colours, browser: Browser, site: Path) -> None:
    unless_there(chromium.why_no_axe())
    with browser.new_page(
        color_scheme=colours
    ) as page:  # whose console has what axe may not read from a folder
        page.goto((site / path).as_uri())
        assert chromium.grave(chromium.axe_findings(page)) == []
