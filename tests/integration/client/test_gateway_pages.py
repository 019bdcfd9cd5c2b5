"""Who is let into the pages: a link that opens once, the cookie after it; and the API behind both."""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from botocore.credentials import Credentials
from trainmaster_client.gateway.gateway_files import new_ui_url, status

from tests.integration.client.fake_api import ACCESS_KEY, SECRET_KEY, Scripted, problem
from tests.integration.client.gateway_world import TOKEN, GatewayWorld, running_gateway

JOBS: dict[str, Any] = {"jobs": [], "next_token": None}


@pytest.fixture(scope="module")
def reading() -> Iterator[GatewayWorld]:
    with patch("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0), running_gateway() as world:
        yield world


@pytest.fixture(scope="module")
def changing() -> Iterator[GatewayWorld]:
    with running_gateway(are_changes_allowed=True) as world:
        yield world


@pytest.fixture
def world(reading: GatewayWorld) -> GatewayWorld:
    reading.api.forget()
    return reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def cookie(self) -> str:
        """As the browser sends it back."""
        return self.headers.get("set-cookie", "").partition(";")[0]


def asked(world: GatewayWorld, target: str, method: str = "GET", body: Any = None, **headers: Any) -> Page:
    """As a browser asks, which is not botocore. Names of headers are written with underscores."""
    connection = HTTPConnection("127.0.0.1", world.port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, target, body=body, headers=named)
    answer = connection.getresponse()
    found = {name.lower(): value for name, value in answer.getheaders()}
    page = Page(status=answer.status, headers=found, body=answer.read())
    connection.close()
    return page


def token_of(ui_url: str | None) -> str:
    """Behind the #: browsers keep it to themselves, and the page sends it in a header."""
    parts = urlsplit(ui_url or "")
    assert (parts.path, parts.query) == ("/ui/", "")
    return parts.fragment.removeprefix("token=")


def opened(world: GatewayWorld, prefix: str = "", **headers: str) -> Page:
    token = token_of(new_ui_url(world.url))
    return asked(world, f"{prefix}/ui/session", "POST", trainmaster_token=token, **headers)


def test_a_link_opens_the_pages_once_and_its_browser_goes_on_by_the_cookie(world: GatewayWorld) -> None:
    token = token_of(world.ui_url)
    first = asked(world, "/ui/session", "POST", trainmaster_token=token)
    assert (first.status, first.body) == (204, b"")
    attributes = first.headers["set-cookie"].split("; ")[1:]
    assert attributes == ["Path=/", "HttpOnly", "SameSite=Strict"]
    assert asked(world, "/ui/session", "POST", trainmaster_token=token).status == 403
    assert asked(world, "/ui/data/session", cookie=f"other=1; {first.cookie}").status == 200


@pytest.mark.parametrize("given", ["", "wrong", "\u00e9"])
def test_a_token_that_is_not_one_of_the_gateways_opens_nothing(given: str, world: GatewayWorld) -> None:
    answer = asked(world, "/ui/session", "POST", trainmaster_token=given)
    assert (answer.status, "set-cookie" in answer.headers) == (403, False)
    assert answer.headers["trainmaster-refused-by"] == "gateway"


def test_a_token_is_not_spent_by_a_page_of_another_origin_nor_by_a_link(world: GatewayWorld) -> None:
    token = token_of(new_ui_url(world.url))
    others = {"origin": "https://evil.example", "sec_fetch_site": "cross-site"}
    assert asked(world, "/ui/session", "POST", trainmaster_token=token, **others).status == 403
    assert asked(world, "/ui/session", trainmaster_token=token).status == 405
    assert asked(world, "/ui/session", "POST", trainmaster_token=token).status == 204


@pytest.mark.parametrize(
    "target", ["/api/jobs", "/api/jobs?token=wrong", "/ui/data/session", "/ui/data/gateway"]
)
def test_without_token_and_cookie_nothing_is_shown_and_nothing_asked(
    target: str, world: GatewayWorld
) -> None:
    answer = asked(world, target, cookie=f"trainmaster-{world.port}=wrong")
    assert answer.status == 403
    assert b"arn:" not in answer.body
    assert "set-cookie" not in answer.headers
    assert world.api.received == []


def test_the_api_is_asked_signed_with_path_query_and_headers_but_without_the_cookie(
    world: GatewayWorld,
) -> None:
    cookie = opened(world).cookie
    world.api.script("GET", "/jobs", Scripted(document=JOBS, headers={"ETag": '"1"', "Set-Cookie": "a=b"}))
    answer = asked(
        world,
        "/api/jobs?team=a%2Bb&limit=5",
        cookie=cookie,
        if_none_match='"0"',
        accept="text/csv",
    )
    assert (answer.status, json.loads(answer.body), answer.headers["etag"]) == (200, JOBS, '"1"')
    assert "set-cookie" not in answer.headers
    assert answer.headers["content-security-policy"].endswith("sandbox")
    received = world.api.received[0]
    assert received.query == {"team": ["a+b"], "limit": ["5"]}
    assert (received.headers["if-none-match"], received.headers["accept"]) == ('"0"', "text/csv")
    assert "cookie" not in received.headers


def test_a_refusal_of_the_api_is_passed_on(world: GatewayWorld) -> None:
    cookie = opened(world).cookie
    world.api.script("GET", "/policy", problem(403, "Forbidden", "you are not an admin"))
    answer = asked(world, "/api/policy", cookie=cookie)
    assert (answer.status, json.loads(answer.body)["detail"]) == (403, "you are not an admin")


def test_an_api_that_does_not_answer_is_said_and_where_it_should_be() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    nowhere = f"http://127.0.0.1:{port}/prod"
    with running_gateway(api_url=nowhere) as world:
        answer = asked(world, "/api/jobs", cookie=opened(world).cookie)
    assert answer.status == 503
    assert nowhere in json.loads(answer.body)["detail"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("target", ["/api/jobs/job1", "/ui/"])
def test_what_is_no_get_is_refused_without_allow_changes(
    method: str, target: str, world: GatewayWorld
) -> None:
    cookie = opened(world).cookie
    assert asked(world, target, method, cookie=cookie).status == 403
    assert world.api.received == []


def test_with_allow_changes_a_page_of_the_gateway_changes_a_job_and_one_of_another_port_does_not(
    changing: GatewayWorld,
) -> None:
    cookie = opened(changing).cookie
    changing.api.script("PATCH", "/jobs/job1", Scripted(document={"name": "job1"}))
    own = {
        "origin": f"http://127.0.0.1:{changing.port}",
        "sec_fetch_site": "same-origin",
        "trainmaster_change": "1",
    }
    body = b'{"priority": 5}'
    assert asked(changing, "/api/jobs/job1", "PATCH", body, cookie=cookie, **own).status == 200
    assert [one.body for one in changing.api.received] == [body]
    for others in (
        {"origin": "http://127.0.0.1:8888"},
        {"sec_fetch_site": "same-site"},
        {"origin": "null", "sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"},
    ):
        said = {"trainmaster_change": "1", **others}
        assert asked(changing, "/api/jobs/job1", "PATCH", body, cookie=cookie, **said).status == 403
    assert asked(changing, "/api/jobs/job1", "PATCH", body, cookie=cookie).status == 403, "without the header"
    assert len(changing.api.received) == 1


@pytest.mark.parametrize(
    ("headers", "status_"),
    [
        pytest.param({"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"}, 403, id="another port's"),
        pytest.param({"origin": "https://evil.example"}, 403, id="another origin's"),
        pytest.param({"sec_fetch_site": "same-site", "sec_fetch_mode": "navigate"}, 200, id="a link there"),
        pytest.param({"sec_fetch_site": "same-origin", "sec_fetch_mode": "cors"}, 200, id="its own"),
    ],
)
def test_a_read_that_another_page_sends_with_the_cookie_is_refused(
    headers: dict[str, str], status_: int, world: GatewayWorld
) -> None:
    cookie = opened(world).cookie
    world.api.script("GET", "/jobs", Scripted(document=JOBS))
    assert asked(world, "/api/jobs", cookie=cookie, **headers).status == status_
    assert len(world.api.received) == (status_ == 200)


@pytest.mark.parametrize("target", ["/ui", "/ui/", "/ui/app.js", "/ui/data/session", "/api/jobs"])
def test_a_name_bound_to_this_machine_is_refused_even_with_the_cookie(
    target: str, world: GatewayWorld
) -> None:
    cookie = opened(world).cookie
    assert asked(world, target, host=f"evil.example:{world.port}", cookie=cookie).status == 403
    assert world.api.received == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1"])
def test_a_forwarded_port_may_have_another_number(host: str, world: GatewayWorld) -> None:
    assert asked(world, "/ui/", host=host).status == 200


def test_behind_a_proxy_that_keeps_its_prefix_to_itself_the_cookie_is_for_that_prefix(
    world: GatewayWorld,
) -> None:
    said = {"x_forwarded_prefix": f"/user/a/proxy/{world.port}", "x_forwarded_proto": "https"}
    page = opened(world, host="hub.example", **said)
    assert page.status == 204
    assert f"; Path=/user/a/proxy/{world.port}/;" in page.headers["set-cookie"]
    assert page.headers["set-cookie"].endswith("; Secure")
    world.api.script("GET", "/pools", Scripted(document={"pools": []}))
    assert asked(world, "/api/pools", cookie=page.cookie, host="hub.example", **said).status == 200


def test_a_prefix_that_is_left_in_the_path_is_taken_away(world: GatewayWorld) -> None:
    prefix = f"/user/a/proxy/absolute/{world.port}"
    assert asked(world, f"{prefix}/ui/", host="hub.example").status == 200
    page = opened(world, prefix, host="hub.example")
    assert page.status == 204
    assert f"; Path={prefix}/;" in page.headers["set-cookie"]
    world.api.script("GET", "/jobs/job1", Scripted(document={"name": "job1"}))
    assert asked(world, f"{prefix}/api/jobs/job1", cookie=page.cookie, host="hub.example").status == 200
    assert asked(world, f"{prefix}/ui").headers["location"] == "ui/"  # browsers keep the fragment


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/../x", "/api/a/%2e%2E/b", "/api//evil.example/x"])
def test_a_path_that_names_another_place_than_it_says_is_none(path: str, world: GatewayWorld) -> None:
    assert asked(world, path, cookie=opened(world).cookie).status == 404
    assert world.api.received == []


def test_a_program_reads_the_api_with_the_gateways_own_token(world: GatewayWorld) -> None:
    world.api.script("GET", "/jobs", Scripted(document=JOBS))
    answer = asked(world, "/api/jobs", authorization=f"Bearer {TOKEN}")
    assert (answer.status, "set-cookie" in answer.headers) == (200, False)
    assert asked(world, "/api/jobs", authorization="Bearer wrong").status == 403
    said = status(world.url)
    assert said is not None
    assert said["operations"]["GET /api"]["errors"]["403"] >= 1


def test_keys_that_expired_are_renewed_and_the_page_sees_nothing_of_it() -> None:
    keys = [Credentials("AKIDOLD", "old", "token"), Credentials(ACCESS_KEY, SECRET_KEY)]
    with running_gateway(lambda: keys.pop(0) if len(keys) > 1 else keys[0]) as world:
        world.api.refusal = Scripted(
            status=403,
            document={"message": "The security token included in the request is expired"},
            headers={"content-type": "application/json", "x-amzn-ErrorType": "ExpiredTokenException"},
        )
        world.api.script("GET", "/jobs", Scripted(document=JOBS))
        assert asked(world, "/api/jobs", cookie=opened(world).cookie).status == 200


def test_only_who_has_the_gateways_token_gets_a_new_link(world: GatewayWorld) -> None:
    assert new_ui_url(f"{world.url}x") is None
    assert asked(world, f"/{TOKEN}/ui-url", "POST", origin="https://evil.example").status == 403
