"""The dashboard's files and data as a browser gets them from the gateway."""

import json
from collections.abc import Iterator

import pytest
from trainmaster_client.gateway.gateway_files import new_ui_url

from tests.integration.client.fake_api import REGION
from tests.integration.client.gateway_world import TOKEN, GatewayWorld, running_gateway
from tests.integration.client.test_gateway_pages import asked, opened

BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def world() -> Iterator[GatewayWorld]:
    with running_gateway() as found:
        yield found


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("", "text/html; charset=utf-8"),
        ("index.html", "text/html; charset=utf-8"),
        ("app.js", "text/javascript; charset=utf-8"),
        ("pages/now.js", "text/javascript; charset=utf-8"),
        ("style.css", "text/css; charset=utf-8"),
    ],
)
def test_a_file_is_for_any_browser_of_this_machine_under_a_policy_that_runs_nothing_of_others(
    path: str, kind: str, world: GatewayWorld
) -> None:
    page = asked(world, f"/ui/{path}")
    assert (page.status, page.headers["content-type"]) == (200, kind)
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'self'; ")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert (page.headers["x-content-type-options"], page.headers["referrer-policy"]) == (
        "nosniff",
        "no-referrer",
    )
    again = asked(world, f"/ui/{path}", if_none_match=page.headers["etag"])
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path", ["x", "app.py", "../api/jobs", "..%2f__init__.py", "pages", "pages/", "%00", "web_files.py"]
)
def test_what_is_not_one_of_its_files_is_not_there(path: str, world: GatewayWorld) -> None:
    answer = asked(world, f"/ui/{path}", **BEARER)
    assert answer.status == 404
    assert json.loads(answer.body)["status"] == 404


def test_no_file_of_the_shell_holds_a_secret(world: GatewayWorld) -> None:
    secrets = {TOKEN, new_ui_url(world.url) or "", world.api.url}
    for path in ("", "app.js", "api.js"):
        body = asked(world, f"/ui/{path}").body.decode()
        assert not [one for one in secrets if one in body]


def test_a_file_that_a_page_of_another_port_asks_for_is_refused(world: GatewayWorld) -> None:
    others = {"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"}
    assert asked(world, "/ui/app.js", **others).status == 403


def test_the_session_says_where_the_pages_are_and_no_key(world: GatewayWorld) -> None:
    page = asked(world, "/ui/data/session", cookie=opened(world).cookie)
    said = json.loads(page.body)
    assert said == {
        "changes": False,
        "region": REGION,
        "api_url": world.api.url,
        "version": said["version"],
    }
    assert page.headers["cache-control"] == "no-store"


def test_the_gateways_own_page_reads_what_it_did_so_far(world: GatewayWorld) -> None:
    said = json.loads(asked(world, "/ui/data/gateway", **BEARER).body)
    assert (said["api_url"], said["changes"]) == (world.api.url, False)
    assert said["credentials"].startswith("access key ...")
    assert TOKEN not in json.dumps(said)
