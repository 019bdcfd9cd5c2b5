"""The dashboard as Chromium shows it: its rows are the API's, who is let in, where it fits."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from demos.stage import night, sweep
from demos.stage.dashboard_tab import PAGES, Dashboard, Tab
from demos.stage.two_teams import WorldJob
from tests.browser.conftest import OpenTab, Stage
from tests.browser.prefix_proxy import running_proxy

SECONDS_TO_SEE = 5
_READ_OF_ANOTHER_PORT = """async (dashboard) => {
    const read = (path) => fetch(dashboard + path, { credentials: "include" });
    const paths = ["/api/jobs", "/ui/data/session", "/ui/"];
    const told = (path) => read(path).then((answer) => answer.status, (error) => error.name);
    return Promise.all(paths.map(told));
}"""
EVERY_PAGE = (*PAGES, f"jobs/{night.LLAMA.name}")
_WIDER_THAN_ITS_PLACE = """() => [...document.querySelectorAll("html, main, main *")]
    .filter((one) => one.clientWidth && one.scrollWidth > one.clientWidth)
    .filter((one) => one.matches("html") || ["auto", "scroll"].includes(getComputedStyle(one).overflowX))
    .map((one) => `${one.tagName} ${one.className} ${one.getAttribute("aria-label") ?? ""}`)"""


@pytest.mark.parametrize("path", ["now", "jobs"])
def test_the_rows_of_the_page_are_those_of_the_api_in_its_order(path: str, tab: Tab, stage: Stage) -> None:
    tab.go(path)
    assert tab.names() == [job["name"] for job in stage.world.api.jobs(limit="100")["jobs"]]


def test_every_page_is_shown_without_an_error_and_within_its_policy_for_scripts(tab: Tab) -> None:
    for path in EVERY_PAGE:
        tab.go(path)
        assert tab.page.locator("main h1").count() == 1, path
        assert tab.state == "ready", path


def test_a_link_opens_once_and_leaves_neither_a_cookie_nor_its_token(open_tab: OpenTab, stage: Stage) -> None:
    link = stage.reading.link()
    first = open_tab(link=link)
    assert first.context.cookies() == []
    assert "token" not in first.page.url
    assert first.page.evaluate("Object.keys(localStorage)") == ["trainmaster-session /ui/"]
    first.page.goto(link)
    first.wait()
    other = first.context.browser
    assert other is not None
    context = other.new_context()
    page = context.new_page()
    page.goto(link)
    page.get_by_text("This link has been used").wait_for()
    assert page.evaluate("Object.keys(localStorage)") == []
    context.close()


def test_T3_a_server_on_another_port_gets_nothing_that_opens_the_dashboard(
    open_tab: OpenTab, stage: Stage
) -> None:
    tab = open_tab()
    with listening_server() as (url, heard):
        page = tab.context.new_page()
        page.goto(url)
        stored = page.evaluate("[document.cookie, {...localStorage}, {...sessionStorage}]")
        tried = page.evaluate(_READ_OF_ANOTHER_PORT, f"http://127.0.0.1:{stage.reading.port}")
        page.close()
    assert stored == ["", {}, {}]
    assert tried == ["TypeError"] * 3, "no answer is for a page of another origin"
    secret = tab.page.evaluate("localStorage.getItem('trainmaster-session /ui/')")
    assert heard
    for headers in heard:
        assert secret not in json.dumps(headers)
        kept = {name: value for name, value in headers.items() if name.lower() != "host"}
        for target in ("/api/jobs", "/ui/data/session"):
            assert status(stage.reading, target, kept) == 403


def test_reload_back_new_tabs_and_copied_links_need_no_new_link(open_tab: OpenTab, stage: Stage) -> None:
    tab = open_tab()
    job = f"jobs/{night.LLAMA.name}"
    tab.go("jobs")
    tab.go(job)
    tab.page.reload()
    tab.page.wait_for_selector("main[data-page='job'][data-state='ready']")
    tab.page.go_back()
    tab.page.wait_for_selector("main[data-page='jobs'][data-state='ready']")
    copied = f"http://127.0.0.1:{stage.reading.port}/ui/#/{job}"
    other = tab.context.new_page()
    other.goto(copied)
    other.wait_for_selector("main[data-page='job'][data-state='ready']")
    with listening_server(f'<a href="{copied}">the job</a>') as (url, heard):
        other.goto(url)
        other.get_by_text("the job").click()
        other.wait_for_selector("main[data-page='job'][data-state='ready']")
        heard.clear()
        other.evaluate("(url) => { location.href = url; }", url)
        other.get_by_text("the job").wait_for()
        assert heard
        assert "referer" not in {name.lower() for name in heard[0]}
    other.close()


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Host": "rebound.example"}, id="a name that was bound to this machine"),
        pytest.param({"Origin": "http://127.0.0.1:1"}, id="a page of another port"),
        pytest.param({"Origin": "https://example.com", "Sec-Fetch-Site": "cross-site"}, id="another site"),
    ],
)
def test_pages_of_others_are_refused(headers: dict[str, str], open_tab: OpenTab, stage: Stage) -> None:
    secret = open_tab().page.evaluate("localStorage.getItem('trainmaster-session /ui/')")
    kept = {"trainmaster-session": secret}
    assert status(stage.reading, "/api/jobs", kept) == 200
    assert status(stage.reading, "/api/jobs", kept | headers) == 403
    assert status(stage.reading, "/ui/data/session", kept | headers) == 403


def test_no_key_of_the_user_reaches_the_browser(tab: Tab, stage: Stage) -> None:
    bodies: list[str] = []
    tab.page.on("response", lambda one: bodies.append(one.text()) if "/ui/" in one.url else None)
    tab.page.reload()
    tab.wait()
    assert bodies
    assert not any(stage.world.twin.ready["secret_access_key"] in body for body in bodies)


@pytest.mark.thorough
@pytest.mark.parametrize("proxy", ["says what it took", "says nothing"])
def test_behind_a_proxy_that_strips_its_prefix_every_page_works(
    proxy: str, open_tab: OpenTab, stage: Stage
) -> None:
    says_so = proxy == "says what it took"
    port = stage.reading.port
    with running_proxy(port, says_so=says_so) as url:
        tab = open_tab(link=stage.reading.link().replace(f"http://127.0.0.1:{port}", url))
        for path in EVERY_PAGE:
            tab.go(path)
        tab.page.reload()
        tab.wait()
        kept = tab.page.evaluate("Object.keys(localStorage)")
        assert kept == [f"trainmaster-session /proxy/{port}/ui/"], "each dashboard behind it has its own"
        assert (tab.errors, tab.violations()) == ([], [])


def test_nothing_scrolls_sideways_at_400_pixels(open_tab: OpenTab) -> None:
    tab = open_tab(viewport={"width": 400, "height": 800})
    for path in (*EVERY_PAGE, f"arrays/{sweep.NAME}", "gateway"):
        tab.go(path)
        tab.page.eval_on_selector_all("main details", "all => all.forEach((one) => { one.open = true; })")
        assert tab.page.evaluate(_WIDER_THAN_ITS_PLACE) == [], path


def test_on_a_phone_each_figure_of_a_card_stands_beside_the_head_of_its_column(open_tab: OpenTab) -> None:
    tab = open_tab(viewport={"width": 400, "height": 800})
    for path, region, cell, head in (
        ("money", "Budgets", "2,000 USD", "Budget"),
        ("policy", "Pools", "2x ml.p5.48xlarge", "Instances"),
    ):
        tab.go(path)
        table = tab.page.get_by_role("region", name=region, exact=True)
        assert table.locator("thead").is_hidden(), path
        said = table.locator("td", has_text=cell).evaluate(
            "(one) => getComputedStyle(one, '::before').content"
        )
        assert said == f'"{head}"', path


def test_a_preemption_is_on_the_page_within_five_seconds(tab: Tab, stage: Stage) -> None:
    tab.go("now")
    preempted = night.TRANSLATE.name
    row = tab.page.locator("main tbody tr", has=tab.page.locator(f"a[href*='{preempted}']"))
    assert "running" in row.inner_text()
    stage.world.add(WorldJob(name="incident-rerun", team="vision", priority=20, hours=1))
    stage.world.clock(4)
    stage.world.wait("it is preempted", lambda: stage.world.state(preempted) == "preempted")
    row.get_by_text("preempted").first.wait_for(timeout=1000 * SECONDS_TO_SEE)


@contextmanager
def listening_server(page: str = "<p>another server of this machine</p>") -> Iterator[tuple[str, list[Any]]]:
    """Its URL on another port, and the headers that browsers send there."""
    heard: list[Any] = []

    class Listening(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(dict(self.headers))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Listening)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def status(dashboard: Dashboard, target: str, headers: dict[str, str]) -> int:
    connection = HTTPConnection("127.0.0.1", dashboard.port, timeout=30)
    connection.request("GET", target, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status == 403:
        assert "jobs" not in json.loads(body)
        assert urlsplit(target).path
    return answer.status
